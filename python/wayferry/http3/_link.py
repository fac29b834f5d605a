"""HTTP/3 on one QUIC connection: its control streams, and what ends it (RFC 9114 §6.2, RFC 9204 §4.2).

It knows no requests but by the numbers of their streams. Invariant: a peer that breaks a rule which concerns
the whole connection is told so by the code with which it is closed, and `error` says the same here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from wayferry.http3.errors import ErrorCode, GoingAway, ProtocolError
from wayferry.quic import ConnectionClosed, QuicError, StreamReset, _native
from wayferry.quic._accepting import Arrivals

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from wayferry.quic import BiStream, Connection, ReceiveStream, SendStream

__all__ = ["CHUNK", "FIELDS", "Link"]


T = TypeVar("T")
Settings: TypeAlias = Sequence[tuple[int, int]]
"""Settings of HTTP/3: names and values, which are numbers."""


class Refusable(Protocol):
    """A request that the server may not want any more."""

    def _refuse(self) -> None:
        """The server takes no more requests, and this one is among them."""


class Link:
    """One connection. `start()` begins; the tasks that it makes end with the connection."""

    __slots__ = (
        "_control",
        "_kinds",
        "_settings",
        "_tasks",
        "connection",
        "error",
        "going",
        "is_server",
        "is_taken",
        "peer_limit",
        "requests",
        "session_asked",
        "settled",
    )

    def __init__(self, connection: Connection, *, is_server: bool, settings: Settings = ()) -> None:
        self.connection = connection
        self.is_server = is_server
        self.is_taken = False
        """Whether a session of WebTransport has the connection: no more streams come here."""
        self.session_asked = False
        """Whether a client asked for one, and was not refused."""
        self.settled = asyncio.Event()
        """Set when the peer has sent its settings."""
        self.error: ProtocolError | None = None
        """What the peer did wrong."""
        self.going: int | None = None
        """The number from which on the peer takes nothing."""
        self.peer_limit: int | None = None
        """The size of the field sections that the peer takes, as far as known."""
        self.requests: WeakValueDictionary[int, Refusable] = WeakValueDictionary()
        """Requests under way by the numbers of their streams."""
        self._control: SendStream | None = None
        self._kinds: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._settings = settings

    def start(self) -> None:
        """Sends the settings, and reads what the peer has to say besides requests."""
        self.spawn(self._begin())
        self.spawn(self._sort())
        if not self.is_server:
            self.spawn(self._accept_none())

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Has `work` done. Its ProtocolError ends the connection; QuicErrors say nothing new."""
        task = self.connection._reactor.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def fail(self, error: ProtocolError) -> None:
        """Ends the connection for what the peer did."""
        if self.error is None:
            self.error = error
        self._close(error.code, error.text)

    def why(self, error: ConnectionClosed) -> QuicError:
        """The reason of an end that operations met."""
        broken = self.error
        return error if broken is None else ProtocolError(broken.code, broken.text)

    async def open(self) -> BiStream:
        """A stream for a request, when the server permits one more. GoingAway: it takes no more requests.

        Cancel-safe: a cancelled call has opened nothing.
        """
        connection = self.connection
        return connection._both(await connection._open_bi.run(self._poll_open))

    def accept(self) -> Arrivals[BiStream]:
        """The streams that the peer opens both ways, until a session takes the connection."""
        return Arrivals(self._take_bi)

    def take(self) -> None:
        """A session has the connection from now on."""
        self.is_taken = True
        self.connection._accept_bi.wake()
        self.connection._accept_uni.wake()

    def end(self) -> None:
        """Ends the connection, not for what the peer did."""
        self._close(ErrorCode.NO_ERROR, "")

    async def go_away(self, first: int) -> None:
        """Tells the peer that no stream from number `first` on is taken."""
        if self._control is not None:
            await self._control.write(frame(GOAWAY, number(first)))

    # The streams besides requests

    async def _begin(self) -> None:
        settings = number(MAX_FIELD_SECTION_SIZE) + number(FIELDS)
        if self.is_server:
            settings += number(ENABLE_CONNECT_PROTOCOL) + number(1)
        settings += b"".join(number(name) + number(value) for name, value in self._settings)
        control = await self.connection.open_uni()
        # Kept, as a stream that is dropped is reset.
        self._control = control
        await control.write(number(CONTROL) + frame(SETTINGS, settings))

    async def _sort(self) -> None:
        """Takes the peer's streams; those whose kind is not known yet are few at a time."""
        room = asyncio.Semaphore(HEADS)
        async for stream in Arrivals(self._take_uni):
            await room.acquire()
            self.spawn(self._read(stream, room))

    async def _take_uni(self) -> ReceiveStream:
        connection = self.connection
        return await connection._accept_uni.run(partial(self._untaken, connection._poll_uni))

    async def _take_bi(self) -> BiStream:
        connection = self.connection
        return await connection._accept_bi.run(partial(self._untaken, connection._poll_bi))

    def _untaken(self, poll: Callable[[], T | None]) -> T | None:
        """What `poll` gives, or the end of what comes here."""
        if self.is_taken:
            raise ConnectionClosed(0, "a session has the connection", "local")
        return poll()

    async def _read(self, stream: ReceiveStream, room: asyncio.Semaphore) -> None:
        try:
            kind = await read_number(stream)
        except asyncio.IncompleteReadError:
            return
        finally:
            room.release()
        readers = {CONTROL: self._follow, QPACK_ENCODER: self._no_table, QPACK_DECODER: self._no_use}
        if kind == PUSH:
            code = ErrorCode.STREAM_CREATION_ERROR if self.is_server else ErrorCode.ID_ERROR
            raise ProtocolError(code, "a push that was not allowed")
        if kind not in readers:
            early = kind == SESSION_STREAM
            stream.stop(ErrorCode.BUFFERED_STREAM_REJECTED if early else ErrorCode.STREAM_CREATION_ERROR)
            return
        if kind in self._kinds:
            raise ProtocolError(
                ErrorCode.STREAM_CREATION_ERROR, "a stream that there can be one of came twice"
            )
        self._kinds.add(kind)
        with contextlib.suppress(StreamReset):
            await readers[kind](stream)
        raise ProtocolError(ErrorCode.CLOSED_CRITICAL_STREAM, "a stream ended that must stay open")

    async def _follow(self, stream: ReceiveStream) -> None:
        """The peer's control stream."""
        reader = _native.Http3Reader("client" if self.is_server else "server", FIELDS)
        poll = partial(reader.poll, stream._native, CHUNK)
        while (told := await stream._line.run(poll)) != b"":
            if isinstance(told, dict):
                self.peer_limit = told.get(MAX_FIELD_SECTION_SIZE)
                self.settled.set()
            elif isinstance(told, int):
                self._go(told)

    def _go(self, first: int) -> None:
        if (not self.is_server and first % 4) or (self.going is not None and first > self.going):
            raise ProtocolError(ErrorCode.ID_ERROR, "the number in a GOAWAY frame cannot be")
        self.going = first
        if not self.is_server:
            for request in [request for number, request in self.requests.items() if number >= first]:
                request._refuse()
            # Those who wait until they may open a stream.
            self.connection._open_bi.wake()

    def _poll_open(self) -> tuple[_native.SendStream, _native.ReceiveStream] | None:
        if self.going is not None and self.error is None:
            raise GoingAway
        return self.connection._native.open_bi()

    async def _no_table(self, stream: ReceiveStream) -> None:
        """QPACK's encoder stream: without a dynamic table there is only its size to set, to 0."""
        async for data in stream:
            if data.strip(b"\x20"):
                raise ProtocolError(
                    ErrorCode.QPACK_ENCODER_STREAM_ERROR, "an entry for a table that has no room"
                )

    async def _no_use(self, stream: ReceiveStream) -> None:
        """QPACK's decoder stream: without a dynamic table there are only cancellations."""
        within = False
        async for data in stream:
            for byte in data:
                if within:
                    within = byte >= 0x80
                elif byte & 0xC0 == 0x40:
                    within = byte == 0x7F
                else:
                    raise ProtocolError(
                        ErrorCode.QPACK_DECODER_STREAM_ERROR, "what was never sent is acknowledged"
                    )

    async def _accept_none(self) -> None:
        async for _ in self.connection.accept_bi():
            raise ProtocolError(ErrorCode.STREAM_CREATION_ERROR, "a server opened a stream for requests")

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ProtocolError):
            self.fail(error)
        elif error is not None and not isinstance(error, QuicError):
            self._close(ErrorCode.INTERNAL_ERROR, "")
            task.get_loop().call_exception_handler({"message": "wayferry.http3: a bug", "exception": error})

    def _close(self, code: int, text: str) -> None:
        self.connection._close_called = True
        self.connection._native.close(code, text.encode())


async def read_number(stream: ReceiveStream) -> int:
    """A number at the beginning of what comes (RFC 9000 §16)."""
    first = (await stream.read_exactly(1))[0]
    length = 1 << (first >> 6)
    rest = await stream.read_exactly(length - 1)
    return int.from_bytes([first & 0x3F]) << 8 * (length - 1) | int.from_bytes(rest)


def number(value: int) -> bytes:
    """A number as it is written (RFC 9000 §16)."""
    if value < 64:
        return bytes((value,))
    for prefix, length in enumerate((1, 2, 4, 8)):
        if value < 1 << (8 * length - 2):
            return (value | prefix << (8 * length - 2)).to_bytes(length)
    raise ValueError(f"{value} does not fit into 62 bits")


def frame(kind: int, content: Buffer) -> bytes:
    """A frame as it is written (RFC 9114 §7.1)."""
    return b"".join((number(kind), number(memoryview(content).nbytes), content))


# RFC 9114 §11.2 and RFC 9204 §8.
CONTROL, PUSH, QPACK_ENCODER, QPACK_DECODER = 0x0, 0x1, 0x2, 0x3
DATA, HEADERS, SETTINGS, GOAWAY = 0x0, 0x1, 0x4, 0x7
SESSION_STREAM = 0x54
"""Draft-ietf-webtrans-http3 §4.2."""
MAX_FIELD_SECTION_SIZE = 0x6
ENABLE_CONNECT_PROTOCOL = 0x8
"""RFC 9220 §5."""

FIELDS = 64 << 10
"""Bytes of a field section that is taken, counted as RFC 9114 §4.2.2 does, and of any frame that is read as a
whole."""
CHUNK = 64 << 10
"""Bytes that are read from a stream at once."""
HEADS = 16
"""Streams besides requests whose first bytes have not come."""
