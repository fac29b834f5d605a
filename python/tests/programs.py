"""Other implementations as programs of their own: those of Python's libraries (`peers.py`), and those that
`scripts/build-peers` has built into the folder `$WAYFERRY_PEERS`. How they are called is in `peers.py`.

One that is not there is skipped, unless `PEERS=required` (see `conftest.py`), and so is what one says that it
cannot do.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import pathlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from certificates import Authority
from support import HOST

import peers
from wayferry import quic

__all__ = [
    "FOLDER",
    "LIBRARIES",
    "LIMIT",
    "Site",
    "calling",
    "is_present",
    "parameters",
    "serving_peer",
    "stop",
]

LIBRARIES = ["aioquic", "qh3", "aiopquic"]
FOLDER = os.environ.get("WAYFERRY_PEERS") or None
LIMIT = 60.0
CANNOT = 3
"""Exit status of a program that cannot do what it was asked."""


class Site:
    """An authority that the peers trust, and files with its certificate, a server's, and that one's key."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.roots, self.cert, self.key = (folder / name for name in ("roots.pem", "cert.pem", "key.pem"))
        authority = Authority("interop")
        cert, key = authority.issue(peers.SERVER_NAME, HOST)
        self.roots.write_bytes(authority.pem)
        self.cert.write_bytes(cert)
        self.key.write_bytes(key)

    @property
    def server_tls(self) -> quic.ServerTls:
        return quic.ServerTls(self.cert, self.key, alpn=[peers.ALPN, "h3"], early_data=True)

    @property
    def client_tls(self) -> quic.ClientTls:
        return quic.ClientTls(roots=self.roots, alpn=[peers.ALPN], server_name=peers.SERVER_NAME)


def is_present(name: str) -> bool:
    if name in LIBRARIES:
        return importlib.util.find_spec(name) is not None
    return FOLDER is not None and program(name).exists()


def program(name: str) -> pathlib.Path:
    assert FOLDER is not None
    return pathlib.Path(FOLDER) / f"{name}-peer"


def parameters(names: list[str]) -> pytest.MarkDecorator:
    """Has a test run with each of these peers, as `peer`."""
    return pytest.mark.parametrize(
        "peer",
        [
            pytest.param(name, marks=pytest.mark.skipif(not is_present(name), reason=f"{name} is not here"))
            for name in names
        ],
    )


@asynccontextmanager
async def serving_peer(peer: str, site: Site, role: str, **options: Any) -> AsyncIterator[tuple[str, int]]:
    """The address of a peer's server. It ends when its input does."""
    running = await start(role, peer, {"cert": str(site.cert), "key": str(site.key), **options})
    assert running.stdin is not None
    assert running.stdout is not None
    try:
        line = await asyncio.wait_for(running.stdout.readline(), LIMIT)
        if not line:
            _, messages = await running.communicate()
            tell(peer, role, running.returncode, messages)
            pytest.fail(f"{peer} ended")
        yield HOST, int(line)
    finally:
        await stop(running)


async def calling(
    peer: str, site: Site, address: tuple[str, int], role: str, scenario: str, **options: Any
) -> dict[str, Any]:
    """What a peer's client says that it saw."""
    running = await start(
        role, peer, {"roots": str(site.roots), "port": address[1], "scenario": scenario, **options}
    )
    try:
        output, messages = await asyncio.wait_for(running.communicate(), LIMIT)
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
    tell(peer, scenario, running.returncode, messages)
    seen: dict[str, Any] = json.loads(output)
    return seen


async def start(role: str, peer: str, options: dict[str, Any]) -> asyncio.subprocess.Process:
    command = [sys.executable, peers.__file__, role, peer] if peer in LIBRARIES else [program(peer), role]
    return await asyncio.create_subprocess_exec(
        *command,
        json.dumps(options),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def tell(peer: str, what: str, status: int | None, messages: bytes) -> None:
    """Skips what a peer cannot do, and fails when it failed."""
    if status == CANNOT:
        pytest.skip(f"{peer}: {messages.decode().strip()}")
    assert status == 0, f"{peer}, {what}:\n{messages.decode()}"


async def stop(running: asyncio.subprocess.Process) -> None:
    assert running.stdin is not None
    running.stdin.close()
    try:
        async with asyncio.timeout(5):
            await running.communicate()
    except TimeoutError:
        running.kill()
        await running.communicate()
