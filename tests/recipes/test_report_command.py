"""The report's command on a data folder of a few rows, with the packs that are shipped."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import pytest

from models.report import __main__ as command
from models.report.personal import HARMLESS

pytestmark = pytest.mark.slow

FIXTURES = {
    "stripe = 'sk_" + "live_q7Zk2Vb9Xw4Lr8Tn3Hs6Jd1F'": "secret",
    "password = 'hunter42!'": "secret",
    "nothing to see": "not_secret",
    "token = ${TOKEN}": "not_secret",
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        {"text_base64": base64.b64encode(text.encode()).decode(), "label": label, "source": f"file{i}", "rule": "r"}
        for i, (text, label) in enumerate(FIXTURES.items())
    ]
    sets = {
        name: [{"text": f"A harmless line about tea, number {i}.", "label": ""} for i in range(3)] for name in HARMLESS
    }
    for name, some in {**sets, "sources/secrets_fixtures": rows}.items():
        file = tmp_path / "data" / "text" / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{json.dumps(row)}\n" for row in some))
    return tmp_path / "data"


def test_a_section_is_measured_once_and_its_content_is_not_told(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "work"
    arguments = ["report", "--data", str(data), "--only", "secrets", "--work", str(work), "--limit", "2"]
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(command, "REPORT", tmp_path / "REPORT.md")
    assert command.main() == 0
    first = capsys.readouterr()
    assert "Secrets ... " in first.err
    assert "| harmless texts flagged | 10 | 0.000 |" in first.out
    assert not any(text in first.out for text in FIXTURES)
    monkeypatch.setattr(sys, "argv", [*arguments, "--write"])
    assert command.main() == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / "REPORT.md").read_text() == first.out.removesuffix("\n")


def test_a_section_that_there_is_not_is_wrong_use(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["report", "--data", str(data), "--only", "weather"])
    with pytest.raises(SystemExit, match="2"):
        command.main()
