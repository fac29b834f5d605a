"""Samples to rows, rows to JSON and to a table for people."""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import adapters
import target
from runner import Sample
from scenario import Scenario
from target import Row, Rows


def row(scenario: Scenario, adapter: str, samples: Sequence[Sample], failed: str | None) -> Row:
    """Medians by column; a yes or no holds when it held in every round."""
    made: Row = {"scenario": scenario.name, "adapter": adapter}
    columns = {column for sample in samples for column in sample}
    for column in [*COLUMNS, *sorted(columns.difference(COLUMNS))]:
        made[column] = middle([sample[column] for sample in samples if column in sample])
    made |= {"ratio_to_aiopquic": None, "target": None, "met": None, "rounds": len(samples)}
    if failed is not None:
        made["failed"] = failed
    return made


def middle(values: list[Any]) -> Any:
    if not values:
        return None
    if isinstance(values[0], bool):
        return all(values)
    return significant(statistics.median(values))


def significant(value: float) -> float:
    """Four digits: more is noise."""
    return float(f"{value:.4g}")


def compare(rows: Rows, scenarios: Sequence[Scenario]) -> None:
    """How many times as fast as aiopquic: of throughput and rates theirs divides, of round trips ours."""
    metrics = {scenario.name: scenario.metric for scenario in scenarios}
    for (scenario, _), made in rows.items():
        made["ratio_to_aiopquic"] = times(made, rows.get((scenario, "aiopquic"), {}), metrics[scenario])
    target.judge(rows, scenarios)


def times(made: Row, reference: Row, metric: str) -> float | None:
    ours, theirs = made.get(metric), reference.get(metric)
    if not ours or not theirs:
        return None
    return significant(theirs / ours if metric.endswith("_us") else ours / theirs)


def document(rows: Rows, names: Sequence[str]) -> dict[str, Any]:
    command = " ".join(["python/benches/bench.py", *sys.argv[1:]])
    return {
        "version": 1,
        "commit": commit(),
        "command": command,
        "machine": machine(names),
        "rows": list(rows.values()),
    }


def commit() -> str:
    def git(*words: str) -> str:
        here = Path(__file__).parent
        done = subprocess.run(
            ["git", *words], cwd=here, capture_output=True, text=True, check=False, timeout=20
        )
        return done.stdout.strip()

    return (git("rev-parse", "HEAD") or "unknown") + ("+" if git("status", "--porcelain", "-uno") else "")


def machine(names: Sequence[str]) -> str:
    cpu = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    cores = sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines())
    libraries = [text for name in names if name in adapters.PYTHON and (text := adapters.version(name))]
    parts = [
        f"{cores} × {cpu}",
        f"Linux {platform.release()}",
        f"Python {platform.python_version()}",
        *libraries,
    ]
    return "; ".join(parts)


def write(rows: Rows, names: Sequence[str], path: Path) -> None:
    path.write_text(json.dumps(document(rows, names), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def table(rows: Rows) -> str:
    """One line per row; what a scenario does not measure stays empty."""
    lines = [[title for title, _, _ in SHOWN]]
    lines += [[cell(made, column, digits) for _, column, digits in SHOWN] for made in rows.values()]
    widths = [max(len(line[index]) for line in lines) for index in range(len(SHOWN))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if index < TEXTS else text.rjust(width)
            for index, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def cell(made: Row, column: str, digits: int) -> str:
    value = made.get(column)
    if column == "met":
        verdicts = made.get("clauses", [])
        failed = [verdict["clause"] for verdict in verdicts if verdict["met"] is False]
        return {True: "yes", False: "no: " + "; ".join(failed), None: "open" if verdicts else ""}[value]
    if column == "outcome":
        return next((words[made[key]] for key, words in OUTCOMES.items() if made.get(key) is not None), "")
    if column == "rss_mb" and "failed" in made:
        return "failed"
    if isinstance(value, float):
        return f"{value:,.{digits}f}".replace(",", " ")
    return "" if value is None else str(value)


COLUMNS = ["mbps", "cpu_s_per_gb", "p50_us", "p99_us", "rss_mb", "per_s"]
# Title, column, digits after the point.
SHOWN = [
    ("scenario", "scenario", 0),
    ("adapter", "adapter", 0),
    ("Mbit/s", "mbps", 0),
    ("CPU s/GB", "cpu_s_per_gb", 2),
    ("µs each", "cpu_us_each", 1),
    ("p50 µs", "p50_us", 0),
    ("p99 µs", "p99_us", 0),
    ("per s", "per_s", 0),
    ("loss %", "loss_percent", 2),
    ("MB", "rss_mb", 0),
    ("outcome", "outcome", 0),
    ("× aiopquic", "ratio_to_aiopquic", 2),
    ("met", "met", 0),
]
TEXTS = 2
OUTCOMES = {
    "blocked": {True: "write waits", False: "write never waits"},
    "alive": {True: "lives", False: "is lost"},
}
