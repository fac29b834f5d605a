"""What a request asks for, in ASGI's words.

It knows no streams. Invariant: a request that HTTP/3 calls malformed has no scope; `malformed` gives the
error to raise for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

if TYPE_CHECKING:
    from wayferry.http3._message import Section
    from wayferry.http3.errors import ProtocolError
    from wayferry.http3.headers import Fields

__all__ = ["Malformed", "host_and_path", "protocol_of", "scope_of"]

Malformed: TypeAlias = "Callable[[str], ProtocolError]"
"""Tells the peer that its request says nonsense, and gives the error to raise."""


def protocol_of(pseudo: dict[str, bytes], malformed: Malformed) -> str:
    """What is spoken on a request's stream: `http`, what an extended CONNECT names (RFC 9220 §3), or
    nothing, which is a tunnel to somewhere else (RFC 9114 §4.4).

    A CONNECT for `http` asks for nothing that there is, and is no request like others.
    """
    protocol = pseudo.get(":protocol")
    if pseudo.get(":method") != b"CONNECT":
        if protocol is not None:
            raise malformed("a protocol that is not connected to")
        return "http"
    if protocol is None and (":scheme" in pseudo or ":path" in pseudo or not pseudo.get(":authority")):
        raise malformed("a CONNECT that is neither a tunnel nor for a protocol")
    return "" if protocol is None or protocol == b"http" else protocol.decode("latin-1")


def host_and_path(section: Section, malformed: Malformed) -> tuple[bytes, bytes]:
    """Where a request goes to: the one host that it names, and the path with its query."""
    pseudo, fields = section
    hosts = {value for name, value in fields if name == b"host"}
    hosts |= {pseudo[":authority"]} if ":authority" in pseudo else set()
    if len(hosts) != 1 or b"" in hosts:
        raise malformed("a request to no host, or to several")
    path = pseudo.get(":path", b"")
    if not pseudo.get(":method") or not pseudo.get(":scheme") or not (path[:1] == b"/" or path == b"*"):
        raise malformed("a request without method, scheme or path")
    return hosts.pop(), path


def scope_of(section: Section, malformed: Malformed) -> dict[str, Any]:
    """The scope of a request for `http` or `websocket`, without what the server knows better."""
    pseudo, fields = section
    host, path = host_and_path(section, malformed)
    raw_path, _, query = path.partition(b"?")
    scope = {
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "3",
        "path": unquote(raw_path.decode("latin-1")),
        "raw_path": raw_path,
        "query_string": query,
        "headers": _headers(host, fields),
    }
    if ":protocol" in pseudo:
        asked = b",".join(value for name, value in fields if name == b"sec-websocket-protocol")
        subprotocols = [name.strip() for name in asked.decode("latin-1").split(",") if name.strip()]
        more = {"type": "websocket", "scheme": "wss", "subprotocols": subprotocols, "extensions": {}}
    else:
        more = {
            "type": "http",
            "method": pseudo[":method"].decode("latin-1"),
            "scheme": pseudo[":scheme"].decode("latin-1"),
            "extensions": {"http.response.trailers": {}},
        }
    return {**scope, **more}


def _headers(host: bytes, fields: Fields) -> Fields:
    headers = [(b"host", host), *(field for field in fields if field[0] != b"host")]
    cookies = [value for name, value in fields if name == b"cookie"]
    if len(cookies) > 1:
        # They are split for the sake of compression (RFC 9114 §4.2.1).
        headers = [field for field in headers if field[0] != b"cookie"]
        headers.append((b"cookie", b"; ".join(cookies)))
    return headers
