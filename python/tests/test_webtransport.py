"""WebTransport sessions: the same objects as on a raw connection, with 32-bit codes, beside raw QUIC on one
port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from support import ALPN, CERT, CLIENT_TLS, HOST, KEY, PIN, asynchronous, echo, ended, pair, rounds

from wayferry import quic
from wayferry.quic import webtransport

TLS = quic.ClientTls(pins=[PIN])
SERVER_TLS = quic.ServerTls(CERT, KEY, alpn=[*ALPN, "h3"])
# A code travels as one of HTTP/3's with gaps (draft-ietf-webtrans-http3 §4.3); these are at the gaps' edges.
CODES = [0, 1, 29, 30, 31, 60, 2**16, 2**32 - 2, 2**32 - 1]
Handler = Callable[[webtransport.Request], Awaitable[None]]


@asynccontextmanager
async def site(handler: Handler, path: str = "/here") -> AsyncIterator[tuple[quic.Server, str]]:
    """A server with one route, and its URL."""
    async with quic.serve(HOST, 0, tls=SERVER_TLS) as server:
        server.route(path, handler)
        yield server, f"https://{HOST}:{server.local_addr[1]}{path}"
        await server.close(drain=0)


@asynccontextmanager
async def sessions() -> AsyncIterator[tuple[quic.Connection, quic.Connection]]:
    """Both ends of a session, the client's first."""
    accepted: asyncio.Future[quic.Connection] = asyncio.get_running_loop().create_future()

    async def handler(request: webtransport.Request) -> None:
        session = await request.accept()
        accepted.set_result(session)
        await session.closed()

    async with site(handler) as (_, url), webtransport.connect(url, tls=TLS) as client:
        yield client, await accepted


@asynchronous
async def test_an_echo_over_every_kind() -> None:
    async def handler(request: webtransport.Request) -> None:
        assert request.path == "/here?with=query"
        assert request.authority.startswith(HOST)
        assert request.remote_addr[0] == HOST
        session = await request.accept()
        async with asyncio.TaskGroup() as group:
            group.create_task(echo(session))

            async def datagrams() -> None:
                async for datagram in session.datagrams():
                    await session.send_datagram(datagram)

            async def news() -> None:
                async for stream in session.accept_uni():
                    back = await session.open_uni()
                    await back.write(await stream.read_to_end(1 << 20))
                    await back.finish()

            group.create_task(datagrams())
            group.create_task(news())

    async with site(handler) as (_, url), webtransport.connect(f"{url}?with=query", tls=TLS) as session:
        for size in 0, 1, 300_000:
            stream = await session.open_bi()
            await stream.send.write(bytes(size))
            await stream.send.finish()
            assert await stream.receive.read_to_end(size) == bytes(size)
            uni = await session.open_uni()
            await uni.write(bytes(size))
            await uni.finish()
            assert await (await session.accept_uni()).read_to_end(size) == bytes(size)
        await session.send_datagram(b"datagram")
        assert await session.receive_datagram() == b"datagram"


@asynchronous
async def test_the_server_may_open_streams_too() -> None:
    async with sessions() as (client, server):
        bi, uni = await server.open_bi(), await server.open_uni()
        await bi.send.write(b"bi")
        await bi.send.finish()
        await uni.write(b"uni")
        await uni.finish()
        theirs = await client.accept_bi()
        assert await theirs.receive.read_to_end(10) == b"bi"
        assert await (await client.accept_uni()).read_to_end(10) == b"uni"
        await theirs.send.write(b"back")
        await theirs.send.finish()
        assert await bi.receive.read_to_end(10) == b"back"


@asynchronous
async def test_an_unknown_path_is_not_found() -> None:
    async def handler(request: webtransport.Request) -> None:
        await request.accept()

    async with site(handler) as (_, url):
        with pytest.raises(quic.WebTransportRejected) as caught:
            await webtransport.connect(f"{url}/elsewhere", tls=TLS)
        assert caught.value.status == 404


@asynchronous
async def test_a_handler_may_reject() -> None:
    async def handler(request: webtransport.Request) -> None:
        request.reject(403)

    async with site(handler) as (_, url):
        for _ in range(2):
            with pytest.raises(quic.WebTransportRejected) as caught:
                await webtransport.connect(url, tls=TLS)
            assert caught.value.status == 403


@asynchronous
async def test_raw_quic_is_on_the_same_port() -> None:
    async def handler(request: webtransport.Request) -> None:
        await (await request.accept()).closed()

    async with (
        site(handler) as (server, url),
        webtransport.connect(url, tls=TLS),
        quic.connect(*server.local_addr, tls=CLIENT_TLS) as raw,
    ):
        accepted = await anext(server)
        assert accepted.alpn == raw.alpn == ALPN[0]
        await accepted.close(drain=0)


@asynchronous
async def test_a_server_without_webtransport_is_a_tls_error() -> None:
    async with quic.serve(HOST, 0, tls=quic.ServerTls(CERT, KEY, alpn=ALPN)) as server:
        with pytest.raises(quic.TlsError):
            await webtransport.connect(f"https://{HOST}:{server.local_addr[1]}/", tls=TLS)
        await server.close(drain=0)


@asynchronous
async def test_codes_of_streams_arrive_both_ways() -> None:
    async with sessions() as ends:
        for near, far in ends, ends[::-1]:
            for code in CODES:
                sending = await near.open_uni()
                await sending.write(b"!")
                receiving = await far.accept_uni()
                assert await receiving.read_exactly(1) == b"!"
                sending.reset(code)
                with pytest.raises(quic.StreamReset) as reset:
                    await receiving.read()
                assert reset.value.code == code
                sending = await near.open_uni()
                await sending.write(b"!")
                (await far.accept_uni()).stop(code)
                assert await sending.stopped() == code


@asynchronous
async def test_codes_have_32_bits() -> None:
    async with sessions() as (client, _):
        stream = await client.open_bi()
        with pytest.raises((ValueError, OverflowError)):
            stream.send.reset(2**32)
        with pytest.raises((ValueError, OverflowError)):
            stream.receive.stop(2**32)


@asynchronous
async def test_a_session_is_closed_with_code_and_reason() -> None:
    for index, code in enumerate([0, 1, 2**32 - 1]):
        async with sessions() as ends:
            near, far = ends if index % 2 else ends[::-1]
            await near.close(code=code, reason="enough", drain=0)
            error = await far.closed()
            assert isinstance(error, quic.ConnectionClosed)
            assert (error.code, error.reason, error.by) == (code, "enough", "peer")


@asynchronous
async def test_what_arrived_before_the_peers_close_stays_readable() -> None:
    async with sessions() as (client, server):
        stream = await client.open_uni()
        await stream.write(b"kept")
        await stream.finish()
        await client.send_datagram(b"also kept")
        unaccepted = await client.open_uni()
        await unaccepted.write(b"not even accepted")
        await unaccepted.finish()
        receiving = await server.accept_uni()
        await stream.acked()
        await unaccepted.acked()
        # It was sent before the last stream, so that it is here when that is acknowledged.
        await client.close(drain=0)
        await server.closed()
        assert await server.receive_datagram() == b"also kept"
        assert await receiving.read_to_end(100) == b"kept"
        assert await (await server.accept_uni()).read_to_end(100) == b"not even accepted"
        assert isinstance(await ended(_accept(server)), quic.ConnectionClosed)


async def _accept(connection: quic.Connection) -> object:
    return await connection.accept_uni()


@asynchronous
async def test_every_wait_ends_with_the_session() -> None:
    async with sessions() as (client, server):
        stream = await client.open_bi()
        await stream.send.write(b"!")
        waits = [
            asyncio.ensure_future(call)
            for call in (
                _accept(client),
                client.receive_datagram(),
                stream.receive.read(),
                stream.send.stopped(),
                stream.send.acked(),
            )
        ]
        await rounds(10)
        await server.close(code=8, drain=0)
        for waiting in waits:
            assert isinstance(await ended(waiting), quic.ConnectionClosed)


@asynchronous
async def test_a_client_that_leaves_while_its_request_waits_harms_no_other() -> None:
    waiting = asyncio.Event()
    handled: list[BaseException | None] = []

    async def handler(request: webtransport.Request) -> None:
        if not waiting.is_set():
            waiting.set()
            await left.wait()
            handled.append(await ended(_accept_and_close(request)))
        else:
            await (await request.accept()).closed()

    left = asyncio.Event()
    async with site(handler) as (_, url):
        leaving = asyncio.ensure_future(_connect(url))
        await waiting.wait()
        leaving.cancel()
        await asyncio.wait([leaving])
        left.set()
        async with webtransport.connect(url, tls=TLS) as session:
            assert session.max_datagram_size


async def _accept_and_close(request: webtransport.Request) -> None:
    await (await request.accept()).close(drain=0)


async def _connect(url: str) -> quic.Connection:
    return await webtransport.connect(url, tls=TLS)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "https://", "https://127.0.0.1:0x50/", "nothing", "https://:1/"]
)
@asynchronous
async def test_a_wrong_url_is_a_wrong_argument(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        await webtransport.connect(url, tls=TLS)


@asynchronous
async def test_a_handler_that_fails_rejects_its_session_alone() -> None:
    async def handler(request: webtransport.Request) -> None:
        raise LookupError("of the test")

    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: errors.append(context))
    async with site(handler) as (server, url):
        with pytest.raises(quic.QuicError):
            await webtransport.connect(url, tls=TLS)
        async with quic.connect(*server.local_addr, tls=CLIENT_TLS):
            accepted = await anext(server)
            await accepted.close(drain=0)
    assert any(isinstance(context.get("exception"), LookupError) for context in errors)


@asynchronous
async def test_a_raw_connection_has_no_url() -> None:
    async with pair() as (client, _):
        assert getattr(client, "url", None) is None
