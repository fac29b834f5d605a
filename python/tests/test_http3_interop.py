"""HTTP/3 with others in both roles: aioquic and qh3 (what they do is in `http3_peer.py`), and quic-go, which
Caddy is made with, where `scripts/build-peers --all` has built it.
"""

from __future__ import annotations

import asyncio
import json
import pathlib
import re
import sys
from typing import Any

import http3_peer
import pytest
from http3_support import GET, answer, body_of, frame, raw_client, served
from programs import LIBRARIES, LIMIT, Site, parameters, stop
from programs import program as program_of
from support import asynchronous
from test_interop import site

from wayferry import http3, quic
from wayferry.quic import _native

__all__ = ["site"]

LINES = pathlib.Path(__file__).parent.parent / "src" / "http3" / "table.rs"
every_peer = parameters(["aioquic", "qh3", "quic-go"])


async def start(peer: str, role: str, options: dict[str, Any]) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    if peer in LIBRARIES:
        command = [sys.executable, http3_peer.__file__, role, json.dumps(options), peer]
    else:
        command = [str(program_of(peer)), role, json.dumps(options)]
    return await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)


def table() -> list[tuple[bytes, bytes]]:
    """The static table as it stands in the source."""
    found = re.findall(r'^ +\(\s*"([^"]*)",\s*"([^"]*)",?\s*\),$', LINES.read_text(), re.MULTILINE)
    return [(name.encode(), value.encode()) for name, value in found]


def test_what_ls_qpack_reads_of_ours() -> None:
    pylsqpack = pytest.importorskip("pylsqpack", reason="pylsqpack is not installed")
    fields = [*table(), (b"x-other", bytes(range(0x21, 0x100))), (b"accept", b"x"), (b"a" * 300, b"b" * 300)]
    assert len(fields) == 102
    _, read = pylsqpack.Decoder(0, 0).feed_header(0, _native.http3_section(fields, None))
    assert read == fields


@asynchronous
async def test_what_we_read_of_ls_qpacks() -> None:
    pylsqpack = pytest.importorskip("pylsqpack", reason="pylsqpack is not installed")
    seen: list[tuple[bytes, bytes]] = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        seen.extend(scope["headers"])
        await answer(send, 200)

    fields = [field for field in table() if field[0][:1] != b":"]
    fields += [
        (b"x-%02x" % byte, bytes([0x61, byte, 0x61])) for byte in range(0x100) if byte not in b"\0\r\n"
    ]
    fields += [(b"x-all", bytes(range(0x21, 0x100))), (b"x-digits", b"0" * 1000)]
    _, section = pylsqpack.Encoder().encode(0, [*GET, *fields])
    async with served(app) as server, raw_client(server) as client:
        stream = await client.open_bi()
        await stream.write(frame(1, section))
        await stream.finish()
        await stream.read_to_end(1000)
    assert seen[1:] == [field for field in fields if field[0] != b"host"]


@every_peer
@asynchronous
async def test_our_client_and_their_server(site: Site, peer: str) -> None:
    running = await start(peer, "http-serve", {"cert": str(site.cert), "key": str(site.key)})
    assert running.stdout is not None
    try:
        port = int(await asyncio.wait_for(running.stdout.readline(), LIMIT))
        tls = quic.ClientTls(roots=site.roots, server_name=http3_peer.SERVER_NAME)
        async with http3.connect(f"https://{http3_peer.HOST}:{port}", tls=tls) as client:

            async def ask(size: int) -> None:
                # qh3 takes a value that is no UTF-8 for a mistake of QPACK.
                headers = {"x-long": ("o" if peer == "qh3" else "ö") * 99}
                response = await client.request("POST", "/a?b=c", content=bytes(size), headers=headers)
                assert (response.status_code, response.content) == (200, bytes(size))
                assert (response.headers["x-method"], response.headers["x-path"]) == ("POST", "/a?b=c")
                assert response.trailers == {"x-length": str(size)}

            await asyncio.gather(*(ask(size) for size in http3_peer.SIZES))
    finally:
        await stop(running)


@every_peer
@asynchronous
async def test_their_client_and_our_server(site: Site, peer: str) -> None:
    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            body = await body_of(receive)
            headers = [(b"x-query", scope["query_string"]), (b"x-other", b"e")]
            await answer(send, 201, body, headers)

    tls = quic.ServerTls(site.cert, site.key)
    async with http3.serve_asgi(app, http3_peer.HOST, 0, tls=tls) as server:
        running = await start(peer, "http-call", {"roots": str(site.roots), "port": server.local_addr[1]})
        output, messages = await asyncio.wait_for(running.communicate(), LIMIT)
        assert running.returncode == 0, messages.decode()
    answers = json.loads(output)["answers"]
    assert [one["length"] for one in answers] == list(http3_peer.SIZES)
    for one in answers:
        headers = one["headers"]
        assert (headers[":status"], headers["x-query"], headers["x-other"]) == ("201", "q=1", "e")


@asynchronous
async def test_niquests_and_our_server(site: Site) -> None:
    niquests_peer = pytest.importorskip("niquests_peer", reason="niquests is not installed")

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            body = await body_of(receive) or bytes(niquests_peer.SIZE)
            status = 404 if scope["path"] == "/missing" else 200
            await answer(send, status, body, [(b"x-query", scope["query_string"])])

    tls = quic.ServerTls(site.cert, site.key)
    async with http3.serve_asgi(app, http3_peer.HOST, 0, tls=tls) as server:
        command = [niquests_peer.__file__, str(server.local_addr[1]), str(site.roots)]
        pipe = asyncio.subprocess.PIPE
        running = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=pipe, stderr=pipe)
        output, messages = await asyncio.wait_for(running.communicate(), LIMIT)
        assert running.returncode == 0, messages.decode()
    whole, streamed = json.loads(output)
    assert whole == {"status": 200, "version": 30, "length": niquests_peer.SIZE, "query": "q=1"}
    assert streamed == {"status": 404, "version": 30, "length": niquests_peer.SIZE, "query": ""}
