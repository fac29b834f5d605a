"""A thread that waits for tokens, for loops that cannot watch a file descriptor.

It only ever blocks in the native wait and asks the loop to drain; it touches no future. It ends when the loop
is closed, when the reactor is gone, and before the interpreter ends.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wayferry.quic import _native
    from wayferry.quic._reactor import Reactor


class DrainThread:
    """The thread of one reactor, which it does not keep alive."""

    __slots__ = ("_end", "_thread")

    def __init__(self, reactor: Reactor) -> None:
        drained = threading.Event()
        args = (weakref.ref(reactor), reactor.native, drained)
        self._thread = threading.Thread(target=_wait, args=args, name="wayferry-quic-wake", daemon=True)
        # Also called at exit: a thread that is woken while the interpreter ends would be torn out of native
        # code.
        self._end = weakref.finalize(reactor, _end, reactor.native, drained, self._thread)
        self._thread.start()


def _wait(owner: weakref.ref[Reactor], native: _native.Reactor, drained: threading.Event) -> None:
    while native.wait(None):
        drained.clear()
        if not _ask(owner, drained):
            return
        # The tokens stay ready until they are drained; without this the wait would spin.
        drained.wait()


def _ask(owner: weakref.ref[Reactor], drained: threading.Event) -> bool:
    """Has the loop drain. False: there is no loop, or no reactor, any more."""
    reactor = owner()
    if reactor is None:
        return False
    try:
        reactor.loop.call_soon_threadsafe(_drain, owner, drained)
    except RuntimeError:  # the loop is closed
        return False
    return True


def _drain(owner: weakref.ref[Reactor], drained: threading.Event) -> None:
    reactor = owner()
    try:
        if reactor is not None:
            reactor.drain()
    finally:
        # Also when a task ended the loop by an exception: it may be run again.
        drained.set()


def _end(native: _native.Reactor, drained: threading.Event, thread: threading.Thread) -> None:
    native.close()
    drained.set()
    if thread is not threading.current_thread():
        thread.join(JOIN)


JOIN = 1.0
"""Seconds that the end of a reactor waits for its thread, which has nothing left to do."""
