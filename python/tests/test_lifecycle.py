"""Beginnings and ends that are not orderly: forks, interpreters that exit, loops that block or close,
dropped objects."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import logging
import re
import time
import warnings
import weakref

import pytest
from support import (
    CLIENT_TLS,
    HOST,
    SERVER_TLS,
    asynchronous,
    echo,
    finish,
    pair,
    program,
    rounds,
    run,
    serving,
)

from wayferry import quic

# Of each way to exit.
EXITS = 50
PARALLEL = 4

FORK = """
    import asyncio, os, sys, warnings
    from support import pair, CLIENT_TLS
    from wayferry import quic

    warnings.simplefilter("ignore", DeprecationWarning)

    def refuses(call):
        try:
            call()
        except RuntimeError as error:
            return "fork" in str(error)
        return False

    async def main():
        async with pair() as (client, server):
            sending = await client.open_uni()
            await sending.write(b"before")
            child = os.fork()
            if child == 0:
                checks = [
                    refuses(lambda: sending.write_nowait(b"x")),
                    refuses(lambda: client.send_datagram_nowait(b"x")),
                    refuses(lambda: client.stats()),
                    refuses(lambda: sending.reset(1)),
                    refuses(lambda: client.rebind(("127.0.0.1", 0))),
                ]
                sys.stdout.write(repr(checks))
                sys.stdout.flush()
                os._exit(0 if all(checks) else 1)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            await sending.finish()
            assert await (await server.accept_uni()).read_to_end(10) == b"before"

    asyncio.run(main())
    print("parent goes on")
"""

FORK_IN_A_TURN = """
    import asyncio, gc, os, sys, warnings, weakref
    from support import CLIENT_TLS, HOST, SERVER_TLS, until
    from wayferry import quic

    warnings.simplefilter("ignore", DeprecationWarning)
    kept = {}

    async def begin():
        server = await quic.serve(HOST, 0, tls=SERVER_TLS)
        client = await quic.connect(*server.local_addr, tls=CLIENT_TLS)
        kept.update(server=server, client=client, accepted=await anext(server))
        streams = kept["streams"] = [await client.open_uni() for _ in range(20)]
        client._reactor.native.hold()
        for stream in streams:
            await stream.write(b"held")

    async def end():
        for stream in kept["streams"]:
            await stream.finish()
        for _ in kept["streams"]:
            assert await (await kept["accepted"].accept_uni()).read_to_end(10) == b"held"
        await kept["client"].close(drain=0)
        await kept["server"].close(drain=0)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(begin())
    reactor = weakref.ref(kept["client"]._reactor)
    child = os.fork()
    if child == 0:
        kept.clear()
        del loop
        gc.collect()
        os._exit(0 if reactor() is None else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    loop.run_until_complete(end())
    loop.close()
    print("parent goes on")
"""

FORK_THEN_CONNECT = """
    import asyncio, os, sys, warnings
    from support import pair, CLIENT_TLS
    from wayferry import quic

    warnings.simplefilter("ignore", DeprecationWarning)

    async def once():
        async with pair():
            pass

    asyncio.run(once())
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(once())
        except RuntimeError as error:
            os._exit(0 if "fork" in str(error) else 2)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    asyncio.run(once())
    print("parent goes on")
"""

SUBINTERPRETER = """
    import sys, warnings
    warnings.simplefilter("ignore")
    import wayferry.quic
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters

    text = '''
    import sys
    sys.path[:] = {path!r}
    try:
        import wayferry.quic
    except ImportError as error:
        print("refused:", error)
    else:
        print("imported")
    sys.stdout.flush()
    '''
    import textwrap
    one = interpreters.create()
    interpreters.run_string(one, textwrap.dedent(text).format(path=sys.path))
    interpreters.destroy(one)
"""

# Each ends in another way while data flow; the argument says which.
EXIT = """
    import asyncio, sys, threading
    from support import pair, echo
    from wayferry import quic

    KEPT = []

    async def traffic(client):
        stream = await client.open_bi()
        async def pump():
            while True:
                await stream.send.write(bytes(30_000))
        KEPT.append(asyncio.ensure_future(until_closed(pump())))
        while True:
            await stream.receive.read()

    async def until_closed(work):
        try:
            await work
        except quic.ConnectionClosed:
            pass

    async def main(way, started):
        async with pair() as (client, server):
            KEPT.extend([client, server])
            KEPT.append(asyncio.ensure_future(echo(server)))
            KEPT.append(asyncio.ensure_future(until_closed(traffic(client))))
            stream = await client.open_bi()
            await stream.send.write(b"begun")
            assert await stream.receive.read_exactly(5) == b"begun"
            KEPT.append(stream)
            started()
            if way == 0:
                return
            if way == 1:
                sys.exit(0)
            await asyncio.Event().wait()

    way = int(sys.argv[1])
    if way in (0, 1):
        asyncio.run(main(way, lambda: None))
    else:
        # A daemon thread runs the loop when the main thread ends the interpreter.
        started = threading.Event()
        threading.Thread(target=lambda: asyncio.run(main(way, started.set)), daemon=True).start()
        started.wait(20)
"""

# What native code has called waits in Python while the main thread ends the interpreter.
EXIT_CALLED_BACK = """
    import asyncio, builtins, os, select, sys, threading
    from support import pair, echo

    begins, until = os.pipe()
    called, armed = threading.Event(), threading.Event()

    class Loop(asyncio.SelectorEventLoop):
        def call_soon(self, callback, *args, context=None):
            # Asked for by native code, as `_take` asks for none.
            ends = armed.is_set() and getattr(callback, "__name__", "") == "_end_turn"
            if ends and sys._getframe(3).f_code.co_name == "_take":
                called.set()
                os.read(begins, 1)
            return super().call_soon(callback, *args, context=context)

    async def main():
        async with pair() as (client, server):
            echoing = asyncio.ensure_future(echo(server))
            stream = await client.open_bi()
            armed.set()
            while True:
                await stream.send.write(bytes(30_000))
                await stream.receive.read()

    class Last:
        # The module is gone by then.
        write, wait, until = os.write, select.select, until

        def __del__(self):
            type(self).write(self.until, b"!")
            # Nothing tells that a thread stays where it is: this is long enough for one that does not.
            type(self).wait([], [], [], 0.5)

    builtins.last = Last()

    def run():
        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(main())

    threading.Thread(target=run, daemon=True).start()
    assert called.wait(20)
"""

# A loop that stops in the middle and is never closed: all is left to the end of the interpreter.
EXIT_STOPPED = """
    import asyncio, logging, warnings
    from support import CLIENT_TLS, HOST, SERVER_TLS
    from wayferry import quic

    # Of what is left over asyncio complains rightly.
    warnings.simplefilter("ignore", ResourceWarning)
    logging.disable()
    KEPT = []

    async def pump(stream):
        while True:
            await stream.write(bytes(30_000))

    async def drink(stream):
        while await stream.read():
            pass

    async def main():
        server = await quic.serve(HOST, 0, tls=SERVER_TLS)
        client = await quic.connect(*server.local_addr, tls=CLIENT_TLS)
        accepted = await anext(server)
        sending = await client.open_uni()
        await sending.write(b"begun")
        receiving = await accepted.accept_uni()
        KEPT.extend([server, client, accepted])
        KEPT.append(asyncio.ensure_future(pump(sending)))
        KEPT.append(asyncio.ensure_future(drink(receiving)))
        for _ in range(3):
            await asyncio.sleep(0)
            await sending.write(b"more")
        asyncio.get_running_loop().stop()

    KEPT.append(asyncio.new_event_loop())
    # In debug mode the loop's own end looks up lines of code when Python cannot read files any more.
    KEPT[0].set_debug(False)
    KEPT.append(KEPT[0].create_task(main()))
    KEPT[0].run_forever()
"""
WAYS = {"return": (EXIT, "0"), "exit": (EXIT, "1"), "thread": (EXIT, "2"), "stop": (EXIT_STOPPED, "")}


def test_a_child_of_fork_is_refused_and_the_parent_goes_on() -> None:
    for text in FORK, FORK_IN_A_TURN, FORK_THEN_CONNECT:
        code, output, messages = finish(program(text))
        assert code == 0, output + messages
        assert "parent goes on" in output


def test_a_subinterpreter_is_refused() -> None:
    code, output, messages = finish(program(SUBINTERPRETER))
    assert code == 0, output + messages
    assert output.startswith("refused:"), output + messages


@pytest.mark.parametrize("way", WAYS)
def test_interpreters_that_exit_in_mid_traffic_exit_cleanly(way: str) -> None:
    def one(_number: int) -> tuple[int, str, str]:
        return finish(program(*WAYS[way]))

    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        outcomes = list(pool.map(one, range(EXITS)))
    # The code, and nothing said: neither by us nor by the interpreter about us.
    assert set(outcomes) == {(0, "", "")}


def test_regression_a_thread_that_native_code_has_called_back_aborts_at_the_end() -> None:
    code, output, messages = finish(program(EXIT_CALLED_BACK))
    assert code == 0, output + messages


@asynchronous
async def test_a_blocked_loop_keeps_its_connections() -> None:
    config = quic.Config(idle_timeout=1.0, keep_alive=0.5)
    async with pair(config=config) as (client, server), asyncio.TaskGroup() as group:
        group.create_task(echo(server))
        stream = await client.open_bi()
        # Loops that exchange little read the sockets themselves.
        for _ in range(20):
            await stream.send.write(b"?")
            assert await stream.receive.read_exactly(1) == b"?"
        # Not a wait but what is tested: the loop of both ends does nothing for longer than the idle timeout.
        time.sleep(2.0)  # noqa: ASYNC251
        await stream.send.write(b"alive")
        assert await stream.receive.read_exactly(5) == b"alive"
        await client.close(drain=0)


def test_dropped_objects_go_away() -> None:
    async def main() -> None:
        async with quic.serve(HOST, 0, tls=SERVER_TLS) as server:
            client = await quic.connect(*server.local_addr, tls=CLIENT_TLS)
            accepted = await anext(server)
            gone = weakref.ref(client)
            with warnings.catch_warnings():
                # That it was not closed may be worth a warning; it must not be worth more.
                warnings.simplefilter("ignore", ResourceWarning)
                del client
                gc.collect()
            assert gone() is None
            error = await accepted.closed()
            assert isinstance(error, quic.ConnectionClosed)
            await server.close(drain=0)

    run(main())


def test_a_loop_that_closes_early_leaves_nothing_broken() -> None:
    for _ in range(3):
        loop = asyncio.new_event_loop()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            kept = loop.run_until_complete(_abandoned())
            loop.close()
            del kept
            gc.collect()

    async def main() -> None:
        async with pair() as (client, server):
            await client.send_datagram(b"as ever")
            assert await server.receive_datagram() == b"as ever"

    run(main())


async def _abandoned() -> tuple[quic.Connection, quic.Server]:
    server = await quic.serve(HOST, 0, tls=SERVER_TLS)
    client = await quic.connect(*server.local_addr, tls=CLIENT_TLS)
    return client, server


def test_two_loops_on_two_threads() -> None:
    def one(number: int) -> int:
        async def main() -> int:
            async with pair() as (client, server), asyncio.TaskGroup() as group:
                group.create_task(echo(server))
                for _ in range(20):
                    stream = await client.open_bi()
                    await stream.send.write(b"%d" % number)
                    await stream.send.finish()
                    assert await stream.receive.read_to_end(10) == b"%d" % number
                await client.close(drain=0)
            return number

        return run(main())

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(one, range(3))) == [0, 1, 2]


@asynchronous
async def test_an_interrupted_task_group_leaves_cleanly() -> None:
    async with pair() as (client, server):
        with pytest.raises(ExceptionGroup) as caught:
            await _interrupted(client)
        assert caught.value.subgroup(LookupError)
        stream = await server.open_uni()
        await stream.finish()
        assert await (await client.accept_uni()).read() == b""


async def _interrupted(client: quic.Connection) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(_wait_for_a_stream(client))
        await rounds(3)
        group.create_task(_fail())


async def _wait_for_a_stream(connection: quic.Connection) -> None:
    await connection.accept_uni()


async def _fail() -> None:
    raise LookupError("of the test")


@asynchronous
async def whole_life() -> None:
    async with pair() as (client, server):
        await client.close(code=7, reason="enough\x1b", drain=0)
        await server.closed()


def test_a_log_tells_of_beginnings_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    whole_life()
    assert not caplog.records
    caplog.set_level(logging.INFO, logger="wayferry.quic")
    whole_life()
    texts = sorted(re.sub(r"port \d+", "port N", record.getMessage()) for record in caplog.records)
    assert texts == [
        "127.0.0.1 port N: accepted",
        "127.0.0.1 port N: closed by local with code 7: enough·",
        "127.0.0.1 port N: closed by peer with code 7: enough·",
        "127.0.0.1 port N: connected",
    ]


def test_a_log_tells_of_what_was_dropped(caplog: pytest.LogCaptureFixture) -> None:
    @asynchronous
    async def dropped() -> None:
        async with serving() as server:
            client = await quic.connect(*server.local_addr, tls=CLIENT_TLS)
            with pytest.warns(ResourceWarning, match="unclosed"):
                del client

    dropped()
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("wayferry.quic", logging.WARNING)
    assert record.getMessage().endswith(": dropped without close()")
