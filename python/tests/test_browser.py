"""WebTransport with a browser: Debian's Chromium, without a screen, driven over its debugging pipe.

Skipped where there is no Chromium. The page that the first test opens is the one of docs/python.md.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import fcntl
import http.server
import itertools
import json
import os
import pathlib
import shutil
import signal
import sys
import threading
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from support import PACKAGE, run, until

from wayferry import quic

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHAT = PACKAGE.parent / "docs" / "python" / "chat.py"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
]
LIMIT = 50.0

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


class Browser:
    """Chromium, by the DevTools protocol: commands and answers are JSON, each ended by a zero byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.WriteTransport) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.reading = asyncio.create_task(self._read())

    async def call(self, method: str, session: str | None = None, **params: Any) -> Any:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        self._answers[number] = asyncio.get_running_loop().create_future()
        self._writer.write(json.dumps(message).encode() + b"\0")
        return await self._answers[number]

    async def open(self, url: str) -> Tab:
        target = await self.call("Target.createTarget", url=url)
        attached = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        return Tab(self, attached["sessionId"])

    async def _read(self) -> None:
        try:
            while True:
                answer = json.loads((await self._reader.readuntil(b"\0"))[:-1])
                future = self._answers.pop(answer.get("id"), None)
                if future is not None and "error" in answer:
                    future.set_exception(AssertionError(answer["error"]))
                elif future is not None:
                    future.set_result(answer["result"])
        finally:
            for future in self._answers.values():
                future.set_exception(ConnectionError("Chromium is gone"))


class Tab:
    """One page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, of what it promises if it is a promise."""
        answer = await self._browser.call(
            "Runtime.evaluate", self._session, expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, json.dumps(answer["exceptionDetails"])
        return answer["result"].get("value")

    async def wait(self, expression: str) -> None:
        """Returns when the expression is true."""
        while not await self.evaluate(expression):  # noqa: ASYNC110 - pages have no event for it
            await asyncio.sleep(0.02)

    async def picture(self) -> bytes:
        """How it looks, as PNG."""
        answer = await self._browser.call("Page.captureScreenshot", self._session)
        return base64.b64decode(answer["data"])


@asynccontextmanager
async def browser(profile: pathlib.Path, *flags: str) -> AsyncIterator[Browser]:
    assert CHROMIUM is not None
    command_in, command_out = _pipe()
    answer_in, answer_out = _pipe()
    # Chromium reads commands from descriptor 3 and answers on 4.
    script = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4)"
    script += "; os.execv(sys.argv[3], sys.argv[3:])"
    pipes = [str(command_in), str(answer_out)]
    process = await asyncio.create_subprocess_exec(
        *[
            sys.executable,
            "-c",
            script,
            *pipes,
            CHROMIUM,
            *FLAGS,
            *flags,
            f"--user-data-dir={profile}",
            "about:blank",
        ],
        pass_fds=(command_in, answer_out),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    os.close(command_in)
    os.close(answer_out)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 26)
    reading, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(answer_in, "rb", 0)
    )
    writing, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(command_out, "wb", 0))
    running = Browser(reader, writing)
    try:
        yield running
        with contextlib.suppress(ConnectionError):
            await running.call("Browser.close")
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        running.reading.cancel()
        await asyncio.gather(running.reading, return_exceptions=True)
        reading.close()
        writing.close()


def _pipe() -> tuple[int, int]:
    """A pipe whose descriptors are out of the way."""
    low = os.pipe()
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in low]
    for fd in low:
        os.close(fd)
    return high[0], high[1]


@asynccontextmanager
async def chat() -> AsyncIterator[str]:
    """The server of the documentation; gives the address of its page. It must end as it does for its user."""
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-X", "dev", "-W", "error", str(CHAT)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
        process.send_signal(signal.SIGINT)
        _, messages = await process.communicate()
        said = [line for line in messages.decode().splitlines() if not line.startswith("Executing <")]
        assert (process.returncode, said) == (0, [])
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def invitation(page: str) -> dict[str, str]:
    """What the chat tells its page: where its sessions are, and by which certificate."""
    found: dict[str, str] = await asyncio.to_thread(
        lambda: json.load(urllib.request.urlopen(f"{page}session"))
    )
    return found


async def join(page: str) -> quic.Connection:
    """The chat's session from Python, as the page opens it."""
    session = await invitation(page)
    return await quic.webtransport.connect(session["url"], tls=quic.ClientTls(pins=[session["hash"]]))


def test_people_chat(tmp_path: pathlib.Path) -> None:
    async def main() -> bytes:
        async with chat() as page, browser(tmp_path) as chromium:
            ann, bob = await chromium.open(page), await chromium.open(page)
            for tab in (ann, bob):
                await tab.wait("document.getElementById('state')?.textContent == 'connected'")
            await ann.evaluate("text.value = 'Grüße, <b>Bob</b>'; form.requestSubmit()")
            await bob.wait("lines.textContent.includes('Grüße, <b>Bob</b>')")

            async with await join(page) as session:
                stream = await session.open_bi()
                await stream.write("Ich bin’s nur, Python\n".encode())
                await ann.wait("lines.textContent.includes('Ich bin’s nur, Python')")
                await bob.evaluate("text.value = 'hello Python'; form.requestSubmit()")
                heard = b""
                while b"hello Python\n" not in heard:
                    heard += await stream.read()
            with blank_page() as elsewhere:
                stranger = await chromium.open(elsewhere)
                await stranger.wait("location.protocol == 'http:'")
                told = await invitation(page)
                assert await stranger.evaluate(KNOCK % (told["url"], told["hash"])) == "rejected"
            return await ann.picture()

    picture = run(main(), limit=LIMIT)
    if path := os.environ.get("WAYFERRY_TEST_PICTURE"):
        pathlib.Path(path).write_bytes(picture)


KNOCK = """
((url, hash) => {
  const value = Uint8Array.from(hash.match(/../g), (digits) => parseInt(digits, 16));
  const session = new WebTransport(url, { serverCertificateHashes: [{ algorithm: "sha-256", value }] });
  session.closed.catch(() => {});
  return session.ready.then(() => "accepted", () => "rejected");
})("%s", "%s");
"""
EVERYTHING = """
const found = {};
(async (base, hash) => {
  const value = Uint8Array.from(hash.match(/../g), (digits) => parseInt(digits, 16));
  const options = { serverCertificateHashes: [{ algorithm: "sha-256", value }] };
  const all = async (readable) => new Uint8Array(await new Response(readable).arrayBuffer());

  const rejected = new WebTransport(base + "/nowhere", options);
  rejected.closed.catch(() => {});
  found.rejected = await rejected.ready.then(() => "accepted", () => "rejected");

  const session = new WebTransport(base + "/everything", options);
  await session.ready;

  const sent = new Uint8Array(1 << 20).map((_, index) => index * 7);
  const echo = await session.createBidirectionalStream();
  const writer = echo.writable.getWriter();
  const answer = all(echo.readable);
  await writer.write(sent);
  await writer.close();
  const came = await answer;
  found.echo = came.length == sent.length && came.every((byte, index) => byte == sent[index]);

  const datagrams = session.datagrams.readable.getReader();
  const out = session.datagrams.writable.getWriter();
  const repeat = (text) => setInterval(() => out.write(new TextEncoder().encode(text)), 50);
  const pinging = repeat("ping");
  found.datagram = new TextDecoder().decode((await datagrams.read()).value);
  clearInterval(pinging);

  const uni = session.incomingUnidirectionalStreams.getReader();
  found.uni = new TextDecoder().decode(await all((await uni.read()).value));
  const doomed = (await uni.read()).value.getReader();
  await doomed.read();
  const telling = repeat("seen");
  found.reset = await doomed.read().then(() => "end", (error) => error.streamErrorCode);
  clearInterval(telling);

  const bi = session.incomingBidirectionalStreams.getReader();
  const { readable, writable } = (await bi.read()).value;
  const reader = readable.getReader();
  found.asked = new TextDecoder().decode((await reader.read()).value);
  await reader.cancel(new WebTransportError({ streamErrorCode: 33 }));
  await writable.abort(new WebTransportError({ streamErrorCode: 44 }));

  found.closed = await session.closed;
  return found;
})("%s", "%s").catch((error) => { throw new Error(`${error} after ${JSON.stringify(found)}`); });
"""


class Everything:
    """The server's side of the page above."""

    def __init__(self) -> None:
        self.codes: dict[str, int | None] = {}
        self.origin: str | None = None

    async def handle(self, request: quic.webtransport.Request) -> None:
        self.origin = request.origin
        async with await request.accept() as session:
            echo = await session.accept_bi()
            async for chunk in echo:
                await echo.write(chunk)
            await echo.finish()
            await session.send_datagram(b"pong to " + await session.receive_datagram())
            uni = await session.open_uni()
            await uni.write(b"from the server")
            await uni.finish()
            await uni.acked()
            given_up = await session.open_uni()
            await given_up.write(b"x")
            # A reset may overtake what says which session the stream belongs to; then it is not seen.
            while await session.receive_datagram() != b"seen":
                pass
            given_up.reset(22)
            stream = await session.open_bi()
            await stream.write(b"what now?")
            self.codes["stopped"] = await stream.send.stopped()
            try:
                await stream.receive.read()
            except quic.StreamReset as reset:
                self.codes["reset"] = reset.code
            await session.close(1234, "that is all")


@contextmanager
def blank_page() -> Iterator[str]:
    """An empty page from a trustworthy origin, where WebTransport is permitted."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        log_message: Callable[..., None] = lambda *_: None

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def test_streams_datagrams_and_codes(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        everything = Everything()
        cert, key = quic.self_signed(["127.0.0.1"], days=10)
        tls = quic.ServerTls(cert, key, alpn=["h3"])
        async with quic.serve("127.0.0.1", 0, tls=tls) as server, browser(tmp_path) as chromium:
            server.route("/everything", everything.handle)
            with blank_page() as page:
                tab = await chromium.open(page)
                await tab.wait("location.protocol == 'http:'")
                base = f"https://127.0.0.1:{server.local_addr[1]}"
                found = await tab.evaluate(EVERYTHING % (base, quic.fingerprint(cert)))
            assert found == {
                "rejected": "rejected",
                "echo": True,
                "datagram": "pong to ping",
                "uni": "from the server",
                "reset": 22,
                "asked": "what now?",
                "closed": {"closeCode": 1234, "reason": "that is all"},
            }
            await until(lambda: len(everything.codes) == 2)
            assert everything.codes == {"stopped": 33, "reset": 44}
            assert f"{everything.origin}/" == page

    run(main(), limit=LIMIT)
