"""Our server that obeys the commands of `peers.py`."""

from __future__ import annotations

import asyncio

from wayferry import quic

__all__ = ["obey"]

MOST = 16 << 20


async def obey(connection: quic.Connection, stops: list[int]) -> None:
    """Does what the client says on every stream, until the connection ends.

    The codes of stops that the client had watched go to `stops`.
    """
    async with asyncio.TaskGroup() as group:
        group.create_task(_datagrams(connection))
        group.create_task(_uni(connection))
        async for stream in connection.accept_bi():
            group.create_task(_stream(connection, stream, stops))


async def _datagrams(connection: quic.Connection) -> None:
    async for datagram in connection.datagrams():
        await connection.send_datagram(datagram)


async def _uni(connection: quic.Connection) -> None:
    async for stream in connection.accept_uni():
        data = await stream.read_to_end(MOST)
        back = await connection.open_uni()
        await back.write(data)
        await back.finish()


async def _stream(connection: quic.Connection, stream: quic.BiStream, stops: list[int]) -> None:
    line = bytearray()
    while not line.endswith(b"\n"):
        line += await stream.receive.read_exactly(1)
    command, _, argument = line.decode().strip().partition(" ")
    if command == "reset":
        stream.send.reset(int(argument))
    elif command == "stop":
        stream.receive.stop(int(argument))
    elif command == "close":
        await connection.close(code=int(argument), reason="as told", drain=0)
    elif command == "watch":
        await _watch(stream, stops)
    else:
        if command == "update":
            connection.update_keys()
        async for chunk in stream.receive:
            await stream.send.write(chunk)
        await stream.send.finish()


async def _watch(stream: quic.BiStream, stops: list[int]) -> None:
    """Tells the client on this stream how it reset its half, or keeps how it stopped ours."""
    await stream.send.write(b"!")
    reading = asyncio.ensure_future(stream.receive.read())
    stopped = asyncio.ensure_future(stream.send.stopped())
    try:
        await asyncio.wait([reading, stopped], return_when=asyncio.FIRST_COMPLETED)
        if reading.done() and isinstance(error := reading.exception(), quic.StreamReset):
            await stream.send.write(b"reset %d" % error.code)
            await stream.send.finish()
        elif stopped.done() and (code := stopped.result()) is not None:
            stops.append(code)
    finally:
        for task in reading, stopped:
            task.cancel()
        await asyncio.wait([reading, stopped])
