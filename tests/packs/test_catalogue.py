from __future__ import annotations

from pathlib import Path

import pytest

from router.export.kinds import Kind
from router.packs.catalogue import near_names, read_catalogue
from router.packs.files import PackError


def test_every_entry_is_of_a_kind_that_can_be_exported() -> None:
    catalogue = read_catalogue()
    assert {"siglip-base-224", "multi-modal-embed-small", "all-minilm-l6-v2"} <= set(catalogue)
    assert {entry.kind for entry in catalogue.values()} <= set(Kind)


def test_a_revision_that_is_no_commit_is_said_to_be_unchecked() -> None:
    for name, entry in read_catalogue().items():
        pinned = len(entry.revision) == 40 and set(entry.revision) <= set("0123456789abcdef")
        assert pinned or "revision" in entry.unchecked, name


def test_near_names_are_found() -> None:
    assert near_names("siglip-base-22", read_catalogue())[0] == "siglip-base-224"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {hub: x}", r"a\.hub: .*a\.revision: Field required"),
        ("[1]", "is not a catalogue"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_catalogue_that_does_not_hold_says_where(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "catalogue.yaml"
    path.write_text(text)
    with pytest.raises(PackError, match=message):
        read_catalogue(path)


def test_a_catalogue_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="cannot be read"):
        read_catalogue(tmp_path / "nothing.yaml")
