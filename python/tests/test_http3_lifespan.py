"""The beginning and the end of a served application: ASGI's lifespan, and what `Server.close()` does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from http3_support import SERVER_TLS, answer, client_of, served
from support import HOST, LIMIT, asynchronous, failing, rounds, until

from wayferry import http3, quic
from wayferry.http3 import _lifespan


@asynchronous
async def test_lifespan_and_its_state() -> None:
    told: list[str] = []

    async def living(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            return await answer(send, 200, scope["state"]["greeting"])
        for event in ("startup", "shutdown"):
            assert (await receive())["type"] == f"lifespan.{event}"
            told.append(event)
            scope["state"]["greeting"] = b"hello"
            await send({"type": f"lifespan.{event}.complete"})
        return None

    async with served(living, lives=True) as server, client_of(server) as client:
        assert told == ["startup"]
        assert (await client.get("/")).content == b"hello"
    assert told == ["startup", "shutdown"]


@asynchronous
async def test_an_application_that_cannot_start() -> None:
    async def failing(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})

    with pytest.raises(RuntimeError, match="did not start: no database"):
        await http3.serve_asgi(failing, HOST, 0, tls=SERVER_TLS)


@asynchronous
async def test_regression_an_application_that_failed_while_it_was_served_was_not_told_of() -> None:
    go = asyncio.Event()
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def dying(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            return await answer(send, 200, b"page")
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await go.wait()
        raise KeyError("worker")

    server = await http3.serve_asgi(dying, HOST, 0, tls=SERVER_TLS)
    async with client_of(server) as client:
        go.set()
        await until(lambda: reported)
        assert (await client.get("/")).content == b"page"
        with pytest.raises(RuntimeError, match=r"lifespan failed: KeyError\('worker'\)") as caught:
            await server.close(drain=0)
    (context,) = reported
    assert context["message"] == "wayferry.http3: the application's lifespan failed"
    assert caught.value.__cause__ is context["exception"]
    await server.closed()


@pytest.mark.parametrize("says", [True, False])
def test_an_application_that_fails_in_stopping_is_told_of_once(says: bool) -> None:
    @asynchronous
    async def test() -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

        async def failing(scope: dict[str, Any], receive: Any, send: Any) -> None:
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            if says:
                await send({"type": "lifespan.shutdown.failed", "message": "no disk"})
            raise OSError("no disk")

        server = await http3.serve_asgi(failing, HOST, 0, tls=SERVER_TLS)
        with pytest.raises(RuntimeError, match=r"did not stop: .*no disk"):
            await server.close(drain=0)
        assert not reported

    test()


@asynchronous
async def test_an_application_without_a_lifespan_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "wayferry.http3"):
        async with served():
            pass
    notes = [record.getMessage() for record in caplog.records if record.name == "wayferry.http3"]
    assert notes == ["the application goes without a lifespan: NotImplementedError()"]


@asynchronous
async def test_closing_lets_requests_end_and_takes_no_more() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            begun.set()
            await go.wait()
            await answer(send, 200, b"done")

    async with http3.serve_asgi(slow, HOST, 0, tls=SERVER_TLS) as server, client_of(server) as client:
        first = asyncio.create_task(client.get("/"))
        await begun.wait()
        closing = asyncio.create_task(server.close(drain=LIMIT))
        await until(lambda: client._link.going is not None)
        with pytest.raises(http3.GoingAway):
            await client.get("/")
        go.set()
        assert (await first).content == b"done"
        await closing
        await server.closed()
        with pytest.raises(quic.QuicError):
            await client.get("/")


@pytest.mark.parametrize("stage", ["requests", "application"])
def test_regression_a_close_that_was_cancelled_waited_all_the_same(stage: str) -> None:
    @asynchronous
    async def test() -> None:
        at: list[str] = []
        over: list[str] = []

        async def stubborn(scope: dict[str, Any], receive: Any, send: Any) -> None:
            try:
                if scope["type"] == "lifespan":
                    await receive()
                    await send({"type": "lifespan.startup.complete"})
                    await receive()
                    at.append("application")
                else:
                    at.append("requests")
                await asyncio.Event().wait()
            finally:
                over.append(scope["type"])

        server = await http3.serve_asgi(stubborn, HOST, 0, tls=SERVER_TLS)
        async with client_of(server) as client:
            asking = asyncio.create_task(client.get("/"))
            await until(lambda: at)
            closing = asyncio.create_task(server.close(drain=LIMIT if stage == "requests" else 0))
            await until(lambda: stage in at and server._closing)
            closing.cancel()
            await rounds(10)
            assert closing.cancelled()
            assert sorted(over) == ["http", "lifespan"]
            await server.closed()
            with pytest.raises(quic.QuicError):
                await asking

    test()


@asynchronous
async def test_an_application_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await asyncio.Event().wait()

    monkeypatch.setattr(_lifespan, "PATIENCE", 0.01)
    server = await http3.serve_asgi(endless, HOST, 0, tls=SERVER_TLS)
    with pytest.raises(RuntimeError, match=r"did not stop: it took longer than 0\.01 s"):
        await server.close(drain=0)
    await server.closed()


@asynchronous
async def test_regression_a_server_whose_socket_failed_was_waited_for_without_an_end() -> None:
    told: list[str] = []
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def living(scope: dict[str, Any], receive: Any, send: Any) -> None:
        for _ in range(2):
            told.append((await receive())["type"])
            await send({"type": f"{told[-1]}.complete"})

    async with http3.serve_asgi(living, HOST, 0, tls=SERVER_TLS) as server:
        with failing(server.local_addr):
            await server.closed()
    (context,) = reported
    assert context["message"].endswith("ends, as no more clients can come")
    assert isinstance(context["exception"], OSError)
    assert told == ["lifespan.startup", "lifespan.shutdown"]


@asynchronous
async def test_regression_a_program_that_closed_late_was_not_told_how_the_application_had_stopped() -> None:
    asyncio.get_running_loop().set_exception_handler(lambda _, context: None)

    async def failing_to_stop(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.failed", "message": "no disk"})

    server = await http3.serve_asgi(failing_to_stop, HOST, 0, tls=SERVER_TLS)
    with failing(server.local_addr):
        await server.closed()
    with pytest.raises(RuntimeError, match="did not stop: no disk"):
        await server.close(drain=0)
