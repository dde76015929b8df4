"""`pointsman rewards`: tell a running `serve` of rewards, look at what was learnt, and estimate before switching on."""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from router.cli.output import (
    DOES_NOT_HOLD,
    FINE,
    WRONG_USE,
    Stop,
    address_or_stop,
    complain,
    escape,
    file_or_stop,
    out,
    policy_or_stop,
    print_json,
)
from router.policy.model import Policy, Route
from router.selection.estimate import Estimate, Interval, Logged, estimate
from router.selection.model import Bandit, picks_by
from router.selection.snapshot import Snapshot
from router.selection.state_file import FILE_NAME, StateFileError, load

TIMEOUT: Final = 10.0


def run_add(
    admin: str, record: str, decision: str, model: str, reward: float, against: str | None, token: Path | None = None
) -> int:
    """Exit code 0 when it was taken, 1 when it was refused or nobody answers, 2 for wrong use."""
    try:
        address = address_or_stop(admin, "--admin")
        headers = {"content-type": "application/json", **_bearing_or_stop(token)}
    except Stop as stop:
        return stop.code
    row = {"record": record, "decision": decision, "model": model, "reward": reward}
    body = json.dumps(row if against is None else {**row, "against": against})
    connection = http.client.HTTPConnection(address.host, address.port, timeout=TIMEOUT)
    try:
        connection.request("POST", "/rewards", body, headers)
        answer = connection.getresponse()
        said = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        complain(f"{admin}: {error or type(error).__name__}; is `pointsman serve --admin {admin}` running?")
        return DOES_NOT_HOLD
    finally:
        connection.close()
    if answer.status != 200:
        complain(f"refused: {said.get('error', answer.status)}")
        return DOES_NOT_HOLD
    out.print("taken" if said["new"] else "known already; counted once")
    return FINE


def _bearing_or_stop(token: Path | None) -> dict[str, str]:
    """The header by which an address with a token lets in; raises Stop."""
    if token is None:
        return {}
    try:
        return {"authorization": f"Bearer {token.read_text(encoding='ascii').strip()}"}
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is no ASCII text"
        complain(f"--admin-token-file {token}: {why}")
        raise Stop(WRONG_USE) from None


def run_show(state: Path, as_json: bool) -> int:
    """Exit code 0, 1 when the folder has no state that can be read."""
    file = state / FILE_NAME
    try:
        file_or_stop(file)
        snapshot = load(file)
    except Stop as stop:
        return stop.code
    except (StateFileError, OSError) as error:
        complain(f"{file}: {error}")
        return DOES_NOT_HOLD
    if as_json:
        print_json(_as_json(snapshot))
        return FINE
    arms = Table("decision", "model", "rewards", "mean", "comparisons", "rating", box=None)
    for decision, rows in sorted(snapshot.arms.items()):
        for model, arm in sorted(rows.items()):
            total = arm.gained + arm.missed
            mean = f"{arm.gained / total:.3f}" if total else "-"
            arms.add_row(
                escape(decision), escape(model), str(arm.rewards), mean, str(arm.comparisons), f"{arm.rating:.0f}"
            )
    speeds = Table("model", "times", "ttft p50", "latency p50", "load", box=None)
    for model, speed in sorted(snapshot.speeds.items()):
        numbers = (speed.percentile("ttft", 50), speed.percentile("latency", 50), speed.load)
        times = str(max(len(speed.ttft), len(speed.latency)))
        speeds.add_row(escape(model), times, *("-" if number is None else f"{number:g}" for number in numbers))
    out.print(f"state {snapshot.version} ({snapshot.digest[:12]})")
    out.print(arms)
    out.print(speeds)
    return FINE


def run_estimate(policy: Path, log: Path, rewards: Path, decision: str | None, as_json: bool) -> int:
    """Exit code 0 when every estimate has support, 1 when one has none, 2 for wrong use."""
    try:
        loaded = policy_or_stop(policy)
        for path in (log, rewards):
            file_or_stop(path)
        routes = _routes(loaded.policy)
        if decision is not None and decision not in routes:
            complain(f'{policy} has no decision "{decision}" that routes to several models')
            return WRONG_USE
        rewarded = _logged(log, _given(rewards))
    except Stop as stop:
        return stop.code
    except UnicodeDecodeError:
        complain("the log and the rewards must be UTF-8")
        return WRONG_USE
    results = {
        name: estimate(name, rewarded.get(name, ()), _prior(route))
        for name, route in routes.items()
        if decision in (None, name)
    }
    if as_json:
        print_json({name: _finite(asdict(one)) | {"supported": one.supported} for name, one in results.items()})
    else:
        for name, one in results.items():
            _show(name, one, routes[name])
    return FINE if all(one.supported for one in results.values()) else DOES_NOT_HOLD


def _routes(policy: Policy) -> dict[str, Route]:
    found = {one.name: one.outcome for one in policy.all_decisions if isinstance(one.outcome, Route)}
    return {name: route for name, route in found.items() if len(route.models) > 1}


def _prior(route: Route) -> tuple[float, float]:
    pick = picks_by(route.select)
    return pick.prior if isinstance(pick, Bandit) else (1.0, 1.0)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a file with one a line; lines that are none are passed over, logs have others in between."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                yield row


def _given(rewards: Path) -> dict[tuple[str, str, str], float]:
    given = {}
    for row in _rows(rewards):
        reward = row.get("reward")
        if "against" not in row and isinstance(reward, int | float) and 0 <= reward <= 1:
            given[str(row.get("record")), str(row.get("decision")), str(row.get("model"))] = float(reward)
    return given


def _logged(log: Path, given: Mapping[tuple[str, str, str], float]) -> dict[str, list[Logged]]:
    """What was chosen by a route and rewarded, by decision, in the log's order; each record once."""
    found: dict[str, dict[str, Logged]] = {}
    for row in _rows(log):
        record, decision, model = (str(row.get(key)) for key in ("record", "decision", "model"))
        reward = given.get((record, decision, model))
        propensities = _propensities(row.get("selection"))
        if reward is not None and propensities.get(model, 0.0) > 0:
            found.setdefault(decision, {}).setdefault(record, Logged(record, model, propensities, reward))
    return {decision: list(rows.values()) for decision, rows in found.items()}


def _propensities(selection: object) -> dict[str, float]:
    """By model; empty where the record has none, or where a fallback was chosen from."""
    if not isinstance(selection, dict) or selection.get("from") != "route":
        return {}
    try:
        return {str(one["model"]): float(one["propensity"]) for one in selection.get("candidates", ())}
    except (TypeError, KeyError, ValueError):
        return {}


def _show(name: str, one: Estimate, route: Route) -> None:
    told = f"{one.requests} rewarded requests in the log, worth {one.effective:.1f} under a bandit"
    out.print(f"[bold]{escape(name)}[/]: {told}")
    if not one.requests:
        out.print("  nothing can be said: no record of the log has a reward and a propensity")
        return
    out.print(f"  earned as logged     {_words(one.logged)}")
    if one.supported:
        out.print(f"  bandit, IPS          {_words(one.ips)}")
        out.print(f"  bandit, SNIPS        {_words(one.snips)}")
        return
    never = [model for model in route.models if model not in one.tried]
    who = escape(f" ({', '.join(never)} never took one)") if never else ""
    out.print(
        f"  [yellow]no support[/]: {one.unsupported:.0%} of the bandit's choices would have gone where the log could "
        f"not have gone{who}, and nothing is known of their rewards. Use `weighted` with `sticky: request` for a "
        "while, with a small weight for each, then estimate again."
    )


def _words(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    return f"{interval.value:.3f}, 95 % between {interval.low:.3f} and {interval.high:.3f}"


def _finite(value: Any) -> Any:
    """JSON has no infinity: an interval of one request has no ends."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_json(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "version": snapshot.version,
        "digest": snapshot.digest,
        "decisions": {d: {m: asdict(arm) for m, arm in rows.items()} for d, rows in snapshot.arms.items()},
        "models": {model: asdict(speed) for model, speed in snapshot.speeds.items()},
    }
