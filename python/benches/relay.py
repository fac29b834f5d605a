"""A bad network of our own: a UDP relay that loses, delays and paces packets, the same ones for a given seed.

    python relay.py LISTEN_PORT SERVER_PORT SEED LOSS ONE_WAY_MS MBPS QUEUE_MS

Each direction loses `LOSS` (0…1) of its packets at random, passes `MBPS` with a queue of at most `QUEUE_MS`,
and delays by `ONE_WAY_MS`. Its own time is not part of any measurement. It ends when its standard input does.
"""

from __future__ import annotations

import heapq
import random
import select
import socket
import sys
import time
from dataclasses import dataclass, field


@dataclass(order=True)
class Parcel:
    """A packet under way."""

    due: float
    number: int
    data: bytes = field(compare=False)
    out: socket.socket = field(compare=False)
    to: tuple[str, int] = field(compare=False)


class Direction:
    """One way through the link."""

    def __init__(self, seed: str, loss: float, delay: float, bytes_per_second: float, queue: float) -> None:
        self.random = random.Random(seed)
        self.loss = loss
        self.delay = delay
        self.pace = bytes_per_second
        self.queue = queue
        self.free = 0.0

    def due(self, now: float, size: int) -> float | None:
        """When a packet that came now is delivered; None: never."""
        lost = self.random.random() < self.loss
        begins = max(now, self.free)
        if lost or begins - now > self.queue:
            return None
        self.free = begins + size / self.pace
        return self.free + self.delay


class Relay:
    """Clients on one port, the server on another."""

    def __init__(self, listen: int, server: int, there: Direction, back: Direction) -> None:
        self.front = bound(listen)
        self.server = ("127.0.0.1", server)
        self.there, self.back = there, back
        self.clients: dict[tuple[str, int], socket.socket] = {}
        self.poll = select.epoll()
        self.poll.register(self.front, select.EPOLLIN)
        self.poll.register(sys.stdin, select.EPOLLIN | select.EPOLLHUP)
        self.behind: dict[int, tuple[socket.socket, tuple[str, int]]] = {}
        self.parcels: list[Parcel] = []
        self.number = 0

    def run(self) -> None:
        while True:
            wait = max(0.0, self.parcels[0].due - time.monotonic()) if self.parcels else -1.0
            for fd, _ in self.poll.poll(wait):
                if fd == sys.stdin.fileno():
                    return
                if fd == self.front.fileno():
                    self.from_clients()
                else:
                    self.from_server(*self.behind[fd])
            self.deliver()

    def from_clients(self) -> None:
        for data, address in received(self.front):
            out = self.clients.get(address)
            if out is None:
                if len(self.clients) >= CLIENTS:
                    continue
                out = self.clients[address] = bound(0)
                self.behind[out.fileno()] = (out, address)
                self.poll.register(out, select.EPOLLIN)
            self.send(self.there, data, out, self.server)

    def from_server(self, behind: socket.socket, client: tuple[str, int]) -> None:
        for data, _ in received(behind):
            self.send(self.back, data, self.front, client)

    def send(self, way: Direction, data: bytes, out: socket.socket, to: tuple[str, int]) -> None:
        due = way.due(time.monotonic(), len(data) + HEADERS)
        if due is not None and len(self.parcels) < PARCELS:
            self.number += 1
            heapq.heappush(self.parcels, Parcel(due, self.number, data, out, to))

    def deliver(self) -> None:
        now = time.monotonic()
        while self.parcels and self.parcels[0].due <= now:
            parcel = heapq.heappop(self.parcels)
            parcel.out.sendto(parcel.data, parcel.to)


def received(source: socket.socket) -> list[tuple[bytes, tuple[str, int]]]:
    packets: list[tuple[bytes, tuple[str, int]]] = []
    while len(packets) < BATCH:
        try:
            packets.append(source.recvfrom(65535))
        except (BlockingIOError, ConnectionRefusedError):
            break
    return packets


def bound(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    made.bind(("127.0.0.1", port))
    return made


def main() -> None:
    listen, server, seed = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    loss, one_way, mbps, queue = (float(value) for value in sys.argv[4:8])
    ways = [
        Direction(f"{seed} {way}", loss, one_way / 1e3, mbps * 125e3, queue / 1e3)
        for way in ("there", "back")
    ]
    relay = Relay(listen, server, ways[0], ways[1])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    relay.run()


# Packets per look, under way, and clients: more than any scenario needs.
BATCH = 128
PARCELS = 65536
CLIENTS = 64
# Bytes of the sockets' buffers; of IP and UDP headers per packet.
BUFFER = 4 << 20
HEADERS = 28

if __name__ == "__main__":
    main()
