"""Messages about an answer in, what goes on out: no Envoy, no gRPC."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import brotli
import msgspec
import pytest
from answer_rules import BROKEN, HUNG, check, checks
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from streams_of_apis import APIS, chat, events_of, said_in, sent, stream_of

from router.extproc.answers.checks import AnswerChecks
from router.extproc.answers.exchange import AnswerExchange, is_about_an_answer
from router.extproc.room import Room
from router.proto import ext_proc_pb2 as pb
from router.records.store import AnswerRow
from router.records.stored import StoredAnswer, StoredFinding
from router.request.view import Api
from router.telemetry.instruments import create_instruments

FOUND = "sk-12345678"
PATHS: dict[Api, str] = {
    "openai.chat": "/v1/chat/completions",
    "openai.responses": "/v1/responses",
    "openai.completions": "/v1/completions",
    "openai.embeddings": "/v1/embeddings",
    "anthropic.messages": "/v1/messages",
    "anthropic.count_tokens": "/v1/messages/count_tokens",
}
JSON, SSE = "application/json", "text/event-stream"


def head(
    path: str | None = "/v1/chat/completions",
    kind: str = JSON,
    end: bool = False,
    details: str = "via_upstream",
    method: str = "POST",
    record: str = "record",
    **headers: str,
) -> pb.ProcessingRequest:
    message = pb.ProcessingRequest()
    message.protocol_config.response_body_mode = pb.ProcessingMode.FULL_DUPLEX_STREAMED
    message.response_headers.end_of_stream = end
    for name, value in ({":status": "200", "content-type": kind, "content-length": "9"} | headers).items():
        message.response_headers.headers.headers.add(key=name.replace("_", "-"), raw_value=value.encode())
    fields = message.attributes["envoy.filters.http.ext_proc"].fields
    told = {"request.method": method, "response.code_details": details, "request.path": path}
    names = {"decision": "decision", "model": "model", "record": record}
    told |= {f"request.headers['x-pointsman-{name}']": value for name, value in names.items()}
    for name, said in told.items():
        if said is not None:
            fields[name].string_value = said
    return message


def body(data: bytes, end: bool = False) -> pb.ProcessingRequest:
    return pb.ProcessingRequest(response_body=pb.HttpBody(body=data, end_of_stream=end))


TRAILERS = pb.ProcessingRequest(response_trailers=pb.HttpTrailers())


class Outcome:
    """What an exchange answered, put together as Envoy does."""

    def __init__(self, responses: list[pb.ProcessingResponse], counted: dict[str, int]) -> None:
        self.responses = responses
        self.counted = counted
        kinds = [one.WhichOneof("response") for one in responses]
        self.kinds = list(dict.fromkeys(kinds))
        self.immediate = next((one.immediate_response for one in responses if one.HasField("immediate_response")), None)
        pieces = [
            one.response_body.response.body_mutation.streamed_response
            for one in responses
            if one.HasField("response_body")
        ]
        self.body = b"".join(piece.body for piece in pieces)
        self.ended = [piece.end_of_stream for piece in pieces]

    @property
    def removed(self) -> list[str]:
        (first,) = [one for one in self.responses if one.HasField("response_headers")]
        return list(first.response_headers.response.header_mutation.remove_headers)

    @property
    def headers(self) -> dict[str, str]:
        assert self.immediate is not None
        return {one.header.key: one.header.raw_value.decode() for one in self.immediate.headers.set_headers}

    @property
    def error(self) -> Any:
        assert self.immediate is not None
        return json.loads(self.immediate.body)


def run(
    messages: Iterable[pb.ProcessingRequest],
    rules: AnswerChecks | None,
    room: Room | None = None,
    shut: bool = False,
) -> Outcome:
    @contextlib.contextmanager
    def checking() -> Iterator[AnswerChecks | None]:
        if shut:
            raise LookupError
        yield rules

    async def go() -> list[pb.ProcessingResponse]:
        first, *rest = messages

        async def stream() -> AsyncIterator[pb.ProcessingRequest]:
            for message in rest:
                yield message

        assert is_about_an_answer(first)
        exchange = AnswerExchange(checking, instruments, held)
        return [response async for response in exchange.answers(first, stream())]

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    instruments = create_instruments(provider.get_meter("test"))
    held = room or Room()
    responses = asyncio.run(go())
    assert held.held == 0
    counted: dict[str, int] = {}
    data = reader.get_metrics_data()
    for resource in json.loads(data.to_json())["resource_metrics"] if data else ():
        for scope in resource["scope_metrics"]:
            for metric in scope["metrics"]:
                if metric["name"] == "pointsman.responses.checked":
                    counted = {
                        point["attributes"]["outcome"]: point["value"] for point in metric["data"]["data_points"]
                    }
    provider.shutdown()
    return Outcome(responses, counted)


def answer(text: str) -> bytes:
    return json.dumps({"object": "chat.completion", "choices": [{"index": 0, "message": {"content": text}}]}).encode()


def test_a_whole_answer_goes_on_as_it_came() -> None:
    data = answer("hello" * 40_000)
    outcome = run([head(), body(data[:10]), body(data[10:]), body(b"", True)], checks())
    assert outcome.kinds == ["response_headers", "response_body"]
    assert outcome.removed == []
    assert outcome.body == data
    assert outcome.ended == [False] * (len(outcome.ended) - 1) + [True]
    assert outcome.counted == {"passed": 1}


def test_a_whole_answer_that_a_check_refuses_is_replaced_by_an_error_with_the_checks_status() -> None:
    outcome = run([head(), body(answer(FOUND)[:20]), body(answer(FOUND)[20:], True)], checks())
    assert outcome.kinds == ["immediate_response"]
    assert outcome.immediate is not None and outcome.immediate.status.code == 403
    assert outcome.immediate.details == "pointsman"
    assert outcome.error["error"]["code"] == "policy_violation"
    assert {name: outcome.headers[f"x-pointsman-{name}"] for name in ("decision", "model", "record", "check")} == {
        "decision": "decision",
        "model": "model",
        "record": "record",
        "check": "no-secrets",
    }
    assert outcome.counted == {"refused": 1}


@pytest.mark.parametrize(
    ("api", "document"),
    [
        ("openai.chat", {"choices": [{"index": 0, "message": {"content": "x", "reasoning": FOUND}}]}),
        ("openai.chat", {"choices": [{"message": {}}, {"message": {"refusal": FOUND}}]}),
        ("openai.completions", {"choices": [{"text": FOUND}]}),
        ("openai.responses", {"object": "response", "output": [{"content": [{"type": "output_text", "text": FOUND}]}]}),
        ("openai.responses", {"object": "response", "output": [{"type": "reasoning", "summary": [{"text": FOUND}]}]}),
        ("anthropic.messages", {"content": [{"type": "thinking", "thinking": FOUND, "signature": "x"}]}),
        ("anthropic.messages", {"type": "error", "error": {"message": FOUND}}),
        ("anthropic.messages", {"vendor": {"deep": [[FOUND]]}}),
    ],
)
def test_every_text_of_an_answer_is_read(api: Api, document: dict[str, Any]) -> None:
    outcome = run([head(PATHS[api]), body(json.dumps(document).encode(), True)], checks())
    assert outcome.counted == {"refused": 1}
    assert (outcome.error.get("type") == "error") == api.startswith("anthropic.")


@pytest.mark.parametrize(
    ("api", "document"),
    [
        (
            "openai.chat",
            {"choices": [{"message": {"tool_calls": [{"id": "c", "function": {"name": "shell", "arguments": "rm"}}]}}]},
        ),
        ("openai.chat", {"choices": [{"message": {"function_call": {"name": "shell", "arguments": "rm"}}}]}),
        ("openai.chat", {"choices": [{"message": {"tool_calls": [{"custom": {"name": "shell", "input": "rm"}}]}}]}),
        ("openai.responses", {"output": [{"type": "function_call", "name": "shell", "arguments": "rm"}]}),
        ("openai.responses", {"output": [{"type": "shell_call", "action": {"commands": ["rm"]}}]}),
        ("anthropic.messages", {"content": [{"type": "tool_use", "name": "shell", "input": {"command": "rm"}}]}),
    ],
)
def test_every_call_of_an_answer_is_read(api: Api, document: dict[str, Any]) -> None:
    outcome = run([head(PATHS[api]), body(json.dumps(document).encode(), True)], checks())
    assert outcome.headers["x-pointsman-check"] == "no-shell"


def test_an_answer_that_is_no_json_is_read_as_text() -> None:
    assert run([head(kind="text/html"), body(f"<p>{FOUND}".encode(), True)], checks()).counted == {"refused": 1}
    assert run([head(kind="text/html"), body(b"<p>bad gateway", True)], checks()).body == b"<p>bad gateway"
    assert run([head(kind=""), body(FOUND.encode(), True)], checks()).counted == {"refused": 1}


@pytest.mark.parametrize(
    ("path", "details", "method"),
    [
        ("/healthz", "via_upstream", "GET"),
        ("/v1/files/1/content", "via_upstream", "GET"),
        ("/v1/embeddings", "via_upstream", "POST"),
        ("/v1/messages/count_tokens", "via_upstream", "POST"),
        ("/v1/chat/completions", "pointsman", "POST"),
        ("/v1/chat/completions", "direct_response", "POST"),
    ],
)
def test_what_no_model_said_goes_on_at_once(path: str, details: str, method: str) -> None:
    outcome = run(
        [head(path, "application/zip", details=details, method=method), body(FOUND.encode()), body(b"", True)], checks()
    )
    assert outcome.body == FOUND.encode()
    assert outcome.ended == [False, True]
    assert outcome.counted == {}


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/v1/responses/resp_1", "GET"),
        ("/v1/chat/completions/chatcmpl-1", "GET"),
        ("/v1/chat/completions", "GET"),
        ("/x/../v1/chat/COMPLETIONS?a=b", "POST"),
        ("/api/generate", "POST"),
        (None, "POST"),
    ],
)
def test_answers_are_known_by_the_path_however_it_is_asked_for(path: str | None, method: str) -> None:
    assert run([head(path, method=method), body(answer(FOUND), True)], checks()).counted == {"refused": 1}


def test_a_response_without_a_body_goes_on() -> None:
    outcome = run([head(end=True)], checks())
    assert outcome.kinds == ["response_headers"]
    assert outcome.removed == []


def test_without_checks_everything_goes_on() -> None:
    outcome = run([head(), body(answer(FOUND)), body(b"", True)], None)
    assert outcome.body == answer(FOUND)


def test_trailers_end_what_has_no_other_end() -> None:
    data = answer("hello")
    outcome = run([head(), body(data), TRAILERS], checks())
    assert outcome.kinds == ["response_headers", "response_body", "response_trailers"]
    assert (outcome.body, outcome.ended) == (data, [False])
    events = stream_of("openai.chat", ["hello"])
    outcome = run([head(kind=SSE), body(events), TRAILERS], checks())
    assert outcome.kinds == ["response_headers", "response_body", "response_trailers"]
    assert outcome.body == events and not any(outcome.ended)
    outcome = run([head(), body(answer(FOUND)), TRAILERS], checks())
    assert outcome.kinds == ["immediate_response"]
    outcome = run([head(kind=SSE), body(stream_of("openai.chat", [FOUND])), TRAILERS], checks())
    assert "response_trailers" not in outcome.kinds and outcome.ended[-1]


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_a_check_refuses_ends_as_its_api_ends_it(api: Api) -> None:
    events = events_of(api, ["A harmless beginning. ", "And on it goes for a while. ", FOUND, " and more"])
    data = [sent(api, [event]).replace(b"data: [DONE]\n\n", b"") for event in events]
    outcome = run([head(PATHS[api], SSE), *map(body, data), body(b"", True)], checks(chars=20))
    assert outcome.counted == {"refused": 1}
    assert outcome.ended == [False] * (len(outcome.ended) - 1) + [True]
    assert "A harmless beginning. ".startswith(said_in(outcome.body)[:10])
    assert b"12345678" not in outcome.body
    assert outcome.removed[0] == "content-length"
    last = outcome.body.decode().rstrip().split("\n\n")
    match api:
        case "openai.chat" | "openai.completions":
            assert last[-1] == "data: [DONE]"
            (choice,) = json.loads(last[-2][6:])["choices"]
            assert (choice["index"], choice["finish_reason"]) == (0, "content_filter")
        case "openai.responses":
            event = json.loads(last[-1].split("data: ")[1])
            assert event["type"] == "response.incomplete"
            assert event["response"]["id"] == "resp_1"
            assert event["sequence_number"] == len(last) - 1
        case _:
            assert [one.split("\n")[0] for one in last[-3:]] == [
                "event: content_block_stop",
                "event: message_delta",
                "event: message_stop",
            ]


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_cannot_be_checked_ends_with_an_error(api: Api) -> None:
    outcome = run([head(PATHS[api], SSE), body(stream_of(api, ["hello"]), True)], checks((check(BROKEN, "broken"),)))
    assert b"hello" not in outcome.body and b"not_judged" in outcome.body
    assert outcome.ended[-1]


CODINGS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "gzip, br": lambda data: brotli.compress(gzip.compress(data)),
}


@pytest.mark.parametrize("coding", CODINGS)
def test_an_encoded_answer_goes_on_as_it_came_and_is_read_all_the_same(coding: str) -> None:
    data = CODINGS[coding](answer("hello"))
    outcome = run([head(content_encoding=coding), body(data, True)], checks())
    assert (outcome.body, outcome.removed) == (data, [])
    outcome = run([head(content_encoding=coding), body(CODINGS[coding](answer(FOUND)), True)], checks())
    assert outcome.counted == {"refused": 1}


@pytest.mark.parametrize("coding", CODINGS)
def test_an_encoded_stream_goes_on_without_its_coding(coding: str) -> None:
    events = stream_of("openai.chat", ["hello ", "world"])
    data = CODINGS[coding](events)
    outcome = run(
        [head(kind=SSE, content_encoding=coding), *(body(data[i : i + 1]) for i in range(len(data))), body(b"", True)],
        checks(),
    )
    assert outcome.body == events
    assert "content-encoding" in outcome.removed
    data = CODINGS[coding](stream_of("openai.chat", [FOUND]))
    assert run([head(kind=SSE, content_encoding=coding), body(data, True)], checks()).counted == {"refused": 1}


@pytest.mark.parametrize("kind", [JSON, SSE])
def test_an_encoding_that_breaks_or_ends_early_is_never_taken_for_the_whole(kind: str) -> None:
    data = gzip.compress(stream_of("openai.chat", ["hello"]) if kind == SSE else answer("hello"))
    for broken in (data[:-9], data[:10] + b"\xff" * 20):
        outcome = run([head(kind=kind, content_encoding="gzip"), body(broken, True)], checks())
        assert outcome.counted == {"unread": 1}
        # What had been judged by then may be out.
        assert b"not_judged" in (outcome.body if outcome.immediate is None else outcome.immediate.body)


@pytest.mark.parametrize(
    ("kind", "coding", "data"),
    [
        (JSON, "snappy", answer(FOUND)),
        (SSE, "snappy", stream_of("openai.chat", [FOUND])),
        ("audio/mpeg", "", b"\0" * 100),
        (JSON, "", answer("x" * 5000)),
        (JSON, "", b"[" * 4000),
    ],
)
def test_what_cannot_be_read_is_refused_or_passes_as_the_policy_says(kind: str, coding: str, data: bytes) -> None:
    messages = [head(kind=kind, content_encoding=coding), body(data[:7]), body(data[7:]), body(b"", True)]
    refused = run(messages, checks(size=3000))
    assert refused.immediate is not None and refused.immediate.status.code == 503
    assert refused.counted == {"unread": 1}
    passed = run(messages, checks(size=3000, refuses=False))
    assert passed.body == data and passed.ended[-1]
    assert passed.counted == {"unread": 1}


def test_a_stream_that_cannot_be_read_further_passes_where_the_policy_says_so() -> None:
    data = stream_of("openai.chat", ["hello "]) + b"data: " + b"x" * 4000 + b"\n\n" + stream_of("openai.chat", ["more"])
    messages = [head(kind=SSE), *(body(data[i : i + 100]) for i in range(0, len(data), 100)), body(b"", True)]
    assert run(messages, checks(size=3000, refuses=False)).body == data
    assert b"x" * 10 not in run(messages, checks(size=3000)).body


def test_a_policy_that_only_observes_refuses_nothing() -> None:
    for rules in (checks(enforced=False), checks(enforced=False, size=10)):
        assert run([head(), body(answer(FOUND), True)], rules).body == answer(FOUND)
        data = stream_of("openai.chat", ["hello ", FOUND, " more"])
        assert run([head(kind=SSE), body(data), body(b"", True)], rules).body == data


def test_what_did_not_pass_is_kept_beside_the_record(record: str = "0190c7c2-0000-7000-8000-000000000001") -> None:
    rows: list[AnswerRow] = []
    rules = checks(put=rows.append)
    run([head(record=record), body(answer("hello"), True)], rules)
    assert rows == []
    run([head(record=record), body(answer(FOUND), True)], rules)
    run([head(record=record, kind="audio/mpeg"), body(FOUND.encode(), True)], rules)
    run(
        [head(record=record, kind=SSE), body(stream_of("openai.chat", [FOUND]), True)],
        checks((check(BROKEN, "b"),), put=rows.append),
    )
    run([head(record=record), body(answer(FOUND), True)], checks(enforced=False, put=rows.append))
    assert [row.record for row in rows] == [record] * 4
    found = StoredFinding("keyword/secret", "/choices/0/message/content", "sk")
    assert [msgspec.json.decode(row.body, type=StoredAnswer) for row in rows] == [
        StoredAnswer("no-secrets", "matched", evidence=(found,)),
        StoredAnswer("", "kind"),
        StoredAnswer(
            "b", "unknown", True, evidence=(StoredFinding("keyword/broken", status="failed", reason="broken"),)
        ),
        StoredAnswer("no-secrets", "matched", enforced=False, evidence=(found,)),
    ]


@pytest.mark.parametrize("record", ["", "record", "x" * 5000, "0190c7c2-0000-4000-8000-000000000001"])
def test_nothing_is_kept_beside_what_is_no_record_of_ours(record: str) -> None:
    rows: list[AnswerRow] = []
    run([head(record=record), body(answer(FOUND), True)], checks(put=rows.append))
    assert rows == []


def test_checks_that_hang_end_the_answer_in_time() -> None:
    outcome = run([head(), body(answer("hello"), True)], checks((check(HUNG, "hung"),), budget=0.01))
    assert outcome.error["error"]["code"] == "not_judged"


def test_when_nobody_may_judge_what_upstreams_say_ends_there() -> None:
    outcome = run([head(), body(answer("hello"), True)], None, shut=True)
    assert outcome.error["error"]["code"] == "not_judged"
    outcome = run([head(details="direct_response"), body(b"{}", True)], None, shut=True)
    assert outcome.body == b"{}"


def test_a_worker_that_has_its_hands_full_checks_no_more() -> None:
    room = Room(100)
    room.hold(100)
    outcome = run_in_full(room, [head(), body(answer("hello"), True)])
    assert outcome.error["error"]["code"] == "not_judged"
    outcome = run_in_full(room, [head(kind=SSE), body(sent("openai.chat", chat(["hello "]))[:300]), body(b"", True)])
    assert outcome.counted == {"unread": 1} and outcome.ended[-1]


def run_in_full(room: Room, messages: list[pb.ProcessingRequest]) -> Outcome:
    class Full(Room):
        def fits(self, size: int) -> bool:
            return False

    full = Full()
    outcome = run(messages, checks(), full)
    assert not room.fits(1)
    return outcome


def test_a_message_out_of_turn_ends_the_answer() -> None:
    outcome = run([head(), body(answer("hello")), head()], checks())
    assert outcome.error["error"]["code"] == "not_judged"
    assert outcome.counted == {"fault": 1}


def test_an_answer_that_breaks_off_is_told_of_and_nothing_more_of_it_goes_on() -> None:
    outcome = run([head(kind=SSE), body(stream_of("openai.chat", ["hello"])[:200])], checks(chars=1000))
    assert outcome.counted == {"broken_off": 1}
    assert b"hello" not in outcome.body


def test_the_same_filter_may_show_the_requests_headers_first() -> None:
    first = pb.ProcessingRequest(request_headers=pb.HttpHeaders())
    first.protocol_config.response_body_mode = pb.ProcessingMode.FULL_DUPLEX_STREAMED
    outcome = run([first, head(), body(answer("hello"), True)], checks())
    assert outcome.kinds == ["request_headers", "response_headers", "response_body"]
