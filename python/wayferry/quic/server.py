"""Listening: raw QUIC connections, and WebTransport sessions by their path, on one port."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
import weakref
from collections import deque
from typing import TYPE_CHECKING, Literal

from wayferry.quic import _native, _reactor
from wayferry.quic._accepting import clean
from wayferry.quic._coming import Coming
from wayferry.quic._resolve import check_port, resolve
from wayferry.quic.config import Config
from wayferry.quic.connection import DRAIN, LOG, Connection, check_close, log
from wayferry.quic.errors import ConnectionClosed
from wayferry.quic.webtransport import Handler, Request, check_path, handle

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from wayferry.quic.tls import ServerTls

__all__ = ["Handler", "Retry", "Serve", "Server", "serve"]

Retry = Literal["auto", "always", "never"]
"""When clients must prove their address, see `serve`."""


class Serve(Coming["Server"]):
    """A server to come: `await` it, or use it in `async with`, which closes the server at its end.

    Left by an exception, `async with` closes at once (`drain=0`); otherwise as `Server.close()` does.
    """

    __slots__ = ()


def serve(
    host: str, port: int, *, tls: ServerTls, config: Config | None = None, retry: Retry = "auto"
) -> Serve:
    """Listens for QUIC connections: `async with serve(…) as server`, or `server = await serve(…)`.

    Args:
        host: the IP address to listen on, or a name for it. `"::"` is every address, of IPv4 too where the
            system permits.
        port: 0 to 65535; 0 lets the system choose, see `Server.local_addr`.
        tls: who the server is, and the application protocols that it speaks.
        config: the settings of the server and its connections.
        retry: when clients must prove their address first, which costs them a round trip (RFC 9000 §8.1.2):
            `auto` when many handshakes are under way, `always`, or `never`.

    Raises:
        ValueError: an argument is out of its range.
        OSError: the address cannot be had.
        RuntimeError: no event loop of asyncio's runs.

    Cancel-safe: cancelling the wait leaves nothing behind.
    """
    check_port(port, listens=True)
    native_tls, native_config = tls._native, (config or Config())._for_native()

    async def start() -> Server:
        reactor = _reactor.current()
        address = (await resolve(host, port))[0]
        native = _native.listen(reactor.native, address, native_tls, native_config, retry)
        return Server(native, reactor)

    return Serve(start)


class Server:
    """A listening endpoint. Iterating gives the raw connections; WebTransport sessions go to the handlers of
    `route`.

    The iteration ends when `close()` is called; OSError says that the system has failed the UDP socket, so
    that no more clients can come. Connections wait here until they are taken, at most 128; then newcomers are
    refused. A server that is dropped while open is closed, with a ResourceWarning.
    """

    __slots__ = (
        "__weakref__",
        "_arrival",
        "_backlog",
        "_connections",
        "_error",
        "_handlers",
        "_native",
        "_reactor",
        "_routes",
        "_taking",
        "_tasks",
    )

    def __init__(self, native: _native.Listener, reactor: _reactor.Reactor) -> None:
        self._native = native
        self._reactor = reactor
        self._routes: dict[str, Handler] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._backlog: deque[_native.Connection] = deque()
        self._arrival = asyncio.Event()
        """Set when there may be something to take, or the end."""
        self._taking = asyncio.Lock()
        self._error: BaseException | None = None
        """Why no more connections come."""
        reactor.attach()
        reactor.watchers[native.token] = _Watch(self)
        self._accept()

    def __repr__(self) -> str:
        host, port = self.local_addr
        return f"<Server {host} port {port}{', closed' if self._error is not None else ''}>"

    @property
    def local_addr(self) -> tuple[str, int]:
        """Where it listens: host and port."""
        return self._native.local_addr

    def route(self, path: str, handler: Handler) -> None:
        """Has `handler` answer the WebTransport requests for `path`; its query does not matter. A second
        handler for the same path replaces the first. Requests for other paths are rejected with 404.

        Each request's handler is a task of the server: at most 1024 at once, beyond which requests are
        rejected with 503; cancelled by `close()`; an exception goes to the loop's exception handler.

        With the first route the server offers HTTP/3 (ALPN `h3`) beside the protocols of its `ServerTls`.
        Without any, a client that speaks it is a connection like others.

        Raises:
            ValueError: the path does not begin with `/`.
        """
        check_path(path)
        self._native.set_web(True)
        self._routes[path] = handler

    def reload_tls(self, tls: ServerTls) -> None:
        """Uses another certificate for the connections that come from now on."""
        self._native.reload_tls(tls._native)

    def stats(self) -> dict[str, int]:
        """What the server has done so far: counts by name."""
        return self._native.stats()

    def failures(self) -> list[str]:
        """The last few handshakes that failed, for people."""
        return self._native.failures()

    def __aiter__(self) -> Server:
        return self

    async def __anext__(self) -> Connection:
        """The next connection. Cancel-safe: a cancelled wait has taken none."""
        async with self._taking:
            while not self._backlog:
                if self._error is not None:
                    raise self._end_of_iteration()
                self._arrival.clear()
                with self._reactor.holding(self):
                    await self._arrival.wait()
            native = self._backlog.popleft()
            log(native.remote_addr, "%s port %d: accepted")
            connection = Connection(native, self._reactor)
        self._connections.add(connection)
        if len(self._backlog) == BACKLOG - 1:
            self._accept()
        return connection

    async def close(self, code: int = 0, reason: str = "", *, drain: float = DRAIN) -> None:
        """Stops listening, waits for acknowledgements, and then cancels the handlers and closes all
        connections. A handler may call it: the one that does is not cancelled. A second call may end the
        first one's wait.

        Args:
            code: what the peers' `ConnectionClosed.code` will be, 0 to 2⁶² − 1.
            reason: the text with it.
            drain: seconds to wait, first until the peers have acknowledged what was finished, then until they
                were told of the end. 0: close now. Handlers that do not end when they are cancelled may take
                a second longer, no matter what `drain` is; then they are left alone.

        The port is free again when late packets cannot come any more: some round trips later (RFC 9000
        §10.2).

        Raises:
            ValueError: the code or `drain` is out of its range.

        Cancel-safe: cancelling it closes at once, without waiting.
        """
        check_close(code, drain)
        deadline = self._reactor.loop.time() + drain
        self._stop(ConnectionClosed(0, "", "local"))
        self._native.stop()
        untaken, self._backlog = self._backlog, deque()
        try:
            if drain and self._connections:
                await asyncio.gather(*(connection._settle(drain) for connection in self._connections))
        finally:
            cancelled = self._cancel_handlers()
            self._native.close(code, reason.encode())
            untaken.clear()
        if cancelled:
            await asyncio.wait(cancelled, timeout=GRACE)
        if drain:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    idle = self._native.idle()
                    await self._reactor.until(idle.token, lambda: idle.poll() or None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(drain=DRAIN if kind is None else 0)

    def __del__(self) -> None:
        if getattr(self, "_error", self) is not None or _reactor.abandoned():
            return
        self._reactor.dispose(self._native)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._reactor.loop.call_soon_threadsafe(_leave, self._reactor, self._native.token)
        warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)

    def _accept(self) -> None:
        """Takes what has come, until nothing more has or the backlog is full; called when the token is
        ready."""
        for _ in range(TURN):
            if self._error is not None or self._is_full():
                return
            try:
                arrived = self._native.poll_accept()
            except ConnectionClosed as error:
                self._stop(error)
                return
            except OSError as error:
                # Who has routes alone does not iterate.
                LOG.warning("%r: no more clients can come: %s", self, error)
                self._stop(error)
                return
            if arrived is None:
                return
            self._take(arrived)
        self._reactor.loop.call_soon(self._accept)

    def _is_full(self) -> bool:
        """Whether to leave newcomers to the native half, which refuses them when it has too many. Not while
        sessions may come the same way: then what is too much is closed here."""
        return len(self._backlog) >= BACKLOG and not self._routes

    def _take(self, arrived: _native.Connection | _native.WebRequest) -> None:
        if isinstance(arrived, _native.WebRequest):
            self._dispatch(arrived)
        elif len(self._backlog) < BACKLOG:
            self._backlog.append(arrived)
            self._arrival.set()
        else:
            arrived.close(0, b"too many connections wait")

    def _dispatch(self, native: _native.WebRequest) -> None:
        handler = self._routes.get(native.path.partition("?")[0])
        if handler is None:
            native.reject(404)
        elif len(self._tasks) >= HANDLERS:
            native.reject(503)
        else:
            request = Request(native, self._reactor, self._connections.add)
            task = self._reactor.loop.create_task(handle(handler, request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _stop(self, error: BaseException) -> None:
        """No more connections come. Once."""
        if self._error is not None:
            return
        self._error = error
        self._arrival.set()
        _leave(self._reactor, self._native.token)

    def _cancel_handlers(self) -> set[asyncio.Task[None]]:
        """Cancels the handlers, once each, but for one that is closing the server; those that are to end."""
        handlers = {task for task in self._tasks if task is not asyncio.current_task()}
        for task in handlers:
            if not task.cancelling():
                task.cancel()
        return handlers

    def _end_of_iteration(self) -> BaseException:
        error = self._error
        if error is None or (isinstance(error, ConnectionClosed) and clean(error)):
            return StopAsyncIteration()
        # Each `raise` adds its place to the object.
        return type(error)(*error.args)


class _Watch:
    """Tells a server that something came, without keeping it alive."""

    __slots__ = ("_owner", "_reactor", "_token")

    def __init__(self, owner: Server) -> None:
        self._owner = weakref.ref(owner)
        self._reactor = owner._reactor
        self._token = owner._native.token

    def __call__(self) -> None:
        owner = self._owner()
        if owner is not None:
            self._reactor.watchers[self._token] = self
            owner._accept()


def _leave(reactor: _reactor.Reactor, token: int) -> None:
    """A listener is gone."""
    reactor.watchers.pop(token, None)
    reactor.release()


BACKLOG = 128
"""Connections that wait to be taken."""
HANDLERS = 1024
"""Handlers of WebTransport requests at once."""
TURN = 64
"""Connections that are taken in one turn of the loop."""
GRACE = 1.0
"""Seconds that `close()` waits for cancelled handlers."""
