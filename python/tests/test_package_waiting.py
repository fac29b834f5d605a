"""Waiting: cancelled waits leave nothing behind and lose nothing, callers are served in their order."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from conftest import Pair, run, until

from wayferry import quic
from wayferry.quic import _reactor

Waits = Callable[[quic.Connection, quic.BiStream], Awaitable[Any]]


async def streams_of(client: quic.Connection, server: quic.Connection) -> tuple[quic.BiStream, quic.BiStream]:
    """Both ends of one bidirectional stream."""
    here = await client.open_bi()
    await here.write(b"?")
    there = await server.accept_bi()
    assert await there.read_exactly(1) == b"?"
    return here, there


async def fill(stream: quic.SendStream) -> int:
    """Writes until there is no room any more; the number of bytes."""
    total = 0
    chunk = bytes(16 * 1024)
    while True:
        write = asyncio.ensure_future(stream.write(chunk))
        for _ in range(3):
            await asyncio.sleep(0)
        if not write.done():
            write.cancel()
            await asyncio.wait([write])
            return total
        await write
        total += len(chunk)


WAITS: dict[str, Waits] = {
    "read": lambda connection, stream: stream.read(),
    "read_exactly": lambda connection, stream: stream.read_exactly(3),
    "read_to_end": lambda connection, stream: stream.read_to_end(3),
    "next chunk": lambda connection, stream: anext(aiter(stream)),
    "unordered": lambda connection, stream: anext(stream.unordered()),
    "stopped": lambda connection, stream: stream.stopped(),
    "acked": lambda connection, stream: stream.acked(),
    "accept_uni": lambda connection, stream: connection.accept_uni(),
    "accept_bi": lambda connection, stream: connection.accept_bi(),
    "next uni": lambda connection, stream: anext(connection.accept_uni()),
    "streams": lambda connection, stream: connection.streams(),
    "receive_datagram": lambda connection, stream: connection.receive_datagram(),
    "next datagram": lambda connection, stream: anext(connection.datagrams()),
    "open_uni": lambda connection, stream: connection.open_uni(),
    "closed": lambda connection, stream: connection.closed(),
}
NO_MORE_STREAMS = quic.Config(bi_streams=1, uni_streams=0)


async def started(waits: Waits, connection: quic.Connection, stream: quic.BiStream) -> asyncio.Task[Any]:
    """A task that waits as `waits` does, and really waits already."""

    async def wait() -> Any:
        return await waits(connection, stream)

    reactor = connection._reactor
    before = len(reactor.waiters) + len(connection._ends)
    task = asyncio.create_task(wait())
    await until(lambda: len(reactor.waiters) + len(connection._ends) > before or task.done())
    assert not task.done()
    return task


@pytest.mark.parametrize("name", WAITS)
def test_a_cancelled_wait_forgets_itself(name: str, pair: Pair) -> None:
    async def main() -> None:
        async with pair(config=NO_MORE_STREAMS) as (client, server):
            stream, _ = await streams_of(client, server)
            reactor = client._reactor
            task = await started(WAITS[name], client, stream)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            assert not reactor.waiters
            assert not client._ends

    run(main())


@pytest.mark.parametrize("name", WAITS)
@pytest.mark.parametrize("end", ["here", "there", "cancelled close"])
def test_the_end_of_the_connection_wakes(name: str, end: str, pair: Pair) -> None:
    async def main() -> None:
        async with pair(config=NO_MORE_STREAMS) as (client, server):
            stream, _ = await streams_of(client, server)
            task = await started(WAITS[name], client, stream)
            if end == "here":
                await client.close(7, drain=0)
            elif end == "there":
                await server.close(7, drain=0)
            else:
                closing = asyncio.create_task(client.close(7))
                await asyncio.sleep(0)
                closing.cancel()
            by = "peer" if end == "there" else "local"
            await asyncio.wait([task])
            if name == "closed":
                error = task.result()
            elif name.startswith("next") and name != "next chunk" and by == "local":
                assert isinstance(task.exception(), StopAsyncIteration | RuntimeError)
                return
            else:
                error = task.exception()
            assert isinstance(error, quic.ConnectionClosed)
            assert (error.code, error.by) == (7, by)
            assert not client._reactor.waiters

    run(main())


def test_a_blocked_writer_forgets_itself_and_wrote_nothing(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            here, there = await streams_of(client, server)
            total = await fill(here.send)
            assert not client._reactor.waiters
            await here.send.finish()
            assert len(await there.read_to_end(1 << 26)) == total

    run(main())


def test_reset_wakes_a_blocked_writer(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            here, there = await streams_of(client, server)
            await fill(here.send)
            task = asyncio.create_task(here.write(b"more"))
            await until(lambda: here.send._line.callers)
            here.reset(9)
            with pytest.raises(ValueError, match="reset"):
                await task
            with pytest.raises(quic.StreamReset) as caught:
                await there.read_to_end(1 << 26)
            assert caught.value.code == 9

    run(main())


def test_stop_wakes_a_reader(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            here, there = await streams_of(client, server)
            task = asyncio.create_task(here.read())
            await until(lambda: here.receive._line.callers)
            here.stop(5)
            with pytest.raises(ValueError, match="stop"):
                await task
            assert await there.stopped() == 5

    run(main())


def test_readers_are_served_in_their_order(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            here, there = await streams_of(client, server)
            readers = [asyncio.create_task(there.read(1)) for _ in range(6)]
            await until(lambda: there.receive._line.callers == 6)
            readers[0].cancel()
            readers[3].cancel()
            await here.write(b"abcd")
            await asyncio.wait(readers)
            got = [reader.result() for reader in readers if not reader.cancelled()]
            assert got == [b"a", b"b", b"c", b"d"]
            assert not there.receive._line.callers

    run(main())


def test_the_turn_goes_past_those_who_left(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            here, there = await streams_of(client, server)

            async def first() -> bytes:
                data = await here.read(1)
                # It has the turn by now, and does not know yet.
                readers[2].cancel()
                return data

            readers = [asyncio.create_task(first())]
            readers += [asyncio.create_task(here.read(1)) for _ in range(4)]
            await asyncio.sleep(0)
            readers[1].cancel()
            await there.write(b"ab")
            assert await readers[0] == b"a"
            assert await readers[3] == b"b"
            assert readers[2].cancelled()
            readers[4].cancel()
            await asyncio.wait(readers)
            assert not here.receive._line.callers
            assert not here.receive._line._behind
            await there.write(b"c")
            assert await here.read(1) == b"c"

    run(main())


def test_regression_callers_who_left_together_and_came_back_all_waited(pair: Pair) -> None:
    """He who had the turn left first, and found himself behind those who had not left yet."""

    async def main() -> None:
        async with pair() as (client, server):
            here, there = await streams_of(client, server)

            async def work() -> bytes:
                while True:
                    try:
                        return await here.read(1)
                    except asyncio.CancelledError:
                        continue

            workers = [asyncio.create_task(work()) for _ in range(4)]
            await asyncio.sleep(0)
            for _ in range(3):
                for worker in workers:
                    worker.cancel()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            assert here.receive._line.callers == 4
            await there.write(b"abcd")
            assert sorted(await asyncio.gather(*workers)) == [b"a", b"b", b"c", b"d"]

    run(main())


def test_waits_that_are_given_up_behind_another_leave_nothing(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            here, _there = await streams_of(client, server)
            first = asyncio.create_task(here.read())
            await asyncio.sleep(0)
            for _ in range(100):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(here.read(), 0.0001)
            assert not here.receive._line._behind
            assert here.receive._line.callers == 1
            first.cancel()
            await asyncio.wait([first])
            assert not here.receive._line.callers

    run(main())


def test_writers_are_served_in_their_order(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            here, there = await streams_of(client, server)
            total = await fill(here.send)
            writers = [asyncio.create_task(here.write(bytes([n]))) for n in range(8)]
            await until(lambda: here.send._line.callers == 8)
            assert here.write_nowait(b"x") == 0
            writers[0].cancel()
            writers[4].cancel()
            finishing = asyncio.create_task(here.finish())
            data = await there.read_to_end(1 << 26)
            await finishing
            assert data[total:] == bytes([1, 2, 3, 5, 6, 7])

    run(main())


def test_cancelled_iterations_go_on(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            here, there = await streams_of(client, server)
            uni = await client.open_uni()
            iterations: list[Any] = [
                there.unordered(),
                server.accept_uni(),
                server.accept_bi(),
                server.datagrams(),
            ]
            for iteration in iterations:
                task = asyncio.ensure_future(anext(iteration))
                await until(lambda: server._reactor.waiters)
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
            await here.write(b"!")
            assert await anext(iterations[0]) == (1, b"!")
            await uni.write(b"uni")
            assert (await anext(iterations[1])).id == uni.id
            bi = await client.open_bi()
            await bi.write(b"bi")
            assert (await anext(iterations[2])).id == bi.id
            await client.send_datagram(b"datagram")
            assert await anext(iterations[3]) == b"datagram"

    run(main())


def test_both_kinds_of_streams_come_from_one_iteration(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            streams = server.streams()
            task = asyncio.ensure_future(anext(streams))
            await until(lambda: len(server._reactor.waiters) == 2)
            task.cancel()
            await asyncio.wait([task])
            opened = set()
            for open_one in (client.open_uni, client.open_bi) * 4:
                stream = await open_one()
                await stream.write(b".")
                opened.add(stream.id)
            assert {(await anext(streams)).id for _ in opened} == opened
            await client.close()
            assert [stream async for stream in streams] == []

    run(main())


def test_reads_that_were_cancelled_keep_what_they_had(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            here, there = await streams_of(client, server)
            for reading in (there.read_exactly(10), there.read_to_end(10)):
                task = asyncio.create_task(reading)
                await here.write(b"abc")
                await until(lambda: there.receive._held)
                task.cancel()
                await asyncio.wait([task])
                with pytest.raises(ValueError, match="in order"):
                    there.unordered()
                assert await there.read(2) == b"ab"
                assert await there.read_exactly(1) == b"c"
            await here.write(b"defg")
            await here.finish()
            with pytest.raises(quic.TooLarge) as caught:
                await there.read_to_end(3)
            assert (caught.value.size, caught.value.max) == (4, 3)
            with pytest.raises(asyncio.IncompleteReadError) as short:
                await there.read_exactly(5)
            assert short.value.partial == b"defg"
            assert await there.read() == b""
            assert await there.read_to_end(0) == b""

    run(main())


def test_datagrams_wait_for_room(pair: Pair) -> None:
    async def main() -> None:
        async with pair(config=quic.Config(datagram_buffer=4096)) as (client, server):
            data = bytes(1000)
            sent = 0
            # The network's thread sends meanwhile; at some moment this one is ahead of it.
            while client.send_datagram_nowait(data):
                sent += 1
            tasks = [asyncio.create_task(client.send_datagram(data)) for _ in range(20)]
            await asyncio.sleep(0)
            tasks[1].cancel()
            await asyncio.wait(tasks)
            assert all(task.cancelled() or task.exception() is None for task in tasks)
            with pytest.raises(quic.TooLarge):
                await client.send_datagram(bytes(100_000))
            assert await server.receive_datagram() == data

    run(main())


def test_a_woken_task_keeps_its_context(pair: Pair) -> None:
    name = contextvars.ContextVar("name", default="no task")

    async def main() -> None:
        async with pair() as (client, server):
            here, there = await streams_of(client, server)

            async def wait(who: str, operation: Callable[[], Awaitable[Any]]) -> str:
                name.set(who)
                await operation()
                return name.get()

            tasks = [
                asyncio.create_task(wait("reader", there.read)),
                asyncio.create_task(wait("receiver", server.receive_datagram)),
            ]
            await until(lambda: len(server._reactor.waiters) == 2)
            await here.write(b"x")
            await client.send_datagram(b"x")
            assert await asyncio.gather(*tasks) == ["reader", "receiver"]
            assert name.get() == "no task"

    run(main())


def test_a_task_that_ends_the_loop_loses_no_other_wake() -> None:
    tokens = [1 << 60, 1 << 61]

    async def wait(reactor: _reactor.Reactor, token: int, end: BaseException | None) -> str:
        await reactor.waiter(token)
        if end is not None:
            raise end
        return "woken"

    async def begin() -> tuple[asyncio.Task[str], asyncio.Task[str]]:
        reactor = _reactor.current()
        leaving = asyncio.create_task(wait(reactor, tokens[0], SystemExit(3)))
        staying = asyncio.create_task(wait(reactor, tokens[1], None))
        await until(lambda: len(reactor.waiters) == 2)
        return leaving, staying

    async def fire() -> None:
        asyncio.get_running_loop().call_soon(_reactor.current()._dispatch, iter(tokens))
        await asyncio.Event().wait()

    async def end(task: asyncio.Task[str]) -> str:
        async with asyncio.timeout(20):
            return await task

    with asyncio.Runner(debug=True) as runner:
        leaving, staying = runner.run(begin())
        with pytest.raises(SystemExit):
            runner.run(fire())
        assert runner.run(end(staying)) == "woken"
        assert isinstance(leaving.exception(), SystemExit)
