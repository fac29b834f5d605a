"""One request and its answer, both while they are under way."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any

from wayferry.http3._message import SMALL, Incoming, Outgoing
from wayferry.http3.errors import ErrorCode, RequestStopped
from wayferry.http3.headers import Fields, HeaderInput, Headers, encoded
from wayferry.http3.response import Head
from wayferry.quic import TooLarge, _reactor

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Buffer

    from wayferry.http3._link import Link
    from wayferry.quic import BiStream

__all__ = ["Exchange", "Opening"]


class Exchange:
    """A request on its way, from `Client.stream`. Both bodies may flow at once; each direction is for one
    task. One that is dropped is given up, as by `cancel()`.

    Iterating gives the answer's body in pieces as they come. Not reading holds the server back, and a server
    that does not read holds `write` back.

    Errors of every operation: `ConnectionClosed` once the connection is over, `ProtocolError` for an answer
    that is none, `GoingAway` when the server has not looked at the request; of those that read,
    `RequestReset` once the server has given the answer up; of those that write, `RequestStopped` once it
    reads no more, after which the answer may still come.
    """

    __slots__ = ("__weakref__", "_head", "_incoming", "_method", "_outgoing", "interim")

    def __init__(self, stream: BiStream, link: Link, method: str) -> None:
        self._incoming = Incoming(stream.receive, link, "response")
        self._outgoing = Outgoing(stream.send, link)
        self._method = method
        self._head: Head | None = None
        self.interim: list[Head] = []
        """Interim answers (status 1xx) that came before the final one, at most 32."""
        link.requests[stream.id] = self

    @property
    def trailers(self) -> Headers:
        """Fields behind the answer's body. They are known when the body was read to its end."""
        return self._incoming.trailers

    async def write(self, data: Buffer) -> None:
        """Sends a piece of the request's body. Waits when the server or the network is slow.

        Cancel-safe: a cancelled write has sent nothing.
        """
        await self._outgoing.data(data)

    async def finish(self, trailers: HeaderInput = ()) -> None:
        """Ends the request, with fields behind its body if there are some.

        Cancel-safe: a cancelled finish has done nothing.
        """
        fields = encoded(trailers)
        if fields:
            await self._outgoing.whole(fields, b"")
        else:
            await self._outgoing.finish()

    async def response(self) -> Head:
        """Waits for the answer's status and headers, and gives the same again later.

        Cancel-safe: it only waits.
        """
        while self._head is None:
            pseudo, fields = await self._incoming.section()
            head = Head(self._status(pseudo), Headers(fields))
            if head.status_code < 200:
                self._keep(head)
                continue
            # These have no body, no matter what length they name (RFC 9110 §6.4.1).
            if self._method != "HEAD" and head.status_code not in (204, 304):
                self._incoming.expect_length(fields)
            self._head = head
        return self._head

    async def read(self, limit: int) -> bytes:
        """The answer's whole body, of at most `limit` bytes.

        Raises:
            TooLarge: there is more; the answer is given up.

        Cancel-safe only as far as that nothing hangs: what a cancelled read has collected is lost.
        """
        pieces: list[bytes] = []
        size = 0
        while piece := await self._piece():
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                self.cancel()
                raise TooLarge(size, limit)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def cancel(self, code: int = ErrorCode.REQUEST_CANCELLED) -> None:
        """Gives up both directions, as far as they are not over: the server learns `code` (RFC 9114
        §4.1.1)."""
        self._outgoing.reset(code)
        self._incoming.stop(code)

    def __aiter__(self) -> Exchange:
        return self

    async def __anext__(self) -> bytes:
        """The next piece. Cancel-safe: a cancelled step has taken nothing."""
        piece = await self._piece()
        if not piece:
            raise StopAsyncIteration
        return piece

    def __del__(self) -> None:
        # The attribute is missing when __init__ was given something wrong.
        if getattr(self, "_outgoing", None) is None or _reactor.abandoned():
            return
        with contextlib.suppress(RuntimeError):  # dropped on a thread that is not the loop's, which uses it
            self.cancel()

    async def _piece(self) -> bytes:
        if self._head is None:
            await self.response()
        return await self._incoming.data()

    async def _begin(self, fields: Fields, content: Buffer | None) -> None:
        # A server may answer what it has not read.
        with contextlib.suppress(RequestStopped):
            if content is not None and memoryview(content).nbytes <= SMALL:
                await self._outgoing.whole(fields, content)
                return
            await self._outgoing.section(fields)
            if content is not None:
                await self._outgoing.data(content)
                await self._outgoing.finish()

    def _refuse(self) -> None:
        """The server takes no more requests, and has not looked at this one: what waits raises GoingAway."""
        self._outgoing.refuse()
        self._incoming.refuse()

    def _status(self, pseudo: dict[str, bytes]) -> int:
        text = pseudo.get(":status", b"")
        # RFC 9114 §4.5 forbids 101.
        if len(text) != 3 or not text.isdigit() or text < b"100" or text == b"101":
            raise self._incoming.malformed("the answer has no status")
        return int(text)

    def _keep(self, head: Head) -> None:
        if len(self.interim) == INTERIM:
            raise self._incoming.malformed("too many interim answers")
        self.interim.append(head)
        self._incoming.expect_headers()


class Opening:
    """An `Exchange` to come: `async with client.stream(…) as exchange`. At its end what is not over is given
    up."""

    __slots__ = ("_exchange", "_start")

    def __init__(self, start: Callable[[], Awaitable[Exchange]]) -> None:
        self._start = start
        self._exchange: Exchange | None = None

    def __await__(self) -> Generator[Any, None, Exchange]:
        return self._start().__await__()

    async def __aenter__(self) -> Exchange:
        self._exchange = await self._start()
        return self._exchange

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.cancel()


INTERIM = 32
"""Interim answers to one request."""
