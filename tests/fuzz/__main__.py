"""`python -m tests.fuzz --target NAME --seconds N`: fuzz for as long as one likes; `--target all` takes turns.

With atheris (`pip install "pointsman[fuzz]"`) it is guided by coverage; without it, or with `--blind`, hypothesis makes
the changes. What breaks a law is written to `--findings`; the exit code is then 1. Give such a file to `--replay`.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import logging
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tests.fuzz.changes import WORDS

ONE_INPUT_SECONDS = 20
"""An input that takes longer is a finding: the slowest of the corpus takes less than a hundredth of it."""

MEMORY_MB = 2048


def main() -> int:
    options = _options()
    # Refusals are what most inputs end in.
    logging.disable(logging.CRITICAL)
    from tests.fuzz.corpus import folder_of

    if options.replay:
        from tests.fuzz.checks import CHECKS

        CHECKS[options.target](options.replay.read_bytes())
        print(f"{options.target}: {options.replay.name} holds")
        return 0
    options.findings.mkdir(parents=True, exist_ok=True)
    if options.target == "all":
        return _in_turns(options)
    if options.blind or importlib.util.find_spec("atheris") is None:
        return _blind(options.target, options.seconds, options.findings, options.seed)
    return _guided(options.target, options.seconds, options.findings, options.seed, folder_of(options.target))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", default="all", help="a name of tests/fuzz/checks.py, or all")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--findings", type=Path, default=Path(tempfile.gettempdir()) / "pointsman-fuzz")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blind", action="store_true", help="without coverage, also where atheris is installed")
    parser.add_argument("--replay", type=Path, help="one file instead")
    return parser.parse_args()


def _in_turns(options: argparse.Namespace) -> int:
    from tests.fuzz.checks import CHECKS

    broken = []
    for target in CHECKS:
        words = ["--target", target, "--seconds", str(options.seconds), "--findings", str(options.findings)]
        words += ["--seed", str(options.seed), *(["--blind"] if options.blind else [])]
        print(f"{target} for {options.seconds} s ...", flush=True)
        if subprocess.run([sys.executable, "-m", "tests.fuzz", *words], check=False).returncode:
            broken.append(target)
    print(f"findings in {', '.join(broken)}: see {options.findings}" if broken else "no findings")
    return 1 if broken else 0


def _blind(target: str, seconds: int, findings: Path, seed: int) -> int:
    """Changes without coverage, by the clock."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    from tests.fuzz.changes import Change, changed, changes
    from tests.fuzz.checks import CHECKS
    from tests.fuzz.corpus import seeds

    corpus, check = seeds(target), CHECKS[target]
    last, count = b"", 0
    signal.signal(signal.SIGALRM, _too_slow)

    def run(seed: bytes, made: list[Change], other: bytes) -> None:
        nonlocal last, count
        last = changed(seed, made, other)
        count += 1
        signal.alarm(ONE_INPUT_SECONDS)
        check(last)
        signal.alarm(0)

    end, numbers = time.monotonic() + seconds, random.Random(seed)
    while time.monotonic() < end:
        quiet = settings(
            max_examples=500,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )
        strategies = (st.sampled_from(corpus), changes(), st.sampled_from(corpus))
        try:
            quiet(seeded(numbers.getrandbits(32))(given(*strategies)(run)))()
        except BaseException:
            # Hypothesis runs what it has found to be smallest once more before it tells.
            signal.alarm(0)
            file = findings / f"{target}-{hashlib.sha256(last).hexdigest()[:12]}"
            file.write_bytes(last)
            print(f"{target}: a law does not hold for {file}", flush=True)
            raise
    print(f"{target}: {count} inputs", flush=True)
    return 0


def _too_slow(_number: int, _frame: FrameType | None) -> NoReturn:
    raise AssertionError(f"more than {ONE_INPUT_SECONDS} s for one input")


def _guided(target: str, seconds: int, findings: Path, seed: int, corpus: Path) -> NoReturn:
    """By libFuzzer, which ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=["router", "tests.fuzz"]):
        from tests.fuzz.checks import CHECKS
    grown = findings / "corpus" / target
    grown.mkdir(parents=True, exist_ok=True)
    dictionary = findings / "words.txt"
    dictionary.write_text("".join(f'"{_escaped(word)}"\n' for word in WORDS if len(word) < 64))
    arguments = [sys.argv[0], f"-max_total_time={seconds}", f"-timeout={ONE_INPUT_SECONDS}", f"-seed={seed}"]
    arguments += [f"-rss_limit_mb={MEMORY_MB}", f"-dict={dictionary}", f"-artifact_prefix={findings}/{target}-"]
    arguments += ["-max_len=16384", "-print_final_stats=1", "-verbosity=0", str(grown), str(corpus)]
    atheris.Setup(arguments, CHECKS[target])
    atheris.Fuzz()
    sys.exit(0)


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    sys.exit(main())
