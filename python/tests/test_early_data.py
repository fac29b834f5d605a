"""Early data (0-RTT): sent with a ticket, told apart on arrival, and never silently lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from relay import Relay
from support import ALPN, CERT, CLIENT_TLS, KEY, PIN, asynchronous, ended, serving, until

from wayferry import quic

EARLY_SERVER_TLS = quic.ServerTls(CERT, KEY, alpn=ALPN, early_data=True)


async def ticket(server: quic.Server, tickets: quic.TicketStore, relay: Relay | None = None) -> None:
    """One connection that ends once the server has given a ticket. Tickets are for one address."""
    address = relay.address if relay else server.local_addr
    async with quic.connect(*address, tls=CLIENT_TLS, tickets=tickets):
        accepted = await anext(server)
        await until(lambda: len(tickets) > 0)
        await accepted.close(drain=0)


@asynccontextmanager
async def held_call(relay: Relay, tickets: quic.TicketStore) -> AsyncIterator[quic.Connection]:
    """A connection that hears nothing before `release()`: until then all that it sends is early."""
    relay.hold(answers=True)
    async with quic.connect(*relay.address, tls=CLIENT_TLS, tickets=tickets, early_data=True) as client:
        yield client
        await client.close(drain=0)


@asynchronous
async def test_early_data_arrives_and_is_told_apart() -> None:
    tickets = quic.TicketStore()
    async with serving(tls=EARLY_SERVER_TLS) as server:
        with Relay(server.local_addr) as relay:
            await ticket(server, tickets, relay)
            async with held_call(relay, tickets) as client:
                assert client.is_early
                early = await client.open_bi()
                await early.send.write(b"early")
                await early.send.finish()
                accepted = await anext(server)
                received = await accepted.accept_bi()
                assert received.receive.is_early
                assert await received.receive.read_to_end(10) == b"early"
                await received.send.write(b"answer")
                await received.send.finish()
                relay.release()
                assert await client.early_data_accepted() is True
                assert await client.early_data_accepted() is True
                assert await early.receive.read_to_end(10) == b"answer"
                await accepted.early_data_accepted()
                late = await client.open_uni()
                await late.finish()
                assert not (await accepted.accept_uni()).is_early
                assert not client.is_early
                await accepted.close(drain=0)


@asynchronous
async def test_without_a_ticket_nothing_is_early() -> None:
    async with (
        serving(tls=EARLY_SERVER_TLS) as server,
        quic.connect(
            *server.local_addr, tls=CLIENT_TLS, tickets=quic.TicketStore(), early_data=True
        ) as client,
    ):
        assert await client.early_data_accepted() is False
        stream = await client.open_uni()
        await stream.finish()
        accepted = await anext(server)
        assert not (await accepted.accept_uni()).is_early
        await accepted.close(drain=0)


@asynchronous
async def test_rejected_early_data_is_an_error_and_the_connection_lives() -> None:
    tickets = quic.TicketStore()
    async with serving(tls=EARLY_SERVER_TLS) as server:
        with Relay(server.local_addr) as relay:
            await ticket(server, tickets, relay)
            # New keys know no old tickets.
            server.reload_tls(quic.ServerTls(CERT, KEY, alpn=ALPN, early_data=True))
            async with held_call(relay, tickets) as client:
                early = await client.open_bi()
                await early.send.write(b"early")
                waiting = asyncio.ensure_future(early.receive.read())
                relay.release()
                assert await client.early_data_accepted() is False
                assert isinstance(await ended(waiting), quic.EarlyDataRejected)
                with pytest.raises(quic.EarlyDataRejected):
                    await early.receive.read()
                with pytest.raises(quic.EarlyDataRejected):
                    await early.send.write(b"more")
                assert await client.early_data_accepted() is False
                accepted = await anext(server)
                again = await client.open_uni()
                await again.write(b"again")
                await again.finish()
                assert await (await accepted.accept_uni()).read_to_end(10) == b"again"
                await accepted.close(drain=0)


@asynchronous
async def test_the_answer_is_the_same_after_a_failed_handshake() -> None:
    tickets = quic.TicketStore()
    async with serving(tls=EARLY_SERVER_TLS) as server:
        await ticket(server, tickets)
        address = server.local_addr
    # No server listens there any more.
    config = quic.Config(handshake_timeout=0.3)
    client = await quic.connect(*address, tls=CLIENT_TLS, tickets=tickets, early_data=True, config=config)
    waits = [asyncio.ensure_future(_accepted(client)) for _ in range(2)]
    for waiting in *waits, asyncio.ensure_future(_accepted(client)):
        error = await ended(waiting)
        if error is None:
            assert waiting.result() is False
        else:
            assert isinstance(error, quic.ConnectionClosed)
    assert await client.closed() is not None
    await client.close(drain=0)


async def _accepted(client: quic.Connection) -> bool:
    return await client.early_data_accepted()


@asynchronous
async def test_a_server_that_takes_no_early_data_gets_none() -> None:
    tickets = quic.TicketStore()
    async with serving() as server:
        await ticket(server, tickets)
        async with quic.connect(
            *server.local_addr, tls=CLIENT_TLS, tickets=tickets, early_data=True
        ) as client:
            assert await client.early_data_accepted() is False
            accepted = await anext(server)
            await accepted.close(drain=0)


@asynchronous
async def test_a_ticket_store_is_bounded() -> None:
    tickets = quic.TicketStore(limit=2)
    async with serving(tls=EARLY_SERVER_TLS) as first, serving(tls=EARLY_SERVER_TLS) as second:
        for server in first, second, first:
            await ticket(server, tickets)
    assert len(tickets) <= 2
    assert PIN not in repr(tickets)
