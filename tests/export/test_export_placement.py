from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from router.export import placement
from router.export.errors import ExportError, WrongUseError
from router.export.placement import may_write, put_in_place, target_of, working_folder


def pack(folder: Path, mark: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pack.yaml").write_text(mark)
    return folder


def replace(to: Path, mark: str, say: Callable[[str], None] = lambda step: None) -> None:
    with working_folder(to, say) as files:
        pack(files, mark)
        put_in_place(files, to, replace=True)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=["in one step", "in two steps"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that swaps two names at once, and one that cannot."""
    if request.param == "in two steps":
        monkeypatch.setattr(placement, "_exchange", lambda one, other: False)


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("name", ["pack", "Päckchen 包 🂡", "[a]*?.b"])
def test_a_folder_is_written_and_replaced_and_nothing_else_stays(tmp_path: Path, name: str) -> None:
    to = tmp_path / "deep" / name
    for mark in ("old", "new"):
        replace(to, mark)
        assert (to / "pack.yaml").read_text() == mark
        assert names(to.parent) == [name]


@pytest.mark.usefixtures("system")
def test_a_link_stays_and_the_folder_that_it_leads_to_is_replaced(tmp_path: Path) -> None:
    real, link = pack(tmp_path / "real", "old"), tmp_path / "links" / "current"
    link.parent.mkdir()
    link.symlink_to("../real")
    replace(link, "new")
    assert link.is_symlink()
    assert (real / "pack.yaml").read_text() == "new"
    assert (names(tmp_path), names(link.parent)) == (["links", "real"], ["current"])


def test_a_link_that_leads_nowhere_is_wrong_use(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone")
    with pytest.raises(WrongUseError, match="leads nowhere"):
        target_of(tmp_path / "link")


def test_a_name_that_no_filesystem_takes_is_wrong_use(tmp_path: Path) -> None:
    for name in ("x" * 300, "a\0b"):
        with pytest.raises((WrongUseError, ExportError)), working_folder(tmp_path / name, lambda step: None):
            raise AssertionError("was made")


def test_the_checkpoint_itself_is_never_the_target(tmp_path: Path) -> None:
    checkpoint = pack(tmp_path / "both" / "checkpoint", "x")
    pack(tmp_path / "both", "x")
    (tmp_path / "link").symlink_to(checkpoint)
    for to in (checkpoint, checkpoint.parent, tmp_path / "link"):
        with pytest.raises(WrongUseError, match="holds the checkpoint itself"):
            may_write(to, replace=True, source=checkpoint)
    may_write(checkpoint / "pack", replace=False, source=checkpoint)


def test_a_file_in_the_way_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(WrongUseError, match="is no pack"):
        may_write(tmp_path / "file", replace=True)
    with pytest.raises(ExportError, match="file cannot be written"), working_folder(tmp_path / "file" / "pack", print):
        raise AssertionError("was made")


def test_an_export_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="on purpose"), working_folder(tmp_path / "pack", print):
        raise RuntimeError("on purpose")
    assert names(tmp_path) == []


@pytest.mark.usefixtures("system")
def test_a_target_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    to = tmp_path / "pack"
    with (
        pytest.raises(ExportError, match="appeared meanwhile"),
        working_folder(to, print) as files,
    ):
        pack(files, "ours")
        pack(to, "theirs")
        put_in_place(files, to, replace=False)
    assert (to / "pack.yaml").read_text() == "theirs"
    assert names(tmp_path) == ["pack"]


def test_the_old_pack_comes_back_when_the_second_of_two_steps_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = pack(tmp_path / "pack", "old")
    monkeypatch.setattr(placement, "_exchange", lambda one, other: False)
    rename = Path.rename

    def fails_for_the_new(self: Path, target: Path) -> Path:
        if self.name == "files":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails_for_the_new)
    with pytest.raises(OSError, match="No space"):
        replace(to, "new")
    assert (to / "pack.yaml").read_text() == "old"
    assert names(tmp_path) == ["pack"]


KILLED = """
import os, signal, sys
from pathlib import Path
from router.export import placement
to, step = Path(sys.argv[1]), sys.argv[2]
die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
with placement.working_folder(to, print) as files:
    (files / "pack.yaml").write_text("new")
    if step == "while it is made":
        die()
    if step == "between two steps":
        placement._exchange = lambda one, other: False
        rename = Path.rename
        Path.rename = lambda self, target: die() if self.name == "files" else rename(self, target)
    placement.shutil.rmtree = die
    placement.put_in_place(files, to, True)
"""


@pytest.mark.parametrize(
    ("step", "left", "kept"),
    [
        ("while it is made", "old", "old"),
        ("between two steps", None, "old"),
        ("after it is in place", "new", "new"),
    ],
)
def test_a_run_that_is_killed_loses_no_pack_and_the_next_one_clears_up(
    tmp_path: Path, step: str, left: str | None, kept: str
) -> None:
    to = pack(tmp_path / "pack", "old")
    ran = subprocess.run([sys.executable, "-c", KILLED, str(to), step], check=False)
    assert ran.returncode == -signal.SIGKILL
    assert ((to / "pack.yaml").read_text() if to.exists() else None) == left
    assert len(names(tmp_path)) == (1 if left is None else 2)
    said: list[str] = []
    with working_folder(to, said.append):
        assert (to / "pack.yaml").read_text() == kept
    assert names(tmp_path) == ["pack"]
    assert said[-1].startswith("cleared ")
    assert (len(said) > 1) == (left is None)


def test_what_is_in_use_is_left_alone_and_named(tmp_path: Path) -> None:
    to = tmp_path / "pack"
    with working_folder(to, print) as files:
        with (
            pytest.raises(ExportError, match=r"another process is writing .*pack just now"),
            working_folder(to, print),
        ):
            raise AssertionError("was made")
        with working_folder(tmp_path / "other", print):
            assert files.is_dir()
    assert names(tmp_path) == []


def test_folders_of_other_names_are_never_cleared(tmp_path: Path) -> None:
    kept = [".pack.notes", ".pack.abcdefgh", ".pack2.abcdefgh.part", "pack.abcdefgh.part", ".pack.abcdefghi.part"]
    for name in kept:
        (tmp_path / name).mkdir()
    (tmp_path / ".pack.filefile.part").write_text("a file")
    (tmp_path / ".pack.linklink.part").symlink_to(tmp_path / ".pack.notes")
    with working_folder(tmp_path / "pack", print):
        pass
    assert names(tmp_path) == sorted([*kept, ".pack.filefile.part", ".pack.linklink.part"])


def test_a_leftover_of_another_user_is_named_and_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".pack.abcdefgh.part").mkdir()
    real = placement._lock

    def refuses(part: Path) -> int:
        if part.name == ".pack.abcdefgh.part":
            raise PermissionError(13, "Permission denied")
        return real(part)

    monkeypatch.setattr(placement, "_lock", refuses)
    said: list[str] = []
    with working_folder(tmp_path / "pack", said.append):
        pass
    assert names(tmp_path) == [".pack.abcdefgh.part"]
    assert "may be left over" in said[0]


def test_what_is_in_place_can_be_read_by_others(tmp_path: Path) -> None:
    with working_folder(tmp_path / "pack", print) as files:
        (files / "golden").mkdir(mode=0o700)
        (files / "golden" / "a").write_text("x")
        (files / "golden" / "a").chmod(0o600)
        put_in_place(files, tmp_path / "pack", replace=False)
    modes = [oct(path.stat().st_mode & 0o777) for path in sorted((tmp_path / "pack").rglob("*"))]
    assert modes == ["0o755", "0o644"]
    assert oct((tmp_path / "pack").stat().st_mode & 0o777) == "0o755"


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for mark in "abc":
        replace(tmp_path / "pack", mark)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
