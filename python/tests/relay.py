"""A UDP relay that loses, doubles and reorders packets as a seed says, for tests of what a bad network does.

It runs on a thread of its own, so that neither a blocked event loop nor its kind matters. Each client has a
socket of its own towards the server, as behind a NAT. A packet that is to be overtaken leaves after a few
later ones, or when none come for a moment: only `hold()` keeps packets for good.
"""

from __future__ import annotations

import random
import selectors
import socket
import threading
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

__all__ = ["Counts", "Faults", "Relay"]

Address = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Probabilities, per packet and direction."""

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0


@dataclass
class Counts:
    """What the relay did so far, both directions together."""

    passed: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0


class Relay:
    """`with Relay(server, faults, seed) as relay:` forwards between `relay.address` and `server`.

    `from_server` holds the beginnings of the server's first packets, for tests that ask for their kinds.
    """

    def __init__(self, server: Address, faults: Faults | None = None, seed: int = 0) -> None:
        self._server = server
        self._faults = faults or Faults()
        self._random = random.Random(seed)
        self._front = _socket(server[0])
        self._up: dict[Address, _Way] = {}
        self._down: list[_Way] = []
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._held: deque[tuple[_Way, bytes]] | None = None
        self._passing: socket.socket | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="relay")
        self._stopping = False
        self.address: Address = self._front.getsockname()
        self.counts = Counts()
        self.from_server: list[bytes] = []

    def __enter__(self) -> Self:
        self._selector.register(self._front, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping = True
        self._wake.send(b"!")
        self._thread.join()
        for one in [self._front, self._wake, self._woken, *(way.sink for way in self._up.values())]:
            one.close()
        self._selector.close()

    def hold(self, *, answers: bool = False) -> None:
        """Keeps every packet from now on, the last few thousand of them; with `answers` only the server's."""
        with self._lock:
            self._held = deque(maxlen=MOST_HELD)
            self._passing = self._front if answers else None

    @property
    def held(self) -> int:
        """Packets that are held now."""
        return len(self._held or ())

    def release(self) -> None:
        """Sends on what was held, and holds no more."""
        with self._lock:
            held, self._held = self._held or deque(), None
        for way, packet in held:
            way.send(packet)

    def _run(self) -> None:
        while not self._stopping:
            late = [way for way in [*self._up.values(), *self._down] if way.late]
            ready = self._selector.select(LATEST_SECONDS if late else None)
            if not ready:
                for way in late:
                    way.flush()
            for key, _ in ready:
                if key.fileobj is self._front:
                    self._drain_front()
                elif key.fileobj is not self._woken:
                    self._drain_back(key.data)

    def _drain_front(self) -> None:
        for _ in range(BATCH):
            try:
                packet, client = self._front.recvfrom(MAX_PACKET)
            except OSError:
                return
            self._forward(self._way_up(client), packet)

    def _drain_back(self, way: _Way) -> None:
        for _ in range(BATCH):
            try:
                packet = way.source.recv(MAX_PACKET)
            except OSError:
                return
            if len(self.from_server) < FIRST_PACKETS:
                self.from_server.append(packet[:PACKET_BEGINNING])
            self._forward(way, packet)

    def _way_up(self, client: Address) -> _Way:
        way = self._up.get(client)
        if way is None:
            back = _socket(self._server[0])
            way = self._up[client] = _Way(self._front, back, self._server)
            down = _Way(back, self._front, client)
            self._down.append(down)
            self._selector.register(back, selectors.EVENT_READ, down)
        return way

    def _forward(self, way: _Way, packet: bytes) -> None:
        with self._lock:
            if self._held is not None and way.source is not self._passing:
                self._held.append((way, packet))
                return
        dice = self._random
        # One roll per fault, whichever the others are: a packet's fate depends on its number and the seed.
        lost, doubled, late = dice.random(), dice.random(), dice.random()
        overtaken_by = dice.randint(1, MOST_OVERTAKING)
        if lost < self._faults.loss:
            self.counts.lost += 1
            return
        self.counts.passed += 1
        if late < self._faults.reorder:
            self.counts.reordered += 1
            way.late.append(_Late(packet, overtaken_by))
        else:
            way.send(packet)
        if doubled < self._faults.duplicate:
            self.counts.duplicated += 1
            way.send(packet)
        way.let_go()


@dataclass
class _Late:
    packet: bytes
    after: int


@dataclass
class _Way:
    """The packets of one client in one direction."""

    source: socket.socket
    sink: socket.socket
    to: Address
    late: deque[_Late] = field(default_factory=deque)

    def send(self, packet: bytes) -> None:
        # A full buffer or a port that is closed by now is one more loss, which is what the relay is for.
        try:
            self.sink.sendto(packet, self.to)
        except OSError:
            return

    def let_go(self) -> None:
        """One more packet passed: sends what has been overtaken enough."""
        for one in self.late:
            one.after -= 1
        for one in [one for one in self.late if one.after < 0]:
            self.late.remove(one)
            self.send(one.packet)

    def flush(self) -> None:
        while self.late:
            self.send(self.late.popleft().packet)


def _socket(host: str) -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setblocking(False)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    one.bind((host, 0))
    return one


BATCH = 64
MAX_PACKET = 65536
MOST_HELD = 4096
MOST_OVERTAKING = 8
LATEST_SECONDS = 0.005
FIRST_PACKETS = 64
PACKET_BEGINNING = 32
