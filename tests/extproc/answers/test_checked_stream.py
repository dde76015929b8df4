"""Streams on their way through the checks: what goes on, when, and what never does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from answer_rules import ALL, BROKEN, CALLS, HUNG, SECRET, WORDS, Words, check, checks
from hypothesis import given, settings
from hypothesis import strategies as st
from streams_of_apis import APIS, Events, events_of, said_in, sent, stream_of

from router.extproc.answers.checks import AnswerChecks, Refusal
from router.extproc.answers.stream import CheckedStream
from router.request.view import Api

FOUND = "sk-12345678"
WITH_CALLS: tuple[Api, ...] = ("openai.chat", "openai.responses", "anthropic.messages")


def through(
    pieces: Iterable[bytes], rules: AnswerChecks, api: Api = "openai.chat"
) -> tuple[list[bytes], Refusal | None, CheckedStream]:
    """What went on after each piece and at the end, and why it stopped."""

    async def run() -> tuple[list[bytes], Refusal | None, CheckedStream]:
        stream, out = CheckedStream(rules, api), []
        for piece in pieces:
            step = await stream.feed(piece)
            out.append(step.out)
            if step.stop is not None:
                return out, step.stop, stream
        step = await stream.end()
        return [*out, step.out], step.stop, stream

    return asyncio.run(run())


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    ends = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[begin:end] for begin, end in pairwise(ends)]


def letters(text: str) -> list[str]:
    return list(text)


TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=12)
PLACES = st.lists(st.integers(min_value=0, max_value=100_000), max_size=20)


@settings(deadline=None, max_examples=60)
@given(
    api=st.sampled_from(APIS),
    texts=TEXTS,
    places=PLACES,
    line=st.sampled_from(["\n", "\r\n", "\r"]),
    chars=st.sampled_from([0, 1, 7, 40, 2000]),
    cheap=st.booleans(),
)
def test_what_is_not_refused_goes_on_byte_for_byte_however_it_is_cut(
    api: Api, texts: list[str], places: list[int], line: str, chars: int, cheap: bool
) -> None:
    texts = [SECRET.sub("", text) for text in texts]
    arguments = texts[:3] if api != "openai.completions" else []
    data = b": a comment" + 2 * line.encode() + stream_of(api, texts, arguments, "harmless", line) + b"left over"
    out, stop, stream = through(cut(data, places), checks((check(CALLS, "calls"),), chars=chars, cheap=cheap), api)
    assert stop is None
    assert b"".join(out) == data
    assert stream.held == 0


@settings(deadline=None, max_examples=80)
@given(
    api=st.sampled_from(APIS),
    before=st.text(st.sampled_from("ab c\n"), max_size=120),
    after=st.text(st.sampled_from("ab c\n"), max_size=120),
    sizes=st.lists(st.integers(min_value=1, max_value=9), min_size=1, max_size=8),
    places=PLACES,
    chars=st.integers(min_value=len(FOUND), max_value=60),
    cheap=st.booleans(),
)
def test_not_one_letter_of_what_is_found_gets_out_however_it_is_cut(
    api: Api, before: str, after: str, sizes: list[int], places: list[int], chars: int, cheap: bool
) -> None:
    text = before + FOUND + after
    pieces, begin, number = [], 0, 0
    while begin < len(text):
        size = sizes[number % len(sizes)]
        pieces.append(text[begin : begin + size])
        begin, number = begin + size, number + 1
    data = stream_of(api, pieces)
    out, stop, _ = through(cut(data, places), checks(chars=chars, cheap=cheap), api)
    assert stop is not None and stop.check == "no-secrets"
    told = said_in(b"".join(out))
    assert before.startswith(told)


@pytest.mark.parametrize("api", WITH_CALLS)
def test_a_call_goes_on_only_once_all_of_it_has_been_judged(api: Api) -> None:
    data = stream_of(api, ["Let me see. "], ['{"cmd":', ' "ls"}'])
    pieces = [block + b"\n\n" for block in data.split(b"\n\n") if block]
    out, stop, _ = through(pieces, checks(chars=0), api)
    assert stop is None
    begun = next(place for place, piece in enumerate(pieces) if b"shell" in piece)
    assert out[begun] == b""
    released = next(place for place, piece in enumerate(out) if b"shell" in piece)
    assert b"ls" in out[released]
    assert b"".join(out) == b"".join(pieces)


@pytest.mark.parametrize("api", WITH_CALLS)
def test_nothing_of_a_call_that_is_refused_gets_out(api: Api) -> None:
    data = stream_of(api, ["Let me see. "], ['{"cmd":', ' "r', 'm -rf /"}'])
    out, stop, _ = through(cut(data, range(0, len(data), 7)), checks(chars=0), api)
    assert stop is not None and (stop.check, stop.why, stop.status) == ("no-shell", "matched", 403)
    assert b"shell" not in b"".join(out)
    assert b"Let me see." in b"".join(out)


@pytest.mark.parametrize("api", WITH_CALLS)
def test_what_a_call_passes_on_is_read_without_its_escapes(api: Api) -> None:
    out, stop, _ = through([stream_of(api, [], ['{"key": "sk', '-1234\\u0035678"}'], "keep")], checks(), api)
    assert stop is not None and stop.check == "no-secrets"
    assert b"keep" not in b"".join(out)


def test_text_goes_on_as_soon_as_enough_behind_it_has_been_judged() -> None:
    words = ["word "] * 100
    pieces = [block + b"\n\n" for block in stream_of("openai.chat", words).split(b"\n\n") if block]
    out, _, _ = through(pieces, checks(chars=50))
    gone = [len(said_in(b"".join(out[: place + 1]))) for place in range(len(pieces))]
    # Behind by what is held back and by a piece that is judged at once, no more.
    for place in range(20, 100):
        assert 5 * place - 50 - 15 <= gone[place] <= 5 * place - 50


def test_models_are_asked_by_the_window_and_not_by_the_word() -> None:
    words = Words()
    pieces = [block + b"\n\n" for block in stream_of("openai.chat", ["word "] * 400).split(b"\n\n") if block]
    through(pieces, checks(words=words, chars=200, cheap=False))
    assert len(words.shown) <= 2000 / 100 + 2
    assert max(map(len, words.shown)) <= 200 + 100 + 2 * 256


def test_windows_overlap_by_what_is_held_back() -> None:
    words = Words()
    through([stream_of("openai.chat", [f"{number} " for number in range(500)])], checks(words=words, chars=100))
    whole = "".join(f"{number} " for number in range(500))
    reach = 0
    for window in words.shown:
        begin = whole.index(window)
        assert begin <= max(reach - 100, 0)
        reach = begin + len(window)
    assert reach == len(whole)


def test_a_text_without_a_blank_is_judged_all_the_same() -> None:
    text = "x" * 5000 + FOUND + "x" * 5000
    out, stop, _ = through([stream_of("openai.chat", letters(text))], checks(chars=20))
    assert stop is not None
    assert len(said_in(b"".join(out))) <= 5000


def test_several_choices_are_judged_each_by_itself() -> None:
    def chunk(index: int, text: str) -> dict[str, object]:
        return {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": None}]}

    events = [chunk(0, "sk-1234"), chunk(1, "sk-"), chunk(0, "x"), chunk(1, "12345678")]
    _, stop, _ = through([sent("openai.chat", events)], checks())
    assert stop is not None and stop.evidence[0]["pointer"] == "/choices/1/message/content"
    _, stop, _ = through([sent("openai.chat", events[:3])], checks())
    assert stop is None


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [{"index": 0, "delta": {"reasoning_content": FOUND}}]},
        {"choices": [{"index": 0, "delta": {"refusal": FOUND}}]},
        {"choices": [{"index": 0, "delta": {"vendor": {"deep": [FOUND]}}}]},
        {"choices": [{"index": 0, "delta": {}, "vendor": FOUND}]},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": FOUND}},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": FOUND},
        {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": FOUND},
        {"type": "error", "error": {"message": FOUND}},
        {"anything": {"else": FOUND}},
        [FOUND],
    ],
    ids=str,
)
def test_whatever_key_a_text_stands_under_it_is_read(event: dict[str, object]) -> None:
    out, stop, _ = through(
        [sent("openai.chat", [event])] if isinstance(event, dict) else [b'data: ["%s"]\n\n' % FOUND.encode()], checks()
    )
    assert stop is not None
    assert FOUND.encode() not in b"".join(out)


def test_data_that_is_no_json_is_read_as_text() -> None:
    _, stop, _ = through([b"data: so " + FOUND.encode() + b"\n\n"], checks())
    assert stop is not None


def test_what_comes_behind_the_last_empty_line_is_read_too() -> None:
    event = sent("openai.chat", [{"choices": [{"index": 0, "delta": {"content": FOUND}}]}]).split(b"\n\n")[0]
    out, stop, _ = through([event], checks())
    assert stop is not None and out == [b"", b""]


def test_more_of_a_text_that_has_ended_is_not_believed() -> None:
    events: Events = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "sk-1234"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "5678"}},
    ]
    _, stop, _ = through([sent("anthropic.messages", events)], checks(), "anthropic.messages")
    assert stop is not None and (stop.check, stop.why, stop.status) == ("", "order", 503)


def test_what_is_held_is_bounded() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "x" * 100}}
    event = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
    _, stop, stream = through([sent("openai.chat", [event])] * 100, checks(size=2000))
    assert stop is not None and stop.why == "too_large"
    assert stream.held < 3000


def test_an_event_larger_than_is_held_is_not_gathered() -> None:
    _, stop, _ = through([b"data: " + b"x" * 900] * 3, checks(size=2000))
    assert stop is not None and stop.why == "too_large"


def test_all_that_is_held_can_be_let_go_of_in_its_order() -> None:
    data = stream_of("openai.chat", ["a " * 10, "b " * 10]) + b"data: " + b"x" * 3000 + b"\n\n"
    out, stop, stream = through([data], checks(size=2000))
    assert stop is not None and stop.why == "too_large"
    assert b"".join(out) + stream.let_go() == data


def test_what_no_signal_can_answer_is_refused_or_passes_as_the_check_says() -> None:
    data = stream_of("openai.chat", ["hello"])
    _, stop, _ = through([data], checks((check(BROKEN, "broken"),)))
    assert stop is not None and (stop.check, stop.why, stop.status) == ("broken", "unknown", 503)
    assert stop.evidence == ({"signal": "keyword/broken", "status": "failed", "reason": "broken"},)
    out, stop, _ = through([data], checks((check(BROKEN, "broken", unknown_matches=False),)))
    assert stop is None and b"".join(out) == data


def test_a_check_that_does_not_answer_in_time_is_unknown() -> None:
    data = stream_of("openai.chat", ["hello"])
    _, stop, _ = through([data], checks((check(HUNG, "hung"),), budget=0.01))
    assert stop is not None and (stop.check, stop.why) == ("hung", "unknown")
    _, stop, _ = through([data], checks((check(HUNG, "hung", unknown_matches=False),), budget=0.01))
    assert stop is None


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_text_that_has_waited_long_enough_goes_on_once_it_has_been_judged() -> None:
    async def run() -> None:
        clock, words = Clock(), Words()
        stream = CheckedStream(checks(words=words, chars=1000, seconds=0.5), "openai.chat", clock)
        first, second = (
            sent("openai.chat", [{"choices": [{"index": 0, "delta": {"content": text}}]}])[:-14]
            for text in ("one", " two")
        )
        assert (await stream.feed(first)).out == b""
        assert stream.waits == 0.5
        clock.now = 0.3
        assert (await stream.feed(second)).out == b""
        assert words.shown == []
        clock.now = 0.5
        assert (await stream.tick()).out == first
        assert words.shown == ["one two"]
        assert stream.waits == pytest.approx(0.3)
        clock.now = 0.8
        assert (await stream.tick()).out == second
        assert words.shown == ["one two"]
        assert stream.waits is None

    asyncio.run(run())


def test_a_call_waits_until_it_is_whole_however_long_that_takes() -> None:
    async def run() -> None:
        clock = Clock()
        stream = CheckedStream(checks(seconds=0.5), "openai.chat", clock)
        call = {"index": 0, "id": "c", "function": {"name": "shell", "arguments": "{"}}
        await stream.feed(sent("openai.chat", [{"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}]))
        clock.now = 100.0
        assert stream.waits is None
        assert (await stream.tick()).out == b""

    asyncio.run(run())


@pytest.mark.parametrize("api", WITH_CALLS)
def test_what_events_say_again_is_judged_once(api: Api) -> None:
    words = Words()
    through(
        [stream_of(api, ["one ", "two ", "three"], ['{"a": ', "1}"], "tool")], checks(ALL, words=words, chars=1000), api
    )
    # Responses say the arguments once as a text of their own.
    again = ['{"a": 1}'] if api == "openai.responses" else []
    assert sorted(words.shown) == sorted(["one two three", '{"a": 1}', *again])


def test_the_checks_are_asked_in_their_order() -> None:
    both = (check(WORDS, "first"), check(WORDS, "second", priority=-1))
    _, stop, _ = through([stream_of("openai.chat", [FOUND])], checks(both))
    assert stop is not None and stop.check == "first"


def test_events_of_the_request_that_are_repeated_are_not_the_models(texts: Sequence[str] = ("hello",)) -> None:
    events = events_of("openai.responses", list(texts))
    assert FOUND[:3] in str(events[0])
    _, stop, _ = through([sent("openai.responses", events)], checks(), "openai.responses")
    assert stop is None
