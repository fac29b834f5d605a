"""asyncio's readers and writers on streams: all arrives in order, waits end, errors are the stream's."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from functools import partial

import pytest
from support import asynchronous, pair, until

from wayferry import quic

MIB = 1 << 20


def held(reader: asyncio.StreamReader) -> int:
    """Bytes that it has, which asyncio tells by no public name."""
    return len(reader._buffer)  # type: ignore[attr-defined]


def holds(reader: weakref.ref[asyncio.StreamReader]) -> bool:
    made = reader()
    return made is not None and held(made) > 0


def has_failed(reader: asyncio.StreamReader) -> bool:
    return reader.exception() is not None


@asynchronous
async def test_code_for_asyncio_runs_on_a_stream() -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            writer.write(line.upper())
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with pair() as (client, server), asyncio.TaskGroup() as group:
        near = await client.open_bi()
        reader, writer = near.reader(), near.writer()
        writer.writelines([b"one\n", b"two\n"])
        far = await server.accept_bi()
        serving = group.create_task(shout(far.reader(), far.writer()))
        assert await reader.readline() == b"ONE\n"
        assert await reader.readuntil(b"O") == b"TWO"
        writer.write(b"three")
        assert writer.can_write_eof()
        writer.write_eof()
        assert await reader.read() == b"\nTHREE"
        assert reader.at_eof()
        await serving
        assert writer.get_extra_info("peername") == client.remote_addr
        assert writer.get_extra_info("sockname") == client.local_addr


@asynchronous
async def test_much_arrives_whole_past_both_windows() -> None:
    data = bytes(range(251)) * (6 * MIB // 251)
    async with pair() as (client, server):
        sending = await client.open_uni()
        writer = sending.writer()
        for start in range(0, len(data), 100_000):
            writer.write(data[start : start + 100_000])
        writer.close()
        receiving = await server.accept_uni()
        reader = receiving.reader()
        drained = asyncio.ensure_future(writer.drain())
        closed = asyncio.ensure_future(writer.wait_closed())
        # Nothing is read: what is beyond the windows waits, and so do both.
        await until(lambda: held(reader) > 128 * 1024)
        assert not drained.done()
        assert not closed.done()
        assert await reader.read() == data
        await drained
        await closed


@asynchronous
async def test_a_reader_that_is_not_read_holds_little() -> None:
    async with pair() as (client, server):
        writer = (await client.open_uni()).writer()
        writer.write(bytes(8 * MIB))
        reader = (await server.accept_uni()).reader(limit=1000)
        await until(lambda: held(reader) > 2000)
        for _ in range(100):
            await asyncio.sleep(0)
        assert held(reader) <= 2000 + 64 * 1024
        writer.transport.abort()


@asynchronous
async def test_a_reset_is_an_error_of_the_reader() -> None:
    async with pair() as (client, server):
        sending = await client.open_uni()
        await sending.write(b"some")
        reader = (await server.accept_uni()).reader()
        assert await reader.readexactly(4) == b"some"
        sending.reset(7)
        with pytest.raises(quic.StreamReset) as caught:
            await reader.read()
        assert caught.value.code == 7


@asynchronous
async def test_what_came_before_an_error_is_read_first() -> None:
    async with pair() as (client, server):
        for wait in False, True:
            sending = await client.open_uni()
            await sending.write(b"one\ntwo\nthr")
            reader = (await server.accept_uni()).reader()
            await until(partial(holds, weakref.ref(reader)))
            reading = asyncio.ensure_future(reader.readuntil(b"three")) if wait else None
            sending.reset(7)
            await until(partial(has_failed, reader))
            if reading is not None:
                with pytest.raises(quic.StreamReset):
                    await reading
            assert [await reader.readline(), await reader.readline()] == [b"one\n", b"two\n"]
            with pytest.raises(quic.StreamReset):
                await reader.readline()
            assert await reader.read(100) == b"thr"
            for read in reader.read, reader.readline:
                with pytest.raises(quic.StreamReset):
                    await read()


@asynchronous
async def test_a_task_that_reads_lives_although_no_name_holds_it() -> None:
    got: list[bytes] = []

    async def take(reader: asyncio.StreamReader) -> None:
        got.append(await reader.read())

    async with pair() as (client, server):
        sending = await client.open_uni()
        await sending.write(b"!")
        asyncio.ensure_future(take((await server.accept_uni()).reader()))  # noqa: RUF006 - that is the test
        for _ in range(10):
            await asyncio.sleep(0)
            gc.collect()
        await sending.write(b"?")
        await sending.finish()
        await until(lambda: got)
        assert got == [b"!?"]


@asynchronous
async def test_drain_lets_others_run() -> None:
    async with pair() as (client, server):
        writer = (await client.open_uni()).writer()
        writer.write(b"!")
        reader = (await server.accept_uni()).reader()
        turns: list[int] = []
        asyncio.get_running_loop().call_soon(turns.append, 1)
        for _ in range(2000):
            writer.write(b".")
            await writer.drain()
        assert turns == [1]
        writer.close()
        assert len(await reader.read()) == 2001


@asynchronous
async def test_a_stop_is_an_error_of_the_writer() -> None:
    async with pair() as (client, server):
        writer = (await client.open_uni()).writer()
        writer.write(bytes(8 * MIB))
        (await server.accept_uni()).stop(9)
        with pytest.raises(quic.StreamStopped) as caught:
            await writer.drain()
        assert caught.value.code == 9
        assert writer.is_closing()
        writer.write(b"goes nowhere")
        with pytest.raises(quic.StreamStopped):
            await writer.wait_closed()


@asynchronous
async def test_the_end_of_the_connection_ends_both() -> None:
    async with pair() as (client, server):
        near = await client.open_bi()
        reader, writer = near.reader(), near.writer()
        writer.write(bytes(8 * MIB))
        far = await server.accept_bi()
        await far.read()
        waiting = [asyncio.ensure_future(wait) for wait in (reader.read(), writer.drain())]
        await server.close(5, drain=0)
        for wait in waiting:
            with pytest.raises(quic.ConnectionClosed):
                await wait


@asynchronous
async def test_abort_is_a_reset() -> None:
    async with pair() as (client, server):
        writer = (await client.open_uni()).writer()
        writer.write(bytes(8 * MIB))
        receiving = await server.accept_uni()
        drained = asyncio.ensure_future(writer.drain())
        await receiving.read()
        writer.transport.abort()
        with pytest.raises(ConnectionAbortedError):
            await drained
        with pytest.raises(quic.StreamReset):
            await receiving.read_to_end(8 * MIB)


@asynchronous
async def test_a_writer_that_is_dropped_has_not_ended_its_stream() -> None:
    async with pair() as (client, server):
        for size in 10, 8 * MIB:
            writer = (await client.open_uni()).writer()
            writer.write(bytes(size))
            receiving = await server.accept_uni()
            assert await receiving.read()
            del writer
            gc.collect()
            with pytest.raises(quic.StreamReset):
                await receiving.read_to_end(size)


@asynchronous
async def test_a_reader_that_is_dropped_stops_its_stream() -> None:
    async with pair() as (client, server):
        for full in False, True:
            sending = await client.open_uni()
            await sending.write(b"x" * (200_000 if full else 1))
            reader = (await server.accept_uni()).reader()
            await until(partial(holds, weakref.ref(reader)))
            del reader
            gc.collect()
            assert await sending.stopped() == 0


@asynchronous
async def test_a_cancelled_wait_loses_nothing() -> None:
    data = bytes(range(256)) * (3 * MIB // 256)
    async with pair() as (client, server):
        sending = await client.open_uni()
        writer = sending.writer()
        writer.write(data)
        receiving = await server.accept_uni()
        for wait in writer.drain, writer.wait_closed:
            cancelled = asyncio.ensure_future(wait())
            await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
        reader = receiving.reader()
        got = bytearray()
        while len(got) < len(data):
            reading = asyncio.ensure_future(reader.read(100_000))
            await asyncio.sleep(0)
            reading.cancel()
            if (await asyncio.wait([reading]))[0] and not reading.cancelled():
                got += reading.result()
        assert got == data
        writer.close()
        assert await reader.read() == b""
        await writer.wait_closed()


@asynchronous
async def test_a_writer_with_much_waits_for_most_of_it() -> None:
    async with pair() as (client, server):
        writer = (await client.open_uni()).writer()
        writer.write(bytes(16 * MIB))
        receiving = await server.accept_uni()
        drained = asyncio.ensure_future(writer.drain())
        await receiving.read()
        await until(lambda: writer.transport.get_write_buffer_size() < 15 * MIB)
        assert not drained.done()
        while not drained.done():
            await receiving.read()
        assert writer.transport.get_write_buffer_size() <= 64 * 1024


@pytest.mark.skipif(sys.version_info < (3, 12), reason="loops have eager tasks from Python 3.12 on")
@asynchronous
async def test_a_loop_whose_tasks_begin_at_once_ends_its_writers() -> None:
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
    async with pair() as (client, server):
        for size in 10, 4 * MIB:
            writer = (await client.open_uni()).writer()
            writer.write(bytes(size))
            writer.close()
            reader = (await server.accept_uni()).reader()
            assert len(await reader.read()) == size
            await writer.wait_closed()


@asynchronous
async def test_when_all_tasks_are_cancelled_what_cleans_up_ends() -> None:
    """As at the end of `asyncio.run()`."""
    ended = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(8 * MIB))
        writer.close()
        try:
            await writer.wait_closed()
        finally:
            for wait in writer.wait_closed, reader.read:
                try:
                    await wait()
                except ConnectionAbortedError:
                    ended.append(wait)

    async with pair() as (client, server):
        for started in False, True:
            before = asyncio.all_tasks()
            near = await client.open_bi()
            task = asyncio.ensure_future(handle(near.reader(), near.writer()))
            far = await server.accept_bi()
            if started:
                await far.read()
            for every in asyncio.all_tasks() - before:
                every.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert len(ended) == 4
