"""Datagrams: whole or not at all, bounded in size and number, and never two for one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from relay import Relay
from support import CLIENT_TLS, asynchronous, ended, pair, rounds, serving, until

from wayferry import quic


@asynchronous
async def test_datagrams_arrive_both_ways() -> None:
    async with pair() as ends:
        for near, far in ends, ends[::-1]:
            for data in b"", b"x", bytes(range(256)) * 4:
                await near.send_datagram(data)
                assert await far.receive_datagram() == data
            assert near.send_datagram_nowait(memoryview(b"-now-")[1:-1])
            assert await far.receive_datagram() == b"now"


@asynchronous
async def test_the_largest_datagram_arrives_and_a_larger_one_is_refused() -> None:
    async with pair() as (client, server):
        # It may grow while the path's MTU is probed, and never shrinks below what it was on a sound path.
        most = client.max_datagram_size
        assert most is not None
        assert most >= 1000
        await client.send_datagram(bytes(most))
        assert await server.receive_datagram() == bytes(most)
        with pytest.raises(quic.TooLarge) as caught:
            await client.send_datagram(bytes(65536))
        assert caught.value.size == 65536
        assert caught.value.max >= most
        with pytest.raises(quic.TooLarge):
            client.send_datagram_nowait(bytes(65536))


@asynchronous
async def test_datagrams_that_are_switched_off_are_refused() -> None:
    on, off = quic.Config(), quic.Config(datagrams=False)
    for near, far in (off, on), (on, off):
        async with pair(config=near, server_config=far) as ends:
            for end in ends:
                assert end.max_datagram_size is None
                with pytest.raises(quic.DatagramsUnsupported):
                    await end.send_datagram(b"x")
                with pytest.raises(quic.DatagramsUnsupported):
                    end.send_datagram_nowait(b"x")


@asynchronous
async def test_iterating_datagrams_ends_with_the_connection() -> None:
    async with pair() as (client, server):
        got = []
        await client.send_datagram(b"1")
        await client.send_datagram(b"2")
        async for datagram in server.datagrams():
            got.append(datagram)
            if len(got) == 2:
                await client.close(drain=0)
        assert got == [b"1", b"2"]


@asynchronous
async def test_iterating_datagrams_tells_of_an_error() -> None:
    async with pair() as (client, server):
        await client.close(code=5, drain=0)
        with pytest.raises(quic.ConnectionClosed) as caught:
            async for _ in server.datagrams():
                pass
        assert (caught.value.code, caught.value.by) == (5, "peer")


@asynchronous
async def test_a_cancelled_wait_for_a_datagram_loses_none() -> None:
    async with pair() as (client, server):
        iterator = server.datagrams()
        for number in range(50):
            waiting = asyncio.ensure_future(anext(iterator) if number % 2 else server.receive_datagram())
            await rounds(number % 4)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await client.send_datagram(b"%d" % number)
            assert await (server.receive_datagram() if number % 3 else anext(iterator)) == b"%d" % number


@asynchronous
async def test_several_receivers_share_the_datagrams() -> None:
    async with pair() as (client, server):
        waits = [asyncio.ensure_future(server.receive_datagram()) for _ in range(5)]
        for number in range(5):
            await client.send_datagram(b"%d" % number)
        assert sorted(await asyncio.gather(*waits)) == [b"0", b"1", b"2", b"3", b"4"]


WAITING = 50


@asynccontextmanager
async def blocked() -> AsyncIterator[tuple[Relay, quic.Connection, quic.Connection]]:
    """A pair of which the client can send nothing: the congestion window is full, and then the buffer.

    Nothing but probes leaves it, one or two at ever longer intervals (RFC 9002 §6.2).
    """
    config = quic.Config(datagram_buffer=16 * 1024)
    async with serving(config=config) as server:
        with Relay(server.local_addr) as relay:
            async with quic.connect(*relay.address, tls=CLIENT_TLS, config=config) as client:
                accepted = await anext(server)
                relay.hold()
                for _ in range(20_000):
                    if not client.send_datagram_nowait(bytes(1000)):
                        break
                    await rounds(1)
                else:
                    pytest.fail("the buffer of datagrams has no bound")
                yield relay, client, accepted
                await client.close(drain=0)
                await accepted.close(drain=0)


@asynchronous
async def test_sending_datagrams_waits_for_room() -> None:
    async with blocked() as (relay, client, server):
        waits = [asyncio.ensure_future(client.send_datagram(bytes(1000))) for _ in range(WAITING)]
        never = asyncio.ensure_future(client.send_datagram(b"never" * 200))
        last = asyncio.ensure_future(client.send_datagram(b"last" * 250))
        await rounds(50)
        assert not all(waiting.done() for waiting in waits)
        assert not never.done()
        assert not last.done()
        never.cancel()
        relay.release()
        got: list[bytes] = []
        while not got or got[-1] != b"last" * 250:
            got.append(await server.receive_datagram())
        await asyncio.wait([*waits, last])
        assert b"never" * 200 not in got


@asynchronous
async def test_a_wait_for_room_ends_with_the_connection() -> None:
    async with blocked() as (_, client, _server):
        waits = [asyncio.ensure_future(client.send_datagram(bytes(1000))) for _ in range(WAITING)]
        await rounds(5)
        await client.close(drain=0)
        for waiting in waits[-10:]:
            assert isinstance(await ended(waiting), quic.ConnectionClosed)
        await asyncio.wait(waits)
        assert all(isinstance(waiting.exception(), quic.ConnectionClosed | None) for waiting in waits)


async def arrive(near: quic.Connection, far: quic.Connection, count: int) -> None:
    """Has `count` datagrams arrive that no task takes, each with its number."""
    before = far.stats().received_datagram_frames
    for number in range(count):
        assert near.send_datagram_nowait(b"%d" % number)
    await until(lambda: far.stats().received_datagram_frames == before + count)


@asynchronous
async def test_datagrams_that_came_together_are_for_all_who_take_them() -> None:
    async with pair() as (client, server):
        await arrive(client, server, 400)
        iterator = server.datagrams()
        got = [await anext(iterator), await server.receive_datagram()]
        async for datagram in server.datagrams():
            got.append(datagram)
            if len(got) == 300:
                break
        waits = [asyncio.ensure_future(server.receive_datagram()) for _ in range(50)]
        got += await asyncio.gather(*waits)
        await client.close(drain=0)
        await server.closed()
        got += [datagram async for datagram in iterator]
        assert got == [b"%d" % number for number in range(400)]


@asynchronous
async def test_datagrams_that_are_dropped_are_counted() -> None:
    async with pair(server_config=quic.Config(datagram_buffer=4096)) as (client, server):
        await arrive(client, server, 500)
        dropped = server.stats().dropped_datagrams
        assert 0 < dropped < 500
        got = [await server.receive_datagram() for _ in range(500 - dropped)]
        assert got == [b"%d" % number for number in range(dropped, 500)]
        assert server.stats().dropped_datagrams == dropped
        assert client.stats().dropped_datagrams == 0
