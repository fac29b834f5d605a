"""What a long life costs: streams, connections and loops that are done leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
import threading

from support import CLIENT_TLS, pair, run, serving, until

from wayferry import quic

STREAMS = 20_000
STREAM_COST = 100
"""Bytes of memory that the system may take more, for each stream; a native object that stays has more."""
DATAGRAMS = 20_000
DATAGRAM = 1000


def resident() -> int:
    """This process's memory in bytes, as the system counts it."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def python_objects(connection: quic.Connection) -> dict[str, int]:
    """How many objects Python has, and what the package keeps for `connection` and its loop."""
    gc.collect()
    reactor = connection._reactor
    return {
        "objects": len(gc.get_objects()),
        "waiters": len(reactor.waiters),
        "watchers": len(reactor.watchers),
        "dirty": len(reactor.dirty),
        "unflushed": len(connection._unflushed),
    }


def grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """What there is more of."""
    return {name: after[name] - before[name] for name in before if after[name] > before[name]}


def test_streams_that_are_done_cost_nothing() -> None:
    async def main() -> None:
        async with pair() as (client, server):

            async def some(count: int) -> None:
                for _ in range(count):
                    stream = await client.open_uni()
                    await stream.write(b"content")
                    await stream.finish()
                    assert await (await server.accept_uni()).read_to_end(100) == b"content"
                await stream.acked()

            # The first ones fill caches and pools; what follows would show what grows with every stream.
            await some(STREAMS // 2)
            size, objects = resident(), python_objects(client)
            await some(STREAMS)
            extra = grown(objects, python_objects(client))
            assert extra.pop("objects", 0) < STREAMS // 100
            assert not extra
            assert resident() - size < STREAMS * STREAM_COST

    run(main())


def test_datagrams_that_are_done_cost_nothing() -> None:
    async def main() -> None:
        async with pair() as (client, server):

            async def some(count: int) -> None:
                for _ in range(count):
                    await client.send_datagram(bytes(DATAGRAM))
                    await server.receive_datagram()

            await some(DATAGRAMS // 4)
            size, objects = resident(), python_objects(client)
            await some(DATAGRAMS)
            extra = grown(objects, python_objects(client))
            assert extra.pop("objects", 0) < DATAGRAMS // 100
            assert not extra
            # A fifth of what was sent.
            assert resident() - size < DATAGRAMS * DATAGRAM // 5

    run(main())


def test_loops_and_connections_that_are_done_leave_no_file_and_no_thread() -> None:
    async def once() -> None:
        async with pair() as (client, server):
            stream = await client.open_uni()
            await stream.write(b"x")
            await stream.finish()
            assert await (await server.accept_uni()).read_to_end(1) == b"x"

    # A loop has files of its own, so both are counted inside of one.
    async def count() -> int:
        return open_files()

    async def settle() -> None:
        await until(lambda: open_files() <= files)

    run(once())
    files, threads = run(count()), threading.active_count()
    for _ in range(20):
        run(once())
    # A socket belongs to the background thread, which closes it a moment later.
    run(settle())
    assert threading.active_count() <= threads


def test_connections_of_one_loop_leave_no_file_and_no_task() -> None:
    async def main() -> None:
        async with serving() as server:

            async def once() -> None:
                async with quic.connect(*server.local_addr, tls=CLIENT_TLS) as client:
                    accepted = await anext(server)
                    await client.send_datagram(b"x")
                    assert await accepted.receive_datagram() == b"x"
                    await accepted.close(drain=0)

            await once()
            files, tasks = open_files(), len(asyncio.all_tasks())
            for _ in range(30):
                await once()
            await until(lambda: open_files() <= files)
            await until(lambda: len(asyncio.all_tasks()) <= tasks)

    run(main())


def test_failed_connects_leave_no_file() -> None:
    async def main() -> None:
        async with serving() as server:
            wrong = quic.ClientTls(pins=["00" * 32], alpn=["test"])

            async def fail() -> None:
                try:
                    await quic.connect(*server.local_addr, tls=wrong)
                except quic.TlsError:
                    return
                raise AssertionError("connected")

            await fail()
            files = open_files()
            for _ in range(20):
                await fail()
            await until(lambda: open_files() <= files)

    run(main())
