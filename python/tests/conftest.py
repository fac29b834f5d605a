"""What the tests share: a loop with a limit, a certificate, a pair of connections.

A test is a plain function that hands a coroutine to `run`. Nothing here sleeps, every test talks to loopback
only, and a test that hangs ends: `run` cancels it, and if even that hangs the whole run ends with every stack
printed.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import pytest
from native_support import Turns

from wayferry import quic

LIMIT = 30.0
HARD_LIMIT = 60.0
NOT_THERE = re.compile(r" is not (?:here|installed|for this interpreter)$")
"""What a test is skipped for that misses a program or a library: not what one cannot do."""

T = TypeVar("T")
Pair = Callable[..., AbstractAsyncContextManager[tuple[quic.Connection, quic.Connection]]]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "error")


def run(main: Coroutine[Any, Any, T], *, limit: float = LIMIT) -> T:
    """What `main` gives, on a fresh loop in debug mode; TimeoutError after `limit` seconds."""

    async def bounded() -> T:
        async with asyncio.timeout(limit):
            return await main

    return asyncio.run(bounded(), debug=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With `PEERS=required` a test that is skipped for what is not there fails."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple) and os.environ.get("PEERS") == "required":
        reason = report.longrepr[2]
        if NOT_THERE.search(reason):
            report.outcome, report.longrepr = (
                "failed",
                f"PEERS=required, and {reason.removeprefix('Skipped: ')}",
            )
    return report


async def until(condition: Callable[[], object]) -> None:
    """Lets the loop turn until `condition` holds; `run` bounds it."""
    while not condition():  # noqa: ASYNC110 (the condition is often not the loop's own)
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def hard_limit() -> Iterator[None]:
    """Ends the whole run, stacks first, when one test hangs beyond `run`'s help."""
    faulthandler.dump_traceback_later(HARD_LIMIT, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """Lets what a test dropped be noticed (ResourceWarning) in that test."""
    yield
    gc.collect()


@pytest.fixture
def turns() -> Turns:
    """A loop for the native module alone."""
    return Turns()


@pytest.fixture(scope="session")
def cert() -> tuple[bytes, bytes]:
    """A self-signed certificate for loopback and its key, PEM."""
    return quic.self_signed(["localhost", "127.0.0.1", "::1"])


@pytest.fixture(scope="session")
def server_tls(cert: tuple[bytes, bytes]) -> quic.ServerTls:
    return quic.ServerTls(*cert, alpn=["test"])


@pytest.fixture(scope="session")
def client_tls(cert: tuple[bytes, bytes]) -> quic.ClientTls:
    return quic.ClientTls(pins=[quic.fingerprint(cert[0])], alpn=["test"])


@pytest.fixture(scope="session")
def pair(client_tls: quic.ClientTls, server_tls: quic.ServerTls) -> Pair:
    """`async with pair() as (client, server)`: two ends of one connection.

    Options: `config` for both ends, `server_config` for the server's alone.
    """

    @asynccontextmanager
    async def connected(
        *, config: quic.Config | None = None, server_config: quic.Config | None = None
    ) -> AsyncIterator[tuple[quic.Connection, quic.Connection]]:
        async with quic.serve("127.0.0.1", 0, tls=server_tls, config=server_config or config) as server:
            address = server.local_addr
            async with quic.connect(*address, tls=client_tls, config=config) as client:
                async with await anext(server) as accepted:
                    yield client, accepted
                # Both ends of a pair that a test left open end at once.
                await client.close(drain=0)

    return connected
