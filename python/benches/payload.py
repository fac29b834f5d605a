"""The bytes that every scenario sends, and their check on the other side.

Each stream carries the same pattern from its beginning, over and over, so that a receiver knows every byte
from its offset alone. Datagrams carry a number, the time of sending, and the pattern from an offset that
follows from the number. The pattern is a file that the parent writes once per run: peers in any language read
the same one. Checking costs a `memcmp` per chunk, the same for all.
"""

from __future__ import annotations

import random
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path


class Corrupt(Exception):
    """A byte is not the one that was sent there."""


class Pattern:
    """`PERIOD` bytes, held twice so that a piece from any offset is one slice."""

    def __init__(self, path: Path) -> None:
        once = path.read_bytes()
        if len(once) != PERIOD:
            raise ValueError(f"`{path}` has {len(once)} bytes, not {PERIOD}")
        self.twice = once + once

    @staticmethod
    def write(path: Path) -> None:
        path.write_bytes(random.Random(PERIOD).randbytes(PERIOD))

    def pieces(self, size: int) -> list[bytes]:
        """What a stream is written with, in order and again from the start; `size` divides `PERIOD`."""
        if PERIOD % size:
            raise ValueError(f"{size} does not divide {PERIOD}")
        return [self.twice[at : at + size] for at in range(0, PERIOD, size)]

    def datagram(self, number: int, size: int) -> bytes:
        body = number * STRIDE % PERIOD
        return HEADER.pack(number, time.monotonic_ns()) + self.twice[body : body + size - HEADER.size]


class Check:
    """Follows one stream from its beginning."""

    __slots__ = ("offset", "pattern", "tally")

    def __init__(self, pattern: Pattern, tally: Tally) -> None:
        self.pattern = pattern.twice
        self.tally = tally
        self.offset = 0

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        chunk = data if type(data) is bytes else bytes(data)
        size = len(chunk)
        if size > PERIOD:
            self.feed(chunk[:PERIOD])
            self.feed(chunk[PERIOD:])
            return
        if not self.pattern.startswith(chunk, self.offset):
            raise Corrupt(f"{size} bytes at {self.offset} (modulo {PERIOD}) are not what was sent")
        self.offset = (self.offset + size) % PERIOD
        self.tally.take(size)

    def end(self) -> None:
        self.tally.ended += 1
        self.tally.last = time.monotonic()


@dataclass
class Tally:
    """What one side has received since the last mark."""

    size: int = 0
    ended: int = 0
    last: float = 0.0
    datagrams: int = 0
    latencies: list[int] = field(default_factory=list)
    # The slow consumer: seconds of work for each `SLOW_BYTES` that came.
    work: float = 0.0
    owed: int = 0

    def clear(self) -> None:
        self.size = self.ended = self.datagrams = self.owed = 0
        self.last = 0.0
        self.latencies = []

    def take(self, size: int) -> None:
        self.size += size
        if self.work:
            self.owed += size
            while self.owed >= SLOW_BYTES:
                self.owed -= SLOW_BYTES
                time.sleep(self.work)  # it is busy: its loop stands still, as with any work in Python

    def datagram(self, pattern: Pattern, data: bytes | bytearray | memoryview) -> None:
        now = time.monotonic_ns()
        chunk = bytes(data)
        number, sent = HEADER.unpack_from(chunk)
        if not pattern.twice.startswith(chunk[HEADER.size :], number * STRIDE % PERIOD):
            raise Corrupt(f"datagram {number} is not what was sent")
        self.size += len(chunk)
        self.datagrams += 1
        self.last = now / 1e9
        if len(self.latencies) < LATENCIES:
            self.latencies.append(now - sent)


def percentile(values: list[int], part: float) -> float:
    """The value that `part` (0…1) of them do not exceed."""
    ordered = sorted(values)
    return float(ordered[min(len(ordered) - 1, int(part * len(ordered)))])


PERIOD = 1 << 20
# Odd, so that consecutive datagrams differ from their first byte on.
STRIDE = 4099
HEADER = struct.Struct("<QQ")
SLOW_BYTES = 64 * 1024
LATENCIES = 200_000
