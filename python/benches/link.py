"""What a scenario asks of a QUIC library: one connection (`Link`), and the two ways to get one (`Adapter`).

Both styles of library are at home here. One that gives streams to read from (`async for chunk in stream`)
runs a task per stream; one that calls back with events hands them on from the callback, with no queue
between. What the peer opens is served the same way by all: one-way streams and datagrams are checked and
counted, two-way streams are echoed.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from payload import Check, Pattern, Tally

Chunk = bytes | bytearray | memoryview


@dataclass(frozen=True)
class Setup:
    """How both sides are made."""

    cert: Path
    key: Path
    pattern: Path
    web: bool = False
    idle: float = 30.0
    keep_alive: float | None = None
    # Ours alone: the others' controllers stay what they come with.
    congestion: str | None = None
    # Wait for room even where the library cannot, by looking at its queues: what a careful program does.
    careful: bool = True


class Writer(Protocol):
    async def write(self, data: bytes, /) -> object: ...
    async def finish(self) -> object: ...


class Reader(Protocol):
    async def read(self, limit: int = ..., /) -> Chunk: ...


class Service:
    """What a side does with what its peer opens."""

    def __init__(self, setup: Setup) -> None:
        self.pattern = Pattern(setup.pattern)
        self.tally = Tally()
        self.fault: BaseException | None = None

    def check(self) -> Check:
        return Check(self.pattern, self.tally)

    def datagram(self, data: Chunk) -> None:
        self.tally.datagram(self.pattern, data)

    def reset(self) -> None:
        """A new mark. Streams that are under way keep counting into the same tally."""
        self.tally.clear()


class Link(ABC):
    """One connection."""

    @abstractmethod
    async def open_uni(self) -> Writer: ...

    @abstractmethod
    async def open_bi(self) -> tuple[Writer, Reader]: ...

    @abstractmethod
    async def send_datagram(self, data: bytes) -> None:
        """Waits for room where the library can."""

    @abstractmethod
    async def close(self) -> None:
        """Returns when the library's own close does."""


class HttpLink(Link):
    """One connection that requests go on, and nothing else."""

    @abstractmethod
    async def fetch(self, size: int) -> int:
        """Gets a body of `size` bytes, and gives how many came."""

    async def open_uni(self) -> Writer:
        raise NotImplementedError

    async def open_bi(self) -> tuple[Writer, Reader]:
        raise NotImplementedError

    async def send_datagram(self, data: bytes) -> None:
        raise NotImplementedError


class Adapter(ABC):
    """One library, on one side. A side has one listener or makes many connections."""

    def __init__(self, setup: Setup, service: Service) -> None:
        self.setup = setup
        self.service = service
        self.accepted: list[Link] = []

    @abstractmethod
    async def listen(self, port: int) -> None:
        """Serves every peer that comes; adds to `accepted` what is not over yet."""

    @abstractmethod
    async def connect(self, port: int) -> Link: ...


class ChunkQueue:
    """The reading end of a stream that this side opened, for libraries that call back."""

    def __init__(self) -> None:
        self.chunks: deque[Chunk] = deque()
        self.waiter: asyncio.Future[None] | None = None

    def push(self, data: Chunk, fin: bool) -> None:
        if len(data):
            self.chunks.append(data)
        if fin:
            self.chunks.append(b"")
        if self.waiter is not None and not self.waiter.done() and self.chunks:
            self.waiter.set_result(None)

    def fail(self, error: Exception) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_exception(error)

    async def read(self, limit: int = 0, /) -> Chunk:
        while not self.chunks:
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter
        return self.chunks.popleft()


class Room:
    """Waits until a condition holds that is looked at whenever the library has sent something."""

    def __init__(self) -> None:
        self.waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    async def until(self, condition: Callable[[], bool]) -> None:
        if condition():
            return
        waiter = asyncio.get_running_loop().create_future()
        self.waiters.append((condition, waiter))
        await waiter

    def look(self) -> None:
        if not self.waiters:
            return
        waiting = []
        for condition, waiter in self.waiters:
            if waiter.done():
                continue
            if condition():
                waiter.set_result(None)
            else:
                waiting.append((condition, waiter))
        self.waiters = waiting

    def fail(self, error: Exception) -> None:
        for _, waiter in self.waiters:
            if not waiter.done():
                waiter.set_exception(error)
        self.waiters.clear()


class Keeper:
    """Holds background tasks, and remembers the first that failed as the service's fault."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Awaitable[None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        assert isinstance(task, asyncio.Task)
        self.tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def stop(self) -> None:
        for task in self.tasks:
            task.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and self.service.fault is None:
            self.service.fault = task.exception()
