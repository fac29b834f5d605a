"""Whom to trust and who to be: TLS 1.3 (RFC 8446), which QUIC cannot be without.

Certificates and keys are PEM, as a path or as bytes; everything is read and checked when the object is made.
No repr shows a key.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeAlias
from weakref import WeakKeyDictionary

from wayferry.quic import _native

__all__ = ["ClientTls", "Pem", "ServerTls", "TicketStore", "fingerprint", "self_signed"]

Pem: TypeAlias = str | bytes | os.PathLike[str]
"""A path (str or path object), or the PEM text itself (bytes)."""


class TicketStore:
    """Session tickets of servers, in memory: what resumption and early data (0-RTT) need.

    Give the same store, with the same `ClientTls`, to `connect()` again. Tickets last as long as the store.

    Args:
        limit: the number of tickets that are kept, 1 or more; beyond it the oldest go.

    Raises:
        ValueError: `limit` is out of its range.
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, limit: int = 256) -> None:
        self._native = _native.TicketStore(limit)

    def __len__(self) -> int:
        """The number of tickets in it."""
        return len(self._native)

    def __bool__(self) -> bool:
        """True, also when it is empty."""
        return True


class ClientTls:
    """Which servers a client trusts, and who it is itself.

    Args:
        pins: fingerprints (`fingerprint()`) of the certificates to trust, for any names and dates in them.
        roots: the certificate authorities to trust: `"system"` (the operating system's), `"webpki"`
            (Mozilla's, built in), a path, or PEM text as bytes. `"system"` when there are no pins.
        client_cert: the certificate chain and the key to show to servers that ask.
        alpn: the application protocols to offer, best first (RFC 7301).
        server_name: the name to ask for and to expect in the certificate; that of the host when None.

    Raises:
        ValueError: pins and roots together, a pin that is none, PEM that is none, a protocol's name of 0 or
            more than 255 bytes.
        OSError: a file cannot be read.
    """

    __slots__ = ("__weakref__", "_alpn", "_http3", "_options", "_plain", "_with_tickets")

    def __init__(
        self,
        *,
        pins: Iterable[str] | None = None,
        roots: Pem | None = None,
        client_cert: tuple[Pem, Pem] | None = None,
        alpn: Sequence[str] = (),
        server_name: str | None = None,
    ) -> None:
        if pins is not None and roots is not None:
            raise ValueError("pins and roots exclude each other")
        pins = None if pins is None else _texts(pins, "pins")
        self._prepare(
            pins, "system" if pins is None and roots is None else roots, client_cert, alpn, server_name
        )

    @classmethod
    def insecure(
        cls,
        *,
        client_cert: tuple[Pem, Pem] | None = None,
        alpn: Sequence[str] = (),
        server_name: str | None = None,
    ) -> ClientTls:
        """TRUSTS ANYBODY. An attacker between both ends can read and change everything.

        For experiments on one machine. `pins` take one line more and are secure.
        """
        tls = cls.__new__(cls)
        tls._prepare(None, None, client_cert, alpn, server_name)
        return tls

    def __repr__(self) -> str:
        return f"<ClientTls alpn={self._alpn!r}>"

    @property
    def alpn(self) -> tuple[str, ...]:
        """The application protocols it offers, best first."""
        return self._alpn

    def _prepare(
        self,
        pins: list[str] | None,
        roots: Pem | None,
        client_cert: tuple[Pem, Pem] | None,
        alpn: Sequence[str],
        server_name: str | None,
    ) -> None:
        self._alpn = tuple(_texts(alpn, "alpn"))
        cert = None if client_cert is None else (_pem(client_cert[0]), _pem(client_cert[1]))
        self._options = (pins, None if roots is None else _pem(roots), cert, server_name)
        self._plain = self._build(None)
        self._http3: _native.ClientTls | None = None
        # rustls resumes only with the very configuration that the ticket came by.
        self._with_tickets: WeakKeyDictionary[TicketStore, _native.ClientTls] = WeakKeyDictionary()

    def _for_native(self, tickets: TicketStore | None) -> _native.ClientTls:
        """The same for the native half, which keeps what it gets in `tickets`."""
        if tickets is None:
            return self._plain
        native = self._with_tickets.get(tickets)
        if native is None:
            native = self._with_tickets[tickets] = self._build(tickets._native)
        return native

    def _for_http3(self) -> _native.ClientTls:
        """The same with the application protocol HTTP/3, no matter what it says."""
        if self._http3 is None:
            self._http3 = self._build(None, ("h3",))
        return self._http3

    def _build(
        self, tickets: _native.TicketStore | None, alpn: tuple[str, ...] | None = None
    ) -> _native.ClientTls:
        pins, roots, client_cert, server_name = self._options
        return _native.ClientTls(
            pins=pins,
            roots=roots,
            insecure=pins is None and roots is None,
            client_cert=client_cert,
            alpn=[name.encode() for name in (self._alpn if alpn is None else alpn)],
            server_name=server_name,
            tickets=tickets,
        )


class ServerTls:
    """Who a server is, and which clients it takes.

    Args:
        cert: the certificate chain, the server's own first.
        key: its private key.
        client_pins: fingerprints of the client certificates to take; others are refused.
        client_roots: the certificate authorities of the client certificates to take, as in `ClientTls`. With
            neither of both anyone may connect, and no certificate is asked for.
        alpn: the application protocols that are spoken, best first (RFC 7301). `"h3"` is what WebTransport
            needs.
        early_data: whether requests in early data (0-RTT) are taken. They can be replayed by an attacker, see
            `ReceiveStream.is_early`.

    Raises:
        ValueError: as `ClientTls`, and for a key that is not the certificate's.
        OSError: a file cannot be read.
    """

    __slots__ = ("_alpn", "_native")

    def __init__(
        self,
        cert: Pem,
        key: Pem,
        *,
        client_pins: Iterable[str] | None = None,
        client_roots: Pem | None = None,
        alpn: Sequence[str] = (),
        early_data: bool = False,
    ) -> None:
        if client_pins is not None and client_roots is not None:
            raise ValueError("client_pins and client_roots exclude each other")
        self._alpn = tuple(_texts(alpn, "alpn"))
        self._native = _native.ServerTls(
            cert=_pem(cert),
            key=_pem(key),
            client_pins=None if client_pins is None else _texts(client_pins, "client_pins"),
            client_roots=None if client_roots is None else _pem(client_roots),
            alpn=[name.encode() for name in self._alpn],
            early_data=early_data,
        )

    def _for_http3(self) -> ServerTls:
        """The same with the application protocol HTTP/3, no matter what it says."""
        tls = ServerTls.__new__(ServerTls)
        tls._alpn = ("h3",)
        tls._native = self._native.with_alpn([b"h3"])
        return tls

    def __repr__(self) -> str:
        return f"<ServerTls {self.fingerprint} alpn={self._alpn!r}>"

    @property
    def fingerprint(self) -> str:
        """What clients pin: the SHA-256 of the certificate, 64 hexadecimal digits."""
        return self._native.fingerprint

    @property
    def alpn(self) -> tuple[str, ...]:
        """The application protocols that are spoken, best first."""
        return self._alpn


def self_signed(names: Iterable[str] = ("localhost",), days: int = 14) -> tuple[bytes, bytes]:
    """A fresh certificate and its key, both PEM, for clients that pin it.

    Args:
        names: host names and addresses that it is for.
        days: how long it is valid, 1 or more. Browsers take pinned ones for at most 14.

    Raises:
        ValueError: no names, a name that is none, or `days` out of range.
    """
    return _native.self_signed(_texts(names, "names"), days)


def fingerprint(cert: Pem) -> str:
    """The SHA-256 of the first certificate in `cert`, 64 hexadecimal digits: what `pins` are.

    Raises:
        ValueError: there is no certificate in it.
        OSError: the file cannot be read.
    """
    return _native.fingerprint(_pem(cert))


def _pem(pem: Pem) -> str | bytes:
    return pem if isinstance(pem, bytes) else os.fspath(pem)


def _texts(texts: Iterable[str], name: str) -> list[str]:
    """A text is a sequence of texts too, and never what was meant."""
    if isinstance(texts, str):
        raise TypeError(f"{name} is a list of texts, not one text")
    return list(texts)
