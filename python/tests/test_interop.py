"""Other implementations of QUIC, in both roles: aioquic, qh3, aiopquic and quinn; s2n-quic and quic-go where
they were built. What each scenario does is in `peers.py`.

The peers run as programs of their own, so that their speed, their warnings and their crashes are not ours.
A peer that is not there is skipped; without any the suite fails.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from commands import obey
from programs import FOLDER, LIBRARIES, Site, calling, is_present, parameters, serving_peer
from relay import Relay
from support import HOST, asynchronous, until

import peers
from wayferry import quic

NAMES = [*LIBRARIES, "quinn", "s2n-quic", "quic-go"]
MIB = 1 << 20
# RFC 9000 §17.2.5: a long header whose type bits are 3.
RETRY, RETRY_MASK = 0xF0, 0xF0

every_peer = parameters(NAMES)


def without(reason: str, *names: str) -> Callable[[str], None]:
    """Skips what a peer cannot do."""

    def check(peer: str) -> None:
        if peer in names:
            pytest.skip(f"{peer} {reason}")

    return check


# aiopquic changes keys after a number of packets, not when it is told, and negotiates versions its own way.
cannot_update = without("cannot be told to change keys", "aiopquic")
cannot_choose_versions = without(
    "cannot begin with an unknown version", "aiopquic", "quinn", "s2n-quic", "quic-go"
)
cannot_resume = without("sends no tickets", "s2n-quic")
cannot_refuse_version_1 = without("always speaks version 1", "aiopquic")


def test_some_peer_is_there() -> None:
    """Where programs were built, quinn is one of them."""
    assert [name for name in NAMES if is_present(name)]
    assert FOLDER is None or is_present("quinn")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


@asynccontextmanager
async def their_server(peer: str, site: Site, **options: Any) -> AsyncIterator[tuple[str, int]]:
    if peer == "aiopquic":
        # It cannot say which port it got.
        options["port"] = free_port()
    async with serving_peer(peer, site, "serve", **options) as address:
        yield address


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((HOST, 0))
        return int(one.getsockname()[1])


async def their_call(
    peer: str, site: Site, address: tuple[str, int], scenario: str, **options: Any
) -> dict[str, Any]:
    return await calling(peer, site, address, "call", scenario, **options)


@asynccontextmanager
async def our_server(
    site: Site, retry: quic.Retry = "auto"
) -> AsyncIterator[tuple[quic.Server, list[quic.Connection], list[int]]]:
    """A server of ours that obeys; the connections that it took, and the codes of stops that it saw."""
    taken: list[quic.Connection] = []
    stops: list[int] = []
    async with quic.serve(HOST, 0, tls=site.server_tls, retry=retry) as server, asyncio.TaskGroup() as group:

        async def one(connection: quic.Connection) -> None:
            try:
                await obey(connection, stops)
            except* quic.QuicError:
                # A client may leave as it likes; what it saw is asked of it.
                await connection.closed()

        async def accept() -> None:
            async for connection in server:
                taken.append(connection)
                group.create_task(one(connection))

        group.create_task(accept())
        yield server, taken, stops
        await server.close(drain=0)


@asynccontextmanager
async def our_client(address: tuple[str, int], site: Site, **options: Any) -> AsyncIterator[quic.Connection]:
    async with quic.connect(*address, tls=options.pop("tls", site.client_tls), **options) as client:
        yield client
        await client.close(drain=0)


async def command(client: quic.Connection, text: str) -> quic.BiStream:
    stream = await client.open_bi()
    await stream.send.write(text.encode() + b"\n")
    return stream


async def echo(client: quic.Connection, data: bytes, text: str = "echo") -> None:
    stream = await command(client, text)
    async with asyncio.TaskGroup() as group:
        back = group.create_task(stream.receive.read_to_end(len(data)))
        await stream.send.write(data)
        await stream.send.finish()
    assert back.result() == data


# Our client, their server.


@every_peer
@asynchronous
async def test_our_client_and_their_server_shake_hands(peer: str, site: Site) -> None:
    async with their_server(peer, site) as address, our_client(address, site) as client:
        assert client.alpn == peers.ALPN
        await echo(client, b"hello")
        uni = await client.open_uni()
        await uni.write(b"one way")
        await uni.finish()
        assert await (await client.accept_uni()).read_to_end(100) == b"one way"


@every_peer
@asynchronous
async def test_our_client_moves_ten_megabytes_both_ways(peer: str, site: Site) -> None:
    async with their_server(peer, site) as address, our_client(address, site) as client:
        await echo(client, bytes(range(256)) * (peers.BULK // 256))


@every_peer
@asynchronous
async def test_our_client_opens_many_streams(peer: str, site: Site) -> None:
    async with (
        their_server(peer, site) as address,
        our_client(address, site) as client,
        asyncio.TaskGroup() as group,
    ):
        for number in range(peers.MANY):
            group.create_task(echo(client, b"%d" % number * 100))


@every_peer
@asynchronous
async def test_our_client_sees_their_codes(peer: str, site: Site) -> None:
    async with their_server(peer, site) as address, our_client(address, site) as client:
        for code in 0, 7, peers.LARGEST_CODE:
            stream = await command(client, f"reset {code}")
            with pytest.raises(quic.StreamReset) as reset:
                await stream.receive.read()
            assert reset.value.code == code
            stream = await command(client, f"stop {code}")
            assert await stream.send.stopped() == code
        # Dropped, the stream would be reset, and the command might never arrive.
        _kept = await command(client, f"close {peers.LARGEST_CODE}")
        closed = await client.closed()
        assert isinstance(closed, quic.ConnectionClosed)
        assert (closed.code, closed.by) == (peers.LARGEST_CODE, "peer")


@every_peer
@asynchronous
async def test_our_client_answers_their_retry(peer: str, site: Site) -> None:
    async with their_server(peer, site, retry=True) as address:
        with Relay(address) as relay:
            async with our_client(relay.address, site) as client:
                await echo(client, b"hello")
            assert [packet for packet in relay.from_server if packet[0] & RETRY_MASK == RETRY]


@every_peer
@asynchronous
async def test_our_client_tells_that_no_version_is_common(peer: str, site: Site) -> None:
    cannot_refuse_version_1(peer)
    async with their_server(peer, site, versions=[peers.VERSION_2]) as address:
        with Relay(address) as relay:
            with pytest.raises(quic.ConnectionClosed) as caught:
                await quic.connect(*relay.address, tls=site.client_tls)
            assert caught.value.by == "transport"
            # RFC 9000 §17.2.1: version 0 is what tells it apart.
            assert any(packet[0] & 0x80 and packet[1:5] == bytes(4) for packet in relay.from_server)


@every_peer
@asynchronous
async def test_our_client_changes_keys(peer: str, site: Site) -> None:
    async with their_server(peer, site) as address, our_client(address, site) as client:
        for _ in range(3):
            await echo(client, bytes(5000))
            client.update_keys()
            await echo(client, bytes(5000))
        if peer != "aiopquic":
            await echo(client, bytes(5000), "update")
            await echo(client, bytes(5000))


@every_peer
@asynchronous
async def test_our_client_sends_early_data(peer: str, site: Site) -> None:
    cannot_resume(peer)
    tickets, tls = quic.TicketStore(), site.client_tls
    async with their_server(peer, site) as address:
        with Relay(address) as relay:
            async with our_client(relay.address, site, tls=tls, tickets=tickets) as client:
                await echo(client, b"first")
                await until(lambda: len(tickets) > 0)
            # Nothing is heard until the data are sent: all of it is early.
            relay.hold(answers=True)
            client = await quic.connect(*relay.address, tls=tls, tickets=tickets, early_data=True)
            assert client.is_early
            stream = await command(client, "echo")
            await stream.send.write(b"second")
            await stream.send.finish()
            relay.release()
            if await client.early_data_accepted():
                assert await stream.receive.read_to_end(100) == b"second"
            else:
                with pytest.raises(quic.EarlyDataRejected):
                    await stream.receive.read()
                pytest.fail(f"{peer} rejects early data")
            await client.close(drain=0)


@every_peer
@asynchronous
async def test_our_client_exchanges_datagrams(peer: str, site: Site) -> None:
    async with their_server(peer, site) as address, our_client(address, site) as client:
        await echo(client, b"")
        assert client.max_datagram_size
        await client.send_datagram(b"datagram")
        assert await client.receive_datagram() == b"datagram"


# Their client, our server.


@every_peer
@pytest.mark.parametrize("scenario", ["handshake", "bulk", "many", "uni", "datagrams"])
@asynchronous
async def test_their_client_calls_our_server(peer: str, scenario: str, site: Site) -> None:
    async with our_server(site) as (server, taken, _):
        assert await their_call(peer, site, server.local_addr, scenario) == {"ok": True}
        assert [connection.alpn for connection in taken] == [peers.ALPN]


@every_peer
@asynchronous
async def test_their_client_sees_our_codes_and_we_see_theirs(peer: str, site: Site) -> None:
    async with our_server(site) as (server, _, stops):
        await their_call(peer, site, server.local_addr, "codes")
        await until(lambda: len(stops) == 3)
        assert stops == [0, 7, peers.LARGEST_CODE]


@every_peer
@asynchronous
async def test_their_client_sees_our_close(peer: str, site: Site) -> None:
    async with our_server(site) as (server, _, _):
        await their_call(peer, site, server.local_addr, "close")


@every_peer
@asynchronous
async def test_their_client_answers_our_retry(peer: str, site: Site) -> None:
    async with our_server(site, retry="always") as (server, _, _):
        with Relay(server.local_addr) as relay:
            await their_call(peer, site, relay.address, "handshake")
            assert [packet for packet in relay.from_server if packet[0] & RETRY_MASK == RETRY]


@every_peer
@asynchronous
async def test_their_client_follows_our_version_negotiation(peer: str, site: Site) -> None:
    cannot_choose_versions(peer)
    versions = {
        "original_version": peers.UNKNOWN_VERSION,
        "versions": [peers.UNKNOWN_VERSION, peers.VERSION_1],
    }
    async with our_server(site) as (server, _, _):
        with Relay(server.local_addr) as relay:
            await their_call(peer, site, relay.address, "handshake", **versions)
            assert any(packet[0] & 0x80 and packet[1:5] == bytes(4) for packet in relay.from_server)


@every_peer
@asynchronous
async def test_their_client_changes_keys(peer: str, site: Site) -> None:
    cannot_update(peer)
    async with our_server(site) as (server, _, _):
        await their_call(peer, site, server.local_addr, "update")


@every_peer
@asynchronous
async def test_their_client_resumes_with_early_data(peer: str, site: Site) -> None:
    async with our_server(site) as (server, taken, _):
        seen = await their_call(peer, site, server.local_addr, "resume")
        assert seen == {"resumed": True}
        assert len(taken) == 2
