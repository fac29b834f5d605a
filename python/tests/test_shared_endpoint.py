"""Connections that one process makes share a UDP port, and know nothing of each other."""

from __future__ import annotations

import asyncio
import pathlib
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support import (
    ALPN,
    CERT,
    CLIENT_TLS,
    HOST,
    KEY,
    PIN,
    asynchronous,
    finish,
    pair,
    program,
    run,
    serving,
    until,
)

from wayferry import quic

Ends = tuple[quic.Connection, quic.Connection]


@asynccontextmanager
async def neighbours(*configs: quic.Config | None) -> AsyncIterator[list[Ends]]:
    """A connection with each of the settings, and its server's side."""
    async with serving() as server:
        ends = []
        for config in configs:
            client = await quic.connect(*server.local_addr, tls=CLIENT_TLS, config=config)
            ends.append((client, await anext(server)))
        yield ends
        for both in ends:
            for end in both:
                await end.close(drain=0)


async def tell(ends: Ends, text: bytes = b"hello") -> None:
    """Passes a few bytes."""
    stream = await ends[0].open_uni()
    await stream.write(text)
    await stream.finish()
    assert await (await ends[1].accept_uni()).read_to_end(100) == text


@asynchronous
async def test_connections_share_a_port_and_end_by_themselves() -> None:
    async with neighbours(None, None, None) as (one, two, three):
        assert one[0].local_addr == two[0].local_addr == three[0].local_addr
        await asyncio.gather(*(tell(ends, b"%d" % index) for index, ends in enumerate((one, two, three))))
        await one[0].close(5, drain=0)
        assert (await one[1].closed()).code == 5
        await three[1].close(6, drain=0)
        assert (await three[0].closed()).code == 6
        await tell(two)


@asynchronous
async def test_an_address_of_ones_own_is_not_shared() -> None:
    async with neighbours(None) as [shared], serving() as server:
        tls = CLIENT_TLS
        async with (
            quic.connect(*server.local_addr, tls=tls, local_addr=(HOST, 0)) as one,
            quic.connect(*server.local_addr, tls=tls, local_addr=(HOST, 0)) as two,
        ):
            assert len({end.local_addr for end in (shared[0], one, two)}) == 3


@asynchronous
async def test_another_buffer_is_another_port() -> None:
    async with neighbours(None, quic.Config(udp_buffer=1 << 16)) as (one, two):
        assert one[0].local_addr != two[0].local_addr


@asynchronous
async def test_one_that_rebinds_takes_no_other_with_it() -> None:
    async with neighbours(None, None) as (one, two):
        shared = two[0].local_addr
        for _ in range(3):
            one[0].rebind((HOST, 0))
            assert one[0].local_addr != shared
            await asyncio.gather(tell(one), tell(two))
            await until(lambda: one[1].remote_addr == one[0].local_addr)
            assert two[0].local_addr == two[1].remote_addr == shared
        with pytest.raises(ValueError, match="IPv4 and IPv6"):
            one[0].rebind(("::1", 0))
        with pytest.raises(OSError, match=r"."):
            one[0].rebind(two[1].local_addr)
        await asyncio.gather(tell(one), tell(two))


@asynchronous
async def test_a_move_in_the_midst_of_data_loses_none() -> None:
    async with neighbours(None, None) as (one, two):
        data = bytes(range(256)) * 8192

        async def send(ends: Ends) -> None:
            stream = await ends[0].open_uni()
            for start in range(0, len(data), 1 << 18):
                await stream.write(data[start : start + (1 << 18)])
                if ends is one:
                    one[0].rebind((HOST, 0))
            await stream.finish()

        async def receive(ends: Ends) -> None:
            assert await (await ends[1].accept_uni()).read_to_end(len(data)) == data

        await asyncio.gather(send(one), send(two), receive(one), receive(two))


@asynchronous
async def test_each_has_its_own_key_log(tmp_path: pathlib.Path) -> None:
    files = [tmp_path / name for name in ("one", "two")]
    async with neighbours(*(quic.Config(keylog=file) for file in files), None) as all_ends:
        assert len({ends[0].local_addr for ends in all_ends}) == 1
        randoms = [{line.split()[1] for line in file.read_text().splitlines()} for file in files]
        assert [len(random) for random in randoms] == [1, 1]
        assert randoms[0] != randoms[1]


@asynchronous
async def test_early_data_goes_beside_others() -> None:
    server_tls = quic.ServerTls(CERT, KEY, alpn=ALPN, early_data=True)
    tls, tickets = quic.ClientTls(pins=[PIN], alpn=ALPN), quic.TicketStore()
    async with neighbours(None) as [beside], serving(tls=server_tls) as server:
        for taken in (False, True):
            client = await quic.connect(*server.local_addr, tls=tls, tickets=tickets, early_data=True)
            assert client.local_addr == beside[0].local_addr
            stream = await client.open_uni()
            await stream.write(b"early")
            await stream.finish()
            accepted = await anext(server)
            assert await (await accepted.accept_uni()).read_to_end(10) == b"early"
            assert await client.early_data_accepted() is taken
            await until(lambda: len(tickets))
            await client.close(drain=0)
            await accepted.close(drain=0)
        await tell(beside)


def test_loops_of_several_threads_share_it() -> None:
    addresses: list[tuple[str, int]] = []
    ready = threading.Barrier(4, timeout=20)

    async def main() -> None:
        async with pair() as ends:
            addresses.append(ends[0].local_addr)
            ready.wait()
            for _ in range(20):
                await tell(ends)
            ready.wait()

    threads = [threading.Thread(target=lambda: run(main())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(addresses) == 4
    assert len(set(addresses)) == 1


FORK = """
    import asyncio, os, warnings
    from support import CLIENT_TLS, pair, serving
    from wayferry import quic

    warnings.simplefilter("ignore", DeprecationWarning)

    async def main():
        async with pair() as (client, server), pair() as (other, there):
            assert client.local_addr == other.local_addr
            child = os.fork()
            if child == 0:
                try:
                    client.rebind(("127.0.0.1", 0))
                except RuntimeError as error:
                    os._exit(0 if "fork" in str(error) else 2)
                os._exit(1)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            for near, far in (client, server), (other, there):
                stream = await near.open_uni()
                await stream.write(b"after")
                await stream.finish()
                assert await (await far.accept_uni()).read_to_end(10) == b"after"

    asyncio.run(main())
    print("both go on")
"""


def test_a_fork_harms_neither() -> None:
    code, output, messages = finish(program(FORK))
    assert (code, output, messages) == (0, "both go on\n", "")
