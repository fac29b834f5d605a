"""Cancelling any operation at any moment: nothing is lost, nothing happens twice, and no task waits for ever.

Every operation runs as a task that is cancelled after a random number of turns of the loop, again and again
until one attempt gets through. A cancelled write has done nothing and a cancelled read has lost nothing; so
the bytes, numbers and streams that arrive are exactly those of the attempts that succeeded. The seed makes
a failure repeatable.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import os
import random
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

from support import CLIENT_TLS, pair, rounds, run, serving

from wayferry import quic

T = TypeVar("T")

SEED = int(os.environ.get("WAYFERRY_SEED", "20261122"))
CANCELLATIONS = 10_000
EACH = 20
SECONDS = 50.0


class Harrier:
    """Runs operations and cancels them: at random moments, after each turn, at each wait. `cancelled` counts,
    by the operation's name."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.cancelled: collections.Counter[str] = collections.Counter()

    async def retry(self, name: str, operation: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """What the first attempt gives that was not cancelled in time. Its errors pass."""
        while True:
            task = asyncio.ensure_future(_awaited(operation, *arguments))
            patience = self._random.choice(PATIENCE)
            if patience is not None:
                await rounds(patience)
                task.cancel()
            if not await self._was_cancelled(name, task):
                return task.result()

    async def at_each_turn(self, name: str, operation: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """As `retry`, but the attempts are cancelled after no turn of the loop, after one, after two, and so
        on, until one has ended before."""
        for turns in itertools.count():
            task = asyncio.ensure_future(_awaited(operation, *arguments))
            for _ in range(turns):
                await asyncio.sleep(0)
                if task.done():
                    return task.result()
            task.cancel()
            if not await self._was_cancelled(name, task):
                return task.result()
        raise AssertionError

    async def at_each_wait(self, name: str, operation: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """As `retry`, but the attempts are cancelled as they begin to wait for the first time, as soon as
        what the first wait is for is there, as they begin to wait for the second time, and so on, until one
        does not wait so often. That one was never cancelled."""
        for wait in itertools.count():
            for is_late in (False, True):
                task = asyncio.ensure_future(_cut(_awaited(operation, *arguments), wait, is_late))
                if not await self._was_cancelled(name, task):
                    assert not task.cancelling(), f"{name}: wait {wait} was cancelled, and it went on"
                    return task.result()
                assert task.cancelling(), f"{name}: it was cancelled, and not from here"
        raise AssertionError

    async def _was_cancelled(self, name: str, task: asyncio.Task[T]) -> bool:
        """Waits for an attempt."""
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            # The test itself is, by its limit.
            task.cancel()
            raise
        self.cancelled[name] += task.cancelled()
        return task.cancelled()

    def size(self, most: int) -> int:
        return self._random.randrange(1, most)

    def least(self, names: list[str]) -> int:
        """How often the one that was cancelled least was."""
        return min(self.cancelled[name] for name in names)

    @property
    def total(self) -> int:
        return self.cancelled.total()


# Turns of the loop until an attempt is cancelled; None: never.
PATIENCE = [0, 0, 1, 1, 2, 2, 3, 4, 6, 10, 30, None]


async def _awaited(operation: Callable[..., Awaitable[T]], *arguments: object) -> T:
    return await operation(*arguments)


@types.coroutine
def _cut(coroutine: Coroutine[Any, Any, T], wait: int, is_late: bool) -> Generator[Any, Any, T]:
    """Runs `coroutine` in a task of its own, which is cancelled in wait number `wait`."""
    task = asyncio.current_task()
    assert task is not None
    step: Callable[[Any], Any] = coroutine.send
    value: BaseException | None = None
    for number in itertools.count():
        try:
            awaited = step(value)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # a coroutine's value is not typed here
        if number == wait:
            # Its callbacks come in order, this one before the task's.
            if is_late and isinstance(awaited, asyncio.Future):
                awaited.add_done_callback(lambda _: task.cancel())
            else:
                task.cancel()
        try:
            value = yield awaited
            step = coroutine.send
        except BaseException as error:  # it is the coroutine's
            step, value = coroutine.throw, error
    raise AssertionError


def test_ten_thousand_cancellations_lose_and_double_nothing() -> None:
    async def main() -> None:
        harrier = Harrier(SEED)
        # Little room everywhere: every operation often has to wait.
        config = quic.Config(
            stream_window=32 * 1024,
            connection_window=64 * 1024,
            send_window=64 * 1024,
            uni_streams=4,
            bi_streams=4,
            datagram_buffer=8 * 1024,
        )
        async with pair(config=config) as (client, server):
            number = 0
            while harrier.total < CANCELLATIONS or harrier.least(OPERATIONS) < EACH:
                await one_stream(harrier, client, server, number)
                await one_stream(harrier, server, client, number)
                await many_streams(harrier, client, server)
                await numbered_datagrams(harrier, client, server, number)
                number += 1
        print(f"cancelled: {dict(harrier.cancelled)}")

    # The loop's debug mode would take five times as long, most of it for writing down where tasks come from.
    run(main(), limit=SECONDS, debug=False)


OPERATIONS = [
    "write",
    "finish",
    "acked",
    "stopped",
    "read",
    "read_exactly",
    "read_to_end",
    "iterate",
    "unordered",
    "open_uni",
    "open_bi",
    "accept_uni",
    "accept_bi",
    "iterate accept_bi",
    "send_datagram",
    "receive_datagram",
]


async def one_stream(
    harrier: Harrier, sender: quic.Connection, receiver: quic.Connection, number: int
) -> None:
    """A stream whose reader goes through the ways of reading; then what it got is compared."""
    sending = await harrier.retry("open_uni", sender.open_uni)
    data = random.Random(number).randbytes(100_000)

    async def write() -> None:
        at = 0
        while at < len(data):
            piece = data[at : at + harrier.size(20_000)]
            await harrier.retry("write", sending.write, piece)
            at += len(piece)
        await harrier.retry("finish", sending.finish)
        await harrier.retry("acked", sending.acked)
        assert await harrier.retry("stopped", sending.stopped) is None

    async def read() -> None:
        receiving = await harrier.retry("accept_uni", _accept_uni, receiver)
        if number % 2:
            assert await unordered(harrier, receiving, len(data)) == data
        else:
            assert await in_order(harrier, receiving) == data

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        group.create_task(read())


async def _accept_uni(connection: quic.Connection) -> quic.ReceiveStream:
    return await connection.accept_uni()


async def _accept_bi(connection: quic.Connection) -> quic.BiStream:
    return await connection.accept_bi()


async def in_order(harrier: Harrier, receiving: quic.ReceiveStream) -> bytes:
    got = bytearray()
    chunks = aiter(receiving)
    while len(got) < 70_000:
        got += await harrier.retry("read", receiving.read, harrier.size(5000))
        got += await harrier.retry("read_exactly", receiving.read_exactly, harrier.size(5000))
        got += await harrier.retry("iterate", anext, chunks)
    got += await harrier.retry("read_to_end", receiving.read_to_end, 100_000)
    return bytes(got)


async def unordered(harrier: Harrier, receiving: quic.ReceiveStream, size: int) -> bytes:
    got, counted = bytearray(size), 0
    pieces = receiving.unordered()
    while True:
        try:
            offset, piece = await harrier.retry("unordered", anext, pieces)
        except StopAsyncIteration:
            assert counted == size
            return bytes(got)
        got[offset : offset + len(piece)] = piece
        counted += len(piece)


async def many_streams(harrier: Harrier, sender: quic.Connection, receiver: quic.Connection) -> None:
    """More streams than there is credit for; each number arrives once, and no stream without one."""
    count = 12
    got: list[int] = []

    async def send() -> None:
        for number in range(count):
            stream = await harrier.retry("open_bi", sender.open_bi)
            await harrier.retry("write", stream.send.write, b"%d" % number)
            await harrier.retry("finish", stream.send.finish)
            assert await harrier.retry("read_to_end", stream.receive.read_to_end, 100) == b"ok"

    async def receive() -> None:
        streams = receiver.accept_bi()
        for number in range(count):
            if number % 2:
                stream = await harrier.retry("accept_bi", _accept_bi, receiver)
            else:
                stream = await harrier.retry("iterate accept_bi", anext, streams)
            got.append(int(await harrier.retry("read_to_end", stream.receive.read_to_end, 100)))
            await stream.send.write(b"ok")
            await stream.send.finish()

    async with asyncio.TaskGroup() as group:
        group.create_task(send())
        group.create_task(receive())
    assert got == list(range(count))


async def numbered_datagrams(
    harrier: Harrier, sender: quic.Connection, receiver: quic.Connection, round_number: int
) -> None:
    """One datagram at a time, so that no buffer may drop one."""
    for number in range(10):
        data = b"%d %d" % (round_number, number)

        async with asyncio.TaskGroup() as group:
            received = group.create_task(harrier.retry("receive_datagram", receiver.receive_datagram))
            group.create_task(harrier.retry("send_datagram", sender.send_datagram, data))
        assert received.result() == data


def test_cancelled_connects_and_accepts_harm_no_other() -> None:
    async def main() -> None:
        harrier = Harrier(SEED)
        async with serving() as server:
            while harrier.total < 200:
                async with asyncio.TaskGroup() as group:
                    connecting = group.create_task(harrier.retry("connect", _connect, server.local_addr))
                    accepting = group.create_task(harrier.retry("accept", anext, server))
                client, accepted = connecting.result(), accepting.result()
                # Connects that were cancelled late may have left connections of their own in the queue.
                while _secret(accepted) != _secret(client):
                    await accepted.close(drain=0)
                    accepted = await anext(server)
                stream = await client.open_uni()
                await stream.write(b"whole")
                await stream.finish()
                assert await (await accepted.accept_uni()).read_to_end(10) == b"whole"
                await client.close(drain=0)
                await accepted.close(drain=0)

    run(main(), limit=SECONDS)


def _secret(end: quic.Connection) -> bytes:
    """What both ends of a connection know, and no other has."""
    return end.export_keying_material(b"test", b"", 16)


async def _connect(address: tuple[str, int]) -> quic.Connection:
    return await quic.connect(*address, tls=CLIENT_TLS)


def test_cancelled_waits_leave_nothing_behind() -> None:
    """Waits that were given up are forgotten: their number does not grow."""

    async def main() -> None:
        async with pair() as (client, _server):
            stream = await client.open_bi()
            calls: list[Callable[[], Awaitable[object]]] = [
                stream.receive.read,
                stream.send.stopped,
                client.receive_datagram,
                client.closed,
                lambda: _accept_uni(client),
                lambda: _accept_bi(client),
            ]
            sizes = []
            for _ in range(5):
                for _ in range(50):
                    waits = [asyncio.ensure_future(_awaited(call)) for call in calls]
                    await rounds(2)
                    for waiting in waits:
                        waiting.cancel()
                    await asyncio.wait(waits)
                await rounds(2)
                sizes.append(len(asyncio.all_tasks()))
            assert sizes == [sizes[0]] * 5
            # They still work.
            waiting = asyncio.ensure_future(client.receive_datagram())
            await _server.send_datagram(b"still")
            assert await waiting == b"still"

    run(main())
