"""qlog, where the native module was built with it."""

from os import PathLike, fspath

__all__ = ["QuicFileLogger", "QuicLogger"]


class QuicLogger:
    """Refused: traces are written by the native half, into files."""

    def __init__(self) -> None:
        raise NotImplementedError("QuicLogger keeps traces in memory; use QuicFileLogger, which writes files")


class QuicFileLogger(QuicLogger):
    """Writes one qlog file for each connection into the directory `path`."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = fspath(path)
