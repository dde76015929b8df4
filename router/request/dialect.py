"""The one place where an answer of our own takes the form that a client's API has for it.

Knows which API has which forms, not when to send them. Texts come from the policy or are constant words.
"""

from __future__ import annotations

from typing import Final

from router.request import dialect_anthropic, dialect_completions, dialect_openai, dialect_responses
from router.request.reply import Reply
from router.request.view import Api, RequestView

CLARIFICATION: Final = "clarification_needed"
"""The code of a question to a client whose API has no place for one."""

_PREFIXES: Final[dict[Api, str]] = {
    "openai.chat": "chatcmpl-",
    "openai.responses": "resp_",
    "openai.completions": "cmpl-",
    "anthropic.messages": "msg_",
}


def reply_id(api: Api, record: str) -> str:
    """The identifier of an answer, as the API's clients know them, by the identifier of its record."""
    return _PREFIXES.get(api, "") + record


def error_reply(api: Api | None, status: int, code: str, message: str, pointer: str = "") -> Reply:
    """An error in the client's dialect; OpenAI's where the API is not known.

    A streaming client gets it the same way: what fails before the first event is answered with plain JSON and the
    status by both vendors, and clients look at the status first. `pointer` is the JSON pointer of the offending value,
    empty for none.
    """
    if api in ("anthropic.messages", "anthropic.count_tokens"):
        return dialect_anthropic.error(status, code, message, pointer)
    return dialect_openai.error(status, code, message, pointer)


def assistant_reply(view: RequestView, model: str, text: str, reply_id: str, created: int) -> Reply:
    """An answer that says `text`, as JSON or, where the view asks for it, as a stream of events.

    `created` is in seconds since 1970. Its usage is zero: no model was called. There is one answer, however many were
    asked for. Embeddings and counts of tokens are numbers, where nothing can be said: they get an error with the text.
    """
    match view.api:
        case "openai.chat":
            return dialect_openai.answer(view, model, text, reply_id, created)
        case "openai.responses":
            return dialect_responses.answer(view, model, text, reply_id, created)
        case "openai.completions":
            return dialect_completions.answer(view, model, text, reply_id, created)
        case "anthropic.messages":
            return dialect_anthropic.answer(view, model, text, reply_id)
        case "openai.embeddings" | "anthropic.count_tokens":
            return error_reply(view.api, 400, CLARIFICATION, text)
