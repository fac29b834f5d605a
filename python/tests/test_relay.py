"""A bad network between the ends: what arrives is still exactly what was sent. Seeds make a failure
repeatable."""

from __future__ import annotations

import asyncio
import random

import pytest
from relay import Faults, Relay
from support import CLIENT_TLS, asynchronous, echo, serving, until

from wayferry import quic

BAD = Faults(loss=0.05, duplicate=0.05, reorder=0.1)
MIB = 1 << 20
FLIGHT = 16


@pytest.mark.parametrize("seed", [1, 2, 3])
@asynchronous
async def test_streams_are_exact_over_a_bad_network(seed: int) -> None:
    data = random.Random(seed).randbytes(MIB)
    async with serving() as server:
        with Relay(server.local_addr, BAD, seed) as relay:
            async with quic.connect(*relay.address, tls=CLIENT_TLS) as client, asyncio.TaskGroup() as group:
                accepted = await anext(server)
                group.create_task(echo(accepted))

                async def one(part: bytes) -> None:
                    stream = await client.open_bi()
                    await stream.send.write(part)
                    await stream.send.finish()
                    assert await stream.receive.read_to_end(len(part)) == part

                async with asyncio.TaskGroup() as callers:
                    for at in range(0, MIB, MIB // 16):
                        callers.create_task(one(data[at : at + MIB // 16]))
                await client.close(drain=0)
                await accepted.close(drain=0)
        assert min(relay.counts.lost, relay.counts.duplicated, relay.counts.reordered) > 0


@asynchronous
async def test_unordered_reading_is_ahead_of_a_gap_and_complete() -> None:
    data = random.Random(4).randbytes(2 * MIB)
    async with serving() as server:
        with Relay(server.local_addr, Faults(loss=0.03, reorder=0.1), 4) as relay:
            async with quic.connect(*relay.address, tls=CLIENT_TLS) as client, asyncio.TaskGroup() as group:
                accepted = await anext(server)
                sending = await client.open_uni()

                async def send() -> None:
                    await sending.write(data)
                    await sending.finish()

                group.create_task(send())
                got, counted, offsets = bytearray(len(data)), 0, []
                async for offset, piece in (await accepted.accept_uni()).unordered():
                    got[offset : offset + len(piece)] = piece
                    counted += len(piece)
                    offsets.append(offset)
                assert counted == len(data)
                assert bytes(got) == data
                assert offsets != sorted(offsets)
                await client.close(drain=0)
                await accepted.close(drain=0)


@asynchronous
async def test_datagrams_are_never_doubled_or_changed() -> None:
    async with serving() as server:
        with Relay(server.local_addr, Faults(loss=0.2, duplicate=0.3, reorder=0.2), 5) as relay:
            async with quic.connect(*relay.address, tls=CLIENT_TLS) as client:
                accepted = await anext(server)
                sent = [b"%03d" % number + random.Random(number).randbytes(100) for number in range(300)]
                got: list[bytes] = []

                async def receive() -> None:
                    async for datagram in accepted.datagrams():
                        got.append(datagram)

                receiving = asyncio.ensure_future(receive())
                for datagram in sent:
                    await client.send_datagram(datagram)
                    await asyncio.sleep(0)
                # A stream that is acknowledged tells that what was sent before it has arrived or is lost.
                last = await client.open_uni()
                await last.finish()
                await last.acked()
                await until(lambda: len(got) > len(sent) // 4)
                receiving.cancel()
                await asyncio.wait([receiving])
                assert len(got) == len(set(got))
                assert set(got) <= set(sent)
                await accepted.close(drain=0)


@asynchronous
async def test_a_handshake_gets_through_heavy_loss() -> None:
    async with serving() as server:
        for seed in range(6):
            with Relay(server.local_addr, Faults(loss=0.25, duplicate=0.2, reorder=0.2), seed) as relay:
                async with quic.connect(*relay.address, tls=CLIENT_TLS):
                    accepted = await anext(server)
                    await accepted.close(drain=0)


@asynchronous
async def test_an_outage_shorter_than_the_idle_timeout_is_survived() -> None:
    async with serving() as server:
        with Relay(server.local_addr) as relay:
            async with quic.connect(*relay.address, tls=CLIENT_TLS) as client, asyncio.TaskGroup() as group:
                accepted = await anext(server)
                group.create_task(echo(accepted))
                stream = await client.open_bi()
                relay.hold()
                data = bytes(50_000)
                back = group.create_task(stream.receive.read_to_end(len(data)))
                await stream.send.write(data)
                await stream.send.finish()
                # What is held is more than a first flight: the client has tried again by now.
                await until(lambda: relay.held > FLIGHT)
                assert not back.done()
                relay.release()
                assert await back == data
                await client.close(drain=0)
                await accepted.close(drain=0)
