"""Bugs that were there once; each test failed before its bug was mended."""

from __future__ import annotations

import asyncio
import gc
import logging
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest import Pair, run, until

from wayferry import quic
from wayferry.quic._reactor import BUDGET, Reactor

Waits = Callable[[quic.Connection], Awaitable[Any]]
CANCELLED: dict[str, Waits] = {
    "accept": lambda connection: connection.accept_uni(),
    "streams": lambda connection: connection.streams(),
    "datagram": lambda connection: connection.receive_datagram(),
    "closed": lambda connection: connection.closed(),
}


async def message_of(waits: Awaitable[Any], reactor: Any) -> tuple[Any, ...]:
    """What the task of `waits` is told when it is cancelled with "why" while it waits."""
    seen: list[tuple[Any, ...]] = []

    async def wait() -> None:
        try:
            await waits
        except asyncio.CancelledError as error:
            seen.append(error.args)
            raise

    task = asyncio.create_task(wait())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel("why")
    await asyncio.wait([task])
    assert not reactor.waiters
    return seen[0]


@pytest.mark.parametrize("name", CANCELLED)
def test_a_cancelled_wait_keeps_the_message(name: str, pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, _server):
            assert await message_of(CANCELLED[name](client), client._reactor) == ("why",)

    run(main())


def test_a_cancelled_read_or_write_keeps_the_message(pair: Pair) -> None:
    async def main() -> None:
        async with pair(config=quic.Config(send_window=1 << 16, stream_window=1 << 16)) as (client, _server):
            stream = await client.open_bi()
            assert await message_of(stream.read(), client._reactor) == ("why",)
            write = asyncio.ensure_future(stream.write(bytes(1 << 14)))
            while not client._reactor.waiters:
                await asyncio.sleep(0)
                if write.done():
                    write = asyncio.ensure_future(stream.write(bytes(1 << 14)))
            write.cancel("why")
            with pytest.raises(asyncio.CancelledError) as caught:
                await write
            assert caught.value.args == ("why",)

    run(main())


async def peer_streams(peer: quic.Connection, kinds: str) -> None:
    """Has `peer` send its number on one stream after the other, "u"ni or "b"i, and close."""
    for number, kind in enumerate(kinds):
        stream = await (peer.open_uni() if kind == "u" else peer.open_bi())
        await stream.write(bytes([number]))
        await stream.finish()
    await peer.close()


@pytest.mark.parametrize("kinds", ["uuu", "bbb", "ubb", "buu"])
@pytest.mark.parametrize("web", [False, True])
def test_streams_gives_what_came_before_the_close(
    kinds: str, web: bool, server_tls: quic.ServerTls, client_tls: quic.ClientTls
) -> None:
    async def main() -> None:
        accepted: asyncio.Queue[quic.Connection] = asyncio.Queue()

        async def session(request: quic.webtransport.Request) -> None:
            accepted.put_nowait(await request.accept())

        async with quic.serve("127.0.0.1", 0, tls=server_tls) as server:
            host, port = server.local_addr
            if web:
                server.route("/", session)
                client = await quic.webtransport.connect(f"https://{host}:{port}/", tls=client_tls)
                connection = await accepted.get()
            else:
                client = await quic.connect(host, port, tls=client_tls)
                connection = await anext(server)
            await peer_streams(client, kinds)
            assert (await connection.closed()).code == 0
            came = [isinstance(stream, quic.BiStream) async for stream in connection.streams()]
            assert sorted(came) == sorted(kind == "b" for kind in kinds)
            await connection.close()

    run(main())


@pytest.mark.parametrize("closer", ["handler", "other"])
def test_server_close_drains_before_it_cancels_the_handlers(
    closer: str, server_tls: quic.ServerTls, client_tls: quic.ClientTls
) -> None:
    async def main() -> None:
        ready = asyncio.Event()
        ends: list[str] = []

        async def handler(request: quic.webtransport.Request) -> None:
            try:
                async with await request.accept() as session:
                    stream = await session.open_uni()
                    await stream.write(bytes(3 << 20))
                    await stream.finish()
                    ready.set()
                    if closer == "handler":
                        await server.close(7)
                    await session.closed()
                ends.append("returned")
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise

        server = await quic.serve("127.0.0.1", 0, tls=server_tls)
        server.route("/", handler)
        host, port = server.local_addr
        async with quic.webtransport.connect(f"https://{host}:{port}/", tls=client_tls) as session:
            await ready.wait()

            async def receive() -> int:
                return len(await (await session.accept_uni()).read_to_end(4 << 20))

            received = asyncio.create_task(receive())
            if closer == "other":
                await server.close(7)
            assert await received == 3 << 20
            assert (await session.closed()).code == 7
        await until(lambda: not server._tasks)
        assert ends == ["returned" if closer == "handler" else "cancelled"]

    run(main())


class NoReaders(asyncio.SelectorEventLoop):
    """A loop that cannot watch descriptors for others, so that a thread wakes it."""

    # It only refuses.
    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        raise NotImplementedError


@pytest.mark.parametrize("kind", [asyncio.SelectorEventLoop, NoReaders])
def test_a_loop_goes_on_after_an_interrupt(kind: Callable[[Any], Any], pair: Pair) -> None:
    async def interrupt(connection: quic.Connection) -> None:
        await connection.receive_datagram()
        raise KeyboardInterrupt

    async def within(awaitable: Awaitable[Any]) -> Any:
        async with asyncio.timeout(10):
            return await awaitable

    async def talk() -> None:
        await client.send_datagram(b"x")
        await interrupted

    async def talk_again() -> None:
        receiving = asyncio.ensure_future(server.receive_datagram())
        await asyncio.sleep(0)
        await client.send_datagram(b"y")
        assert await receiving == b"y"

    loop = kind(selectors.DefaultSelector())
    ends = pair()
    try:
        client, server = loop.run_until_complete(ends.__aenter__())
        interrupted = loop.create_future()
        interrupting = loop.create_task(interrupt(server))
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(within(talk()))
        interrupted.set_result(None)
        with pytest.raises(KeyboardInterrupt):
            interrupting.result()
        loop.run_until_complete(within(talk_again()))
        loop.run_until_complete(within(ends.__aexit__(None, None, None)))
    finally:
        loop.close()


def test_a_task_that_waits_for_a_server_or_an_end_is_not_collected(
    server_tls: quic.ServerTls, client_tls: quic.ClientTls
) -> None:
    async def main() -> None:
        ends: list[str] = []

        async def accept(server: quic.Server) -> None:
            try:
                start(hold(await anext(server)))
                await anext(server)
            finally:
                ends.append("accept")

        async def hold(connection: quic.Connection) -> None:
            try:
                await connection.closed()
            finally:
                ends.append("hold")

        def start(work: Coroutine[Any, Any, None]) -> None:
            asyncio.get_running_loop().create_task(work)

        server = await quic.serve("127.0.0.1", 0, tls=server_tls)
        address, reactor = server.local_addr, server._reactor
        start(accept(server))
        del server
        await asyncio.sleep(0)
        gc.collect()
        async with quic.connect(*address, tls=client_tls):
            await until(lambda: len(reactor.held) == 2)
            gc.collect()
            await asyncio.sleep(0)
            assert not ends
        await until(lambda: ends == ["hold"])
        assert len(reactor.held) == 1
        accepting = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        [owner] = reactor.held.values()
        assert isinstance(owner, quic.Server)
        await owner.close()
        with pytest.raises(StopAsyncIteration):
            await accepting[0]
        assert not reactor.held

    run(main())


class Borrowed:
    """A native connection that another thread is using whenever it is first asked for its end."""

    def __init__(self, native: Any) -> None:
        self.t_closed = native.t_closed
        self.remote_addr = native.remote_addr
        self.asked = 0
        self._native = native

    def closed(self) -> Exception | None:
        self.asked += 1
        if self.asked == 1:
            raise RuntimeError("Already borrowed")
        end: Exception | None = self._native.closed()
        return end


def test_an_end_is_seen_although_another_thread_uses_the_connection(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            watch: Any = client._reactor.watchers[client._native.t_closed]
            borrowed = watch._native = Borrowed(client._native)
            await server.close(4)
            async with asyncio.timeout(10):
                assert (await client.closed()).code == 4
            assert borrowed.asked == 2

    run(main())


def test_reads_of_collected_data_let_others_run(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            stream = await client.open_uni()
            await stream.write(bytes(40 * BUDGET))
            await stream.finish()
            incoming = await server.accept_uni()
            with pytest.raises(quic.TooLarge):
                await incoming.read_to_end(40 * BUDGET - 1)
            turns = 0

            async def tick() -> None:
                nonlocal turns
                while True:
                    await asyncio.sleep(0)
                    turns += 1

            ticking = asyncio.create_task(tick())
            for _ in range(20 * BUDGET):
                assert len(await incoming.read_exactly(1)) == 1
            assert turns >= 15
            turns = 0
            for _ in range(20 * BUDGET):
                with pytest.raises(quic.TooLarge):
                    await incoming.read_to_end(1)
            assert turns >= 15
            ticking.cancel()
            assert len(await incoming.read_to_end(40 * BUDGET)) == 20 * BUDGET

    run(main())


def test_a_stream_that_failed_to_be_flushed_kept_its_turn_open() -> None:
    def fail() -> None:
        raise RuntimeError("another thread is using it")

    async def end_turn() -> list[str]:
        ended: list[str] = []
        reactor = Reactor(asyncio.get_running_loop())
        reactor.native = cast("Any", SimpleNamespace(hold=bool, end_turn=lambda: ended.append("ended")))
        reactor.dirty.append(cast("Any", SimpleNamespace(_flush=fail)))
        with pytest.raises(RuntimeError, match="another thread"):
            reactor._end_turn()
        return ended

    assert run(end_turn()) == ["ended"]


def test_a_log_handler_that_raised_kept_the_end_of_a_connection_from_its_program(pair: Pair) -> None:
    def refuse(record: logging.LogRecord) -> bool:
        if record.msg.endswith(": %s"):
            raise RuntimeError("there is no room for how a connection ended")
        return True

    async def closed() -> None:
        async with pair() as (client, server):
            await client.close()
            await server.closed()

    logger = logging.getLogger("wayferry.quic")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addFilter(refuse)
    try:
        run(closed())
    finally:
        logger.removeFilter(refuse)
        logger.setLevel(before)
