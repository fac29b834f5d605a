"""What is aioquic's own and works on this layer's events: HTTP/3, which needs nothing of QUIC but streams."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .quic.events import QuicEvent

__all__ = ["needs_aioquic", "translated"]


@contextmanager
def needs_aioquic(name: str) -> Iterator[None]:
    """Inside, names are imported from aioquic for the module `name`; ImportError says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"aioquic", "pylsqpack"}:
            raise
        raise ImportError(
            f"{name} is aioquic's own code on Wayferry's connections, and aioquic is not installed; "
            "`pip install wayferry[h3]` does that",
            name=error.name,
        ) from None


def translated(event: QuicEvent) -> Any:
    """The event of aioquic's that has the same name and says the same."""
    from aioquic.quic import events

    return getattr(events, type(event).__name__)(**vars(event))
