"""WebTransport with programs in both roles, where `scripts/build-peers --all` has built them: wtransport, and
webtransport-go beside quic-go. What they do is in `peers.py`.
"""

from __future__ import annotations

import asyncio

import pytest
from programs import Site, calling, parameters, serving_peer
from support import HOST, asynchronous
from test_interop import site

import peers
from wayferry import quic

__all__ = ["site"]

BULK = bytes(range(250)) * 400

every_peer = parameters(["wtransport", "quic-go"])


async def obey(request: quic.webtransport.Request) -> None:
    """Our server's side, as `peers.py` describes that of others."""
    async with await request.accept() as session, asyncio.TaskGroup() as group:
        group.create_task(send_back(session))
        group.create_task(send_datagrams_back(session))
        async for stream in session.accept_bi():
            group.create_task(obey_stream(session, stream))


async def obey_stream(session: quic.Connection, stream: quic.BiStream) -> None:
    line = bytearray()
    while not line.endswith(b"\n"):
        line += await stream.read_exactly(1)
    command, _, code = line.decode().strip().partition(" ")
    if command == "close":
        await session.close(int(code), "as told", drain=0)
        return
    async for chunk in stream:
        await stream.write(chunk)
    await stream.finish()


async def send_back(session: quic.Connection) -> None:
    async for stream in session.accept_uni():
        back = await session.open_uni()
        await back.write(await stream.read_to_end(1 << 20))
        await back.finish()


async def send_datagrams_back(session: quic.Connection) -> None:
    async for datagram in session.datagrams():
        await session.send_datagram(datagram)


async def command(session: quic.Connection, text: str) -> quic.BiStream:
    stream = await session.open_bi()
    await stream.write(text.encode() + b"\n")
    return stream


@every_peer
@asynchronous
async def test_our_client_and_their_server(peer: str, site: Site) -> None:
    tls = quic.ClientTls(roots=site.roots, server_name=peers.SERVER_NAME)
    async with serving_peer(peer, site, "web-serve") as (_, port):
        url = f"https://{HOST}:{port}"
        async with quic.webtransport.connect(f"{url}/echo", tls=tls) as session:
            stream = await command(session, "echo")
            async with asyncio.TaskGroup() as group:
                back = group.create_task(stream.read_to_end(len(BULK)))
                await stream.write(BULK)
                await stream.finish()
            assert back.result() == BULK
            uni = await session.open_uni()
            await uni.write(b"one way")
            await uni.finish()
            assert await (await session.accept_uni()).read_to_end(100) == b"one way"
            await session.send_datagram(b"datagram")
            assert await session.receive_datagram() == b"datagram"
            # Dropped, the stream would be reset, and the command might never arrive.
            _kept = await command(session, "close 1234")
            closed = await session.closed()
            assert (closed.code, closed.reason, closed.by) == (1234, "as told", "peer")
        with pytest.raises(quic.WebTransportRejected) as rejected:
            await quic.webtransport.connect(f"{url}/nowhere", tls=tls)
        assert rejected.value.status == 404


@every_peer
@pytest.mark.parametrize(
    ("scenario", "seen"),
    [
        ("echo", {"ok": True}),
        ("reject", {"status": 404}),
        ("close", {"code": 1234, "reason": "as told"}),
    ],
)
@asynchronous
async def test_their_client_and_our_server(
    peer: str, scenario: str, seen: dict[str, object], site: Site
) -> None:
    async with quic.serve(HOST, 0, tls=site.server_tls) as server:
        server.route("/echo", obey)
        assert await calling(peer, site, server.local_addr, "web-call", scenario) == seen
        await server.close(drain=0)
