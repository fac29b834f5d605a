"""A server that goes (RFC 9114 §5.2): what waits in vain for it ends at once."""

from __future__ import annotations

import asyncio

import pytest
from http3_support import CONTROL, frame, number, raw_server
from support import asynchronous, rounds, until
from test_http3_hostile import OK

from wayferry import http3, quic
from wayferry.http3 import ErrorCode

GOAWAY = 7


async def go(server: quic.Connection, first: int) -> quic.SendStream:
    """Tells a client that no request from number `first` on is taken; the stream has to be kept."""
    control = await server.open_uni()
    await control.write(CONTROL + frame(GOAWAY, number(first)))
    return control


@asynchronous
async def test_regression_who_waited_for_a_stream_was_not_woken_when_the_server_went() -> None:
    async with raw_server(None, quic.Config(bi_streams=1)) as (client, server):
        first = asyncio.create_task(client.get("/"))
        stream = await server.accept_bi()
        waiting = [asyncio.create_task(client.get("/")) for _ in range(3)]
        await until(lambda: client.connection._open_bi.callers == 3)
        _control = await go(server, 4)
        for task in waiting:
            with pytest.raises(http3.GoingAway):
                await task
        await stream.write(OK)
        await stream.finish()
        assert (await first).status_code == 200


@asynchronous
async def test_regression_who_waited_to_write_was_not_woken_when_the_server_went() -> None:
    async with raw_server(None, quic.Config(stream_window=16 << 10)) as (client, server):
        async with client.stream("POST", "/", content=None) as exchange:
            stream = await server.accept_bi()
            writing = asyncio.create_task(write_on(exchange))
            await until(lambda: exchange._outgoing._stream._line.callers)
            _control = await go(server, 0)
            with pytest.raises(http3.GoingAway):
                await writing
            with pytest.raises(http3.GoingAway):
                await exchange.write(b"more")
            with pytest.raises(http3.GoingAway):
                await exchange.finish()
            with pytest.raises(http3.GoingAway):
                await exchange.response()
        with pytest.raises(quic.StreamReset) as caught:
            await stream.read_to_end(1 << 20)
        assert caught.value.code == ErrorCode.REQUEST_CANCELLED


@asynchronous
async def test_a_body_that_is_given_whole_is_given_up_when_the_server_goes() -> None:
    async with raw_server(None, quic.Config(stream_window=16 << 10)) as (client, server):
        asking = asyncio.create_task(client.request("POST", "/", content=bytes(1 << 20)))
        _stream = await server.accept_bi()
        await rounds(10)
        _control = await go(server, 0)
        with pytest.raises(http3.GoingAway):
            await asking


@asynchronous
async def test_what_the_server_still_takes_goes_on() -> None:
    async with raw_server(None, quic.Config(stream_window=16 << 10)) as (client, server):
        asking = asyncio.create_task(client.request("POST", "/", content=bytes(1 << 20)))
        stream = await server.accept_bi()
        _control = await go(server, 4)
        await until(lambda: client._link.going == 4)
        assert len(await stream.read_to_end(2 << 20)) > 1 << 20
        await stream.write(OK)
        await stream.finish()
        assert (await asking).status_code == 200


async def write_on(exchange: http3.Exchange) -> None:
    while True:
        await exchange.write(bytes(8 << 10))
