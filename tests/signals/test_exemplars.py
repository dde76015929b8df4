from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.signals.exemplars import (
    MAX_EXEMPLARS,
    MAX_FILE_BYTES,
    MAX_LABEL_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    Exemplar,
    ExemplarError,
    read_exemplars,
)


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_json_lines_are_read_with_their_lines(tmp_path: Path) -> None:
    text = '{"text": " a b ", "label": "x"}\n\n{"label": "y", "text": "c"}\n'
    found = read_exemplars(written(tmp_path, "a.jsonl", text))
    assert found.rows == (Exemplar("a b", "x", 1), Exemplar("c", "y", 3))
    assert found.digest == hashlib.sha256(text.encode()).hexdigest()


def test_yaml_lists_and_mappings_say_the_same(tmp_path: Path) -> None:
    listed = read_exemplars(written(tmp_path, "a.yaml", "- {text: a, label: x}\n- {label: y, text: b}\n"))
    mapped = read_exemplars(written(tmp_path, "b.yml", "x:\n  - a\ny: [b]\n"))
    assert [row[:2] for row in map(_pair, listed.rows)] == [row[:2] for row in map(_pair, mapped.rows)]
    assert [row.line for row in mapped.rows] == [2, 3]


def _pair(row: Exemplar) -> tuple[str, str]:
    return row.text, row.label


def test_words_that_yaml_takes_for_values_stay_words(tmp_path: Path) -> None:
    found = read_exemplars(written(tmp_path, "a.yaml", "no: [yes, 12, null, 2024-01-01]\n"))
    assert [row.text for row in found.rows] == ["yes", "12", "null", "2024-01-01"]
    assert {row.label for row in found.rows} == {"no"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", "", "no exemplars"),
        ("a.yaml", "", "no exemplars"),
        ("a.yaml", "[]", "no exemplars"),
        ("a.csv", "a,b", r"has to end in \.jsonl, \.yaml or \.yml"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "b"}', "line 2: .*label"),
        ("a.jsonl", '{"text": "a", "label": "x", "lable": "y"}', "line 1: .*lable"),
        ("a.jsonl", '{"text": 1, "label": "x"}', "line 1: "),
        ("a.jsonl", "\n{", "line 2: "),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "  ", "label": "x"}', "line 2: the text is empty"),
        ("a.jsonl", '{"text": "a", "label": ""}', "line 1: the label is empty"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "a ", "label": "y"}', "line 2: the same text as in line 1"),
        ("a.jsonl", b'{"text": "a", "label": "x"}\n\xff', "line 2: not UTF-8"),
        ("a.jsonl", '{"text": "%s", "label": "x"}' % ("a" * (MAX_TEXT_CHARACTERS + 1)), "line 1: the text has more"),
        ("a.jsonl", '{"text": "a", "label": "%s"}' % ("x" * (MAX_LABEL_CHARACTERS + 1)), "line 1: the label has more"),
        ("a.yaml", "just a word", "line 1: has to be a list"),
        ("a.yaml", "x: a", "line 1: x needs a list of texts"),
        ("a.yaml", "x:\n  - a\n  - {b: c}\n", "line 3: a text has to be text"),
        ("a.yaml", "- a\n", "line 1: has to be a list"),
        ("a.yaml", "- {text: a, label: x}\n- {text: a}\n", "line 2: needs exactly the keys text and label"),
        ("a.yaml", "- {text: a, label: x, text: b}\n", "line 1: needs exactly the keys text and label"),
        ("a.yaml", "- {text: [a], label: x}\n", "line 1: text has to be text"),
        ("a.yaml", "x: [a\n", "line 2: "),
        ("a.yaml", "x: \x00", "not YAML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    with pytest.raises(ExemplarError, match=message):
        read_exemplars(written(tmp_path, name, text))


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(ExemplarError, match="No such file"):
        read_exemplars(tmp_path / "gone.jsonl")
    with pytest.raises(ExemplarError, match="Is a directory"):
        read_exemplars(tmp_path)


def test_files_and_lists_have_a_limit(tmp_path: Path) -> None:
    with pytest.raises(ExemplarError, match=f"more than {MAX_FILE_BYTES} bytes"):
        read_exemplars(written(tmp_path, "a.jsonl", b" " * (MAX_FILE_BYTES + 1)))
    rows = "\n".join(f'{{"text": "{i}", "label": "x"}}' for i in range(MAX_EXEMPLARS + 1))
    with pytest.raises(ExemplarError, match=f"line {MAX_EXEMPLARS + 1}: more than {MAX_EXEMPLARS} exemplars"):
        read_exemplars(written(tmp_path, "b.jsonl", rows))
    assert len(read_exemplars(written(tmp_path, "c.jsonl", rows.rpartition("\n")[0])).rows) == MAX_EXEMPLARS


words = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=20).filter(str.strip)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=8, unique_by=lambda pair: pair[0].strip()))
def test_what_was_written_as_json_lines_is_read(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    text = "\n".join(json.dumps({"text": text, "label": label}) for text, label in pairs)
    found = read_exemplars(written(tmp_path_factory.getbasetemp(), "law.jsonl", text))
    assert [_pair(row) for row in found.rows] == [(text.strip(), label.strip()) for text, label in pairs]
