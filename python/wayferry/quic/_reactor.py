"""Where the native half's tokens meet the tasks of one event loop.

One `Reactor` per running loop, shared by everything that was opened on it. The native half makes its file
descriptor readable when tokens are ready; the loop then calls `drain`, which wakes who waits for them. It
polls nothing itself and knows neither streams nor connections.

The invariant: no task waits for a token without a poll in the same turn of the loop that said "pending". So a
token that no task waits for may be dropped, and a wait that is cancelled only has to forget itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakMethod, WeakValueDictionary

from wayferry.quic import _native
from wayferry.quic._thread import DrainThread
from wayferry.quic._waiter import Call, Waiter

if TYPE_CHECKING:
    from wayferry.quic.send import SendStream

T = TypeVar("T")

BUDGET = 256
"""Operations that may complete at once before one yields to the loop."""
SHARED = 16
"""Budgets that many tasks may spend together before one yields: they may all be in one step of the loop."""
NO_LOOP = (
    "wayferry.quic runs on asyncio, and no event loop of asyncio's runs here: call it from a coroutine that "
    "asyncio.run() runs. trio has a loop of its own; anyio takes asyncio with backend='asyncio'"
)


def current() -> Reactor:
    """The reactor of the running loop, made when there is none yet. RuntimeError: no such loop runs."""
    global _used
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(NO_LOOP) from None
    reactor = _reactors.get(id(loop))
    if reactor is None or reactor.loop is not loop:
        reactor = _reactors[id(loop)] = Reactor(loop)
        _used = True
    return reactor


def abandoned() -> bool:
    """Whether objects must be left alone: the interpreter is ending, or this is a forked child."""
    return sys is None or sys.is_finalizing() or _forked


class Reactor:
    """The tokens, waits and unfinished turns of one loop. It lives as long as what was opened on it."""

    __slots__ = (
        "__weakref__",
        "_busy",
        "_ending",
        "_registered",
        "_shared",
        "_thread",
        "_users",
        "budget",
        "dirty",
        "held",
        "loop",
        "native",
        "waiters",
        "watchers",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.native = _native.Reactor(_weakly(self._end_turn_soon))
        self.waiters: dict[int, Waiter | Call] = {}
        """One operation's wait for its token; removed when it fires or is cancelled."""
        self.watchers: dict[int, Callable[[], None]] = {}
        """What is called when a token fires, before its waiter; removed by that."""
        self.dirty: list[SendStream] = []
        """Streams that owe a flush at the end of this turn."""
        self.held: dict[object, object] = {}
        """What is waited on without a token, by the wait; see `holding`."""
        self.budget = BUDGET
        self._busy = 0
        """The task that saw the last budget end, by its `id`."""
        self._shared = 0
        """Budgets that several tasks have spent together in this turn."""
        self._ending = False
        self._users = 0
        self._registered = False
        self._thread: DrainThread | None = None

    def attach(self) -> None:
        """Counts one more connection or listener that needs the loop to listen."""
        self._users += 1
        if not self._registered:
            self._register()

    def release(self) -> None:
        """Takes back one `attach`. With the last one, and no wait left, the loop is left alone."""
        self._users -= 1
        self._rest()

    def drain(self) -> None:
        """Wakes the tasks that wait for the tokens that are ready."""
        self.budget = BUDGET
        self._shared = 0
        tokens: list[int] | None = None
        try:
            tokens = self.native.drain()
            self._dispatch(iter(tokens))
        finally:
            if tokens is None or len(tokens) > 1:
                # After the first steps of the tasks that were begun.
                self._end_turn_soon()
        self._rest()

    def waiter(self, token: int) -> Waiter:
        """What to await until `token` is ready. A task that is cancelled over it calls `forget`."""
        waiter = self.waiters[token] = Waiter(self.loop)
        if not self._registered:
            self._register()
        return waiter

    def call(self, token: int, call: Callable[[], None]) -> Call:
        """Has `call` called once `token` is ready, in place of a task that waits. It must not raise."""
        waiter = self.waiters[token] = Call(self.loop, call)
        if not self._registered:
            self._register()
        return waiter

    def forget(self, token: int, waiter: Waiter | Call) -> None:
        """Removes a wait that has no use any more."""
        if self.waiters.get(token) is waiter:
            del self.waiters[token]
            self._rest()

    @contextlib.contextmanager
    def holding(self, owner: object) -> Iterator[None]:
        """Keeps `owner` alive, and so the task that waits for it inside: a loop holds its tasks weakly, and
        a watcher its owner. `waiters` does the same for those that wait for a token."""
        wait = object()
        self.held[wait] = owner
        try:
            yield
        finally:
            del self.held[wait]

    def wake(self, token: int) -> None:
        """Lets the one who waits for `token` poll again, as if it were ready."""
        waiter = self.waiters.pop(token, None)
        if waiter is not None:
            waiter.fire_soon()

    async def until(self, token: int, poll: Callable[[], T | None], *, pending: bool = False) -> T:
        """What `poll` gives, once it gives something. `pending`: it was just asked, and had nothing."""
        while True:
            if not pending:
                value = poll()
                if value is not None:
                    return value
            pending = False
            waiter = self.waiter(token)
            try:
                await waiter
            except BaseException:
                self.forget(token, waiter)
                raise

    async def breathe(self) -> None:
        """Lets everything else that is ready run once, if this task alone has spent a budget, or many have
        spent several: of these each ends its step soon, as a rule. Called before an operation polls, never
        after."""
        task = id(asyncio.current_task(self.loop))
        if task != self._busy and self._shared < SHARED:
            self._shared += 1
        else:
            await asyncio.sleep(0)
            self._shared = 0
        self._busy = task
        self.budget = BUDGET

    def owe(self, stream: SendStream) -> None:
        """Has `stream` flushed at the end of this turn."""
        self.dirty.append(stream)
        self._end_turn_soon()

    def flush(self) -> None:
        """Hands over what the streams collected."""
        dirty, self.dirty = self.dirty, []
        for stream in dirty:
            stream._flush()

    def dispose(self, native: _native.Connection | _native.Listener) -> bool:
        """Closes what was dropped, on any thread that drops it; whether it was still open."""
        try:
            # Its end may be known there and not here yet.
            if isinstance(native, _native.Connection) and native.closed() is not None:
                return False
            native.close(0, b"")
        except RuntimeError:  # the loop's thread is using it at this moment
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(native.close, 0, b"")
        return True

    def _dispatch(self, tokens: Iterator[int]) -> None:
        waiters, watchers = self.waiters, self.watchers
        try:
            for token in tokens:
                if token in watchers:
                    self._call(watchers.pop(token))
                waiter = waiters.pop(token, None)
                if waiter is not None:
                    waiter.fire()
        except BaseException:
            # A task ended the loop (KeyboardInterrupt, SystemExit), which may be run again.
            self.loop.call_soon(self._dispatch, tokens)
            raise

    def _end_turn_soon(self) -> None:
        if not self._ending:
            self.loop.call_soon(self._end_turn)
            self._ending = True

    def _end_turn(self) -> None:
        self._ending = False
        self._shared = 0
        try:
            if self.dirty:
                self.native.hold()
                self.flush()
        finally:
            self.native.end_turn()

    def _call(self, watcher: Callable[[], None]) -> None:
        """A watcher that fails must not keep the other tokens from being seen."""
        try:
            watcher()
        except Exception as error:
            message = "wayferry.quic: a callback failed"
            self.loop.call_exception_handler({"message": message, "exception": error})

    def _register(self) -> None:
        self._registered = True
        if self._thread is not None:
            return
        try:
            self.loop.add_reader(self.native.fileno(), self.drain)
        except NotImplementedError:
            self._thread = DrainThread(self)

    def _rest(self) -> None:
        """Takes the descriptor from the loop when nothing is left to wait for; a later wait puts it back."""
        if self._users or self.waiters or self.watchers or not self._registered:
            return
        # A thread cannot be told to rest; it ends with the reactor.
        if self._thread is None and not self.loop.is_closed():
            self._registered = False
            self.loop.remove_reader(self.native.fileno())


def _weakly(call: Callable[[], None]) -> Callable[[], None]:
    """`call`, a method, which this does not keep its object for."""
    method = WeakMethod(call)

    def calls() -> None:
        bound = method()
        if bound is not None:
            bound()

    return calls


def _mark_forked() -> None:
    global _forked
    _forked = _used
    _native.mark_forked()


_reactors: WeakValueDictionary[int, Reactor] = WeakValueDictionary()
_used = False
"""Whether there ever was a reactor; without one a forked child is free to begin."""
_forked = False
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_forked)
