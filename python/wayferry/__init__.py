"""Wayferry for Python programs. `wayferry.quic` is an asyncio library for QUIC and WebTransport."""

__version__ = "0.1.0"
