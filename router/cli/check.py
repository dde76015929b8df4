"""`pointsman check`: does the policy hold together?"""

from __future__ import annotations

from pathlib import Path

from router.cli.output import DOES_NOT_HOLD, FINE, Stop, complain, file_or_stop, out, print_json
from router.config.load import load_policy
from router.config.problems import PolicyError, dotted
from router.extproc.worker import open_packs
from router.packs.files import PackError
from router.packs.layout import lay_out


def run_check(path: Path, as_json: bool) -> int:
    """Schema, references, packs and their weights; every problem is printed with its place."""
    try:
        file_or_stop(path)
        loaded = load_policy(path)
        packs = open_packs(loaded)
        if packs.text is not None:
            lay_out(packs.text, "text")
        if packs.vision is not None:
            lay_out(packs.vision, "vision")
    except Stop as stop:
        return stop.code
    except PolicyError as error:
        if as_json:
            rows = [
                {"line": p.line, "column": p.column, "key": dotted(p.location), "message": p.message}
                for p in error.problems
            ]
            print_json({"policy": str(path), "holds": False, "problems": rows})
        else:
            for line in error.lines():
                complain(line)
        return DOES_NOT_HOLD
    except PackError as error:
        if as_json:
            print_json({"policy": str(path), "holds": False, "problems": [{"key": "encoders", "message": str(error)}]})
        else:
            complain(f"{path}: encoders: {error}")
        return DOES_NOT_HOLD
    policy = loaded.policy
    if as_json:
        print_json({"policy": str(path), "holds": True, "digest": policy.digest, "problems": []})
    else:
        guards = sum(decision.guard for decision in policy.decisions)
        out.print(
            f"{path} holds: {len(policy.decisions)} decisions ({guards} guards), {len(policy.upstreams)} models, "
            f"digest {policy.digest[:12]}"
        )
    return FINE
