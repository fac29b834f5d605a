"""Answers, as values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from wayferry.http3.errors import StatusError
from wayferry.http3.headers import Headers

__all__ = ["Head", "Response"]


@dataclass(frozen=True, slots=True)
class Head:
    """What an answer begins with."""

    status_code: int
    """The HTTP status, 100 to 999."""
    headers: Headers
    """The fields of the answer."""

    def raise_for_status(self) -> None:
        """Raises StatusError when the status is one of failure: 400 or more."""
        if self.status_code >= 400:
            raise StatusError(self.status_code)


@dataclass(frozen=True, slots=True)
class Response(Head):
    """An answer with all of its body."""

    content: bytes = b""
    """The body. What the server has compressed is still compressed: no such thing is asked for."""
    trailers: Headers = field(default_factory=lambda: Headers([]))
    """Fields behind the body."""

    def __repr__(self) -> str:
        return f"<Response {self.status_code}, {len(self.content)} bytes>"

    @property
    def text(self) -> str:
        """The body as text, by the charset that the headers name, else UTF-8; what is none becomes
        U+FFFD."""
        charset = _parameter(self.headers.get("content-type", ""), "charset") or "utf-8"
        try:
            return self.content.decode(charset, "replace")
        except LookupError:
            return self.content.decode(errors="replace")

    def json(self) -> Any:
        """The body read as JSON.

        Raises:
            ValueError: it is none.
        """
        return json.loads(self.content)


def _parameter(value: str, name: str) -> str | None:
    """A parameter of a media type (RFC 9110 §5.6.6)."""
    for parameter in value.split(";")[1:]:
        key, _, text = parameter.partition("=")
        if key.strip().lower() == name:
            return text.strip().strip('"')
    return None
