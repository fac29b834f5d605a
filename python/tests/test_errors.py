"""Every way in which a connection fails, and the error that names it."""

from __future__ import annotations

import socket
import struct

import certificates
import pytest
from support import (
    ALPN,
    CERT,
    CLIENT_TLS,
    HOST,
    KEY,
    LIMIT,
    PIN,
    SERVER_TLS,
    asynchronous,
    ended,
    pair,
    serving,
    until,
)

from wayferry import quic

# RFC 8446 §6.
BAD_CERTIFICATE, CERTIFICATE_EXPIRED, UNKNOWN_CA, ACCESS_DENIED = 42, 45, 48, 49
CERTIFICATE_REQUIRED, NO_APPLICATION_PROTOCOL = 116, 120
# RFC 9000 §20.1.
CRYPTO_ERROR = 0x100


async def refused(server: quic.Server, tls: quic.ClientTls, host: str = HOST) -> quic.TlsError:
    """The TLS error that the handshake ends with."""
    with pytest.raises(quic.TlsError) as caught:
        await quic.connect(host, server.local_addr[1], tls=tls, timeout=LIMIT)
    return caught.value


@asynchronous
async def test_a_wrong_pin_is_a_tls_error() -> None:
    async with serving() as server:
        error = await refused(server, quic.ClientTls(pins=["ab" * 32], alpn=ALPN))
        assert error.alert == ACCESS_DENIED
        assert "pinned" in str(error)


@asynchronous
async def test_an_unknown_authority_is_a_tls_error() -> None:
    theirs, ours = certificates.Authority("theirs"), certificates.Authority("ours")
    async with serving(tls=quic.ServerTls(*theirs.issue(HOST), alpn=ALPN)) as server:
        error = await refused(server, quic.ClientTls(roots=ours.pem, alpn=ALPN))
        assert error.alert in {UNKNOWN_CA, BAD_CERTIFICATE}


@asynchronous
async def test_a_known_authority_is_enough() -> None:
    authority = certificates.Authority("ours")
    async with (
        serving(tls=quic.ServerTls(*authority.issue(HOST), alpn=ALPN)) as server,
        quic.connect(*server.local_addr, tls=quic.ClientTls(roots=authority.pem, alpn=ALPN)) as client,
    ):
        assert len(client.peer_certificates) >= 1


@asynchronous
async def test_an_expired_certificate_is_told_by_its_alert() -> None:
    authority = certificates.Authority("ours")
    tls = quic.ServerTls(*authority.issue(HOST, expired=True), alpn=ALPN)
    async with serving(tls=tls) as server:
        error = await refused(server, quic.ClientTls(roots=authority.pem, alpn=ALPN))
        assert error.alert == CERTIFICATE_EXPIRED


@asynchronous
async def test_a_certificate_for_another_name_is_a_tls_error() -> None:
    authority = certificates.Authority("ours")
    async with serving(tls=quic.ServerTls(*authority.issue("elsewhere.example"), alpn=ALPN)) as server:
        error = await refused(server, quic.ClientTls(roots=authority.pem, alpn=ALPN))
        assert error.alert is not None


@asynchronous
async def test_no_common_protocol_is_told_by_its_alert() -> None:
    async with serving() as server:
        error = await refused(server, quic.ClientTls(pins=[PIN], alpn=["another"]))
        assert error.alert == NO_APPLICATION_PROTOCOL


@asynchronous
async def test_a_server_goes_on_after_a_failed_handshake() -> None:
    async with serving() as server:
        await refused(server, quic.ClientTls(pins=["00" * 32], alpn=ALPN))
        async with quic.connect(*server.local_addr, tls=CLIENT_TLS) as client:
            accepted = await anext(server)
            assert accepted.remote_addr[1] == client.local_addr[1]
            await accepted.close(drain=0)


@asynchronous
async def test_a_missing_client_certificate_is_told_by_its_alert() -> None:
    chain, _ = quic.self_signed(["client"])
    tls = quic.ServerTls(CERT, KEY, client_pins=[quic.fingerprint(chain)], alpn=ALPN)
    async with serving(tls=tls) as server:
        # To the client a handshake of TLS 1.3 is over before the server has judged it.
        try:
            client = await quic.connect(*server.local_addr, tls=CLIENT_TLS)
        except quic.TlsError as early:
            error: BaseException | None = early
        else:
            error = await ended(client.receive_datagram())
            closed = await client.closed()
            assert (closed.code, closed.by) == (CRYPTO_ERROR + CERTIFICATE_REQUIRED, "transport")
        assert isinstance(error, quic.TlsError)
        assert error.alert == CERTIFICATE_REQUIRED


@asynchronous
async def test_a_closed_port_times_out() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((HOST, 0))
        port = taken.getsockname()[1]
    config = quic.Config(handshake_timeout=0.3)
    with pytest.raises(quic.ConnectionClosed) as caught:
        await quic.connect(HOST, port, tls=CLIENT_TLS, config=config)
    assert caught.value.by in {"timeout", "refused"}


@asynchronous
async def test_a_silent_port_times_out() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind((HOST, 0))
        with pytest.raises(quic.ConnectionClosed) as caught:
            await quic.connect(
                *silent.getsockname(), tls=CLIENT_TLS, config=quic.Config(handshake_timeout=0.3)
            )
    assert caught.value.by == "timeout"


@asynchronous
async def test_connects_own_timeout_is_a_timeout_error() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind((HOST, 0))
        error = await ended(quic.connect(*silent.getsockname(), tls=CLIENT_TLS, timeout=0.1))
    assert isinstance(error, TimeoutError) or (
        isinstance(error, quic.ConnectionClosed) and error.by == "timeout"
    )


@asynchronous
async def test_an_idle_connection_ends_by_timeout() -> None:
    async with pair(config=quic.Config(idle_timeout=0.3, keep_alive=None)) as (client, server):
        for end in client, server:
            error = await end.closed()
            assert isinstance(error, quic.ConnectionClosed)
            assert (error.by, error.code) == ("timeout", 0)
        with pytest.raises(quic.ConnectionClosed) as caught:
            await client.open_uni()
        assert caught.value.by == "timeout"


@asynchronous
async def test_a_close_carries_its_code_and_reason() -> None:
    for code in 0, 1, 2**32, 2**62 - 1:
        async with pair() as (client, server):
            await client.close(code=code, reason="far\x1b[2J too\nlate", drain=0)
            far = await server.closed()
            near = await client.closed()
            assert isinstance(far, quic.ConnectionClosed)
            assert isinstance(near, quic.ConnectionClosed)
            assert (far.code, far.by) == (code, "peer")
            assert (near.code, near.by) == (code, "local")
            assert far.reason.startswith("far")
            assert far.reason.isprintable()


@asynchronous
async def test_codes_out_of_range_are_wrong_arguments() -> None:
    async with pair() as (client, _):
        stream = await client.open_bi()
        for code in -1, 2**62:
            with pytest.raises((ValueError, OverflowError)):
                stream.send.reset(code)
            with pytest.raises((ValueError, OverflowError)):
                stream.receive.stop(code)
            with pytest.raises((ValueError, OverflowError)):
                await client.close(code=code)
        assert not await still_closed(client)


async def still_closed(connection: quic.Connection) -> bool:
    """Whether the connection fails to open a stream."""
    try:
        await connection.open_uni()
    except quic.ConnectionClosed:
        return True
    return False


@asynchronous
async def test_a_port_in_use_is_an_os_error() -> None:
    async with serving() as server:
        with pytest.raises(OSError, match=r"."):
            await quic.serve(*server.local_addr, tls=SERVER_TLS)


@asynchronous
async def test_unknown_versions_are_answered_with_ours() -> None:
    # RFC 9000 §6.1; the packet is padded to what a server must answer, 1200 bytes (§14.1).
    initial = struct.pack("!BIB8sB8s", 0xC0, 0x1A2A3A4A, 8, b"to-there", 8, b"fromhere").ljust(1200, b"\0")
    async with serving() as server:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as raw:
            raw.setblocking(False)
            raw.sendto(initial, server.local_addr)
            answer = bytearray()
            await until(lambda: _receive(raw, answer))
    assert answer[0] & 0x80
    assert answer[1:5] == bytes(4)
    versions = answer[5 + 1 + 8 + 1 + 8 :]
    assert answer[5:23] == b"\x08fromhere\x08to-there"
    assert struct.pack("!I", 1) in [versions[at : at + 4] for at in range(0, len(versions), 4)]


def _receive(raw: socket.socket, into: bytearray) -> bool:
    try:
        into += raw.recv(2048)
    except BlockingIOError:
        return False
    return True


def test_errors_have_one_base() -> None:
    kinds = [
        quic.ConnectionClosed,
        quic.StreamReset,
        quic.StreamStopped,
        quic.TlsError,
        quic.TooLarge,
        quic.EarlyDataRejected,
        quic.DatagramsUnsupported,
        quic.WebTransportRejected,
    ]
    assert all(issubclass(kind, quic.QuicError) for kind in kinds)
