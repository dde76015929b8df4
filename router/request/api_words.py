"""Words of the vendors' APIs that are longer than a label, and no words to a model: types of parts within parts.

A list, because a rule for how such words look would let others pass that look the same.
"""

from __future__ import annotations

from typing import Final

LONG_TYPES: Final = frozenset(
    {
        # Anthropic: what its tools give back, where citations come from, its tools themselves.
        *("web_search_result", "web_fetch_result", "encrypted_web_search_result"),
        *("code_execution_result", "encrypted_code_execution_result", "bash_code_execution_result"),
        *("bash_code_execution_output", "text_editor_code_execution_view_result"),
        *("text_editor_code_execution_create_result", "text_editor_code_execution_str_replace_result"),
        *("tool_search_tool_search_result", "web_search_tool_result_error", "web_fetch_tool_result_error"),
        *("code_execution_tool_result_error", "bash_code_execution_tool_result_error"),
        *("text_editor_code_execution_tool_result_error", "tool_search_tool_result_error"),
        *("content_block_location", "web_search_result_location", "search_result_location", "mcp_tool_listing"),
        *("tool_search_tool_regex_20251119", "tool_search_tool_bm25_20251119"),
        # OpenAI: items, citations, tools.
        *("mcp_approval_response", "container_file_citation", "web_search_preview", "web_search_preview_2025_03_11"),
        *("computer_use_preview", "programmatic_tool_calling"),
    }
)
