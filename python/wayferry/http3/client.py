"""Asking an HTTP/3 server: one request, or many on one connection."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import AsyncIterable, Callable, Coroutine
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from wayferry import __version__
from wayferry.http3 import _url
from wayferry.http3._link import Link
from wayferry.http3.errors import ErrorCode, RequestStopped
from wayferry.http3.exchange import Exchange, Opening
from wayferry.http3.headers import Fields, HeaderInput, encoded
from wayferry.http3.response import Response
from wayferry.quic import ClientTls, Config, ConnectionClosed, _native, _reactor
from wayferry.quic._coming import Coming
from wayferry.quic._resolve import resolve
from wayferry.quic.connection import check_close, established

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from typing_extensions import Buffer

    from wayferry.quic import Connection

__all__ = ["Client", "Connect", "Content", "connect", "get", "request"]

Content: TypeAlias = "Buffer | AsyncIterable[bytes]"
"""The body of a request: bytes, or pieces that come one after the other."""

LIMIT = 64 << 20
"""Bytes of an answer's body that are taken when the caller does not say."""


async def get(
    url: str,
    *,
    headers: HeaderInput = (),
    tls: ClientTls | None = None,
    config: Config | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 (of all that a request needs, as httpx has it)
    limit: int = LIMIT,
) -> Response:
    """`request("GET", url)`: what is at `url`, on a connection for this one request."""
    return await request("GET", url, headers=headers, tls=tls, config=config, timeout=timeout, limit=limit)


async def request(
    method: str,
    url: str,
    *,
    headers: HeaderInput = (),
    content: Content = b"",
    tls: ClientTls | None = None,
    config: Config | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 (of all that a request needs, as httpx has it)
    limit: int = LIMIT,
) -> Response:
    """Sends a request on a connection of its own, and gives the answer. `connect` is for more than one.

    Args:
        method: as `GET`.
        url: `https://host[:port]/path?query`. Redirects are answers as others.
        headers: fields for the request: a mapping or pairs.
        content: the body: bytes, or an asynchronous iterable of them.
        tls: whom to trust; the operating system's authorities when None.
        config: the settings of the connection.
        timeout: seconds for all of it. None: as long as the server says that it is there; one that says
            nothing for `Config.idle_timeout` is given up.
        limit: bytes of the answer's body, at most.

    Raises:
        ValueError, TypeError: an argument is wrong; the message says which and why.
        TooLarge: the body has more than `limit` bytes.
        ConnectionClosed, TlsError, TimeoutError, OSError: as `wayferry.quic.connect`.
        ProtocolError, RequestReset, GoingAway: the server gave no whole answer.

    Cancel-safe: cancelling it gives the request up.
    """
    parts = _url.split(url)
    check_timeout(timeout)
    async with asyncio.timeout(timeout):
        async with Connect(_starter(parts, tls, config, None)) as client:
            return await client.request(method, parts.target, headers=headers, content=content, limit=limit)


def connect(
    url: str,
    *,
    tls: ClientTls | None = None,
    config: Config | None = None,
    local_addr: tuple[str, int] | None = None,
    timeout: float | None = None,
) -> Connect:
    """Connects to a server for any number of requests: `async with connect(…) as client`.

    Args:
        url: `https://host[:port]`; the port is 443 when not said.
        tls: whom to trust; the operating system's authorities when None. The application protocol is HTTP/3,
            no matter what it says.
        config: the settings of the connection.
        local_addr: the IP address and port (0: any) to send from, as for `wayferry.quic.connect`.
        timeout: seconds for the connection to be made.

    Raises:
        ValueError: an argument is out of its range, or the URL is none of HTTP/3's, or has a path.
        TlsError, ConnectionClosed, TimeoutError, OSError: as `wayferry.quic.connect`.
    """
    parts = _url.split(url)
    if parts.target != "/":
        raise ValueError(f"a connection is to a host: {parts.target!r} belongs into the requests on it")
    return Connect(_starter(parts, tls, config, local_addr, timeout))


class Connect(Coming["Client"]):
    """A client to come: `await` it, or use it in `async with`, which closes the connection at its end.

    Cancel-safe: cancelling the wait gives the connection up.
    """

    __slots__ = ()


class Client:
    """A connection to an HTTP/3 server, from `connect()`. Requests run side by side, as many as the server
    permits; further ones wait.

    It belongs to the event loop that it was made on. One that is dropped while open is closed, with a
    ResourceWarning.
    """

    __slots__ = ("__weakref__", "_authority", "_closed", "_link")

    def __init__(self, connection: Connection, authority: str) -> None:
        self._authority = authority.encode()
        self._closed = False
        self._link = Link(connection, is_server=False)
        self._link.start()

    def __repr__(self) -> str:
        return f"<Client https://{self._authority.decode()}{', closed' if self._closed else ''}>"

    @property
    def connection(self) -> Connection:
        """The QUIC connection, for what it knows: addresses, certificates, `stats()`. Its streams are
        HTTP/3's."""
        return self._link.connection

    async def get(self, target: str, *, headers: HeaderInput = (), limit: int = LIMIT) -> Response:
        """`request("GET", target)`."""
        return await self.request("GET", target, headers=headers, limit=limit)

    async def request(
        self,
        method: str,
        target: str,
        *,
        headers: HeaderInput = (),
        content: Content = b"",
        limit: int = LIMIT,
    ) -> Response:
        """Sends a request, and gives the answer.

        Args:
            method: as `GET`.
            target: the path, with the query: `/search?q=word`.
            headers: fields for the request: a mapping or pairs.
            content: the body: bytes, or an asynchronous iterable of them.
            limit: bytes of the answer's body, at most.

        Raises:
            ValueError, TypeError: an argument is wrong; the message says which and why.
            TooLarge: the body has more than `limit` bytes.
            GoingAway: the server takes no more requests on this connection.
            ProtocolError, RequestReset, ConnectionClosed: the server gave no whole answer.

        Cancel-safe: cancelling it gives the request up.
        """
        if not isinstance(limit, int):
            raise TypeError(f"limit: a number of bytes is required, not {type(limit).__name__}")
        if isinstance(content, AsyncIterable):
            async with self.stream(method, target, headers=headers, content=None) as exchange:
                return await _both(exchange, content, limit)
        body = _checked(content)
        if len(body) > AT_ONCE:
            async with self.stream(method, target, headers=headers, content=None) as exchange:
                return await _both(exchange, body, limit)
        async with self.stream(method, target, headers=headers, content=body) as exchange:
            return await _whole(exchange, limit)

    def stream(
        self, method: str, target: str, *, headers: HeaderInput = (), content: Buffer | None = b""
    ) -> Opening:
        """Begins a request: `async with client.stream("GET", "/big") as exchange`, for bodies that are large
        or that flow both ways.

        Args:
            method, target, headers: as for `request`.
            content: the body. None: the program sends it, with `Exchange.write` and `Exchange.finish`.

        Raises:
            as `request`.
        """
        fields = self._fields(method, target, headers)
        body = None if content is None else _checked(content)

        async def start() -> Exchange:
            link = self._link
            try:
                stream = await link.open()
            except ConnectionClosed as closed:
                raise link.why(closed) from None
            exchange = Exchange(stream, link, method.upper())
            try:
                await exchange._begin(fields, body)
            except BaseException:
                exchange.cancel()
                raise
            return exchange

        return Opening(start)

    async def close(self, code: int = ErrorCode.NO_ERROR, reason: str = "") -> None:
        """Closes the connection at once; requests that are under way are lost.

        Cancel-safe: cancelling it closes, too.
        """
        check_close(code, 0)
        self._closed = True
        await self._link.connection.close(code, reason, drain=0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        # The attribute is missing when __init__ was given something wrong.
        link = getattr(self, "_link", None)
        if link is None or self._closed or link.connection._over or _reactor.abandoned():
            return
        if link.connection._reactor.dispose(link.connection._native):
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)

    def _fields(self, method: str, target: str, headers: HeaderInput) -> Fields:
        _url.check_target(target)
        if not isinstance(method, str) or not method.isascii() or not method.isalpha():
            raise ValueError(f"a method is a word as GET, not {method!r}")
        method = method.upper()
        if method == "CONNECT":
            raise ValueError("CONNECT is for proxies and WebSocket, which this client does not do")
        fields = [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", self._authority),
            (b":path", target.encode()),
        ]
        more = encoded(headers)
        for name, value in more:
            if name == b"host":
                fields[2] = (b":authority", value)
        if not any(name == b"user-agent" for name, _ in more):
            fields.append(USER_AGENT)
        fields += [field for field in more if field[0] != b"host"]
        return fields


def _starter(
    parts: _url.Url,
    tls: ClientTls | None,
    config: Config | None,
    local_addr: tuple[str, int] | None,
    timeout: float | None = None,
) -> Callable[[], Coroutine[Any, Any, Client]]:
    """What makes the connection."""
    if tls is not None and not isinstance(tls, ClientTls):
        raise TypeError(f"tls: a ClientTls is required, not {type(tls).__name__}")
    check_timeout(timeout)
    native_tls = (_trusting() if tls is None else tls)._for_http3()
    native_config = (config or Config())._for_native()

    async def start() -> Client:
        reactor = _reactor.current()
        async with asyncio.timeout(timeout):
            addresses = await resolve(parts.host, parts.port)
            connecting = _native.connect(
                reactor.native, addresses, parts.host, local_addr, native_tls, native_config, False
            )
            return Client(await established(reactor, connecting), parts.authority)

    return start


def check_timeout(timeout: object) -> None:
    """Refuses what is no time."""
    if timeout is not None and not isinstance(timeout, int | float):
        raise TypeError(f"timeout: a number of seconds or None is required, not {type(timeout).__name__}")


@cache
def _trusting() -> ClientTls:
    """Trust in the operating system's authorities, which takes a while to read."""
    return ClientTls()


def _checked(content: object) -> memoryview:
    """The bytes of a body; TypeError says what would be one."""
    if isinstance(content, str):
        raise TypeError("content: a body is bytes, not str; text.encode() gives some")
    try:
        return memoryview(content).cast("B")  # type: ignore[arg-type]  # it is looked at here
    except TypeError:
        kind = type(content).__name__
        raise TypeError(f"content: a body is bytes or an asynchronous iterable of them, not {kind}") from None


async def _whole(exchange: Exchange, limit: int) -> Response:
    head = await exchange.response()
    content = await exchange.read(limit)
    return Response(head.status_code, head.headers, content, exchange.trailers)


async def _both(exchange: Exchange, content: Buffer | AsyncIterable[bytes], limit: int) -> Response:
    """Sends the body and takes the answer at once, as a server may answer before it has read everything."""
    sending = asyncio.create_task(_send(exchange, content))
    receiving = asyncio.create_task(_whole(exchange, limit))
    try:
        await asyncio.wait((sending, receiving), return_when=asyncio.FIRST_COMPLETED)
        if not receiving.done():
            # The program's own error, if there is one.
            await sending
        return await receiving
    finally:
        for task in (sending, receiving):
            task.cancel()
        await asyncio.gather(sending, receiving, return_exceptions=True)


async def _send(exchange: Exchange, content: Buffer | AsyncIterable[bytes]) -> None:
    with contextlib.suppress(RequestStopped):
        if isinstance(content, AsyncIterable):
            async for piece in content:
                await exchange.write(_checked(piece))
        else:
            whole = memoryview(content)
            for start in range(0, len(whole), PIECE):
                await exchange.write(whole[start : start + PIECE])
        await exchange.finish()


USER_AGENT = (b"user-agent", b"wayferry/" + __version__.encode())
AT_ONCE = 32 << 10
"""Bytes of a body for which a fresh stream has room, so that to write them waits for nothing."""
PIECE = 256 << 10
"""Bytes of a large body that are given to QUIC at once."""
