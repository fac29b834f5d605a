"""What is asked of wayferry, in numbers, and whether it is met. Everything else is measured to compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adapters import NATIVE
from scenario import RATE, Scenario

Row = dict[str, Any]
# Rows by (scenario, adapter).
Rows = dict[tuple[str, str], Row]


@dataclass(frozen=True)
class Clause:
    """One comparison: a value of wayferry's, and what it must be at least or at most."""

    text: str
    value: Callable[[Rows], float | None]
    limit: float
    least: bool = False

    def judge(self, rows: Rows) -> dict[str, Any]:
        value = self.value(rows)
        met = None if value is None else value >= self.limit if self.least else value <= self.limit
        return {"clause": self.text, "value": value, "met": met}


def judge(rows: Rows, scenarios: Sequence[Scenario]) -> None:
    """Fills `target`, `met` and the clauses into wayferry's rows; without a rival `met` stays open."""
    asked = {scenario.name: [*general(scenario), *CLAUSES.get(scenario.name, [])] for scenario in scenarios}
    for (scenario, adapter), row in rows.items():
        clauses = asked[scenario] if adapter == "wayferry" else []
        verdicts = [clause.judge(rows) for clause in clauses]
        row["target"] = "; ".join(clause.text for clause in clauses) or None
        mets = [verdict["met"] for verdict in verdicts]
        row["met"] = None if not mets else False if False in mets else None if None in mets else True
        if verdicts:
            row["clauses"] = verdicts


def ratio(scenario: str, column: str, rival: str, of: str | None = None) -> Callable[[Rows], float | None]:
    """Wayferry's value over a rival's; `of` names another scenario of the rival."""

    def value(rows: Rows) -> float | None:
        ours = rows.get((scenario, "wayferry"), {}).get(column)
        theirs = rows.get((of or scenario, rival), {}).get(column)
        return ours / theirs if ours is not None and theirs else None

    return value


def own(scenario: str, column: str) -> Callable[[Rows], float | None]:
    def value(rows: Rows) -> float | None:
        found = rows.get((scenario, "wayferry"), {}).get(column)
        return None if found is None else float(found)

    return value


def general(scenario: Scenario) -> list[Clause]:
    """What every row with a rival is asked."""
    if not scenario.metric or scenario.http or scenario.name in SPARED:
        return []
    name, least = scenario.name, SPEED.get(scenario.name, 1.2)
    return [
        Clause(f"≥ {least} × aiopquic's speed", own(name, "ratio_to_aiopquic"), least, least=True),
        Clause("≤ 0.6 × aiopquic's CPU", cpu_ratio(name), 0.6),
    ]


def cpu_ratio(scenario: str) -> Callable[[Rows], float | None]:
    """By what is done where that is counted, by bytes otherwise."""
    each = ratio(scenario, "cpu_us_each", "aiopquic")
    by_size = ratio(scenario, "cpu_s_per_gb", "aiopquic")
    return lambda rows: by_size(rows) if (value := each(rows)) is None else value


def sustained(scenario: str) -> list[Clause]:
    return [Clause("≤ 1.5 × native noq's CPU", ratio(scenario, "cpu_s_per_gb", NATIVE), 1.5)]


# Ours with another controller is measured to compare with ours alone.
SPARED = {"lossy-cubic"}
# How many times aiopquic's speed is asked of a row, where it is not 1.2.
SPEED = {"write-1k": 1.3, "write-4k": 1.3, "write-16k": 1.3, "handshakes": 1.1, "wt-handshakes": 1.1}
# MB: `Config.send_window` as it comes, 8 MiB, and 16 MiB.
GROWTH = (24 << 20) / 1e6
CLAUSES = {
    "write-1k": [
        *sustained("write-1k"),
        Clause(
            "≤ 1.6 × its own CPU at 16 KiB", ratio("write-1k", "cpu_s_per_gb", "wayferry", "write-16k"), 1.6
        ),
    ],
    "write-4k": sustained("write-4k"),
    "write-16k": sustained("write-16k"),
    "echo-64": [
        Clause("p50 ≤ 0.6 × aiopquic's", ratio("echo-64", "p50_us", "aiopquic"), 0.6),
        Clause("p99 ≤ 0.3 × aiopquic's", ratio("echo-64", "p99_us", "aiopquic"), 0.3),
    ],
    "datagram-rate": [
        Clause("none is lost in any round", own("datagram-rate", "complete"), 1.0, least=True),
        Clause("all but 2 % are as soon as asked", own("datagram-rate", "per_s"), 0.98 * RATE, least=True),
    ],
    "slow-consumer": [
        Clause("write blocks", own("slow-consumer", "blocked"), 1.0, least=True),
        Clause("the sender grows by less than its window and 16 MiB", own("slow-consumer", "rss_mb"), GROWTH),
    ],
    "h3-requests": [
        Clause("≥ 2 × aioquic's requests", ratio("h3-requests", "per_s", "aioquic"), 2.0, least=True),
    ],
    "h3-download": [
        Clause("≥ 2 × aioquic's throughput", ratio("h3-download", "mbps", "aioquic"), 2.0, least=True),
    ],
    "blocked-loop": [Clause("the connection lives", own("blocked-loop", "alive"), 1.0, least=True)],
    "million-streams": [Clause("the second million adds ≤ 4 MB", own("million-streams", "rss_mb"), 4.0)],
}
