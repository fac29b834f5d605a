"""WebTransport over HTTP/3 (RFC 9220, draft-ietf-webtrans-http3): the same streams and datagrams, with
browsers too.

A session is a `Connection` of its own QUIC connection; error codes have 32 bits. On a server `Server.route`
says who answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias
from urllib.parse import urlsplit

from wayferry.quic import _native, _reactor
from wayferry.quic._resolve import check_port, resolve
from wayferry.quic.client import Connect
from wayferry.quic.config import Config
from wayferry.quic.connection import Connecting, Connection, established

if TYPE_CHECKING:
    from wayferry.quic.tls import ClientTls

__all__ = ["Handler", "Request", "check_path", "connect", "handle"]


def connect(
    url: str,
    *,
    tls: ClientTls,
    config: Config | None = None,
    local_addr: tuple[str, int] | None = None,
    timeout: float | None = None,
) -> Connect:
    """Opens a WebTransport session: `async with connect(…) as session`, or `session = await connect(…)`.

    Args:
        url: `https://host[:port]/path`; the port is 443 when not said.
        tls: whom to trust. The application protocol is HTTP/3, no matter what it says.
        config: the settings of the connection.
        local_addr: the IP address and port (0: any) to send from, as for `wayferry.quic.connect`.
        timeout: seconds for all of it. `Config.handshake_timeout` bounds the handshake, the session's
            included.

    Raises:
        ValueError: an argument is out of its range, or the URL is none.
        WebTransportRejected: the server answered with another status than success.
        TlsError, ConnectionClosed, TimeoutError, OSError: as `wayferry.quic.connect`.
    """
    host, port = _split(url)
    native_tls, native_config = tls._for_native(None), (config or Config())._for_native()

    async def start() -> Connection:
        reactor = _reactor.current()
        async with asyncio.timeout(timeout):
            addresses = await resolve(host, port)
            connecting = _native.web_connect(
                reactor.native, addresses, host, local_addr, native_tls, native_config, url
            )
            return await established(reactor, connecting)

    return Connect(start)


class Asked(Protocol):
    """A request as it came in: the native half's, or one on a connection of `wayferry.http3`."""

    @property
    def path(self) -> str: ...
    @property
    def authority(self) -> str: ...
    @property
    def headers(self) -> list[tuple[str, str]]: ...
    @property
    def remote_addr(self) -> tuple[str, int]: ...
    def accept(self) -> Connecting: ...
    def reject(self, status: int) -> None: ...


class Request:
    """A client's wish for a session, which a handler of `Server.route` answers with `accept()` or `reject()`.

    A handler that returns without an answer rejects it with 404, one that fails with 500.
    """

    __slots__ = ("_adopt", "_answered", "_native", "_reactor")

    def __init__(self, native: Asked, reactor: _reactor.Reactor, adopt: Callable[[Connection], None]) -> None:
        self._native = native
        self._reactor = reactor
        self._adopt = adopt
        self._answered = False

    def __repr__(self) -> str:
        return f"<Request {self.path!r}>"

    @property
    def path(self) -> str:
        """The path that is asked for, with the query."""
        return self._native.path

    @property
    def authority(self) -> str:
        """The host, and the port if the client said it, that is asked for. The client chose it."""
        return self._native.authority

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The other fields of the request, names in lower case. The client chose them."""
        return self._native.headers

    @property
    def origin(self) -> str | None:
        """Where the page comes from that asks: `https://host[:port]`, or `null`. A browser fills it in, and
        no page can change it; other clients may leave it out, which is None, or invent one."""
        return next((value for name, value in self.headers if name == "origin"), None)

    @property
    def remote_addr(self) -> tuple[str, int]:
        """Where the client is: host and port."""
        return self._native.remote_addr

    async def accept(self) -> Connection:
        """Answers with success, and gives the session.

        Raises:
            ConnectionClosed: the client is gone.
            ValueError: it was answered before.

        Cancel-safe: cancelling it ends the session.
        """
        self._answer()
        session = await established(self._reactor, self._native.accept())
        self._adopt(session)
        return session

    def reject(self, status: int = 404) -> None:
        """Answers with an HTTP status of failure.

        Args:
            status: 400 to 599, else ValueError.

        Raises:
            ValueError: it was answered before.
        """
        if not 400 <= status <= 599:
            raise ValueError(f"a rejection's status is 400 to 599, not {status}")
        self._answer()
        self._native.reject(status)

    def _answer(self) -> None:
        if self._answered:
            raise ValueError("the request was answered before")
        self._answered = True


Handler: TypeAlias = Callable[[Request], Awaitable[None]]
"""What answers the requests for a path, see `Server.route`."""


def check_path(path: str) -> None:
    """Refuses what no request can be for."""
    if not path.startswith("/"):
        raise ValueError(f"a path begins with /, unlike {path!r}")


async def handle(handler: Handler, request: Request) -> None:
    """Has `handler` answer; what it leaves unanswered is rejected."""
    status = 503
    try:
        await handler(request)
        status = 404
    except Exception as error:
        status = 500
        message = f"wayferry.quic: the handler of {request!r} failed"
        asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
    finally:
        if not request._answered:
            request.reject(status)


def _split(url: str) -> tuple[str, int]:
    """Host and port of a URL for WebTransport."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise ValueError(f"a WebTransport URL is https://host[:port]/path, not {url!r}")
    port = 443 if parts.port is None else parts.port
    check_port(port)
    return parts.hostname, port
