"""Legacy completions and embeddings: requests of a prompt and no messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_bodies import PNG, PNG_URI

from router.request.errors import RequestError, UnreadablePrompt
from router.request.openai_completions import parse as parse_completion
from router.request.openai_embeddings import parse as parse_embedding
from router.request.view import RequestView, TextPart, Turn


def completion(**body: Any) -> RequestView:
    return parse_completion(json.dumps({"model": "m", **body}).encode())


def embedding(**body: Any) -> RequestView:
    return parse_embedding(json.dumps({"model": "m", **body}).encode())


def test_a_prompt_is_what_the_user_asks() -> None:
    view = completion(prompt="hello")
    assert view.turns == (Turn("/prompt", "user", (TextPart("/prompt", "hello"),)),)
    assert view.api == "openai.completions"
    assert [span.text for span in completion(prompt=["a", "b"], suffix="c").latest_user_texts] == ["a", "b", "c"]
    assert [span.pointer for span in completion(prompt=["a", "b"], suffix="c").texts] == [
        "/prompt/0",
        "/prompt/1",
        "/suffix",
    ]


def test_an_input_is_what_the_user_asks() -> None:
    view = embedding(input="hello")
    assert view.turns == (Turn("/input", "user", (TextPart("/input", "hello"),)),)
    assert (view.api, view.outputs, view.stream) == ("openai.embeddings", (), False)
    assert [span.pointer for span in embedding(input=["a", "b"]).latest_user_texts] == ["/input/0", "/input/1"]


@pytest.mark.parametrize("ids", [[1, 2, 3], [[1, 2], [3]], ["a", [1]], [[]]])
def test_token_ids_cannot_be_read_and_are_told_apart_from_errors(ids: Any) -> None:
    for parse, body, pointer in ((completion, {"prompt": ids}, "/prompt"), (embedding, {"input": ids}, "/input")):
        with pytest.raises(UnreadablePrompt) as caught:
            parse(**body)
        assert (caught.value.status, caught.value.code, caught.value.pointer) == (400, "unreadable_prompt", pointer)


def test_a_prompt_as_embeddings_cannot_be_read() -> None:
    with pytest.raises(UnreadablePrompt) as caught:
        completion(prompt="x", prompt_embeds="QUJD")
    assert caught.value.pointer == "/prompt_embeds"


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({}, "missing_required_parameter", ""),
        ({"?": []}, "empty_array", ""),
        ({"?": 1}, "invalid_type", ""),
        ({"?": {}}, "invalid_type", ""),
        ({"?": [True]}, "invalid_type", "/0"),
        ({"?": [None]}, "invalid_type", "/0"),
        ({"?": ["a", 1.5]}, "invalid_type", "/1"),
    ],
)
def test_illegal_prompts_are_refused(body: dict[str, Any], code: str, pointer: str) -> None:
    for parse, key in ((completion, "prompt"), (embedding, "input")):
        with pytest.raises(RequestError) as caught:
            parse(**dict.fromkeys([key] * len(body), body.get("?")))
        assert not isinstance(caught.value, UnreadablePrompt)
        assert (caught.value.code, caught.value.pointer) == (code, f"/{key}{pointer}")


def test_objects_are_no_prompts_of_completions() -> None:
    with pytest.raises(RequestError) as caught:
        completion(prompt=[{"prompt_string": "x"}])
    assert (caught.value.code, caught.value.pointer) == ("invalid_type", "/prompt/0")


def test_objects_with_a_text_or_an_image_can_be_embedded() -> None:
    view = embedding(input=["a", {"text": "hello"}, {"image": PNG_URI}, {"image": "https://example.com/a.png"}])
    assert [(span.pointer, span.text) for span in view.texts[:2]] == [("/input/0", "a"), ("/input/1", "hello")]
    assert [(image.pointer, image.status) for image in view.images] == [
        ("/input/2", "inline"),
        ("/input/3", "not_fetched"),
    ]
    assert view.images[0].data == PNG


def test_messages_can_be_embedded_but_not_beside_an_input() -> None:
    messages = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG_URI}}]}]
    view = embedding(messages=messages)
    assert view.images[0].pointer == "/messages/0/content/0/image_url/url"
    with pytest.raises(RequestError) as caught:
        embedding(messages=messages, input="x")
    assert caught.value.code == "ambiguous_key"


@pytest.mark.parametrize(
    ("options", "limit", "needs"),
    [
        ({}, None, set()),
        ({"max_tokens": 5}, 5, set()),
        ({"logprobs": 0}, None, {"logprobs"}),
        ({"logprobs": None}, None, set()),
        ({"n": 2}, None, {"parallel_choices"}),
        ({"best_of": 2}, None, {"parallel_choices"}),
    ],
)
def test_facts_for_choosing_a_model(options: dict[str, Any], limit: int | None, needs: set[str]) -> None:
    view = completion(prompt="x", **options)
    assert (view.max_output_tokens, view.needs) == (limit, needs)


def test_mere_settings_are_no_texts() -> None:
    view = completion(prompt="x", echo=True, stop=["some words here"], user="some words here", seed=1)
    assert [span.text for span in view.texts] == ["x"]
    view = embedding(input="x", encoding_format="base64", dimensions=3, input_type="query", user="some words here")
    assert [span.text for span in view.texts] == ["x"]


def test_what_stands_in_the_place_of_another_api_is_read_as_well() -> None:
    view = completion(prompt="x", messages=[{"role": "user", "content": "some other words"}])
    assert [(span.pointer, span.role, span.text) for span in view.texts[1:]] == [
        ("/messages", "user", "user\nsome other words")
    ]
