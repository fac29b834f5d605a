"""Cancelling HTTP/3 at each turn of the loop: a cancelled write has sent nothing, a cancelled read has lost
nothing, a request that is given up disturbs no other, and nothing is left over.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from http3_support import SERVER_TLS, app, client_of, raw_client, raw_server, served, url_of
from support import HOST, asynchronous, rounds, until
from test_cancellation import Harrier
from test_http3_hostile import REQUEST, outcome

from wayferry import http3, quic
from wayferry.http3 import ErrorCode

SEED = int(os.environ.get("WAYFERRY_SEED", "20261128"))
NARROW = quic.Config(stream_window=16 << 10, connection_window=64 << 10, send_window=16 << 10, bi_streams=4)
"""Little room: every operation often has to wait."""
TURNS = 120
"""After so many turns of the loop a request is done even where it waits for everything."""
BODIES = 60


@asynchronous
async def test_a_request_cancelled_at_each_turn_disturbs_no_other() -> None:
    async with served(app, NARROW) as server, client_of(server, NARROW) as client:
        body = bytes(60_000)
        for turns in range(TURNS):
            task = asyncio.create_task(client.request("POST", "/", content=body))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait((task,))
            if turns % 20 == 0:
                assert (await client.request("POST", "/whole", content=b"well")).content == b"well"
        await until(lambda: not server._requests)


@asynchronous
async def test_connecting_cancelled_at_each_turn_leaves_nothing() -> None:
    tls = quic.ClientTls(pins=[SERVER_TLS.fingerprint])
    async with served() as server:
        for turns in range(40):
            task = asyncio.create_task(http3.get(url_of(server), tls=tls))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait((task,))
        assert (await http3.get(url_of(server), tls=tls)).status_code == 200
        await until(lambda: not server._links)


@asynchronous
async def test_serving_cancelled_at_each_turn_leaves_nothing() -> None:
    told: list[str] = []

    async def living(scope: dict[str, Any], receive: Any, send: Any) -> None:
        for _ in range(2):
            event = (await receive())["type"]
            told.append(event)
            await asyncio.sleep(0)
            await send({"type": f"{event}.complete"})

    async def briefly() -> None:
        async with http3.serve_asgi(living, HOST, 0, tls=SERVER_TLS) as server, client_of(server):
            pass

    for turns in range(30):
        task = asyncio.create_task(briefly())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))
    await until(lambda: len(asyncio.all_tasks()) == 1)


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
