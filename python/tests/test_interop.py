"""Other implementations of QUIC, in both roles: aioquic, qh3 and aiopquic. What each scenario does is in
`peers.py`.

The peers run as programs of their own, so that their speed, their warnings and their crashes are not ours.
A peer that is not installed for this interpreter is skipped; without any the suite fails.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import pathlib
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import peers
import pytest
from certificates import Authority
from commands import obey
from relay import Relay
from support import HOST, asynchronous, until

from wayferry import quic

NAMES = ["aioquic", "qh3", "aiopquic"]
LIMIT = 60.0
MIB = 1 << 20
# RFC 9000 §17.2.5: a long header whose type bits are 3.
RETRY, RETRY_MASK = 0xF0, 0xF0


def present(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


every_peer = pytest.mark.parametrize(
    "peer",
    [
        pytest.param(
            name, marks=pytest.mark.skipif(not present(name), reason=f"{name} is not for this interpreter")
        )
        for name in NAMES
    ],
)


def without(reason: str, *names: str) -> Callable[[str], None]:
    """Skips what a peer cannot do."""

    def check(peer: str) -> None:
        if peer in names:
            pytest.skip(f"{peer} {reason}")

    return check


# aiopquic changes keys after a number of packets, not when it is told, and negotiates versions its own way.
cannot_update = without("cannot be told to change keys", "aiopquic")
cannot_choose_versions = without("cannot begin with an unknown version", "aiopquic")
cannot_refuse_version_1 = without("always speaks version 1", "aiopquic")


def test_some_peer_is_there() -> None:
    assert [name for name in NAMES if present(name)]


@dataclass(frozen=True)
class Site:
    """An authority that the peers trust, and files with its certificate, a server's, and that one's key."""

    roots: pathlib.Path
    cert: pathlib.Path
    key: pathlib.Path

    @property
    def server_tls(self) -> quic.ServerTls:
        return quic.ServerTls(self.cert, self.key, alpn=[peers.ALPN, "h3"], early_data=True)

    @property
    def client_tls(self) -> quic.ClientTls:
        return quic.ClientTls(roots=self.roots, alpn=[peers.ALPN], server_name=peers.SERVER_NAME)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("site")
    authority = Authority("interop")
    made = Site(folder / "roots.pem", folder / "cert.pem", folder / "key.pem")
    cert, key = authority.issue(peers.SERVER_NAME, HOST)
    made.roots.write_bytes(authority.pem)
    made.cert.write_bytes(cert)
    made.key.write_bytes(key)
    return made


async def program(role: str, peer: str, options: dict[str, Any]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        peers.__file__,
        role,
        peer,
        json.dumps(options),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@asynccontextmanager
async def their_server(peer: str, site: Site, **options: Any) -> AsyncIterator[tuple[str, int]]:
    """The address of a peer's server. It ends when its input does."""
    if peer == "aiopquic":
        # It cannot say which port it got.
        options["port"] = free_port()
    running = await program("serve", peer, {"cert": str(site.cert), "key": str(site.key), **options})
    assert running.stdin is not None
    assert running.stdout is not None
    try:
        line = await asyncio.wait_for(running.stdout.readline(), LIMIT)
        if not line:
            _, messages = await running.communicate()
            pytest.fail(f"{peer} does not serve:\n{messages.decode()}")
        yield HOST, int(line)
    finally:
        await stop(running)


async def stop(running: asyncio.subprocess.Process) -> None:
    assert running.stdin is not None
    running.stdin.close()
    try:
        async with asyncio.timeout(5):
            await running.communicate()
    except TimeoutError:
        running.kill()
        await running.communicate()


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((HOST, 0))
        return int(one.getsockname()[1])


async def their_call(
    peer: str, site: Site, address: tuple[str, int], scenario: str, **options: Any
) -> dict[str, Any]:
    """What a peer's client says that it saw."""
    running = await program(
        "call", peer, {"roots": str(site.roots), "port": address[1], "scenario": scenario, **options}
    )
    try:
        output, messages = await asyncio.wait_for(running.communicate(), LIMIT)
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
    assert running.returncode == 0, f"{peer}, {scenario}:\n{messages.decode()}"
    seen: dict[str, Any] = json.loads(output)
    return seen


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
