"""The table of scenarios: what is sent, how, and which adapters can take part."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from adapters import NATIVE


@dataclass(frozen=True)
class Scenario:
    """One line of the table. `kind` is the runner's function, `order` what the client is told."""

    name: str
    title: str
    kind: str
    order: dict[str, Any] = field(default_factory=dict)
    # Of a row: more of it is better (`mbps`, `per_s`), or less (`p50_us`), or neither is compared (``).
    metric: str = "mbps"
    without: tuple[str, ...] = ("udp",)
    web: bool = False
    # HTTP/3 requests, where the library has some.
    http: bool = False
    # Runs only when it is named.
    heavy: bool = False
    # Client and server are tasks of one process, on one loop.
    single: bool = False
    # Ours by the interface of aioquic takes part, too.
    compat: bool = False
    setup: dict[str, Any] = field(default_factory=dict)


def table() -> list[Scenario]:
    return [*RAW, *SINGLE, *HTTP, *(over_web(scenario) for scenario in RAW if scenario.name not in RAW_ONLY)]


def over_web(scenario: Scenario) -> Scenario:
    return replace(scenario, name=f"wt-{scenario.name}", title=f"WT: {scenario.title}", web=True)


UDP = "udp"
# Datagrams a second: what aiopquic makes where this was measured first.
RATE = 170_000
RAW_ONLY = {"million-streams", "blocked-loop", "lossy-cubic", "datagram-64", "datagram-1100", "datagram-rate"}
RAW = [
    Scenario("write-1k", "1 KiB writes, one stream", "transfer", {"size": 1024, "streams": 1}, without=()),
    Scenario("write-4k", "4 KiB writes, one stream", "transfer", {"size": 4096, "streams": 1}, without=()),
    Scenario("write-16k", "16 KiB writes, one stream", "transfer", {"size": 16384, "streams": 1}, without=()),
    Scenario("streams-8", "16 KiB writes, 8 streams", "transfer", {"size": 16384, "streams": 8}),
    Scenario("streams-64", "16 KiB writes, 64 streams", "transfer", {"size": 16384, "streams": 64}),
    Scenario("both-ways", "16 KiB writes, both ways at once", "both_ways", {"size": 16384, "streams": 1}),
    Scenario("echo-64", "64 B round trips", "ping", {"size": 64}, "p50_us", ()),
    Scenario("echo-1k", "1 KiB round trips", "ping", {"size": 1024}, "p50_us", ()),
    Scenario("handshakes", "Handshakes, 4 at a time", "handshakes", {"parallel": 4}, "per_s"),
    Scenario("open-close", "Streams opened and closed", "cycle", {"parallel": 32}, "per_s", compat=True),
    Scenario("churn-256", "A stream per 256 B message", "churn", {"size": 256}, "per_s", compat=True),
    Scenario("datagram-64", "64 B datagrams, unpaced", "datagrams", {"size": 64}, "per_s", ()),
    Scenario("datagram-256", "256 B datagrams, unpaced", "datagrams", {"size": 256}, "per_s", ()),
    Scenario("datagram-1100", "1100 B datagrams, unpaced", "datagrams", {"size": 1100}, "per_s", ()),
    Scenario(
        "datagram-rate",
        "256 B datagrams, 170 000 a second",
        "datagrams",
        {"size": 256, "rate": RATE, "burst": RATE // 1000},
        "",
        (NATIVE,),
    ),
    Scenario(
        "datagram-paced",
        "256 B datagrams, 500 a second",
        "datagrams",
        {"size": 256, "rate": 500},
        "p50_us",
        (),
    ),
    Scenario("slow-consumer", "A consumer of 13 MB/s", "slow", {"size": 16384}, "", setup={"careful": False}),
    Scenario(
        "blocked-loop",
        "Client's loop blocked for 2 s, idle timeout 1 s",
        "blocked",
        {"size": 64},
        "",
        (UDP, NATIVE),
        setup={"idle": 1.0, "keep_alive": 0.5},
    ),
    Scenario("lossy", "2 % loss, 40 ms, 100 Mbit/s", "lossy", {"size": 16384, "streams": 1}),
    Scenario(
        "lossy-cubic",
        "The same, ours with CUBIC",
        "lossy",
        {"size": 16384, "streams": 1},
        without=(UDP, NATIVE),
        setup={"congestion": "cubic"},
    ),
    Scenario(
        "million-streams", "A million streams, then as many again", "flat", {"parallel": 32}, "", heavy=True
    ),
]


def on_one_loop(like: str, name: str, title: str) -> Scenario:
    """As aiopquic's own bench measures."""
    scenario = next(scenario for scenario in RAW if scenario.name == like)
    return replace(scenario, name=name, title=title, without=(UDP, NATIVE), single=True, compat=True)


SINGLE = [
    on_one_loop("write-1k", "loop-1k", "One loop: 1 KiB writes"),
    on_one_loop("write-16k", "loop-16k", "One loop: 16 KiB writes"),
    on_one_loop("churn-256", "loop-churn", "One loop: a stream per 256 B message"),
]
HTTP = [
    Scenario(
        "h3-requests",
        "HTTP/3: GETs of 64 B, 32 at a time",
        "fetch",
        {"size": 64, "parallel": 32},
        "per_s",
        http=True,
    ),
    Scenario(
        "h3-latency",
        "HTTP/3: GETs of 64 B, one at a time",
        "fetch",
        {"size": 64, "parallel": 1},
        "per_s",
        http=True,
    ),
    Scenario(
        "h3-download",
        "HTTP/3: GETs of 16 MiB, one at a time",
        "fetch",
        {"size": 16 << 20, "parallel": 1},
        "mbps",
        http=True,
    ),
]
