"""`QuicConnectionProtocol`: what a program subclasses to hear of a connection's events."""

import asyncio
from collections.abc import Callable
from typing import Any, Never

from wayferry import quic as wayferry_quic

from ..quic.connection import QuicConnection
from ..quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    PingAcknowledged,
    QuicEvent,
    StreamDataReceived,
    StreamReset,
)
from .stream import StreamTransport, StreamWriter

__all__ = ["QuicConnectionProtocol", "QuicStreamHandler"]

QuicStreamHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]


class QuicConnectionProtocol(asyncio.DatagramProtocol):
    """One connection. Events come to `quic_event_received`, one at a time.

    An error there is reported to the loop's exception handler, and the next event comes nevertheless.
    """

    def __init__(self, quic: QuicConnection, stream_handler: QuicStreamHandler | None = None) -> None:
        self._quic = quic
        self._loop = asyncio.get_running_loop()
        self._closed = asyncio.Event()
        self._connected = False
        self._connected_waiter: asyncio.Future[None] | None = None
        self._ping_waiters: dict[int, asyncio.Future[None]] = {}
        self._stream_handler = stream_handler or (lambda reader, writer: writer.close())
        self._stream_readers: dict[int, asyncio.StreamReader] = {}
        self._transport: asyncio.BaseTransport | None = None

    def quic_event_received(self, event: QuicEvent) -> None:
        """What to do about an event. This one feeds stream readers; override it to do something else."""
        if isinstance(event, ConnectionTerminated):
            for reader in self._stream_readers.values():
                reader.feed_eof()
            self._stream_readers.clear()
        elif isinstance(event, StreamReset):
            if event.stream_id in self._stream_readers:
                error = f"stream {event.stream_id} was reset with code {event.error_code}"
                self._stream_readers.pop(event.stream_id).set_exception(ConnectionResetError(error))
        elif isinstance(event, StreamDataReceived):
            self._feed(event)

    async def create_stream(
        self, is_unidirectional: bool = False
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new stream. It is opened once the peer allows; what is written before that waits."""
        reader, writer = self._create_stream(self._quic.streams.open(is_unidirectional))
        if is_unidirectional:
            reader.feed_eof()
        return reader, writer

    async def ping(self) -> None:
        """Waits until the peer has acknowledged something. ConnectionError: the connection is over."""
        if self._closed.is_set():
            raise ConnectionError("the connection is over")
        waiter = self._loop.create_future()
        uid = id(waiter)
        self._ping_waiters[uid] = waiter
        self._quic.send_ping(uid)
        try:
            await waiter
        finally:
            self._ping_waiters.pop(uid, None)

    async def wait_connected(self) -> None:
        """Waits for the handshake. ConnectionError: it failed; other errors: it could not begin."""
        if self._connected_waiter is not None:
            raise RuntimeError("Already awaiting connected")
        if self._closed.is_set():
            raise self._failure()
        if not self._connected:
            self._connected_waiter = self._loop.create_future()
            await asyncio.shield(self._connected_waiter)

    async def wait_closed(self) -> None:
        """Waits until the connection is over."""
        await self._closed.wait()

    def close(self, error_code: int = 0, reason_phrase: str = "") -> None:
        """Closes the connection; `ConnectionTerminated` follows."""
        self._quic.close(error_code=error_code, reason_phrase=reason_phrase)

    def request_key_update(self) -> None:
        """Changes the keys now (RFC 9001 §6), or once the handshake is over."""
        self._quic.request_key_update()

    def change_connection_id(self) -> None:
        """Takes another of the ids that the peer has given; only on a client."""
        self._quic.change_connection_id()

    def transmit(self) -> None:
        """Nothing: QUIC sends by itself. Here because aioquic's programs must call it."""

    _transmit_soon = transmit

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Gives the addresses, `transport.get_extra_info("sockname")` and `("peername")`."""
        self._transport = transport

    def deliver(self, event: QuicEvent) -> None:
        """Tells the waiters and the program of an event. For `QuicConnection`."""
        if isinstance(event, ConnectionTerminated):
            self._terminated()
        elif isinstance(event, HandshakeCompleted):
            self._connected = True
            waiter, self._connected_waiter = self._connected_waiter, None
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        elif isinstance(event, PingAcknowledged):
            ping = self._ping_waiters.get(event.uid)
            if ping is not None and not ping.done():
                ping.set_result(None)
        try:
            self.quic_event_received(event)
        except Exception as error:
            self.report(f"{type(self).__name__}.quic_event_received failed", error)

    def _terminated(self) -> None:
        failure = self._failure()
        waiter, self._connected_waiter = self._connected_waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(failure)
            waiter.exception()  # who waited may have been cancelled
        elif not isinstance(failure, ConnectionError):
            self.report("the connection could not be made", failure)
        for ping in self._ping_waiters.values():
            if not ping.done():
                ping.set_exception(ConnectionError("the connection is over"))
        self._closed.set()

    def _failure(self) -> BaseException:
        """Why it is over. As in aioquic it is ConnectionError for all that QUIC does."""
        failure = self._quic.failure
        if failure is None or isinstance(failure, wayferry_quic.QuicError):
            return ConnectionError(str(failure or "closed before it was connected"))
        return failure

    def report(self, message: str, error: BaseException) -> None:
        """Tells the loop's exception handler of an error of the program's. For this layer."""
        self._loop.call_exception_handler({"message": message, "exception": error, "protocol": self})

    def _feed(self, event: StreamDataReceived) -> None:
        reader = self._stream_readers.get(event.stream_id)
        if reader is None:
            reader, writer = self._create_stream(event.stream_id)
            self._stream_handler(reader, writer)
        reader.feed_data(event.data)
        if event.end_stream:
            reader.feed_eof()
            del self._stream_readers[event.stream_id]

    def _create_stream(self, stream_id: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        transport = StreamTransport(self._quic, stream_id)
        reader = asyncio.StreamReader(loop=self._loop)
        reader.set_transport(transport)
        writer = StreamWriter(transport, reader, self._loop)
        if self._quic.streams.can_receive(stream_id):
            self._stream_readers[stream_id] = reader
        return reader, writer


class Addresses(asyncio.DatagramTransport):
    """The transport that a protocol is given: it knows addresses and sends nothing."""

    def __init__(self, close: Callable[[], None], address: Callable[[str], Any]) -> None:
        super().__init__()
        self._close = close
        self._address = address
        self._closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        address = self._address(name)
        return default if address is None else address

    def close(self) -> None:
        self._closing = True
        self._close()

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._closing

    def sendto(self, data: Any, addr: Any = None) -> Never:
        raise NotImplementedError(
            "sendto: QUIC's socket cannot be written to; send_datagram_frame() sends a datagram of QUIC"
        )


def attach(protocol: QuicConnectionProtocol, quic: QuicConnection, connecting: Any) -> "asyncio.Task[Any]":
    """Lets `protocol` have the connection that `connecting` gives. Returns a task that ends with it."""
    protocol.connection_made(Addresses(protocol.close, quic.address))
    return quic.start(connecting, protocol.deliver)
