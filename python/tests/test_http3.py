"""HTTP/3 between this package's own two ends: messages, streams, endings, mistakes of the caller's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from http3_support import CLIENT_TLS, SERVER_TLS, answer, app, body_of, client_of, served, url_of
from support import HOST, asynchronous, until

from wayferry import http3, quic

BIG = bytes(range(256)) * 8192
"""2 MiB: more than any window."""


@asynchronous
async def test_three_lines_are_a_request() -> None:
    async with served() as server:
        response = await http3.get(f"{url_of(server)}/", tls=CLIENT_TLS)
        assert (response.status_code, response.content) == (200, b"")
        response = await http3.request("POST", f"{url_of(server)}/whole", content=b"{}", tls=CLIENT_TLS)
        assert (response.json(), response.text) == ({}, "{}")
        assert repr(response) == "<Response 200, 2 bytes>"


@asynchronous
async def test_the_application_sees_what_was_asked() -> None:
    seen: list[dict[str, Any]] = []

    async def look(scope: dict[str, Any], receive: Any, send: Any) -> None:
        seen.append(scope)
        await answer(send, 200)

    async with served(look) as server:
        headers = [("X-Two", "1"), ("x-two", "2"), ("Accept", "text/plain")]
        await http3.get(f"{url_of(server)}/a%20ä?q=1&r=ö", headers=headers, tls=CLIENT_TLS)
    (scope,) = seen
    authority = f"{HOST}:{server.local_addr[1]}".encode()
    assert scope["headers"][0] == (b"host", authority)
    assert [field for field in scope["headers"] if field[0] in (b"x-two", b"accept")] == [
        (b"x-two", b"1"),
        (b"x-two", b"2"),
        (b"accept", b"text/plain"),
    ]
    assert (scope["method"], scope["scheme"], scope["http_version"]) == ("GET", "https", "3")
    assert (scope["path"], scope["raw_path"]) == ("/a ä", b"/a%20%C3%A4")
    assert scope["query_string"] == b"q=1&r=%C3%B6"
    assert scope["client"][0] == HOST
    assert scope["server"] == server.local_addr


@asynchronous
async def test_headers_of_an_answer() -> None:
    async def many(scope: dict[str, Any], receive: Any, send: Any) -> None:
        fields = [
            (b"Set-Cookie", b"a=1"),
            (b"set-cookie", b"b=2"),
            (b"Content-Type", b"text/plain; charset=latin-1"),
        ]
        await answer(send, 404, "ä".encode("latin-1"), fields)

    async with served(many) as server:
        response = await http3.get(url_of(server), tls=CLIENT_TLS)
    assert response.headers["SET-COOKIE"] == "a=1, b=2"
    assert response.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert "Content-Type" not in list(response.headers)
    assert response.headers["content-type"] == "text/plain; charset=latin-1"
    assert response.headers["date"].endswith("GMT")
    assert response.text == "ä"
    with pytest.raises(http3.StatusError, match="404") as caught:
        response.raise_for_status()
    assert caught.value.status_code == 404


@asynchronous
async def test_large_bodies_flow_both_ways_at_once() -> None:
    """An echo that answers while it reads: who writes everything first would wait for ever."""
    async with served() as server, client_of(server) as client:
        assert (await client.request("POST", "/", content=BIG)).content == BIG

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(BIG), 100_000):
                yield BIG[start : start + 100_000]

        assert (await client.request("PUT", "/", content=pieces())).content == BIG


@asynchronous
async def test_an_exchange_flows_both_ways_piece_by_piece() -> None:
    async with (
        served() as server,
        client_of(server) as client,
        client.stream("POST", "/", content=None) as exchange,
    ):
        head = await exchange.response()
        assert (head.status_code, await exchange.response()) == (200, head)
        for piece in (b"one", b"two", b"three"):
            await exchange.write(piece)
            assert await anext(exchange) == piece
        await exchange.write(b"")
        await exchange.finish()
        assert [piece async for piece in exchange] == []


@asynchronous
async def test_trailers_go_both_ways() -> None:
    got: list[http3.Headers] = []

    async def trailing(scope: dict[str, Any], receive: Any, send: Any) -> None:
        assert scope["extensions"] == {"http.response.trailers": {}}
        await send({"type": "http.response.start", "status": 200, "headers": [], "trailers": True})
        await send({"type": "http.response.body", "body": await body_of(receive)})
        await send({"type": "http.response.trailers", "headers": [(b"X-Sum", b"7")], "more_trailers": True})
        await send({"type": "http.response.trailers", "headers": []})

    async with served(trailing) as server, client_of(server) as client:
        async with client.stream("POST", "/", content=None) as exchange:
            await exchange.write(b"body")
            await exchange.finish({"x-checksum": "1"})
            assert await exchange.read(100) == b"body"
            got.append(exchange.trailers)
        assert (await client.get("/")).trailers == got[0] == {"x-sum": "7"}


BEGUN: list[dict[str, Any]] = [
    {"type": "http.response.start", "status": 200, "trailers": True},
    {"type": "http.response.body", "body": b"text", "more_body": True},
]
"""The begin of an answer that has trailers."""


@asynchronous
async def test_regression_each_message_of_trailers_was_a_section_of_its_own() -> None:
    """A client may take the second one for an error of the whole connection (RFC 9114 §4.1)."""

    async def trailing(scope: dict[str, Any], receive: Any, send: Any) -> None:
        for message in BEGUN:
            await send(message)
        await send({"type": "http.response.body"})
        for number in range(3):
            fields = [(f"X-{number}".encode(), b"%d" % number)]
            message = {"type": "http.response.trailers", "headers": fields, "more_trailers": number < 2}
            await send(message)

    async with served(trailing) as server, client_of(server) as client:
        for _ in range(2):
            response = await client.get("/")
            assert response.content == b"text"
            assert response.trailers == {"x-0": "0", "x-1": "1", "x-2": "2"}


@asynchronous
async def test_regression_trailers_were_sent_in_the_midst_of_a_body() -> None:
    """The answer is not whole then, which its client is told, and other requests go on."""
    end = {"type": "http.response.body"}
    trailers = {"type": "http.response.trailers", "headers": [(b"x", bytes(1000))], "more_trailers": True}
    wrong: dict[str, tuple[list[dict[str, Any]], str]] = {
        "/early": ([trailers], "'http.response.trailers' was sent before the end of the body"),
        "/late": ([end, trailers, BEGUN[1]], "'http.response.body' was sent after the end of the body"),
        "/much": ([end] + [trailers] * 64, "trailers: 66112 bytes where at most 65536 are allowed"),
    }
    errors: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: errors.append(str(context["exception"]))
    )

    async def mistaken(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["path"] not in wrong:
            return await answer(send, 200, b"text")
        for message in [*BEGUN, *wrong[scope["path"]][0]]:
            await send(message)
        return None

    async with served(mistaken) as server, client_of(server) as client:
        for path in wrong:
            with pytest.raises(http3.RequestReset, match="INTERNAL_ERROR"):
                await client.get(path)
        assert (await client.get("/right")).content == b"text"
    assert errors == [text for _, text in wrong.values()]


@asynchronous
async def test_a_server_may_answer_what_it_has_not_read() -> None:
    async def refuse(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await answer(send, 413, b"too much")

    async with served(refuse) as server, client_of(server) as client:
        for _ in range(3):
            response = await client.request("POST", "/", content=BIG)
            assert (response.status_code, response.content) == (413, b"too much")


@asynchronous
async def test_expect_continue() -> None:
    async with (
        served() as server,
        client_of(server) as client,
        client.stream("POST", "/whole", headers={"expect": "100-continue"}, content=None) as exchange,
    ):
        while not exchange.interim:
            waiting = asyncio.create_task(exchange.response())
            await asyncio.wait((waiting,), timeout=0.01)
            waiting.cancel()
            await asyncio.wait((waiting,))
        await exchange.write(b"body")
        await exchange.finish()
        assert await exchange.read(10) == b"body"
        assert [head.status_code for head in exchange.interim] == [100]


@asynchronous
async def test_answers_without_a_body_have_none() -> None:
    async def long(scope: dict[str, Any], receive: Any, send: Any) -> None:
        status = 304 if scope["path"] == "/same" else 200
        await answer(send, status, b"text", [(b"content-length", b"4")])

    async with served(long) as server, client_of(server) as client:
        for method, target, body in (("HEAD", "/", b""), ("GET", "/same", b""), ("GET", "/", b"text")):
            response = await client.request(method, target)
            assert (response.headers["content-length"], response.content) == ("4", body)


@asynchronous
async def test_a_body_beyond_the_limit_is_given_up() -> None:
    async with served() as server, client_of(server) as client:
        with pytest.raises(quic.TooLarge) as caught:
            await client.request("POST", "/", content=BIG, limit=1000)
        assert caught.value.max == 1000
        assert (await client.request("POST", "/", content=b"x" * 1000, limit=1000)).content == b"x" * 1000


@asynchronous
async def test_a_request_that_is_cancelled_is_given_up_on_the_server() -> None:
    begun = asyncio.Event()
    messages: list[dict[str, Any]] = []
    errors: list[BaseException] = []

    async def wait(scope: dict[str, Any], receive: Any, send: Any) -> None:
        messages.append(await receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        messages.append(await receive())
        try:
            await send({"type": "http.response.body", "body": b"text"})
        except OSError as error:
            errors.append(error)
            raise

    async with served(wait) as server, client_of(server) as client:
        asking = asyncio.create_task(client.get("/"))
        await begun.wait()
        asking.cancel()
        await asyncio.wait((asking,))
        assert asking.cancelled()
        await until(lambda: errors)
        assert [message["type"] for message in messages] == ["http.request", "http.disconnect"]


@asynchronous
async def test_an_upload_that_is_cancelled_is_a_disconnect() -> None:
    messages: list[dict[str, Any]] = []

    async def read(scope: dict[str, Any], receive: Any, send: Any) -> None:
        while not messages or messages[-1]["type"] == "http.request":
            messages.append(await receive())

    async with served(read) as server, client_of(server) as client:
        async with client.stream("POST", "/", content=None) as exchange:
            await exchange.write(b"half")
            await until(lambda: messages)
        await until(lambda: len(messages) == 2)
        assert messages == [
            {"type": "http.request", "body": b"half", "more_body": True},
            {"type": "http.disconnect"},
        ]


class LeftError(Exception):
    """As frameworks have one for a client that has left."""


@asynchronous
async def test_regression_a_client_that_left_was_a_failure_of_the_application() -> None:
    """Where a framework has turned the `OSError` of `send` into an error of its own."""
    reported: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))

    async def fail() -> None:
        raise KeyError("group")

    async def framework(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "more_body": True})
        while (await receive())["type"] == "http.request":
            pass
        if scope["path"] == "/mistake":
            raise KeyError("mistake")
        if scope["path"].startswith("/group"):
            async with asyncio.TaskGroup() as group:
                group.create_task(send({"type": "http.response.body"}))
                if scope["path"] == "/group-mistake":
                    group.create_task(fail())
        try:
            await send({"type": "http.response.body"})
        except OSError as error:
            if scope["path"] == "/cause":
                raise LeftError from error
            raise LeftError  # noqa: B904 - as Starlette does

    async with served(framework) as server, client_of(server) as client:
        for path in ("/cause", "/context", "/group", "/mistake", "/group-mistake"):
            async with client.stream("GET", path) as exchange:
                await exchange.response()
            await until(lambda: not server._requests)
    mistake, group = reported
    assert repr(mistake) == "KeyError('mistake')"
    assert isinstance(group, ExceptionGroup)
    assert sorted(type(error).__name__ for error in group.exceptions) == ["Disconnected", "KeyError"]


@asynchronous
async def test_a_slow_reader_holds_the_application_back_and_nobody_else() -> None:
    sent = 0

    async def flood(scope: dict[str, Any], receive: Any, send: Any) -> None:
        nonlocal sent
        if scope["path"] == "/small":
            return await answer(send, 200, b"small")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": bytes(1 << 16), "more_body": True})
            sent += 1 << 16
        return None

    async with (
        served(flood) as server,
        client_of(server) as client,
        client.stream("GET", "/") as exchange,
    ):
        await exchange.response()
        before = -1
        while sent != before:
            before = sent
            assert (await client.get("/small")).content == b"small"
        assert sent < 16 << 20
        for _ in range(100):
            await anext(exchange)
        await until(lambda: sent > before)


@asynchronous
async def test_an_application_that_fails() -> None:
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: reported.append(repr(context["exception"]))
    )

    async def fail(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["path"] == "/silent":
            return
        if scope["path"] == "/late":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise KeyError(scope["path"])

    async with served(fail) as server, client_of(server) as client:
        assert (await client.get("/early")).status_code == 500
        assert (await client.get("/silent")).status_code == 500
        with pytest.raises(http3.RequestReset, match="INTERNAL_ERROR"):
            await client.get("/late")
    assert reported[0] == "KeyError('/early')"
    assert "without a whole answer" in reported[1]
    assert reported[2] == "KeyError('/late')"


SENT_WRONGLY: list[tuple[list[dict[str, Any]], str]] = [
    ([{"type": "http.response.body"}], "before 'http.response.start'"),
    ([{"type": "http.response.start", "status": 99}], "status: an answer has 200 to 999, not 99"),
    ([{"type": "http.response.start", "status": 200}] * 2, "twice"),
    ([{"type": "http.response.start", "status": 200, "headers": [("a", "b")]}], "pairs of bytes"),
    ([{"type": "http.response.start", "status": 200}, {"type": "http.response.push"}], "not known here"),
    (
        [{"type": "http.response.start", "status": 200}, {"type": "http.response.body", "body": "text"}],
        "body: bytes are required, not str",
    ),
    (
        [
            {"type": "http.response.start", "status": 200, "headers": [(b"a b", b"")]},
            {"type": "http.response.body"},
        ],
        "a b: a field's name",
    ),
    (
        [
            {"type": "http.response.start", "status": 200, "headers": [(b"a", b"x\r\ny: z")]},
            {"type": "http.response.body"},
        ],
        "line breaks",
    ),
    (
        [
            {"type": "http.response.start", "status": 200, "trailers": True},
            {"type": "http.response.trailers", "headers": [(b"x-sum", b"7")]},
        ],
        "'http.response.trailers' was sent before the end of the body",
    ),
]


@pytest.mark.parametrize(("messages", "text"), SENT_WRONGLY)
def test_an_applications_mistake_is_named(messages: list[dict[str, Any]], text: str) -> None:
    @asynchronous
    async def test() -> None:
        reported: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(str(context["exception"]))
        )

        async def wrong(scope: dict[str, Any], receive: Any, send: Any) -> None:
            for message in messages:
                await send(message)

        async with served(wrong) as server, client_of(server) as client:
            assert (await client.get("/")).status_code == 500
        assert len(reported) == 1
        assert text in reported[0]

    test()


@asynchronous
async def test_requests_beyond_what_the_server_permits_wait() -> None:
    running = most = 0

    async def count(scope: dict[str, Any], receive: Any, send: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        await answer(send, 200)

    async with served(count, quic.Config(bi_streams=3)) as server, client_of(server) as client:
        await asyncio.gather(*(client.get("/") for _ in range(50)))
    assert most <= 3


@asynchronous
async def test_many_requests_at_once_get_their_own_answers() -> None:
    async with served() as server, client_of(server) as client:

        async def one(number: int) -> None:
            body = str(number).encode() * (number % 50)
            assert (await client.request("POST", "/", content=body)).content == body

        for _ in range(3):
            await asyncio.gather(*(one(number) for number in range(200)))


MISTAKES: list[tuple[str, Any, str]] = [
    ("http://a/", {}, "always encrypted"),
    ("example.org", {}, "https://host"),
    ("https:///x", {}, "https://host"),
    ("https://u:p@a/", {}, "authorization header"),
    ("https://a:99999/", {}, "[Pp]ort"),
    ("https://a/", {"content": "text"}, r"text\.encode"),
    ("https://a/", {"content": 7}, "not int"),
    ("https://a/", {"headers": {"a\n": "b"}}, "a\\\\n: a field's name"),
    ("https://a/", {"headers": {"a": "b\nc"}}, "a: a field's value"),
    ("https://a/", {"headers": {"a": 7}}, "header 'a': a value is str or bytes, not int"),
    ("https://a/", {"headers": ["ab"]}, "pairs of a name and a value, unlike 'ab'"),
    ("https://a/", {"timeout": "5"}, "timeout: a number of seconds or None is required, not str"),
    ("https://a/", {"limit": "5"}, "limit: a number of bytes is required, not str"),
    ("https://a/", {"tls": "cert.pem"}, "tls: a ClientTls is required, not str"),
    ("https://a/", {"headers": {":path": "/"}}, ":path is not a header"),
    ("https://a/", {"headers": {"ä": "x"}}, "ASCII"),
    ("https://a/", {"headers": {"a": "→"}}, "Latin-1"),
    ("https://a/", {"headers": {"connection": "close"}}, "HTTP/3 forbids"),
    ("https://a/", {"method": "GE T"}, "a method is a word"),
    ("https://a/", {"method": "CONNECT"}, "CONNECT"),
    ("/path", {"client": True}, "belongs|begins|https"),
]


@pytest.mark.parametrize(("url", "options", "text"), MISTAKES)
def test_a_callers_mistake_is_named(url: str, options: dict[str, Any], text: str) -> None:
    @asynchronous
    async def test() -> None:
        async with served() as server:
            given = dict(options)
            given.pop("client", None)
            target = url_of(server) if url == "https://a/" else url
            with pytest.raises((ValueError, TypeError), match=text):
                await http3.request(given.pop("method", "GET"), target, **{"tls": CLIENT_TLS, **given})

    test()


@asynchronous
async def test_a_target_has_to_be_one() -> None:
    async with served() as server, client_of(server) as client:
        for target in ("path", f"{url_of(server)}/", "/a b", "/ä"):
            with pytest.raises(ValueError, match=r"target|characters"):
                await client.get(target)
        with pytest.raises(ValueError, match="belongs into the requests"):
            await http3.connect(f"{url_of(server)}/path", tls=CLIENT_TLS)


@asynchronous
async def test_regression_control_characters_in_a_target_were_sent() -> None:
    async with served() as server, client_of(server) as client:
        for character in ("\0", "\x01", "\t", "\r\n", "\x1f", "\x7f"):
            with pytest.raises(ValueError, match=r"^target: .* has characters that a URL has not"):
                await client.get(f"/a{character}b")
            with pytest.raises(ValueError, match=r"^url: .* has control characters"):
                await http3.get(f"{url_of(server)}/a{character}b", tls=CLIENT_TLS)


@asynchronous
async def test_a_server_that_is_none_of_http3() -> None:
    tls = quic.ServerTls(*quic.self_signed([HOST]), alpn=["other"])
    async with quic.serve(HOST, 0, tls=tls) as server:
        with pytest.raises(quic.TlsError):
            await http3.get(url_of(server), tls=quic.ClientTls(pins=[tls.fingerprint]))


@asynchronous
async def test_a_connection_that_ends_ends_its_requests() -> None:
    async def hang(scope: dict[str, Any], receive: Any, send: Any) -> None:
        with contextlib.suppress(ConnectionError):
            await body_of(receive)
        await receive()

    async with served(hang) as server, client_of(server) as client:
        asking = [asyncio.create_task(client.get("/")) for _ in range(3)]
        await until(lambda: len(server._requests) == 3)
        await client.close()
        for task in asking:
            with pytest.raises(quic.ConnectionClosed):
                await task
        with pytest.raises(quic.ConnectionClosed):
            await client.get("/")
        await until(lambda: not server._requests)


def test_a_client_that_is_dropped_says_so() -> None:
    async def main() -> None:
        async with served() as server:
            client = await http3.connect(url_of(server), tls=CLIENT_TLS)
            with pytest.warns(ResourceWarning, match="unclosed <Client https"):
                del client
            await until(lambda: not server._links)

    asyncio.run(main())


@asynchronous
async def test_an_application_is_called() -> None:
    with pytest.raises(TypeError, match="app: an ASGI application"):
        http3.serve_asgi("module:app", HOST, 0, tls=SERVER_TLS)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="tls: a ServerTls is required, not ClientTls"):
        http3.serve_asgi(app, HOST, 0, tls=CLIENT_TLS)  # type: ignore[arg-type]  # the mistake
