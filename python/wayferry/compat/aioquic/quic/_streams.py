"""The streams of one connection, by their numbers.

A program of aioquic's picks the number of a new stream and writes; the peer's leave to open it may come much
later. So a stream is queued here, is opened in the order of the numbers, and gets what was written meanwhile.
The one invariant: number n of a direction is the n-th stream of that direction that QUIC opened.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from wayferry import quic

from ._stream import Backlog, Changes, Incoming, Outgoing
from .events import QuicEvent, StopSendingReceived, StreamDataReceived, StreamReset

__all__ = ["Streams", "stream_is_client_initiated", "stream_is_unidirectional"]

# Bytes that a connection's streams may hold; a write beyond raises BufferError.
WRITE_LIMIT = 64 * 1024 * 1024
# Streams of one direction that may wait for the peer's leave to be opened.
UNOPENED = 65536


def stream_is_client_initiated(stream_id: int) -> bool:
    """RFC 9000 §2.1."""
    return not stream_id & 1


def stream_is_unidirectional(stream_id: int) -> bool:
    """RFC 9000 §2.1."""
    return bool(stream_id & 2)


class Streams:
    """`spawn` runs a task until the connection ends; `tell` takes what the program shall hear."""

    def __init__(
        self,
        is_client: bool,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None] | None],
        tell: Callable[[QuicEvent], None],
    ) -> None:
        self._is_client = is_client
        self._spawn = spawn
        self._tell = tell
        self._connection: quic.Connection | None = None
        self._backlog = Backlog(WRITE_LIMIT)
        self._outgoing: dict[int, Outgoing] = {}
        self._incoming: dict[int, Incoming] = {}
        self._pauses_ended = False
        self._changes = Changes()
        self._unopened: dict[bool, deque[int]] = {False: deque(), True: deque()}
        self._opening: set[bool] = set()
        side = 0 if is_client else 1
        self.next_id = {False: side, True: side | 2}

    # What a program asks for.

    def open(self, unidirectional: bool) -> int:
        """Takes the next number for a new stream. BufferError: too many wait to be opened."""
        stream_id = self.next_id[unidirectional]
        if len(self._unopened[unidirectional]) >= UNOPENED:
            raise BufferError(f"{UNOPENED} streams wait to be opened")
        self._outgoing[stream_id] = Outgoing(stream_id, self._backlog, self._sent)
        if not unidirectional:
            self._incoming[stream_id] = self._new_incoming(stream_id)
        self.next_id[unidirectional] += 4
        self._unopened[unidirectional].append(stream_id)
        self._open_soon(unidirectional)
        return stream_id

    def write(self, stream_id: int, data: bytes, end_stream: bool) -> None:
        self._sending(stream_id).write(data, end_stream)

    def reset(self, stream_id: int, code: int) -> None:
        ours = self.is_ours(stream_id) and stream_id < self.next_id[stream_is_unidirectional(stream_id)]
        if ours and stream_id not in self._outgoing:
            return  # it is over
        self._sending(stream_id).reset(code)

    def stop(self, stream_id: int, code: int) -> None:
        if not self.can_receive(stream_id):
            raise ValueError(f"stream {stream_id} only sends")
        if (incoming := self._incoming.get(stream_id)) is None:
            raise ValueError(f"stream {stream_id} is not there")
        incoming.stop(code)

    def pause(self, stream_id: int) -> None:
        if (incoming := self._incoming.get(stream_id)) is not None:
            incoming.pause()

    def resume(self, stream_id: int) -> None:
        if (incoming := self._incoming.get(stream_id)) is not None:
            incoming.resume()

    async def room(self, stream_id: int) -> None:
        if (outgoing := self._outgoing.get(stream_id)) is not None:
            await outgoing.room()

    async def over(self, stream_id: int) -> None:
        if (outgoing := self._outgoing.get(stream_id)) is not None:
            await outgoing.over()

    def is_ours(self, stream_id: int) -> bool:
        return stream_is_client_initiated(stream_id) == self._is_client

    def can_receive(self, stream_id: int) -> bool:
        return not stream_is_unidirectional(stream_id) or not self.is_ours(stream_id)

    def can_send(self, stream_id: int) -> bool:
        return not stream_is_unidirectional(stream_id) or self.is_ours(stream_id)

    # What becomes of the connection.

    def begin(self, connection: quic.Connection) -> None:
        """The handshake is over: what waits may go."""
        self._connection = connection
        for unidirectional in (False, True):
            self._spawn(self._accept(connection, unidirectional))
            self._open_soon(unidirectional)

    async def flush(self, seconds: float) -> None:
        """Waits until QUIC has taken everything that was written to open streams, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for outgoing in list(self._outgoing.values()):
                    if outgoing.stream is not None:
                        await outgoing.empty()

    def drop_pauses(self) -> None:
        """The connection is over: what arrived is handed on now, no matter which program wanted a pause."""
        self._pauses_ended = True
        for incoming in self._incoming.values():
            incoming.end_pauses()

    async def handed_on(self) -> None:
        """Waits until all that came before the end was handed on."""
        incoming = self._incoming.values()
        await self._changes.until(lambda: all(half.stream is None for half in incoming))

    def end(self) -> None:
        """Nothing will move any more: a task that waits goes on."""
        for outgoing in self._outgoing.values():
            outgoing.end()
        for incoming in self._incoming.values():
            incoming.end()
        self._outgoing.clear()
        self._incoming.clear()

    # How it is done.

    def _sending(self, stream_id: int) -> Outgoing:
        """The sending half of a stream, which may be the next new one."""
        if not self.can_send(stream_id):
            raise ValueError(f"stream {stream_id} only receives")
        if stream_id == self.next_id[stream_is_unidirectional(stream_id)]:
            self.open(stream_is_unidirectional(stream_id))
        if (outgoing := self._outgoing.get(stream_id)) is None:
            raise ValueError(f"stream {stream_id} is finished, or not there, or not the next new one")
        return outgoing

    def _open_soon(self, unidirectional: bool) -> None:
        if self._connection is None or unidirectional in self._opening:
            return
        if self._unopened[unidirectional]:
            self._opening.add(unidirectional)
            self._open_all(self._connection, unidirectional)

    def _open_all(self, connection: quic.Connection, unidirectional: bool) -> None:
        """Opens what waits, as far as the peer allows, and goes on when it allows more."""
        unopened = self._unopened[unidirectional]
        line = connection._open_uni if unidirectional else connection._open_bi
        with suppress(quic.QuicError):  # the connection is over
            while unopened:
                if (opened := _open(connection, unidirectional)) is None:
                    again = partial(self._open_all, connection, unidirectional)
                    connection._reactor.call(line.token, again)
                    return
                self._attach(unopened.popleft(), *opened)
        self._opening.discard(unidirectional)

    async def _accept(self, connection: quic.Connection, unidirectional: bool) -> None:
        try:
            if unidirectional:
                async for receive in connection.accept_uni():
                    self._attach(receive.id, None, receive)
            else:
                async for stream in connection.accept_bi():
                    self._attach(stream.send.id, stream.send, stream.receive)
        except quic.QuicError:
            pass  # the connection is over

    def _attach(
        self, stream_id: int, send: quic.SendStream | None, receive: quic.ReceiveStream | None
    ) -> None:
        if send is not None:
            if (outgoing := self._outgoing.get(stream_id)) is None:
                outgoing = self._outgoing[stream_id] = Outgoing(stream_id, self._backlog, self._sent)
            outgoing.attach(send)
        if receive is not None:
            if (incoming := self._incoming.get(stream_id)) is None:
                incoming = self._incoming[stream_id] = self._new_incoming(stream_id)
            if self._pauses_ended:
                incoming.end_pauses()
            incoming.attach(receive)

    def _new_incoming(self, stream_id: int) -> Incoming:
        def tell(data: bytes, is_last: bool) -> None:
            self._tell(StreamDataReceived(data, is_last, stream_id))

        return Incoming(tell, partial(self._received, stream_id))

    def _received(self, stream_id: int, code: int | None) -> None:
        """Nothing more comes on a stream."""
        self._incoming.pop(stream_id, None)
        if code is not None:
            self._tell(StreamReset(code, stream_id))
        self._changes.note()

    def _sent(self, stream_id: int, code: int | None) -> None:
        """Nothing more leaves on a stream."""
        self._outgoing.pop(stream_id, None)
        if code is not None:
            self._tell(StopSendingReceived(code, stream_id))


def _open(
    connection: quic.Connection, unidirectional: bool
) -> tuple[quic.SendStream, quic.ReceiveStream | None] | None:
    """A new stream, if the peer allows one more."""
    if unidirectional:
        send = connection._native.open_uni()
        return None if send is None else (quic.SendStream(send, connection), None)
    halves = connection._native.open_bi()
    if halves is None:
        return None
    stream = connection._both(halves)
    return stream.send, stream.receive
