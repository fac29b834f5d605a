"""What a turn of the loop collects: the native module alone, without a loop of asyncio's."""

from __future__ import annotations

import sys
import time
from functools import partial

import pytest
from native_support import Turns

from wayferry.quic import _native, errors


def test_what_a_turn_holds_back_leaves_at_its_end(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    streams = [turns.until(ours.open_uni) for _ in range(20)]
    turns.reactor.hold()
    for stream in streams:
        stream.write(b"small")
        stream.finish()
    turns.reactor.end_turn()
    for _ in streams:
        rx = turns.until(theirs.accept_uni)
        assert turns.until(partial(rx.read, 100)) == b"small"


def test_what_follows_in_a_turn_is_held_back_and_the_end_asked_for(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    turns.settle()
    sent = ours.stats()["sent_packets"]
    for number in range(100):
        assert ours.send_datagram(number.to_bytes(8, "big"))
    # Once, however many follow, if this thread was not interrupted for long.
    assert 1 <= len(turns.asked) <= 10
    turns.end()
    got: list[bytes] = []
    while len(got) < 100:
        got += turns.until(partial(theirs.datagrams, 100))
    assert got == [number.to_bytes(8, "big") for number in range(100)]
    # The first, and the others in one or two; beside them those that look for a larger MTU.
    assert ours.stats()["sent_packets"] - sent <= 40


def test_the_first_of_each_turn_waits_for_no_end(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    turns.settle()
    for size in (8, 1100):
        turns.reactor.end_turn()
        assert ours.send_datagram(bytes(size))
        assert not turns.asked
        assert turns.until(partial(theirs.datagrams, 1)) == [bytes(size)]
    # More than a thread sends itself.
    tx = turns.until(ours.open_uni)
    turns.settle()
    assert tx.write(bytes(8000)) == 1
    assert not turns.asked


def test_who_accepts_holds_back_what_that_permits(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx = turns.until(ours.open_uni)
    tx.write(b"x")
    tx.finish()
    rx = turns.until(theirs.accept_uni)
    assert turns.asked
    assert turns.read_to_end(rx) == b"x"
    turns.settle()
    # Nothing is to be done for a read that finds nothing.
    assert rx.read(10) == b""
    assert not turns.asked


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_an_end_that_cannot_be_asked_for_loses_nothing(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(unraisable.exc_type))
    fails: list[BaseException] = []

    def end_soon() -> None:
        if fails:
            raise fails.pop()

    turns = Turns(end_soon)
    ours, theirs, _listener = turns.pair()
    turns.settle()
    fails.append(error())
    for number in range(5):
        assert ours.send_datagram(bytes([number]))
    assert not fails
    if error is SystemExit:
        # As from a handler of a signal: the turn's end raises it.
        with pytest.raises(SystemExit):
            turns.reactor.end_turn()
    turns.reactor.end_turn()
    got: list[bytes] = []
    while len(got) < 5:
        got += turns.until(partial(theirs.datagrams, 100))
    assert got == [bytes([number]) for number in range(5)]
    assert told == ([ValueError] if error is ValueError else [])


def test_regression_a_turn_whose_end_was_not_asked_for_held_back_for_ever(turns: Turns) -> None:
    ours, _theirs, _listener = turns.pair()
    turns.settle()
    turns.reactor.hold()
    end = time.monotonic() + 20
    while not turns.asked:
        assert time.monotonic() < end
        ours.send_datagram(b"little")


def test_much_is_not_held_back(turns: Turns) -> None:
    """The turn does not end; the stream's first 64 KiB let all go."""
    ours, theirs, _listener = turns.pair()
    tx = turns.until(ours.open_uni)
    turns.reactor.hold()
    for _ in range(70):
        tx.write(bytes(1024))
        tx.flush()
    rx = turns.until(theirs.accept_uni)
    got = 0
    while got < 64 * 1024:
        got += len(turns.until(lambda: rx.read(100_000)))


@pytest.mark.parametrize("way", ["close", "drop"])
def test_a_reactor_that_ends_lets_go_what_it_holds_back(turns: Turns, way: str) -> None:
    other = Turns()
    listener = turns.listen()
    ours = other.until(other.connect(listener.local_addr).poll)
    theirs = turns.until(listener.poll_accept)
    assert isinstance(theirs, _native.Connection)
    tx = other.until(ours.open_uni)
    # What the handshake leaves to say is said, so that no packet of the peer's has more sent.
    assert ours.send_datagram(b"?")
    assert turns.until(partial(theirs.datagrams, 1)) == [b"?"]
    other.settle()
    other.reactor.hold()
    tx.write(b"one")
    tx.flush()
    tx.write(b"two")
    tx.flush()
    if way == "close":
        other.reactor.close()
    else:
        del other
    rx = turns.until(theirs.accept_uni)
    got = b""
    while got != b"onetwo":
        got += turns.until(lambda: rx.read(100))


def test_a_close_in_the_midst_of_a_turn_leaves_at_once(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx = turns.until(ours.open_uni)
    turns.reactor.hold()
    tx.write(b"x")
    tx.reset(1)
    ours.close(7, b"")
    with pytest.raises(errors.ConnectionClosed, match="code 7"):
        raise turns.until(theirs.closed)
