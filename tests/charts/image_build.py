"""A reading of the Containerfile: its stages and instructions, and the build stage carried out in a plain folder.

No container engine is needed and none is replaced: base images are this machine, and root is whoever runs it.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from chart_render import ROOT

CONTAINERFILE = ROOT / "Containerfile"
IGNORED = ROOT / ".dockerignore"


@dataclass
class Stage:
    """`FROM` and what follows it: pairs of an instruction and its words."""

    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        return [words for kind, words in self.steps if kind == instruction]


def stages() -> list[Stage]:
    """In their order; lines that go on are joined."""
    found: list[Stage] = []
    text = re.sub(r"^\s*#.*\n", "", CONTAINERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(str.strip, text.splitlines()):
        kind, _, words = line.strip().partition(" ")
        if kind == "FROM":
            base, _, name = words.partition(" AS ")
            found.append(Stage(base, name))
        elif found:
            found[-1].steps.append((kind, words.strip()))
    return found


def sent_to_the_builder(path: str) -> bool:
    """Whether .dockerignore lets this file through; the last line that fits counts."""
    let = True
    for line in IGNORED.read_text().splitlines():
        rule = line.strip()
        if not rule or rule.startswith("#"):
            continue
        pattern = rule.removeprefix("!")
        if fits(path, pattern):
            let = rule.startswith("!")
    return let


def fits(path: str, pattern: str) -> bool:
    """Whether the pattern names the path or a folder above it."""
    if "/**/" in pattern and fits(path, pattern.replace("/**/", "/")):
        return True
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        above = "/".join(parts[:count])
        if fnmatch.fnmatchcase(above, pattern) or (pattern.startswith("**/") and fits(parts[count - 1], pattern[3:])):
            return True
    return False


def carry_out(stage: Stage, home: Path, python: str) -> dict[str, str]:
    """Do the steps of the build stage below `home`, where the image's folders have their names; its environment."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home)}
    for variable in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        if variable in os.environ:
            environment[variable] = os.environ[variable]
    commands = home / "bin"
    commands.mkdir()
    (commands / "python").symlink_to(python)
    environment["PATH"] = f"{commands}:{environment['PATH']}"
    for kind, words in stage.steps:
        if kind == "ARG":
            name, _, value = words.partition("=")
            environment[name] = value
        elif kind == "ENV":
            environment |= {name: value for name, _, value in (word.partition("=") for word in shlex.split(words))}
        elif kind == "WORKDIR":
            (home / words.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif kind == "COPY":
            *sources, target = words.split()
            for source in sources:
                copy(source, home / target.lstrip("/"), into=target.endswith("/"))
        elif kind == "RUN":
            run(here(words, home), home / "src", environment)
        else:
            raise AssertionError(f"a step that this reading does not know: {kind} {words}")
    return environment


def here(words: str, home: Path) -> str:
    """The folders that the image's steps name, below `home`."""
    return re.sub(r"(?<![\w./-])/(src|wheels|weights|tools|opt)\b", rf"{home}/\1", words)


def copy(source: str, target: Path, *, into: bool) -> None:
    """As the builder would have it: without what .dockerignore keeps back."""
    origin = ROOT / source
    if origin.is_file():
        assert sent_to_the_builder(source), source
        place = target / origin.name if into else target
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(origin, place)
        return

    def kept_back(folder: str, names: list[str]) -> set[str]:
        base = Path(folder).relative_to(ROOT)
        return {name for name in names if not sent_to_the_builder(str(base / name))}

    shutil.copytree(origin, target, ignore=kept_back, dirs_exist_ok=True)


def run(command: str, folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["/bin/sh", "-ec", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
