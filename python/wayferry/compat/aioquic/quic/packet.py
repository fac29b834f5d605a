"""Error codes of QUIC itself. No packets: those are made and read elsewhere."""

from enum import IntEnum
from typing import Never

__all__ = ["QuicErrorCode", "QuicProtocolVersion", "encode_quic_version_negotiation"]


class QuicErrorCode(IntEnum):
    """RFC 9000 §20.1, and for version negotiation RFC 9368 §10.2."""

    NO_ERROR = 0x00
    INTERNAL_ERROR = 0x01
    CONNECTION_REFUSED = 0x02
    FLOW_CONTROL_ERROR = 0x03
    STREAM_LIMIT_ERROR = 0x04
    STREAM_STATE_ERROR = 0x05
    FINAL_SIZE_ERROR = 0x06
    FRAME_ENCODING_ERROR = 0x07
    TRANSPORT_PARAMETER_ERROR = 0x08
    CONNECTION_ID_LIMIT_ERROR = 0x09
    PROTOCOL_VIOLATION = 0x0A
    INVALID_TOKEN = 0x0B
    APPLICATION_ERROR = 0x0C
    CRYPTO_BUFFER_EXCEEDED = 0x0D
    KEY_UPDATE_ERROR = 0x0E
    AEAD_LIMIT_REACHED = 0x0F
    NO_VIABLE_PATH = 0x10
    VERSION_NEGOTIATION_ERROR = 0x11
    CRYPTO_ERROR = 0x100


class QuicProtocolVersion(IntEnum):
    """RFC 9000 §15 and RFC 9369 §3.1."""

    NEGOTIATION = 0
    VERSION_1 = 0x00000001
    VERSION_2 = 0x6B3343CF


def encode_quic_version_negotiation(*_arguments: object, **_options: object) -> Never:
    """Refused, as all that makes packets. Here because test programs import it."""
    raise NotImplementedError("encode_quic_version_negotiation: packets are made and read by QUIC itself")


def __getattr__(name: str) -> Never:
    """Says why something of `aioquic.quic.packet` is not here."""
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(f"{name}: packets are made and read by QUIC itself, see wayferry.compat.aioquic")
