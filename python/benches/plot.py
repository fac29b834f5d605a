"""Rows to a picture: for each scenario a group of bars, speed and CPU beside aiopquic's. Plain SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from adapters import NAMES
from scenario import Scenario
from target import Row, Rows


class Panel:
    """A column of bars: how many times the reference's value, up to `most` times."""

    def __init__(self, left: float, title: str, hint: str) -> None:
        self.left = left
        self.title = title
        self.hint = hint

    def heading(self, top: float, bottom: float) -> Iterator[str]:
        yield text(self.left, top - 40, self.title, "head")
        yield text(self.left, top - 25, self.hint, "hint")
        for mark in range(int(MOST) + 1):
            x = self.left + mark * UNIT
            kind = "one" if mark == 1 else "grid"
            yield f'<line x1="{x}" y1="{top - 6}" x2="{x}" y2="{bottom}" class="{kind}"/>'
            for y in (top - 9, bottom + 15):
                yield text(x, y, f"{mark} ×", "tick", anchor="middle")

    def bar(self, y: float, times: float, label: str, adapter: str) -> Iterator[str]:
        width = max(1.0, min(times, MOST) * UNIT)
        colour = COLOURS[adapter]
        yield f'<rect x="{self.left}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}" rx="1.5"/>'
        if times > MOST:  # cut off: a gap says so, and the label has the value
            x = self.left + width - 12
            yield f'<path d="M{x} {y + BAR + 1} l5 -{BAR + 2} h3 l-5 {BAR + 2} z" class="cut"/>'
        kind = "ours" if adapter == "wayferry" else "value"
        yield text(self.left + width + 5, y + BAR - 2.5, label, kind)


def draw(rows: Rows, scenarios: Sequence[Scenario], footer: str, path: Path) -> None:
    """Writes the picture. Scenarios without a rate or a rival to compare with are left out."""
    groups = [(scenario, group) for scenario in scenarios if (group := comparable(rows, scenario))]
    present = [name for name in NAMES if any(row["adapter"] == name for _, group in groups for row in group)]
    height = TOP + sum(len(group) * STEP + GAP for _, group in groups) + BOTTOM
    parts = [*opening(height), *legend(present)]
    speed = Panel(SPEED, "Speed, × aiopquic", "longer is better; round trips: how many times shorter")
    cpu = Panel(CPU, "CPU time for the same work, × aiopquic", "shorter is better; all processes and threads")
    for panel in (speed, cpu):
        parts += panel.heading(TOP, height - BOTTOM)
    y = float(TOP)
    for scenario, group in groups:
        parts += bars(scenario, group, speed, cpu, y)
        y += len(group) * STEP + GAP
    parts.append(text(MARGIN, height - 14, footer, "hint"))
    parts.append("</svg>\n")
    path.write_text("\n".join(parts), encoding="utf-8")


def comparable(rows: Rows, scenario: Scenario) -> list[Row]:
    if not scenario.metric or rows.get((scenario.name, "aiopquic"), {}).get(scenario.metric) is None:
        return []
    group = [rows.get((scenario.name, name)) for name in NAMES]
    return [row for row in group if row is not None and row.get(scenario.metric) is not None]


def bars(scenario: Scenario, group: list[Row], speed: Panel, cpu: Panel, y: float) -> Iterator[str]:
    reference = next(row for row in group if row["adapter"] == "aiopquic")
    middle = y + len(group) * STEP / 2
    yield text(MARGIN, middle, scenario.title, "title")
    yield text(MARGIN, middle + 14, scenario.name, "hint")
    for row in group:
        adapter = row["adapter"]
        if row["ratio_to_aiopquic"] is not None:
            yield from speed.bar(y, row["ratio_to_aiopquic"], value(row, scenario.metric), adapter)
        column = "cpu_us_each" if row.get("cpu_us_each") is not None else "cpu_s_per_gb"
        if row.get(column) and reference.get(column):
            yield from cpu.bar(y, row[column] / reference[column], value(row, column), adapter)
        y += STEP


def value(row: Row, column: str) -> str:
    """A number with its unit, what was lost for it, and a target's mark for ours."""
    number = row[column]
    digits = 1 if number < 10 else 0
    label = f"{number:,.{digits}f}".replace(",", "\u202f") + f" {UNITS[column]}"
    if column.startswith("cpu"):
        return label
    if (row.get("loss_percent") or 0) >= LEAST_LOSS:
        label += f", {row['loss_percent']:.0f} % lost"
    if row.get("met") is None:
        return label
    return label + (" ✓" if row["met"] else " ✗")


def legend(names: Sequence[str]) -> Iterator[str]:
    x = float(MARGIN)
    for name in names:
        yield f'<rect x="{x}" y="50" width="12" height="12" fill="{COLOURS[name]}" rx="2"/>'
        yield text(x + 17, 60, LONG.get(name, name), "value")
        x += 34 + 7 * len(LONG.get(name, name))


def opening(height: float) -> list[str]:
    size = f'width="{WIDTH}" height="{height:.0f}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" {size}>',
        f"<style>{STYLE}</style>",
        f'<rect {size} fill="#fff"/>',
        text(MARGIN, 32, "QUIC from Python: wayferry beside the others", "heading"),
    ]


def text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


COLOURS = {
    "wayferry": "#0b6fa4",
    "compat": "#7fb8d6",
    "aiopquic": "#e38b1f",
    "aioquic": "#8d8d97",
    "qh3": "#a88fd0",
    "noq": "#3b9b62",
    "udp": "#c8c8ce",
}
LONG = {
    "compat": "wayferry by aioquic's interface",
    "noq": "noq (Rust, no Python)",
    "udp": "plain UDP (a floor)",
}
UNITS = {
    "mbps": "Mbit/s",
    "per_s": "/s",
    "p50_us": "µs",
    "cpu_s_per_gb": "s/GB",
    "cpu_us_each": "µs each",
}
STYLE = """
text{font-family:-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#22262b}
.heading{font-size:20px;font-weight:600}
.head{font-size:13px;font-weight:600}.title{font-size:13px;font-weight:600}
.hint{font-size:11px;fill:#6b727b}.value{font-size:11px;fill:#3c434b}
.ours{font-size:11px;font-weight:600;fill:#084f76}
.value,.ours{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.tick{font-size:10px;fill:#6b727b}
.grid{stroke:#e8eaee}.one{stroke:#9aa1ab;stroke-dasharray:3 3}.cut{fill:#fff}
"""
# Percent: below it a label does not mention loss.
LEAST_LOSS = 0.5
# Pixels. A panel is `MOST` times `UNIT` wide, and its labels need about 90 more.
WIDTH, MARGIN, TOP, BOTTOM = 1240, 24, 140, 60
SPEED, CPU, UNIT, MOST = 320, 800, 88, 4.0
BAR, STEP, GAP = 13, 17, 22
