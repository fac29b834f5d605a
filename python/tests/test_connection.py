"""One connection as a whole: what it tells of itself, what can be changed on the way, and how it ends."""

from __future__ import annotations

import asyncio
import dataclasses
import pathlib

import pytest
from relay import Relay
from support import (
    ALPN,
    CERT,
    CLIENT_TLS,
    HOST,
    KEY,
    PIN,
    SERVER_TLS,
    asynchronous,
    echo,
    ended,
    pair,
    rounds,
    serving,
    until,
)

from wayferry import quic

# RFC 9000 §17.2.5: a long header whose type bits are 3.
RETRY, RETRY_MASK = 0xF0, 0xF0


async def ping(client: quic.Connection, data: bytes = b"ping") -> None:
    """One message to a peer that runs `echo`, and back."""
    stream = await client.open_bi()
    await stream.send.write(data)
    await stream.send.finish()
    assert await stream.receive.read_to_end(len(data)) == data


@asynchronous
async def test_a_connection_tells_of_itself() -> None:
    async with pair() as (client, server):
        assert client.remote_addr[0] == HOST
        assert client.remote_addr[1] == server.local_addr[1]
        assert server.remote_addr[1] == client.local_addr[1]
        assert client.alpn == server.alpn == ALPN[0]
        assert [quic.fingerprint(_pem(der)) for der in client.peer_certificates] == [PIN]
        assert list(server.peer_certificates) == []


def _pem(der: bytes) -> bytes:
    import base64

    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"


@asynchronous
async def test_the_server_learns_the_name_that_was_asked_for() -> None:
    async with serving() as server, quic.connect("localhost", server.local_addr[1], tls=CLIENT_TLS):
        accepted = await anext(server)
        assert accepted.server_name == "localhost"
        await accepted.close(drain=0)


@asynchronous
async def test_statistics_count_what_happened() -> None:
    async with pair() as (client, server), asyncio.TaskGroup() as group:
        group.create_task(echo(server))
        before = dataclasses.asdict(client.stats())
        await ping(client, bytes(300_000))
        after = dataclasses.asdict(client.stats())
        assert before.keys() == after.keys()
        grown = [name for name, value in after.items() if isinstance(value, int) and value > before[name]]
        assert any("sent" in name for name in grown)
        assert any("received" in name or "recv" in name for name in grown)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(client.stats(), grown[0], 0)
        paths = client.paths()
        assert len(paths) == 1
        assert paths[0].rtt > 0
        await client.close(drain=0)


@asynchronous
async def test_a_rebound_client_goes_on_from_its_new_address() -> None:
    async with pair() as (client, server), asyncio.TaskGroup() as group:
        group.create_task(echo(server))
        await ping(client)
        old = server.remote_addr
        assert old[1] == client.local_addr[1]
        client.rebind((HOST, 0))
        assert client.local_addr[1] != old[1]
        await ping(client)
        await until(lambda: server.remote_addr[1] == client.local_addr[1])
        await ping(client, bytes(200_000))
        await client.close(drain=0)


@asynchronous
async def test_data_flows_on_while_keys_change() -> None:
    async with pair() as (client, server), asyncio.TaskGroup() as group:
        group.create_task(echo(server))
        for end in client, server, client, client:
            end.update_keys()
            await ping(client, bytes(50_000))
        await client.close(drain=0)


@asynchronous
async def test_exported_keys_are_equal_on_both_sides() -> None:
    async with pair() as (client, server):
        keys = set()
        for label, context, length in (
            (b"one", b"", 32),
            (b"two", b"", 32),
            (b"one", b"c", 32),
            (b"one", b"", 64),
        ):
            ours = client.export_keying_material(label, context, length)
            assert ours == server.export_keying_material(label, context, length)
            assert len(ours) == length
            keys.add(ours)
        assert len(keys) == 4
    async with pair() as (client, _):
        assert client.export_keying_material(b"one", b"", 32) not in keys


@asynchronous
async def test_a_client_shows_its_certificate() -> None:
    chain, key = quic.self_signed(["client"])
    server_tls = quic.ServerTls(CERT, KEY, client_pins=[quic.fingerprint(chain)], alpn=ALPN)
    tls = quic.ClientTls(pins=[PIN], client_cert=(chain, key), alpn=ALPN)
    async with pair(tls=tls, server_tls=server_tls) as (_, server):
        assert [quic.fingerprint(_pem(der)) for der in server.peer_certificates] == [quic.fingerprint(chain)]


@asynchronous
async def test_a_client_with_another_certificate_is_refused() -> None:
    expected, _ = quic.self_signed(["client"])
    server_tls = quic.ServerTls(CERT, KEY, client_pins=[quic.fingerprint(expected)], alpn=ALPN)
    tls = quic.ClientTls(pins=[PIN], client_cert=quic.self_signed(["client"]), alpn=ALPN)
    async with serving(tls=server_tls) as server:
        try:
            client = await quic.connect(*server.local_addr, tls=tls)
        except quic.TlsError as early:
            error: BaseException | None = early
        else:
            error = await ended(client.receive_datagram())
        assert isinstance(error, quic.TlsError)
        assert error.alert is not None


@asynchronous
async def test_certificates_may_be_files(tmp_path: pathlib.Path) -> None:
    chain, key, roots = tmp_path / "chain.pem", tmp_path / "key.pem", tmp_path / "roots.pem"
    chain.write_bytes(CERT)
    key.write_bytes(KEY)
    roots.write_bytes(CERT)
    async with pair(
        server_tls=quic.ServerTls(str(chain), str(key), alpn=ALPN),
        tls=quic.ClientTls(pins=[quic.fingerprint(str(chain))], alpn=ALPN),
    ) as (client, _):
        assert client.alpn == ALPN[0]


@asynchronous
async def test_a_key_log_can_be_asked_for_and_is_not_kept_otherwise(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "keys.txt"
    async with pair(config=quic.Config(keylog=str(log))):
        pass
    kinds = {line.split()[0] for line in log.read_text().splitlines()}
    assert {"CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0"} <= kinds


def test_no_repr_shows_a_key() -> None:
    tls = quic.ClientTls(pins=[PIN], client_cert=(CERT, KEY), alpn=ALPN)
    secret = KEY.split(b"\n")[1].decode()
    for one in tls, quic.ServerTls(CERT, KEY, alpn=ALPN), quic.Config():
        assert secret not in repr(one)
        assert "PRIVATE KEY" not in repr(one)


@pytest.mark.parametrize(("retry", "expected"), [("always", True), ("never", False), ("auto", False)])
@asynchronous
async def test_retry_is_sent_as_configured(retry: quic.Retry, expected: bool) -> None:
    async with serving(retry=retry) as server:
        with Relay(server.local_addr) as relay:
            async with quic.connect(*relay.address, tls=CLIENT_TLS):
                accepted = await anext(server)
                await accepted.close(drain=0)
            retries = [packet for packet in relay.from_server if packet[0] & RETRY_MASK == RETRY]
            assert bool(retries) == expected


@asynchronous
async def test_reloaded_certificates_serve_the_connections_that_follow() -> None:
    chain, key = quic.self_signed(["localhost", HOST])
    async with serving() as server, asyncio.TaskGroup() as group:
        old = await quic.connect(*server.local_addr, tls=CLIENT_TLS)
        group.create_task(echo(await anext(server)))
        server.reload_tls(quic.ServerTls(chain, key, alpn=ALPN))
        await ping(old)
        with pytest.raises(quic.TlsError):
            await quic.connect(*server.local_addr, tls=CLIENT_TLS)
        tls = quic.ClientTls(pins=[quic.fingerprint(chain)], alpn=ALPN)
        new = await quic.connect(*server.local_addr, tls=tls)
        group.create_task(echo(await anext(server)))
        await ping(new)
        await ping(old)
        await old.close(drain=0)
        await new.close(drain=0)


@asynchronous
async def test_a_graceful_close_loses_nothing() -> None:
    async with pair() as (client, server), asyncio.TaskGroup() as group:
        data = bytes(range(256)) * 2048

        async def read_all() -> list[bytes]:
            return [await stream.read_to_end(len(data)) async for stream in server.accept_uni()]

        reading = group.create_task(read_all())
        for _ in range(10):
            stream = await client.open_uni()
            await stream.write(data)
            await stream.finish()
        await client.close(drain=20)
        assert await reading == [data] * 10


@asynchronous
async def test_what_arrived_before_the_close_stays_readable() -> None:
    async with pair() as (client, server):
        stream = await client.open_uni()
        await stream.write(b"kept")
        await stream.finish()
        receiving = await server.accept_uni()
        await stream.acked()
        await client.close(drain=0)
        await server.closed()
        assert await receiving.read_to_end(10) == b"kept"


@asynchronous
async def test_iterating_streams_ends_with_a_close_of_code_0() -> None:
    async with pair() as (client, server):
        stream = await client.open_uni()
        await stream.finish()
        await (await client.open_bi()).send.finish()
        kinds = []
        async for one in server.streams():
            kinds.append(type(one).__name__)
            if len(kinds) == 2:
                await client.close(drain=0)
        assert sorted(kinds) == ["BiStream", "ReceiveStream"]
        assert [one async for one in server.accept_bi()] == []


@asynchronous
async def test_iterating_streams_tells_of_an_error() -> None:
    async with pair() as (client, server):
        await client.close(code=9, reason="why", drain=0)
        for iterate in server.accept_uni, server.accept_bi, server.streams:
            with pytest.raises(quic.ConnectionClosed) as caught:
                async for _ in iterate():
                    pass
            assert (caught.value.code, caught.value.reason) == (9, "why")


@asynchronous
async def test_closing_twice_is_closing_once() -> None:
    async with pair() as (client, server):
        await client.close(code=1, drain=0)
        await client.close(code=2, drain=0)
        error = await server.closed()
        assert isinstance(error, quic.ConnectionClosed)
        assert error.code == 1


@asynchronous
async def test_a_cancelled_close_still_ends_every_wait() -> None:
    async with pair() as (client, server):
        # No task reads, so that draining would take as long as it may.
        stream = await client.open_uni()
        await stream.write(bytes(8 << 20))
        closing = asyncio.ensure_future(client.close(drain=20))
        waiting = asyncio.ensure_future(_accept(client))
        await rounds(10)
        closing.cancel()
        await asyncio.wait([closing])
        await client.close(drain=0)
        assert isinstance(await ended(waiting), quic.ConnectionClosed)
        assert await client.closed() is not None
        assert await server.closed() is not None


async def _accept(connection: quic.Connection) -> object:
    return await connection.accept_uni()


@asynchronous
async def test_leaving_the_context_closes() -> None:
    async with serving() as server:
        async with quic.connect(*server.local_addr, tls=CLIENT_TLS) as client:
            accepted = await anext(server)
            assert accepted.alpn == client.alpn
        error = await accepted.closed()
        assert isinstance(error, quic.ConnectionClosed)
        assert (error.code, error.by) == (0, "peer")


@asynchronous
async def test_a_server_ends_its_connections_and_its_iteration() -> None:
    async with quic.serve(HOST, 0, tls=SERVER_TLS) as server:
        client = await quic.connect(*server.local_addr, tls=CLIENT_TLS)
        accepted = await anext(server)
        await server.close(code=6, reason="going", drain=0)
        error = await client.closed()
        assert isinstance(error, quic.ConnectionClosed)
        assert (error.code, error.reason, error.by) == (6, "going", "peer")
        assert await accepted.closed() is not None
        assert [one async for one in server] == []


@asynchronous
async def test_many_clients_at_once() -> None:
    async with serving() as server, asyncio.TaskGroup() as group:

        async def accept() -> None:
            for _ in range(20):
                group.create_task(echo(await anext(server)))

        async def call(number: int) -> None:
            async with quic.connect(*server.local_addr, tls=CLIENT_TLS) as client:
                await ping(client, b"%d" % number)

        group.create_task(accept())
        async with asyncio.TaskGroup() as callers:
            for number in range(20):
                callers.create_task(call(number))


@pytest.mark.parametrize("congestion", ["cubic", "newreno", "bbr3", "copa"])
@asynchronous
async def test_every_congestion_controller_carries_data(congestion: quic.Congestion) -> None:
    async with (
        pair(config=quic.Config(congestion=congestion)) as (client, server),
        asyncio.TaskGroup() as group,
    ):
        group.create_task(echo(server))
        await ping(client, bytes(1 << 20))
        await client.close(drain=0)


@asynchronous
async def test_a_local_address_can_be_chosen() -> None:
    async with (
        serving() as server,
        quic.connect(*server.local_addr, tls=CLIENT_TLS, local_addr=(HOST, 0)) as client,
    ):
        assert client.local_addr[0] == HOST
        accepted = await anext(server)
        await accepted.close(drain=0)
