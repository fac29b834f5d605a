"""One WebSocket through an ASGI application (RFC 9220: an extended CONNECT that stays open).

As with requests nothing is queued: `receive` reads from the stream and answers pings on its way, `send`
writes to it. Each frame goes in one piece, so that neither cuts into the other's. What is owed to the client,
the answer to a ping or the end, is kept until it has left: a call that was cancelled leaves it to the next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from wayferry.http3 import _budget
from wayferry.http3._budget import Full
from wayferry.http3._cycle import Disconnected, checked_fields, date, is_of_disconnect, note_excused
from wayferry.http3._websocket import (
    ABNORMAL,
    TRY_AGAIN_LATER,
    Close,
    Message,
    Ping,
    Reader,
    WebSocketError,
    close_frame,
    message_frame,
    pong_frame,
)
from wayferry.http3.errors import ErrorCode
from wayferry.quic import QuicError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from wayferry.http3._budget import Share
    from wayferry.http3._message import Incoming, Outgoing
    from wayferry.http3.asgi import App

__all__ = ["Socket"]


class Socket:
    """The application's `receive` and `send` for one WebSocket."""

    __slots__ = (
        "_accepted",
        "_asked",
        "_end",
        "_incoming",
        "_outgoing",
        "_owed",
        "_paying",
        "_reader",
        "_share",
    )

    def __init__(self, incoming: Incoming, outgoing: Outgoing, share: Share) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._reader = Reader()
        self._share = share
        """Room for messages that are not whole."""
        self._asked = False
        """Whether the application knows of the client."""
        self._accepted = False
        self._end: Close | None = None
        """How it ended."""
        self._owed: deque[Callable[[], Coroutine[Any, Any, None]]] = deque()
        """What the client has to be told, in order: at most an answer to a ping, as no more is read before
        that has left, and the end."""
        self._paying = asyncio.Lock()

    async def run(self, app: App, scope: dict[str, Any]) -> None:
        """Has the application speak."""
        try:
            await app(scope, self.receive, self.send)
            await self._part(1000)
        except Exception as error:
            if self._end is not None and is_of_disconnect(error):
                note_excused(error)
            else:
                message = f"wayferry.http3: the application failed at WebSocket {scope['path']!r}"
                context = {"message": message, "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
            await self._part(1011)
        finally:
            self._share.keep(0)
            self._outgoing.reset(ErrorCode.INTERNAL_ERROR)
            self._incoming.stop(ErrorCode.NO_ERROR)

    async def receive(self) -> dict[str, Any]:
        """Cancel-safe: a cancelled wait has taken no message, and what it had to answer the next call
        answers."""
        if not self._asked:
            self._asked = True
            return {"type": "websocket.connect"}
        try:
            if self._owed:
                await self._pay()
            while self._end is None:
                event = self._reader.next()
                if isinstance(event, Message):
                    self._share.keep(self._reader.kept)
                    name, other = ("text", "bytes") if isinstance(event.data, str) else ("bytes", "text")
                    return {"type": "websocket.receive", name: event.data, other: None}
                if isinstance(event, Ping):
                    self._owed.append(partial(self._outgoing.data, pong_frame(event.data)))
                    await self._pay()
                elif isinstance(event, Close):
                    await self._close(event.code, event.reason)
                elif data := await self._more():
                    self._reader.give(data)
                else:
                    await self._close(ABNORMAL, "")
        except Full:
            await self._close(TRY_AGAIN_LATER, "too much is unfinished")
        except WebSocketError as error:
            await self._close(error.code, error.text)
        except QuicError:
            self._lose()
        except ValueError:
            # `send` has ended it meanwhile.
            if self._end is None:
                raise
        assert self._end is not None
        return {"type": "websocket.disconnect", "code": self._end.code, "reason": self._end.reason}

    async def _more(self) -> bytes:
        """What comes next, once there is room for it; it waits with the client until then."""
        self._share.keep(self._reader.kept)
        await self._share.more()
        return await self._incoming.data()

    async def send(self, message: dict[str, Any]) -> None:
        """Cancel-safe: a cancelled call has sent nothing. Only an end has begun then, and the next call says
        the rest of it."""
        kind = message["type"]
        if self._end is not None and not (kind == "websocket.close" and self._owed):
            raise Disconnected("the WebSocket is over")
        try:
            if kind == "websocket.close":
                await self._close(message.get("code", 1000), message.get("reason") or "")
            elif kind == "websocket.accept" and not self._accepted:
                await self._accept(message)
            elif kind == "websocket.send" and self._accepted:
                await self._outgoing.data(message_frame(_content(message)))
            else:
                raise RuntimeError(f"the application sent {kind!r} where it must not")
        except QuicError as error:
            self._lose()
            raise Disconnected("the client is gone") from error

    async def _accept(self, message: dict[str, Any]) -> None:
        fields = [(b":status", b"200"), *checked_fields(message.get("headers", ())), (b"date", date())]
        protocol = message.get("subprotocol")
        if protocol is not None:
            fields.append((b"sec-websocket-protocol", protocol.encode()))
        await self._outgoing.section(fields)
        self._accepted = True

    async def _close(self, code: int, reason: str) -> None:
        """Ends it on this side, if it has not ended; before it was accepted that is a refusal (ASGI: with
        status 403). Says what is owed in any case."""
        said = close_frame(code, reason)
        if self._over(Close(code, reason)):
            if not self._accepted:
                refusal = [(b":status", b"403"), (b"date", date())]
                self._owed.append(partial(self._outgoing.section, refusal))
            elif code != ABNORMAL:
                self._owed.append(partial(self._outgoing.data, said))
            self._owed.append(self._outgoing.finish)
        try:
            await self._pay()
        except (QuicError, ValueError):
            # The client is gone, or takes no fields.
            self._owed.clear()
        finally:
            self._incoming.stop(ErrorCode.NO_ERROR)

    async def _part(self, code: int) -> None:
        """Ends it after the application, which bounds nothing any more: who takes nothing is left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_budget.PATIENCE):
                await self._close(code, "")

    async def _pay(self) -> None:
        """Says what is owed. Cancel-safe: what has not left is owed still."""
        async with self._paying:
            while self._owed:
                await self._owed[0]()
                self._owed.popleft()

    def _over(self, end: Close) -> bool:
        """It has ended so: its room is free, no matter how long the application goes on. False: it had ended
        before."""
        if self._end is not None:
            return False
        self._end = end
        self._reader = Reader()
        self._share.keep(0)
        return True

    def _lose(self) -> None:
        """The client is gone, or does not listen."""
        self._over(Close(ABNORMAL, ""))
        self._incoming.stop(ErrorCode.NO_ERROR)


def _content(message: dict[str, Any]) -> str | bytes:
    """ASGI has one of two keys, the other may be None."""
    for kind, name in ((str, "text"), (bytes, "bytes")):
        data = message.get(name)
        if isinstance(data, kind):
            return data
        if data is not None:
            raise TypeError(f"{name}: {kind.__name__} is required, not {type(data).__name__}")
    raise ValueError("'websocket.send' needs text or bytes")
