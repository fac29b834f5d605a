"""Room for the unfinished WebSocket messages of one client.

Each socket may keep `FREE` bytes of a message, no matter what the others do, so that small messages always
come. What a socket keeps beyond that is counted, and when the sum is over `LIMIT` those that keep more wait:
their streams are not read, so the client cannot send. One of them at a time may go on, so that messages which
are begun get finished.

What waits takes up the client's connection window, and may so hold up the one that goes on. So a wait ends
with `Full` when nothing has moved for a while.

Invariant: what is counted is at most `LIMIT` and one message more, and one step of each socket.
"""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["Budget", "Full", "Share"]


class Full(Exception):
    """There is no room, and none comes."""


class Budget:
    """That of one client."""

    __slots__ = ("_moved", "_turn", "_used", "_waiting")

    def __init__(self) -> None:
        self._used = 0
        self._moved = 0.0
        """When `_used` changed last, or a wait was given up, by the loop's clock while some wait."""
        self._turn: Share | None = None
        """Who may go on although there is no room, until its message is whole."""
        self._waiting: deque[tuple[Share, asyncio.Future[None]]] = deque()

    @property
    def used(self) -> int:
        """Bytes that are counted."""
        return self._used

    def share(self) -> Share:
        """One for a further socket."""
        return Share(self)

    def _admits(self, share: Share) -> bool:
        """Whether `share` may keep more now."""
        if self._turn is None and self._used > LIMIT and share._counted:
            self._turn = share
        return not share._counted or self._used <= LIMIT or self._turn is share

    def _wake(self) -> None:
        """Lets go on who may now, first come first served, and who keeps nothing that counts."""
        waiting, self._waiting = self._waiting, deque()
        for share, waiter in waiting:
            if (share._counted and self._waiting) or not self._admits(share):
                self._waiting.append((share, waiter))
            else:
                waiter.set_result(None)


class Share:
    """The room of one socket."""

    __slots__ = ("_budget", "_counted")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._counted = 0

    def keep(self, size: int) -> None:
        """Says that `size` bytes are kept now."""
        budget, counted = self._budget, max(size - FREE, 0)
        if counted != self._counted:
            budget._used += counted - self._counted
            self._counted = counted
            if not counted and budget._turn is self:
                budget._turn = None
            if budget._waiting:
                budget._moved = asyncio.get_running_loop().time()
                budget._wake()

    async def more(self) -> None:
        """Waits until more may be kept. Full: nothing has moved for `PATIENCE`.

        Cancel-safe: it only waits.
        """
        budget = self._budget
        if budget._admits(self):
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        if not budget._waiting:
            budget._moved = loop.time()
        budget._waiting.append((self, waiter))
        try:
            while not waiter.done():
                left = budget._moved + PATIENCE - loop.time()
                if left <= 0:
                    # One at a time: perhaps the others have room then.
                    budget._moved = loop.time()
                    raise Full
                await asyncio.wait((waiter,), timeout=left)
        finally:
            # Who got the turn keeps it: passed on with each wait that is given up, it would bound nothing.
            if not waiter.done():
                budget._waiting.remove((self, waiter))


LIMIT = 64 << 20
"""Bytes that the unfinished messages of one client may have, beyond what each has for nothing."""
FREE = 64 << 10
"""Bytes of a message that a socket may always keep."""
PATIENCE = 10.0
"""Seconds that the messages of a client whose sockets wait may take to move on."""
