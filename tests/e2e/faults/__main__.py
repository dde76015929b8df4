"""`python -m tests.e2e.faults`: every fault at full scale, with failures closed and open, and a report in JSON.

The report is printed at the end and written to `--report`; the exit code is 1 where clients saw anything else than the
table of docs/faults.md says, or a fault broke a law of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from tests.e2e.faults.faults import ALONE, FAULTS, FULL, LONG, PATIENT, SMALL, House, Scale, Seen, do, house_for
from tests.e2e.faults.table import fits, read_table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.faults", description=__doc__)
    parser.add_argument("--small", action="store_true", help="at the scale of the tests")
    parser.add_argument("--only", action="append", help="a name of the table; may be given several times")
    parser.add_argument("--on-failure", choices=("closed", "open"), action="append")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    scale = SMALL if options.small else FULL
    report: dict[str, Any] = {"scale": {name: getattr(scale, name) for name in Scale.__slots__}, "faults": []}
    for on_failure in options.on_failure or ("closed", "open"):
        for names in ([*FAULTS, *(() if options.small else LONG)], list(PATIENT), *([name] for name in ALONE)):
            wanted = [name for name in names if not options.only or name in options.only]
            if wanted:
                with house_for(wanted[0], on_failure) as house:
                    report["faults"] += [_one(name, house, scale) for name in wanted]
            if options.report:
                options.report.write_text(json.dumps(report, indent=1))
    print(json.dumps(report, indent=1))
    return 0 if all(row["holds"] for row in report["faults"]) else 1


def _one(name: str, house: House, scale: Scale) -> dict[str, Any]:
    print(f"{name}, failures {house.on_failure} ...", end=" ", flush=True, file=sys.stderr)
    started = time.monotonic()
    row: dict[str, Any] = {"fault": name, "on_failure": house.on_failure}
    try:
        seen = do(name, house, scale)
    except Exception as error:
        traceback.print_exc()
        row |= {"holds": False, "why": repr(error)}
    else:
        row |= {"holds": fits(read_table()[name], house.on_failure, seen.tally), **_told(seen)}
    row["took_s"] = round(time.monotonic() - started, 1)
    print(f"{'holds' if row['holds'] else 'DOES NOT HOLD'}: {row}", flush=True, file=sys.stderr)
    return row


def _told(seen: Seen) -> dict[str, Any]:
    return {"ordinary": dict(seen.tally.ordinary), "guarded": dict(seen.tally.guarded), **seen.figures}


if __name__ == "__main__":
    sys.exit(main())
