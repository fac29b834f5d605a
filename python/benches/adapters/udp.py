"""A floor to stand beside: the same bytes in plain UDP packets, neither encrypted nor sent again.

One system call per packet. A window of packets keeps the receiver's socket from overflowing on
loopback; when a packet is lost nevertheless, the transfer stops and the scenario's time limit ends it.
One stream at a time, one connection per socket.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from link import Adapter, ChunkQueue, Link, Reader, Room, Service, Setup, Writer
from payload import Check


class RawAdapter(Adapter):
    """Packets."""

    def __init__(self, setup: Setup, service: Service) -> None:
        super().__init__(setup, service)
        self.link: UdpLink | None = None

    async def listen(self, port: int) -> None:
        self.link = UdpLink(self.service, bound=port)
        self.accepted.append(self.link)

    async def connect(self, port: int) -> Link:
        self.link = UdpLink(self.service, peer=port)
        return self.link


class UdpLink(Link):
    """One socket."""

    def __init__(self, service: Service, bound: int | None = None, peer: int | None = None) -> None:
        self.service = service
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        if bound is not None:
            self.socket.bind(("127.0.0.1", bound))
        if peer is not None:
            self.socket.connect(("127.0.0.1", peer))
        self.check: Check | None = None
        self.replies = ChunkQueue()
        self.room = Room()
        self.sent = self.acknowledged = self.received = 0
        asyncio.get_running_loop().add_reader(self.socket, self.readable)

    def readable(self) -> None:
        for _ in range(BATCH):
            try:
                packet, address = self.socket.recvfrom(2048)
            except BlockingIOError:
                return
            except ConnectionRefusedError:
                continue
            try:
                self.take(packet, address)
            except Exception as error:
                self.service.fault = self.service.fault or error
                raise

    def take(self, packet: bytes, address: Any) -> None:
        kind = packet[0]
        if kind == DATA:
            if self.check is None:
                self.check = self.service.check()
            self.check.feed(packet[1:])
            self.received += 1
            if self.received % ACK_EVERY == 0:
                self.socket.sendto(bytes([ACK]) + self.received.to_bytes(8, "big"), address)
        elif kind == ACK:
            self.acknowledged = max(self.acknowledged, int.from_bytes(packet[1:], "big"))
            self.room.look()
        elif kind == FIN:
            if self.check is None:
                self.check = self.service.check()
            self.check.end()
            self.check = None
            self.received += 1
            self.socket.sendto(bytes([ACK]) + self.received.to_bytes(8, "big"), address)
        elif kind == ECHO:
            self.socket.sendto(bytes([REPLY]) + packet[1:], address)
        elif kind == REPLY:
            self.replies.push(packet[1:], False)
        elif kind == DATAGRAM:
            self.service.datagram(packet[1:])

    async def send(self, packet: bytes) -> None:
        while True:
            try:
                self.socket.send(packet)
            except BlockingIOError:
                await asyncio.sleep(0)
            else:
                return

    async def open_uni(self) -> Writer:
        return UdpWriter(self, DATA)

    async def open_bi(self) -> tuple[Writer, Reader]:
        return UdpWriter(self, ECHO), self.replies

    async def send_datagram(self, data: bytes) -> None:
        await self.send(bytes([DATAGRAM]) + data)

    async def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self.socket)
        self.socket.close()


class UdpWriter:
    """Cuts what it is given into packets."""

    def __init__(self, link: UdpLink, kind: int) -> None:
        self.link = link
        self.kind = bytes([kind])
        self.counted = kind == DATA

    async def write(self, data: bytes, /) -> None:
        link = self.link
        for at in range(0, len(data), PACKET):
            if self.counted:
                if link.sent - link.acknowledged >= WINDOW:
                    await link.room.until(lambda: link.sent - link.acknowledged < WINDOW - ACK_EVERY)
                link.sent += 1
            await link.send(self.kind + data[at : at + PACKET])

    async def finish(self) -> None:
        if self.counted:
            self.link.sent += 1
            await self.link.send(bytes([FIN]))
        else:
            self.link.replies.push(b"", True)


DATA, ACK, FIN, ECHO, REPLY, DATAGRAM = range(6)
# Bytes of one packet: what a QUIC packet carries on a path of 1500.
PACKET = 1400
# Packets under way, and how many one acknowledgement answers for.
WINDOW = 128
ACK_EVERY = 32
# Packets per turn of the loop; bytes of the socket's buffer.
BATCH = 64
BUFFER = 1 << 20
