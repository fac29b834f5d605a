"""What is checked before anything is sent: settings, certificates, names, arguments."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest
from conftest import run

from wayferry import quic
from wayferry.quic import _resolve


@pytest.mark.parametrize(
    "wrong",
    [
        {"idle_timeout": -1.0},
        {"idle_timeout": float("nan")},
        {"keep_alive": -1.0},
        {"handshake_timeout": 0.0},
        {"congestion": "hope"},
        {"bi_streams": -1},
        {"stream_window": (2 << 20) + 1},
        {"stream_window": 0},
        {"half_open": 0},
    ],
)
def test_settings_have_ranges(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+") as caught:
        quic.Config(**wrong)
    assert next(iter(wrong)) in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"idle_timeout": "long"},
        {"handshake_timeout": None},
        {"congestion": 3},
        {"datagrams": 1.5},
        {"uni_streams": "many"},
        {"stream_window": 1.0},
        {"half_open": None},
    ],
)
def test_settings_have_kinds(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=rf"^{next(iter(wrong))}: "):
        quic.Config(**wrong)


def test_what_is_out_of_range_is_named() -> None:
    calls: dict[str, Callable[[], object]] = {
        "bi_streams": lambda: quic.Config(bi_streams=-1),
        "limit": lambda: quic.TicketStore(-1),
        "days": lambda: quic.self_signed(days=2**40),
    }
    for name, wrong in calls.items():
        with pytest.raises(ValueError, match=rf"^{name}: -?\d+ is out of range"):
            wrong()


def test_settings_are_values() -> None:
    config = quic.Config(keep_alive=5, keylog=pathlib.Path("/nowhere/keys"))
    assert dataclasses.replace(config, keep_alive=None, keylog=None) == quic.Config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.keep_alive = 1  # type: ignore[misc]  # the mistake


def test_a_fingerprint_is_the_sha256_of_the_certificate(cert: tuple[bytes, bytes]) -> None:
    der = ssl.PEM_cert_to_DER_cert(cert[0].decode())
    expected = hashlib.sha256(der).hexdigest()
    assert quic.fingerprint(cert[0]) == expected
    assert quic.ServerTls(*cert).fingerprint == expected


def test_certificates_come_from_files_too(cert: tuple[bytes, bytes], tmp_path: pathlib.Path) -> None:
    paths = tmp_path / "cert.pem", tmp_path / "key.pem"
    for path, pem in zip(paths, cert, strict=True):
        path.write_bytes(pem)
    assert quic.ServerTls(*paths).fingerprint == quic.fingerprint(str(paths[0]))
    quic.ClientTls(roots=paths[0], client_cert=paths)
    with pytest.raises(OSError, match=r".+"):
        quic.fingerprint(tmp_path / "missing")
    with pytest.raises(OSError, match=r".+"):
        quic.ServerTls(paths[0], tmp_path / "missing")


@pytest.mark.parametrize(
    "wrong",
    [
        {"pins": ["00"]},
        {"pins": ["0" * 64], "roots": "webpki"},
        {"roots": b"no certificate"},
        {"roots": "webpki", "alpn": [""]},
        {"roots": "webpki", "alpn": ["x" * 256]},
        {"roots": "webpki", "client_cert": (b"", b"")},
    ],
)
def test_trust_that_is_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        quic.ClientTls(**wrong)


@pytest.mark.parametrize("name", ["pins", "alpn"])
def test_one_text_is_not_a_list_of_texts(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        quic.ClientTls(**{name: "0" * 64})  # type: ignore[arg-type]  # the mistake


def test_no_repr_shows_a_key(cert: tuple[bytes, bytes]) -> None:
    secret = cert[1].decode().splitlines()[1]
    for shown in (
        quic.ServerTls(*cert, alpn=["test"]),
        quic.ClientTls(roots="webpki", client_cert=cert),
        quic.ClientTls.insecure(client_cert=cert),
        quic.TicketStore(),
    ):
        assert secret not in repr(shown) + str(shown)


def test_a_ticket_store_is_true_and_bounded() -> None:
    store = quic.TicketStore(1)
    assert (len(store), bool(store)) == (0, True)
    with pytest.raises(ValueError, match=r".+"):
        quic.TicketStore(0)


def test_connect_checks_at_once(client_tls: quic.ClientTls) -> None:
    for port in -1, 0, 65536:
        with pytest.raises(ValueError, match=rf"^port: .*{port}\b"):
            quic.connect("localhost", port, tls=client_tls)
        with pytest.raises(ValueError, match=r"[Pp]ort"):
            quic.webtransport.connect(f"https://localhost:{port}/", tls=client_tls)
    with pytest.raises(TypeError, match=r"^port: "):
        quic.connect("localhost", "4433", tls=client_tls)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ValueError, match="tickets"):
        quic.connect("localhost", 1, tls=client_tls, early_data=True)


def test_addresses_need_no_resolver() -> None:
    assert run(_resolve.resolve("127.0.0.1", 7)) == [("127.0.0.1", 7)]
    assert run(_resolve.resolve("::1", 7)) == [("::1", 7)]
    assert not _resolve.is_literal("fe80::1%lo")
    assert not _resolve.is_literal("localhost")


def test_both_families_are_tried_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ["::1", "::2", "::3", "::1", "10.0.0.1", *(f"10.0.1.{n}" for n in range(9)), "fe80::1%lo"]

    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", (host, 9, 0, 0)) for host in found]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    addresses = [host for host, _ in run(_resolve.resolve("name", 9))]
    assert addresses == ["::1", "10.0.0.1", "::2", "10.0.1.0", "::3", "10.0.1.1", "10.0.1.2", "10.0.1.3"]


def test_a_name_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [])
    with pytest.raises(OSError, match="no address"):
        run(_resolve.resolve("name", 9))


def test_without_a_loop_of_asyncios_a_sentence_says_so(
    client_tls: quic.ClientTls, server_tls: quic.ServerTls
) -> None:
    """As under trio, whose tasks are driven without such a loop."""
    for waiting in (
        quic.connect("localhost", 1, tls=client_tls),
        quic.webtransport.connect("https://localhost/", tls=client_tls),
        quic.serve("127.0.0.1", 0, tls=server_tls),
    ):
        with pytest.raises(RuntimeError, match="runs on asyncio"):
            next(waiting.__await__())
