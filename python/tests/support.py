"""What the tests of whole connections share: a way to run one, a pair of ends, a certificate authority, a
subprocess.

Nothing here sleeps for a fixed time: what cannot be awaited is polled with `until`, and everything has a
limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import pathlib
import socket
import stat
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from wayferry import quic

__all__ = [
    "ALPN",
    "CERT",
    "CLIENT_TLS",
    "HOST",
    "KEY",
    "LIMIT",
    "PIN",
    "SERVER_TLS",
    "asynchronous",
    "echo",
    "failing",
    "pair",
    "program",
    "rounds",
    "run",
    "serving",
    "until",
]

T = TypeVar("T")
LoopFactory = Callable[[], asyncio.AbstractEventLoop]

LIMIT = 30.0
POLL = 0.002
HOST = "127.0.0.1"
ALPN = ["test"]
CERT, KEY = quic.self_signed(["localhost", HOST])
PIN = quic.fingerprint(CERT)
SERVER_TLS = quic.ServerTls(CERT, KEY, alpn=ALPN)
CLIENT_TLS = quic.ClientTls(pins=[PIN], alpn=ALPN)
PACKAGE = pathlib.Path(__file__).resolve().parent.parent
INSTALLED = pathlib.Path(quic.__file__).parents[2]
"""Where the package is that these tests run with: the checkout's, or an installed one."""


def run(
    main: Coroutine[Any, Any, T],
    *,
    limit: float = LIMIT,
    loop_factory: LoopFactory | None = None,
    debug: bool = True,
) -> T:
    """What `main` gives, on a fresh loop; TimeoutError after `limit` seconds."""

    async def bounded() -> T:
        async with asyncio.timeout(limit):
            return await main

    with asyncio.Runner(debug=debug, loop_factory=loop_factory) as runner:
        return runner.run(bounded())


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Makes a coroutine function a test. The coroutine stays reachable as `__wrapped__`."""

    @functools.wraps(test)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        run(test(*args, **kwargs))

    return wrapper


@asynccontextmanager
async def serving(
    *, tls: quic.ServerTls = SERVER_TLS, config: quic.Config | None = None, retry: quic.Retry = "auto"
) -> AsyncIterator[quic.Server]:
    """A server on loopback that does not wait for anybody when it ends."""
    async with quic.serve(HOST, 0, tls=tls, config=config, retry=retry) as server:
        yield server
        await server.close(drain=0)


@asynccontextmanager
async def pair(
    *,
    config: quic.Config | None = None,
    server_config: quic.Config | None = None,
    tls: quic.ClientTls = CLIENT_TLS,
    server_tls: quic.ServerTls = SERVER_TLS,
    retry: quic.Retry = "auto",
    through: Callable[[tuple[str, int]], tuple[str, int]] = lambda address: address,
) -> AsyncIterator[tuple[quic.Connection, quic.Connection]]:
    """Two ends of one connection, the client's first. `through` gives the address of something in between."""
    async with serving(tls=server_tls, config=server_config or config, retry=retry) as server:
        client = await quic.connect(*through(server.local_addr), tls=tls, config=config)
        accepted = await anext(server)
        try:
            yield client, accepted
        finally:
            await client.close(drain=0)
            await accepted.close(drain=0)


async def echo(connection: quic.Connection) -> None:
    """Sends back what comes on every stream that the peer opens both ways, until the connection ends."""
    async with asyncio.TaskGroup() as group:
        async for stream in connection.accept_bi():
            group.create_task(_echo_stream(stream))


async def _echo_stream(stream: quic.BiStream) -> None:
    # A peer that closes the connection with streams open does so on purpose; it is not this side's test.
    with contextlib.suppress(quic.ConnectionClosed):
        async for chunk in stream.receive:
            await stream.send.write(chunk)
        await stream.send.finish()


@contextmanager
def failing(address: tuple[str, int]) -> Iterator[None]:
    """Has the system fail the UDP socket that this process has bound to `address`."""
    number = _descriptor(address)
    kept, null = os.dup(number), os.open(os.devnull, os.O_RDONLY)
    # The system still tells of what comes to the socket, and to read it from there is an error.
    os.dup2(null, number)
    os.close(null)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"hello", address)
    try:
        yield
    finally:
        os.close(kept)


def _descriptor(address: tuple[str, int]) -> int:
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            with socket.socket(fileno=os.dup(number)) as copy:
                if copy.type == socket.SOCK_DGRAM and copy.getsockname() == address:
                    return number
    raise AssertionError(f"no socket here is bound to {address}")


async def until(condition: Callable[[], object], limit: float = LIMIT) -> None:
    """Returns when `condition` holds."""
    async with asyncio.timeout(limit):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(POLL)


async def rounds(count: int) -> None:
    """Lets everything else on the loop have `count` turns."""
    for _ in range(count):
        await asyncio.sleep(0)


async def ended(waiting: Awaitable[object]) -> BaseException | None:
    """How something ended that must end now: the error that it raised, or None."""
    try:
        async with asyncio.timeout(LIMIT):
            await waiting
    except Exception as error:
        return error
    return None


def program(text: str, *arguments: str, limit: float = LIMIT) -> subprocess.Popen[str]:
    """A Python program of its own, in development mode and with warnings as errors; see `finish`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(INSTALLED), str(PACKAGE / "tests")])}
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(text), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(running: subprocess.Popen[str], limit: float = LIMIT) -> tuple[int, str, str]:
    """Exit code, output and messages of a `program`, less what a debugged loop says of slow steps."""
    try:
        output, messages = running.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        running.kill()
        output, messages = running.communicate()
        raise AssertionError(f"still running after {limit} s; it said:\n{output}\n{messages}") from None
    kept = [line for line in messages.splitlines() if not line.startswith("Executing <")]
    return running.returncode, output, "\n".join(kept)
