from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.config.yaml_source import parse_yaml
from router.evaluation.edit import EditError, set_number, write_over

HERE = ("signals", "jailbreak", "attack", "threshold")


def edited(text: str, number: float = 0.55) -> str:
    return set_number(parse_yaml(Path("policy.yaml"), text.encode()), HERE, number).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "# top\nsignals:\n  jailbreak:\n    attack: {threshold: 0.7}   # why\n",
            "# top\nsignals:\n  jailbreak:\n    attack: {threshold: 0.55}   # why\n",
        ),
        (
            "signals:\n  jailbreak:\n    attack:\n      threshold:   7.0e-1 # why\n      roles: [user]\n",
            "signals:\n  jailbreak:\n    attack:\n      threshold:   0.55 # why\n      roles: [user]\n",
        ),
        (
            "signals: {jailbreak: {attack: {threshold: 1, roles: [user]}}}\n",
            "signals: {jailbreak: {attack: {threshold: 0.55, roles: [user]}}}\n",
        ),
        ("signals: {jailbreak: {attack: {}}}", "signals: {jailbreak: {attack: {threshold: 0.55}}}"),
        (
            "signals: {jailbreak: {attack: {roles: [user]}}}",
            "signals: {jailbreak: {attack: {threshold: 0.55, roles: [user]}}}",
        ),
        (
            "signals:\n  jailbreak:\n    attack:\n      # who\n      roles: [user]\n",
            "signals:\n  jailbreak:\n    attack:\n      # who\n      threshold: 0.55\n      roles: [user]\n",
        ),
        (
            "signals:\r\n  jailbreak:\r\n    attack:\r\n      roles: [user]\r\n",
            "signals:\r\n  jailbreak:\r\n    attack:\r\n      threshold: 0.55\r\n      roles: [user]\r\n",
        ),
        (
            "name: Ünïcödé 漢字 🚦\nsignals: {jailbreak: {attack: {threshold: .7}}}\n",
            "name: Ünïcödé 漢字 🚦\nsignals: {jailbreak: {attack: {threshold: 0.55}}}\n",
        ),
    ],
)
def test_one_number_changes_and_nothing_else(before: str, after: str) -> None:
    assert edited(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "base: &b {threshold: 0.7}\nsignals: {jailbreak: {attack: *b}}\n",
        "base: &n 0.7\nsignals: {jailbreak: {attack: {threshold: *n}}}\n",
        "signals: {jailbreak: {attack: &b {threshold: 0.7}, other: *b}}\n",
        "signals: {jailbreak: {}}\n",
    ],
)
def test_what_cannot_be_edited_alone_is_left_to_a_person(text: str) -> None:
    with pytest.raises(EditError, match="by hand"):
        edited(text)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.booleans(), st.text(alphabet="abc #:é漢", max_size=12))
def test_the_edit_is_the_number_and_back_again_the_file(old: int, new: int, flow: bool, comment: str) -> None:
    first, second = old / 10**6, new / 10**6
    settings = f"{{threshold: {first}}}" if flow else f"\n      threshold: {first}"
    text = f"signals:\n  jailbreak:\n    attack: {settings} # {comment}\n    other: {{threshold: 0.123}}\n"
    there = edited(text, second)
    data = parse_yaml(Path("p"), there.encode()).data
    assert data["signals"]["jailbreak"]["attack"]["threshold"] == second
    assert data["signals"]["jailbreak"]["other"]["threshold"] == 0.123
    assert there.split("#", 1)[1] == text.split("#", 1)[1]
    again = edited(there, first)
    assert parse_yaml(Path("p"), again.encode()).data == parse_yaml(Path("p"), text.encode()).data


def test_a_file_is_replaced_with_its_permissions_and_a_link_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "real.yaml", tmp_path / "policy.yaml"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_over(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [link, target]
