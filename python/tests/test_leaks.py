"""What a long life costs: streams, connections and loops that are done leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
import threading

from support import CLIENT_TLS, pair, run, serving, until

from wayferry import quic

STREAMS = 20_000
MIB = 1 << 20


def resident() -> int:
    """This process's memory in bytes, as the system counts it."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_streams_that_are_done_cost_nothing() -> None:
    async def main() -> None:
        async with pair() as (client, server), asyncio.TaskGroup() as group:

            async def read() -> None:
                async for stream in server.accept_uni():
                    assert await stream.read_to_end(100) == b"content"

            group.create_task(read())
            sizes = []
            for _ in range(4):
                for _ in range(STREAMS // 4):
                    stream = await client.open_uni()
                    await stream.write(b"content")
                    await stream.finish()
                await stream.acked()
                gc.collect()
                sizes.append(resident())
            # The first quarter fills caches and pools; later ones would show what grows with every stream.
            assert sizes[-1] - sizes[0] < 8 * MIB, sizes
            await client.close(drain=0)

    run(main())


def test_datagrams_that_are_done_cost_nothing() -> None:
    async def main() -> None:
        async with pair() as (client, server):
            sizes = []
            for _ in range(3):
                for _ in range(3000):
                    await client.send_datagram(bytes(1000))
                    await server.receive_datagram()
                gc.collect()
                sizes.append(resident())
            assert sizes[-1] - sizes[0] < 8 * MIB, sizes

    run(main())


def test_loops_and_connections_that_are_done_leave_no_file_and_no_thread() -> None:
    async def once() -> None:
        async with pair() as (client, server):
            stream = await client.open_uni()
            await stream.write(b"x")
            await stream.finish()
            assert await (await server.accept_uni()).read_to_end(1) == b"x"

    async def settle() -> None:
        await until(lambda: open_files() <= files)

    run(once())
    files, threads = open_files(), threading.active_count()
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
