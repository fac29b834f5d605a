"""Peers of HTTP/3 that break its rules, or wear the other side out: each is told its code, and others do
not notice.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from typing import Any

import pytest
from http3_support import (
    CONTROL,
    GET,
    answer,
    client_of,
    frame,
    number,
    raw_client,
    raw_server,
    served,
)
from support import asynchronous, run, until

from wayferry import http3, quic
from wayferry.http3 import ErrorCode, asgi
from wayferry.quic import _native

SEED = int(os.environ.get("WAYFERRY_SEED", "20261128"))
STREAMS = 10_000


def headers(*fields: tuple[bytes, bytes]) -> bytes:
    """A frame of fields, those too that the package would not send."""
    section = b"\0\0"
    for name, value in fields:
        section += literal(name, 0x20, 3) + literal(value, 0, 7)
    return frame(1, section)


def literal(text: bytes, flags: int, bits: int) -> bytes:
    most = (1 << bits) - 1
    if len(text) < most:
        return bytes([flags | len(text)]) + text
    rest, length = len(text) - most, bytes([flags | most])
    while rest >= 0x80:
        length, rest = length + bytes([rest & 0x7F | 0x80]), rest >> 7
    return length + bytes([rest]) + text


REQUEST = headers(*GET)
OK = headers((b":status", b"200"))


async def ends(connection: quic.Connection, code: ErrorCode) -> None:
    """Waits for the end that the peer made with `code`. Its last packet may be lost on a loaded machine, and
    then it knows nothing of the connection when the next one comes."""
    end = await connection.closed()
    assert (end.by, end.code) == ("peer", code) or end.by == "reset", end


async def outcome(stream: quic.BiStream) -> tuple[bytes | int, int | None]:
    """What came back on a stream, or the code that it was reset with; and the one it was stopped with."""
    try:
        back: bytes | int = await stream.read_to_end(1 << 20)
    except quic.StreamReset as reset:
        back = reset.code
    return back, await stream.stopped()


# What a client must not say on a stream of its own, and the code that the connection ends with.
CONTROLS: list[tuple[bytes, ErrorCode]] = [
    (number(0) + frame(7, b"\0"), ErrorCode.MISSING_SETTINGS),
    (CONTROL + frame(4, b""), ErrorCode.FRAME_UNEXPECTED),
    (CONTROL + frame(0, b"data"), ErrorCode.FRAME_UNEXPECTED),
    (CONTROL + REQUEST, ErrorCode.FRAME_UNEXPECTED),
    (number(0) + frame(4, b"\2\1"), ErrorCode.SETTINGS_ERROR),
    (number(0) + frame(4, b"\6\1\6\1"), ErrorCode.SETTINGS_ERROR),
    (number(0) + frame(4, bytes(100_000)), ErrorCode.EXCESSIVE_LOAD),
    (CONTROL + frame(7, b"\1") + frame(7, b"\2"), ErrorCode.ID_ERROR),
    # RFC 9218 §7.2: priorities of nothing, of another stream than a request's, and of a push.
    (CONTROL + frame(0xF0700, b""), ErrorCode.FRAME_ERROR),
    (CONTROL + frame(0xF0700, b"\2u=1"), ErrorCode.ID_ERROR),
    (CONTROL + frame(0xF0701, b"\0u=1"), ErrorCode.ID_ERROR),
    (number(1), ErrorCode.STREAM_CREATION_ERROR),
    (number(2) + b"\xc0\x01x", ErrorCode.QPACK_ENCODER_STREAM_ERROR),
    (number(3) + b"\x80", ErrorCode.QPACK_DECODER_STREAM_ERROR),
]


@pytest.mark.parametrize(("said", "code"), CONTROLS)
def test_a_client_that_breaks_a_rule_of_the_connection(said: bytes, code: ErrorCode) -> None:
    @asynchronous
    async def test() -> None:
        async with served() as server, raw_client(server, None) as client:
            stream = await client.open_uni()
            await stream.write(said)
            await ends(client, code)

    test()


@asynchronous
async def test_a_control_stream_that_ends_or_comes_twice() -> None:
    async with served() as server:
        for code, once in (
            (ErrorCode.CLOSED_CRITICAL_STREAM, True),
            (ErrorCode.STREAM_CREATION_ERROR, False),
        ):
            async with raw_client(server, None if once else CONTROL) as client:
                stream = await client.open_uni()
                await stream.write(CONTROL)
                if once:
                    await stream.finish()
                await ends(client, code)


@asynchronous
async def test_what_a_connection_bears() -> None:
    """Unknown streams and frames, cancellations of QPACK, and its table set to nothing (RFC 9114 §9);
    priorities of requests, which may come before these and say what is no priority (RFC 9218)."""
    priorities = b"".join(frame(0xF0700, b"\0" + value) for value in (b"u=1, i", b"", b"u=9", b"=,\xff"))
    async with served() as server, raw_client(server, CONTROL + priorities) as client:
        kept = []
        for said in (
            number(0x21) + b"grease",
            number(2) + b"\x20\x20",
            number(3) + b"\x41\x7f\x80\x01\x42",
            b"",
        ):
            stream = await client.open_uni()
            await stream.write(said or b"\xc0")
            kept.append(stream)
        assert await kept[0].stopped() == ErrorCode.STREAM_CREATION_ERROR
        request = await client.open_bi()
        await request.write(frame(0x21, b"grease") + REQUEST + frame(0x21 + 0x1F, bytes(100_000)))
        await request.finish()
        back, _ = await outcome(request)
        assert isinstance(back, bytes)
        assert back


# What a client must not say on a request's stream: what that is answered with, or how the connection ends.
REQUESTS: list[tuple[bytes, ErrorCode, bool]] = [
    (b"", ErrorCode.REQUEST_INCOMPLETE, False),
    (frame(0x21, b""), ErrorCode.REQUEST_INCOMPLETE, False),
    (headers((b":method", b"GET")), ErrorCode.MESSAGE_ERROR, False),
    (headers(*GET[:3], (b":path", b"x")), ErrorCode.MESSAGE_ERROR, False),
    (headers(*GET, (b":status", b"200")), ErrorCode.MESSAGE_ERROR, False),
    (headers((b"a", b"b"), *GET), ErrorCode.MESSAGE_ERROR, False),
    (headers(*GET, *GET[:1]), ErrorCode.MESSAGE_ERROR, False),
    (headers(GET[0], GET[1], GET[3]), ErrorCode.MESSAGE_ERROR, False),
    (headers(*GET, (b"host", b"elsewhere")), ErrorCode.MESSAGE_ERROR, False),
    (headers((b":method", b"GET /x HTTP/1.1"), *GET[1:]), ErrorCode.MESSAGE_ERROR, False),
    (headers(*GET[:3], (b":path", b"/a b")), ErrorCode.MESSAGE_ERROR, False),
    (headers(*GET, (b":protocol", b"websocket")), ErrorCode.MESSAGE_ERROR, False),
    (headers((b":method", b"CONNECT"), *GET[1:]), ErrorCode.MESSAGE_ERROR, False),
    (headers((b":method", b"CONNECT")), ErrorCode.MESSAGE_ERROR, False),
    (headers(*GET, (b"Upper", b"x")), ErrorCode.MESSAGE_ERROR, False),
    (headers(*GET, (b"a", b"x\r\nb: y")), ErrorCode.MESSAGE_ERROR, False),
    (headers(*GET, (b"transfer-encoding", b"chunked")), ErrorCode.MESSAGE_ERROR, False),
    (headers(*GET, (b"content-length", b"-1")), ErrorCode.MESSAGE_ERROR, False),
    (headers(*GET, (b"a", bytes([0x61]) * 66_000)), ErrorCode.EXCESSIVE_LOAD, False),
    (headers(*GET, *[(b"a", b"")] * 3000), ErrorCode.EXCESSIVE_LOAD, False),
    (frame(1, b"\0\0" + b"\xdd" * 5000), ErrorCode.EXCESSIVE_LOAD, False),
    (frame(0x21, b"") * 2000, ErrorCode.EXCESSIVE_LOAD, False),
    (frame(0, b"data"), ErrorCode.FRAME_UNEXPECTED, True),
    (frame(4, b""), ErrorCode.FRAME_UNEXPECTED, True),
    (frame(6, b""), ErrorCode.FRAME_UNEXPECTED, True),
    (REQUEST[:-1], ErrorCode.FRAME_ERROR, True),
    (frame(1, b""), ErrorCode.QPACK_DECOMPRESSION_FAILED, True),
    (frame(1, b"\0\0\x80"), ErrorCode.QPACK_DECOMPRESSION_FAILED, True),
    (frame(1, b"\0\0\x51\xff\xff\xff\xff\xff\x7fx"), ErrorCode.QPACK_DECOMPRESSION_FAILED, True),
]


@pytest.mark.parametrize(("said", "code", "ends_all"), REQUESTS)
def test_a_client_that_breaks_a_rule_of_requests(said: bytes, code: ErrorCode, ends_all: bool) -> None:
    @asynchronous
    async def test() -> None:
        async with served() as server, raw_client(server) as client:
            stream = await client.open_bi()
            if said:
                await stream.write(said)
            await stream.finish()
            if ends_all:
                await ends(client, code)
                return
            assert (await outcome(stream))[0] == code
            # The others go on.
            stream = await client.open_bi()
            await stream.write(REQUEST)
            await stream.finish()
            assert isinstance((await outcome(stream))[0], bytes)

    test()


@asynchronous
async def test_regression_an_application_saw_but_one_of_a_browsers_cookies() -> None:
    seen: list[list[tuple[bytes, bytes]]] = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        seen.append(scope["headers"])
        await answer(send, 200)

    async with served(app) as server, raw_client(server) as client:
        stream = await client.open_bi()
        await stream.write(headers(*GET, (b"cookie", b"a=1"), (b"x", b"y"), (b"cookie", b"b=2")))
        await stream.finish()
        await outcome(stream)
    assert seen == [[(b"host", b"a"), (b"x", b"y"), (b"cookie", b"a=1; b=2")]]


@asynchronous
async def test_regression_a_client_that_left_gave_its_place_away_with_its_requests_running() -> None:
    goes_on, begun = asyncio.Event(), asyncio.Event()

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        begun.set()
        await goes_on.wait()

    async with served(app) as server:
        async with raw_client(server) as client:
            stream = await client.open_bi()
            await stream.write(headers(*GET))
            await stream.finish()
            await begun.wait()
        await until(lambda: all(link.connection._over for link in server._links))
        assert len(server._links) == 1
        goes_on.set()
        await until(lambda: not server._links)


# RFC 9220 §3, and RFC 9114 §4.4 for the last.
NOT_SPOKEN: list[list[tuple[bytes, bytes]]] = [
    [(b":method", b"CONNECT"), *GET[1:], (b":protocol", b"connect-udp")],
    [(b":method", b"CONNECT"), *GET[1:], (b":protocol", b"webtransport")],
    [(b":method", b"CONNECT"), *GET[1:], (b":protocol", b"http")],
    [(b":method", b"CONNECT"), (b":authority", b"elsewhere:25")],
]


@pytest.mark.parametrize("fields", NOT_SPOKEN)
def test_regression_an_unknown_protocol_was_called_malformed(fields: list[tuple[bytes, bytes]]) -> None:
    asked: list[str] = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        asked.append(scope["type"])

    @asynchronous
    async def test() -> None:
        async with served(app) as server, raw_client(server) as client:
            stream = await client.open_bi()
            await stream.write(headers(*fields))
            reader, receive = _native.Http3Reader("response", 1 << 16), stream.receive
            told: Any = await receive._line.run(lambda: reader.poll(receive._native, 1 << 16))
            assert told[0] == {":status": b"501"}
            assert await stream.stopped() == ErrorCode.NO_ERROR
        assert not asked

    test()


@asynchronous
async def test_regression_a_client_that_takes_no_fields_had_the_server_report_a_bug() -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    control = number(0) + frame(4, number(6) + number(1))
    async with served() as server, raw_client(server, control) as client:
        await until(lambda: any(link.peer_limit == 1 for link in server._links))
        for asking in (headers(*NOT_SPOKEN[0]), REQUEST):
            stream = await client.open_bi()
            await stream.write(asking)
            assert (await outcome(stream))[0] == ErrorCode.INTERNAL_ERROR
        await until(lambda: not server._requests)
    # The application could not answer.
    assert [type(context["exception"]) for context in reported] == [ValueError]
    assert "the application failed" in reported[0]["message"]


def test_regression_a_burst_of_clients_passed_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "CLIENTS", 2)

    @asynchronous
    async def test() -> None:
        async with served() as server, contextlib.AsyncExitStack() as stack:
            arrival = server._server._arrival
            tell, arrival.set = arrival.set, lambda: None  # type: ignore[method-assign]  # held back
            clients = [
                await stack.enter_async_context(raw_client(server, None, quic.Config(idle_timeout=None)))
                for _ in range(5)
            ]
            await until(lambda: len(server._server._backlog) == 5)
            arrival.set = tell  # type: ignore[method-assign]  # held back
            arrival.set()
            for client in clients[2:]:
                await ends(client, ErrorCode.EXCESSIVE_LOAD)
            assert len(server._links) == 2

    test()


def test_a_request_whose_headers_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "PATIENCE", 0.05)

    @asynchronous
    async def test() -> None:
        async with served() as server, raw_client(server) as client:
            stream = await client.open_bi()
            await stream.write(REQUEST[:-1])
            assert await outcome(stream) == (ErrorCode.REQUEST_INCOMPLETE, ErrorCode.REQUEST_INCOMPLETE)
            await until(lambda: not server._requests)

    test()


def test_requests_beyond_what_the_server_bears_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "REQUESTS", 3)

    @asynchronous
    async def test() -> None:
        async with served() as server, raw_client(server) as client, client_of(server) as other:
            streams = [await client.open_bi() for _ in range(3)]
            for stream in streams:
                await stream.write(REQUEST[:-1])
            await until(lambda: len(server._requests) == 3)
            with pytest.raises((http3.RequestReset, http3.RequestStopped), match="REQUEST_REJECTED"):
                await other.get("/")
            for stream in streams:
                stream.reset()
            await until(lambda: not server._requests)
            assert (await other.get("/")).status_code == 200

    test()


@asynchronous
async def test_a_body_of_another_length() -> None:
    seen: list[str] = []

    async def read(scope: dict[str, Any], receive: Any, send: Any) -> None:
        while (message := await receive())["type"] == "http.request":
            if not message["more_body"]:
                return await answer(send, 200)
        seen.append(message["type"])
        return None

    async with served(read) as server, raw_client(server) as client:
        for said in (b"123", b"12345"):
            stream = await client.open_bi()
            await stream.write(headers(*GET, (b"content-length", b"4")) + frame(0, said))
            await stream.finish()
            back, _ = await outcome(stream)
            assert back in (ErrorCode.MESSAGE_ERROR, ErrorCode.INTERNAL_ERROR)
    assert seen == ["http.disconnect"] * 2


def test_ten_thousand_streams_that_are_opened_and_reset() -> None:
    """Some with half a request, some with all of it: what that starts is bounded, and others are served."""

    async def main() -> None:
        running = most = 0

        async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                while (await receive())["type"] != "http.disconnect":
                    with contextlib.suppress(OSError):
                        await answer(send, 200)
            finally:
                running -= 1

        async with served(app) as server, raw_client(server) as client, client_of(server) as other:
            for count in range(STREAMS):
                stream = await client.open_bi()
                with contextlib.suppress(quic.QuicError):
                    await stream.write(REQUEST[: count % (len(REQUEST) + 1)] or b"\x01")
                stream.reset(ErrorCode.REQUEST_CANCELLED)
                stream.stop(ErrorCode.REQUEST_CANCELLED)
                if count % 1000 == 0:
                    assert (await other.get("/")).status_code == 200
            await client.close(drain=0)
            await until(lambda: not running)
            assert most <= 2 * quic.Config().bi_streams
            assert len(server._links) <= 2

    run(main(), limit=50, debug=False)


@asynchronous
async def test_bytes_from_a_fuzzer() -> None:
    """Frames with random types, lengths and contents, on random streams, cut and ended at random places."""
    dice = random.Random(SEED)
    kinds = [0, 1, 3, 4, 5, 7, 0xD, 0x21, 0xF0700, 2, 6]

    def piece() -> bytes:
        content = dice.choice([dice.randbytes(dice.randrange(40)), b"\0\0" + dice.randbytes(9), REQUEST, b""])
        whole = frame(dice.choice(kinds), content)
        return whole[: dice.randrange(1, len(whole) + 1)] if dice.random() < 0.1 else whole

    async def abuse(server: http3.Server) -> None:
        async with raw_client(server) as client:
            with contextlib.suppress(quic.QuicError):
                for _ in range(12):
                    stream = await client.open_bi() if dice.random() < 0.7 else await client.open_uni()
                    start = REQUEST if dice.random() < 0.5 else number(dice.randrange(5))
                    await stream.write(start + b"".join(piece() for _ in range(dice.randrange(6))))
                    if dice.random() < 0.7:
                        await stream.finish()
                    else:
                        stream.reset(dice.randrange(0x120))

    async with served() as server:
        for _ in range(40):
            await asyncio.gather(*(abuse(server) for _ in range(4)))
            async with client_of(server) as client:
                assert (await client.request("POST", "/whole", content=b"well")).content == b"well"


# What a server must not answer, and what the caller is told.
ANSWERS: list[tuple[bytes, str]] = [
    (b"", "ended before its headers"),
    (headers((b"a", b"b")), "no status"),
    (headers((b":status", b"2x0")), "no status"),
    (headers((b":status", b"101")), "no status"),
    (headers((b":status", b"200"), (b":path", b"/")), "pseudo-header field"),
    (headers((b":status", b"100")) * 40 + OK, "too many interim"),
    (headers((b":status", b"103")), "ended before its headers"),
    (headers((b":status", b"200"), (b"content-length", b"4")) + frame(0, b"123"), "another length"),
    (frame(0, b"data"), "must not be"),
    (OK + headers((b"a", b"b")) * 2, "must not be"),
    (OK + frame(0, b"data") + OK, "pseudo-header field"),
    (frame(5, b"\0"), "a push"),
    (OK[:-1], "within a frame"),
    (frame(1, b"\0\0\xff\xff\xff"), "cannot be read"),
    (frame(1, b"\0\0" + b"\xdd" * 5000), "too large"),
    (frame(1, bytes(70_000)), "too large"),
]


@pytest.mark.parametrize(("said", "text"), ANSWERS)
def test_a_server_that_gives_no_answer(said: bytes, text: str) -> None:
    @asynchronous
    async def test() -> None:
        async with raw_server() as (client, server):
            asking = asyncio.create_task(client.get("/"))
            stream = await server.accept_bi()
            with contextlib.suppress(quic.QuicError):
                if said:
                    await stream.write(said)
                await stream.finish()
            with pytest.raises(http3.ProtocolError, match=text):
                await asking

    test()


@asynchronous
async def test_a_server_that_resets_names_its_code() -> None:
    async with raw_server() as (client, server):
        asking = asyncio.create_task(client.get("/"))
        stream = await server.accept_bi()
        stream.reset(ErrorCode.REQUEST_REJECTED)
        with pytest.raises(http3.RequestReset, match="REQUEST_REJECTED") as caught:
            await asking
        assert caught.value.code == ErrorCode.REQUEST_REJECTED
        asking = asyncio.create_task(client.get("/"))
        stream = await server.accept_bi()
        stream.reset(0x1234)
        with pytest.raises(http3.RequestReset, match="0x1234"):
            await asking


@asynchronous
async def test_a_server_that_never_answers() -> None:
    async with raw_server() as (client, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.get("/")
        asking = asyncio.create_task(client.get("/"))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(quic.ConnectionClosed):
            await asking


@asynchronous
async def test_a_server_that_says_nothing_is_given_up() -> None:
    async with raw_server(None, quic.Config(idle_timeout=0.2)) as (client, _):
        with pytest.raises(quic.ConnectionClosed) as caught:
            await client.get("/")
        assert caught.value.by == "timeout"


@asynchronous
async def test_a_server_that_goes_refuses_what_it_has_not_looked_at() -> None:
    async with raw_server(None) as (client, server):
        asking = [asyncio.create_task(client.get("/")) for _ in range(3)]
        streams = [await server.accept_bi() for _ in range(3)]
        control = await server.open_uni()
        await control.write(CONTROL + frame(7, number(streams[1].id)))
        for task in asking[1:]:
            with pytest.raises(http3.GoingAway):
                await task
        await streams[0].write(OK)
        await streams[0].finish()
        assert (await asking[0]).status_code == 200
        with pytest.raises(http3.GoingAway):
            await client.get("/")


SERVER_CONTROLS: list[tuple[bytes, str]] = [
    (CONTROL + frame(7, b"\1"), "ID_ERROR"),
    (CONTROL + frame(7, b"\4") + frame(7, b"\10"), "ID_ERROR"),
    (CONTROL + frame(0xD, b"\1"), "FRAME_UNEXPECTED"),
    (number(1) + b"\0", "ID_ERROR"),
]


@pytest.mark.parametrize(("said", "text"), SERVER_CONTROLS)
def test_a_server_that_breaks_a_rule_of_the_connection(said: bytes, text: str) -> None:
    @asynchronous
    async def test() -> None:
        async with raw_server(None) as (client, server):
            asking = asyncio.create_task(client.get("/"))
            asked = await server.accept_bi()
            stream = await server.open_uni()
            await stream.write(said)
            with pytest.raises(http3.ProtocolError, match=text):
                await asking
            assert asked.id == 0
            with pytest.raises(http3.ProtocolError, match=text):
                await client.get("/")
            await ends(server, getattr(ErrorCode, text))

    test()


@asynchronous
async def test_a_server_that_asks() -> None:
    async with raw_server() as (client, server):
        stream = await server.open_bi()
        await stream.write(REQUEST)
        await ends(server, ErrorCode.STREAM_CREATION_ERROR)
        with pytest.raises(http3.ProtocolError, match="a server opened a stream"):
            await client.get("/")


@asynchronous
async def test_fields_that_the_server_does_not_take_are_not_sent() -> None:
    settings = number(0) + frame(4, number(6) + number(300))
    async with raw_server(settings) as (client, _):
        await until(lambda: client._link.peer_limit == 300)
        with pytest.raises(ValueError, match="the peer takes 300"):
            await client.get("/", headers={"a": "b" * 300})


def test_a_reader_says_which_streams_there_are() -> None:
    with pytest.raises(ValueError, match="there is no stream"):
        _native.Http3Reader("push", 1)
