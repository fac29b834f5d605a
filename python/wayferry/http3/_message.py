"""Requests and answers on their streams: fields, data, fields again (RFC 9114 §4.1).

One side's message is an `Incoming`, the other's an `Outgoing`; both sides of HTTP use both. Waiting is that
of `wayferry.quic`: there is no buffer here, so that a reader that does not read holds the peer back.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from wayferry.http3._link import CHUNK, DATA, FIELDS, HEADERS, frame
from wayferry.http3.errors import ErrorCode, GoingAway, ProtocolError, RequestReset, RequestStopped
from wayferry.http3.headers import Fields, Headers
from wayferry.quic import ConnectionClosed, QuicError, StreamReset, StreamStopped, _native

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from typing_extensions import Buffer

    from wayferry.http3._link import Link
    from wayferry.quic import ReceiveStream, SendStream

__all__ = ["SMALL", "Incoming", "Outgoing", "Section"]

Section: TypeAlias = tuple[dict[str, bytes], Fields]
"""Pseudo-header fields by name, and the others."""
Told: TypeAlias = bytes | tuple[dict[str, bytes], Fields, bool]
"""Data, or a section and whether it is one of trailers."""


class Incoming:
    """A message that is received.

    Args:
        kind: `request` or `response`, which have different pseudo-header fields.
    """

    __slots__ = (
        "__weakref__",
        "_error",
        "_first",
        "_left",
        "_link",
        "_poll",
        "_reader",
        "_stream",
        "ended",
        "trailers",
    )

    def __init__(self, stream: ReceiveStream, link: Link, kind: str) -> None:
        self._stream = stream
        self._link = link
        self._reader = _native.Http3Reader(kind, FIELDS)
        # What is said on control streams is not said here.
        self._poll = cast("Callable[[], Told | None]", partial(self._reader.poll, stream._native, CHUNK))
        self._left: int | None = None
        """Bytes of the body that are to come, when that was said."""
        self._first: bytes | None = None
        """Data that `look` has found."""
        self._error: QuicError | None = None
        """Why there is no more."""
        self.trailers = Headers([])
        """Fields behind the body, once `ended`."""
        self.ended = False

    async def section(self, patience: float | None = None) -> Section:
        """The header section. Cancel-safe: a cancelled wait has taken nothing.

        Args:
            patience: seconds that it may take; TimeoutError says that it did not come.
        """
        told = None if patience is None else self._at_once()
        if told is None and self._error is None:
            async with asyncio.timeout(patience):
                told = await self._next()
        elif told is None:
            raise self._again()
        if isinstance(told, tuple):
            return told[0], told[1]
        # The reader lets no data come first.
        raise self._broken(ProtocolError(ErrorCode.REQUEST_INCOMPLETE, "a message ended before its headers"))

    def expect_headers(self) -> None:
        """The section that came was an interim one; another will come."""
        self._reader.expect_headers()

    def expect_length(self, fields: Fields) -> None:
        """The body has the length that `content-length` says, if it is there (RFC 9114 §4.1.2)."""
        lengths = {value for name, value in fields if name == b"content-length"}
        if not lengths:
            return
        text = lengths.pop()
        if lengths or not text.isdigit() or len(text) > DIGITS:
            raise self._broken(malformed("content-length is no number, or two"))
        self._left = int(text)

    def look(self) -> None:
        """Sees whether the end has come with the headers, as it does with requests that have no body."""
        told = self._at_once()
        if told is not None:
            with contextlib.suppress(ProtocolError):  # the next read says it
                self._first = self._taken(told)

    async def data(self) -> bytes:
        """The next piece of the body, `b""` at its end. Cancel-safe: a cancelled wait has taken nothing."""
        data, self._first = self._first, None
        while not data and not self.ended:
            data = self._taken(await self._next())
        return data or b""

    def malformed(self, text: str) -> ProtocolError:
        """An error to raise for a message that says nonsense; the peer is told."""
        return self._broken(malformed(text))

    def stop(self, code: int) -> None:
        """Wants no more of it."""
        if not self.ended and self._error is None:
            self._stream.stop(code)

    def refuse(self) -> None:
        """The peer will not look at what this is the answer to."""
        if not self.ended and self._error is None:
            self._error = GoingAway()
            self._stream.stop(ErrorCode.REQUEST_CANCELLED)

    def _at_once(self) -> Told | None:
        """What has come already. An error is kept for the next read."""
        try:
            return self._poll()
        except ProtocolError as error:
            self._broken(error)
        except StreamReset as reset:
            self._error = RequestReset(reset.code)
        except QuicError:
            pass  # the next read meets it, too
        return None

    def _taken(self, told: Told) -> bytes:
        """Counts what came. Nothing: it was the trailers, or the end."""
        if isinstance(told, tuple):
            self.trailers = Headers(told[1])
            return b""
        if self._left is not None:
            self._left -= len(told)
            if self._left < 0 or (self._left and not told):
                raise self._broken(malformed("the body has another length than content-length says"))
        self.ended = not told
        return told

    async def _next(self) -> Told:
        if self._error is not None:
            raise self._again()
        try:
            return await self._stream._line.run(self._poll)
        except ProtocolError as error:
            raise self._broken(error) from None
        except StreamReset as reset:
            self._error = RequestReset(reset.code)
        except ConnectionClosed as closed:
            raise self._link.why(closed) from None
        except ValueError:  # it was stopped meanwhile
            if self._error is None:
                raise
        raise self._again()

    def _again(self) -> QuicError:
        """The error that ended it, as a new one: each `raise` adds its place to the object."""
        error = self._error
        assert error is not None
        return type(error)(*error.args)

    def _broken(self, error: ProtocolError) -> ProtocolError:
        """Tells the peer what it did wrong; the request is over, or even the connection."""
        if self._error is not None:
            return error
        self._error = error
        if error.code in OF_A_STREAM:
            self._stream.stop(error.code)
        else:
            self._link.fail(error)
        return ProtocolError(error.code, error.text)


class Outgoing:
    """A message that is sent."""

    __slots__ = ("_link", "_refused", "_stream", "finished")

    def __init__(self, stream: SendStream, link: Link) -> None:
        self._stream = stream
        self._link = link
        self._refused = False
        self.finished = False

    async def section(self, fields: Fields) -> None:
        """Sends a section of fields. ValueError: one cannot be sent. Cancel-safe: then nothing was."""
        section = _native.http3_section(fields, self._link.peer_limit)
        await self._told(self._stream._write_frame(HEADERS, section))

    async def whole(self, fields: Fields, data: Buffer) -> None:
        """Sends a message that is there as a whole, and small, in one go. Otherwise as `section`."""
        message = frame(HEADERS, _native.http3_section(fields, self._link.peer_limit))
        if memoryview(data).nbytes:
            message += frame(DATA, data)
        await self._told(self._stream._write_last(message))
        self.finished = True

    async def data(self, data: Buffer) -> None:
        """Sends a piece of the body; waits as `SendStream.write`. Cancel-safe: then nothing was sent."""
        if memoryview(data).nbytes:
            await self._told(self._stream._write_frame(DATA, data))

    async def finish(self) -> None:
        """Ends the message."""
        await self._told(self._stream.finish())
        self.finished = True

    def reset(self, code: int) -> None:
        """Gives it up, if it is not finished."""
        if not self.finished:
            self.finished = True
            self._stream.reset(code)

    def refuse(self) -> None:
        """The peer will not look at it: who writes is told, and who waits to."""
        if not self.finished:
            self._refused = True
            self.reset(ErrorCode.REQUEST_CANCELLED)

    async def stopped(self) -> None:
        """Waits until the peer reads no more, or has all of it, or is gone."""
        with contextlib.suppress(QuicError):
            await self._stream.stopped()

    async def _told(self, operation: Coroutine[Any, Any, None]) -> None:
        """Does it; its errors are told in HTTP's words."""
        try:
            await operation
        except StreamStopped as stopped:
            raise RequestStopped(stopped.code) from None
        except ConnectionClosed as closed:
            raise self._link.why(closed) from None
        except ValueError:  # it was reset meanwhile
            if self._refused:
                raise GoingAway from None
            raise


def malformed(text: str) -> ProtocolError:
    return ProtocolError(ErrorCode.MESSAGE_ERROR, text)


OF_A_STREAM = {
    ErrorCode.MESSAGE_ERROR,
    ErrorCode.EXCESSIVE_LOAD,
    ErrorCode.REQUEST_INCOMPLETE,
    ErrorCode.BUFFERED_STREAM_REJECTED,
}
"""Mistakes that concern one request only."""
DIGITS = 18
"""Of a length; more bytes do not fit into a stream."""
SMALL = 16 << 10
"""Bytes of a body that are copied once more, so that a message is one write."""
