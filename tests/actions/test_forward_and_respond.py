from __future__ import annotations

import json

import pytest

from router.actions import headers
from router.actions.edits import Edits
from router.actions.forward import forward
from router.actions.respond import clarify, refuse
from router.request.openai_chat import parse

BODY = b'{ "messages":[{"role":"user","content":"say \\"model\\": \\u00e9"}] , "model" : "auto","n":1}'


def sent(body: bytes, rewrite_model: str, decision: str | None = "one") -> Edits:
    return forward(
        parse(body), body, cluster="east", model="qwen", rewrite_model=rewrite_model, decision=decision, record="r1"
    )


def test_forward_sets_each_routing_header_once() -> None:
    assert sent(BODY, "Qwen/Qwen3").headers == (
        ("x-pointsman-cluster", "east"),
        ("x-pointsman-model", "qwen"),
        ("x-pointsman-decision", "one"),
        ("x-pointsman-record", "r1"),
    )


def test_forward_without_a_decision_says_so() -> None:
    assert dict(sent(BODY, "auto", decision=None).headers)[headers.DECISION] == headers.NO_DECISION


def test_forward_rewrites_the_model_and_nothing_else() -> None:
    assert sent(BODY, "Qwen/Qwen3").body == BODY.replace(b'"auto"', b'"Qwen/Qwen3"')


def test_forward_leaves_a_body_that_names_the_model_already() -> None:
    assert sent(BODY, "auto").body is None


def test_forward_gives_a_body_without_a_model_one() -> None:
    body = b'{"messages":[{"role":"user","content":"hi"}]}'
    edited = sent(body, "qwen").body
    assert edited is not None
    assert json.loads(edited) == {**json.loads(body), "model": "qwen"}


def test_refuse_speaks_the_clients_dialect_and_names_decision_and_record() -> None:
    reply = refuse("openai.chat", 403, "policy_violation", "Refused by policy.", "block-attack", "r1")
    assert reply.status == 403
    assert json.loads(reply.body)["error"]["code"] == "policy_violation"
    assert json.loads(reply.body)["error"]["message"] == "Refused by policy."
    assert reply.headers[-2:] == (("x-pointsman-decision", "block-attack"), ("x-pointsman-record", "r1"))


def test_refuse_works_where_the_api_is_not_known() -> None:
    reply = refuse(None, 503, "not_judged", "Not judged.", None, "r1")
    assert reply.status == 503
    assert dict(reply.headers)[headers.DECISION] == headers.NO_DECISION


@pytest.mark.parametrize("stream", [False, True])
def test_clarify_answers_as_the_assistant_would(stream: bool) -> None:
    view = parse(json.dumps({"messages": [{"role": "user", "content": "hi"}], "stream": stream}).encode())
    reply = clarify(view, "qwen", "Which image?", "ask-back", "r1", 1_700_000_000)
    assert reply.status == 200
    assert reply.headers[-2:] == (("x-pointsman-decision", "ask-back"), ("x-pointsman-record", "r1"))
    if stream:
        assert reply.content_type.startswith("text/event-stream")
        events = [line[6:] for line in reply.body.decode().splitlines() if line.startswith("data: ")]
        assert events[-1] == "[DONE]"
        chunks = [json.loads(event) for event in events[:-1]]
        assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks) == "Which image?"
        assert {c["id"] for c in chunks} == {"chatcmpl-r1"}
    else:
        answer = json.loads(reply.body)
        assert answer["choices"][0]["message"]["content"] == "Which image?"
        assert (answer["id"], answer["model"], answer["created"]) == ("chatcmpl-r1", "qwen", 1_700_000_000)


def test_a_reply_hides_its_text_from_logs() -> None:
    assert "Refused" not in repr(refuse("openai.chat", 403, "c", "Refused by policy.", "d", "r1"))


@pytest.mark.parametrize("name", [headers.CLUSTER, headers.MODEL, headers.DECISION, headers.RECORD])
def test_header_names_are_lower_case_as_http_2_wants_them(name: str) -> None:
    assert name == name.lower()
    assert name.startswith("x-pointsman-")
