"""A program for aioquic: what comes on a stream goes back on it, by events."""

import asyncio
from typing import ClassVar

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    ProtocolNegotiated,
    QuicEvent,
    StopSendingReceived,
    StreamDataReceived,
    StreamReset,
)

UNWANTED = b"stop this one"


class Server(QuicConnectionProtocol):
    told: ClassVar[list[object]] = []

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived):
            if event.data.startswith(UNWANTED):
                self._quic.stop_stream(event.stream_id, 55)
            else:
                self._quic.send_stream_data(event.stream_id, event.data, event.end_stream)
            self.transmit()
        elif isinstance(event, StreamReset):
            self.told.append(("reset", event.stream_id, event.error_code))
        elif isinstance(event, ConnectionTerminated):
            self.told.append((event.error_code, event.frame_type, event.reason_phrase))


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.answers = {}
        self.done = {}
        self.events = []
        self.stopped = asyncio.Event()

    def ask(self, data, size=None):
        stream_id = self._quic.get_next_available_stream_id()
        self.answers[stream_id] = b""
        self.done[stream_id] = asyncio.get_running_loop().create_future()
        step = size or len(data)
        for start in range(0, len(data), step):
            part = data[start : start + step]
            self._quic.send_stream_data(stream_id, part, end_stream=start + step >= len(data))
        self.transmit()
        return stream_id

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived):
            self.answers[event.stream_id] += event.data
            if event.end_stream:
                self.done[event.stream_id].set_result(self.answers[event.stream_id])
            return
        if isinstance(event, StopSendingReceived):
            self.stopped.set()
        if isinstance(event, ProtocolNegotiated | HandshakeCompleted | StopSendingReceived):
            self.events.append(event)


async def start(cert: str, key: str):
    Server.told.clear()
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["other", "echo"])
    configuration.load_cert_chain(cert, key)
    return await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Server)


async def run(port: int, cert: str):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["echo"], idle_timeout=20)
    configuration.load_verify_locations(cafile=cert)
    async with connect("localhost", port, configuration=configuration, create_protocol=Client) as client:
        sent = [b"%d " % number * (number * 10 + 1) for number in range(200)] + [bytes(300_000)]
        ids = [client.ask(data, 5_000) for data in sent]
        answers = await asyncio.gather(*client.done.values())
        abandoned = client._quic.get_next_available_stream_id()
        client._quic.send_stream_data(abandoned, b"never mind")
        client._quic.reset_stream(abandoned, 77)
        unwanted = client._quic.get_next_available_stream_id()
        client._quic.send_stream_data(unwanted, UNWANTED)
        client.transmit()
        await client.stopped.wait()
        # Answered after the reset, so that the server has seen it.
        last = client.ask(b"last")
        await client.done[last]
        alpn = client._quic.tls.alpn_negotiated
        client.close(error_code=0x123, reason_phrase="that is all")
    return {
        "ids": ids,
        "echoed": answers == sent,
        "events": [type(event).__name__ for event in client.events],
        "stopped": [
            (event.stream_id, event.error_code)
            for event in client.events
            if isinstance(event, StopSendingReceived)
        ],
        "abandoned": abandoned,
        "unwanted": unwanted,
        "alpn": alpn,
    }
