"""Bugs that were there once; each test failed before its bug was mended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from conftest import Pair, run, until

from wayferry import quic

Waits = Callable[[quic.Connection], Awaitable[Any]]
CANCELLED: dict[str, Waits] = {
    "accept": lambda connection: connection.accept_uni(),
    "streams": lambda connection: connection.streams(),
    "datagram": lambda connection: connection.receive_datagram(),
    "closed": lambda connection: connection.closed(),
}


async def message_of(waits: Awaitable[Any], reactor: Any) -> tuple[Any, ...]:
    """What the task of `waits` is told when it is cancelled with "why" while it waits."""
    seen: list[tuple[Any, ...]] = []

    async def wait() -> None:
        try:
            await waits
        except asyncio.CancelledError as error:
            seen.append(error.args)
            raise

    task = asyncio.create_task(wait())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel("why")
    await asyncio.wait([task])
    assert not reactor.waiters
    return seen[0]


@pytest.mark.parametrize("name", CANCELLED)
def test_a_cancelled_wait_keeps_the_message(name: str, pair: Pair) -> None:
    async def main() -> None:
        async with pair() as (client, _server):
            assert await message_of(CANCELLED[name](client), client._reactor) == ("why",)

    run(main())


def test_a_cancelled_read_or_write_keeps_the_message(pair: Pair) -> None:
    async def main() -> None:
        async with pair(config=quic.Config(send_window=1 << 16, stream_window=1 << 16)) as (client, _server):
            stream = await client.open_bi()
            assert await message_of(stream.read(), client._reactor) == ("why",)
            write = asyncio.ensure_future(stream.write(bytes(1 << 22)))
            await until(lambda: client._reactor.waiters)
            write.cancel("why")
            with pytest.raises(asyncio.CancelledError) as caught:
                await write
            assert caught.value.args == ("why",)

    run(main())
