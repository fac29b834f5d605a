"""aioquic's own tests and example programs, from its source, with the imports taken from this package.

Nothing of them is kept here: `scripts/setup --python` fetches the source of the release that is installed.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import pathlib
import re
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support import CERT, KEY, LIMIT, PACKAGE

import wayferry

OURS = "wayferry.compat.aioquic"
INSTALLED = pathlib.Path(wayferry.__file__).parent.parent
SOURCES = PACKAGE.parent / "target" / "python-sources"
# Of 31, with the reason.
IMPOSSIBLE = {
    "test_connect_and_serve_with_ed448_certificate": "rustls signs with no such key",
    "test_connect_and_serve_with_retry_bad_original_destination_connection_id": "spoils a field inside",
    "test_connect_and_serve_with_retry_bad_retry_source_connection_id": "spoils a field inside",
    "test_connect_and_serve_with_retry_bad_token": "patches what checks tokens",
    "test_server_does_not_reply_to_version_negotiation_packet": "hands the server a packet",
    "test_server_receives_garbage": "hands the server a packet",
}
# Checks of aioquic's program for interoperability, and a pattern of the letters that it prints when one
# succeeds. The others look into a qlog in memory, or ask for what is not here.
INTEROP = {
    "test_handshake_and_close": "-H-C---- -------- ---",
    "test_http_0": "--D----- -------- ---",
    "test_http_3": "--D----- -------- 3[d-]-",
    "test_key_update": "-------- ---U---- ---",
    "test_server_cid_change": "-------- M------- ---",
}
# aioquic's server asks a name server elsewhere; this answers in its place.
ANSWERS = """
import runpy
import sys

from dnslib import RR, DNSRecord


def answer(query, *_):
    reply = query.reply()
    reply.add_answer(*RR.fromZone("example. 60 A 192.0.2.7"))
    return reply.pack()


DNSRecord.send = answer
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """aioquic's tests and examples, as they are but for the imports."""
    pytest.importorskip("aioquic", reason="aioquic is not installed")
    name = f"aioquic-{importlib.metadata.version('aioquic')}"
    folder = tmp_path_factory.mktemp("aioquic")
    with tarfile.open(SOURCES / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    source = folder / name
    for program in [source / "tests" / "test_asyncio.py", *(source / "examples").glob("*.py")]:
        text = re.sub(r"(?m)^from aioquic\.", f"from {OURS}.", program.read_text())
        program.write_text(re.sub(r"(?m)^import aioquic$", f"import {OURS} as aioquic", text))
    (source / "cert.pem").write_bytes(CERT)
    (source / "key.pem").write_bytes(KEY)
    return source


def environment() -> dict[str, str]:
    """With the package that these tests run with: the checkout's, or an installed one."""
    return {**os.environ, "PYTHONPATH": str(INSTALLED), "PYTHONUNBUFFERED": "1"}


def run(source: pathlib.Path, *arguments: str) -> str:
    """What a Python program says in the folder of the examples, which ends well."""
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=source / "examples",
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def test_its_tests_pass_but_for_those_of_its_insides(source: pathlib.Path) -> None:
    skipped = [f"--deselect=tests/test_asyncio.py::HighLevelTest::{name}" for name in IMPOSSIBLE]
    pytest_arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={source}"]
    output = run(source, *pytest_arguments, str(source / "tests" / "test_asyncio.py"), *skipped)
    assert f"25 passed, {len(IMPOSSIBLE)} deselected" in output


@contextmanager
def serving(source: pathlib.Path, *arguments: str) -> Iterator[int]:
    """One of the servers on loopback; its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    common = ["--certificate", "../cert.pem", "--private-key", "../key.pem", "--host", "127.0.0.1"]
    server = subprocess.Popen(
        [sys.executable, *arguments, *common, "--port", str(port)],
        cwd=source / "examples",
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        asyncio.run(listens(port))
        yield port
    finally:
        server.kill()
        server.wait()


async def listens(port: int) -> None:
    """Waits until a server answers at a port, be it that it refuses."""
    from wayferry import quic

    async with asyncio.timeout(LIMIT):
        while True:
            try:
                config = quic.Config(handshake_timeout=1.0)
                async with quic.connect("127.0.0.1", port, tls=quic.ClientTls.insecure(), config=config):
                    return
            except quic.TlsError:
                return
            except quic.ConnectionClosed as closed:
                if closed.by not in {"refused", "timeout"}:
                    return


def test_its_http3_programs_run(source: pathlib.Path, tmp_path: pathlib.Path) -> None:
    client = ["http3_client.py", "--ca-certs", "../cert.pem"]
    with serving(source, "http3_server.py") as port:
        for more in [], ["--legacy-http"]:
            run(source, *client, *more, "--output-dir", str(tmp_path), f"https://localhost:{port}/5000")
            (fetched,) = tmp_path.iterdir()
            assert fetched.read_bytes().endswith(b"Z" * 5000)
            fetched.unlink()
        assert "< Hello 1, WebSocket!" in run(source, *client, f"wss://localhost:{port}/ws")
        httpx = ["httpx_client.py", "--ca-certs", "../cert.pem", "--data", "a=1"]
        assert "200 OK" in run(source, *httpx, f"https://localhost:{port}/echo")


def test_its_dns_programs_run(source: pathlib.Path) -> None:
    (source / "examples" / "answers.py").write_text(ANSWERS)
    with serving(source, "answers.py", "doq_server.py") as port:
        query = ["--ca-certs", "../cert.pem", "--host", "localhost", "--port", str(port)]
        assert "192.0.2.7" in run(source, "doq_client.py", *query, "--query-name", "example.", "-v")


def test_its_interop_program_finds_what_a_server_can(source: pathlib.Path) -> None:
    program = source / "examples" / "interop.py"
    original = program.read_text()
    with serving(source, "http3_server.py") as port:
        here = f'Server("here", "localhost", port={port}, path="/5000", verify_mode=ssl.CERT_NONE)'
        text, count = re.subn(r"(?ms)^SERVERS = \[.*?^\]", f"SERVERS = [{here}]", original)
        assert count == 1
        program.write_text(text)
        for check, found in INTEROP.items():
            output = run(source, program.name, "--test", check)
            assert re.search(rf"(?m)^here +{found}$", output), output
