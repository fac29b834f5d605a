"""Cancelling HTTP/3 at each turn of the loop and at each wait: a cancelled write has sent nothing, a
cancelled read has lost nothing, a request that is given up disturbs no other, and nothing is left over.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
import wsproto.events as ws
from http3_support import (
    CLIENT_TLS,
    SERVER_TLS,
    app,
    client_of,
    frame,
    raw_client,
    raw_server,
    served,
    url_of,
)
from support import HOST, asynchronous, rounds, until
from test_cancellation import Harrier
from test_http3_hostile import REQUEST, outcome
from test_http3_websocket import CONNECT, Browser

from wayferry import http3, quic
from wayferry.http3 import ErrorCode
from wayferry.quic import _native

SEED = int(os.environ.get("WAYFERRY_SEED", "20261128"))
NARROW = quic.Config(stream_window=16 << 10, connection_window=64 << 10, send_window=16 << 10, bi_streams=4)
"""Little room: every operation often has to wait."""
BODIES = 60


@pytest.mark.parametrize("size", [0, 20_000, 60_000])
@asynchronous
async def test_a_request_cancelled_at_each_moment_disturbs_no_other(size: int) -> None:
    """Bodies that leave in one piece, in two, and beside the answer."""
    body = bytes(range(250)) * (size // 250)
    harrier = Harrier(SEED)
    async with served(app, NARROW) as server, client_of(server, NARROW) as client:

        async def ask() -> bytes:
            return (await client.request("POST", "/", content=body)).content

        for attempts in (harrier.at_each_wait, harrier.at_each_turn):
            assert await attempts("request", ask) == body
            assert (await client.request("POST", "/whole", content=b"well")).content == b"well"
        await until(lambda: not server._requests)
    assert harrier.total > 2


@asynchronous
async def test_connecting_cancelled_at_each_wait_leaves_nothing() -> None:
    tls = quic.ClientTls(pins=[SERVER_TLS.fingerprint])
    harrier = Harrier(SEED)
    async with served() as server:

        async def get() -> int:
            return (await http3.get(url_of(server), tls=tls)).status_code

        assert await harrier.at_each_wait("get", get) == 200
        await until(lambda: not server._links)
    assert harrier.total > 2


@asynchronous
async def test_serving_cancelled_at_each_wait_leaves_nothing() -> None:
    told: list[str] = []

    async def living(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            return await app(scope, receive, send)
        for _ in range(2):
            event = (await receive())["type"]
            told.append(event)
            await asyncio.sleep(0)
            await send({"type": f"{event}.complete"})
        return None

    async def briefly() -> bytes:
        async with http3.serve_asgi(living, HOST, 0, tls=SERVER_TLS) as server, client_of(server) as client:
            return (await client.request("POST", "/whole", content=b"well")).content

    harrier = Harrier(SEED)
    assert await harrier.at_each_wait("serve", briefly) == b"well"
    await until(lambda: len(asyncio.all_tasks()) == 1)
    # The last attempt came to its end, and so did those that were cancelled in that.
    assert told[-2:] == ["lifespan.startup", "lifespan.shutdown"]
    assert harrier.total > 2


@asynchronous
async def test_the_ends_of_a_request_a_client_and_a_server_cancelled_at_each_wait() -> None:
    """What has ended stays so, and what was cancelled can be done again."""
    harrier = Harrier(SEED)
    async with served(app) as server:
        waiting = asyncio.create_task(harrier.at_each_wait("closed", server.closed))
        client = await http3.connect(url_of(server), tls=CLIENT_TLS)
        async with client.stream("POST", "/whole", content=None) as exchange:
            await exchange.write(b"well")
            await harrier.at_each_wait("finish", exchange.finish, {"x-end": "1"})
            assert await exchange.read(100) == b"well"
        await harrier.at_each_wait("close", client.close)
        with pytest.raises(quic.ConnectionClosed):
            await client.get("/")
        await until(lambda: not server._links)
        assert not waiting.done()
        await server.close()
        await waiting
    assert harrier.least(["close", "closed"]) > 0


@asynchronous
async def test_a_client_that_was_cancelled_in_closing_is_closed() -> None:
    async with served() as server:
        client = await http3.connect(url_of(server), tls=CLIENT_TLS)
        closing = asyncio.create_task(client.close())
        await rounds(1)
        closing.cancel()
        await asyncio.wait((closing,))
        await until(lambda: not server._links)


@asynchronous
async def test_trailers_cancelled_at_each_wait_leave_once() -> None:
    """While the server reads nothing, so that they wait behind the body."""
    harrier = Harrier(SEED)
    reads = asyncio.Event()
    size = 1 << 20

    async def late(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await reads.wait()
        await app({**scope, "path": "/whole"}, receive, send)

    async with (
        served(late, NARROW) as server,
        client_of(server, NARROW) as client,
        client.stream("POST", "/", content=None) as exchange,
    ):
        # It is taken as a whole, and leaves room for no other.
        await exchange.write(bytes(size))
        finishing = asyncio.create_task(
            harrier.at_each_wait("finish", exchange.finish, {"x-end": "1"}),
        )
        await until(lambda: harrier.cancelled["finish"])
        reads.set()
        await finishing
        assert len(await exchange.read(size)) == size
    assert harrier.total > 1


@asynchronous
async def test_a_websocket_cancelled_at_each_wait_loses_and_doubles_nothing() -> None:
    harrier = Harrier(SEED)
    messages = [bytes([number]) * harrier.size(60_000) for number in range(20)]

    async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await harrier.at_each_wait("receive", receive)
        await harrier.at_each_wait("send", send, {"type": "websocket.accept"})
        received = []
        while (message := await harrier.at_each_wait("receive", receive))["type"] == "websocket.receive":
            received.append(message["bytes"])
            await harrier.at_each_wait("send", send, {**message, "type": "websocket.send"})
        assert received == messages

    async with served(echo, NARROW) as server, raw_client(server, config=NARROW) as connection:
        stream = await connection.open_bi()
        await stream.write(frame(1, _native.http3_section(CONNECT, None)))
        browser = Browser(stream)
        await browser.told()

        async def ask() -> None:
            for number, message in enumerate(messages):
                await browser.send(ws.BytesMessage(message))
                if number >= 10:
                    await browser.send(ws.Ping(message[:1]))
            await browser.send(ws.CloseConnection(3001))

        asking = asyncio.create_task(ask())
        # Until then the client reads nothing.
        await until(lambda: harrier.cancelled["send"])
        echoed = bytearray()
        pongs = []
        while not isinstance(event := await browser.next(), ws.CloseConnection):
            if isinstance(event, ws.Pong):
                pongs.append(event.payload)
            else:
                echoed += event.data
        await asking
        assert echoed == b"".join(messages)
        assert pongs == [message[:1] for message in messages[10:]]
        assert event.code == 3001
        assert await browser.told() == b""
    assert harrier.least(["receive", "send"]) > 0


@asynchronous
async def test_cancelled_writes_send_nothing_and_cancelled_reads_lose_nothing() -> None:
    """On both sides: what arrives are the bytes of the attempts that got through, in their order."""
    harrier = Harrier(SEED)
    sent, received, answered = bytearray(), bytearray(), bytearray()

    async def hurried(scope: dict[str, Any], receive: Any, send: Any) -> None:
        more = True
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while more:
            message = await harrier.retry("receive", receive)
            more = message["more_body"]
            received.extend(message["body"])
            piece = {"type": "http.response.body", "body": message["body"], "more_body": True}
            await harrier.retry("send", send, piece)
        await send({"type": "http.response.body"})

    async with (
        served(hurried, NARROW) as server,
        client_of(server, NARROW) as client,
        client.stream("POST", "/", content=None) as exchange,
    ):

        async def write() -> None:
            for number in range(BODIES):
                piece = bytes([number]) * harrier.size(30_000)
                await harrier.retry("write", exchange.write, piece)
                sent.extend(piece)
            await exchange.finish({"x-end": "1"})

        writing = asyncio.create_task(write())
        await harrier.retry("response", exchange.response)
        while True:
            try:
                answered.extend(await harrier.retry("read", exchange.__anext__))
            except StopAsyncIteration:
                break
        await writing
    assert sent == received == answered
    assert harrier.least(["receive", "send", "write", "read"]) > 0


@asynchronous
async def test_regression_a_request_that_was_dropped_was_given_up_without_a_code() -> None:
    """RFC 9114 §8.1 has one for it; another says that the client is broken."""
    async with raw_server() as (client, server):
        exchange = await client.stream("POST", "/", content=None)
        stream = await server.accept_bi()
        del exchange
        assert await outcome(stream) == (ErrorCode.REQUEST_CANCELLED, ErrorCode.REQUEST_CANCELLED)


@asynchronous
async def test_regression_a_request_that_was_cancelled_before_its_headers_was_reset_without_a_code() -> None:
    async with served() as server, raw_client(server) as client:
        stream = await client.open_bi()
        await stream.write(REQUEST[:2])
        await until(lambda: server._requests)
        # It has begun, and waits.
        await rounds(5)
        for task in server._requests:
            task.cancel()
        assert await outcome(stream) == (ErrorCode.REQUEST_REJECTED, ErrorCode.REQUEST_REJECTED)
