"""URLs of HTTP/3, which is `https` only."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, urlsplit

from wayferry.quic._resolve import check_port

__all__ = ["Url", "check_target", "split"]


class Url(NamedTuple):
    """What a URL says."""

    host: str
    port: int
    authority: str
    target: str


def split(url: str) -> Url:
    """The parts of a URL.

    Raises:
        ValueError: it is none of HTTP/3's; the message says why.
    """
    if not isinstance(url, str):
        raise TypeError(f"a URL is a str, not {type(url).__name__}")
    if any(character < " " or character == "\x7f" for character in url):
        raise ValueError(f"url: {url!r} has control characters")
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        hint = "; HTTP/3 is always encrypted" if parts.scheme == "http" else ""
        raise ValueError(f"a URL of HTTP/3 is https://host[:port]/path, not {url!r}{hint}")
    if parts.username is not None:
        raise ValueError(f"a URL's user and password belong into an authorization header, unlike in {url!r}")
    host, port = parts.hostname, 443 if parts.port is None else parts.port
    check_port(port)
    if not host.isascii():
        host = host.encode("idna").decode()
    authority = f"[{host}]" if ":" in host else host
    target = quote(parts.path or "/", safe=SAFE)
    if parts.query:
        target += "?" + quote(parts.query, safe=SAFE + "?")
    return Url(host, port, authority if port == 443 else f"{authority}:{port}", target)


def check_target(target: str) -> None:
    """Refuses what is no target of a request on a connection that is there."""
    if not isinstance(target, str):
        raise TypeError(f"a target is a str, not {type(target).__name__}")
    if not target.startswith("/") and target != "*":
        raise ValueError(
            f"a target is a path and begins with /, unlike {target!r}; the host is the connection's"
        )
    if not all("!" <= character <= "~" for character in target):
        raise ValueError(
            f"target: {target!r} has characters that a URL has not: urllib.parse.quote() makes it one"
        )


SAFE = "/:@!$&'()*+,;=~%-._"
"""Characters of a path that are not quoted (RFC 3986 §3.3), and `%`, as what is quoted stays so."""
