"""The package and its event loop: fairness, loops of other kinds, nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Pair, run, until

from wayferry import quic
from wayferry.quic._reactor import BUDGET


class Ticks:
    """How often the loop turns, from now on."""

    def __init__(self) -> None:
        self.count = 0
        self._ticking = asyncio.create_task(self._tick())

    def stop(self) -> None:
        self._ticking.cancel()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.count += 1


def test_a_busy_task_lets_others_run(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            stream = await client.open_uni()
            ticks = Ticks()
            for _ in range(20 * BUDGET):
                await stream.write(b"x")
            assert ticks.count >= 15
            await stream.finish()
            incoming = await server.accept_uni()
            await stream.acked()
            ticks.count = 0
            for _ in range(20 * BUDGET):
                assert await incoming.read(1) == b"x"
            assert ticks.count >= 15
            ticks.stop()

    run(main())


def test_busy_tasks_share(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, _server):
            done = [0, 0]

            async def work(index: int) -> None:
                stream = await client.open_uni()
                while max(done) < 20 * BUDGET:
                    await stream.write(b"x")
                    done[index] += 1

            await asyncio.gather(work(0), work(1))
            assert min(done) >= 18 * BUDGET

    run(main())


def test_tasks_that_do_little_each_do_it_in_one_step(pair: Pair) -> None:
    """Together they spend many budgets, and none of them by itself."""

    async def main() -> None:
        async with pair() as (client, _server):
            stream = await client.open_uni()

            async def work() -> None:
                await stream.write(b"x")
                await stream.write(b"y")

            ticks = Ticks()
            await asyncio.sleep(0)
            await asyncio.gather(*(work() for _ in range(10 * BUDGET)))
            # Many together leave room for others as well, though less often.
            assert 1 <= ticks.count <= 8
            ticks.stop()

    run(main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_regression_tasks_that_begin_at_once_starved_the_loop(pair: Pair) -> None:
    """All of them are in one step of the loop, and each spends a part of a budget only."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with pair() as (client, _server):
            stream = await client.open_uni()

            async def work() -> None:
                for _ in range(3):
                    await stream.write(b"x")

            ticks = Ticks()
            await asyncio.sleep(0)
            loop.set_task_factory(vars(asyncio)["eager_task_factory"])
            working = set()
            for _ in range(200 * BUDGET):
                await stream.write(b"y")
                working.add(asyncio.create_task(work()))
            loop.set_task_factory(None)
            assert ticks.count >= 20
            await asyncio.gather(*working)
            ticks.stop()

    run(main())


def test_data_that_was_written_in_one_turn_is_flushed(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            stream = await client.open_uni()
            for n in range(10):
                await stream.write(bytes([n]))
            assert client._reactor.dirty
            assert stream.write_nowait(b"!") == 1
            incoming = await server.accept_uni()
            assert await incoming.read_exactly(11) == bytes(range(10)) + b"!"
            assert not client._reactor.dirty

    run(main())


class NoReaders(asyncio.SelectorEventLoop):
    """A loop like Windows's, that cannot watch descriptors for others."""

    # It only refuses.
    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        raise NotImplementedError


def run_without_readers(main: Any) -> None:
    loop = NoReaders(selectors.DefaultSelector())
    loop.set_debug(True)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main)


def test_a_loop_without_add_reader(pair: Pair) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), pair() as (client, server):
            stream = await client.open_bi()
            await stream.write(bytes(3 << 20))
            await stream.finish()
            incoming = await server.accept_bi()
            assert len(await incoming.read_to_end(4 << 20)) == 3 << 20
            await incoming.finish()
            assert await stream.read() == b""

    for _ in range(3):
        run_without_readers(main())
    gc.collect()
    assert "wayferry-quic-wake" not in [thread.name for thread in threading.enumerate()]


def test_runs_leave_no_descriptor(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            stream = await client.open_uni()
            await stream.write(b"x")
            await stream.finish()
            assert await (await server.accept_uni()).read() == b"x"

    run(main())
    gc.collect()
    before = run(descriptors())
    for _ in range(50):
        run(main())
    gc.collect()
    # The network's thread closes its own a little later.
    run(until(lambda: open_descriptors() <= before))


def test_the_loop_is_left_alone_when_everything_is_over(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, _server):
            reactor = client._reactor
            assert reactor._registered
        assert await client.closed()
        del client, _server
        await until(lambda: not reactor._registered)
        assert not reactor.waiters
        assert not reactor.watchers

    run(main())


def test_a_loop_can_be_used_again(pair: Pair) -> None:
    async def main() -> None:
        for _ in range(3):
            async with pair() as (client, server):
                await client.send_datagram(b"x")
                assert await server.receive_datagram() == b"x"

    run(main())


def test_a_dropped_connection_is_closed_with_a_warning(
    client_tls: quic.ClientTls, server_tls: quic.ServerTls
) -> None:
    async def main() -> None:
        async with quic.serve("127.0.0.1", 0, tls=server_tls) as listening:
            client = await quic.connect(*listening.local_addr, tls=client_tls)
            accepted = await anext(listening)
            reactor = client._reactor
            with pytest.warns(ResourceWarning, match="unclosed <Connection"):
                del client
            error = await accepted.closed()
            assert (error.by, error.code) == ("peer", 0)
        await until(lambda: not reactor._registered)

    run(main())


def test_a_connection_that_is_over_can_be_dropped(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            reactor = client._reactor
            await client.close(drain=0)
            assert (await server.closed()).by == "peer"
        del client, server
        gc.collect()
        await until(lambda: not reactor._registered)

    run(main())


def test_an_exception_passes_through_and_closes_at_once(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            stream = await client.open_uni()
            await stream.write(b"x")
            await stream.finish()
            with pytest.raises(ZeroDivisionError):
                async with client:
                    raise ZeroDivisionError
            assert (await client.closed()).by == "local"
            assert (await server.closed()).by == "peer"

    run(main())


def test_close_delivers_what_was_finished(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            size = 1 << 20
            stream = await client.open_uni()
            await stream.write(bytes(size))
            await stream.finish()
            incoming = asyncio.ensure_future(server.accept_uni())
            closing = asyncio.create_task(client.close(3, "bye", drain=20))
            data = await (await incoming).read_to_end(size)
            assert len(data) == size
            await closing
            error = await server.closed()
            assert (error.code, error.reason, error.by) == (3, "bye", "peer")

    run(main())


def test_a_cancelled_close_closes_at_once(pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            stream = await client.open_uni()
            await stream.write(bytes(4 << 20))
            await stream.finish()
            closing = asyncio.create_task(client.close(4, drain=25))
            await until(lambda: client._close_called)
            await (await server.accept_uni()).read(1)
            assert not closing.done()
            closing.cancel()
            await asyncio.wait([closing])
            assert closing.cancelled()
            error = await server.closed()
            assert error.code == 4
            await client.close()

    run(main())


@pytest.mark.parametrize("wrong", [{"code": -1}, {"code": 1 << 62}, {"drain": -1.0}, {"drain": float("nan")}])
def test_close_checks_before_it_waits(wrong: dict[str, Any], pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, server):
            with pytest.raises(ValueError, match=r"error code|drain"):
                await client.close(**wrong)
            await client.send_datagram(b"alive")
            assert await server.receive_datagram() == b"alive"

    run(main())


def test_a_forked_child_is_told() -> None:
    end = run_python(
        """
        import asyncio, os
        from wayferry import quic

        async def main():
            cert, key = quic.self_signed()
            async with quic.serve("127.0.0.1", 0, tls=quic.ServerTls(cert, key)) as server:
                child = os.fork()
                if child == 0:
                    try:
                        server.local_addr
                    except RuntimeError as error:
                        os._exit(0 if "fork" in str(error) else 3)
                    os._exit(2)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

        asyncio.run(main())
        """
    )
    assert end.returncode == 0, end.stderr


@pytest.mark.parametrize("where", ["keep", "builtins.keep", "sys.modules"])
def test_exit_with_everything_open_is_quiet(where: str) -> None:
    """In any order in which things are taken down, and where a logger would be heard."""
    end = run_python(
        f"""
        import asyncio, builtins, logging, sys
        from wayferry import quic

        async def main():
            cert, key = quic.self_signed()
            server = await quic.serve("127.0.0.1", 0, tls=quic.ServerTls(cert, key))
            tls = quic.ClientTls(pins=[quic.fingerprint(cert)])
            client = await quic.connect(*server.local_addr, tls=tls)
            accepted = await anext(server)
            stream = await client.open_uni()
            await stream.write(bytes(100_000))
            keep.extend([server, client, accepted, stream])

        logging.basicConfig(level=logging.WARNING)
        keep = []
        asyncio.run(main())
        builtins.keep = keep if {where!r} == "builtins.keep" else None
        if {where!r} == "sys.modules":
            sys.modules["elsewhere"] = keep
        if {where!r} != "keep":
            del keep
        """
    )
    assert (end.returncode, end.stdout, end.stderr) == (0, "", "")


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    """The end of `program` in an interpreter of its own."""
    lines = program.splitlines()
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    text = "\n".join(line[indent:] for line in lines)
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", text], capture_output=True, text=True, timeout=50, check=False
    )


async def descriptors() -> int:
    """The number of open ones, those of a running loop included."""
    return open_descriptors()


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
