"""The fields of a message: what HTTP calls its headers, and its trailers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

__all__ = ["Fields", "HeaderInput", "Headers", "encoded"]

Fields: TypeAlias = list[tuple[bytes, bytes]]
"""Names in lower case, and values, as they are sent."""

HeaderInput: TypeAlias = "Mapping[str, str | bytes] | Iterable[tuple[str | bytes, str | bytes]]"
"""Headers for a message: a mapping, or pairs where a name may come twice."""


class Headers(Mapping[str, str]):
    """Fields of a message, in the order in which they came. Names are the same in upper and lower case.

    As a mapping it gives the values of one name joined by commas (RFC 9110 §5.3); `get_list` gives each.
    """

    __slots__ = ("_names", "raw")

    def __init__(self, raw: Fields) -> None:
        self.raw = raw
        """As they came: names and values as bytes."""
        self._names: dict[str, list[str]] | None = None

    def __getitem__(self, name: str) -> str:
        return ", ".join(self._values()[name.lower()])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())

    def __repr__(self) -> str:
        return f"Headers({self.multi_items()!r})"

    def get_list(self, name: str) -> list[str]:
        """Every value of the field `name`; `set-cookie` is the one that must not be joined."""
        return list(self._values().get(name.lower(), ()))

    def multi_items(self) -> list[tuple[str, str]]:
        """Names and values, a name as often as it came."""
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.raw]

    def _values(self) -> dict[str, list[str]]:
        if self._names is None:
            self._names = {}
            for name, value in self.multi_items():
                self._names.setdefault(name, []).append(value)
        return self._names


def encoded(headers: HeaderInput) -> Fields:
    """Headers as they are sent.

    Raises:
        TypeError, ValueError: a name or a value is none; the message says which.
    """
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(_name(name), _value(name, value)) for name, value in map(_pair, pairs)]


def _pair(pair: object) -> tuple[str | bytes, object]:
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return pair[0], pair[1]
    raise TypeError(f"headers are a mapping, or pairs of a name and a value, unlike {pair!r}")


def _name(name: str | bytes) -> bytes:
    if isinstance(name, str):
        if not name.isascii():
            raise ValueError(f"a header's name is ASCII, unlike {name!r}")
        name = name.encode()
    elif not isinstance(name, bytes):
        raise TypeError(f"a header's name is str or bytes, not {type(name).__name__}")
    if name.startswith(b":"):
        raise ValueError(f"{name.decode('latin-1')} is not a header: method, path and status have arguments")
    return name.lower()


def _value(name: str | bytes, value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TypeError(f"header {name!r}: a value is str or bytes, not {type(value).__name__}")
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError(f"header {name!r}: {value!r} has characters beyond Latin-1; encode it") from None
