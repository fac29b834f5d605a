"""A turn loop for the tests of the native module alone: no asyncio, polls and a selector."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from wayferry.quic import _native

__all__ = ["CERT", "KEY", "PIN", "Turns", "client_tls", "config", "server_tls"]

T = TypeVar("T")

LIMIT = 30.0
HOST = "127.0.0.1"
CERT, KEY = _native.self_signed(["localhost", HOST], 2)
PIN = _native.fingerprint(CERT)


def config(**changes: object) -> _native.Config:
    """Settings as the package's defaults, but for `changes`."""
    settings: dict[str, object] = {
        "idle_timeout": 30.0,
        "keep_alive": None,
        "handshake_timeout": 10.0,
        "congestion": "cubic",
        "datagrams": True,
        "bi_streams": 100,
        "uni_streams": 100,
        "stream_window": 1 << 20,
        "connection_window": 16 << 20,
        "send_window": 8 << 20,
        "datagram_buffer": 1 << 20,
        "udp_buffer": 2 << 20,
        "half_open": 256,
        "keylog": None,
        "qlog_dir": None,
    }
    # Of many types, checked when it runs.
    return _native.Config(**(settings | changes))  # type: ignore[arg-type]


def client_tls(**changes: object) -> _native.ClientTls:
    """A client that trusts `CERT`."""
    settings: dict[str, object] = {
        "pins": [PIN],
        "roots": None,
        "insecure": False,
        "client_cert": None,
        "alpn": [b"test"],
        "server_name": None,
        "tickets": None,
    }
    # Of many types, checked when it runs.
    return _native.ClientTls(**(settings | changes))  # type: ignore[arg-type]


def server_tls(**changes: object) -> _native.ServerTls:
    """A server that is `CERT`."""
    settings: dict[str, object] = {
        "cert": CERT,
        "key": KEY,
        "client_pins": None,
        "client_roots": None,
        "alpn": [b"test"],
        "early_data": False,
    }
    # Of many types, checked when it runs.
    return _native.ServerTls(**(settings | changes))  # type: ignore[arg-type]


class Turns:
    """One reactor and the pollers on it."""

    def __init__(self, end_soon: Callable[[], None] | None = None) -> None:
        self.asked: list[None] = []
        """Not empty: the turn has to be ended."""
        self.reactor = _native.Reactor(end_soon or partial(self.asked.append, None))

    def until(self, poll: Callable[[], T | None]) -> T:
        """What `poll` gives, once it gives something. AssertionError after `LIMIT` seconds."""
        end = time.monotonic() + LIMIT
        while (value := poll()) is None:
            self.wait(end)
        return value

    def over(self, poll: Callable[[], bool]) -> None:
        """Waits until `poll` says True."""
        self.until(lambda: poll() or None)

    def polled(self, poll: Callable[[], bool]) -> None:
        """As `over`, for what has no token."""
        end = time.monotonic() + LIMIT
        while not poll():
            assert time.monotonic() < end, "it did not become true in time"
            self.end()
            self.reactor.wait(0.001)

    def ready(self, *tokens: int) -> None:
        """Waits until each of `tokens` was ready."""
        end = time.monotonic() + LIMIT
        missing = set(tokens)
        while missing:
            missing.difference_update(self.wait(end))

    def wait(self, end: float) -> list[int]:
        """The next tokens."""
        self.end()
        readable, _, _ = select.select([self.reactor], [], [], max(0.0, end - time.monotonic()))
        assert readable, "nothing became ready in time"
        tokens = self.reactor.drain()
        if len(tokens) > 1:
            self.asked.append(None)
        return tokens

    def end(self) -> None:
        """Ends the turn, if that was asked for."""
        if self.asked:
            self.asked.clear()
            self.reactor.end_turn()

    def settle(self) -> None:
        """Begins a turn in which nothing waits."""
        self.reactor.drain()
        self.asked.clear()
        self.reactor.end_turn()

    def pair(
        self, client: _native.Config | None = None, server: _native.Config | None = None
    ) -> tuple[_native.Connection, _native.Connection, _native.Listener]:
        """Two ends of a connection, the client's first, and the listener."""
        listener = self.listen(server)
        connecting = self.connect(listener.local_addr, client)
        ours = self.until(connecting.poll)
        theirs = self.until(listener.poll_accept)
        assert isinstance(theirs, _native.Connection)
        return ours, theirs, listener

    def listen(self, settings: _native.Config | None = None) -> _native.Listener:
        """A listener on a free port."""
        return _native.listen(self.reactor, (HOST, 0), server_tls(), settings or config(), "auto")

    def connect(
        self,
        address: tuple[str, int],
        settings: _native.Config | None = None,
        tls: _native.ClientTls | None = None,
    ) -> _native.Connecting:
        """A connection on its way to `address`."""
        tls = tls or client_tls()
        return _native.connect(
            self.reactor, [address], "localhost", None, tls, settings or config(), early_data=False
        )

    def uni(
        self, ours: _native.Connection, theirs: _native.Connection
    ) -> tuple[_native.SendStream, _native.ReceiveStream]:
        """Both ends of a new stream, which begins with `b"!"`."""
        tx = self.until(ours.open_uni)
        assert tx.write(b"!") == 1
        rx = self.until(theirs.accept_uni)
        assert self.until(lambda: rx.read(1)) == b"!"
        return tx, rx

    def flush(self, tx: _native.SendStream) -> None:
        """Ends turns until everything is with QUIC."""
        self.over(tx.flush)

    def read_until(self, rx: _native.ReceiveStream, over: Callable[[], bool]) -> bytes:
        """What comes until `over` says True."""
        end = time.monotonic() + LIMIT
        data = bytearray()
        while not over():
            piece = rx.read(1 << 16)
            if piece is None:
                self.wait(end)
            else:
                data += piece
        return bytes(data)

    def read_to_end(self, rx: _native.ReceiveStream) -> bytes:
        """Everything that comes."""
        data = bytearray()
        while piece := self.until(lambda: rx.read(1 << 16)):
            data += piece
        return bytes(data)
