"""What programs find behind `protocol._quic`: a QUIC connection with aioquic's methods, run by Wayferry.

It is no sans-IO connection: no caller gives it packets or asks it for some. All methods return at once; what
they ask for is done by tasks that end with the connection. What is asked for before the handshake is over
waits for it. Writing to a connection that is over does nothing, as in aioquic.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Never

from wayferry import quic

from ._streams import Streams, stream_is_client_initiated, stream_is_unidirectional
from .configuration import QuicConfiguration
from .events import (
    ConnectionTerminated,
    DatagramFrameReceived,
    HandshakeCompleted,
    PingAcknowledged,
    ProtocolNegotiated,
    QuicEvent,
)
from .packet import QuicErrorCode

__all__ = ["NetworkAddress", "QuicConnection", "stream_is_client_initiated", "stream_is_unidirectional"]

NetworkAddress = Any
# Datagrams that wait; the oldest is lost when there are more.
DATAGRAMS = 1024
# PINGs and key updates that wait for the handshake.
EARLY = 1024
# Bytes of a datagram that no packet could hold more of.
DATAGRAM_MAX = 65535
# Seconds that close() gives to what was written before.
DRAIN = 1.0


@dataclass
class Tls:
    """What is known of the handshake."""

    alpn_negotiated: str | None = None
    early_data_accepted: bool = False
    session_resumed: bool = False


class QuicConnection:
    """A connection that `connect()` or `serve()` made; programs do not make one."""

    def __init__(self, *, configuration: QuicConfiguration) -> None:
        self.tls = Tls()
        self.streams = Streams(configuration.is_client, self._spawn, self._tell)
        self.failure: BaseException | None = None
        self.on_ticket: Callable[[], None] | None = None
        """Called once, when the server has given a ticket; it must not raise."""
        self._configuration = configuration
        self._emit: Callable[[QuicEvent], None] = lambda event: None
        self._connection: quic.Connection | None = None
        self._main: asyncio.Task[quic.QuicError] | None = None
        self._group: asyncio.TaskGroup | None = None
        self._closing: ConnectionTerminated | None = None
        self._over = False
        self._early: deque[Callable[[], Any]] = deque(maxlen=EARLY)
        self._datagrams: deque[bytes] = deque(maxlen=DATAGRAMS)
        self._sending_datagrams = False

    # What programs call.

    @property
    def configuration(self) -> QuicConfiguration:
        return self._configuration

    def get_next_available_stream_id(self, is_unidirectional: bool = False) -> int:
        return self.streams.next_id[is_unidirectional]

    def get_peer_address(self) -> NetworkAddress | None:
        return None if self._connection is None else self._connection.remote_addr

    def send_stream_data(self, stream_id: int, data: bytes, end_stream: bool = False) -> None:
        """Queues `data`. ValueError: no such stream. RuntimeError: it ended. BufferError: too much waits."""
        if not self.is_over():
            self.streams.write(stream_id, bytes(data), end_stream)

    def reset_stream(self, stream_id: int, error_code: int) -> None:
        """Ends the sending half at once; what waits is lost. Does nothing if it is over."""
        _check(error_code)
        if not self.is_over():
            self.streams.reset(stream_id, error_code)

    def stop_stream(self, stream_id: int, error_code: int) -> None:
        """Tells the peer to stop. No event of the stream follows, not even its reset."""
        _check(error_code)
        if not self.is_over():
            self.streams.stop(stream_id, error_code)

    def send_datagram_frame(self, data: bytes) -> None:
        """Sends, or queues if QUIC has no room. ValueError: the peer takes none, or none of this size."""
        if self.is_over():
            return
        if self._connection is not None and not self._datagrams:
            try:
                if self._connection.send_datagram_nowait(data):
                    return
            except quic.ConnectionClosed:
                return
            except quic.QuicError as error:
                raise ValueError(str(error)) from error
        self._datagrams.append(bytes(data))
        self._send_datagrams()

    def send_ping(self, uid: int) -> None:
        """`PingAcknowledged` with this `uid` follows."""
        self._when_connected(lambda: self._spawn(self._ping(uid)))

    def request_key_update(self) -> None:
        """Changes the keys (RFC 9001 §6)."""
        self._when_connected(self._update_keys)

    def close(self, error_code: int = 0, frame_type: int | None = None, reason_phrase: str = "") -> None:
        """Closes, once the peer has what was written, or after a second."""
        _check(error_code)
        if frame_type is not None:
            raise NotImplementedError(
                "frame_type: only applications close here, QUIC closes for itself; leave it None"
            )
        if self.is_over():
            return
        self._closing = ConnectionTerminated(int(error_code), None, reason_phrase)
        if self._group is not None:
            self._spawn(self._close(self._closing))
        elif self._connection is None and self._main is not None:
            self._main.cancel()

    def change_connection_id(self) -> None:
        """Takes another of the ids that the peer has given. NotImplementedError: on a server."""
        if not self._configuration.is_client:
            raise NotImplementedError(
                "change_connection_id: a server follows its clients; call it on a client"
            )
        self._when_connected(self._change_id)

    def _no_sans_io(self, *_args: Any, **_options: Any) -> Never:
        raise NotImplementedError(
            "there is no sans-IO connection here, packets, timers and events move by themselves; "
            "take connect() and serve() of wayferry.compat.aioquic.asyncio"
        )

    connect = datagrams_to_send = get_timer = handle_timer = next_event = receive_datagram = _no_sans_io

    # What `h3` and aioquic's own programs look at.

    carries_h3 = False
    """Set by `h3`; aioquic's own would wait for its own events for ever."""
    _logger = logging.getLogger("quic")

    @property
    def _quic_logger(self) -> None:
        if not self.carries_h3:
            raise NotImplementedError(
                "aioquic.h3 does not know the events of this connection: import wayferry.compat.aioquic.h3"
            )

    @property
    def _remote_max_datagram_frame_size(self) -> int | None:
        """None would say that the peer takes none, which is not known where this side sends none either."""
        connection = self._connection
        return None if connection is None else connection.max_datagram_size or DATAGRAM_MAX

    # What `connect()` and `serve()` call.

    def start(
        self, connecting: Awaitable[quic.Connection], emit: Callable[[QuicEvent], None]
    ) -> "asyncio.Task[quic.QuicError]":
        """Runs the connection that `connecting` gives until the returned task ends; `emit` hears of it."""
        self._emit = emit
        self._main = asyncio.ensure_future(self._run(connecting))
        self._main.add_done_callback(self._finished)
        return self._main

    def address(self, name: str) -> NetworkAddress | None:
        """By asyncio's names, `sockname` and `peername`."""
        if self._connection is None or name not in ("sockname", "peername"):
            return None
        return self._connection.local_addr if name == "sockname" else self._connection.remote_addr

    async def _run(self, connecting: Awaitable[quic.Connection]) -> quic.QuicError:
        connection = self._connection = await connecting
        alpn = self.tls.alpn_negotiated = connection.alpn
        self._tell(ProtocolNegotiated(alpn))
        self._tell(HandshakeCompleted(alpn, early_data_accepted=False, session_resumed=False))
        try:
            async with asyncio.TaskGroup() as self._group:
                self._begin(connection)
            self._group = None
            await self.streams.handed_on()
            return await connection.closed()
        finally:
            await connection.close(drain=0)  # it is over, unless this task was cancelled or failed

    def _begin(self, connection: quic.Connection) -> None:
        self._spawn(self._watch(connection))
        self.streams.begin(connection)
        if self._configuration.max_datagram_frame_size is not None:
            self._spawn(self._receive_datagrams(connection))
        if self.on_ticket is not None:
            self._spawn(self._await_ticket(connection, self.on_ticket))
        self._send_datagrams()
        while self._early:
            self._early.popleft()()
        if self._closing is not None:
            self._spawn(self._close(self._closing))

    async def _watch(self, connection: quic.Connection) -> None:
        await connection.closed()
        self._over = True
        self.streams.drop_pauses()

    async def _await_ticket(self, connection: quic.Connection, tell: Callable[[], None]) -> None:
        native = connection._native
        ticket = native.ticket()
        await connection._reactor.until(ticket.token, lambda: ticket.poll() or None)
        if native.has_ticket:
            tell()

    async def _close(self, closing: ConnectionTerminated) -> None:
        assert self._connection is not None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DRAIN
        await self.streams.flush(DRAIN)
        rest = max(0.0, deadline - loop.time())
        await self._connection.close(closing.error_code, closing.reason_phrase, drain=rest)

    def _finished(self, main: "asyncio.Task[quic.QuicError]") -> None:
        self._over = True
        self._group = None
        if not main.cancelled():
            self.failure = main.exception() or main.result()
        self.streams.end()
        self._emit(self._closing or _terminated(self.failure))

    def _tell(self, event: QuicEvent) -> None:
        # After its own close() a program hears only that the connection is over.
        if self._closing is None:
            self._emit(event)

    def is_over(self) -> bool:
        """Whether it is closed, by whomever, so that nothing is sent any more."""
        return self._over or self._closing is not None

    def _when_connected(self, action: Callable[[], Any]) -> None:
        if self.is_over():
            return
        if self._group is not None:
            action()
        else:
            self._early.append(action)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None] | None":
        if self._group is not None:
            try:
                return self._group.create_task(work)
            except RuntimeError:
                pass  # the group ends, and with it the connection
        work.close()
        return None

    # Datagrams and pings.

    def _send_datagrams(self) -> None:
        if self._datagrams and self._connection is not None and not self._sending_datagrams:
            self._sending_datagrams = True
            self._spawn(self._send_queued_datagrams(self._connection))

    async def _send_queued_datagrams(self, connection: quic.Connection) -> None:
        try:
            while self._datagrams:
                await self._send_queued_datagram(connection, self._datagrams.popleft())
        except quic.ConnectionClosed:
            pass
        finally:
            self._sending_datagrams = False

    async def _send_queued_datagram(self, connection: quic.Connection, data: bytes) -> None:
        try:
            await connection.send_datagram(data)
        except (quic.TooLarge, quic.DatagramsUnsupported) as error:
            # It was queued before anybody knew what the peer takes. The next one may be better.
            context = {"message": "a datagram was not sent", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    async def _receive_datagrams(self, connection: quic.Connection) -> None:
        try:
            async for data in connection.datagrams():
                self._tell(DatagramFrameReceived(data))
        except quic.QuicError:
            pass  # the connection is over

    def _change_id(self) -> None:
        if self._connection is not None:
            self._connection._native.change_id()

    def _update_keys(self) -> None:
        if self._connection is not None:
            self._connection.update_keys()

    async def _ping(self, uid: int) -> None:
        assert self._connection is not None
        before = self._connection.stats().acks_received
        self._connection.ping()
        while not self._over:
            stats = self._connection.stats()
            if stats.acks_received != before:
                self._tell(PingAcknowledged(uid))
                return
            # QUIC does not tell when a PING is acknowledged, so look a few times per round trip.
            await asyncio.sleep(min(max(stats.rtt / 8, 0.0005), 0.05))


def _check(code: int) -> None:
    if not 0 <= code < 1 << 62:
        raise ValueError(f"{code} is no error code, those have 62 bits")


def _terminated(error: BaseException | None) -> ConnectionTerminated:
    """The event for the way in which a connection ended."""
    match error:
        case quic.ConnectionClosed(by="peer" | "local"):
            return ConnectionTerminated(error.code, None, error.reason)
        case quic.ConnectionClosed(by="transport"):
            return ConnectionTerminated(error.code, 0, error.reason)
        case quic.ConnectionClosed(by="timeout"):
            return ConnectionTerminated(QuicErrorCode.INTERNAL_ERROR, 0, "Idle timeout")
        case quic.ConnectionClosed(by="refused"):
            return ConnectionTerminated(QuicErrorCode.CONNECTION_REFUSED, 0, error.reason)
        case quic.TlsError():
            return ConnectionTerminated(QuicErrorCode.CRYPTO_ERROR + (error.alert or 0), 0, error.text)
    return ConnectionTerminated(QuicErrorCode.INTERNAL_ERROR, 0, str(error) if error else "cancelled")
