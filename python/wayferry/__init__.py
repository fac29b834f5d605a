"""Wayferry for Python programs: `wayferry.quic` is QUIC and WebTransport, `wayferry.http3` HTTP/3."""

__version__ = "0.1.0"
