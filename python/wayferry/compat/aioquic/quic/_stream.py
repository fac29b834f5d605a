"""The two halves of a stream whose number the program chose before the stream was opened.

`Outgoing` holds what was written until there is a stream and QUIC takes it. `Incoming` hands on what comes,
unless its reader asked for a pause. Both are moved by the tokens of the stream and by what the program calls;
neither has a task. The one invariant: bytes keep their order.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from wayferry import quic
from wayferry.quic._reactor import Reactor
from wayferry.quic._waiter import Call

__all__ = ["Backlog", "Incoming", "Outgoing"]

# A writer that waits in `drain()` goes on below this, in bytes.
HIGH_WATER = 256 * 1024
# What is handed to QUIC, or taken from it, at once.
CHUNK = 256 * 1024
# Pieces that are handed on before others have their turn.
PIECES = 16


class Backlog:
    """What a connection's streams hold together that QUIC has not taken; refused beyond `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0

    def add(self, size: int) -> None:
        # One write may pass the limit: the program holds its bytes anyway.
        if size and self.size >= self.limit:
            raise BufferError(
                f"{self.size} bytes wait to be sent on this connection; wait for drain() between writes"
            )
        self.size += size


class Changes:
    """Lets tasks wait until something is so."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event: asyncio.Event | None = None

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self._event = self._event or asyncio.Event()
            await self._event.wait()

    def note(self) -> None:
        """Something may be so now."""
        if self._event is not None:
            self._event.set()
            self._event = None


class Tokens:
    """What waits for tokens of a stream: at most one call for each."""

    def __init__(self) -> None:
        self._reactor: Reactor | None = None
        self._calls: dict[int, Call] = {}

    def attach(self, reactor: Reactor) -> None:
        self._reactor = reactor

    def call(self, token: int, call: Callable[[], None]) -> None:
        """Calls it once the token is ready, for which a poll has just said that it is not."""
        assert self._reactor is not None
        self._calls[token] = self._reactor.call(token, call)

    def wake(self, token: int) -> None:
        """Calls what waits for the token, soon."""
        if self._reactor is not None:
            self._reactor.wake(token)

    def forget(self) -> None:
        """Nothing is called any more."""
        for token, call in self._calls.items():
            assert self._reactor is not None
            self._reactor.forget(token, call)
        self._calls.clear()


class Outgoing:
    """The sending half. `is_over` is told once, of the code with which the peer stopped it, or of None."""

    def __init__(self, stream_id: int, backlog: Backlog, is_over: Callable[[int, int | None], None]) -> None:
        self.id = stream_id
        self.stream: quic.SendStream | None = None
        self.ended = False
        self.size = 0
        self._backlog = backlog
        self._is_over = is_over
        self._parts: deque[bytes | memoryview] = deque()
        self._finished = False
        self._waits = False
        self._code: int | None = None
        self._tokens = Tokens()
        self._gone = False
        self._changes = Changes()

    def attach(self, stream: quic.SendStream) -> None:
        """Here is the stream."""
        self.stream = stream
        self._tokens.attach(stream._reactor)
        self._look()
        if self._code is not None:
            self._reset(stream, self._code)
        self._pump()

    def write(self, data: bytes, end_stream: bool) -> None:
        if self._code is not None:
            raise RuntimeError(f"stream {self.id} was reset")
        if self.ended:
            raise RuntimeError(f"stream {self.id} has ended")
        self._backlog.add(len(data))
        self.size += len(data)
        if len(data) <= CHUNK:
            if data:
                self._parts.append(data)
        else:
            view = memoryview(data)
            self._parts.extend(view[start : start + CHUNK] for start in range(0, len(view), CHUNK))
        self.ended = end_stream
        if not self._waits:
            self._pump()

    def reset(self, code: int) -> None:
        if self._code is None:
            self._code = code
            self._forget()
            if self.stream is not None:
                self._reset(self.stream, code)

    def end(self) -> None:
        """Nothing will be sent any more: a task that waits goes on."""
        self._gone = True
        self._tokens.forget()
        self._forget()

    async def room(self) -> None:
        await self._changes.until(lambda: self.size <= HIGH_WATER)

    async def over(self) -> None:
        await self._changes.until(lambda: self._gone)

    async def empty(self) -> None:
        """Waits until QUIC has taken everything, or nothing will be sent any more."""
        await self._changes.until(lambda: not self._parts)

    def _pump(self) -> None:
        """Hands over what is queued, and the end if that was written, as far as QUIC has room."""
        self._waits = False
        if self.stream is None or self._code is not None:
            return
        # When it was stopped or reset, or the connection is over, `_look` knows.
        with suppress(quic.QuicError, ValueError):
            while self._parts:
                part = self._parts[0]
                if not self.stream._take(self.stream._native.write, part):
                    self._waits = True
                    self._tokens.call(self.stream._native.t_write, self._pump)
                    return
                self._parts.popleft()
                self._taken(len(part))
            if self.ended and not self._finished:
                self._finished = True
                self.stream._finish()

    def _reset(self, stream: quic.SendStream, code: int) -> None:
        with suppress(quic.ConnectionClosed):
            stream.reset(code)
        self._tokens.wake(stream._native.t_stopped)

    def _look(self) -> None:
        """Looks whether the stream is over."""
        assert self.stream is not None
        code = None
        try:
            outcome = self.stream._native.stopped()
            if outcome is None:
                self._tokens.call(self.stream._native.t_stopped, self._look)
                return
            code = outcome[0] if outcome else None
        except quic.ConnectionClosed:
            return  # `end` comes; until then the stream is there
        except (quic.QuicError, ValueError):
            pass  # it was reset
        self.end()
        self._is_over(self.id, code)

    def _forget(self) -> None:
        self._parts.clear()
        self._taken(self.size)

    def _taken(self, size: int) -> None:
        self.size -= size
        self._backlog.size -= size
        self._changes.note()


class Incoming:
    """The receiving half. `tell` gets its bytes and whether they are the last; `is_over` is told once, of the
    code with which the peer has reset it, or of None."""

    def __init__(self, tell: Callable[[bytes, bool], None], is_over: Callable[[int | None], None]) -> None:
        self.stream: quic.ReceiveStream | None = None
        self._tell = tell
        self._is_over = is_over
        self._code: int | None = None
        self._ahead: bytes | None = None
        self._failure: Exception | None = None
        self._pauses_ended = False
        self._flows = True
        self._waits = False
        self._tokens = Tokens()

    def attach(self, stream: quic.ReceiveStream) -> None:
        """Here is the stream."""
        self.stream = stream
        self._tokens.attach(stream._connection._reactor)
        if self._code is not None:
            stream.stop(self._code)
        self._pump()

    def stop(self, code: int) -> None:
        self._code = code
        self._ahead, self._failure = None, None
        self.end_pauses()
        if self.stream is not None:
            with suppress(quic.ConnectionClosed):
                self.stream.stop(code)

    def pause(self) -> None:
        self._flows = self._pauses_ended

    def resume(self) -> None:
        self._flows = True
        self._pump_soon()

    def end_pauses(self) -> None:
        """From now on there are none."""
        self._pauses_ended = True
        self.resume()

    def end(self) -> None:
        """Nothing is handed on any more."""
        self._tokens.forget()
        self.stream = None
        self._pauses_ended = True

    def _pump_soon(self) -> None:
        """What is called by the program hands nothing on by itself."""
        if self.stream is not None and not self._waits:
            self._waits = True
            self.stream._connection._reactor.loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Hands on what is there."""
        # No `resume()` by the program that is told has it begin anew.
        self._waits = True
        try:
            for _ in range(PIECES):
                if self.stream is None or not self._flows:
                    self._waits = False
                    return
                if self._step(self.stream):
                    return
        except quic.StreamReset as reset:
            self._end_with(reset.code)
        except (quic.QuicError, ValueError):
            self._end_with(None)  # the connection is over, or the program stopped the stream
        self._waits = False
        self._pump_soon()

    def _step(self, stream: quic.ReceiveStream) -> bool:
        """Hands on the next bytes; whether that is all for now."""
        if self._failure is not None:
            raise self._failure
        data, self._ahead = self._ahead, None
        if data is None:
            data = stream._native.read(CHUNK)
        if data is None:
            self._tokens.call(stream._native.t_read, self._pump)
            return True
        if data:
            # Small programs expect the end together with the last bytes, as it comes in aioquic when both
            # were in one packet. So look whether it is there.
            try:
                self._ahead = stream._native.read(CHUNK)
            except (quic.QuicError, ValueError) as failure:
                self._failure = failure
        is_last = not data or self._ahead == b""
        self._tell(data, is_last)
        if is_last:
            self._end_with(None)
            return True
        if self._ahead is None and self._failure is None and self._flows and self.stream is not None:
            self._tokens.call(stream._native.t_read, self._pump)
            return True
        return False

    def _end_with(self, code: int | None) -> None:
        if self.stream is not None:
            self.end()
            self._is_over(code)
