"""The streams of one connection, by their numbers.

A program of aioquic's picks the number of a new stream and writes; the peer's leave to open it may come much
later. So a stream is queued here, is opened in the order of the numbers, and gets what was written meanwhile.
The one invariant: number n of a direction is the n-th stream of that direction that QUIC opened.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from wayferry import quic

from ._stream import Backlog, Incoming, Outgoing
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
        self._writing: set[int] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._pauses_ended = False
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
        self._outgoing[stream_id] = Outgoing(stream_id, self._backlog)
        if not unidirectional:
            self._incoming[stream_id] = Incoming()
        self.next_id[unidirectional] += 4
        self._unopened[unidirectional].append(stream_id)
        self._open_soon(unidirectional)
        return stream_id

    def write(self, stream_id: int, data: bytes, end_stream: bool) -> None:
        outgoing = self._sending(stream_id)
        outgoing.write(data, end_stream)
        self._write_soon(outgoing)

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
        if self._pumps:
            await asyncio.wait(self._pumps, timeout=seconds)

    def drop_pauses(self) -> None:
        """The connection is over: what arrived is handed on now, no matter which program wanted a pause."""
        self._pauses_ended = True
        for incoming in self._incoming.values():
            incoming.end_pauses()

    def end(self) -> None:
        """Nothing will move any more: a task that waits goes on."""
        for outgoing in self._outgoing.values():
            outgoing.end()
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
            self._spawn(self._open_all(self._connection, unidirectional))

    async def _open_all(self, connection: quic.Connection, unidirectional: bool) -> None:
        unopened = self._unopened[unidirectional]
        try:
            while unopened:
                if unidirectional:
                    self._attach(unopened[0], await connection.open_uni(), None)
                else:
                    stream = await connection.open_bi()
                    self._attach(unopened[0], stream.send, stream.receive)
                unopened.popleft()
        except quic.QuicError:
            pass  # the connection is over
        finally:
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
            outgoing = self._outgoing.setdefault(stream_id, Outgoing(stream_id, self._backlog))
            outgoing.stream = send
            self._spawn(self._await_end(outgoing, send))
            self._write_soon(outgoing)
        if receive is not None:
            incoming = self._incoming.setdefault(stream_id, Incoming())
            incoming.attach(receive)
            if self._pauses_ended:
                incoming.end_pauses()
            self._spawn(self._receive(stream_id, incoming))

    def _write_soon(self, outgoing: Outgoing) -> None:
        if outgoing.stream is not None and outgoing.id not in self._writing:
            # Before the task, which may be over when `_spawn` returns (eager tasks of Python 3.12).
            self._writing.add(outgoing.id)
            task = self._spawn(self._write(outgoing))
            if task is None:
                self._writing.discard(outgoing.id)
            elif not task.done():
                self._pumps.add(task)
                task.add_done_callback(self._pumps.discard)

    async def _write(self, outgoing: Outgoing) -> None:
        try:
            # When it was stopped or reset, or the connection is over, `_await_end` knows.
            with suppress(quic.QuicError, ValueError):
                await outgoing.pump()
        finally:
            # In the same step as the pump's last look at the queue, so that no write falls between.
            self._writing.discard(outgoing.id)

    async def _await_end(self, outgoing: Outgoing, send: quic.SendStream) -> None:
        code = None
        try:
            code = await send.stopped()
        except quic.ConnectionClosed:
            return  # `end` comes; until then the stream is there, for a task that still writes
        except (quic.QuicError, ValueError):
            pass  # it was reset
        self._outgoing.pop(outgoing.id, None)
        outgoing.end()
        if code is not None:
            self._tell(StopSendingReceived(code, outgoing.id))

    async def _receive(self, stream_id: int, incoming: Incoming) -> None:
        try:
            end = False
            while not end:
                data, end = await incoming.next()
                self._tell(StreamDataReceived(data, end, stream_id))
        except quic.StreamReset as reset:
            self._tell(StreamReset(reset.code, stream_id))
        except (quic.QuicError, ValueError):
            pass  # the connection is over, or the program stopped the stream
        finally:
            self._incoming.pop(stream_id, None)
