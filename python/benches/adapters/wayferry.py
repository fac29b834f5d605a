"""Ours, by its public interface alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from link import Adapter, Keeper, Link, Reader, Service, Setup, Writer

from wayferry import quic
from wayferry.quic import webtransport


class RawAdapter(Adapter):
    """Raw QUIC."""

    def __init__(self, setup: Setup, service: Service) -> None:
        super().__init__(setup, service)
        self.keeper = Keeper(service)
        self.config = quic.Config(idle_timeout=setup.idle, keep_alive=setup.keep_alive)
        if setup.congestion is not None:
            congestion: Any = setup.congestion
            self.config = replace(self.config, congestion=congestion)

    async def listen(self, port: int) -> None:
        tls = quic.ServerTls(str(self.setup.cert), str(self.setup.key), alpn=["bench"])
        server = await quic.serve("127.0.0.1", port, tls=tls, config=self.config)
        self.route(server)
        self.keeper.start(self.accept(server))

    def route(self, server: Any) -> None:
        """Raw connections need none."""

    async def accept(self, server: Any) -> None:
        async for connection in server:
            self.keeper.start(self.attend(connection))

    async def attend(self, connection: Any) -> None:
        link = WayferryLink(connection, self.service)
        self.accepted.append(link)
        await connection.closed()
        self.accepted.remove(link)
        link.keeper.stop()

    async def connect(self, port: int) -> Link:
        connection = await quic.connect("127.0.0.1", port, tls=self.trust(["bench"]), config=self.config)
        return WayferryLink(connection, self.service)

    def trust(self, alpn: list[str]) -> Any:
        return quic.ClientTls(
            pins=[quic.fingerprint(str(self.setup.cert))], alpn=alpn, server_name="localhost"
        )


class WebAdapter(RawAdapter):
    """WebTransport."""

    def route(self, server: Any) -> None:
        async def handle(request: Any) -> None:
            await self.attend(await request.accept())

        server.route(PATH, handle)

    async def connect(self, port: int) -> Link:
        tls = self.trust([])
        session = await webtransport.connect(f"https://127.0.0.1:{port}{PATH}", tls=tls, config=self.config)
        return WayferryLink(session, self.service)


class WayferryLink(Link):
    """One connection or session."""

    def __init__(self, connection: Any, service: Service) -> None:
        self.connection = connection
        self.service = service
        self.keeper = Keeper(service)
        self.keeper.start(self.uni())
        self.keeper.start(self.bi())
        self.keeper.start(self.datagrams())

    async def uni(self) -> None:
        try:
            async for stream in self.connection.accept_uni():
                self.keeper.start(self.sink(stream))
        except quic.ConnectionClosed:
            return  # the task that waits for what did not come says so

    async def bi(self) -> None:
        try:
            async for stream in self.connection.accept_bi():
                self.keeper.start(self.echo(stream))
        except quic.ConnectionClosed:
            return

    async def datagrams(self) -> None:
        try:
            async for data in self.connection.datagrams():
                self.service.datagram(data)
        except quic.ConnectionClosed:
            return

    async def sink(self, stream: Any) -> None:
        check = self.service.check()
        async for chunk in stream:
            check.feed(chunk)
        check.end()

    async def echo(self, stream: Any) -> None:
        async for chunk in stream.receive:
            await stream.send.write(chunk)
        await stream.send.finish()

    async def open_uni(self) -> Writer:
        stream: Writer = await self.connection.open_uni()
        return stream

    async def open_bi(self) -> tuple[Writer, Reader]:
        stream = await self.connection.open_bi()
        return stream.send, stream.receive

    async def send_datagram(self, data: bytes) -> None:
        await self.connection.send_datagram(data)

    async def close(self) -> None:
        await self.connection.close(drain=0)
        self.keeper.stop()


PATH = "/bench"
