"""Certificates of every kind that people have: what is taken, and a sentence for what is not."""

from __future__ import annotations

import asyncio
import pathlib
from typing import Any, cast

import certificates
import pytest
from support import ALPN, HOST, LIMIT, asynchronous, run, serving

from wayferry import quic

TAKEN = {
    "rsa-2048": ["-newkey", "rsa:2048"],
    "rsa-4096": ["-newkey", "rsa:4096"],
    "p-256": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
    "p-384": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp384r1"],
    "ed25519": ["-newkey", "ed25519"],
}
REFUSED = {
    "rsa-1024": ["-newkey", "rsa:1024"],
    "p-521": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp521r1"],
    "ed448": ["-newkey", "ed448"],
}
HANDSHAKE_FAILURE, DECRYPT_ERROR = 40, 51  # RFC 8446 §6


@pytest.mark.parametrize("kind", TAKEN)
def test_what_openssl_makes_is_taken(kind: str, tmp_path: pathlib.Path) -> None:
    """By its own file as the authority, though it says CA:TRUE, and by its fingerprint; on either side."""
    own = certificates.openssl(tmp_path, *TAKEN[kind])
    server_tls = quic.ServerTls(*own, client_pins=[quic.fingerprint(own[0])], alpn=ALPN)
    trusts: list[dict[str, Any]] = [{"roots": own[0]}, {"pins": [quic.fingerprint(own[0])]}]

    async def main() -> None:
        async with serving(tls=server_tls) as server:
            for trust in trusts:
                tls = quic.ClientTls(**trust, client_cert=own, alpn=ALPN)
                client = await quic.connect(HOST, server.local_addr[1], tls=tls, timeout=LIMIT)
                async with client, await anext(server) as accepted:
                    assert client.peer_certificates == accepted.peer_certificates

    run(main())


@pytest.mark.parametrize("kind", REFUSED)
def test_a_key_that_cannot_sign_is_refused_at_once(kind: str, tmp_path: pathlib.Path) -> None:
    own = certificates.openssl(tmp_path, *REFUSED[kind])
    kinds = "RSA with 2048 to 4096 bits, of ECDSA with P-256 or P-384, or of Ed25519"
    with pytest.raises(ValueError, match=kinds):
        quic.ServerTls(*own)
    with pytest.raises(ValueError, match=kinds):
        quic.ClientTls(roots="webpki", client_cert=own)


def test_a_key_of_another_certificate_is_refused_at_once() -> None:
    certificate, _ = quic.self_signed()
    _, key = quic.self_signed()
    with pytest.raises(ValueError, match="not the certificate's"):
        quic.ServerTls(certificate, key)


@pytest.mark.parametrize("kind", REFUSED)
def test_a_server_with_such_a_key_is_told_of(kind: str, tmp_path: pathlib.Path) -> None:
    """aioquic signs with them. The first is found too short here, the others the server says itself."""
    from aioquic.asyncio import serve  # type: ignore[attr-defined]  # exported, and not said so
    from aioquic.quic.configuration import QuicConfiguration

    own = certificates.openssl(tmp_path, *REFUSED[kind])

    async def main() -> quic.TlsError:
        configuration = QuicConfiguration(is_client=False, alpn_protocols=ALPN)
        configuration.load_cert_chain(own[0], own[1])
        server = await serve(HOST, 0, configuration=configuration)
        address = cast("asyncio.DatagramTransport", server._transport).get_extra_info("sockname")
        with pytest.raises(quic.TlsError) as caught:
            await quic.connect(*address, tls=quic.ClientTls(roots=own[0], alpn=ALPN), timeout=LIMIT)
        server.close()
        return caught.value

    error = run(main())
    short = kind == "rsa-1024"
    assert error.alert == (DECRYPT_ERROR if short else HANDSHAKE_FAILURE)
    assert ("fewer than 2048 bits" if short else "No supported signature algorithm") in error.text


@asynchronous
async def test_the_reason_is_told_in_words() -> None:
    authority, other = certificates.Authority("ours"), certificates.Authority("theirs")
    for words, issued in {
        "has expired": authority.issue(HOST, expired=True),
        "is not for `127.0.0.1`": authority.issue("elsewhere.example"),
        "comes from an authority that is not trusted": other.issue(HOST),
        "is self-signed": quic.self_signed([HOST]),
    }.items():
        async with serving(tls=quic.ServerTls(*issued, alpn=ALPN)) as server:
            tls = quic.ClientTls(roots=authority.pem, alpn=ALPN)
            with pytest.raises(quic.TlsError, match=f"the peer's certificate {words}"):
                await quic.connect(HOST, server.local_addr[1], tls=tls, timeout=LIMIT)
