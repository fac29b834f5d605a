"""What the libraries that call back with events have in common."""

from __future__ import annotations

from abc import abstractmethod

from link import Chunk, ChunkQueue, Link, Reader, Service, Writer
from payload import Check


class EventLink(Link):
    """Streams by number, and their events handed on from the callback itself."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.queues: dict[int, ChunkQueue] = {}
        self.checks: dict[int, Check] = {}

    @abstractmethod
    def next_id(self, uni: bool) -> int: ...

    @abstractmethod
    def send(self, stream: int, data: bytes, fin: bool) -> None:
        """From a callback: cannot wait."""

    @abstractmethod
    async def write(self, stream: int, data: bytes, fin: bool) -> None:
        """Waits for room."""

    async def may_open(self, uni: bool) -> None:
        """Waits for the peer's leave to open one more stream, where the library does not by itself."""

    async def open_uni(self) -> Writer:
        await self.may_open(True)
        return EventWriter(self, self.next_id(True))

    async def open_bi(self) -> tuple[Writer, Reader]:
        await self.may_open(False)
        stream = self.next_id(False)
        queue = self.queues[stream] = ChunkQueue()
        return EventWriter(self, stream), queue

    def on_data(self, stream: int, data: Chunk, fin: bool) -> None:
        if stream & UNI:
            check = self.checks.get(stream)
            if check is None:
                check = self.checks[stream] = self.service.check()
            check.feed(data)
            if fin:
                del self.checks[stream]
                check.end()
        elif (queue := self.queues.get(stream)) is not None:
            queue.push(data, fin)
            if fin:
                del self.queues[stream]
        else:
            self.send(stream, bytes(data), fin)

    def on_end(self, error: Exception) -> None:
        for queue in self.queues.values():
            queue.fail(error)


class EventWriter:
    """A stream to write to."""

    __slots__ = ("link", "stream")

    def __init__(self, link: EventLink, stream: int) -> None:
        self.link = link
        self.stream = stream

    async def write(self, data: bytes, /) -> None:
        await self.link.write(self.stream, data, False)

    async def finish(self) -> None:
        await self.link.write(self.stream, b"", True)


# RFC 9000 §2.1: the second bit of a stream's number.
UNI = 2
