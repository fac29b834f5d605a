"""WebSocket over HTTP/3 (RFC 9220): frames as wsproto has them, an application on a stream, clients that
break rules.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import wsproto.events as ws
from http3_support import frame, number, raw_client, served
from support import asynchronous, rounds, until
from test_cancellation import Harrier
from wsproto.connection import Connection, ConnectionType

from wayferry import quic
from wayferry.http3 import ErrorCode, _budget, _socket, _websocket, asgi
from wayferry.quic import _native

CONNECT = [
    (b":method", b"CONNECT"),
    (b":protocol", b"websocket"),
    (b":scheme", b"https"),
    (b":authority", b"a"),
    (b":path", b"/chat?room=1"),
    (b"sec-websocket-version", b"13"),
    (b"sec-websocket-protocol", b"one, two"),
]


class Browser:
    """A client: wsproto on a stream of HTTP/3."""

    def __init__(self, stream: quic.BiStream) -> None:
        self.stream = stream
        self.wire = Connection(ConnectionType.CLIENT)
        self.reader = _native.Http3Reader("response", 1 << 16)
        self.events: list[Any] = []

    async def told(self) -> Any:
        receive = self.stream.receive
        return await receive._line.run(lambda: self.reader.poll(receive._native, 1 << 16))

    async def send(self, event: ws.Event) -> None:
        await self.stream.write(frame(0, self.wire.send(event)))

    async def next(self) -> Any:
        while not self.events:
            data = await self.told()
            assert isinstance(data, bytes)
            self.wire.receive_data(data or None)
            self.events += self.wire.events()
        return self.events.pop(0)


@asynccontextmanager
async def opened(app: Any) -> AsyncIterator[tuple[Browser, Any]]:
    """A client that asked `app` for a WebSocket, and the headers of the answer."""
    async with served(app) as server, raw_client(server) as connection:
        stream = await connection.open_bi()
        await stream.write(frame(1, _native.http3_section(CONNECT, None)))
        browser = Browser(stream)
        yield browser, await browser.told()


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    assert (await receive()) == {"type": "websocket.connect"}
    await send({"type": "websocket.accept", "subprotocol": scope["subprotocols"][1]})
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})


@asynchronous
async def test_messages_go_both_ways() -> None:
    scopes: list[dict[str, Any]] = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        scopes.append(scope)
        await echo(scope, receive, send)

    async with opened(app) as (browser, (pseudo, fields, _)):
        assert pseudo == {":status": b"200"}
        assert (b"sec-websocket-protocol", b"two") in fields
        for data in ("hällo", "", b"bytes", bytes(100), bytes(70_000)):
            event = ws.TextMessage(data) if isinstance(data, str) else ws.BytesMessage(data)
            await browser.send(event)
            pieces = [await browser.next()]
            while not pieces[-1].message_finished:
                pieces.append(await browser.next())
            assert type(data)().join(piece.data for piece in pieces) == data
        await browser.send(ws.Ping(b"?"))
        assert await browser.next() == ws.Pong(b"?")
        await browser.send(ws.TextMessage("in ", message_finished=False))
        await browser.send(ws.Ping(b"between"))
        await browser.send(ws.TextMessage("pieces"))
        assert await browser.next() == ws.Pong(b"between")
        assert (await browser.next()).data == "in pieces"
        await browser.send(ws.CloseConnection(3001, "enough"))
        assert await browser.next() == ws.CloseConnection(3001, "enough")
        assert await browser.told() == b""
    (scope,) = scopes
    assert (scope["type"], scope["scheme"], scope["path"]) == ("websocket", "wss", "/chat")
    assert (scope["query_string"], scope["subprotocols"]) == (b"room=1", ["one", "two"])


@asynchronous
async def test_an_application_refuses() -> None:
    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.close"})

    async with opened(app) as (browser, (pseudo, _, _)):
        assert pseudo == {":status": b"403"}
        assert await browser.told() == b""


@asynchronous
async def test_an_application_ends_it() -> None:
    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": 4000, "reason": "ö" * 200})

    async with opened(app) as (browser, _):
        assert await browser.next() == ws.CloseConnection(4000, "ö" * 61)


@asynchronous
async def test_an_application_that_fails_or_returns() -> None:
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: reported.append(repr(context["exception"]))
    )

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        if len(reported) == 0:
            raise KeyError("app")

    for code in (1011, 1000):
        async with opened(app) as (browser, _):
            assert (await browser.next()).code == code
    assert reported == ["KeyError('app')"]


@asynchronous
async def test_a_client_that_leaves_is_a_disconnect() -> None:
    ends: list[dict[str, Any]] = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        await receive()
        ends.append(await receive())
        with contextlib.suppress(OSError):
            await send({"type": "websocket.send", "text": "still there?"})
            raise AssertionError("no client is there")

    ways: list[Callable[[quic.BiStream], Any]] = [lambda stream: stream.reset(0x10C), quic.BiStream.finish]
    for count, leave in enumerate(ways, 1):
        async with opened(app) as (browser, _):
            left = leave(browser.stream)
            if left is not None:
                await left
            # Mypy knows no defaults of a lambda.
            await until(lambda count=count: len(ends) == count)  # type: ignore[misc]  # mypy infers no lambda
    assert [end["code"] for end in ends] == [1006, 1006]


@asynchronous
async def test_regression_a_client_that_left_a_websocket_was_a_failure_of_the_application() -> None:
    """Where a framework has turned the `OSError` of `send` into an error of its own."""
    reported: list[str] = []
    ended: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: reported.append(repr(context["exception"]))
    )

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
        ended.append("disconnect")
        try:
            await send({"type": "websocket.send", "text": "still there?"})
        except OSError:
            raise LookupError("left")  # noqa: B904 - as Starlette does

    async with opened(app) as (browser, _):
        browser.stream.reset(0x10C)
        await until(lambda: ended)
        await rounds(10)
    assert not reported


@asynchronous
async def test_regression_a_client_that_takes_no_fields_had_a_websockets_end_raise() -> None:
    reported: list[Any] = []
    ends: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        if scope["path"] == "/refuses":
            await send({"type": "websocket.close"})
        elif scope["path"] == "/reads":
            ends.append(await receive())

    control = number(0) + frame(4, number(6) + number(1))
    async with served(app) as server, raw_client(server, control) as connection:
        await until(lambda: any(link.peer_limit == 1 for link in server._links))
        for path in (b"/refuses", b"/reads", b"/returns"):
            stream = await connection.open_bi()
            fields = [*CONNECT[:4], (b":path", path), *CONNECT[5:]]
            await stream.write(frame(1, _native.http3_section(fields, None)) + frame(0, masked(3, b"")))
            with pytest.raises(quic.StreamReset) as caught:
                await stream.read()
            assert caught.value.code == ErrorCode.INTERNAL_ERROR
    assert [end["code"] for end in ends] == [1002]
    assert not reported


# What the client says, which call of the application is cancelled as it answers that, which comes next, and
# what the client hears.
LEFT_UNSAID: list[tuple[bytes, str, str, ws.Event]] = [
    (b"\x89\x81" + bytes(4) + b"?", "receive", "receive", ws.Pong(b"?")),
    (b"\x89\x81" + bytes(4) + b"?", "receive", "close", ws.Pong(b"?")),
    (b"\x89\x81" + bytes(4) + b"?", "receive", "return", ws.Pong(b"?")),
    (b"\x88\x82" + bytes(4) + b"\x0b\xb9", "receive", "receive", ws.CloseConnection(3001, "")),
    (b"\x88\x82" + bytes(4) + b"\x0b\xb9", "receive", "close", ws.CloseConnection(3001, "")),
    (b"\x88\x82" + bytes(4) + b"\x0b\xb9", "receive", "return", ws.CloseConnection(3001, "")),
    (b"", "close", "receive", ws.CloseConnection(4000, "")),
    (b"", "close", "close", ws.CloseConnection(4000, "")),
    (b"", "close", "return", ws.CloseConnection(4000, "")),
]


@pytest.mark.parametrize(("said", "cancelled", "next_call", "heard"), LEFT_UNSAID)
def test_regression_a_cancelled_call_lost_the_answer_to_a_ping_or_the_end(
    sockets: list[Any], said: bytes, cancelled: str, next_call: str, heard: ws.Event
) -> None:
    """While the client reads nothing, so that each answer waits."""
    told: list[dict[str, Any]] = []
    full, was_cancelled = asyncio.Event(), asyncio.Event()

    def waits() -> bool:
        line = sockets[0]._outgoing._stream._waits
        return line is not None and line.callers > 0

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        async def close() -> None:
            await send({"type": "websocket.close", "code": 4000})

        calls: dict[str, Any] = {"receive": receive, "close": close}
        await receive()
        await send({"type": "websocket.accept"})
        # It is taken as a whole, and leaves room for no other.
        await send({"type": "websocket.send", "bytes": bytes(1 << 20)})
        full.set()
        call = asyncio.create_task(calls[cancelled]())
        await until(waits)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        was_cancelled.set()
        if next_call != "return":
            told.append(await Harrier(0).at_each_wait(next_call, calls[next_call]))

    @asynchronous
    async def test() -> None:
        narrow = quic.Config(stream_window=16 << 10)
        async with served(app) as server, raw_client(server, config=narrow) as connection:
            stream = await connection.open_bi()
            await stream.write(frame(1, _native.http3_section(CONNECT, None)))
            browser = Browser(stream)
            await browser.told()
            await full.wait()
            if said:
                await stream.write(frame(0, said))
            await was_cancelled.wait()
            if heard == ws.Pong(b"?"):
                await stream.write(frame(0, masked(1, b"more")))
            while isinstance(event := await browser.next(), ws.BytesMessage):
                pass
            assert event == heard
            if event == ws.Pong(b"?"):
                assert (await browser.next()).code == (4000 if next_call == "close" else 1000)
            assert await browser.told() == b""
        if next_call == "receive":
            kind = "websocket.receive" if heard == ws.Pong(b"?") else "websocket.disconnect"
            assert [message["type"] for message in told] == [kind]

    test()


def test_regression_a_client_that_takes_nothing_kept_the_place_of_an_application_that_had_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_budget, "PATIENCE", 0.1)
    run, over = _socket.Socket.run, asyncio.Event()

    async def watched(socket: _socket.Socket, *args: Any) -> None:
        await run(socket, *args)
        over.set()

    monkeypatch.setattr(_socket.Socket, "run", watched)

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "bytes": bytes(1 << 20)})
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(send({"type": "websocket.close"}), 0.01)

    @asynchronous
    async def test() -> None:
        narrow = quic.Config(stream_window=16 << 10)
        async with served(app) as server, raw_client(server, config=narrow) as connection:
            stream = await connection.open_bi()
            await stream.write(frame(1, _native.http3_section(CONNECT, None)))
            await over.wait()

    test()


def masked(kind: int, payload: bytes, *, last: bool = True) -> bytes:
    return bytes([0x80 * last | kind, 0x80 | len(payload)]) + bytes(4) + payload


WRONG: list[tuple[bytes, int]] = [
    (bytes([0x81, 1]) + b"a", 1002),
    (b"\xc1\x81" + bytes(5), 1002),
    (masked(0, b"a"), 1002),
    (masked(1, b"a", last=False) + masked(2, b"b"), 1002),
    (masked(3, b""), 1002),
    (masked(0xB, b""), 1002),
    (masked(9, b"", last=False), 1002),
    (b"\x89\xfe" + bytes(200), 1002),
    (masked(8, b"\3"), 1002),
    (masked(8, b"\3\xed"), 1002),
    (masked(8, b"\3\xe8\xff"), 1007),
    (masked(1, b"\xff"), 1007),
    (b"\x82\xff" + (1 << 40).to_bytes(8) + bytes(4), 1009),
    (masked(1, b"", last=False) + masked(0, b"", last=False) * 600_000, 1009),
]


@pytest.mark.parametrize(("said", "code"), WRONG)
def test_frames_that_are_wrong(said: bytes, code: int) -> None:
    reader = _websocket.Reader()
    reader.give(said)
    with pytest.raises(_websocket.WebSocketError) as caught:
        reader.next()
    assert caught.value.code == code


@asynchronous
async def test_a_client_that_breaks_a_rule_is_told() -> None:
    async with opened(echo) as (browser, _):
        await browser.stream.write(frame(0, masked(1, b"\xff")))
        assert (await browser.next()).code == 1007


def test_messages_are_read_however_they_are_cut() -> None:
    said = (
        masked(1, b"one") + masked(9, b"?") + masked(2, b"tw", last=False) + masked(0, b"o") + masked(8, b"")
    )
    for size in range(1, len(said)):
        reader, events = _websocket.Reader(), []
        for start in range(0, len(said), size):
            reader.give(said[start : start + size])
            while (event := reader.next()) is not None:
                events.append(event)
        message, close = _websocket.Message, _websocket.Close(1005, "")
        assert events == [message("one"), _websocket.Ping(b"?"), message(b"two"), close]


def frame_of(length: int) -> bytes:
    """What a client's message of `length` bytes begins with."""
    return b"\x82" + bytes([0x80 | 127]) + length.to_bytes(8) + bytes(4)


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The server's ends of the WebSockets of a test; 256 KiB may be unfinished."""
    made: list[Any] = []

    class Recorded(_socket.Socket):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(asgi, "Socket", Recorded)
    monkeypatch.setattr(_budget, "LIMIT", 256 << 10)
    monkeypatch.setattr(_budget, "FREE", 16 << 10)
    return made


@asynccontextmanager
async def several(app: Any, count: int) -> AsyncIterator[list[Browser]]:
    """So many WebSockets on one connection, which `app` has accepted."""
    async with served(app) as server, raw_client(server) as connection:
        browsers = []
        for _ in range(count):
            stream = await connection.open_bi()
            await stream.write(frame(1, _native.http3_section(CONNECT, None)))
            browsers.append(Browser(stream))
            await browsers[-1].told()
        yield browsers


def test_regression_unfinished_messages_of_one_client_had_no_common_bound(sockets: list[Any]) -> None:
    sizes: list[int] = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        while "bytes" in (message := await receive()) or message["type"] == "websocket.connect":
            if message.get("bytes") is not None:
                sizes.append(len(message["bytes"]))
                await send({"type": "websocket.send", "text": "thanks"})

    def kept() -> int:
        return sum(len(socket._reader._held) + socket._reader._size for socket in sockets)

    @asynchronous
    async def test() -> None:
        length, count = 300_000, 8
        async with several(app, count) as browsers:
            for browser in browsers:
                await browser.stream.write(frame(0, frame_of(length)) + frame(0, bytes(length - 1)))
            await until(lambda: kept() > 256 << 10)
            await rounds(200)
            assert kept() <= (256 << 10) + length + count * ((16 << 10) + (64 << 10))
            for browser in browsers:
                await browser.stream.write(frame(0, b"\0"))
            for browser in browsers:
                assert (await browser.next()).data == "thanks"
            assert sizes == [length] * count
            assert sockets[0]._share._budget.used == 0

    test()


@pytest.mark.parametrize("by_client", [True, False])
def test_regression_a_websocket_that_ended_kept_its_room_and_its_turn(
    sockets: list[Any], by_client: bool
) -> None:
    ends: list[dict[str, Any]] = []
    has_turn, length = asyncio.Event(), 300_000

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        await receive()
        receiving = asyncio.ensure_future(receive())
        if not by_client:
            await has_turn.wait()
            await send({"type": "websocket.close", "code": 3000})
        ends.append(await receiving)
        # It goes on for as long as the client is there.
        await asyncio.Event().wait()

    @asynchronous
    async def test() -> None:
        async with several(app, 1) as (browser,):
            budget = sockets[0]._share._budget
            await browser.stream.write(frame(0, b"\2" + frame_of(length)[1:]) + frame(0, bytes(length)))
            await until(lambda: budget._turn is not None)
            has_turn.set()
            if by_client:
                await browser.stream.write(frame(0, masked(3, b"")))
            assert (await browser.next()).code == (1002 if by_client else 3000)
            assert await browser.stream.stopped() == ErrorCode.NO_ERROR
            await until(lambda: ends)
            assert [end["code"] for end in ends] == [1002 if by_client else 3000]
            assert (sockets[0]._reader.kept, budget.used, budget._turn) == (0, 0, None)

    test()


def test_small_messages_come_beside_large_ones_that_wait(sockets: list[Any]) -> None:
    @asynchronous
    async def test() -> None:
        async with several(echo, 3) as browsers:
            for browser in browsers[:2]:
                await browser.stream.write(frame(0, frame_of(10 << 20)) + frame(0, bytes(200 << 10)))
            await until(lambda: sockets[0]._share._budget.used > 256 << 10)
            for _ in range(5):
                await browsers[2].send(ws.TextMessage("small"))
                assert (await browsers[2].next()).data == "small"

    test()


def test_a_client_whose_messages_do_not_move_on_is_told_to_try_later(
    sockets: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_budget, "PATIENCE", 0.05)

    @asynchronous
    async def test() -> None:
        async with several(echo, 4) as browsers:
            for browser in browsers:
                await browser.stream.write(frame(0, frame_of(10 << 20)) + frame(0, bytes(200 << 10)))
            told = [asyncio.create_task(browser.next()) for browser in browsers]
            done, _ = await asyncio.wait(told, return_when=asyncio.FIRST_COMPLETED)
            assert {task.result().code for task in done} == {1013}
            for task in told:
                task.cancel()

    test()


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> _budget.Budget:
    """One of 100 bytes, 10 of each socket's messages not counted."""
    monkeypatch.setattr(_budget, "LIMIT", 100)
    monkeypatch.setattr(_budget, "FREE", 10)
    return _budget.Budget()


def test_room_is_given_in_order_and_a_wait_that_is_given_up_leaves_no_trace(budget: _budget.Budget) -> None:
    @asynchronous
    async def test() -> None:
        first, second, third, small = (budget.share() for _ in range(4))
        for share in (first, second, third):
            share.keep(60)
        small.keep(10)
        assert budget.used == 150
        await first.more()
        await small.more()
        waiting = [asyncio.create_task(share.more()) for share in (second, third)]
        await rounds(2)
        waiting[0].cancel()
        await rounds(2)
        assert [task.done() for task in waiting] == [True, False]
        first.keep(70)
        await rounds(2)
        assert not waiting[1].done()
        first.keep(0)
        await waiting[1]
        for share in (second, third, small):
            share.keep(0)
        assert budget.used == 0
        assert not budget._waiting

    test()


def test_regression_a_websocket_that_ended_while_it_waited_for_room_waited_on(budget: _budget.Budget) -> None:
    @asynchronous
    async def test() -> None:
        first, second, third = (budget.share() for _ in range(3))
        for share in (first, second, third):
            share.keep(210)
        await first.more()
        waiting = [asyncio.create_task(share.more()) for share in (second, third)]
        await rounds(2)
        third.keep(0)
        await waiting[1]
        assert not waiting[0].done()
        first.keep(0)
        await waiting[0]

    test()
