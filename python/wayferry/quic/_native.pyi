# The compiled half of `wayferry.quic`: QUIC streams that are polled, never awaited.
#
# An operation that cannot be done at once returns None (or what its comment says) and keeps its place; its
# *token* appears in `Reactor.drain()` when it is worth another call. A token may also appear for nothing.
# Objects belong to the thread of one event loop. Not a public interface: it changes without notice.

from collections.abc import Callable
from typing import Any, Literal, Self, TypeAlias, final

from typing_extensions import Buffer

__all__ = [
    "ClientTls",
    "Config",
    "Connecting",
    "Connection",
    "Http3Reader",
    "Listener",
    "Reactor",
    "ReceiveStream",
    "SendStream",
    "ServerTls",
    "TicketStore",
    "Waiting",
    "WebRequest",
    "__version__",
    "connect",
    "fingerprint",
    "http3_section",
    "listen",
    "mark_forked",
    "self_signed",
    "web_connect",
]

__version__: str

_Address: TypeAlias = tuple[str, int]
_Pem: TypeAlias = str | bytes  # a path, or the PEM text itself

# For a forked child. If the parent had a Reactor, every call raises RuntimeError from now on, and objects are
# leaked, not dropped; if not, the child may use everything.
def mark_forked() -> None: ...
def self_signed(names: list[str], days: int) -> tuple[bytes, bytes]: ...  # PEM chain, PEM key
def fingerprint(cert: _Pem) -> str: ...  # SHA-256 of the first certificate, 64 hex digits

@final
class Reactor:
    # end_soon is called, at the end of a call, when the loop has to call end_turn() at the end of the turn.
    def __new__(cls, end_soon: Callable[[], None]) -> Self: ...
    def fileno(self) -> int: ...  # readable while drain() would give something
    # Begins a turn. Of small things that are given to connections the first leaves at once, and the others
    # wait for end_turn(), with which each connection is driven once. If it gives several tokens that has to
    # be called, and end_soon is not; and if the turn before was busy, the first waits too. What is much goes
    # earlier, and all in a turn that takes over five milliseconds.
    def drain(self) -> list[int]: ...
    def hold(self) -> None: ...  # as drain() does with several
    # Raises what a call of end_soon raised that is to end the program.
    def end_turn(self) -> None: ...
    # Blocks. True: there is something to drain. False: the time is over, or it was closed.
    def wait(self, timeout: float | None) -> bool: ...
    # Ends every wait(); drain() gives nothing any more; the fd lives until the last user.
    def close(self) -> None: ...

@final
class Config:
    def __new__(
        cls,
        *,
        idle_timeout: float | None,
        keep_alive: float | None,
        handshake_timeout: float,
        congestion: str,
        datagrams: bool,
        bi_streams: int,
        uni_streams: int,
        stream_window: int,
        connection_window: int,
        send_window: int,
        datagram_buffer: int,
        udp_buffer: int,
        half_open: int,
        keylog: str | None,
        qlog_dir: str | None,
    ) -> Self: ...

@final
class TicketStore:
    def __new__(cls, limit: int) -> Self: ...
    def __len__(self) -> int: ...

@final
class ClientTls:
    def __new__(
        cls,
        *,
        pins: list[str] | None,
        roots: _Pem | None,  # "system", "webpki", a path, or PEM text as bytes
        insecure: bool,
        client_cert: tuple[_Pem, _Pem] | None,
        alpn: list[bytes],
        server_name: str | None,
        tickets: TicketStore | None,
    ) -> Self: ...

@final
class ServerTls:
    def __new__(
        cls,
        *,
        cert: _Pem,
        key: _Pem,
        client_pins: list[str] | None,
        client_roots: _Pem | None,
        alpn: list[bytes],
        early_data: bool,
    ) -> Self: ...
    def with_alpn(self, alpn: list[bytes]) -> ServerTls: ...
    @property
    def fingerprint(self) -> str: ...

def connect(
    reactor: Reactor,
    addresses: list[_Address],
    server_name: str,
    local: _Address | None,
    tls: ClientTls,
    config: Config,
    early_data: bool,
) -> Connecting: ...
def web_connect(
    reactor: Reactor,
    addresses: list[_Address],
    server_name: str,
    local: _Address | None,
    tls: ClientTls,
    config: Config,
    url: str,
) -> Connecting: ...
def listen(reactor: Reactor, address: _Address, tls: ServerTls, config: Config, retry: str) -> Listener: ...

@final
class Connecting:
    @property
    def token(self) -> int: ...
    def poll(self) -> Connection | None: ...  # raises why it failed
    def cancel(self) -> None: ...

@final
class Waiting:
    @property
    def token(self) -> int: ...
    def poll(self) -> bool: ...  # True: over. Dropping it cancels

@final
class Listener:
    @property
    def token(self) -> int: ...
    @property
    def local_addr(self) -> _Address: ...
    # raises ConnectionClosed once it is closed, OSError when the system has failed its socket
    def poll_accept(self) -> Connection | WebRequest | None: ...
    def reload_tls(self, tls: ServerTls) -> None: ...  # for connections that come from now on
    # Whether clients with ALPN "h3" come as WebRequest, and "h3" is offered beside the TLS's own; first: no.
    def set_web(self, on: bool) -> None: ...
    def stats(self) -> dict[str, int]: ...  # accepted, failed, refused, retried, half_open, open
    def failures(self) -> list[str]: ...  # the last few handshakes that failed, for people
    def stop(self) -> None: ...  # no other peer comes in; connections go on
    def close(self, code: int, reason: bytes) -> None: ...  # connections too
    def idle(self) -> Waiting: ...  # over when no connection is left

@final
class WebRequest:
    @property
    def path(self) -> str: ...
    @property
    def authority(self) -> str: ...
    @property
    def headers(self) -> list[tuple[str, str]]: ...
    @property
    def remote_addr(self) -> _Address: ...
    def accept(self) -> Connecting: ...
    def reject(self, status: int) -> None: ...  # 400 to 599

@final
class Connection:
    @property
    def t_open_uni(self) -> int: ...
    @property
    def t_open_bi(self) -> int: ...
    @property
    def t_accept_uni(self) -> int: ...
    @property
    def t_accept_bi(self) -> int: ...
    @property
    def t_datagram(self) -> int: ...
    @property
    def t_send_datagram(self) -> int: ...
    @property
    def t_closed(self) -> int: ...
    @property
    def t_early(self) -> int: ...
    def open_uni(self) -> SendStream | None: ...
    def open_bi(self) -> tuple[SendStream, ReceiveStream] | None: ...
    def accept_uni(self) -> ReceiveStream | None: ...
    def accept_bi(self) -> tuple[SendStream, ReceiveStream] | None: ...
    def datagrams(self, most: int) -> list[bytes] | None: ...  # those that have come, at least one
    # False: pending; call again with the same data, or cancel_send_datagram(). True: taken.
    def send_datagram(self, data: Buffer) -> bool: ...
    def cancel_send_datagram(self) -> None: ...
    # False: the buffer is full, nothing was taken
    def send_datagram_nowait(self, data: Buffer) -> bool: ...
    def closed(self) -> Exception | None: ...  # why it ended, a fresh ConnectionClosed or TlsError
    def early_data_accepted(self) -> bool | None: ...
    @property
    def max_datagram_size(self) -> int | None: ...
    @property
    def remote_addr(self) -> _Address: ...
    @property
    def local_addr(self) -> _Address: ...
    @property
    def alpn(self) -> bytes | None: ...
    @property
    def peer_certificates(self) -> list[bytes]: ...  # DER, the end entity's first
    @property
    def server_name(self) -> str | None: ...
    @property
    def is_early(self) -> bool: ...  # the handshake is still under way
    @property
    def has_ticket(self) -> bool: ...  # whether the server has given one on it
    @property
    def url(self) -> str | None: ...  # of a WebTransport session
    # The fields of `stats.Stats` and `stats.Path`.
    def stats(self) -> dict[str, Any]: ...
    def paths(self) -> list[dict[str, Any]]: ...
    # A request for a session that came on one of its streams, whose frames `reader` has read; from now on the
    # connection is the session's
    def web_request(
        self,
        send: SendStream,
        receive: ReceiveStream,
        reader: Http3Reader,
        path: str,
        authority: str,
        headers: list[tuple[str, str]],
        config: Config,
    ) -> WebRequest: ...
    def rebind(self, address: _Address) -> None: ...
    def change_id(self) -> None: ...  # takes another connection ID of the peer's, if there is one
    def ping(self) -> None: ...
    def update_keys(self) -> None: ...
    def export_keying_material(self, label: bytes, context: bytes, length: int) -> bytes: ...
    def close(self, code: int, reason: bytes) -> None: ...
    # over when the server has given a ticket on it, or none will come: the connection ended, or has no store
    def ticket(self) -> Waiting: ...
    # over when every finished stream is acknowledged, or the connection ended
    def drain(self) -> Waiting: ...

@final
class SendStream:
    @property
    def id(self) -> int: ...
    @property
    def t_write(self) -> int: ...
    @property
    def t_stopped(self) -> int: ...
    @property
    def buffered(self) -> int: ...  # bytes taken that QUIC has not got yet
    @property
    def priority(self) -> int: ...
    # 0: no room, nothing taken, t_write becomes ready. 1: taken whole. 2: taken whole, and the caller owes
    # a flush() at the end of this turn of the loop (told once until that flush).
    def write(self, data: Buffer) -> Literal[0, 1, 2]: ...
    # how many bytes were taken; QUIC has them, or flush() is owed
    def write_nowait(self, data: Buffer) -> int: ...
    def write_last(self, data: Buffer) -> Literal[0, 1, 2]: ...  # as write(), and finish() when it was taken
    def write_frame(self, kind: int, data: Buffer) -> Literal[0, 1, 2]: ...  # as write(), a frame of HTTP/3
    def flush(self) -> bool: ...  # False: not all went; t_write becomes ready, call again
    def room(self) -> bool: ...  # False: t_write becomes ready
    def finish(self) -> None: ...  # after what is buffered: flush() until True
    def reset(self, code: int) -> None: ...
    def set_priority(self, priority: int) -> None: ...
    # (code,): by the peer. (): everything is acknowledged
    def stopped(self) -> tuple[int] | tuple[()] | None: ...

@final
class ReceiveStream:
    @property
    def id(self) -> int: ...
    @property
    def t_read(self) -> int: ...
    @property
    def is_early(self) -> bool: ...
    def read(self, limit: int) -> bytes | None: ...  # b"" at the end of the stream
    # (offset, data), in the order of arrival; () at the end. After the first of these read() raises.
    def unordered(self, limit: int) -> tuple[int, bytes] | tuple[()] | None: ...
    def stop(self, code: int) -> None: ...

# What a stream of HTTP/3 says; `of` names what is read: a "request", a "response", or the control stream of a
# "client" or a "server". `limit`: bytes of a field section, and of any frame that is read as a whole.
@final
class Http3Reader:
    def __new__(cls, of: str, limit: int) -> Self: ...
    # Data (bytes), b"" at the end; (pseudo-header fields, fields, whether they are trailers); of a control
    # stream settings, or the number of a GOAWAY frame. Raises http3.ProtocolError, and what read() does.
    def poll(
        self, stream: ReceiveStream, most: int
    ) -> bytes | tuple[dict[str, bytes], list[tuple[bytes, bytes]], bool] | dict[int, int] | int | None: ...
    def expect_headers(self) -> None: ...  # the section that came was of an interim response

# The content of a HEADERS frame; ValueError for what must not be sent, or is larger than `limit`.
def http3_section(fields: list[tuple[bytes, bytes]], limit: int | None) -> bytes: ...
