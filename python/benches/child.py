"""The parent's end of a process that a scenario runs in: orders out, answers in, all with a time limit."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class Failed(Exception):
    """A child said so, ended, or did not answer in time."""


class Child:
    """A process that this one started and will end."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str]) -> None:
        self.log = log
        with log.open("ab") as messages:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                env=os.environ | environment,
                bufsize=0,
            )
        self.rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def tell(self, do: str, **order: Any) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **order}).encode() + b"\n")
        except BrokenPipeError:
            raise Failed(f"`{do}`: the process has ended: {self.last_words()}") from None

    def answer(self, limit: float) -> dict[str, Any]:
        line = self.line(limit)
        found = json.loads(line)
        if "error" in found:
            raise Failed(found["error"])
        assert isinstance(found, dict)
        return found

    def ask(self, do: str, limit: float = 20.0, **order: Any) -> dict[str, Any]:
        self.tell(do, **order)
        return self.answer(limit)

    def line(self, limit: float) -> bytes:
        assert self.process.stdout is not None
        end = time.monotonic() + limit
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise Failed(f"no answer within {limit:.0f} s: {self.last_words()}")
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                raise Failed(f"the process has ended: {self.last_words()}")
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def last_words(self) -> str:
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing"


# Seconds that a child has to end by itself.
PATIENCE = 3.0
