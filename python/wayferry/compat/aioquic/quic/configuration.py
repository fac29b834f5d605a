"""`QuicConfiguration`: a field is honoured, or refused by an error that names it; docs/python.md lists the
little that is ignored.

It is checked when it is used, by `connect()` or `serve()`, not when a field is set.
"""

import re
import ssl
from dataclasses import MISSING, dataclass, field, fields
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TextIO

from wayferry import quic

from ..tls import SessionTicket
from .logger import QuicFileLogger, QuicLogger
from .packet import QuicProtocolVersion

__all__ = ["SMALLEST_MAX_DATAGRAM_SIZE", "QuicConfiguration"]

SMALLEST_MAX_DATAGRAM_SIZE = 1200
# What `quic.Config` takes at most.
STREAM_WINDOW_MAX = 2 << 20
# What aioquic allows its peers, RFC 9000 §4.6.
STREAMS = 128
ALGORITHMS = {"reno": "newreno"}


@dataclass
class QuicConfiguration:
    """How a connection is made.

    Attributes:
        alpn_protocols: in order of preference; None or empty: no ALPN.
        congestion_control_algorithm: `"reno"`, or a name that `wayferry.quic.Config` knows.
        idle_timeout: seconds of silence until the connection is over, and what a handshake may take.
        is_client: must suit `connect()` or `serve()`.
        max_data, max_stream_data: bytes that the peer may send ahead; for a stream it is 2 MiB where more is
            asked for. The default means Wayferry's own, as aioquic only begins with it.
        max_datagram_frame_size: None: no datagrams; else they are taken, of any size that a packet holds,
            whichever number it is.
        quic_logger: a `QuicFileLogger`, or a `QuicLogger`, which keeps nothing.
        secrets_log_file: an open file with a name; secrets are appended to the file of that name.
        server_name: whom the certificate must name, instead of the host.
        cafile, cadata: PEM certificates to trust instead of Mozilla's list, by path and as bytes.
        certificate, certificate_chain, private_key: set by `load_cert_chain`; PEM bytes, or objects of the
            library `cryptography`.
        session_ticket: what a `session_ticket_handler` of `connect()` was given, to resume that session.
        supported_versions: must have version 1, which is spoken; others are ignored.
        verify_mode: for clients, `ssl.CERT_NONE` trusts anybody.

    The others are refused unless they are left alone.
    """

    alpn_protocols: list[str] | None = None
    congestion_control_algorithm: str = "reno"
    connection_id_length: int = 8
    idle_timeout: float = 60.0
    is_client: bool = True
    max_data: int = 1048576
    max_datagram_size: int = SMALLEST_MAX_DATAGRAM_SIZE
    max_stream_data: int = 1048576
    quic_logger: QuicLogger | None = None
    secrets_log_file: TextIO | None = None
    server_name: str | None = None
    session_ticket: SessionTicket | None = None
    token: bytes = b""
    cadata: bytes | None = None
    cafile: str | None = None
    capath: str | None = None
    certificate: Any = None
    certificate_chain: list[Any] = field(default_factory=list)
    cipher_suites: list[Any] | None = None
    initial_rtt: float = 0.1
    max_datagram_frame_size: int | None = None
    original_version: int | None = None
    private_key: Any = None
    quantum_readiness_test: bool = False
    supported_versions: list[int] = field(
        default_factory=lambda: [QuicProtocolVersion.VERSION_1, QuicProtocolVersion.VERSION_2]
    )
    verify_mode: int | None = None

    def load_cert_chain(
        self,
        certfile: str | PathLike[str],
        keyfile: str | PathLike[str] | None = None,
        password: bytes | str | None = None,
    ) -> None:
        """Reads a certificate chain and its key (PEM); without `keyfile` the key is in `certfile` too.

        Raises:
            OSError: a file cannot be read.
            ValueError: there is no certificate in it, or no key.
            NotImplementedError: a `password` was given; encrypted keys are not read.
        """
        if password is not None:
            raise NotImplementedError(
                "password: encrypted keys are not read; `openssl pkey` writes one that is not encrypted"
            )
        certificates = _blocks(certfile, b"CERTIFICATE")
        self.certificate, self.certificate_chain = certificates[0], certificates[1:]
        self.private_key = _blocks(certfile if keyfile is None else keyfile, b"PRIVATE KEY")[0]

    def load_verify_locations(
        self, cafile: str | None = None, capath: str | None = None, cadata: bytes | None = None
    ) -> None:
        """Says whom to trust, see `cafile` and `cadata`."""
        self.cafile, self.capath, self.cadata = cafile, capath, cadata

    def _client_tls(self) -> quic.ClientTls:
        self._check(is_client=True)
        alpn = self.alpn_protocols or []
        identity = self._identity() if self.certificate is not None else None
        if self.verify_mode == ssl.CERT_NONE:
            return quic.ClientTls.insecure(client_cert=identity, alpn=alpn, server_name=self.server_name)
        trusted = [Path(self.cafile).read_bytes()] if self.cafile is not None else []
        trusted += [self.cadata] if self.cadata is not None else []
        # aioquic trusts certifi's list by default, and that is Mozilla's.
        roots = b"\n".join(trusted) if trusted else "webpki"
        return quic.ClientTls(roots=roots, client_cert=identity, alpn=alpn, server_name=self.server_name)

    def _server_tls(self) -> quic.ServerTls:
        self._check(is_client=False)
        if self.certificate is None or self.private_key is None:
            raise ValueError("certificate: a server needs load_cert_chain()")
        return quic.ServerTls(*self._identity(), alpn=self.alpn_protocols or [])

    def _identity(self) -> tuple[bytes, bytes]:
        chain = [self.certificate, *self.certificate_chain]
        return b"\n".join(_pem(certificate) for certificate in chain), _pem(self.private_key)

    def _transport(self) -> quic.Config:
        options: dict[str, Any] = {}
        if self.max_data != 1048576:
            options["connection_window"] = self.max_data
        if self.max_stream_data != 1048576:
            options["stream_window"] = min(self.max_stream_data, STREAM_WINDOW_MAX)
        if isinstance(self.quic_logger, QuicFileLogger):
            options["qlog_dir"] = self.quic_logger.path
        if self.secrets_log_file is not None:
            options["keylog"] = self.secrets_log_file.name
        name: Any = self.congestion_control_algorithm
        return quic.Config(
            idle_timeout=self.idle_timeout,
            handshake_timeout=self.idle_timeout,
            congestion=ALGORITHMS.get(name, name),
            keep_alive=None,
            datagrams=self.max_datagram_frame_size is not None,
            bi_streams=STREAMS,
            uni_streams=STREAMS,
            **options,
        )

    def _check(self, *, is_client: bool) -> None:
        if self.is_client != is_client:
            raise ValueError(f"is_client: must be {is_client} here")
        for known in fields(self):
            default = known.default_factory() if known.default_factory is not MISSING else known.default
            if known.name in REFUSED and getattr(self, known.name) != default:
                raise NotImplementedError(f"{known.name}: {REFUSED[known.name]}")
        _check_pem("certificate", self.certificate)
        _check_pem("private_key", self.private_key)
        for certificate in self.certificate_chain:
            _check_pem("certificate_chain", certificate)
        if QuicProtocolVersion.VERSION_1 not in self.supported_versions:
            raise NotImplementedError(
                "supported_versions: only QUIC version 1 is spoken; leave it in the list"
            )
        if not isinstance(self.session_ticket, SessionTicket | None):
            raise NotImplementedError(
                "session_ticket: tickets stay in memory; take one that a session_ticket_handler was given"
            )
        if not isinstance(self.quic_logger, QuicLogger | None):
            raise NotImplementedError(
                "quic_logger: the native half writes qlog; take a QuicFileLogger of wayferry.compat.aioquic"
            )
        if self.secrets_log_file is not None and not isinstance(
            getattr(self.secrets_log_file, "name", None), str
        ):
            raise NotImplementedError(
                "secrets_log_file: the native half opens it by its name; take one that open() gives"
            )
        if not is_client and self.verify_mode not in (None, ssl.CERT_NONE):
            raise NotImplementedError(
                "verify_mode: a server asks for no certificates; wayferry.quic.ServerTls has client_roots"
            )


def _blocks(path: str | PathLike[str], label: bytes) -> list[bytes]:
    """The parts of a file in PEM (RFC 7468) whose label ends so, at least one."""
    found = [match[0] for match in PEM.finditer(Path(path).read_bytes()) if match["label"].endswith(label)]
    if not found:
        raise ValueError(f"{fspath(path)}: there is no {label.decode().lower()} in PEM in it")
    return found


def _check_pem(name: str, value: Any) -> None:
    """Refuses what is neither PEM nor an object of `cryptography`, which is known by what it can do."""
    if value is None or isinstance(value, bytes):
        return
    if not hasattr(value, "public_bytes") and not hasattr(value, "private_bytes"):
        kind = type(value).__name__
        raise NotImplementedError(
            f"{name}: `{kind}` is not read; give PEM bytes or an object of `cryptography`"
        )


def _pem(value: Any) -> bytes:
    """A certificate or a key in PEM."""
    if isinstance(value, bytes):
        return value
    from cryptography.hazmat.primitives import serialization as form

    encoded: bytes
    if hasattr(value, "private_bytes"):
        encoded = value.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    else:
        encoded = value.public_bytes(form.Encoding.PEM)
    return encoded


PEM = re.compile(rb"-----BEGIN (?P<label>[A-Z0-9 ]+)-----.*?-----END (?P=label)-----\n?", re.DOTALL)
# Why each of these fields cannot be set, and what to do instead.
REFUSED = {
    "capath": "folders of certificates are not read; give the certificates by cafile or cadata",
    "cipher_suites": "the suites of TLS 1.3 are rustls's choice; leave it None",
    "connection_id_length": "connection ids are chosen by QUIC; leave it 8",
    "initial_rtt": "the first round trip is assumed as RFC 9002 says; leave it 0.1",
    "max_datagram_size": "the size of packets is found by probing the path; leave it 1200",
    "original_version": "only QUIC version 1 is spoken; leave it None",
    "quantum_readiness_test": "QUIC's own parameters are sent and no others; leave it False",
    "token": "tokens of earlier connections are kept by QUIC; leave it empty",
}
