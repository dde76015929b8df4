"""`packs verify` of a pack with heads: all of them are held against their golden vectors, whatever a policy asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_heads import rewrite, write_pack_with_heads
from typer.testing import CliRunner, Result

from router.cli.main import app


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return write_pack_with_heads(tmp_path / "pack")


def verify(pack: Path, *flags: str) -> Result:
    return CliRunner().invoke(app, ["packs", "verify", str(pack), *flags], env={"COLUMNS": "200"})


def test_heads_that_hold_exit_0_and_are_told_to_be_held_by_golden_vectors(pack: Path) -> None:
    result = verify(pack, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["holds"], report["golden"], report["declared"]) == (True, [], [])
    assert report["not_compared"] == ["text", "heads"]


def test_a_head_that_has_drifted_is_named(pack: Path) -> None:
    golden = pack / "golden/heads.json"
    vectors = json.loads(golden.read_text())
    vectors["probabilities"]["pii"][3][1] = [0.9, 0.1]
    golden.write_text(json.dumps(vectors))
    rewrite(pack, {})
    result = verify(pack)
    assert result.exit_code == 1
    assert "head 'pii', golden 3 has a probability off by" in " ".join(result.output.split())


def test_a_bound_that_anything_passes_does_not_hold(pack: Path) -> None:
    rewrite(pack, {"golden": {"path": "golden/heads.json", "sha256": "", "max_difference": 0.5}})
    result = verify(pack)
    assert result.exit_code == 1
    assert "max_difference is 0.5, for heads at most" in " ".join(result.output.split())
