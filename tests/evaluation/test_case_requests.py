from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from router.evaluation.cases import CasesError, read_cases
from router.evaluation.requests import CaseRequest, request_of

PIXEL = b"no real image, and it need not be one"


def request(folder: Path, case: dict[str, Any]) -> CaseRequest:
    (folder / "images").mkdir(exist_ok=True)
    (folder / "images" / "a.png").write_bytes(PIXEL)
    path = folder / "cases.jsonl"
    path.write_text(json.dumps({"expect": {"decision": "x"}, **case}))
    [read] = read_cases(path)
    return request_of(read)


def body(folder: Path, case: dict[str, Any]) -> Any:
    return json.loads(request(folder, case).body)


URI = f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"


def test_text_is_one_user_turn(tmp_path: Path) -> None:
    assert body(tmp_path, {"text": "hi"}) == {"model": "auto", "messages": [{"role": "user", "content": "hi"}]}


def test_images_follow_the_text(tmp_path: Path) -> None:
    [message] = body(tmp_path, {"text": "hi", "images": ["images/a.png"]})["messages"]
    assert message["content"] == [
        {"type": "text", "text": "hi"},
        {"type": "image_url", "image_url": {"url": URI}},
    ]


def test_images_alone_have_no_text_beside_them(tmp_path: Path) -> None:
    [message] = body(tmp_path, {"images": ["images/a.png"]})["messages"]
    assert [part["type"] for part in message["content"]] == ["image_url"]


def test_turns_keep_their_roles_and_order(tmp_path: Path) -> None:
    made = body(tmp_path, {"turns": [{"system": "s"}, {"user": "u"}, {"assistant": "a"}, {"user": ""}], "model": "m"})
    assert made["model"] == "m"
    assert [(m["role"], m["content"]) for m in made["messages"]] == [
        ("system", "s"),
        ("user", "u"),
        ("assistant", "a"),
        ("user", ""),
    ]


def test_more_goes_into_the_body(tmp_path: Path) -> None:
    assert body(tmp_path, {"text": "hi", "more": {"stream": True}})["stream"] is True


def test_files_in_a_body_are_filled_in_where_images_stand_and_nowhere_else(tmp_path: Path) -> None:
    given = {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "file:images/a.png"},
                    {"type": "image_url", "image_url": {"url": "file:images/a.png"}},
                    {"type": "input_image", "image_url": "file:images/a.png"},
                    {"type": "image", "source": {"type": "base64", "data": "file:images/a.png"}},
                ],
            }
        ]
    }
    [message] = body(tmp_path, {"body": given})["messages"]
    text, chat, responses, anthropic = message["content"]
    assert text["text"] == "file:images/a.png"
    assert chat["image_url"]["url"] == URI
    assert responses["image_url"] == URI
    assert anthropic["source"]["data"] == base64.b64encode(PIXEL).decode()


def test_header_names_are_lower_case(tmp_path: Path) -> None:
    assert request(tmp_path, {"text": "hi", "headers": {"X-Team": "A"}}).headers == {"x-team": "A"}


@pytest.mark.parametrize("name", ["images/none.png", "images", "\0", "x" * 5000])
def test_an_image_that_is_not_there_is_told_with_its_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(CasesError) as caught:
        request(tmp_path, {"text": "hi", "images": [name]})
    assert caught.value.lines[0].startswith(f"{tmp_path}/cases.jsonl:1: images: ")


def test_a_path_of_no_llm_request_is_told(tmp_path: Path) -> None:
    with pytest.raises(CasesError, match="no path of an LLM request"):
        request(tmp_path, {"text": "hi", "path": "/metrics"})


def test_a_lone_surrogate_makes_a_body_and_no_crash(tmp_path: Path) -> None:
    assert request(tmp_path, {"text": "a\ud800"}).body


def test_shorthand_makes_chat_completions_and_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(CasesError, match="needs a body"):
        request(tmp_path, {"text": "hi", "path": "/v1/messages"})
    assert request(tmp_path, {"body": {"messages": []}, "path": "/v1/messages"}).body == b'{"messages": []}'
