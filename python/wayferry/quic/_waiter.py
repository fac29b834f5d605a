"""A task's wait for a token, which is shorter than a future's, and a call when it is ready.

An `asyncio.Future` wakes its task a turn of the loop later, because it may have many callbacks, and anybody
may set it. Here there is one task and only the loop wakes it, so the task goes on at once. That saves a turn,
and its system call, for every message that somebody waits for.

The invariant: `fire` is called by the loop, never from within a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context


class Waiter:
    """Await it in one task. To the task it is a future, by the protocol that `asyncio.isfuture` asks for."""

    __slots__ = ("_asyncio_future_blocking", "_callback", "_cancelled", "_context", "_loop", "_message")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._asyncio_future_blocking = False
        self._loop = loop
        self._callback: Callable[[Waiter], object] | None = None
        self._context: Context | None = None
        self._cancelled = False
        self._message: object = None

    def fire(self) -> None:
        """Lets the task go on, now. Nothing happens when it went on already, or was cancelled."""
        callback, context = self._callback, self._context
        if callback is not None and context is not None:
            self._callback = None
            context.run(callback, self)

    def fire_soon(self) -> None:
        """Lets the task go on in the loop's next turn; this may be called from anywhere in the loop's
        thread."""
        self._loop.call_soon(self.fire)

    def __await__(self) -> Generator[Waiter, None, None]:
        self._asyncio_future_blocking = True
        yield self

    # What a task asks of a future

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def add_done_callback(self, callback: Callable[[Waiter], object], *, context: Context) -> None:
        self._callback = callback
        self._context = context

    def cancel(self, msg: object = None) -> bool:
        """As `Future.cancel`: the task learns of it in the loop's next turn. False: it goes on already."""
        callback = self._callback
        if callback is None:
            return False
        self._callback = None
        self._cancelled = True
        self._message = msg
        self._loop.call_soon(callback, self, context=self._context)
        return True

    def result(self) -> None:
        if self._cancelled:
            # anyio knows its own cancellations by their message.
            raise asyncio.CancelledError() if self._message is None else asyncio.CancelledError(self._message)


class Call:
    """In place of a `Waiter`: what is called when the token is ready, and no task."""

    __slots__ = ("_loop", "fire")

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        self._loop = loop
        self.fire = call

    def fire_soon(self) -> None:
        """As `Waiter.fire_soon`."""
        self._loop.call_soon(self.fire)
