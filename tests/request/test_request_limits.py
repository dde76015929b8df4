from __future__ import annotations

import pytest

from router.request.errors import RequestError
from router.request.limits import RequestLimits, check_counts, check_size
from router.request.view import ImagePart, RequestView, TextPart, ToolDefinition, ToolResultPart, Turn


def view(*turns: Turn, tools: int = 0, extras: tuple[Turn, ...] = ()) -> RequestView:
    offered = tuple(ToolDefinition(f"/tools/{i}", "t") for i in range(tools))
    return RequestView("openai.chat", "m", turns, offered, False, 0, None, extras=extras)


def images(count: int, at: str = "/messages/0") -> tuple[ImagePart, ...]:
    return tuple(ImagePart(f"{at}/content/{i}", "inline", b"x") for i in range(count))


def test_a_body_of_the_bound_passes_and_one_byte_more_does_not() -> None:
    limits = RequestLimits(body_bytes=10)
    check_size(bytes(10), limits)
    with pytest.raises(RequestError) as caught:
        check_size(bytes(11), limits)
    assert (caught.value.status, caught.value.code) == (413, "request_too_large")


def test_images_count_wherever_they_stand() -> None:
    inside = ToolResultPart("/messages/1/content", "c", images(2, "/messages/1"))
    request = view(Turn("/messages/0", "user", images(2)), Turn("/messages/1", "tool", (inside,)))
    check_counts(request, RequestLimits(images=4))
    with pytest.raises(RequestError) as caught:
        check_counts(request, RequestLimits(images=3))
    assert (caught.value.status, caught.value.code) == (400, "too_many_images")
    assert caught.value.pointer == "/messages/1/content/1"


@pytest.mark.parametrize(
    ("request_view", "count"),
    [
        (view(), 0),
        (view(*(Turn(f"/messages/{i}", "user", ()) for i in range(7))), 7),
        (view(Turn("/messages/0", "user", (TextPart("/a", "x"), TextPart("/b", "y")))), 3),
        (view(Turn("/messages/0", "user", ()), tools=4), 5),
        (view(extras=(Turn("/documents/0", "user", (TextPart("/c", "x"),)),)), 2),
        (view(Turn("/messages/0", "tool", (ToolResultPart("/r", "c", (TextPart("/r/0", "x"),)),))), 3),
    ],
)
def test_parts_are_messages_what_they_consist_of_and_tools(request_view: RequestView, count: int) -> None:
    check_counts(request_view, RequestLimits(parts=max(count, 1)))
    if count > 1:
        with pytest.raises(RequestError) as caught:
            check_counts(request_view, RequestLimits(parts=count - 1))
        assert (caught.value.status, caught.value.code) == (400, "too_many_parts")
        assert caught.value.pointer
