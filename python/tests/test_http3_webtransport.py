"""WebTransport and HTTP/3 on one port: an application with routes for sessions beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from http3_support import CLIENT_TLS, GET, answer, client_of, frame, number, raw_client, served, url_of
from support import asynchronous, echo, ended, until
from test_http3_hostile import REQUEST, headers, outcome

from wayferry import http3, quic
from wayferry.http3 import ErrorCode
from wayferry.quic import _native, webtransport

ASKING = headers(
    (b":method", b"CONNECT"), *GET[1:3], (b":path", b"/here?q=1"), (b":protocol", b"webtransport")
)
CLOSE = frame(0, number(0x2843) + number(8) + (7).to_bytes(4) + b"said")
"""A capsule that ends a session (draft-ietf-webtrans-http3 §6)."""


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    await answer(send, 200, b"page")


@asynccontextmanager
async def site(handler: webtransport.Handler) -> AsyncIterator[http3.Server]:
    async with served(app) as server:
        server.route("/here", handler)
        yield server


async def open_until_closed(request: webtransport.Request) -> None:
    session = await request.accept()
    await session.closed()


@asynchronous
async def test_a_page_and_its_session_come_from_one_port() -> None:
    seen: list[Any] = []

    async def handler(request: webtransport.Request) -> None:
        seen.append((request.path, request.authority, request.origin, request.remote_addr[0]))
        async with await request.accept() as session:
            seen.append(session.url)
            await session.send_datagram(await session.receive_datagram())
            back = await session.open_uni()
            await back.write(await (await session.accept_uni()).read_to_end(1 << 20))
            await back.finish()
            try:
                await echo(session)
            except* quic.ConnectionClosed:
                seen.append(await session.closed())

    async with site(handler) as server, client_of(server) as client:
        url = f"{url_of(server)}/here?q=1"
        async with webtransport.connect(url, tls=CLIENT_TLS) as session:
            assert (await client.get("/")).text == "page"
            await session.send_datagram(b"datagram")
            assert await session.receive_datagram() == b"datagram"
            one = await session.open_uni()
            await one.write(bytes(300_000))
            await one.finish()
            assert await (await session.accept_uni()).read_to_end(1 << 20) == bytes(300_000)
            for size in (0, 1, 300_000):
                stream = await session.open_bi()
                await stream.write(bytes(size))
                await stream.finish()
                assert await stream.read_to_end(size) == bytes(size)
            await session.close(5, "enough")
        await until(lambda: len(seen) == 3)
        assert (await client.get("/")).text == "page"
        await until(lambda: len(server._links) == 1)
    assert seen[0] == ("/here?q=1", url.split("/")[2], None, url.split("/")[2].split(":")[0])
    assert seen[1] == url
    assert (seen[2].by, seen[2].code, seen[2].reason) == ("peer", 5, "enough")


@asynchronous
async def test_a_session_that_the_server_ends() -> None:
    async def handler(request: webtransport.Request) -> None:
        session = await request.accept()
        stream = await session.accept_bi()
        stream.reset(31)
        stream.stop(2**32 - 1)
        await session.close(9, "over")

    async with site(handler) as server:
        async with webtransport.connect(f"{url_of(server)}/here", tls=CLIENT_TLS) as session:
            stream = await session.open_bi()
            await stream.write(b"x")
            assert await stream.stopped() == 2**32 - 1
            with pytest.raises(quic.StreamReset) as caught:
                await stream.read()
            assert caught.value.code == 31
            end = await session.closed()
            assert (end.by, end.code, end.reason) == ("peer", 9, "over")
        await until(lambda: not server._links)


@asynchronous
async def test_a_server_that_closes_ends_its_sessions() -> None:
    async with site(open_until_closed) as server:
        async with webtransport.connect(f"{url_of(server)}/here", tls=CLIENT_TLS) as session:
            await server.close(drain=0)
            end = await session.closed()
            assert (end.by, end.code) == ("peer", 0)
        await until(lambda: not server._links)


@asynchronous
async def test_who_is_not_let_in_goes_on_with_http3() -> None:
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))

    async def handler(request: webtransport.Request) -> None:
        if not reported:
            raise KeyError("handler")
        request.reject(403)

    async with site(handler) as server, raw_client(server) as client:
        for asking, status in (
            (ASKING.replace(b"/here", b"/gone"), b"404"),
            (ASKING, b"500"),
            (ASKING, b"403"),
        ):
            stream = await client.open_bi()
            await stream.write(asking)
            assert await status_of(stream) == {":status": status}
            stream.reset()
        stream = await client.open_bi()
        await stream.write(REQUEST)
        await stream.finish()
        assert await status_of(stream) == {":status": b"200"}
        with pytest.raises(quic.WebTransportRejected) as caught:
            await webtransport.connect(f"{url_of(server)}/elsewhere", tls=CLIENT_TLS)
        assert caught.value.status == 404
    assert len(reported) == 1


@asynchronous
async def test_a_session_has_its_connection_to_itself() -> None:
    async with site(open_until_closed) as server, raw_client(server) as client:
        streams = [await client.open_bi() for _ in range(2)]
        await streams[0].write(ASKING)
        assert await status_of(streams[0]) == {":status": b"200"}
        for asking in (ASKING, REQUEST):
            stream = await client.open_bi()
            await stream.write(asking)
            assert await outcome(stream) == (ErrorCode.REQUEST_REJECTED, ErrorCode.REQUEST_REJECTED)
        # A session of another number.
        stream = await client.open_bi()
        await stream.write(number(0x41) + number(400))
        code = ErrorCode.BUFFERED_STREAM_REJECTED
        assert await outcome(stream) == (code, code)


@asynchronous
async def test_a_second_request_for_a_session_while_the_first_waits() -> None:
    goes_on = asyncio.Event()

    async def handler(request: webtransport.Request) -> None:
        await goes_on.wait()
        await open_until_closed(request)

    async with site(handler) as server, raw_client(server) as client:
        streams = [await client.open_bi() for _ in range(2)]
        await streams[0].write(ASKING)
        await until(lambda: any(link.session_asked for link in server._links))
        await streams[1].write(ASKING)
        rejected = ErrorCode.REQUEST_REJECTED
        assert await outcome(streams[1]) == (rejected, rejected)
        goes_on.set()
        assert await status_of(streams[0]) == {":status": b"200"}


@asynchronous
async def test_streams_of_a_session_that_is_not_there_yet_are_rejected() -> None:
    async with site(open_until_closed) as server, raw_client(server) as client:
        stream = await client.open_bi()
        await stream.write(number(0x41) + number(0) + b"early")
        code = ErrorCode.BUFFERED_STREAM_REJECTED
        assert await outcome(stream) == (code, code)
        one = await client.open_uni()
        await one.write(number(0x54) + number(0) + b"early")
        assert await one.stopped() == code


@asynchronous
async def test_the_end_that_came_with_the_request_is_heard() -> None:
    ends: list[quic.ConnectionClosed] = []

    async def handler(request: webtransport.Request) -> None:
        session = await request.accept()
        ends.append(await session.closed())

    async with site(handler) as server, raw_client(server) as client:
        stream = await client.open_bi()
        await stream.write(ASKING + CLOSE)
        await client.closed()
    assert [(end.by, end.code, end.reason) for end in ends] == [("peer", 7, "said")]


@asynchronous
async def test_a_client_that_never_says_what_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wayferry.http3.asgi.PATIENCE", 0.05)
    async with site(open_until_closed) as server, raw_client(server, None) as client:
        stream = await client.open_bi()
        await stream.write(ASKING)
        incomplete = ErrorCode.REQUEST_INCOMPLETE
        assert await outcome(stream) == (incomplete, incomplete)


@asynchronous
async def test_a_client_that_leaves_before_it_is_let_in() -> None:
    goes_on, ends = asyncio.Event(), []

    async def handler(request: webtransport.Request) -> None:
        await goes_on.wait()
        ends.append(await ended(request.accept()))

    async with site(handler) as server:
        async with raw_client(server) as client:
            stream = await client.open_bi()
            await stream.write(ASKING)
            await until(lambda: any(link.session_asked for link in server._links))
        await until(lambda: all(link.connection._over for link in server._links))
        goes_on.set()
        await until(lambda: ends and not server._links)
    assert [type(end) for end in ends] == [quic.ConnectionClosed]


@asynchronous
async def test_regression_an_accept_that_failed_had_later_requests_rejected() -> None:
    errors: list[BaseException | None] = []

    async def handler(request: webtransport.Request) -> None:
        if not errors:
            native: Any = request._native
            native.incoming.stop(0)
            errors.append(await ended(request.accept()))
        else:
            await open_until_closed(request)

    async with site(handler) as server, raw_client(server) as client:
        for status in (b"500", b"200"):
            stream = await client.open_bi()
            await stream.write(ASKING)
            assert await status_of(stream) == {":status": status}
    assert [type(error) for error in errors] == [ValueError]


HOLDING = quic.Config(stream_window=1, keep_alive=1.0)
"""Of a client that never reads: so it permits one byte of an answer, and is never silent for long."""


@asynchronous
async def test_a_wait_to_accept_that_is_cancelled_ends_the_session() -> None:
    async def handler(request: webtransport.Request) -> None:
        accepting = asyncio.ensure_future(request.accept())
        await asyncio.sleep(0)
        accepting.cancel()
        await asyncio.wait((accepting,))
        assert accepting.cancelled()

    async with site(handler) as server, raw_client(server, config=HOLDING) as client:
        stream = await client.open_bi()
        await stream.write(ASKING)
        end = await client.closed()
        assert (end.by, end.code) == ("peer", ErrorCode.NO_ERROR)
        await until(lambda: not server._links)


@asynchronous
async def test_regression_a_cancelled_accept_left_the_connection_to_the_client() -> None:
    late: list[bool] = []

    async def handler(request: webtransport.Request) -> None:
        try:
            async with asyncio.timeout(0):
                await request.accept()
        except TimeoutError:
            late.append(True)
        # It has other things to do, and the connection does not wait for them.
        await asyncio.Event().wait()

    async with site(handler) as server, raw_client(server, config=HOLDING) as client:
        stream = await client.open_bi()
        await stream.write(ASKING)
        end = await client.closed()
        assert (end.by, end.code, late) == ("peer", ErrorCode.NO_ERROR, [True])


@asynchronous
async def test_who_accepts_in_a_task_of_its_own_may_return() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def handler(request: webtransport.Request) -> None:
        tasks.append(asyncio.create_task(open_until_closed(request)))
        await asyncio.sleep(0)

    async with site(handler) as server:
        async with webtransport.connect(f"{url_of(server)}/here", tls=CLIENT_TLS) as session:
            await session.close(5, "enough")
        await asyncio.wait(tasks)
        await tasks[0]
        await until(lambda: not server._links)


@asynchronous
async def test_routes_that_cannot_be() -> None:
    async with served(app) as server:
        with pytest.raises(ValueError, match="begins with /"):
            server.route("here", open_until_closed)
    async with served(app, quic.Config(datagrams=False)) as server:
        with pytest.raises(ValueError, match=r"^datagrams: "):
            server.route("/here", open_until_closed)


@asynchronous
async def test_clients_hear_of_sessions_where_there_are_routes() -> None:
    for routed in (False, True):
        async with served(app) as server:
            if routed:
                server.route("/here", open_until_closed)
            async with raw_client(server) as client:
                control = await client.accept_uni()
                assert await control.read_exactly(1) == number(0)
                reader = _native.Http3Reader("server", 1 << 16)
                poll = partial(reader.poll, control._native, 1 << 16)
                settings = await control._line.run(poll)
                assert isinstance(settings, dict)
                assert settings[0x8] == 1
                assert (0x33 in settings, 0xC671706A in settings) == (routed, routed)


async def status_of(stream: quic.BiStream) -> dict[str, bytes]:
    """The pseudo-header fields of an answer."""
    reader, receive = _native.Http3Reader("response", 1 << 16), stream.receive
    told: Any = await receive._line.run(lambda: reader.poll(receive._native, 1 << 16))
    pseudo: dict[str, bytes] = told[0]
    return pseudo
