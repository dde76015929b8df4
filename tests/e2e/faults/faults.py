"""The faults: each is done to a running house, at a scale that the caller chooses, and tells what its clients saw.

What they have to see is the table of docs/faults.md, not here; what holds besides (no request hangs, memory comes back)
is among the figures or raises AssertionError.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from router.records.writer import PAUSE_SECONDS
from tests.e2e.faults.house import KEPT, MODELS, House, OnFailure, kill, resident_kib, running_house, wait_until
from tests.e2e.faults.traffic import (
    ATTACK,
    ORDINARY,
    Tally,
    ask,
    chat,
    head_of,
    idle_streams,
    load,
    under_load,
)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is done: requests under kills, idle streams, clients that leave, bodies at once and their bytes."""

    requests: int
    streams: int
    leaving: int
    bodies: int
    body_bytes: int


SMALL: Final = Scale(requests=300, streams=50, leaving=20, bodies=8, body_bytes=4 << 20)
FULL: Final = Scale(requests=10_000, streams=1_000, leaving=500, bodies=64, body_bytes=8 << 20)


BACK: Final = 1.1
"""Memory is back when it is no more than this share of what it was, in each worker."""

BACK_SECONDS: Final = 30.0
"""For which that is waited at full scale."""

WARMING: Final = 400
"""Requests before memory is first looked at."""


@dataclass
class Seen:
    """What the clients of one fault saw, and figures for the report."""

    tally: Tally = field(default_factory=Tally)
    figures: dict[str, Any] = field(default_factory=dict)

    def check(self, house: House, attacks_before: int) -> None:
        """What holds for every fault: none hangs, and an attack reaches nobody where failures are closed."""
        assert "hung" not in self.tally.ordinary | self.tally.guarded
        if house.on_failure == "closed":
            assert house.attacks == attacks_before, "a request that a guard refuses reached an upstream"
        assert not self.figures.get("grew"), self.figures
        self.figures["slowest_s"] = round(self.tally.slowest, 3)


Fault = Callable[[House, Scale], Seen]


def ask_both(house: House, seen: Seen, rounds: int = 3) -> None:
    """Ordinary requests and attacks in turn, one after the other."""

    async def run() -> None:
        for _ in range(rounds):
            for content in (ORDINARY, ATTACK):
                seen.tally.count(content, await ask(house.address, chat(content)))

    asyncio.run(run())


def one_killed(house: House, scale: Scale) -> Seen:
    """`kill -9` of one worker after the other, every second, or later where it takes longer until both serve again."""
    seen, times = Seen(), [time.monotonic()]
    done = threading.Event()

    def killing() -> None:
        while not done.wait(0.05):
            ready = house.ready()
            due = scale is SMALL or time.monotonic() - times[-1] >= 1.0
            if due and len(ready) == house.workers == house.healthy():
                kill(ready[len(times) % 2])
                times.append(time.monotonic())

    thread = threading.Thread(target=killing)
    thread.start()
    asyncio.run(load(house.address, scale.requests, 4, seen.tally, pause=0.005))
    while len(times) < 3:
        asyncio.run(load(house.address, 50, 4, seen.tally, pause=0.005))
    done.set()
    thread.join()
    _recovered(house)
    seen.figures |= {
        "kills": len(times) - 1,
        "seconds_between_kills": round((times[-1] - times[0]) / (len(times) - 1), 2),
    }
    seen.figures["requests"] = (seen.tally.ordinary + seen.tally.guarded).total()
    return seen


def all_killed(house: House, _scale: Scale) -> Seen:
    """All workers are dead, and none is started again."""
    seen = Seen()
    with house.supervisor_stopped():
        for pid in house.ready().values():
            kill(pid)
        wait_until(lambda: not house.ready(), "the workers to be gone")
        ask_both(house, seen)
    _recovered(house)
    return seen


def one_hung(house: House, _scale: Scale) -> Seen:
    """SIGSTOP: one worker of two does nothing any more, and its socket still takes connections."""
    seen, later = Seen(), Seen()
    with house.supervisor_stopped(), _stopped(house.ready()[0]):
        ask_both(house, seen)
        wait_until(lambda: house.healthy() == house.workers - 1, "Envoy to notice")
        ask_both(house, later)
    assert (set(later.tally.ordinary), set(later.tally.guarded)) == ({"judged"}, {"refused"}), later
    _recovered(house)
    return seen


def all_hung(house: House, _scale: Scale) -> Seen:
    """SIGSTOP of all workers."""
    seen = Seen()

    async def at_once() -> None:
        contents = (ORDINARY, ATTACK) * 3
        answers = await asyncio.gather(*(ask(house.address, chat(content)) for content in contents))
        for content, answer in zip(contents, answers, strict=True):
            seen.tally.count(content, answer)

    with house.supervisor_stopped(), contextlib.ExitStack() as stack:
        for pid in house.ready().values():
            stack.enter_context(_stopped(pid))
        asyncio.run(at_once())
    _recovered(house)
    return seen


def hung_and_replaced(house: House, _scale: Scale) -> Seen:
    """A worker that hangs is killed by the supervisor and followed by another. Takes long: at full scale only."""
    seen, pid = Seen(), house.ready()[0]
    started = time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    with under_load(house.address, seen.tally, clients=1):
        wait_until(lambda: house.ready().get(0, pid) != pid, "the hung worker to be replaced")
    seen.figures["replaced_after_s"] = round(time.monotonic() - started, 1)
    _recovered(house)
    return seen


def out_of_memory(house: House, scale: Scale) -> Seen:
    """A limit on one worker's memory that large bodies run into."""
    seen, pid = Seen(), house.ready()[0]
    limit = _virtual_bytes(pid) + (1 << 20)
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))

    async def run() -> None:
        for number in range(12):
            content = ATTACK if number % 3 == 2 else ORDINARY
            seen.tally.count(content, await ask(house.address, chat(content, scale.body_bytes)))

    asyncio.run(run())
    seen.figures["worker_died"] = house.ready().get(0) != pid
    kill(pid)
    _recovered(house)
    return seen


def reloaded(house: House, _scale: Scale) -> Seen:
    """Under load the policy is replaced, then by one that does not hold, then by the first again."""
    seen, served = Seen(), {pid: _digest(house, index) for index, pid in house.ready().items()}
    changed = house.signals.replace("[dosage]", "[dosage, dose]")
    assert changed != house.signals
    with under_load(house.address, seen.tally):
        house.write_policy(changed)
        wait_until(
            lambda: all(_digest(house, i) not in ("", *served.values()) for i in house.ready()), "the new policy"
        )
        house.write_policy("signals: {keyword: [}\n")
        wait_until(lambda: all(_refuses(house, i) for i in house.ready()), "the policy to be refused")
        house.write_policy(house.signals)
        wait_until(lambda: all(_digest(house, i) in served.values() for i in house.ready()), "the former policy")
    assert set(house.ready().values()) == set(served)
    return seen


def rolling_restart(house: House, _scale: Scale) -> Seen:
    """SIGUSR2 to the supervisor: every worker is followed by another, one at a time, under load."""
    seen, before = Seen(), set(house.ready().values())
    with under_load(house.address, seen.tally):
        os.kill(house.supervisor, signal.SIGUSR2)
        wait_until(lambda: len(set(house.ready().values()) - before) == house.workers, "the workers to be replaced")
    _recovered(house)
    return seen


def envoy_restarted(house: House, _scale: Scale) -> Seen:
    """Envoy is killed and started again; the workers stay."""
    seen, before = Seen(), house.ready()
    kill(house.processes["envoy"].pid)
    house.processes["envoy"].wait()
    ask_both(house, seen, rounds=1)
    house.start_envoy()
    _recovered(house)
    assert house.ready() == before
    return seen


def clients_leave(house: House, scale: Scale) -> Seen:
    """Clients that send half a body and close; others are served meanwhile."""
    seen = Seen()

    async def leave(number: int) -> None:
        body = chat(ATTACK if number % 2 else ORDINARY, size=200_000)
        _, writer = await asyncio.open_connection(house.address.host, house.address.port)
        writer.write(head_of(body) + body[: len(body) // 2])
        await writer.drain()
        writer.transport.abort()

    async def run() -> None:
        for start in range(0, scale.leaving, 20):
            await asyncio.gather(*(leave(number) for number in range(start, start + 20)))

    served = house.b.served
    with under_load(house.address, seen.tally):
        asyncio.run(run())
        wait_until(lambda: bool(seen.tally.guarded), "an attack to be refused")
    assert house.b.served - served == seen.tally.ordinary["judged"], "half a request reached an upstream"
    return seen


def streams_idle(house: House, scale: Scale) -> Seen:
    """Streams that say nothing for long: others are served, and a worker that dies breaks none of them."""
    seen, before = Seen(), house.resident()
    survivor = 0

    async def run() -> None:
        nonlocal survivor
        async with idle_streams(house.address, scale.streams, house.b) as readers:
            seen.figures["resident_kib_with_streams"] = house.resident()
            for content in (ORDINARY, ATTACK) * 3:
                seen.tally.count(content, await ask(house.address, chat(content)))
            survivor = house.ready()[1]
            kill(house.ready()[0])
            for content in (ORDINARY, ATTACK) * 3:
                seen.tally.count(content, await ask(house.address, chat(content)))
            assert house.b.streams == scale.streams
            assert not any(reader.at_eof() for reader in readers)

    asyncio.run(run())
    wait_until(lambda: house.b.streams == 0 or _nudge(house), "the streams to end")
    seen.figures |= {"streams": scale.streams, "resident_kib_before": before, "resident_kib_after": house.resident()}
    seen.figures["grew"] = resident_kib(survivor) > BACK * before[survivor]
    _recovered(house)
    return seen


def large_bodies(house: House, scale: Scale) -> Seen:
    """Large bodies all at once, again and again. At small scale they are too few for their memory to be given back: it
    does not grow there beyond what it was after some of the times before.
    """
    seen = Seen()
    times, patience = (5, 0.5) if scale is SMALL else (2, BACK_SECONDS)

    async def wave() -> None:
        bodies = [(content, chat(content, scale.body_bytes)) for content in (ORDINARY, ATTACK)]

        async def one(number: int) -> None:
            content, body = bodies[number % 4 == 3]
            seen.tally.count(content, await ask(house.address, body))

        await asyncio.gather(*(one(number) for number in range(scale.bodies)))

    before = house.resident()
    peaks: dict[int, int] = dict(before)
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            for pid, kib in house.resident().items():
                peaks[pid] = max(peaks.get(pid, 0), kib)

    watcher = threading.Thread(target=watch)
    watcher.start()
    after = []
    for _ in range(times):
        asyncio.run(wave())
        after.append(_settled(house, before, patience))
    done.set()
    watcher.join()
    seen.figures |= {"resident_kib_before": before, "resident_kib_peak": peaks, "resident_kib_after": after}
    if scale is SMALL:
        *former_kib, last_kib = (sum(found.values()) for found in after)
        seen.figures["grew"] = last_kib > BACK * max(former_kib)
    return seen


def hung_model(house: House, _scale: Scale) -> Seen:
    """A model that needs far longer than the policy gives it: so much text that no processor reads it in time."""
    seen = Seen()

    async def run() -> None:
        words = " ".join(f"{ORDINARY} {number}" for number in range(60_000))
        for content in (ORDINARY, ATTACK):
            answer = await ask(house.address, chat(f"{words} {content}"))
            seen.tally.count(content, answer)

    asyncio.run(run())
    # What nobody waits for any more does not keep the next ones from the model.
    _recovered(house)
    return seen


def disks_stalled(house: House, _scale: Scale) -> Seen:
    """Nobody takes the log, whose pipe is full, and somebody else holds the file of records: as with slow disks."""
    seen, count = Seen(), 60
    with contextlib.closing(sqlite3.connect(house.records, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        asyncio.run(load(house.address, count, 4, seen.tally))
        # The first of them have met the file by then.
        time.sleep(2 * PAUSE_SECONDS)
        asyncio.run(load(house.address, count, 4, seen.tally))
        other.execute("ROLLBACK")
    wait_until(lambda: house.records_kept() >= 2 * count, "the records to be kept")
    return seen


FAULTS: Final[dict[str, Fault]] = {
    "all workers dead": all_killed,
    "one worker hung": one_hung,
    "all workers hung": all_hung,
    "out of memory": out_of_memory,
    "policy reloaded": reloaded,
    "rolling restart": rolling_restart,
    "Envoy restarted": envoy_restarted,
    "clients leave": clients_leave,
    "idle streams": streams_idle,
}
"""In one house, one after the other; by the names of the table."""

PATIENT: Final[dict[str, Fault]] = {"one worker killed": one_killed, "large bodies": large_bodies}
"""In one house too, where a busy machine does not make a timeout of what is to be a death, or a wait in a crowd."""

ALONE: Final[dict[str, Fault]] = {"model hung": hung_model, "disks stalled": disks_stalled}
"""Each in a house of its own, which `house_for` builds."""

LONG: Final[dict[str, Fault]] = {"hung worker replaced": hung_and_replaced}
"""At full scale only."""


@contextlib.contextmanager
def house_for(fault: str, on_failure: OnFailure) -> Iterator[House]:
    """The house that a fault needs; decisions have a second, a hung model half of one."""
    match fault:
        case "model hung":
            building = running_house(on_failure, workers=1, signals=MODELS, decision_ms=500)
        case _ if fault in PATIENT:
            building = running_house(on_failure, decision_ms=20_000)
        case "disks stalled":
            building = running_house(on_failure, workers=1, decision_ms=1000, signals=KEPT, log_taken=False)
        case _:
            building = running_house(on_failure, decision_ms=1000)
    with building as house:
        yield house


def do(fault: str, house: House, scale: Scale) -> Seen:
    """Do this to the house, and check what holds for every fault; at full scale also that memory comes back."""
    before, resident = house.attacks, {}
    if scale is FULL:
        # What a worker needs for its first requests, and a model for its first long text, it keeps.
        asyncio.run(load(house.address, WARMING, 4, Tally()))
        asyncio.run(ask(house.address, chat(" ".join(f"{ORDINARY} {number}" for number in range(3_000)))))
        resident = house.resident()
    seen = ({**FAULTS, **PATIENT, **ALONE, **LONG})[fault](house, scale)
    if scale is FULL:
        _look_at_memory(house, resident, seen)
    seen.check(house, before)
    return seen


def _look_at_memory(house: House, before: dict[int, int], seen: Seen) -> None:
    """What the workers have that are still there; they may take a while to give memory back."""
    living = {pid: kib for pid, kib in before.items() if pid in house.ready().values()}
    after = _settled(house, living, BACK_SECONDS)
    grown = {pid: round(after[pid] / kib, 3) for pid, kib in living.items() if pid in after}
    seen.figures |= {"after_over_before": grown, "grew": any(share > BACK for share in grown.values())}


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _recovered(house: House) -> None:
    """All workers serve again, Envoy knows it, and requests are judged."""
    house.wait_ready()
    house.wait_healthy()

    def judged() -> bool:
        answers = [asyncio.run(ask(house.address, chat(ORDINARY))) for _ in range(4)]
        return all(answer.label == "judged" for answer in answers)

    wait_until(judged, "requests to be judged again")


def _settled(house: House, before: dict[int, int], seconds: float) -> dict[int, int]:
    """Resident memory of these workers once it is back, or after so many seconds."""
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: all(resident_kib(pid) <= BACK * kib for pid, kib in before.items()), "memory", seconds)
    return {pid: resident_kib(pid) for pid in before}


def _digest(house: House, index: int) -> str:
    state = house.state(index)
    return state.policy if state else ""


def _refuses(house: House, index: int) -> bool:
    state = house.state(index)
    return state is not None and bool(state.refused_policy)


def _nudge(house: House) -> bool:
    """The upstream notices with its next word that a client has gone."""
    house.b.let_go()
    return False


def _virtual_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:  # noqa: PTH123
        return int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
