"""WebTransport beside HTTP/3: a request for a session takes its connection (draft-ietf-webtrans-http3 §3).

The request is read as others are; when a handler accepts it, the native half takes what the peer opens from
then on, and the session is a `Connection` like those of `wayferry.quic.Server`. Invariant: a connection has
at most one session, or one request for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wayferry.http3._cycle import refuse
from wayferry.http3._scope import host_and_path
from wayferry.http3.errors import ErrorCode
from wayferry.quic.webtransport import Handler, Request, check_path, handle

if TYPE_CHECKING:
    from wayferry.http3._link import Link, Settings
    from wayferry.http3._message import Incoming, Outgoing, Section
    from wayferry.quic import Config, Connection, _native

__all__ = ["Asked", "Sessions"]


class Sessions:
    """Who answers the requests for sessions, by their path."""

    __slots__ = ("_adopt", "_config", "_routes")

    def __init__(self, config: Config, adopt: Callable[[Connection], None]) -> None:
        self._config = config
        self._adopt = adopt
        self._routes: dict[str, Handler] = {}

    @property
    def settings(self) -> Settings:
        """What a client is told; nothing while there are no sessions here."""
        return SETTINGS if self._routes else ()

    def route(self, path: str, handler: Handler) -> None:
        """See `Server.route`."""
        check_path(path)
        if not self._config.datagrams:
            raise ValueError("datagrams: WebTransport needs them, and this server's Config has them off")
        self._routes[path] = handler

    async def asked(self, link: Link, incoming: Incoming, outgoing: Outgoing, section: Section) -> Asked:
        """A request for a session, once the client has said what it can do."""
        authority, path = host_and_path(section, incoming.malformed)
        await link.settled.wait()
        headers = [(name, value) for name, value in section[1] if name != b"host"]
        return Asked(link, incoming, outgoing, path, authority, headers, self._config)

    async def answer(self, asked: Asked) -> None:
        """Has the handler of its path answer it."""
        link = asked.link
        handler = self._routes.get(asked.path.partition("?")[0])
        if link.session_asked:
            # Sent on another connection it is welcome (RFC 9114 §8.1).
            asked.outgoing.reset(ErrorCode.REQUEST_REJECTED)
            asked.incoming.stop(ErrorCode.REQUEST_REJECTED)
        elif handler is None:
            asked.reject(404)
        else:
            link.session_asked = True
            await handle(handler, Request(asked, link.connection._reactor, self._adopt))


class Asked:
    """What `webtransport.Request` wants of a request."""

    __slots__ = ("_config", "authority", "headers", "incoming", "link", "outgoing", "path")

    def __init__(
        self,
        link: Link,
        incoming: Incoming,
        outgoing: Outgoing,
        path: bytes,
        authority: bytes,
        headers: list[tuple[bytes, bytes]],
        config: Config,
    ) -> None:
        self.link = link
        self.incoming = incoming
        self.outgoing = outgoing
        self.path = path.decode("latin-1")
        self.authority = authority.decode("latin-1")
        self.headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        self._config = config

    @property
    def remote_addr(self) -> tuple[str, int]:
        return self.link.connection.remote_addr

    def accept(self) -> Entering:
        """Lets the client in, and gives it the connection."""
        try:
            request = self._request()
        except BaseException:
            # Its client may ask again.
            self.reject(500)
            raise
        self.outgoing.finished = True
        self.link.take()
        return Entering(request.accept(), self.link)

    def reject(self, status: int) -> None:
        """Does not; the connection goes on."""
        self.link.session_asked = False
        self.link.spawn(refuse(self.incoming, self.outgoing, status))

    def _request(self) -> _native.WebRequest:
        return self.link.connection._native.web_request(
            self.outgoing._stream._native,
            self.incoming._stream._native,
            self.incoming._reader,
            self.path,
            self.authority,
            self.headers,
            self._config._for_native(),
        )


class Entering:
    """A session to come, which has the connection already: if it does not come, the connection ends."""

    __slots__ = ("_link", "_native", "poll")

    def __init__(self, native: _native.Connecting, link: Link) -> None:
        self._native = native
        self._link = link
        self.poll = native.poll

    @property
    def token(self) -> int:
        return self._native.token

    def cancel(self) -> None:
        self._native.cancel()
        self._link.end()


SETTINGS: Settings = [
    (0x33, 1),  # RFC 9297 §2.1.1
    (0xFFD277, 1),  # the same in its draft 4, which browsers knew first
    (0xC671706A, 1),  # the sessions of a connection, draft-ietf-webtrans-http3-07 §8.2
    (0x2B603742, 1),  # that there are any, draft 2
    (0x2B603743, 1),  # the sessions of a connection, draft 2
]
