"""A stream both ways: its two halves, and the short way to both."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from wayferry.quic._asyncio import StreamReader, StreamWriter
from wayferry.quic.receive import CHUNK, ReceiveStream, Unordered
from wayferry.quic.send import SendStream

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["BiStream"]


class BiStream:
    """A bidirectional stream. The halves are independent: each ends by itself.

    Every method is that of the half of the same name, with its errors and its cancel-safety.
    """

    __slots__ = ("receive", "send")

    def __init__(self, send: SendStream, receive: ReceiveStream) -> None:
        self.send = send
        """The half to send on."""
        self.receive = receive
        """The half to read from."""

    def __repr__(self) -> str:
        return f"<BiStream {self.id}>"

    @property
    def id(self) -> int:
        """QUIC's number of the stream (RFC 9000 §2.1)."""
        return self.send.id

    @property
    def is_early(self) -> bool:
        """See `ReceiveStream.is_early`."""
        return self.receive.is_early

    # Plain functions that hand the half's coroutine on: one more coroutine around it would cost on every
    # call.

    def write(self, data: Buffer) -> Coroutine[Any, Any, None]:
        """See `SendStream.write`. Cancel-safe: a cancelled write has sent nothing."""
        return self.send.write(data)

    def write_nowait(self, data: Buffer) -> int:
        """See `SendStream.write_nowait`."""
        return self.send.write_nowait(data)

    def finish(self) -> Coroutine[Any, Any, None]:
        """See `SendStream.finish`. Cancel-safe: a cancelled finish has done nothing."""
        return self.send.finish()

    def acked(self) -> Coroutine[Any, Any, None]:
        """See `SendStream.acked`. Cancel-safe: it only waits."""
        return self.send.acked()

    def stopped(self) -> Coroutine[Any, Any, int | None]:
        """See `SendStream.stopped`. Cancel-safe: it only waits."""
        return self.send.stopped()

    def writer(self) -> StreamWriter:
        """See `SendStream.writer`."""
        return self.send.writer()

    def reset(self, code: int = 0) -> None:
        """See `SendStream.reset`; the other half goes on."""
        self.send.reset(code)

    def set_priority(self, priority: int) -> None:
        """See `SendStream.set_priority`."""
        self.send.set_priority(priority)

    def read(self, n: int = CHUNK) -> Coroutine[Any, Any, bytes]:
        """See `ReceiveStream.read`. Cancel-safe: a cancelled read has taken nothing."""
        return self.receive.read(n)

    def read_exactly(self, n: int) -> Coroutine[Any, Any, bytes]:
        """See `ReceiveStream.read_exactly`. Cancel-safe: what had come is kept."""
        return self.receive.read_exactly(n)

    def read_to_end(self, limit: int) -> Coroutine[Any, Any, bytes]:
        """See `ReceiveStream.read_to_end`. Cancel-safe: what had come is kept."""
        return self.receive.read_to_end(limit)

    def reader(self, limit: int = CHUNK) -> StreamReader:
        """See `ReceiveStream.reader`."""
        return self.receive.reader(limit)

    def unordered(self) -> Unordered:
        """See `ReceiveStream.unordered`."""
        return self.receive.unordered()

    def stop(self, code: int = 0) -> None:
        """See `ReceiveStream.stop`; the other half goes on."""
        self.receive.stop(code)

    def __aiter__(self) -> ReceiveStream:
        return self.receive
