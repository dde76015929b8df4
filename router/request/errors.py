"""What is wrong with a request, in words that may be shown to the client: never any of its content."""

from __future__ import annotations


class RequestError(Exception):
    """A request that cannot be read. `pointer` is a JSON pointer (RFC 6901); empty: the body as a whole."""

    def __init__(self, status: int, code: str, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.pointer = pointer


class UnreadablePrompt(RequestError):
    """A legal request whose prompt nobody here can read, such as token ids: no guard can judge it.

    The client is told like of any other error, unless the policy lets through what could not be judged.
    """

    def __init__(self, pointer: str) -> None:
        message = "Token ids and embeddings cannot be judged here; send the prompt as text."
        super().__init__(400, "unreadable_prompt", message, pointer)


class ImageError(Exception):
    """An image that cannot be judged. `reason` is a short phrase without content, such as `truncated`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
