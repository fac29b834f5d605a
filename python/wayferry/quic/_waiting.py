"""Callers of one kind of operation, one at a time, first come first served.

A native operation keeps one place for one waiter. A `Line` puts the callers behind each other, so that each
gets its own answer and none is forgotten. It costs nothing while no caller has to wait.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from wayferry.quic._reactor import Reactor

T = TypeVar("T")


class Line:
    """The queue before the operation whose token is `token`.

    `callers` counts who is inside or waits. While it is 0, a caller may poll without entering; who then finds
    nothing enters in the same turn and says so (`pending`).
    """

    __slots__ = ("_behind", "callers", "reactor", "token")

    def __init__(self, reactor: Reactor, token: int) -> None:
        self.reactor = reactor
        self.token = token
        self.callers = 0
        self._behind: deque[asyncio.Future[None]] | None = None
        """Who waits for the turn, without the one who has it."""

    async def run(self, poll: Callable[[], T | None]) -> T:
        """What `poll` gives, once it is this caller's turn and there is something."""
        reactor = self.reactor
        reactor.budget -= 1
        if reactor.budget < 0:
            await reactor.breathe()
        pending = False
        if not self.callers:
            value = poll()
            if value is not None:
                return value
            pending = True
        return await self.queue(poll, pending=pending)

    async def queue(self, poll: Callable[[], T | None], *, pending: bool) -> T:
        """`run` without the short way. `pending`: `poll` was just asked, and had nothing."""
        if self.callers:
            await self.enter()
        else:
            self.callers = 1
        try:
            return await self.reactor.until(self.token, poll, pending=pending)
        finally:
            self.leave()

    async def enter(self) -> None:
        """Waits for the turn. Cancel-safe: who is cancelled has left the queue."""
        self.callers += 1
        if self.callers == 1:
            return
        if self._behind is None:
            self._behind = deque()
        turn = self.reactor.loop.create_future()
        self._behind.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():  # it was given in the same moment
                self.leave()
            else:
                with contextlib.suppress(ValueError):  # who left in the same moment has counted it out
                    self._behind.remove(turn)
                    self.callers -= 1
            raise

    def leave(self) -> None:
        """Gives the turn to the next caller."""
        self.callers -= 1
        while self._behind:
            turn = self._behind.popleft()
            if not turn.done():
                turn.set_result(None)
                return
            # Its caller was cancelled, and would find itself among those who wait although none has the turn.
            self.callers -= 1

    def wake(self) -> None:
        """Lets the one who waits poll again."""
        self.reactor.wake(self.token)
