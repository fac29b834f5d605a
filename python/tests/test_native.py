"""The native module by itself: its polls, its buffer, its checks, and what it refuses."""

from __future__ import annotations

import array
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from typing import cast

import pytest
from native_support import CERT, KEY, PIN, Turns, client_tls, config, server_tls

from wayferry.quic import _native, errors

BUFFER = 64 * 1024
CODE_MAX = (1 << 62) - 1
SCRIPT_SECONDS = 60
MANY = 100_000


# Streams


def test_an_echo_comes_back(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, rx = turns.until(ours.open_bi)
    payload = os.urandom(300_000)
    assert tx.write(payload) in (1, 2)
    tx.finish()
    turns.flush(tx)
    back, there = turns.until(theirs.accept_bi)
    while piece := turns.until(lambda: there.read(10_000)):
        assert len(piece) <= 10_000
        # Mypy knows no defaults of a lambda.
        turns.until(lambda piece=piece: back.write(piece) or None)  # type: ignore[misc]  # mypy infers no lambda
    back.finish()
    turns.flush(back)
    assert turns.read_to_end(rx) == payload
    assert tx.id == rx.id == back.id == there.id
    assert turns.until(tx.stopped) == ()


@pytest.mark.parametrize(
    "data",
    [b"bytes", bytearray(b"bytearray"), memoryview(b"_view_")[1:-1], array.array("i", [1, 2, 3]), b""],
    ids=["bytes", "bytearray", "memoryview", "array", "nothing"],
)
def test_anything_with_a_buffer_can_be_written(
    turns: Turns, data: bytes | bytearray | memoryview | array.array[int]
) -> None:
    ours, theirs, _listener = turns.pair()
    tx, rx = turns.uni(ours, theirs)
    assert tx.write(data) in (1, 2)
    assert tx.write_nowait(data) == len(memoryview(data).cast("B"))
    tx.finish()
    turns.flush(tx)
    assert turns.read_to_end(rx) == bytes(data) * 2


def test_what_has_no_buffer_cannot_be_written(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, _rx = turns.uni(ours, theirs)
    for wrong in ("text", 5, None):
        with pytest.raises(TypeError):
            tx.write(wrong)  # type: ignore[arg-type]  # the mistake
        with pytest.raises(TypeError):
            ours.send_datagram_nowait(wrong)  # type: ignore[arg-type]  # the mistake


def test_a_written_bytearray_may_be_changed_at_once(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, rx = turns.uni(ours, theirs)
    data = bytearray(b"before")
    for _ in range(2):
        tx.write(data)
        data[:] = b"BEFORE"
        data.append(33)
        data[:] = b"before"
    tx.finish()
    turns.flush(tx)
    assert turns.read_to_end(rx) == b"before" * 2


def test_small_writes_of_a_turn_are_joined(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    how: list[int] = []
    # A process that was held up in between has ended the turn.
    while how != [1, 2, 1]:
        tx, rx = turns.uni(ours, theirs)
        turns.reactor.drain()
        how = [tx.write(b"1"), tx.write(b"2"), tx.write(b"3")]
    assert tx.buffered == 2
    assert turns.until(lambda: rx.read(10)) == b"1"
    assert tx.flush()
    assert tx.buffered == 0
    assert turns.until(lambda: rx.read(10)) == b"23"


def test_a_full_buffer_goes_without_a_flush(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, rx = turns.uni(ours, theirs)
    turns.reactor.drain()
    alone = 0
    while tx.write(b"x") == 1:
        alone += 1
    assert tx.write(bytes(BUFFER - 2)) == 1
    assert tx.buffered == BUFFER - 1
    assert tx.write(b"1") == 1
    assert tx.buffered == 0
    tx.finish()
    assert len(turns.read_to_end(rx)) == alone + BUFFER


def test_a_reader_that_is_slow_holds_the_writer_back(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, rx = turns.uni(ours, theirs)
    piece = os.urandom(1000)
    taken = 0
    while tx.write(piece):
        taken += 1
    assert taken * len(piece) < (1 << 20) + 2 * BUFFER
    assert tx.buffered < BUFFER + len(piece)
    assert not tx.room()
    assert tx.write_nowait(piece) == 0
    got = turns.read_until(rx, tx.room)
    assert tx.write(piece)
    tx.finish()
    got += turns.read_until(rx, tx.flush)
    got += turns.read_to_end(rx)
    assert got == piece * (taken + 1)


def test_a_prefix_is_taken_without_waiting(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, rx = turns.uni(ours, theirs)
    data = os.urandom(4 << 20)
    taken = tx.write_nowait(data)
    assert 0 < taken < len(data)
    tx.finish()
    got = turns.read_until(rx, tx.flush)
    assert got + turns.read_to_end(rx) == data[:taken]


def test_finish_waits_for_what_was_written(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, rx = turns.uni(ours, theirs)
    for _ in range(100):
        tx.write(b"0123456789")
    tx.finish()
    assert tx.flush()
    assert turns.read_to_end(rx) == b"0123456789" * 100
    for again in (lambda: tx.write(b"x"), lambda: tx.write_nowait(b"x"), tx.finish):
        with pytest.raises(ValueError, match="after finish"):
            again()


def test_regression_a_lone_write_goes_at_once_although_nothing_was_drained(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, _rx = turns.uni(ours, theirs)
    for _ in range(3):
        time.sleep(0.005)  # it is the pause that makes a write a lone one
        assert tx.write(b"lone") == 1


def test_reset_wakes_a_writer_that_waits_for_room(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, rx = turns.uni(ours, theirs)
    while tx.write(bytes(10_000)):
        pass
    turns.reactor.drain()
    tx.reset(CODE_MAX)
    turns.ready(tx.t_write)
    assert tx.room()
    assert tx.flush()
    for write in (tx.write, tx.write_nowait):
        with pytest.raises(ValueError, match="after reset"):
            write(b"x")
    with pytest.raises(errors.StreamReset) as reset:
        turns.read_to_end(rx)
    assert reset.value.code == CODE_MAX


def test_a_dropped_stream_is_reset_and_stopped(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, rx = turns.uni(ours, theirs)
    del tx
    with pytest.raises(errors.StreamReset, match="code 0"):
        turns.read_to_end(rx)
    tx, rx = turns.uni(ours, theirs)
    del rx
    assert turns.until(tx.stopped) == (0,)


def test_stop_tells_the_writer(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, rx = turns.uni(ours, theirs)
    assert tx.stopped() is None
    tx.write(b"at once")
    tx.write(b"collected")
    rx.stop(CODE_MAX)
    assert turns.until(tx.stopped) == (CODE_MAX,)
    for write in (tx.write, tx.write_nowait, lambda _: tx.flush(), lambda _: tx.finish()):
        with pytest.raises(errors.StreamStopped) as stopped:
            write(b"x")
        assert stopped.value.code == CODE_MAX
    with pytest.raises(ValueError, match="stopped"):
        rx.read(1)


def test_pieces_come_with_their_offsets(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, rx = turns.uni(ours, theirs)
    data = os.urandom(100_000)
    tx.write(data)
    tx.finish()
    turns.flush(tx)
    got = bytearray(len(data))
    while len(piece := turns.until(lambda: rx.unordered(5000))) == 2:
        offset, part = cast(tuple[int, bytes], piece)
        assert len(part) <= 5000
        got[offset - 1 : offset - 1 + len(part)] = part
    assert got == data
    with pytest.raises(ValueError, match="stream"):
        rx.read(1)


def test_priorities_are_remembered(turns: Turns) -> None:
    ours, _theirs, _listener = turns.pair()
    tx = turns.until(ours.open_uni)
    assert tx.priority == 0
    tx.set_priority(-(1 << 31))
    assert tx.priority == -(1 << 31)
    with pytest.raises(ValueError, match="out of range"):
        tx.set_priority(1 << 31)


def test_the_more_important_of_two_writers_is_woken_first(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair(server=config(connection_window=10_000))
    streams = [turns.until(ours.open_uni) for _ in range(4)]
    for stream, priority in zip(streams, (0, -1, 7, 3), strict=True):
        stream.set_priority(priority)
        stream.write(bytes(50_000))
        assert not stream.flush()
    for stream in streams:
        stream.reset(0)
    order = {stream.t_write: stream.priority for stream in streams}
    woken = [order[token] for token in turns.reactor.drain() if token in order]
    assert woken == [7, 3, 0, -1]
    assert theirs.closed() is None


@pytest.mark.parametrize("code", [-1, CODE_MAX + 1, 1 << 64])
def test_a_code_beyond_62_bits_is_refused(turns: Turns, code: int) -> None:
    """RFC 9000 §16."""
    ours, theirs, listener = turns.pair()
    tx, rx = turns.uni(ours, theirs)
    calls: list[Callable[[], object]] = [
        lambda: tx.reset(code),
        lambda: rx.stop(code),
        lambda: ours.close(code, b""),
        lambda: listener.close(code, b""),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="out of range"):
            call()
    assert tx.write(b"the stream lives")
    for limit in (0, -1):
        with pytest.raises(ValueError, match="out of range"):
            rx.read(limit)


# Connections


def test_datagrams_arrive_and_have_a_limit(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    assert ours.send_datagram(memoryview(b"one"))
    assert ours.send_datagram_nowait(b"two")
    got: list[bytes] = []
    while len(got) < 2:
        got += turns.until(lambda: theirs.datagrams(2))
    assert got == [b"one", b"two"]
    most = ours.max_datagram_size
    assert most is not None
    with pytest.raises(errors.TooLarge) as large:
        ours.send_datagram(bytes(70_000))
    assert large.value.size == 70_000
    assert large.value.max >= most
    ours.cancel_send_datagram()


def test_datagrams_that_were_switched_off_are_an_error(turns: Turns) -> None:
    ours, _theirs, _listener = turns.pair(server=config(datagrams=False))
    assert ours.max_datagram_size is None
    with pytest.raises(errors.DatagramsUnsupported):
        ours.send_datagram_nowait(b"x")


def test_a_datagram_waits_for_room(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair(client=config(datagram_buffer=4096))
    datagram = bytes(1000)
    assert not all(ours.send_datagram(datagram) for _ in range(MANY))
    turns.over(lambda: ours.send_datagram(datagram))
    assert not all(ours.send_datagram_nowait(datagram) for _ in range(MANY))
    assert not all(ours.send_datagram(datagram) for _ in range(MANY))
    ours.cancel_send_datagram()
    turns.over(lambda: ours.send_datagram(b"the next"))
    while b"the next" not in turns.until(lambda: theirs.datagrams(10)):
        pass


def test_both_sides_know_who_closed_and_why(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, _rx = turns.uni(ours, theirs)
    assert ours.closed() is None
    assert theirs.closed() is None
    ours.close(CODE_MAX, b"line\none\x1b[31m")
    end = turns.until(theirs.closed)
    assert isinstance(end, errors.ConnectionClosed)
    assert (end.code, end.by) == (CODE_MAX, "peer")
    assert end.reason.startswith("line")
    assert end.reason.isprintable()
    again = theirs.closed()
    assert again is not None
    assert again is not end
    own = turns.until(ours.closed)
    assert isinstance(own, errors.ConnectionClosed)
    assert own.by == "local"
    for _ in range(2):
        with pytest.raises(errors.ConnectionClosed):
            tx.write(b"x")
    for poll in (ours.open_uni, ours.accept_uni, ours.accept_bi, lambda: ours.datagrams(1), theirs.open_bi):
        with pytest.raises(errors.ConnectionClosed):
            turns.until(poll)


def test_a_write_after_a_close_in_the_same_turn_raises(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, _rx = turns.uni(ours, theirs)
    tx.write(b"at once")
    tx.write(b"collected")
    ours.close(0, b"")
    with pytest.raises(errors.ConnectionClosed):
        tx.write(b"too late")
    with pytest.raises(errors.ConnectionClosed):
        tx.flush()


def test_a_write_raises_once_the_end_is_known(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    tx, _rx = turns.uni(ours, theirs)
    theirs.close(3, b"")
    turns.until(ours.closed)
    for _ in range(2):
        with pytest.raises(errors.ConnectionClosed, match="code 3"):
            tx.write(b"x")


def test_the_end_wakes_every_wait(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair(server=config(bi_streams=0, uni_streams=0))
    polls: dict[int, Callable[[], object]] = {
        theirs.t_accept_uni: theirs.accept_uni,
        theirs.t_accept_bi: theirs.accept_bi,
        theirs.t_datagram: lambda: theirs.datagrams(1),
        ours.t_open_uni: ours.open_uni,
        ours.t_open_bi: ours.open_bi,
        ours.t_datagram: lambda: ours.datagrams(1),
    }
    assert [poll() for poll in polls.values()] == [None] * len(polls)
    assert theirs.closed() is None
    turns.reactor.drain()
    ours.close(0, b"")
    turns.ready(*polls, theirs.t_closed)
    for poll in polls.values():
        with pytest.raises(errors.ConnectionClosed):
            poll()


def test_what_a_connection_knows_about_itself(turns: Turns) -> None:
    ours, theirs, listener = turns.pair()
    assert ours.remote_addr == listener.local_addr
    assert theirs.remote_addr[1] == ours.local_addr[1]
    assert ours.alpn == theirs.alpn == b"test"
    assert theirs.server_name == "localhost"
    assert ours.url is None
    assert not ours.is_early
    assert turns.until(ours.early_data_accepted) is False
    assert [type(found) for found in ours.peer_certificates] == [bytes]
    assert theirs.peer_certificates == []
    assert ours.stats()["sent_packets"] > 0
    assert ours.stats()["rtt"] > 0
    (path,) = ours.paths()
    assert path["remote_addr"] == ours.remote_addr
    ours.ping()
    ours.update_keys()
    exported = ours.export_keying_material(b"label", b"context", 40)
    assert len(exported) == 40
    assert exported == theirs.export_keying_material(b"label", b"context", 40)
    with pytest.raises(ValueError, match=r"."):
        theirs.rebind(("127.0.0.1", 0))
    with pytest.raises(ValueError, match="IP address"):
        ours.rebind(("localhost", 0))


def test_draining_waits_for_acknowledgements(turns: Turns) -> None:
    ours, theirs, listener = turns.pair()
    tx, rx = turns.uni(ours, theirs)
    tx.write(b"the end")
    tx.finish()
    turns.flush(tx)
    turns.over(ours.drain().poll)
    assert turns.until(tx.stopped) == ()
    assert turns.read_to_end(rx) == b"the end"
    idle = listener.idle()
    assert not idle.poll()
    listener.close(5, b"bye")
    turns.over(idle.poll)
    assert idle.poll()
    with pytest.raises(errors.ConnectionClosed) as closed:
        turns.until(listener.poll_accept)
    assert (closed.value.code, closed.value.reason, closed.value.by) == (5, "bye", "local")
    end = turns.until(ours.closed)
    assert isinstance(end, errors.ConnectionClosed)
    assert (end.code, end.reason, end.by) == (5, "bye", "peer")


def test_a_cancelled_connecting_ends(turns: Turns) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        connecting = turns.connect(silent.getsockname())
        assert connecting.poll() is None
        connecting.cancel()
        turns.ready(connecting.token)
        with pytest.raises(errors.ConnectionClosed) as closed:
            connecting.poll()
    assert closed.value.by == "local"


def test_a_wrong_pin_is_a_tls_error(turns: Turns) -> None:
    listener = _native.listen(turns.reactor, ("127.0.0.1", 0), server_tls(), config(), "never")
    connecting = turns.connect(listener.local_addr, tls=client_tls(pins=["00" * 32]))
    with pytest.raises(errors.TlsError):
        turns.until(connecting.poll)
    turns.polled(lambda: listener.stats()["failed"] == 1)
    assert listener.poll_accept() is None
    assert len(listener.failures()) == 1


def test_a_port_in_use_is_an_os_error(turns: Turns) -> None:
    listener = _native.listen(turns.reactor, ("127.0.0.1", 0), server_tls(), config(), "auto")
    with pytest.raises(OSError) as taken:  # noqa: PT011
        _native.listen(turns.reactor, listener.local_addr, server_tls(), config(), "auto")
    assert taken.value.errno is not None


def test_tokens_stay_ready_until_they_are_drained(turns: Turns) -> None:
    ours, theirs, _listener = turns.pair()
    turns.reactor.drain()
    assert not turns.reactor.wait(0.0)
    assert theirs.accept_uni() is None
    turns.until(ours.open_uni).write(b"x")
    assert turns.reactor.wait(30.0)
    assert turns.reactor.wait(None)
    turns.ready(theirs.t_accept_uni)
    assert theirs.accept_uni() is not None
    turns.reactor.close()
    assert not turns.reactor.wait(None)
    assert turns.reactor.drain() == []


def test_a_dropped_reactor_leaves_no_descriptor() -> None:
    watch = Turns()
    for _ in range(3):
        turns = Turns()
        number = turns.reactor.fileno()
        ours, theirs, listener = turns.pair()
        ours.close(0, b"")
        turns.until(theirs.closed)
        # With tokens on its list, some of them of objects that live on.
        turns.connect(listener.local_addr).cancel()
        assert turns.reactor.wait(30.0)
        del turns
        del ours, theirs, listener
        # The engine may have to let go of it, too.
        # Mypy knows no defaults of a lambda.
        watch.polled(lambda number=number: not is_open(number))  # type: ignore[misc]  # mypy infers no lambda


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


# WebTransport


def web(turns: Turns, path: str) -> tuple[_native.Connecting, _native.WebRequest, _native.Listener]:
    """A client that asks for `path`, and its request."""
    listener = _native.listen(turns.reactor, ("127.0.0.1", 0), server_tls(), config(), "auto")
    listener.set_web(True)
    host, port = listener.local_addr
    url = f"https://localhost:{port}{path}"
    connecting = _native.web_connect(
        turns.reactor, [(host, port)], "localhost", None, client_tls(), config(), url
    )
    assert connecting.poll() is None
    request = turns.until(listener.poll_accept)
    assert isinstance(request, _native.WebRequest)
    return connecting, request, listener


def test_a_session_carries_streams_and_32_bit_codes(turns: Turns) -> None:
    connecting, request, listener = web(turns, "/room?x=1")
    assert request.path == "/room?x=1"
    assert request.authority == f"localhost:{listener.local_addr[1]}"
    accepting = request.accept()
    theirs = turns.until(accepting.poll)
    ours = turns.until(connecting.poll)
    assert ours.url == theirs.url == f"https://{request.authority}/room?x=1"
    assert ours.alpn == b"h3"
    tx, rx = turns.uni(ours, theirs)
    for call in (tx.reset, rx.stop, lambda code: ours.close(code, b"")):
        with pytest.raises(ValueError, match="WebTransport"):
            call(1 << 32)
    tx.reset((1 << 32) - 1)
    with pytest.raises(errors.StreamReset, match=str((1 << 32) - 1)):
        turns.read_to_end(rx)
    ours.close(77, b"enough")
    end = turns.until(theirs.closed)
    assert isinstance(end, errors.ConnectionClosed)
    assert (end.code, end.reason, end.by) == (77, "enough", "peer")
    with pytest.raises(ValueError, match="answered already"):
        request.accept()


def test_a_rejected_session_has_a_status(turns: Turns) -> None:
    connecting, request, listener = web(turns, "/")
    for status in (200, 600, -1):
        with pytest.raises(ValueError, match=r"."):
            request.reject(status)
    request.reject(429)
    with pytest.raises(errors.WebTransportRejected) as rejected:
        turns.until(connecting.poll)
    assert rejected.value.status == 429
    listener.set_web(False)
    plain = turns.connect(listener.local_addr, tls=client_tls(alpn=[b"h3"]))
    with pytest.raises(errors.TlsError):
        turns.until(plain.poll)


# Arguments


@pytest.mark.parametrize(
    "change",
    [
        {"idle_timeout": -1.0},
        {"idle_timeout": float("nan")},
        {"keep_alive": float("inf")},
        {"handshake_timeout": 0.0},
        {"congestion": "tahoe"},
        {"bi_streams": -1},
        {"uni_streams": 1 << 32},
        {"stream_window": 0},
        {"stream_window": (2 << 20) + 1},
        {"connection_window": 1 << 40},
        {"send_window": -5},
        {"datagram_buffer": -1},
        {"half_open": -1},
    ],
    ids=str,
)
def test_a_setting_out_of_its_range_is_a_value_error(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        config(**change)


def test_qlog_without_the_feature_is_refused_loudly(tmp_path: os.PathLike[str]) -> None:
    with pytest.raises(ValueError, match="without the feature `qlog`"):
        config(qlog_dir=os.fspath(tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        {"pins": None},
        {"pins": []},
        {"pins": ["12"]},
        {"insecure": True},
        {"roots": "system"},
        {"pins": None, "roots": b"no certificate"},
        {"alpn": [b""]},
        {"alpn": [bytes(256)]},
        {"client_cert": (CERT, b"no key")},
    ],
    ids=str,
)
def test_wrong_trust_is_a_value_error(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        client_tls(**change)


def test_a_missing_file_is_named(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "nothing.pem")
    for call in (lambda: server_tls(cert=path), lambda: client_tls(pins=None, roots=path)):
        with pytest.raises(FileNotFoundError) as missing:
            call()
        assert missing.value.filename == path


def test_pem_may_be_in_files(tmp_path: os.PathLike[str]) -> None:
    cert, key = os.path.join(tmp_path, "cert.pem"), os.path.join(tmp_path, "key.pem")
    for path, text in ((cert, CERT), (key, KEY)):
        with open(path, "wb") as file:
            file.write(text)
    assert server_tls(cert=cert, key=key).fingerprint == _native.fingerprint(cert) == PIN
    client_tls(pins=None, roots=cert)
    client_tls(client_cert=(cert, KEY))
    with pytest.raises(ValueError, match="certificate"):
        _native.fingerprint(b"no certificate")


def test_no_text_shows_a_key(turns: Turns, tmp_path: os.PathLike[str]) -> None:
    secret = KEY.splitlines()[1]
    texts = [repr(server_tls()), repr(client_tls(client_cert=(CERT, KEY))), repr(config())]
    texts.append(repr(turns.connect(("127.0.0.1", 9), tls=client_tls(client_cert=(CERT, KEY)))))
    with pytest.raises(ValueError, match=r".") as wrong:
        server_tls(cert=KEY)
    texts.append(repr(wrong.value))
    assert not [text for text in texts if secret.decode() in text]


def test_addresses_are_checked(turns: Turns) -> None:
    wrong = [("localhost", 1), ("127.0.0.1", 65536), ("127.0.0.1", -1), ("", 1), ("fe80::1%eth0", 1)]
    for address in wrong:
        with pytest.raises(ValueError, match=r"IP address|out of range"):
            _native.listen(turns.reactor, address, server_tls(), config(), "auto")
    with pytest.raises(ValueError, match="no address"):
        _native.connect(turns.reactor, [], "localhost", None, client_tls(), config(), early_data=False)
    with pytest.raises(ValueError, match="sometimes"):
        _native.listen(turns.reactor, ("127.0.0.1", 0), server_tls(), config(), "sometimes")


def test_a_ticket_store_has_a_limit() -> None:
    assert len(_native.TicketStore(10)) == 0
    with pytest.raises(ValueError, match="out of range"):
        _native.TicketStore(0)


def test_objects_come_from_functions_only() -> None:
    for kind in (_native.Connection, _native.SendStream, _native.ReceiveStream, _native.Listener):
        with pytest.raises(TypeError):
            kind()


# Processes


def script(text: str) -> None:
    """Runs `text` in an interpreter of its own, which must succeed in silence."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(text)],
        env=os.environ | {"PYTHONPATH": path},
        timeout=SCRIPT_SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_is_refused() -> None:
    script("""
        import os, sys, warnings
        from native_support import Turns, config, server_tls
        from wayferry.quic import _native

        warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads
        turns = Turns()
        ours, theirs, listener = turns.pair()
        tx, rx = turns.uni(ours, theirs)
        waiting = ours.drain()
        tickets = _native.TicketStore(4)
        child = os.fork()
        if child == 0:
            calls = [
                lambda: len(tickets), turns.reactor.fileno, turns.reactor.drain,
                ours.open_uni, ours.stats, ours.closed, ours.ping,
                listener.poll_accept, listener.stats, waiting.poll, tx.flush, lambda: _native.Reactor(bool),
                lambda: tx.write(b"x"), lambda: rx.read(1), tx.room, lambda: ours.close(0, b""),
                lambda: turns.connect(("127.0.0.1", 9)),
            ]
            allowed = []
            for call in calls:
                try:
                    call()
                except RuntimeError as error:
                    if "fork" in str(error):
                        continue
                allowed.append(call)
            # Dropping takes no lock that no thread will ever free.
            del calls, call, ours, theirs, tx, rx, listener, waiting, turns
            os._exit(len(allowed))
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, status
        tx.write(b"the parent goes on")
        tx.finish()
        turns.flush(tx)
        assert turns.read_to_end(rx) == b"the parent goes on"
    """)


def test_a_child_forked_before_the_first_use_is_free() -> None:
    script("""
        import os
        from native_support import Turns

        child = os.fork()
        turns = Turns()
        ours, theirs, listener = turns.pair()
        tx, rx = turns.uni(ours, theirs)
        if child == 0:
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, status
    """)


def test_a_subinterpreter_is_refused() -> None:
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    interpreters = pytest.importorskip(name, reason="this Python has no way to make subinterpreters")
    one = interpreters.create()
    text = f"""
import sys
sys.path[:] = {sys.path!r}
try:
    import wayferry.quic._native
except ImportError as error:
    assert "subinterpreters" in str(error), error
else:
    raise AssertionError("it was imported")
"""
    try:
        failed = interpreters.run_string(one, text)
    finally:
        interpreters.destroy(one)
    assert failed is None, failed


@pytest.mark.parametrize("where", ["in the main thread", "in a daemon thread"])
def test_the_interpreter_may_exit_in_mid_traffic(where: str) -> None:
    script(f"""
        import itertools, threading, time
        from native_support import Turns

        started = threading.Event()

        def traffic():
            turns = Turns()
            ours, theirs, listener = turns.pair()
            tx, rx = turns.uni(ours, theirs)
            for turn in itertools.count():
                tx.write_nowait(bytes(50000))
                tx.flush()
                if rx.read(1 << 16) is None:
                    turns.wait(time.monotonic() + 30)
                if turn == 50:
                    started.set()
                    if {where == "in the main thread"}:
                        return turns, ours, theirs, tx, rx, listener

        def sleeper(turns):
            turns.reactor.wait(None)

        if {where == "in the main thread"}:
            keep = traffic()
            threading.Thread(target=sleeper, args=(Turns(),), daemon=True).start()
        else:
            threading.Thread(target=traffic, daemon=True).start()
            assert started.wait(30)
    """)
