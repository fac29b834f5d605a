"""HTTP/3 with a browser: a page that comes from an ASGI application, and what it fetches. Driven as
`test_browser.py` drives it, and skipped as that.
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
from typing import Any

import pytest
from http3_support import SERVER_TLS, answer, body_of
from support import CERT, HOST, run
from test_browser import CHROMIUM, LIMIT, browser

from wayferry import http3

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """A page, and an echo under `/echo`."""
    if scope["type"] != "http":
        raise NotImplementedError
    if scope["path"] == "/echo":
        await answer(send, 200, await body_of(receive))
    else:
        await answer(send, 200, b"<!doctype html><p>hello", [(b"content-type", b"text/html")])


def key_hash() -> str:
    """What Chromium calls the certificate's key, to trust it without an authority."""
    x509 = pytest.importorskip("cryptography.x509", reason="cryptography is not installed")
    serialization = pytest.importorskip(
        "cryptography.hazmat.primitives.serialization", reason="cryptography is not installed"
    )
    key = x509.load_pem_x509_certificate(CERT).public_key()
    public = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(public).digest()).decode()


def test_a_page_comes_over_http3_and_fetches(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        async with http3.serve_asgi(app, HOST, 0, tls=SERVER_TLS) as server:
            port = server.local_addr[1]
            flags = (
                f"--origin-to-force-quic-on={HOST}:{port}",
                f"--ignore-certificate-errors-spki-list={key_hash()}",
            )
            async with browser(tmp_path, *flags) as chromium:
                tab = await chromium.open(f"https://{HOST}:{port}/")
                await tab.wait("document.body?.innerText == 'hello'")
                assert await tab.evaluate(PROTOCOL) == "h3"
                assert await tab.evaluate(ECHO) == [0, 1, 1000, 1_000_000]
            await server.close(drain=0)

    run(main(), limit=LIMIT)


PROTOCOL = "performance.getEntriesByType('navigation')[0].nextHopProtocol"
ECHO = """
Promise.all([0, 1, 1000, 1_000_000].map(async (size) => {
  const sent = new Uint8Array(size).fill(7);
  const back = await (await fetch("/echo", { method: "POST", body: sent })).arrayBuffer();
  return new Uint8Array(back).every((byte) => byte == 7) ? back.byteLength : -1;
}))
"""
