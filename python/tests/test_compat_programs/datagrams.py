"""A program for aioquic: datagrams that come back, and PINGs."""

import asyncio

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import DatagramFrameReceived, QuicEvent


class Server(QuicConnectionProtocol):
    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, DatagramFrameReceived):
            self._quic.send_datagram_frame(event.data[::-1])
            self.transmit()


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.answers = asyncio.Queue()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, DatagramFrameReceived):
            self.answers.put_nowait(event.data)

    async def exchange(self, data):
        """Sends until it is answered: datagrams may get lost."""
        while True:
            self._quic.send_datagram_frame(data)
            self.transmit()
            try:
                async with asyncio.timeout(1):
                    while (answer := await self.answers.get()) != data[::-1]:
                        pass
                    return answer
            except TimeoutError:
                continue


async def start(cert: str, key: str):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["ping"], max_datagram_frame_size=65536)
    configuration.load_cert_chain(cert, key)
    return await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Server, retry=True)


async def run(port: int, cert: str):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["ping"], max_datagram_frame_size=65536)
    configuration.load_verify_locations(cafile=cert)
    async with connect("localhost", port, configuration=configuration, create_protocol=Client) as client:
        answers = [await client.exchange(b"datagram %d" % number) for number in range(20)]
        await client.ping()
        await asyncio.gather(client.ping(), client.ping())
    return {"answers": answers}
