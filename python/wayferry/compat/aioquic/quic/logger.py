"""qlog, where the native module was built with it."""

import warnings
from os import PathLike, fspath
from typing import Any

__all__ = ["QuicFileLogger", "QuicLogger"]


class QuicLogger:
    """Keeps nothing: traces are written by the native half, into files. Warns of that."""

    def __init__(self) -> None:
        warnings.warn("QuicLogger keeps no traces here; QuicFileLogger writes files", stacklevel=2)

    def to_dict(self) -> dict[str, Any]:
        """A trace without events."""
        return {"qlog_format": "JSON", "qlog_version": "0.3", "traces": [{"events": []}]}


class QuicFileLogger(QuicLogger):
    """Writes one qlog file for each connection into the directory `path`."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = fspath(path)
