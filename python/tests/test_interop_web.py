"""WebTransport with aioquic, in both roles; what it does is in `web_peer.py`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import Any

import pytest
import web_peer
from programs import LIMIT, Site, is_present, stop
from support import asynchronous, echo
from test_interop import our_server, site

from wayferry import http3, quic
from wayferry.quic import webtransport

__all__ = ["site"]

pytestmark = pytest.mark.skipif(not is_present("aioquic"), reason="aioquic is not for this interpreter")


async def program(role: str, options: dict[str, Any]) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, web_peer.__file__, role, json.dumps(options), stdin=pipe, stdout=pipe, stderr=pipe
    )


@asynchronous
async def test_our_client_and_their_server(site: Site) -> None:
    running = await program("serve", {"cert": str(site.cert), "key": str(site.key)})
    assert running.stdout is not None
    try:
        port = int(await asyncio.wait_for(running.stdout.readline(), LIMIT))
        tls = quic.ClientTls(roots=site.roots, server_name=web_peer.SERVER_NAME)
        with pytest.raises(quic.WebTransportRejected) as caught:
            await webtransport.connect(f"https://{web_peer.HOST}:{port}/elsewhere", tls=tls)
        assert caught.value.status == 404
        async with webtransport.connect(f"https://{web_peer.HOST}:{port}/echo", tls=tls) as session:
            data = bytes(range(256)) * 400
            both = await session.open_bi()
            await both.send.write(data)
            await both.send.finish()
            assert await both.receive.read_to_end(len(data)) == data
            one = await session.open_uni()
            await one.write(data)
            await one.finish()
            assert await (await session.accept_uni()).read_to_end(len(data)) == data
            await session.send_datagram(b"datagram")
            assert await session.receive_datagram() == b"datagram"
            await session.close(drain=0)
    finally:
        await stop(running)


@pytest.mark.parametrize("beside", ["quic", "http3"])
@asynchronous
async def test_their_client_and_our_server(site: Site, beside: str) -> None:
    """Beside raw QUIC, and beside an application."""

    async def serve(request: webtransport.Request) -> None:
        session = await request.accept()
        async with asyncio.TaskGroup() as group:
            group.create_task(echo(session))

            async def datagrams() -> None:
                async for datagram in session.datagrams():
                    await session.send_datagram(datagram)

            async def one_way() -> None:
                async for stream in session.accept_uni():
                    back = await session.open_uni()
                    await back.write(await stream.read_to_end(1 << 20))
                    await back.finish()

            group.create_task(datagrams())
            group.create_task(one_way())

    failed: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failed.append(context))
    async with contextlib.AsyncExitStack() as stack:
        server: quic.Server | http3.Server
        if beside == "quic":
            server, _, _ = await stack.enter_async_context(our_server(site))
        else:
            tls = quic.ServerTls(site.cert, site.key)
            server = await stack.enter_async_context(http3.serve_asgi(none, web_peer.HOST, 0, tls=tls))
        server.route("/echo", serve)
        for path, status in ("/elsewhere", 404), ("/echo", 200):
            running = await program(
                "call", {"roots": str(site.roots), "port": server.local_addr[1], "path": path}
            )
            output, messages = await asyncio.wait_for(running.communicate(), LIMIT)
            assert running.returncode == 0, messages.decode()
            assert json.loads(output) == {"status": status}
    # aioquic leaves without closing the session; a handler may be told so.
    assert all(_left(context.get("exception")) for context in failed), failed


async def none(scope: dict[str, Any], receive: Any, send: Any) -> None:
    raise NotImplementedError(scope["type"])


def _left(error: Any) -> bool:
    return isinstance(error, quic.ConnectionClosed) or (
        isinstance(error, BaseExceptionGroup) and error.split(quic.ConnectionClosed)[1] is None
    )
