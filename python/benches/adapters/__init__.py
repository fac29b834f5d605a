"""One module per library, and the names by which the bench knows them."""

from __future__ import annotations

import importlib
import importlib.metadata
from dataclasses import dataclass

from link import Adapter


@dataclass(frozen=True)
class Entry:
    """Where an adapter is found. `package` is what has to be installed; empty: nothing."""

    name: str
    module: str
    package: str
    # WebTransport over the same library: the module's `web` class.
    web: bool = False
    # HTTP/3 over the same library: the module `…_http`.
    http: bool = False


def load(name: str, kind: str) -> type[Adapter]:
    """The adapter's class, `kind` being raw, web or http. ImportError when its library is not there."""
    entry = PYTHON[name]
    module = importlib.import_module(f"adapters.{entry.module}{'_http' * (kind == 'http')}")
    found: type[Adapter] = getattr(module, f"{kind.capitalize()}Adapter")
    return found


def absent(name: str) -> str | None:
    """Why this adapter cannot run in this interpreter."""
    try:
        load(name, "raw")
    except ImportError as error:
        return str(error)
    return None


def version(name: str) -> str:
    package = PYTHON[name].package
    try:
        return f"{package} {importlib.metadata.version(package)}" if package else ""
    except importlib.metadata.PackageNotFoundError:
        return package


PYTHON = {
    entry.name: entry
    for entry in (
        Entry("wayferry", "wayferry", "wayferry", web=True, http=True),
        Entry("aiopquic", "aiopquic", "aiopquic", web=True),
        Entry("aioquic", "aioquic", "aioquic", http=True),
        Entry("qh3", "qh3", "qh3"),
        Entry("udp", "udp", ""),
        Entry("compat", "compat", "wayferry"),
    )
}
NATIVE = "noq"
COMPAT = "compat"
# In the order in which a round runs and a table lists them.
NAMES = ["wayferry", "compat", "aiopquic", "aioquic", "qh3", NATIVE, "udp"]
