from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from checkpoint_makers import Make
from huggingface_hub import hf_hub_download
from stand_in_hub import COMMIT, StandInHub, _Handler

import router.export.hub
from router.export.errors import ExportError
from router.export.hub import fetch, pull

NAME = "google/siglip-base-patch16-224"


def quietly(step: str) -> None:
    pass


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_hub_id_is_fetched_with_its_commit_and_licence(hub: StandInHub, made: Make, tmp_path: Path) -> None:
    folder = made("siglip")
    hub.add(NAME, folder)
    fetched = fetch(NAME, None, quietly, tmp_path)
    assert contents(fetched.folder) == contents(folder)
    assert (fetched.source, fetched.revision, fetched.licence) == (NAME, COMMIT, "apache-2.0")


def test_shards_come_all_and_other_formats_of_weights_do_not(hub: StandInHub, made: Make, tmp_path: Path) -> None:
    repo = hub.add(NAME, made("siglip", shard="100KB"))
    repo.files |= {"pytorch_model.bin": b"x" * 50, "onnx/model.onnx": b"y" * 50, "README.md": b"z"}
    fetched = contents(fetch(NAME, "main", quietly, tmp_path).folder)
    shards = set(json.loads(fetched["model.safetensors.index.json"])["weight_map"].values())
    assert len(shards) > 2
    assert shards <= set(fetched)
    assert not {"pytorch_model.bin", "onnx/model.onnx", "README.md"} & set(fetched)


def test_pooling_and_modules_of_a_sentence_encoder_come_too(hub: StandInHub, made: Make, tmp_path: Path) -> None:
    hub.add("someone/sentences", made("sentence_encoder", "bert", "cls"))
    fetched = contents(fetch("someone/sentences", None, quietly, tmp_path).folder)
    assert {"modules.json", "1_Pooling/config.json"} <= set(fetched)


def test_what_is_in_the_cache_is_not_fetched_again(hub: StandInHub, made: Make, tmp_path: Path) -> None:
    hub.add(NAME, made("siglip"))
    fetch(NAME, None, quietly, tmp_path)
    fetch(NAME, None, quietly, tmp_path)
    assert len(hub.downloads("model.safetensors")) == 1


def test_a_cut_connection_goes_on_where_it_stopped(hub: StandInHub, made: Make, tmp_path: Path) -> None:
    repo = hub.add(NAME, made("siglip"))
    # What came is kept in pieces of 10 MiB.
    repo.files["model.safetensors"] = bytes(range(256)) * 90_000
    repo.cut_once.add("model.safetensors")
    fetched = fetch(NAME, None, quietly, tmp_path)
    assert contents(fetched.folder) == repo.files
    first, second = hub.downloads("model.safetensors")
    assert first == ""
    assert second == f"bytes={10 << 20}-"


def test_an_unknown_name_says_what_may_be_wrong(hub: StandInHub, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="has no model someone/nothing, or it is private"):
        fetch("someone/nothing", None, quietly, tmp_path)


def test_an_unknown_revision_is_named(hub: StandInHub, made: Make, tmp_path: Path) -> None:
    hub.add(NAME, made("siglip"))
    with pytest.raises(ExportError, match="no revision 'v9'"):
        fetch(NAME, "v9", quietly, tmp_path)


def test_a_gated_model_says_to_accept_its_licence_and_set_a_token(hub: StandInHub, made: Make, tmp_path: Path) -> None:
    hub.add("meta/guard", made("siglip")).gated = True
    with pytest.raises(ExportError, match=r"gated: accept its licence at http://.*/meta/guard, then set HF_TOKEN"):
        fetch("meta/guard", None, quietly, tmp_path)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_file_that_is_not_what_the_hub_says_is_thrown_away(
    hub: StandInHub, made: Make, tmp_path: Path, file: str
) -> None:
    folder = made("siglip")
    repo = hub.add(NAME, folder)
    repo.claimed[file] = "0" * 64
    with pytest.raises(ExportError, match=rf"{file} came with digest .*, the hub says 0000"):
        fetch(NAME, None, quietly, tmp_path)
    repo.claimed.clear()
    assert contents(fetch(NAME, None, quietly, tmp_path).folder) == contents(folder)


def test_a_repository_without_a_configuration_is_no_checkpoint(hub: StandInHub, made: Make, tmp_path: Path) -> None:
    del hub.add(NAME, made("siglip")).files["config.json"]
    with pytest.raises(ExportError, match=r"no config\.json"):
        fetch(NAME, None, quietly, tmp_path)


def test_a_hub_that_is_down_says_what_helps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ExportError, match=r"cannot be reached for google/siglip\S+ \(.*nothing has been fetched yet"):
        fetch(NAME, None, quietly, tmp_path)


def test_a_hub_that_breaks_off_says_how_much_is_kept(
    hub: StandInHub, made: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repo = hub.add(NAME, made("siglip"))
    asked: list[str] = []

    def fails_for_the_weights(repo_id: str, path: str, **rest: Any) -> str:
        asked.append(path)
        if path == "model.safetensors":
            raise ConnectionError("cut")
        return str(hf_hub_download(repo_id, path, **rest))

    monkeypatch.setattr(router.export.hub, "hf_hub_download", fails_for_the_weights)
    kept = len(repo.files) - 1
    with pytest.raises(
        ExportError, match=rf"model\.safetensors \(ConnectionError\); {kept} of {kept + 1} files are kept"
    ):
        fetch(NAME, None, quietly, tmp_path)
    assert asked[-1] == "model.safetensors"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_cache_that_cannot_be_written_is_not_taken_for_the_network(
    hub: StandInHub, made: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int
) -> None:
    hub.add(NAME, made("siglip"))

    def full(*_: Any, **__: Any) -> str:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(router.export.hub, "hf_hub_download", full)
    with pytest.raises(ExportError, match=rf"cannot be kept in the hub's cache here: {os.strerror(code)}.*HF_HOME"):
        fetch(NAME, None, quietly, tmp_path)


def test_what_answers_but_is_no_hub_is_told_apart(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Handler, "_info", lambda self, *_: self._send(200, b"<html>Sign in</html>", {}, True))
    with pytest.raises(ExportError, match="does not answer as a hub does"):
        fetch(NAME, None, quietly)


def test_an_endpoint_may_end_with_a_slash(
    hub: StandInHub, made: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hub.add(NAME, made("siglip"))
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint + "/")
    assert fetch(NAME, None, quietly, tmp_path).revision == COMMIT


def test_a_mirrors_password_is_shown_to_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://user:secret@127.0.0.1:9")
    said: list[str] = []
    with pytest.raises(ExportError, match="cannot be reached") as refused:
        fetch(NAME, None, said.append, tmp_path)
    assert "secret" not in f"{said}{refused.value}"


def test_two_pulls_at_once_do_not_meet(hub: StandInHub, made: Make, tmp_path: Path) -> None:
    hub.add(NAME, made("siglip"))
    to = tmp_path / "here" / "siglip"

    def second(step: str) -> None:
        if step.startswith("file 1 "):
            with pytest.raises(ExportError, match="another process is writing"):
                pull(NAME, None, to, quietly, tmp_path / "cache")

    pull(NAME, None, to, second, tmp_path / "cache")
    assert contents(to) == contents(made("siglip"))


def test_a_local_folder_is_taken_as_it_lies(made: Make) -> None:
    folder = made("siglip")
    assert fetch(str(folder), None, quietly).folder == folder
    with pytest.raises(ExportError, match="--revision is for a hub id"):
        fetch(str(folder), "main", quietly)


@pytest.mark.parametrize("source", ["./nothing/here", "/nowhere", "a/b/c"])
def test_what_is_neither_folder_nor_hub_id_is_refused(source: str) -> None:
    with pytest.raises(ExportError, match="neither a folder here, nor a hub id"):
        fetch(source, None, quietly)


def test_pull_lays_files_whole_or_not_at_all(hub: StandInHub, made: Make, tmp_path: Path) -> None:
    folder = made("siglip")
    repo = hub.add(NAME, folder)
    to = tmp_path / "here" / "siglip"
    repo.claimed["model.safetensors"] = "0" * 64
    with pytest.raises(ExportError, match="came with digest"):
        pull(NAME, None, to, quietly, tmp_path / "cache")
    assert not to.exists()
    repo.claimed.clear()
    pull(NAME, None, to, quietly, tmp_path / "cache")
    assert contents(to) == contents(folder)
    assert not any(path.is_symlink() for path in to.iterdir())
    assert [path.name for path in to.parent.iterdir()] == ["siglip"]
    with pytest.raises(ExportError, match="exists already"):
        pull(NAME, None, to, quietly, tmp_path / "cache")
