"""What a long life of HTTP/3 costs: requests, clients and servers that are done leave nothing behind."""

from __future__ import annotations

import asyncio

from http3_support import client_of, served
from support import run, until
from test_leaks import grown, open_files, python_objects, resident

REQUESTS = 2400
REQUEST_COST = 500
"""Bytes of memory that the system may take more, for each request; one that stays has more than ten times as
many."""


def test_requests_that_are_done_cost_nothing() -> None:
    """Answered, given up before the answer, given up within it."""

    async def main() -> None:
        async with served() as server, client_of(server) as client:

            async def some(count: int) -> None:
                for _ in range(count):
                    response = await client.request("POST", "/whole", content=b"body", headers={"x-a": "b"})
                    assert response.content == b"body"
                    async with client.stream("POST", "/", content=None) as exchange:
                        await exchange.write(b"body")
                        assert await anext(exchange) == b"body"
                    asking = asyncio.create_task(client.get("/"))
                    await asyncio.sleep(0)
                    asking.cancel()
                    await asyncio.wait((asking,))
                await until(lambda: not server._requests)

            await some(REQUESTS // 6)
            size, objects = resident(), python_objects(client.connection)
            await some(REQUESTS // 3)
            extra = grown(objects, python_objects(client.connection))
            assert extra.pop("objects", 0) < REQUESTS // 20
            assert not extra
            assert resident() - size < REQUESTS * REQUEST_COST
            assert not client._link.requests

    run(main(), limit=50, debug=False)


def test_clients_and_servers_that_are_done_leave_no_file_and_no_task() -> None:
    async def main() -> None:
        async def once() -> None:
            async with served() as server, client_of(server) as client:
                assert (await client.get("/")).status_code == 200

        await once()
        await until(lambda: len(asyncio.all_tasks()) == 1)
        files = open_files()
        for _ in range(10):
            await once()
        await until(lambda: len(asyncio.all_tasks()) == 1 and open_files() <= files)

    run(main())
