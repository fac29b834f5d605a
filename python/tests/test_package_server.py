"""Servers: who gets what comes in, what happens to what no task takes, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import Any

import pytest
from conftest import run, until
from support import failing

from wayferry import quic
from wayferry.quic.server import BACKLOG


def test_the_iteration_ends_with_close(server_tls: quic.ServerTls, client_tls: quic.ClientTls) -> None:
    async def main() -> None:
        server = await quic.serve("127.0.0.1", 0, tls=server_tls)
        taken = []

        async def take() -> None:
            async for connection in server:
                taken.append(connection)

        taking = asyncio.create_task(take())
        clients = [await quic.connect(*server.local_addr, tls=client_tls) for _ in range(3)]
        await until(lambda: len(taken) == 3)
        await server.close(6, "over")
        await taking
        for connection in clients:
            end = await connection.closed()
            assert (end.code, end.reason, end.by) == (6, "over", "peer")
        for connection in taken:
            assert (await connection.closed()).by == "local"
        await server.close()

    run(main())


def test_a_cancelled_take_loses_no_connection(server_tls: quic.ServerTls, client_tls: quic.ClientTls) -> None:
    async def main() -> None:
        async with quic.serve("127.0.0.1", 0, tls=server_tls) as server:
            takes = [asyncio.create_task(anext(server)) for _ in range(3)]
            await asyncio.sleep(0)
            takes[0].cancel()
            async with quic.connect(*server.local_addr, tls=client_tls) as client:
                first = await takes[1]
                takes[2].cancel()
                await asyncio.wait(takes)
                await client.send_datagram(b"x")
                assert await first.receive_datagram() == b"x"
                await first.close(drain=0)
            async with quic.connect(*server.local_addr, tls=client_tls) as client:
                await (await anext(server)).close(drain=0)

    run(main())


def test_connections_that_no_task_takes_do_not_pile_up(
    server_tls: quic.ServerTls, client_tls: quic.ClientTls
) -> None:
    async def main() -> None:
        async with quic.serve("127.0.0.1", 0, tls=server_tls) as server:
            clients = [await quic.connect(*server.local_addr, tls=client_tls) for _ in range(BACKLOG + 3)]
            await until(lambda: len(server._backlog) == BACKLOG)
            for _ in range(BACKLOG + 3):
                await (await anext(server)).close(drain=0)
            assert not server._backlog
            for client in clients:
                await client.closed()

    run(main())


def test_a_busy_port_is_an_os_error(server_tls: quic.ServerTls) -> None:
    async def main() -> None:
        async with quic.serve("127.0.0.1", 0, tls=server_tls) as server:
            with pytest.raises(OSError, match=r".+"):
                await quic.serve(*server.local_addr, tls=server_tls)

    run(main())


def test_a_port_is_free_some_time_after_close_with_all_still_held(
    server_tls: quic.ServerTls, client_tls: quic.ClientTls
) -> None:
    held: list[object] = []

    async def once(port: int) -> int:
        async with quic.serve("127.0.0.1", port, tls=server_tls) as server:
            client = await quic.connect(*server.local_addr, tls=client_tls)
            held.extend([server, client, await anext(server)])
            await client.close()
            return server.local_addr[1]

    async def main() -> None:
        port = await once(0)
        again = None
        while again is None:
            with contextlib.suppress(OSError):
                again = await once(port)
            await asyncio.sleep(0)
        assert again == port

    run(main())


def test_a_dropped_server_is_closed_with_a_warning(
    server_tls: quic.ServerTls, client_tls: quic.ClientTls
) -> None:
    async def main() -> None:
        server = await quic.serve("127.0.0.1", 0, tls=server_tls)
        reactor, backlog = server._reactor, server._backlog
        client = await quic.connect(*server.local_addr, tls=client_tls)
        await until(lambda: backlog)
        with pytest.warns(ResourceWarning, match="unclosed <Server"):
            del server
        assert (await client.closed()).by == "peer"
        await until(lambda: not reactor._registered)

    run(main())


def test_regression_a_server_whose_socket_failed_looked_closed(
    server_tls: quic.ServerTls, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with quic.serve("127.0.0.1", 0, tls=server_tls) as server:
            waiting = asyncio.create_task(anext(server))
            with failing(server.local_addr):
                await asyncio.wait((waiting,))
            for take in (waiting, anext(server)):
                with pytest.raises(OSError, match="the system has failed the UDP socket"):
                    await take
            await server.close(drain=0)

    run(main())
    (record,) = (record for record in caplog.records if record.name == "wayferry.quic")
    assert "no more clients can come: the system has failed" in record.getMessage()


def test_an_exception_passes_through_a_server(server_tls: quic.ServerTls) -> None:
    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            async with quic.serve("127.0.0.1", 0, tls=server_tls):
                raise ZeroDivisionError

    run(main())


def test_requests_go_to_their_handlers(server_tls: quic.ServerTls, client_tls: quic.ClientTls) -> None:
    async def main() -> None:
        async with quic.serve("127.0.0.1", 0, tls=server_tls) as server:
            server.route("/echo", echo)
            server.route("/silent", silent)
            server.route("/teapot", teapot)
            server.route("/broken", broken)
            port = server.local_addr[1]
            async with quic.webtransport.connect(
                f"https://127.0.0.1:{port}/echo?query", tls=client_tls
            ) as session:
                stream = await session.open_bi()
                await stream.write(b"over HTTP/3")
                await stream.finish()
                assert await stream.read_to_end(100) == b"over HTTP/3"
            for path, status in {"/silent": 404, "/teapot": 418, "/nowhere": 404}.items():
                assert await rejection(port, path, client_tls) == status
            failed = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
            assert await rejection(port, "/broken", client_tls) == 500
            assert isinstance(failed[0]["exception"], ZeroDivisionError)
            # A raw connection comes out of the iteration meanwhile.
            async with (
                quic.connect("127.0.0.1", port, tls=client_tls) as client,
                await anext(server) as accepted,
            ):
                assert (client.url, accepted.url) == (None, None)

    run(main())


def test_close_cancels_the_handlers(server_tls: quic.ServerTls, client_tls: quic.ClientTls) -> None:
    async def main() -> None:
        server = await quic.serve("127.0.0.1", 0, tls=server_tls)
        cancelled = []

        async def wait(request: quic.webtransport.Request) -> None:
            async with await request.accept() as session:
                try:
                    await session.accept_uni()
                except asyncio.CancelledError:
                    cancelled.append(request.path)
                    raise

        server.route("/wait", wait)
        url = f"https://127.0.0.1:{server.local_addr[1]}/wait"
        session = await quic.webtransport.connect(url, tls=client_tls)
        await until(lambda: server._reactor.waiters)
        await server.close()
        assert cancelled == ["/wait"]
        assert (await session.closed()).by == "peer"
        gc.collect()

    run(main())


def test_a_request_is_answered_once(server_tls: quic.ServerTls, client_tls: quic.ClientTls) -> None:
    async def main() -> None:
        async with quic.serve("127.0.0.1", 0, tls=server_tls) as server:
            errors: list[Exception] = []

            async def twice(request: quic.webtransport.Request) -> None:
                for status in (200, 600, 403, 404):
                    try:
                        request.reject(status)
                    except ValueError as error:
                        errors.append(error)
                try:
                    await request.accept()
                except ValueError as error:
                    errors.append(error)

            server.route("/twice", twice)
            assert await rejection(server.local_addr[1], "/twice", client_tls) == 403
            await until(lambda: len(errors) == 4)

    run(main())


@pytest.mark.parametrize(
    "url", ["http://localhost/", "https:///path", "localhost", "https://localhost:99999/"]
)
def test_a_url_that_is_none(url: str, client_tls: quic.ClientTls) -> None:
    with pytest.raises(ValueError, match=r"URL|[Pp]ort"):
        quic.webtransport.connect(url, tls=client_tls)


def test_a_route_is_a_path(server_tls: quic.ServerTls) -> None:
    async def main() -> None:
        async with quic.serve("127.0.0.1", 0, tls=server_tls) as server:
            with pytest.raises(ValueError, match="begins with /"):
                server.route("echo", echo)

    run(main())


async def rejection(port: int, path: str, tls: quic.ClientTls) -> int:
    """The status that a request for `path` is rejected with."""
    with pytest.raises(quic.WebTransportRejected) as caught:
        await quic.webtransport.connect(f"https://127.0.0.1:{port}{path}", tls=tls)
    return caught.value.status


async def echo(request: quic.webtransport.Request) -> None:
    assert request.path == "/echo?query"
    assert request.authority.startswith("127.0.0.1:")
    assert request.remote_addr[0] == "127.0.0.1"
    assert request.origin is None
    async with await request.accept() as session:
        async for stream in session.accept_bi():
            await stream.write(await stream.read_to_end(1000))
            await stream.finish()


async def silent(request: quic.webtransport.Request) -> None:
    """Answers nothing."""


async def teapot(request: quic.webtransport.Request) -> None:
    request.reject(418)


async def broken(request: quic.webtransport.Request) -> Any:
    raise ZeroDivisionError
