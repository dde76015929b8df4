from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from models.rendering import FIRST_UNSEEN_SEED, render
from router.cli.main import app

POLICY = """\
version: 1
upstreams:
  - {model: small, cluster: c, modalities: [text], price: {input_per_million: 1, output_per_million: 1}}
  - {model: large, cluster: d, modalities: [text, image], price: {input_per_million: 5, output_per_million: 5}}
default_model: small
trusted_headers: [x-team]
signals:
  keyword: {"SIGNAL": {any: [railway, "[/bold]"]}, depth: {any: [proof]}}
projections:
  score: {effort: {inputs: [{keyword: depth, weight: 0.7}, {conversation: has_images, weight: 0.3}]}}
  band: {tier: {of: effort, bands: {low: {lt: 0.5}, high: {gte: 0.5}}}}
decisions:
  - name: hard
    priority: 2
    when: {any: [{band: tier, label: high}, {all: [{keyword: SIGNAL}, {not: {conversation: has_tools}}]}]}
    route: {models: [small, large], select: cheapest}
  - name: some
    priority: 1
    when: {at_least: 2, of: [{keyword: SIGNAL}, {keyword: depth}, {conversation: has_tools}]}
    route: {models: [large]}
profiles:
  - name: blue
    header: {name: x-team, any: [blue]}
    decisions: [{name: own, when: {keyword: depth}, route: {models: [large]}}]
"""


def picture(kind: str, seed: int) -> dict[str, object]:
    return image_part(render(kind, FIRST_UNSEEN_SEED + seed).convert("RGB"))


def image_part(image: Image.Image) -> dict[str, object]:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    url = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def text_part(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def explain(policy: Path, *parts: dict[str, object], flags: tuple[str, ...] = (), **more: object) -> Result:
    body = json.dumps({"model": "auto", "messages": [{"role": "user", "content": list(parts)}], **more})
    return CliRunner().invoke(app, ["explain", str(policy), "-", *flags], input=body)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY.replace("SIGNAL", "subject"))
    return path


def test_every_node_has_its_value_and_leaves_say_why(policy: Path) -> None:
    told = explain(policy, text_part("A railway.")).stdout.splitlines()
    assert told[0].startswith("hard (priority), to small on c, in ")
    assert told[1] == "hard route 2: matched <- wins"
    shown = "\n".join(told)
    for line in ("└── any: yes", "├── band/tier (label high): ", "├── keyword/subject: yes", "└── not: yes"):
        assert line in shown, line
    assert "/messages/0/content/0/text [2:9] railway" in shown
    assert "some route 1: could not change the outcome" in shown or "some route 1: no match" in shown
    assert "at_least 2: " in shown


def test_projections_are_drawn_with_what_they_rest_on(policy: Path) -> None:
    told = explain(policy, text_part("A proof.")).stdout
    projections = told[told.index("\nprojections") :]
    assert "band/tier: high" in projections
    assert "score/effort:" in projections
    assert "keyword/depth: yes" in projections
    assert "conversation/has_images: no" in projections


def test_the_selection_says_how_who_and_whom_it_left_out(policy: Path) -> None:
    chosen = explain(policy, text_part("A proof.")).stdout
    assert "selection cheapest of route: small" in chosen
    assert "small: " in chosen[chosen.index("selection") :]
    assert "chosen with probability 1" in chosen
    shown = explain(policy, text_part("A proof."), image_part(Image.new("RGB", (8, 8)))).stdout
    assert "selection cheapest of route: large" in shown
    assert "small cannot take it: input image" in shown


def test_a_request_that_nobody_can_take_is_told_as_such(policy: Path) -> None:
    result = explain(policy, image_part(Image.new("RGB", (8, 8))))
    assert result.exit_code == 0
    assert "default (no_match), answered here: refuse" in result.stdout
    assert "selection nobody can take it" in result.stdout
    assert "small cannot take it: input image" in result.stdout


def test_a_header_on_the_command_line_gives_the_profile(policy: Path) -> None:
    told = explain(policy, text_part("A proof."), flags=("--header", "X-Team: Blue")).stdout
    assert told.startswith("own (priority, profile blue), to large on d")
    assert "hard route" not in told


@pytest.mark.parametrize("written", ["x-team", ": blue"])
def test_a_header_without_name_or_value_is_wrong_use(policy: Path, written: str) -> None:
    result = explain(policy, text_part("A proof."), flags=("--header", written))
    assert result.exit_code == 2
    assert "--header takes a name and a value" in result.stderr


def test_words_that_look_like_markup_are_printed_as_they_are(policy: Path) -> None:
    result = explain(policy, text_part("Close it with [/bold] here."))
    assert result.exit_code == 0
    assert "[14:21] [/bold]" in result.stdout


def test_nothing_is_cut_off_where_output_is_narrow(policy: Path) -> None:
    phrase = "railway " * 30 + "END"
    policy.write_text(POLICY.replace("SIGNAL", "subject").replace("railway", phrase))
    assert "END" in explain(policy, text_part(f"A {phrase}.")).stdout


def test_the_record_has_the_trees_and_the_selection(policy: Path) -> None:
    record = json.loads(explain(policy, text_part("A proof."), flags=("--json",)).stdout)
    [hard, _] = record["decisions"]
    assert hard["tree"]["children"][0]["labels"] == ["high"]
    assert (record["selection"]["by"], record["selection"]["from"]) == ("cheapest", "route")
    assert record["signals"]["band/tier"]["label"] == "high"


@pytest.mark.slow
def test_each_image_is_drawn_with_its_own_score(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        """\
version: 1
upstreams: [{model: m, cluster: c, modalities: [text, image]}]
default_model: m
encoders: {text: starter, vision: starter}
signals:
  image:
    document: {concepts: [a passport], against: [a landscape photograph], threshold: 0.5}
decisions: [{name: found, when: {image: document}, route: {models: [m]}}]
"""
    )
    broken = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    told = explain(path, picture("landscape", 1), picture("passport", 2), broken).stdout.splitlines()
    lines = [line for line in told if "image " in line and "/messages/0/content/" in line]
    assert sorted(line.split("image ")[1][:1] for line in lines) == ["1", "2", "3"]
    [passport] = [line for line in lines if "image 2 /messages/0/content/1/" in line]
    assert "a passport 0." in passport or "a passport 1." in passport
