"""Programs for aioquic, on aioquic and on ours: all four pairings of client and server must do the same.

The programs are files beside this one, written for aioquic; for ours nothing but the name of the package in
their imports is changed.
"""

from __future__ import annotations

import itertools
import pathlib
import types
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support import CERT, KEY, asynchronous, finish, program, until

OURS = "wayferry.compat.aioquic"
PROGRAMS = pathlib.Path(__file__).with_name("test_compat_programs")
PAIRS = list(itertools.product([OURS, "aioquic"], repeat=2))

pairings = pytest.mark.parametrize(("client", "server"), PAIRS)


@pytest.fixture
def pem(tmp_path: pathlib.Path) -> tuple[str, str]:
    """Files with a certificate for localhost, which is its own authority, and its key."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(CERT)
    key.write_bytes(KEY)
    return str(cert), str(key)


def load(name: str, package: str) -> Any:
    """The program `name` with its imports taken from `package`."""
    if package == "aioquic":
        pytest.importorskip("aioquic", reason="aioquic is not installed")
    path = PROGRAMS / f"{name}.py"
    module = types.ModuleType(f"{name}_{package}")
    source = path.read_text().replace("from aioquic.", f"from {package}.")
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


@asynccontextmanager
async def started(program: Any, pem: tuple[str, str]) -> AsyncIterator[int]:
    """The program's server; gives its port."""
    server = await program.start(*pem)
    try:
        yield server._transport.get_extra_info("sockname")[1]
    finally:
        server.close()
        if hasattr(server, "wait_closed"):
            await server.wait_closed()


@pairings
@asynchronous
async def test_echo(client: str, server: str, pem: tuple[str, str]) -> None:
    serving, asking = load("echo", server), load("echo", client)
    async with started(serving, pem) as port:
        result = await asking.run(port, pem[0])
        told = serving.Server.told
        await until(lambda: told and told[-1][0] == 0x123)
    assert result["ids"] == list(range(0, 804, 4))
    assert result["echoed"]
    assert result["events"] == ["ProtocolNegotiated", "HandshakeCompleted", "StopSendingReceived"]
    assert result["abandoned"] == 804
    assert result["stopped"] == [(result["unwanted"], 55)]
    assert result["alpn"] == "echo"
    # A reset may overtake what was written before it, but not the end of the connection.
    assert ("reset", result["abandoned"], 77) in told
    assert told[-1] == (0x123, None, "that is all")


@pairings
@asynchronous
async def test_datagrams_and_pings(client: str, server: str, pem: tuple[str, str]) -> None:
    async with started(load("datagrams", server), pem) as port:
        result = await load("datagrams", client).run(port, pem[0])
    assert result["answers"] == [(b"datagram %d" % number)[::-1] for number in range(20)]


@pairings
@asynchronous
async def test_files_by_readers_and_writers(client: str, server: str, pem: tuple[str, str]) -> None:
    async with started(load("files", server), pem) as port:
        result = await load("files", client).run(port, pem[0])
    assert result["one"] == result["expected"]
    assert result["both"] == [result["expected"][2], result["expected"][1]]


@pairings
@asynchronous
async def test_silence_ends_a_connection(client: str, server: str, pem: tuple[str, str]) -> None:
    serving = load("idle", server)
    async with started(serving, pem) as port:
        end = await load("idle", client).run(port, pem[0])
        assert end == (1, 0, "Idle timeout")
        assert await serving.Quiet.ends.get() == end


@pairings
@asynchronous
async def test_http3(client: str, server: str, pem: tuple[str, str]) -> None:
    async with started(load("http3", server), pem) as port:
        answers = await load("http3", client).run(port, pem[0])
    for number, body in enumerate([b"", b"A BODY", b"LARGE" * 100_000]):
        assert answers[number] == ([(b":status", b"200"), (b"path", b"/%d" % number)], body)


def test_all_of_a_program_is_ours() -> None:
    for path in PROGRAMS.glob("*.py"):
        module = load(path.stem, OURS)
        for name, value in vars(module).items():
            origin = getattr(value, "__module__", "")
            # HTTP/3 is aioquic's own, on our connections.
            ours = not origin.startswith("aioquic") or origin == "aioquic.h3.events"
            assert ours, f"{path.name}: {name}"


@pytest.mark.parametrize("module", ["h3.connection", "h3.events", "h3.exceptions", "h0.connection"])
def test_http3_without_aioquic_says_what_to_install(module: str) -> None:
    text = f"""
        import sys
        sys.modules["aioquic"] = None
        import wayferry.compat.aioquic.{module}
    """
    code, _, messages = finish(program(text))
    assert code == 1
    assert f"wayferry.compat.aioquic.{module} is aioquic's own code" in messages
    assert messages.endswith("`pip install wayferry[h3]` does that")
