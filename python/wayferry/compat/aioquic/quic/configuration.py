"""`QuicConfiguration`: every field is either honoured or refused, by an error that names it.

It is checked when it is used, by `connect()` or `serve()`, not when a field is set.
"""

import ssl
from dataclasses import MISSING, dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

from wayferry import quic

from .logger import QuicFileLogger
from .packet import QuicProtocolVersion

__all__ = ["SMALLEST_MAX_DATAGRAM_SIZE", "QuicConfiguration"]

SMALLEST_MAX_DATAGRAM_SIZE = 1200
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
        max_data, max_stream_data: bytes that the peer may send ahead, at most 1 MiB for a stream. The default
            means Wayferry's own, as aioquic only begins with it.
        max_datagram_frame_size: None: no datagrams; else they are taken, of any size that a packet holds.
        quic_logger: a `QuicFileLogger`.
        secrets_log_file: an open file with a name; secrets are appended to the file of that name.
        server_name: whom the certificate must name, instead of the host.
        cafile, cadata: PEM certificates to trust instead of Mozilla's list, by path and as bytes.
        certificate, private_key: set by `load_cert_chain`; PEM bytes.
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
    quic_logger: QuicFileLogger | None = None
    secrets_log_file: TextIO | None = None
    server_name: str | None = None
    session_ticket: None = None
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
            NotImplementedError: a `password` was given; encrypted keys are not read.
        """
        if password is not None:
            raise NotImplementedError("password: encrypted keys are not read")
        self.certificate = Path(certfile).read_bytes()
        self.private_key = self.certificate if keyfile is None else Path(keyfile).read_bytes()

    def load_verify_locations(
        self, cafile: str | None = None, capath: str | None = None, cadata: bytes | None = None
    ) -> None:
        """Says whom to trust, see `cafile` and `cadata`."""
        self.cafile, self.capath, self.cadata = cafile, capath, cadata

    def _client_tls(self) -> quic.ClientTls:
        self._check(is_client=True)
        alpn = self.alpn_protocols or []
        if self.verify_mode == ssl.CERT_NONE:
            return quic.ClientTls.insecure(alpn=alpn, server_name=self.server_name)
        trusted = [Path(self.cafile).read_bytes()] if self.cafile is not None else []
        trusted += [self.cadata] if self.cadata is not None else []
        # aioquic trusts certifi's list by default, and that is Mozilla's.
        roots = b"\n".join(trusted) if trusted else "webpki"
        identity = (self.certificate, self.private_key) if self.certificate is not None else None
        return quic.ClientTls(roots=roots, client_cert=identity, alpn=alpn, server_name=self.server_name)

    def _server_tls(self) -> quic.ServerTls:
        self._check(is_client=False)
        if self.certificate is None or self.private_key is None:
            raise ValueError("certificate: a server needs load_cert_chain()")
        return quic.ServerTls(self.certificate, self.private_key, alpn=self.alpn_protocols or [])

    def _transport(self) -> quic.Config:
        options: dict[str, Any] = {}
        if self.max_data != 1048576:
            options["connection_window"] = self.max_data
        if self.max_stream_data > 1048576:
            raise ValueError("max_stream_data: more than 1 MiB cannot be had")
        if self.max_stream_data != 1048576:
            options["stream_window"] = self.max_stream_data
        if self.quic_logger is not None:
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
        for name in ("certificate", "private_key"):
            if not isinstance(getattr(self, name), bytes | None):
                raise NotImplementedError(f"{name}: PEM bytes are taken, not objects of other libraries")
        if self.quic_logger is not None and not isinstance(self.quic_logger, QuicFileLogger):
            raise NotImplementedError("quic_logger: must be a QuicFileLogger")
        if self.secrets_log_file is not None and not isinstance(
            getattr(self.secrets_log_file, "name", None), str
        ):
            raise NotImplementedError(
                "secrets_log_file: must be a file with a name, the native half opens it"
            )
        if not is_client and self.verify_mode not in (None, ssl.CERT_NONE):
            raise NotImplementedError("verify_mode: for client certificates see wayferry.quic.ServerTls")


# Why each of these fields cannot be set.
REFUSED = {
    "capath": "give the certificates by cafile or cadata",
    "certificate_chain": "the chain belongs into the file of load_cert_chain()",
    "cipher_suites": "the suites of TLS 1.3 are rustls's choice",
    "connection_id_length": "connection ids are chosen by QUIC",
    "initial_rtt": "the first round trip is assumed as RFC 9002 says",
    "max_datagram_size": "the size of packets is found by probing the path",
    "original_version": "only QUIC version 1 is spoken",
    "quantum_readiness_test": "there is no such test",
    "session_ticket": "tickets are kept by wayferry.quic.TicketStore",
    "supported_versions": "only QUIC version 1 is spoken",
    "token": "tokens of earlier connections are kept by QUIC",
}
