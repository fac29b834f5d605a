"""A program for aioquic: files on request, one stream each, through readers and writers."""

import asyncio
import hashlib

from aioquic.asyncio import connect, serve
from aioquic.quic.configuration import QuicConfiguration

SIZES = {"empty": 0, "small": 1000, "large": 3_000_000}


def content(name: str) -> bytes:
    seed = hashlib.sha256(name.encode()).digest()
    return (seed * (SIZES[name] // len(seed) + 1))[: SIZES[name]]


class Files:
    def __init__(self) -> None:
        self.tasks = set()

    def handle(self, reader, writer) -> None:
        task = asyncio.ensure_future(self.answer(reader, writer))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def answer(self, reader, writer) -> None:
        name = (await reader.readline()).decode().strip()
        data = content(name)
        for start in range(0, len(data), 65536):
            writer.write(data[start : start + 65536])
            await writer.drain()
        writer.write_eof()


async def start(cert: str, key: str):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["files"])
    configuration.load_cert_chain(cert, key)
    return await serve("127.0.0.1", 0, configuration=configuration, stream_handler=Files().handle)


async def fetch(client, name: str) -> str:
    reader, writer = await client.create_stream()
    writer.write(name.encode() + b"\n")
    writer.write_eof()
    return hashlib.sha256(await reader.read()).hexdigest()


async def run(port: int, cert: str):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["files"])
    configuration.load_verify_locations(cafile=cert)
    async with connect("127.0.0.1", port, configuration=configuration) as client:
        # One after the other: aioquic gives two streams the same number if neither was written to.
        one = [await fetch(client, name) for name in SIZES]
        both = await asyncio.gather(fetch(client, "large"), fetch(client, "small"))
    return {
        "one": one,
        "both": both,
        "expected": [hashlib.sha256(content(name)).hexdigest() for name in SIZES],
    }
