"""One side of a scenario: a process that lines of JSON tell what to do, and that answers each with one.

    python peer.py ADAPTER raw|web|http SETUP.json

`{"do": "send", "size": 1024, …}` → `{"bytes": …}`, or `{"error": "…"}`. It does one thing at a time; what its
peer opens is served beside. The native peer (`crates/net/examples/endpoint_bench.rs`) speaks the same.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import adapters
import meter
from link import Adapter, HttpLink, Link, Service, Setup, Writer
from payload import HEADER, percentile

Answer = dict[str, Any]


class Peer:
    """The verbs."""

    def __init__(self, adapter: Adapter, service: Service) -> None:
        self.adapter = adapter
        self.service = service
        self.link: Link | None = None
        self.closing: set[asyncio.Task[None]] = set()
        self.pressed: Writer | None = None

    async def obey(self, order: dict[str, Any]) -> Answer:
        verb: Callable[..., Coroutine[Any, Any, Answer]] = getattr(self, "do_" + order.pop("do"))
        answer = await verb(**order)
        if self.service.fault is not None:
            raise self.service.fault
        return answer

    async def do_listen(self, port: int) -> Answer:
        await self.adapter.listen(port)
        return {}

    async def do_connect(self, port: int) -> Answer:
        self.link = await self.adapter.connect(port)
        return {}

    async def do_accepted(self) -> Answer:
        """The client's one connection, on the server's side."""
        while not self.adapter.accepted:  # noqa: ASYNC110 - libraries of every kind add to it
            await asyncio.sleep(POLL)
        self.link = self.adapter.accepted[-1]
        return {}

    async def do_mark(self) -> Answer:
        """From here on: a new tally, a new peak of memory."""
        self.service.tally.clear()
        return {
            "cpu": meter.cpu_seconds(),
            "rss": meter.resident(),
            "peak": meter.peak(),
            "at": time.monotonic(),
        }

    async def do_slow(self, work: float) -> Answer:
        self.service.tally.work = work
        return {}

    async def do_send(self, size: int, seconds: float, streams: int) -> Answer:
        assert self.link is not None
        pieces = self.service.pattern.pieces(size)
        start = time.monotonic()
        writers = [await self.link.open_uni() for _ in range(streams)]
        sent = await asyncio.gather(*(pump(writer, pieces, start + seconds) for writer in writers))
        return {"bytes": sum(sent), "start": start}

    async def do_press(self, size: int, seconds: float, most: int) -> Answer:
        """Writes as fast as `write` takes it, to a consumer that is slow."""
        assert self.link is not None
        pieces = self.service.pattern.pieces(size)
        writer = self.pressed = await self.link.open_uni()  # dropped, some libraries would reset it
        before = meter.resident()
        pressing = asyncio.ensure_future(press(writer, pieces, most))
        await asyncio.wait({pressing}, timeout=seconds)
        accepted = press_taken[0]
        pressing.cancel()
        with suppress(asyncio.CancelledError):
            await pressing
        return {"bytes": accepted, "growth": max(meter.peak(), meter.resident()) - before}

    async def do_received(self, streams: int) -> Answer:
        tally = self.service.tally
        while tally.ended < streams:
            if self.service.fault is not None:
                raise self.service.fault
            await asyncio.sleep(POLL)
        return {"bytes": tally.size, "last": tally.last, "ended": tally.ended}

    async def do_count(self) -> Answer:
        return {"bytes": self.service.tally.size, "ended": self.service.tally.ended}

    async def do_ping(self, size: int, seconds: float) -> Answer:
        """Round trips of `size` bytes, one at a time, on one stream."""
        assert self.link is not None
        message = self.service.pattern.twice[:size]
        writer, reader = await self.link.open_bi()
        samples = []
        end = time.monotonic() + seconds
        while True:
            start = time.monotonic_ns()
            await writer.write(message)
            got = bytes(await reader.read(READ))
            while len(got) < size:
                got += bytes(await reader.read(READ))
            now = time.monotonic_ns()
            if got != message:
                raise ValueError("the echo differs")
            samples.append(now - start)
            if now / 1e9 >= end:
                break
        await writer.finish()
        if len(await reader.read(READ)):
            raise ValueError("the echo goes on")
        return {"count": len(samples), "seconds": sum(samples) / 1e9, **latency(samples)}

    async def do_handshakes(self, port: int, seconds: float, parallel: int) -> Answer:
        """Connections that are made and closed; a close goes on in the background, as its length differs."""
        start = time.monotonic()
        counts = await asyncio.gather(*(self.shake(port, start + seconds) for _ in range(parallel)))
        return {"count": sum(counts), "seconds": time.monotonic() - start}

    async def shake(self, port: int, end: float) -> int:
        count = 0
        while time.monotonic() < end:
            link = await self.adapter.connect(port)
            count += 1
            task = asyncio.ensure_future(link.close())
            self.closing.add(task)
            task.add_done_callback(self.closing.discard)
            while len(self.closing) > CLOSING:
                await asyncio.wait(self.closing, return_when=asyncio.FIRST_COMPLETED)
        return count

    async def do_cycle(self, seconds: float, parallel: int, most: int = 0) -> Answer:
        """Two-way streams of one byte each way: opened and ended by both sides."""
        start = time.monotonic()
        share = most // parallel if most else 0
        counts = await asyncio.gather(*(self.turn(start + seconds, share) for _ in range(parallel)))
        return {"count": sum(counts), "seconds": time.monotonic() - start}

    async def turn(self, end: float, most: int) -> int:
        assert self.link is not None
        count = 0
        while count < most if most else time.monotonic() < end:
            writer, reader = await self.link.open_bi()
            await writer.write(BYTE)  # aiopquic's WebTransport loses the session over an empty stream
            await writer.finish()
            if bytes(await reader.read(READ)) != BYTE or len(await reader.read(READ)):
                raise ValueError("the echo differs")
            count += 1
        return count

    async def do_fetch(self, size: int, seconds: float, parallel: int) -> Answer:
        """HTTP requests for bodies of `size` bytes, `parallel` at a time."""
        start = time.monotonic()
        counts = await asyncio.gather(*(self.get(size, start + seconds) for _ in range(parallel)))
        return {"count": sum(counts), "seconds": time.monotonic() - start}

    async def get(self, size: int, end: float) -> int:
        assert isinstance(self.link, HttpLink)
        count = 0
        while count == 0 or time.monotonic() < end:
            if await self.link.fetch(size) != size:
                raise ValueError("the body has another length")
            count += 1
        return count

    async def do_churn(self, size: int, seconds: float) -> Answer:
        """One-way streams of one small message each, one after the other."""
        assert self.link is not None
        message = self.service.pattern.twice[:size]
        start = time.monotonic()
        count = 0
        while time.monotonic() < start + seconds:
            writer = await self.link.open_uni()
            await writer.write(message)
            await writer.finish()
            count += 1
        return {"count": count, "start": start}

    async def do_datagrams(self, size: int, seconds: float, rate: float = 0, burst: int = 1) -> Answer:
        """At `rate` per second, `burst` at a time, or as fast as the library takes them."""
        assert self.link is not None
        pattern, send = self.service.pattern, self.link.send_datagram
        start = time.monotonic()
        number = 0
        while (now := time.monotonic()) < start + seconds:
            await send(pattern.datagram(number, size))
            number += 1
            if rate and number % burst == 0:
                await asyncio.sleep(max(0.0, start + number / rate - now))
            elif not rate and number % YIELD == 0:
                await asyncio.sleep(0)
        return {"count": number, "bytes": number * size, "start": start, "header": HEADER.size}

    async def do_arrived(self, most: int) -> Answer:
        """When all datagrams came, or none came for a while."""
        tally = self.service.tally
        seen = -1
        while tally.datagrams < most and tally.datagrams != seen:
            seen = tally.datagrams
            await asyncio.sleep(QUIET)
        answer = latency(tally.latencies) if tally.latencies else {}
        return {"count": tally.datagrams, "bytes": tally.size, "last": tally.last, **answer}

    async def do_block(self, seconds: float) -> Answer:
        time.sleep(seconds)  # noqa: ASYNC251 - that is the scenario
        return {}


async def pump(writer: Writer, pieces: list[bytes], end: float) -> int:
    count, write, each, size = 0, writer.write, len(pieces), len(pieces[0])
    while True:
        for _ in range(LOOK):
            await write(pieces[count % each])
            count += 1
        if time.monotonic() >= end:
            break
    await writer.finish()
    return count * size


async def press(writer: Writer, pieces: list[bytes], most: int) -> None:
    press_taken[0] = 0
    while press_taken[0] < most:
        piece = pieces[press_taken[0] // len(pieces[0]) % len(pieces)]
        await writer.write(piece)
        press_taken[0] += len(piece)
        if press_taken[0] % BREATH == 0:
            await asyncio.sleep(0)


def latency(samples: list[int]) -> Answer:
    return {"p50_us": percentile(samples, 0.5) / 1e3, "p99_us": percentile(samples, 0.99) / 1e3}


async def lines() -> AsyncIterator[str]:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        yield line.decode()


async def main(name: str, kind: str, setup: Setup, out: int) -> None:
    service = Service(setup)
    peer = Peer(adapters.load(name, kind)(setup, service), service)
    async for line in lines():
        try:
            answer = await peer.obey(json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        os.write(out, json.dumps(answer).encode() + b"\n")


def setup_from(path: Path) -> Setup:
    fields = json.loads(path.read_text())
    for key in ("cert", "key", "pattern"):
        fields[key] = Path(fields[key])
    return Setup(**fields)


press_taken = [0]
# Seconds between looks at a tally; without a new datagram until none is expected.
POLL = 0.005
QUIET = 0.3
# Bytes of one read of a round trip; writes between looks at the clock; datagrams between turns of the loop.
READ = 65536
LOOK = 16
YIELD = 64
# Bytes between turns of the loop while pressing.
BREATH = 1 << 20
BYTE = b"\x2a"
# Connections that may be closing at the same time.
CLOSING = 64

if __name__ == "__main__":
    # Libraries may print: only answers go where the parent reads.
    answers = os.dup(1)
    os.dup2(2, 1)
    asyncio.run(main(sys.argv[1], sys.argv[2], setup_from(Path(sys.argv[3])), answers))
    os._exit(0)  # a library's clean-up is not measured
