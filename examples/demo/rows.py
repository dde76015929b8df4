"""Sends the showcase through Envoy with the real `openai` client, and holds each answer against what was expected."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import httpx
import openai

from examples.demo.showcase import Case, showcase
from examples.demo.stack import Stack

TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the client got back."""

    status: int
    text: str
    headers: httpx.Headers


@dataclass(frozen=True, slots=True)
class Row:
    """One request of the showcase and what became of it. `added_ms` is the time that Pointsman held the request."""

    asked: str
    streamed: bool
    seen: tuple[str, ...]
    decision: str
    upstream: str
    status: int
    added_ms: float
    answer: str
    misses: tuple[str, ...]

    @property
    def as_expected(self) -> bool:
        return not self.misses

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "as_expected": self.as_expected}


def send_showcase(stack: Stack, *, stream: bool = False) -> Iterator[Row]:
    """One row a case, as each comes back."""
    with _client(stack.url) as client:
        for case in showcase():
            yield row_of(case, ask(client, case, stream=stream), stack, stream=stream)


def _client(url: str) -> openai.OpenAI:
    # Retries would hide a refusal, and a proxy from the environment would take the request off loopback.
    transport = httpx.Client(trust_env=False, timeout=TIMEOUT_SECONDS)
    key = os.environ.get("OPENAI_API_KEY", "unused")
    return openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, http_client=transport)


def ask(client: openai.OpenAI, case: Case, *, stream: bool) -> Answer:
    """The answer, whichever way it came; a refusal is an answer too."""
    arguments: dict[str, Any] = {"model": "auto", "messages": list(case.messages)}
    try:
        if stream:
            with client.chat.completions.with_streaming_response.create(**arguments, stream=True) as response:
                events = response.parse()
                words = "".join(e.choices[0].delta.content or "" for e in events if e.choices)
                return Answer(response.status_code, words.strip(), response.headers)
        raw = client.chat.completions.with_raw_response.create(**arguments)
        return Answer(raw.status_code, (raw.parse().choices[0].message.content or "").strip(), raw.headers)
    except openai.APIStatusError as error:
        body = error.body if isinstance(error.body, dict) else {}
        return Answer(error.status_code, str(body.get("message", "")), error.response.headers)


def row_of(case: Case, answer: Answer, stack: Stack, *, stream: bool) -> Row:
    """The answer beside the record that the worker wrote about it."""
    identifier = answer.headers.get("x-pointsman-record")
    if identifier is None:
        misses = ("the answer carries no x-pointsman-record",)
        return Row(case.title, stream, (), "", "", answer.status, 0.0, answer.text, misses)
    record = stack.record(identifier)
    upstream = answer.headers.get("x-upstream-cluster")
    decision = record["decision"]
    misses = []
    if decision != (case.decision or "default"):
        misses.append(f"decision {decision}, expected {case.decision or 'default'}")
    if answer.headers.get("x-pointsman-decision") != decision:
        misses.append("the header x-pointsman-decision differs from the record")
    if upstream != case.cluster:
        misses.append(f"answered by {upstream or 'Pointsman'}, expected {case.cluster or 'Pointsman'}")
    if answer.status != case.status:
        misses.append(f"status {answer.status}, expected {case.status}")
    if case.signal and not record["signals"].get(case.signal, {}).get("matched"):
        misses.append(f"{case.signal} did not match")
    if case.image is not None and matched_image(record, case.signal or "") != case.image:
        misses.append(f"the evidence names image {matched_image(record, case.signal or '')}, expected {case.image}")
    return Row(
        case.title,
        stream,
        tuple(seen(record)),
        decision,
        upstream or "(Pointsman itself)",
        answer.status,
        record["duration_ms"],
        answer.text,
        tuple(misses),
    )


def matched_image(record: dict[str, Any], signal: str) -> int | None:
    """The index of the image that the signal's first evidence rests on."""
    evidence = record["signals"].get(signal, {}).get("evidence") or [{}]
    image: int | None = evidence[0].get("image")
    return image


def seen(record: dict[str, Any]) -> Iterator[str]:
    """The signals that matched or could not be answered, with score and image, for people."""
    for name, observation in record["signals"].items():
        if observation["status"] != "observed":
            yield f"{name} {observation['status']}"
        elif observation["matched"]:
            score = "" if observation.get("score") is None else f" {observation['score']:.2f}"
            evidence = observation.get("evidence") or [{}]
            image = evidence[0].get("image")
            yield f"{name}{score}" + ("" if image is None else f" (image {image + 1})")
