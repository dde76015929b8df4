"""What a request asks of the model that answers it: kinds of answer, their length, abilities.

Facts for choosing an upstream, read from options beside the conversation. What an option's words could tell a model is
read by the API's own parser: nothing here hides a text from a guard.
"""

from __future__ import annotations

from typing import Final, Literal

from router.request.strict_json import JsonObject, optional_list, string_at, wrong_type
from router.request.view import Capability

Output = Literal["text", "image", "audio"]

FACT_KEYS: Final = frozenset(
    {
        *("modalities", "max_completion_tokens", "max_tokens", "n", "logprobs", "top_logprobs"),
        *("response_format", "tool_choice"),
    }
)
"""The options of chat completions that are read here, at the top of a body."""

RESPONSES_FACT_KEYS: Final = frozenset({"max_output_tokens", "top_logprobs", "include", "text", "tool_choice"})
"""Those of Responses."""

COMPLETIONS_FACT_KEYS: Final = frozenset({"max_tokens", "n", "best_of", "logprobs", "response_format"})
"""Those of legacy completions."""

MESSAGES_FACT_KEYS: Final = frozenset({"max_tokens", "output_config", "output_format", "tool_choice"})
"""Those of Anthropic messages."""

MOST_TOKENS: Final = 2**31 - 1
"""A limit beyond this says no more than this one: no model writes as much."""

_OUTPUTS: Final[dict[str, Output]] = {"text": "text", "image": "image", "audio": "audio"}


def read_outputs(request: JsonObject) -> tuple[Output, ...]:
    """The kinds of answer asked for: those of `modalities`, or text; also images where a tool that makes them is there.

    A kind that nobody here knows is the upstream's business. Raises RequestError unless `modalities` is a list of
    strings, or null.
    """
    found: dict[Output, None] = {}
    for index, item in enumerate(optional_list(request, "modalities", "")):
        kind = _OUTPUTS.get(string_at(item, f"/modalities/{index}").strip().casefold())
        if kind is not None:
            found[kind] = None
    if not found:
        found["text"] = None
    tools = optional_list(request, "tools", "")
    if any(isinstance(tool, dict) and tool.get("type") == "image_generation" for tool in tools) and _may_call(request):
        found["image"] = None
    return tuple(found)


def read_output_limit(
    request: JsonObject, keys: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
) -> int | None:
    """How many tokens the answer may have: the greatest of what stands under `keys`; None: no limit.

    Zero and negative numbers are none: some servers take -1 for that. At most MOST_TOKENS. Raises RequestError for
    what is no integer.
    """
    limits = [_integer(request, key) for key in keys]
    return max((min(limit, MOST_TOKENS) for limit in limits if limit is not None and limit > 0), default=None)


def read_needs(request: JsonObject) -> frozenset[Capability]:
    """Abilities that the request relies on. Raises RequestError for an `n` that is no integer.

    `tools`: some are offered and the model may call them. `json_schema`: a schema for the answer is given; mere
    `json_object` is none, since models without such an ability are commonly asked for it too. `logprobs`: asked for in
    whatever way a server takes for yes. `parallel_choices`: `n` is more than one.
    """
    needs: set[Capability] = set()
    if (request.get("tools") or request.get("functions")) and _may_call(request):
        needs.add("tools")
    if _is_schema(request.get("response_format")):
        needs.add("json_schema")
    if request.get("logprobs") or request.get("top_logprobs"):
        needs.add("logprobs")
    if (_integer(request, "n") or 1) > 1:
        needs.add("parallel_choices")
    return frozenset(needs)


def read_responses_needs(request: JsonObject) -> frozenset[Capability]:
    """The same of a Responses request, which has one answer always. Raises nothing."""
    needs: set[Capability] = set()
    if request.get("tools") and _may_call(request):
        needs.add("tools")
    text = request.get("text")
    if isinstance(text, dict) and _is_schema(text.get("format")):
        needs.add("json_schema")
    include = request.get("include")
    if request.get("top_logprobs") or (isinstance(include, list) and "message.output_text.logprobs" in include):
        needs.add("logprobs")
    return frozenset(needs)


def read_completions_needs(request: JsonObject) -> frozenset[Capability]:
    """The same of a legacy completion; `logprobs` is a number here, and 0 asks for some. Raises RequestError."""
    needs: set[Capability] = set()
    if _is_schema(request.get("response_format")):
        needs.add("json_schema")
    logprobs = request.get("logprobs")
    if logprobs is not None and logprobs is not False:
        needs.add("logprobs")
    if max(_integer(request, "n") or 1, _integer(request, "best_of") or 1) > 1:
        needs.add("parallel_choices")
    return frozenset(needs)


def read_messages_needs(request: JsonObject) -> frozenset[Capability]:
    """The same of an Anthropic message. Raises nothing."""
    needs: set[Capability] = set()
    if request.get("tools") and _may_call(request):
        needs.add("tools")
    config = request.get("output_config")
    if _is_schema(request.get("output_format")) or (isinstance(config, dict) and _is_schema(config.get("format"))):
        needs.add("json_schema")
    return frozenset(needs)


def _is_schema(form: object) -> bool:
    return isinstance(form, dict) and form.get("type") == "json_schema"


def _may_call(request: JsonObject) -> bool:
    """Whether tools, where there are some, may be called; `function_call` is what `tool_choice` was called before."""
    old = request.get("function_call") if request.get("functions") and not request.get("tools") else None
    choice = request.get("tool_choice", old)
    return choice != "none" and not (isinstance(choice, dict) and choice.get("type") == "none")


def _integer(request: JsonObject, key: str) -> int | None:
    """The integer at the top of a body, also as 4096.0; None when absent or null. Raises RequestError."""
    match request.get(key):
        case None:
            return None
        case bool() as flag:
            raise wrong_type(f"/{key}", "an integer", flag)
        case int() as number:
            return number
        case float() as number if number.is_integer():
            return int(number)
        case other:
            raise wrong_type(f"/{key}", "an integer", other)
