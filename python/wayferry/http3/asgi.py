"""Serving an ASGI application (https://asgi.readthedocs.io) over HTTP/3."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from wayferry.http3._budget import Budget
from wayferry.http3._cycle import Cycle, refuse
from wayferry.http3._lifespan import Lifespan
from wayferry.http3._link import Link
from wayferry.http3._message import Incoming, Outgoing, Section
from wayferry.http3._scope import Malformed, protocol_of, scope_of
from wayferry.http3._sessions import Sessions
from wayferry.http3._socket import Socket
from wayferry.http3.errors import ErrorCode
from wayferry.quic import Config, QuicError, Retry, ServerTls
from wayferry.quic import Server as QuicServer
from wayferry.quic import serve as serve_quic
from wayferry.quic._coming import Coming
from wayferry.quic.connection import DRAIN, check_close

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from wayferry.quic import BiStream, Connection, Handler

__all__ = ["App", "ServeAsgi", "Server", "serve_asgi"]

App: TypeAlias = Callable[
    [dict[str, Any], Callable[[], Awaitable[dict[str, Any]]], Callable[[dict[str, Any]], Awaitable[None]]],
    Awaitable[None],
]
"""An ASGI application of version 3: `app(scope, receive, send)`."""


def serve_asgi(
    app: App,
    host: str,
    port: int,
    *,
    tls: ServerTls,
    config: Config | None = None,
    retry: Retry = "auto",
    root_path: str = "",
) -> ServeAsgi:
    """Serves `app`: `async with serve_asgi(…) as server`, or `server = await serve_asgi(…)`.

    The application sees scopes of the types `http` (with the extension `http.response.trailers`), `websocket`
    (RFC 9220) and `lifespan`. A `receive` reads from the stream and a `send` writes to it, so that a slow
    application holds its client back, and a slow client its application.

    Args:
        app: an ASGI application of version 3, from any framework.
        host, port: as for `wayferry.quic.serve`.
        tls: who the server is. The application protocol is HTTP/3, no matter what it says.
        config: the settings of the server and its connections. `bi_streams` is the number of requests that a
            client may have under way.
        retry: as for `wayferry.quic.serve`.
        root_path: where the application is mounted, for its scopes.

    Raises:
        ValueError: an argument is out of its range.
        TypeError: `app` is no application.
        OSError: the address cannot be had.
        RuntimeError: the application says that it cannot start.

    Cancel-safe: cancelling the wait leaves nothing behind.
    """
    if not callable(app):
        raise TypeError(f"app: an ASGI application is called, unlike {app!r}")
    if not isinstance(tls, ServerTls):
        raise TypeError(f"tls: a ServerTls is required, not {type(tls).__name__}")
    config = config or Config()
    serving = serve_quic(host, port, tls=tls._for_http3(), config=config, retry=retry)

    async def start() -> Server:
        lifespan = Lifespan(app)
        await lifespan.start()
        try:
            server = await serving
        except BaseException:
            with contextlib.suppress(RuntimeError):  # the first error says more
                await lifespan.stop()
            raise
        return Server(app, server, lifespan, config, root_path)

    return ServeAsgi(start)


class ServeAsgi(Coming["Server"]):
    """A server to come: `await` it, or use it in `async with`, which closes the server at its end."""

    __slots__ = ()


class Server:
    """An application that is served, until `close()` or the end of `async with`. At most 1024 clients are
    connected; further ones are sent away."""

    __slots__ = (
        "_app",
        "_closed",
        "_closing",
        "_failure",
        "_lifespan",
        "_links",
        "_requests",
        "_room",
        "_root_path",
        "_server",
        "_sessions",
        "_tasks",
    )

    def __init__(
        self, app: App, server: QuicServer, lifespan: Lifespan, config: Config, root_path: str
    ) -> None:
        self._app = app
        self._server = server
        self._lifespan = lifespan
        self._room = config.bi_streams
        self._sessions = Sessions(config, server._connections.add)
        self._root_path = root_path
        self._links: dict[Link, int] = {}
        """The clients, and the number of the first stream that each has not opened yet."""
        self._tasks: set[asyncio.Task[None]] = set()
        """One for new clients, and one per client."""
        self._requests: set[asyncio.Task[None]] = set()
        self._closing = False
        self._failure: RuntimeError | None = None
        """Why the application did not stop as it should."""
        self._closed = asyncio.Event()
        self._spawn(self._accept(), self._tasks)

    def __repr__(self) -> str:
        host, port = self.local_addr
        return f"<Server https://{host} port {port}{', closed' if self._closing else ''}>"

    @property
    def local_addr(self) -> tuple[str, int]:
        """Where it listens: host and port."""
        return self._server.local_addr

    def route(self, path: str, handler: Handler) -> None:
        """Has `handler` answer the requests for WebTransport sessions on `path`, as
        `wayferry.quic.Server.route` does; the application does not see them.

        The limits are those of requests, not the 1024 handlers of that server: a handler counts among the
        `bi_streams` requests of its client until it returns, further ones wait; and among the 16 384 requests
        of all clients, further ones are rejected (REQUEST_REJECTED), not answered with 503. So is a second
        request for a session on a connection whose first was not refused. `close()` cancels handlers that go
        on after its `drain`.

        A session that was accepted has its connection to itself: requests that the client sends on it later
        are rejected (REQUEST_REJECTED), so that it sends them on another one. Clients that were there before
        the first route do not know of sessions.

        Raises:
            ValueError: the path does not begin with `/`, or the server's `Config` has datagrams off.
        """
        self._sessions.route(path, handler)

    def reload_tls(self, tls: ServerTls) -> None:
        """Uses another certificate for the connections that come from now on."""
        self._server.reload_tls(tls._for_http3())

    def stats(self) -> dict[str, int]:
        """What the server has done so far: counts by name."""
        return self._server.stats()

    async def closed(self) -> None:
        """Waits until `close()` was called and is done, or the server has closed itself as the system has
        failed its UDP socket, which goes to the loop's exception handler. Cancel-safe: it only waits."""
        await self._closed.wait()

    async def close(self, *, drain: float = DRAIN) -> None:
        """Takes no more requests and tells the clients so (GOAWAY), waits for those under way, and closes.

        Args:
            drain: seconds to wait for requests that are under way, and for their answers to arrive; then they
                are cancelled. 0: close now.

        Raises:
            ValueError: `drain` is out of its range.
            RuntimeError: the application says that it failed in stopping, or its lifespan had failed before.

        Cancel-safe: cancelling it closes at once, without waiting.
        """
        check_close(0, drain)
        if self._closing:
            await self._closed.wait()
            if self._failure is not None:
                raise self._failure
            return
        self._closing = True
        self._server._native.stop()
        try:
            await self._end(drain)
        except RuntimeError as error:
            self._failure = error
            raise
        finally:
            # Done already, unless this was cancelled: it does not wait.
            await self._server.close(ErrorCode.NO_ERROR, drain=0)
            self._lifespan.cancel()
            self._closed.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(drain=DRAIN if kind is None else 0)

    async def _end(self, drain: float) -> None:
        """What `close` does when nothing hurries it."""
        deadline = asyncio.get_running_loop().time() + drain
        try:
            if drain:
                await self._finish_requests(drain)
        finally:
            for task in self._requests:
                task.cancel()
        left = max(deadline - asyncio.get_running_loop().time(), 0.0)
        # With it end the tasks that take clients and their streams.
        await self._server.close(ErrorCode.NO_ERROR, drain=left)
        if self._requests:
            await asyncio.wait(self._requests, timeout=GRACE)
        await self._lifespan.stop()

    async def _finish_requests(self, limit: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                for link, first in list(self._links.items()):
                    with contextlib.suppress(QuicError):
                        await link.go_away(first)
                while self._requests:
                    await asyncio.wait(self._requests)

    async def _accept(self) -> None:
        try:
            async for connection in self._server:
                self._admit(connection)
        except OSError as error:
            message = f"wayferry.http3: {self!r} ends, as no more clients can come"
            context = {"message": message, "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            # A program that closes it is told how the application ended.
            with contextlib.suppress(RuntimeError):
                await self.close(drain=0)

    def _admit(self, connection: Connection) -> None:
        if len(self._links) >= CLIENTS:
            connection._close_called = True
            connection._native.close(ErrorCode.EXCESSIVE_LOAD, b"too many clients")
            return
        link = Link(connection, is_server=True, settings=self._sessions.settings)
        # Counted now: many may come before the first task begins.
        self._links[link] = 0
        task = self._spawn(self._serve(link), self._tasks)
        task.add_done_callback(partial(self._leave, link))

    def _leave(self, link: Link, _: object) -> None:
        del self._links[link]

    async def _serve(self, link: Link) -> None:
        """Takes one client's requests, as many at a time as it may have under way."""
        room, budget = asyncio.Semaphore(self._room), Budget()
        link.start()
        requests: set[asyncio.Task[None]] = set()
        # How clients leave is theirs to choose.
        with contextlib.suppress(QuicError):
            async for stream in link.accept():
                if self._closing or len(self._requests) >= REQUESTS:
                    stream.reset(ErrorCode.REQUEST_REJECTED)
                    stream.stop(ErrorCode.REQUEST_REJECTED)
                    continue
                self._links[link] = stream.id + 4
                # An application goes on with a request that the client has taken back.
                await room.acquire()
                request = self._spawn(self._answer(link, stream, budget), self._requests)
                requests.add(request)
                request.add_done_callback(requests.discard)
                request.add_done_callback(lambda _: room.release())
        # Until then its place is no other's.
        while requests:
            await asyncio.wait(requests)
        if link.is_taken:
            await link.connection.closed()

    async def _answer(self, link: Link, stream: BiStream, budget: Budget) -> None:
        incoming = Incoming(stream.receive, link, "request")
        outgoing = Outgoing(stream.send, link)
        try:
            section = await incoming.section(PATIENCE)
            protocol = protocol_of(section[0], incoming.malformed)
            if protocol == "webtransport" and self._sessions.settings:
                async with asyncio.timeout(PATIENCE):
                    asked = await self._sessions.asked(link, incoming, outgoing, section)
            elif protocol not in ("http", "websocket"):
                # RFC 9220 §3.
                await refuse(incoming, outgoing, 501)
                return
            else:
                scope = self._scope(link, section, incoming.malformed)
                incoming.expect_length(section[1])
        except TimeoutError:
            outgoing.reset(ErrorCode.REQUEST_INCOMPLETE)
            incoming.stop(ErrorCode.REQUEST_INCOMPLETE)
            return
        except asyncio.CancelledError:
            # No application has looked at it.
            outgoing.reset(ErrorCode.REQUEST_REJECTED)
            incoming.stop(ErrorCode.REQUEST_REJECTED)
            raise
        except QuicError as error:
            outgoing.reset(getattr(error, "code", ErrorCode.REQUEST_CANCELLED))
            return
        if protocol == "webtransport":
            await self._sessions.answer(asked)
            return
        if protocol == "websocket":
            await Socket(incoming, outgoing, budget.share()).run(self._app, scope)
            return
        incoming.look()
        cycle = Cycle(incoming, outgoing, scope["method"], section[1])
        await cycle.run(self._app, scope)

    def _scope(self, link: Link, section: Section, malformed: Malformed) -> dict[str, Any]:
        """What ASGI calls a connection: one request."""
        return {
            **scope_of(section, malformed),
            "root_path": self._root_path,
            "client": link.connection.remote_addr,
            "server": self.local_addr,
            "state": self._lifespan.state.copy(),
        }

    def _spawn(self, work: Coroutine[Any, Any, None], group: set[asyncio.Task[None]]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        group.add(task)
        task.add_done_callback(group.discard)
        return task


PATIENCE = 10.0
"""Seconds that the headers of a request may take."""
GRACE = 1.0
"""Seconds that requests which were cancelled may take before the application is told to stop."""
REQUESTS = 16384
"""Requests of all clients at once; a further one is rejected, and may be sent again (RFC 9114 §8.1)."""
CLIENTS = 1024
"""Connections at once; a further one is closed."""
