"""A connection: its streams, its datagrams, its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import warnings
import weakref
from collections import deque
from typing import TYPE_CHECKING, Protocol, cast

from wayferry.quic import _reactor
from wayferry.quic._accepting import Arrivals, Datagrams, Opened, Streams
from wayferry.quic._waiting import Line
from wayferry.quic.errors import ConnectionClosed, QuicError, TlsError
from wayferry.quic.receive import ReceiveStream
from wayferry.quic.send import SendStream
from wayferry.quic.stats import Path, Stats, from_figures
from wayferry.quic.streams import BiStream

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from typing_extensions import Buffer

    from wayferry.quic import _native

__all__ = ["Connection"]

LOG = logging.getLogger("wayferry.quic")
"""Tells of connections: that they are made and over (INFO), that one was dropped, and that none can come any
more (WARNING)."""
DRAIN = 2.0
"""Seconds that `close()` waits for acknowledgements when it is not told."""


class Connection:
    """A QUIC connection, or one WebTransport session. Both ends have the same methods.

    It comes from `connect()`, from a server's iteration, from `webtransport.connect()` or `Request.accept()`,
    belongs to the event loop that it was made on, and is closed by `close()` or at the end of `async with`.
    Nothing of it may be called from another thread, `stats()` included: that would make the loop's own calls
    fail with RuntimeError.
    One that is dropped while open is closed with code 0, with a ResourceWarning.

    Once it is over, every operation raises `ConnectionClosed`, also those that were waiting. What had arrived
    before can still be accepted.
    """

    __slots__ = (
        "__weakref__",
        "_accept_bi",
        "_accept_uni",
        "_all_flushed",
        "_arrived",
        "_close_called",
        "_datagram",
        "_early",
        "_ends",
        "_native",
        "_open_bi",
        "_open_uni",
        "_over",
        "_reactor",
        "_send_datagram",
        "_unflushed",
    )

    def __init__(self, native: _native.Connection, reactor: _reactor.Reactor) -> None:
        self._native = native
        self._reactor = reactor
        self._close_called = False
        self._over = False
        self._ends: set[asyncio.Future[None]] = set()
        """The waits for the end."""
        self._unflushed: set[SendStream] = set()
        """Streams with data that there was no room for yet."""
        self._all_flushed: asyncio.Event | None = None
        self._arrived: deque[bytes] = deque()
        """Datagrams of a batch that no task has taken yet."""
        self._open_uni = Line(reactor, native.t_open_uni)
        self._open_bi = Line(reactor, native.t_open_bi)
        self._accept_uni = Line(reactor, native.t_accept_uni)
        self._accept_bi = Line(reactor, native.t_accept_bi)
        self._datagram = Line(reactor, native.t_datagram)
        self._send_datagram = Line(reactor, native.t_send_datagram)
        self._early = Line(reactor, native.t_early)
        _Watch(self)

    def __repr__(self) -> str:
        host, port = self.remote_addr
        return f"<Connection {host} port {port}{', over' if self._over else ''}>"

    # Streams

    async def open_uni(self, priority: int = 0) -> SendStream:
        """Opens a stream to send on. Waits while the peer permits no more streams. The peer sees it once
        something was written to it.

        Args:
            priority: see `SendStream.set_priority`.

        Cancel-safe: a cancelled call has opened nothing.
        """
        stream = SendStream(await self._open_uni.run(self._native.open_uni), self)
        if priority:
            stream.set_priority(priority)
        return stream

    async def open_bi(self, priority: int = 0) -> BiStream:
        """Opens a stream both ways; otherwise as `open_uni`.

        Cancel-safe: a cancelled call has opened nothing.
        """
        stream = self._both(await self._open_bi.run(self._native.open_bi))
        if priority:
            stream.set_priority(priority)
        return stream

    def accept_uni(self) -> Arrivals[ReceiveStream]:
        """The unidirectional streams that the peer opens: `await` it for one, `async for` over all.

        The iteration ends when this side closed the connection or the peer closed it with code 0; when the
        connection ended otherwise it raises that ConnectionClosed.

        Cancel-safe: a cancelled wait has taken no stream.
        """
        return Opened(self._accept_uni, self._poll_uni)

    def accept_bi(self) -> Arrivals[BiStream]:
        """The bidirectional streams that the peer opens, as `accept_uni`.

        Cancel-safe: a cancelled wait has taken no stream.
        """
        return Opened(self._accept_bi, self._poll_bi)

    def streams(self) -> Arrivals[ReceiveStream | BiStream]:
        """The streams of both kinds, in turn when both wait; otherwise as `accept_uni`. Who calls
        `accept_uni` or `accept_bi` meanwhile waits behind it.

        Cancel-safe: a cancelled wait has taken no stream.
        """
        return Arrivals(Streams(self).take)

    # Datagrams

    @property
    def max_datagram_size(self) -> int | None:
        """Bytes that a datagram may have now; it changes with the path. None: the peer takes none (RFC 9221
        §3)."""
        return self._native.max_datagram_size

    async def send_datagram(self, data: Buffer) -> None:
        """Sends a datagram, once. Waits while `Config.datagram_buffer` is full. It may get lost.

        Raises:
            TooLarge: it has more than `max_datagram_size` bytes.
            DatagramsUnsupported: the peer takes none.

        Cancel-safe: a cancelled call has sent nothing.
        """
        line, native, reactor = self._send_datagram, self._native, self._reactor
        reactor.budget -= 1
        if reactor.budget < 0:
            await reactor.breathe()
        pending = False
        if not line.callers:
            if native.send_datagram(data):
                return
            pending = True
        await line.enter()
        try:
            await reactor.until(line.token, lambda: native.send_datagram(data) or None, pending=pending)
        except BaseException:
            native.cancel_send_datagram()
            raise
        finally:
            line.leave()

    def send_datagram_nowait(self, data: Buffer) -> bool:
        """Sends a datagram if there is room for it now, and says whether there was. Errors as
        `send_datagram`."""
        return self._native.send_datagram_nowait(data)

    async def receive_datagram(self) -> bytes:
        """The next datagram. While no task takes them, `Config.datagram_buffer` bytes are kept, the newest.

        Cancel-safe: a cancelled call has taken none.
        """
        return await self._datagram.run(self._poll_datagram)

    def datagrams(self) -> Arrivals[bytes]:
        """The datagrams that come: `async for` over all; it ends as `accept_uni` does.

        Cancel-safe: a cancelled wait has taken none.
        """
        return Datagrams(self)

    # The connection itself

    @property
    def remote_addr(self) -> tuple[str, int]:
        """Where the peer is, or was last: host and port."""
        return self._native.remote_addr

    @property
    def local_addr(self) -> tuple[str, int]:
        """Where this side is: host and port, as exactly as the system says."""
        return self._native.local_addr

    @property
    def alpn(self) -> str | None:
        """The application protocol that was agreed on (RFC 7301)."""
        name = self._native.alpn
        return None if name is None else name.decode(errors="backslashreplace")

    @property
    def server_name(self) -> str | None:
        """On a server: the host name that the client asked for (RFC 6066 §3)."""
        return self._native.server_name

    @property
    def peer_certificates(self) -> list[bytes]:
        """The peer's certificates in DER, its own first. Empty when it has shown none."""
        return self._native.peer_certificates

    @property
    def url(self) -> str | None:
        """Of a WebTransport session, None for a plain connection."""
        return self._native.url

    @property
    def is_early(self) -> bool:
        """Whether the handshake is still under way, so that what is sent now is early data. Of what was
        received tells `ReceiveStream.is_early`; a datagram does not."""
        return self._native.is_early

    async def early_data_accepted(self) -> bool:
        """Waits for the end of the handshake: whether the server took the early data. False without early
        data.

        When it did not, streams opened before raise EarlyDataRejected, and have to be made again.

        Cancel-safe: it only waits.
        """
        return await self._early.run(self._native.early_data_accepted)

    def stats(self) -> Stats:
        """What the connection has done so far."""
        return from_figures(Stats, self._native.stats())

    def paths(self) -> list[Path]:
        """The network paths of the connection."""
        return [from_figures(Path, figures) for figures in self._native.paths()]

    def rebind(self, local_addr: tuple[str, int]) -> None:
        """Goes on from another local address (RFC 9000 §9), on a UDP socket of its own; only on the side that
        connected. Other connections stay where they are; those that shared the old socket take
        other connection IDs and send a PING.

        Args:
            local_addr: an IP address of this machine, and a port or 0.

        Raises:
            ValueError: on a server, or for an address of the other family.
            OSError: the address cannot be had.
        """
        self._native.rebind(local_addr)

    def ping(self) -> None:
        """Sends a PING frame now, which the peer acknowledges (RFC 9000 §19.2). Nothing happens once it is
        over."""
        self._native.ping()

    def update_keys(self) -> None:
        """Changes the keys of what is sent (RFC 9001 §6). Nothing happens while an earlier change is under
        way."""
        self._native.update_keys()

    def export_keying_material(self, label: bytes, context: bytes, length: int) -> bytes:
        """Bytes that both sides, and no others, derive from the handshake (RFC 8446 §7.5).

        Raises:
            ValueError: before the end of the handshake, or for more bytes than there are.
        """
        return self._native.export_keying_material(label, context, length)

    # Its end

    async def closed(self) -> ConnectionClosed:
        """Waits until the connection is over and gives the reason: a value, not raised.

        Where operations raise TlsError (a server refuses a client's certificate after the client has
        completed its side of the handshake) this is `by` transport, with the code of RFC 9001 §4.8.

        Cancel-safe: it only waits.
        """
        while not self._over:
            future = self._reactor.loop.create_future()
            self._ends.add(future)
            try:
                with self._reactor.holding(self):
                    await future
            finally:
                self._ends.discard(future)
        return _as_closed(self._native.closed())

    async def close(self, code: int = 0, reason: str = "", *, drain: float = DRAIN) -> None:
        """Closes the connection, after the peer has acknowledged what was written to finished streams.

        A second call changes nothing but that it may end the first one's wait. Peers learn of it at once, or,
        when that packet is lost, at their idle timeout. On the side that connected the UDP socket is closed
        when no other connection is on it and late packets cannot come any more: some round trips later (RFC
        9000 §10.2).

        Args:
            code: what the peer's `ConnectionClosed.code` will be, 0 to 2⁶² − 1 (WebTransport: to 2³² − 1).
            reason: the text with it; what does not fit into a packet is cut.
            drain: seconds to wait for acknowledgements at most. 0: close now, and lose what has not arrived.

        Raises:
            ValueError: the code or `drain` is out of its range.

        Cancel-safe: cancelling it closes at once, without waiting.
        """
        check_close(code, drain)
        self._close_called = True
        try:
            if drain and not self._over:
                await self._settle(drain)
        finally:
            self._native.close(code, reason.encode())
        await self.closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(drain=DRAIN if kind is None else 0)

    def __del__(self) -> None:
        # The attribute is missing when __init__ was given something wrong.
        if getattr(self, "_over", True) or self._close_called or _reactor.abandoned():
            return
        if not self._reactor.dispose(self._native):
            return
        LOG.warning("%s port %d: dropped without close()", *self.remote_addr)
        warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)

    # For the other modules

    def _poll_uni(self) -> ReceiveStream | None:
        native = self._native.accept_uni()
        return None if native is None else ReceiveStream(native, self)

    def _poll_bi(self) -> BiStream | None:
        natives = self._native.accept_bi()
        return None if natives is None else self._both(natives)

    def _poll_datagram(self) -> bytes | None:
        arrived = self._arrived
        if not arrived:
            batch = self._native.datagrams(BATCH)
            if batch is None:
                return None
            arrived.extend(batch)
        return arrived.popleft()

    def _both(self, natives: tuple[_native.SendStream, _native.ReceiveStream]) -> BiStream:
        return BiStream(SendStream(natives[0], self), ReceiveStream(natives[1], self))

    def _flushed(self, stream: SendStream) -> None:
        """`stream` has handed over everything, or never will."""
        self._unflushed.discard(stream)
        if self._all_flushed is not None and not self._unflushed:
            self._all_flushed.set()

    async def _settle(self, limit: float) -> None:
        """Waits, `limit` seconds at most, until the peer has acknowledged what was finished."""
        with contextlib.suppress(TimeoutError, QuicError):
            async with asyncio.timeout(limit):
                self._reactor.flush()
                while self._unflushed and not self._over:
                    self._all_flushed = self._all_flushed or asyncio.Event()
                    self._all_flushed.clear()
                    with self._reactor.holding(self):
                        await self._all_flushed.wait()
                drained = self._native.drain()
                await self._reactor.until(drained.token, lambda: drained.poll() or None)

    def _end(self) -> None:
        """The connection is over."""
        self._over = True
        self._unflushed.clear()
        if self._all_flushed is not None:
            self._all_flushed.set()
        for future in self._ends:
            if not future.done():
                future.set_result(None)


class _Watch:
    """Sees the end of a connection, also of one whose `Connection` is gone, and lets the loop go then."""

    __slots__ = ("_native", "_owner", "_reactor")

    def __init__(self, owner: Connection) -> None:
        self._native = owner._native
        self._reactor = owner._reactor
        self._owner = weakref.ref(owner)
        self._reactor.attach()
        self()

    def __call__(self) -> None:
        try:
            end, peer = self._native.closed(), self._native.remote_addr
        except RuntimeError:
            if _reactor.abandoned():
                raise
            # Another thread is using it at this moment; its token does not come twice.
            self._reactor.loop.call_soon(self)
            return
        if end is None:
            self._reactor.watchers[self._native.t_closed] = self
            return
        owner = self._owner()
        if owner is not None:
            owner._end()
        self._reactor.release()
        # The program's handlers may raise, so they come last.
        log(peer, "%s port %d: %s", _as_closed(end))


class Connecting(Protocol):
    """A connection that is under way."""

    @property
    def token(self) -> int: ...
    @property
    def poll(self) -> Callable[[], _native.Connection | None]: ...
    def cancel(self) -> None: ...


async def established(reactor: _reactor.Reactor, connecting: Connecting) -> Connection:
    """The connection that is under way. Cancelling it gives it up."""
    reactor.attach()
    try:
        native = await reactor.until(connecting.token, connecting.poll)
        log(native.remote_addr, "%s port %d: connected")
        return Connection(native, reactor)
    except BaseException:
        connecting.cancel()
        raise
    finally:
        reactor.release()


def log(peer: tuple[str, int], text: str, *more: object) -> None:
    """Tells of a connection to `peer`, with whose host and port `text` begins."""
    LOG.info(text, *peer, *more)


def check_close(code: int, drain: float) -> None:
    """Refuses what `close()` cannot do, before it waits for anything."""
    if not 0 <= code <= CODE_MAX:
        raise ValueError(f"an error code is 0 to 2⁶² − 1, not {code}")
    if not drain >= 0:
        raise ValueError(f"drain is 0 or more seconds, not {drain}")


def _as_closed(error: Exception | None) -> ConnectionClosed:
    if isinstance(error, TlsError):
        return ConnectionClosed(CRYPTO_ERROR + (error.alert or 0), error.text, "transport")
    return cast("ConnectionClosed", error)


BATCH = 256
"""Datagrams that are taken from the native half at once."""
CODE_MAX = 2**62 - 1
"""RFC 9000 §16."""
CRYPTO_ERROR = 0x100
"""RFC 9000 §20.1."""
