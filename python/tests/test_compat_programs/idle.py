"""A program for aioquic: a connection on which nothing happens ends by itself, on both sides."""

import asyncio

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, QuicEvent


class Quiet(QuicConnectionProtocol):
    ends: asyncio.Queue

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated):
            self.ends.put_nowait((event.error_code, event.frame_type, event.reason_phrase))


async def start(cert: str, key: str):
    Quiet.ends = asyncio.Queue()
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["quiet"], idle_timeout=30)
    configuration.load_cert_chain(cert, key)
    return await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Quiet)


async def run(port: int, cert: str):
    Quiet.ends = asyncio.Queue()
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["quiet"], idle_timeout=0.3)
    configuration.load_verify_locations(cafile=cert)
    async with connect("localhost", port, configuration=configuration, create_protocol=Quiet) as client:
        await client.wait_closed()
    return await Quiet.ends.get()
