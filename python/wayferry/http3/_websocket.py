"""WebSocket's frames (RFC 6455 §5), the server's side.

Pure: bytes in, events out. Extensions are not spoken, so that compression bombs are not understood either.
Invariant: what is kept of an unfinished message has at most `MESSAGE` bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = [
    "Close",
    "Message",
    "Ping",
    "Reader",
    "WebSocketError",
    "close_frame",
    "message_frame",
    "pong_frame",
]


@dataclass(frozen=True, slots=True)
class Message:
    """A whole message: a text, or bytes."""

    data: str | bytes


@dataclass(frozen=True, slots=True)
class Ping:
    """The peer wants to hear the same bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """The peer ends it."""

    code: int
    reason: str


class WebSocketError(Exception):
    """The peer broke a rule.

    Args:
        code: what it is told (RFC 6455 §7.4.1).
        text: which.
    """

    code: int
    text: str

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text


class Reader:
    """Takes the bytes of a client apart."""

    __slots__ = ("_held", "_kind", "_pieces", "_size")

    def __init__(self) -> None:
        self._held = bytearray()
        self._kind = 0
        """Opcode of the message of which `_pieces` are the beginning; 0: none has begun."""
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def kept(self) -> int:
        """Bytes that are kept of what is not whole."""
        return len(self._held) + self._size

    def give(self, data: bytes) -> None:
        """Adds what came."""
        self._held += data

    def next(self) -> Message | Ping | Close | None:
        """What the bytes say next; None when more are needed.

        Raises:
            WebSocketError: the client broke a rule.
        """
        while (frame := self._frame()) is not None:
            kind, last, payload = frame
            event = self._control(kind, payload) if kind >= CLOSE else self._data(kind, last, payload)
            if event is not None:
                return event
        return None

    def _frame(self) -> tuple[int, bool, bytes] | None:
        """The next frame: opcode, whether it is the last of its message, and its content."""
        held = self._held
        if len(held) < 2:
            return None
        kind, last = held[0] & 0xF, bool(held[0] & 0x80)
        length, start = held[1] & 0x7F, 2
        if held[0] & 0x70:
            raise WebSocketError(PROTOCOL_ERROR, "an extension that was not agreed on")
        if not held[1] & 0x80:
            raise WebSocketError(PROTOCOL_ERROR, "a client's frame without a mask")
        if kind >= CLOSE and (length > CONTROL_MAX or not last):
            raise WebSocketError(PROTOCOL_ERROR, "a control frame that is long, or in pieces")
        if length >= 126:
            start = 4 if length == 126 else 10
            if len(held) < start:
                return None
            length = int.from_bytes(held[2:start])
        if self._size + length > MESSAGE:
            raise WebSocketError(TOO_BIG, f"a message of more than {MESSAGE} bytes")
        end = start + 4 + length
        if len(held) < end:
            return None
        payload = unmasked(bytes(held[start + 4 : end]), bytes(held[start : start + 4]))
        del held[:end]
        return kind, last, payload

    def _data(self, kind: int, last: bool, payload: bytes) -> Message | None:
        if kind > BINARY or (kind == CONTINUATION) != bool(self._kind):
            raise WebSocketError(PROTOCOL_ERROR, "a frame that does not follow on the one before")
        self._kind = self._kind or kind
        self._pieces.append(payload)
        # Empty pieces cost something, too.
        self._size += len(payload) + PIECE
        if not last:
            return None
        whole, kind = b"".join(self._pieces), self._kind
        self._pieces, self._kind, self._size = [], 0, 0
        if kind == BINARY:
            return Message(whole)
        try:
            return Message(whole.decode())
        except UnicodeDecodeError:
            raise WebSocketError(NO_TEXT, "a text that is not UTF-8") from None

    def _control(self, kind: int, payload: bytes) -> Ping | Close | None:
        if kind == PING:
            return Ping(payload)
        if kind == PONG:
            return None
        if kind != CLOSE:
            raise WebSocketError(PROTOCOL_ERROR, "a frame of an unknown kind")
        if not payload:
            return Close(NO_CODE, "")
        if len(payload) == 1:
            raise WebSocketError(PROTOCOL_ERROR, "half of a code")
        code = int.from_bytes(payload[:2])
        if code < 1000 or code in (1004, NO_CODE, ABNORMAL, 1015) or 1016 <= code < 3000 or code >= 5000:
            raise WebSocketError(PROTOCOL_ERROR, "a code that must not be sent")
        try:
            return Close(code, payload[2:].decode())
        except UnicodeDecodeError:
            raise WebSocketError(NO_TEXT, "a reason that is not UTF-8") from None


def unmasked(data: bytes, mask: bytes) -> bytes:
    """RFC 6455 §5.3; doing it twice undoes it."""
    length = len(data)
    pattern = (mask * (length // 4 + 1))[:length]
    return (int.from_bytes(data) ^ int.from_bytes(pattern)).to_bytes(length)


def message_frame(data: str | bytes) -> bytes:
    """A message as a server sends it."""
    return _frame(TEXT, data.encode()) if isinstance(data, str) else _frame(BINARY, data)


def pong_frame(data: bytes) -> bytes:
    """The answer to a ping."""
    return _frame(PONG, data)


def close_frame(code: int, reason: str = "") -> bytes:
    """The end; a reason that is too long is cut."""
    if code == NO_CODE:
        return _frame(CLOSE, b"")
    text = reason.encode()[: CONTROL_MAX - 2].decode(errors="ignore")
    return _frame(CLOSE, struct.pack(">H", code) + text.encode())


def _frame(kind: int, payload: bytes) -> bytes:
    length = len(payload)
    if length < 126:
        head = struct.pack(">BB", 0x80 | kind, length)
    elif length < 1 << 16:
        head = struct.pack(">BBH", 0x80 | kind, 126, length)
    else:
        head = struct.pack(">BBQ", 0x80 | kind, 127, length)
    return head + payload


# RFC 6455 §11.8.
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
# RFC 6455 §7.4.1.
PROTOCOL_ERROR, NO_CODE, ABNORMAL, NO_TEXT, TOO_BIG = 1002, 1005, 1006, 1007, 1009
TRY_AGAIN_LATER = 1013
"""IANA's registry of close codes has it."""
CONTROL_MAX = 125

MESSAGE = 16 << 20
"""Bytes of a message."""
PIECE = 32
"""Bytes that each piece of a message counts besides its own."""
