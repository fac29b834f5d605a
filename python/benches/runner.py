"""Runs one scenario once with one adapter: fresh processes, told what to do, and what they measured."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters import NATIVE
from child import Child, Failed
from scenario import Scenario

# What one run measured, by column; columns that a scenario does not have are absent.
Sample = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where the run's files are."""

    folder: Path
    cert: Path
    key: Path
    pattern: Path
    native: Path
    python_path: Path


class Run:
    """Both sides of one run, which may be one process."""

    def __init__(self, server: Child, client: Child, port: int, seconds: float) -> None:
        self.server, self.client, self.port, self.seconds = server, client, port, seconds
        self.limit = LIMIT + 4 * seconds

    def connect(self, port: int | None = None) -> None:
        self.client.ask("connect", port=port or self.port)

    def mark(self) -> list[dict[str, Any]]:
        sides = [self.server] if self.server is self.client else [self.server, self.client]
        return [child.ask("mark") for child in sides]

    def warm_up(self, **order: Any) -> None:
        """A first transfer that is not measured: windows open, caches fill."""
        self.client.ask("send", self.limit, seconds=min(WARM, self.seconds / 2), **order)
        self.server.ask("received", self.limit, streams=order["streams"])


def run(scenario: Scenario, adapter: str, place: Place, seconds: float, seed: int) -> Sample:
    """One sample. `Failed` when it cannot be done or a byte was wrong."""
    setup = place.folder / "setup.json"
    files = {key: str(getattr(place, key)) for key in ("cert", "key", "pattern")}
    setup.write_text(json.dumps({**files, "web": scenario.web, **scenario.setup}))
    kind = "http" if scenario.http else "web" if scenario.web else "raw"
    if adapter == NATIVE:
        command = [str(place.native), str(setup)]
    else:
        command = [sys.executable, str(HERE / "peer.py"), adapter, kind, str(setup)]
    environment = {"PYTHONPATH": os.pathsep.join([str(place.python_path), str(HERE)])}
    port = free_port()
    with ExitStack() as children:

        def started(side: str) -> Child:
            return children.enter_context(Child(command, place.folder / f"{side}.log", environment))

        server = started("server")
        client = server if scenario.single else started("client")
        server.ask("listen", port=port)
        work: Callable[..., Sample] = KINDS[scenario.kind]
        return work(Run(server, client, port, seconds), scenario, seed)


def transfer(run: Run, scenario: Scenario, seed: int) -> Sample:
    run.connect()
    run.warm_up(**scenario.order)
    return timed(run, scenario)


def timed(run: Run, scenario: Scenario) -> Sample:
    before = run.mark()
    sent = run.client.ask("send", run.limit, seconds=run.seconds, **scenario.order)
    got = run.server.ask("received", run.limit, streams=scenario.order["streams"])
    agree(sent["bytes"], got["bytes"])
    return rate(got["bytes"], got["last"] - sent["start"]) | spent(before, run.mark(), got["bytes"])


def both_ways(run: Run, scenario: Scenario, seed: int) -> Sample:
    run.connect()
    run.server.ask("accepted")
    run.warm_up(**scenario.order)
    before = run.mark()
    sides = (run.server, run.client)
    for side in sides:
        side.tell("send", seconds=run.seconds, **scenario.order)
    sent = [side.answer(run.limit) for side in sides]
    got = [side.ask("received", run.limit, streams=1) for side in sides]
    agree(sent[0]["bytes"], got[1]["bytes"])
    agree(sent[1]["bytes"], got[0]["bytes"])
    start, last = min(side["start"] for side in sent), max(side["last"] for side in got)
    total = sum(side["bytes"] for side in got)
    return rate(total, last - start) | spent(before, run.mark(), total)


def ping(run: Run, scenario: Scenario, seed: int) -> Sample:
    run.connect()
    run.client.ask("ping", run.limit, seconds=min(WARM, run.seconds / 2), **scenario.order)
    before = run.mark()
    got = run.client.ask("ping", run.limit, seconds=run.seconds, **scenario.order)
    echoed = 2 * got["count"] * scenario.order["size"]
    return {
        "p50_us": got["p50_us"],
        "p99_us": got["p99_us"],
        "per_s": got["count"] / got["seconds"],
        **spent(before, run.mark(), echoed, got["count"]),
    }


def handshakes(run: Run, scenario: Scenario, seed: int) -> Sample:
    before = run.mark()
    got = run.client.ask("handshakes", run.limit, port=run.port, seconds=run.seconds, **scenario.order)
    return per_thing(got["count"], got["seconds"], before, run.mark())


def cycle(run: Run, scenario: Scenario, seed: int) -> Sample:
    run.connect()
    before = run.mark()
    got = run.client.ask("cycle", run.limit, seconds=run.seconds, **scenario.order)
    return per_thing(got["count"], got["seconds"], before, run.mark())


def fetch(run: Run, scenario: Scenario, seed: int) -> Sample:
    run.connect()
    run.client.ask("fetch", run.limit, seconds=min(WARM, run.seconds / 2), **scenario.order)
    before = run.mark()
    got = run.client.ask("fetch", run.limit, seconds=run.seconds, **scenario.order)
    size = got["count"] * scenario.order["size"]
    return {
        "per_s": got["count"] / got["seconds"],
        **rate(size, got["seconds"]),
        **spent(before, run.mark(), size, got["count"]),
    }


def churn(run: Run, scenario: Scenario, seed: int) -> Sample:
    run.connect()
    before = run.mark()
    sent = run.client.ask("churn", run.limit, seconds=run.seconds, **scenario.order)
    got = run.server.ask("received", run.limit, streams=sent["count"])
    agree(sent["count"] * scenario.order["size"], got["bytes"])
    return per_thing(sent["count"], got["last"] - sent["start"], before, run.mark())


def datagrams(run: Run, scenario: Scenario, seed: int) -> Sample:
    run.connect()
    run.client.ask("ping", run.limit, seconds=0.05, size=64)
    before = run.mark()
    sent = run.client.ask("datagrams", run.limit, seconds=run.seconds, **scenario.order)
    got = run.server.ask("arrived", run.limit, most=sent["count"])
    if not got["count"]:
        raise Failed("no datagram arrived")
    taken = got["last"] - sent["start"]
    return {
        "per_s": got["count"] / taken,
        "complete": got["count"] == sent["count"],
        "loss_percent": 100 * (1 - got["count"] / sent["count"]),
        "p50_us": got["p50_us"],
        "p99_us": got["p99_us"],
        **rate(got["bytes"], taken),
        **spent(before, run.mark(), got["bytes"], got["count"]),
    }


def slow(run: Run, scenario: Scenario, seed: int) -> Sample:
    """The consumer works for 5 ms per 64 KiB. The sender's memory should not grow with what it sends."""
    run.connect()
    run.client.ask("ping", run.limit, seconds=0.1, size=64)
    run.server.ask("slow", work=SLOW_WORK)
    run.mark()
    got = run.client.ask("press", run.limit, seconds=max(run.seconds, 1.0), most=PRESS, **scenario.order)
    outstanding = got["bytes"] - run.server.ask("count", run.limit)["bytes"]
    return {
        "rss_mb": got["growth"] / 1e6,
        "blocked": outstanding <= OUTSTANDING,
        "accepted_mb": got["bytes"] / 1e6,
        "outstanding_mb": outstanding / 1e6,
    }


def blocked(run: Run, scenario: Scenario, seed: int) -> Sample:
    """Alive: a round trip still works after the loop stood still for longer than the idle timeout."""
    run.connect()
    run.client.ask("ping", run.limit, seconds=0.1, **scenario.order)
    run.client.ask("block", seconds=BLOCK)
    try:
        run.client.ask("ping", 5.0, seconds=0.1, **scenario.order)
    except Failed:
        return {"alive": False}
    return {"alive": True}


def lossy(run: Run, scenario: Scenario, seed: int) -> Sample:
    port = free_port()
    with relayed(port, run.port, seed, run.server.log.with_name("relay.log")):
        run.connect(port)
        run.warm_up(**scenario.order)
        return timed(run, scenario)


def flat(run: Run, scenario: Scenario, seed: int) -> Sample:
    """Memory after one million streams, and after two."""
    run.connect()
    grown = []
    for _ in range(2):
        run.client.ask("cycle", FLAT_LIMIT, seconds=0, most=MILLION, **scenario.order)
        grown.append(sum(side["rss"] for side in run.mark()))
    return {"rss_mb": (grown[1] - grown[0]) / 1e6, "streams": 2 * MILLION}


@contextmanager
def relayed(listen: int, server: int, seed: int, log: Path) -> Iterator[None]:
    link = [str(value) for value in (listen, server, seed, LOSS, ONE_WAY_MS, LINK_MBPS, LINK_QUEUE_MS)]
    with Child([sys.executable, str(HERE / "relay.py"), *link], log, {}) as relay:
        relay.line(10.0)
        yield


def per_thing(
    count: int, seconds: float, before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> Sample:
    return {"per_s": count / seconds, **spent(before, after, 0, count)}


def rate(size: int, seconds: float) -> Sample:
    return {"mbps": size * 8 / seconds / 1e6}


def spent(before: list[dict[str, Any]], after: list[dict[str, Any]], size: int, count: int = 0) -> Sample:
    """All processes' time, per GB (10⁹ bytes) of payload and per thing done; and the larger one's peak."""
    cpu = sum(late["cpu"] - early["cpu"] for early, late in zip(before, after, strict=True))
    per = {"cpu_s_per_gb": cpu / size * 1e9} if size else {}
    each = {"cpu_us_each": cpu / count * 1e6} if count else {}
    return {**per, **each, "rss_mb": max(side["peak"] for side in after) / 1e6}


def agree(sent: int, got: int) -> None:
    if sent != got:
        raise Failed(f"{sent} bytes were sent, {got} arrived")


def free_port() -> int:
    """No program's at this moment; not every library can say which one it was given."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


KINDS = {
    work.__name__: work
    for work in (
        transfer,
        both_ways,
        ping,
        handshakes,
        cycle,
        fetch,
        churn,
        datagrams,
        slow,
        blocked,
        lossy,
        flat,
    )
}
HERE = Path(__file__).resolve().parent
# Seconds: any one answer, a warm-up.
LIMIT = 60.0
WARM = 0.3
# The slow consumer: seconds of work per 64 KiB, bytes that its sender would like to be rid of.
SLOW_WORK = 0.005
PRESS = 128 << 20
# Bytes that may be between both programs when `write` is said to block: more than windows and rings.
OUTSTANDING = 24 << 20
# Seconds that the loop stands still: longer than `idle`.
BLOCK = 2.0
# The bad network, each way.
LOSS = 0.02
ONE_WAY_MS = 20
LINK_MBPS = 100
LINK_QUEUE_MS = 100
MILLION = 1_000_000
FLAT_LIMIT = 1800.0
