"""What the peer opened and sent, one at a time or as an iteration.

Iterators are objects with `__anext__`, not asynchronous generators: those would end when one step is
cancelled.

When an iteration ends: without an error when this side closed the connection, or when the peer closed it with
code 0; for every other end with the connection's error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from wayferry.quic.errors import ConnectionClosed, QuicError
from wayferry.quic.receive import ReceiveStream
from wayferry.quic.streams import BiStream

if TYPE_CHECKING:
    from wayferry.quic._waiting import Line
    from wayferry.quic.connection import Connection

T = TypeVar("T")

__all__ = ["Arrivals", "Datagrams", "Opened", "Streams"]


class Arrivals(Generic[T]):
    """Await it for the next one, or iterate over all that come.

    An iteration ends when this side closed the connection or the peer closed it with code 0; when it ended
    otherwise, ConnectionClosed is raised. Awaiting raises ConnectionClosed in every case.

    Cancel-safe: a cancelled wait has taken nothing; the next one gets it.
    """

    __slots__ = ("_take",)

    def __init__(self, take: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._take = take

    def __await__(self) -> Generator[Any, None, T]:
        return self._take().__await__()

    def __aiter__(self) -> Arrivals[T]:
        return self

    async def __anext__(self) -> T:
        try:
            return await self._take()
        except ConnectionClosed as error:
            if clean(error):
                raise StopAsyncIteration from None
            raise


class Opened(Arrivals[T]):
    """The streams of one kind. One that has come is given without a coroutine in between."""

    __slots__ = ("_line", "_poll")

    def __init__(self, line: Line, poll: Callable[[], T | None]) -> None:
        super().__init__(partial(line.run, poll))
        self._line = line
        self._poll = poll

    async def __anext__(self) -> T:
        line = self._line
        reactor = line.reactor
        if not line.callers and reactor.budget > 0:
            reactor.budget -= 1
            try:
                stream = self._poll()
                return await line.queue(self._poll, pending=True) if stream is None else stream
            except ConnectionClosed as error:
                if clean(error):
                    raise StopAsyncIteration from None
                raise
        return await super().__anext__()


class Datagrams(Arrivals[bytes]):
    """The datagrams of a connection. Those that came together are given without asking for each."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection.receive_datagram)
        self._connection = connection

    async def __anext__(self) -> bytes:
        connection = self._connection
        arrived = connection._arrived
        # Who waits already is served first.
        if arrived and not connection._datagram.callers:
            reactor = connection._reactor
            reactor.budget -= 1
            if reactor.budget >= 0:
                return arrived.popleft()
        return await super().__anext__()


class Streams:
    """Takes the streams of both kinds in turn. It keeps others from accepting while it waits."""

    __slots__ = ("_bi_first", "_connection")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._bi_first = False

    async def take(self) -> ReceiveStream | BiStream:
        """The next stream of either kind. Cancel-safe: a cancelled wait has taken nothing."""
        connection = self._connection
        reactor, uni, bi = connection._reactor, connection._accept_uni, connection._accept_bi
        reactor.budget -= 1
        if reactor.budget < 0:
            await reactor.breathe()
        await uni.enter()
        try:
            await bi.enter()
            try:
                while (stream := self._poll()) is None:
                    # One wait under both tokens: whichever is ready first.
                    waiter = reactor.waiters[bi.token] = reactor.waiter(uni.token)
                    try:
                        await waiter
                    finally:
                        reactor.forget(uni.token, waiter)
                        reactor.forget(bi.token, waiter)
                return stream
            finally:
                bi.leave()
        finally:
            uni.leave()

    def _poll(self) -> ReceiveStream | BiStream | None:
        """Asks both, and the one first that was asked last before, so that neither kind starves the other."""
        self._bi_first = not self._bi_first
        connection = self._connection
        kinds: list[Callable[[], ReceiveStream | BiStream | None]]
        kinds = [connection._poll_uni, connection._poll_bi]
        one, other = reversed(kinds) if self._bi_first else kinds
        try:
            return one() or other()
        except QuicError:
            # It is over, perhaps between the two polls; what had come before is still to be had from either.
            with contextlib.suppress(QuicError):
                return other() or one()
            return one()


def clean(error: ConnectionClosed) -> bool:
    """Whether this is how a connection ends when nothing went wrong."""
    return error.by == "local" or (error.by == "peer" and error.code == 0)
