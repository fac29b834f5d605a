"""HTTP/3 with programs that others wrote for users: the client and the server of ngtcp2 and nghttp3
(Debian's packages `ngtcp2-client` and `ngtcp2-server`), and Caddy, as a server of files and as a proxy before
ours, where `scripts/build-peers --all` has built it.
"""

from __future__ import annotations

import asyncio
import os
import pathlib
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from http3_support import answer, body_of
from programs import FOLDER, LIMIT, Site
from support import HOST, asynchronous
from test_interop import site

import peers
from wayferry import http3, quic

__all__ = ["site"]

LARGE = bytes(range(256)) * 20_000
# Debian keeps servers where not everybody looks.
PATH = os.pathsep.join([FOLDER or "", os.environ.get("PATH", ""), "/usr/sbin"])


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(name, path=PATH) is None, reason=f"{name} is not here")


def command(name: str) -> str:
    found = shutil.which(name, path=PATH)
    assert found is not None
    return found


@asynccontextmanager
async def running(*arguments: str, home: pathlib.Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program that serves until it is told to end."""
    null, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    program = await asyncio.create_subprocess_exec(
        *arguments, stdin=null, stdout=pipe, stderr=asyncio.subprocess.STDOUT, env={"HOME": str(home)}
    )
    # What it says is read, so that it can go on, and shown where the test fails.
    assert program.stdout is not None
    said = asyncio.create_task(program.stdout.read())
    try:
        yield program
    finally:
        if program.returncode is None:
            program.terminate()
        await asyncio.wait_for(program.wait(), LIMIT)
        print((await said).decode(errors="replace"))


async def ended(*arguments: str) -> None:
    """Runs a program, which has to end well."""
    pipe = asyncio.subprocess.PIPE
    program = await asyncio.create_subprocess_exec(
        *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=asyncio.subprocess.STDOUT
    )
    try:
        output, _ = await asyncio.wait_for(program.communicate(), LIMIT)
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    assert program.returncode == 0, output.decode(errors="replace")


def free_port() -> int:
    """A UDP port that was free, on which TCP is, too."""
    while True:
        with socket.socket(type=socket.SOCK_DGRAM) as udp, socket.socket() as tcp:
            udp.bind((HOST, 0))
            port: int = udp.getsockname()[1]
            try:
                tcp.bind((HOST, port))
            except OSError:
                continue
            return port


async def connected(site: Site, port: int) -> http3.Client:
    """A client of a server that may still be starting."""
    tls = quic.ClientTls(roots=site.roots, server_name=peers.SERVER_NAME)
    config = quic.Config(handshake_timeout=2.0)
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                return await http3.connect(f"https://{peers.SERVER_NAME}:{port}", tls=tls, config=config)
            except quic.ConnectionClosed as closed:
                assert closed.by in ("refused", "timeout", "reset"), closed  # noqa: PT017 (others are errors)


@pytest.fixture
def documents(tmp_path: pathlib.Path) -> pathlib.Path:
    """What servers of files serve."""
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "small.txt").write_text("small")
    (folder / "large.bin").write_bytes(LARGE)
    return folder


async def files_are_had(client: http3.Client) -> None:
    small = await client.get("/small.txt")
    assert (small.status_code, small.text, small.headers["content-length"]) == (200, "small", "5")
    assert (await client.get("/large.bin")).content == LARGE
    assert (await client.get("/nothing")).status_code == 404
    assert (await client.request("HEAD", "/large.bin")).content == b""
    many = await asyncio.gather(*(client.get("/small.txt") for _ in range(150)))
    assert {response.text for response in many} == {"small"}


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    assert scope["type"] == "http", "no lifespan"
    body = await body_of(receive)
    await answer(send, 200, body or scope["raw_path"] * 100_000, [(b"x-method", scope["method"].encode())])


@needs("gtlsserver")
@asynchronous
async def test_our_client_and_ngtcp2s_server(site: Site, documents: pathlib.Path) -> None:
    port = free_port()
    serving = [command("gtlsserver"), "--quiet", f"--htdocs={documents}", HOST, str(port)]
    server = running(*serving, str(site.key), str(site.cert), home=documents)
    async with server, await connected(site, port) as client:
        await files_are_had(client)


@needs("gtlsclient")
@asynchronous
async def test_ngtcp2s_client_and_our_server(site: Site, tmp_path: pathlib.Path) -> None:
    downloads, body = tmp_path / "downloads", tmp_path / "body"
    downloads.mkdir()
    body.write_bytes(LARGE)
    async with http3.serve_asgi(app, HOST, 0, tls=quic.ServerTls(site.cert, site.key)) as server:
        port = str(server.local_addr[1])
        client = [command("gtlsclient"), "--quiet", "--exit-on-all-streams-close"]
        client += [f"--download={downloads}", f"--sni={peers.SERVER_NAME}"]
        urls = [f"https://{peers.SERVER_NAME}:{port}/{name}" for name in ("one", "two", "three")]
        await ended(*client, HOST, port, *urls)
        posted = f"https://{peers.SERVER_NAME}:{port}/posted"
        await ended(*client, "--http-method=POST", f"--data={body}", HOST, port, posted)
    for name in ("one", "two", "three"):
        assert (downloads / name).read_bytes() == f"/{name}".encode() * 100_000
    assert (downloads / "posted").read_bytes() == LARGE


@asynccontextmanager
async def caddy(site: Site, tmp_path: pathlib.Path, what: str) -> AsyncIterator[http3.Client]:
    """A client of Caddy, which does `what`."""
    port = free_port()
    config = tmp_path / "Caddyfile"
    config.write_text(f"""
        {{
            admin off
            auto_https off
            skip_install_trust
            default_bind {HOST}
        }}
        https://{peers.SERVER_NAME}:{port} {{
            tls {site.cert} {site.key}
            {what}
        }}
    """)
    server = running(command("caddy"), "run", "--config", str(config), home=tmp_path)
    async with server, await connected(site, port) as client:
        yield client


@needs("caddy")
@asynchronous
async def test_our_client_and_caddy(site: Site, documents: pathlib.Path, tmp_path: pathlib.Path) -> None:
    async with caddy(site, tmp_path, f"root * {documents}\n file_server") as client:
        await files_are_had(client)


@needs("caddy")
@asynchronous
async def test_caddy_before_our_server(site: Site, tmp_path: pathlib.Path) -> None:
    async with http3.serve_asgi(app, HOST, 0, tls=quic.ServerTls(site.cert, site.key)) as server:
        what = f"""
            reverse_proxy https://{HOST}:{server.local_addr[1]} {{
                transport http {{
                    versions 3
                    tls_server_name {peers.SERVER_NAME}
                    tls_trust_pool file {site.roots}
                }}
            }}
        """
        async with caddy(site, tmp_path, what) as client:
            assert (await client.get("/path")).content == b"/path" * 100_000
            for method in ("POST", "PUT"):
                response = await client.request(method, "/", content=LARGE)
                assert (response.headers["x-method"], response.content) == (method, LARGE)
            many = await asyncio.gather(
                *(client.request("POST", "/", content=b"%d" % number) for number in range(50))
            )
            assert [response.content for response in many] == [b"%d" % number for number in range(50)]
