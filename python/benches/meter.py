"""What this process has used: all its threads' time, and its memory."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path


def cpu_seconds() -> float:
    """User and system time of all threads since the start."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident() -> int:
    """Bytes of memory now."""
    return status("VmRSS")


def peak() -> int:
    """Bytes of memory at most since the last call; from now on a new peak."""
    most = status("VmHWM")
    with suppress(OSError):  # not all kernels let a process forget its peak
        Path("/proc/self/clear_refs").write_text("5")
    return most


def status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0
