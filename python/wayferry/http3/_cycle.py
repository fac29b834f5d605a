"""One HTTP request through an ASGI application.

Nothing is queued: `receive` reads from the stream, `send` writes to it, and both wait as they do. Invariant:
when the application returns, the answer is whole, or the client was told that it is not.
"""

from __future__ import annotations

import asyncio
import logging
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

from wayferry.http3._link import FIELDS
from wayferry.http3._message import SMALL
from wayferry.http3.errors import ErrorCode, RequestStopped
from wayferry.quic import QuicError

if TYPE_CHECKING:
    from wayferry.http3._message import Incoming, Outgoing
    from wayferry.http3.asgi import App
    from wayferry.http3.headers import Fields

__all__ = ["Cycle", "Disconnected", "checked_fields", "date", "is_of_disconnect", "note_excused", "refuse"]

LOG = logging.getLogger("wayferry.http3")


class Disconnected(OSError):
    """The client is gone; raised by an application's `send`."""


class Cycle:
    """The application's `receive` and `send` for one request."""

    __slots__ = (
        "_ended",
        "_expects",
        "_fields",
        "_gone",
        "_incoming",
        "_method",
        "_outgoing",
        "_read",
        "_status",
        "_trailers",
    )

    def __init__(self, incoming: Incoming, outgoing: Outgoing, method: str, headers: Fields) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._method = method
        self._expects = any(name == b"expect" and value.lower() == b"100-continue" for name, value in headers)
        """Whether the client waits to be told to go on (RFC 9110 §10.1.1)."""
        self._read = False
        """Whether the application has all of the body."""
        self._gone = False
        self._status: int | None = None
        self._fields: Fields | None = None
        """What the answer begins with, until it is sent."""
        self._ended = False
        """Whether the application has given all of the body."""
        self._trailers: Fields | None = None
        """What comes behind the body, as far as it was given. None: no fields do."""

    async def run(self, app: App, scope: dict[str, Any]) -> None:
        """Has the application answer."""
        try:
            await app(scope, self.receive, self.send)
            if not self._outgoing.finished and not self._gone:
                raise RuntimeError("the application returned without a whole answer")
        except Exception as error:
            # That it could not send to one who is gone is no fault of its own.
            if self._gone and is_of_disconnect(error):
                note_excused(error)
            else:
                message = f"wayferry.http3: the application failed at {scope['method']} {scope['path']!r}"
                context = {"message": message, "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
            await self._apologise()
        finally:
            self._outgoing.reset(ErrorCode.INTERNAL_ERROR)
            self._incoming.stop(ErrorCode.NO_ERROR)

    async def receive(self) -> dict[str, Any]:
        """Cancel-safe: a cancelled wait has taken nothing."""
        if not self._read and not self._gone:
            try:
                if self._expects and (self._status is None or self._fields is not None):
                    await self._outgoing.section([(b":status", b"100")])
                    self._expects = False
                data = await self._incoming.data()
            except QuicError:
                self._gone = True
                return {"type": "http.disconnect"}
            self._read = not data
            return {"type": "http.request", "body": data, "more_body": not self._read}
        if not self._gone:
            await self._outgoing.stopped()
        self._gone = True
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if self._gone and not self._outgoing.finished:
            raise Disconnected("the client is gone")
        try:
            await self._sent(kind, message)
        except QuicError as error:
            self._gone = True
            if isinstance(error, RequestStopped) and error.code == ErrorCode.NO_ERROR:
                return
            raise Disconnected("the client is gone") from error

    async def _sent(self, kind: str, message: dict[str, Any]) -> None:
        if kind == "http.response.start":
            self._start(message)
        elif self._status is None:
            raise RuntimeError(f"{kind!r} was sent before 'http.response.start'")
        elif self._outgoing.finished:
            raise RuntimeError(f"{kind!r} was sent after the end of the answer")
        elif kind == "http.response.body":
            await self._body(message.get("body", b""), message.get("more_body", False))
        elif kind == "http.response.trailers" and self._trailers is not None:
            await self._trail(self._trailers, message)
        else:
            raise RuntimeError(f"the application sent {kind!r}, which is not known here")

    def _start(self, message: dict[str, Any]) -> None:
        if self._status is not None:
            raise RuntimeError("'http.response.start' was sent twice")
        status = message["status"]
        if not isinstance(status, int) or not 200 <= status <= 999:
            raise ValueError(f"status: an answer has 200 to 999, not {status!r}")
        fields = [(b":status", b"%d" % status), *checked_fields(message.get("headers", ()))]
        if not any(name == b"date" for name, _ in fields):
            fields.append((b"date", date()))
        self._fields, self._status = fields, status
        self._trailers = [] if message.get("trailers", False) else None

    async def _body(self, body: Any, more: bool) -> None:
        if not isinstance(body, bytes | bytearray | memoryview):
            raise TypeError(f"body: bytes are required, not {type(body).__name__}")
        if self._ended:
            raise RuntimeError("'http.response.body' was sent after the end of the body")
        # Some answers have no body, no matter what their headers say (RFC 9110 §6.4.1).
        if self._method == "HEAD" or self._status in (204, 304):
            body = b""
        if self._fields is not None:
            if not more and self._trailers is None and len(body) <= SMALL:
                await self._outgoing.whole(self._fields, body)
                return
            await self._outgoing.section(self._fields)
            self._fields = None
        await self._outgoing.data(body)
        if not more and self._trailers is None:
            await self._outgoing.finish()
        self._ended = not more

    async def _trail(self, before: Fields, message: dict[str, Any]) -> None:
        """Keeps the fields of one message of several; with the last one all leave, as one section (RFC 9114
        §4.1)."""
        if not self._ended:
            raise RuntimeError("'http.response.trailers' was sent before the end of the body")
        fields = [*before, *checked_fields(message.get("headers", ()))]
        size = sum(len(name) + len(value) + LINE for name, value in fields)
        if size > FIELDS:
            raise ValueError(f"trailers: {size} bytes where at most {FIELDS} are allowed")
        if message.get("more_trailers", False):
            self._trailers = fields
        elif fields:
            await self._outgoing.whole(fields, b"")
        else:
            await self._outgoing.finish()

    async def _apologise(self) -> None:
        """Says that there is no answer, if nothing was said yet."""
        if self._gone or self._outgoing.finished or (self._status is not None and self._fields is None):
            return
        try:
            fields = [(b":status", b"500"), (b"content-length", b"0"), (b"date", date())]
            await self._outgoing.whole(fields, b"")
        except QuicError:
            self._gone = True
        except ValueError:
            return  # the client takes no fields


def is_of_disconnect(error: BaseException | None) -> bool:
    """Whether an application's error comes of `Disconnected`, which frameworks turn into errors of theirs and
    task groups into groups."""
    for _ in range(CHAIN):
        if error is None or isinstance(error, Disconnected):
            break
        if isinstance(error, BaseExceptionGroup):
            return all(map(is_of_disconnect, error.exceptions))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return isinstance(error, Disconnected)


def note_excused(error: Exception) -> None:
    """Keeps an error that is no report apart from silence: it may hide one of the application's own."""
    if not isinstance(error, Disconnected):
        LOG.info("the application ended as its client had left: %r", error)


def checked_fields(headers: Any) -> Fields:
    """An application's fields as they are sent: in lower case, and without those of HTTP/1's connections."""
    fields = []
    for name, value in headers:
        if not isinstance(name, bytes) or not isinstance(value, bytes):
            raise TypeError(f"headers are pairs of bytes, not {name!r} and {value!r}")
        name = name.lower()
        if name not in OF_CONNECTIONS:
            fields.append((name, value.strip(b" \t")))
    return fields


async def refuse(incoming: Incoming, outgoing: Outgoing, status: int) -> None:
    """Answers what is not for the application."""
    try:
        await outgoing.whole(
            [(b":status", b"%d" % status), (b"content-length", b"0"), (b"date", date())], b""
        )
    except ValueError:  # the client takes no fields
        outgoing.reset(ErrorCode.INTERNAL_ERROR)
    incoming.stop(ErrorCode.NO_ERROR)


def date() -> bytes:
    """The time as HTTP writes it (RFC 9110 §5.6.7), made once a second."""
    global _made
    now = int(time.time())
    if _made[0] != now:
        _made = (now, formatdate(now, usegmt=True).encode())
    return _made[1]


_made = (0, b"")
CHAIN = 32
"""Errors of which one comes of the other that are looked at."""
LINE = 32
"""Bytes that a field counts besides its name and value (RFC 9114 §4.2.2)."""
OF_CONNECTIONS = {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
"""RFC 9114 §4.2 forbids them; applications that know HTTP/1 only may give them."""
