"""Streams: what is written arrives, whole and once; codes, order, back-pressure, and how waits end."""

from __future__ import annotations

import asyncio
import random

import pytest
from support import asynchronous, echo, ended, pair, rounds, until

from wayferry import quic

CODES = [0, 1, 256, 2**32, 2**62 - 1]
KIB = 1024
MIB = 1024 * KIB


def noise(size: int, seed: int = 0) -> bytes:
    """Bytes that betray a piece that is missing, doubled or moved."""
    return random.Random(seed).randbytes(size)


async def through(
    sender: quic.Connection, receiver: quic.Connection
) -> tuple[quic.SendStream, quic.ReceiveStream]:
    """Both ends of a new stream; one byte has passed, since QUIC tells no peer of a stream without any."""
    sending = await sender.open_uni()
    await sending.write(b"!")
    receiving = await receiver.accept_uni()
    assert await receiving.read_exactly(1) == b"!"
    return sending, receiving


@asynchronous
async def test_an_echo_gives_back_what_was_sent() -> None:
    async with pair() as (client, server), asyncio.TaskGroup() as group:
        group.create_task(echo(server))
        for size in 0, 1, 2, 65535, 65536, 65537, 3 * MIB + 1:
            stream = await client.open_bi()
            data = noise(size, size)
            back = group.create_task(stream.receive.read_to_end(size))
            await stream.send.write(data)
            await stream.send.finish()
            assert await back == data
        await client.close(drain=0)


@asynchronous
async def test_both_ends_may_open_both_kinds() -> None:
    async with pair() as ends:
        for near, far in ends, ends[::-1]:
            bi = await near.open_bi()
            await bi.send.write(b"question")
            await bi.send.finish()
            other = await far.accept_bi()
            assert await other.receive.read_to_end(100) == b"question"
            await other.send.write(b"answer")
            await other.send.finish()
            assert await bi.receive.read_to_end(100) == b"answer"
            uni = await near.open_uni()
            await uni.write(b"news")
            await uni.finish()
            assert await (await far.accept_uni()).read_to_end(100) == b"news"


@asynchronous
async def test_stream_ids_are_those_of_quic() -> None:
    # RFC 9000 §2.1: two bits for who opened it and for its kind.
    async with pair() as (client, server):
        assert (await client.open_bi()).send.id == 0
        assert (await client.open_bi()).receive.id == 4
        assert (await client.open_uni()).id == 2
        assert (await server.open_bi()).send.id == 1
        assert (await server.open_uni()).id == 3


@asynchronous
async def test_an_empty_stream_arrives_as_one() -> None:
    async with pair() as (client, server):
        sending = await client.open_uni()
        await sending.finish()
        receiving = await server.accept_uni()
        assert await receiving.read() == b""
        assert await receiving.read() == b""
        assert await receiving.read_to_end(0) == b""
        await sending.acked()


@asynchronous
async def test_iterating_a_stream_ends_at_its_end() -> None:
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        await sending.write(noise(200_000))
        await sending.finish()
        assert b"".join([chunk async for chunk in receiving]) == noise(200_000)
        assert [chunk async for chunk in receiving] == []


@asynchronous
async def test_read_takes_no_more_than_it_was_asked_for() -> None:
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        await sending.write(noise(1000))
        await sending.finish()
        parts = []
        while part := await receiving.read(7):
            assert len(part) <= 7
            parts.append(part)
        assert b"".join(parts) == noise(1000)


@asynchronous
async def test_read_exactly_tells_what_there_was_before_the_end() -> None:
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        await sending.write(b"0123456789")
        await sending.finish()
        assert await receiving.read_exactly(4) == b"0123"
        assert await receiving.read_exactly(0) == b""
        with pytest.raises(asyncio.IncompleteReadError) as caught:
            await receiving.read_exactly(7)
        assert caught.value.partial == b"456789"


@asynchronous
async def test_read_to_end_has_a_limit() -> None:
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        await sending.write(noise(5000))
        await sending.finish()
        with pytest.raises(quic.TooLarge) as caught:
            await receiving.read_to_end(4999)
        assert caught.value.max == 4999
        assert caught.value.size > 4999


@asynchronous
async def test_every_kind_of_buffer_is_copied() -> None:
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        array = bytearray(b"first")
        await sending.write(array)
        array[:] = b"wrong"
        await sending.write(memoryview(b"-second-")[1:-1])
        await sending.write(b"")
        assert sending.write_nowait(b"third") == 5
        await sending.finish()
        assert await receiving.read_to_end(100) == b"firstsecondthird"


@asynchronous
async def test_reset_codes_arrive_both_ways() -> None:
    async with pair() as ends:
        for near, far in ends, ends[::-1]:
            for code in CODES:
                sending, receiving = await through(near, far)
                sending.reset(code)
                with pytest.raises(quic.StreamReset) as caught:
                    await receiving.read()
                assert caught.value.code == code
                with pytest.raises(quic.StreamReset):
                    await receiving.read()


@asynchronous
async def test_stop_codes_arrive_both_ways() -> None:
    async with pair() as ends:
        for near, far in ends, ends[::-1]:
            for code in CODES:
                sending, receiving = await through(near, far)
                receiving.stop(code)
                assert await sending.stopped() == code
                assert await sending.stopped() == code
                with pytest.raises(quic.StreamStopped) as caught:
                    await sending.write(b"more")
                assert caught.value.code == code


@asynchronous
async def test_a_stop_ends_acked() -> None:
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        waiting = asyncio.ensure_future(sending.acked())
        receiving.stop(9)
        error = await ended(waiting)
        assert isinstance(error, quic.StreamStopped)
        assert error.code == 9


@asynchronous
async def test_stopped_gives_none_once_everything_is_acknowledged() -> None:
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        waiting = asyncio.ensure_future(sending.stopped())
        await rounds(3)
        assert not waiting.done()
        await sending.write(noise(100_000))
        await sending.finish()
        assert await receiving.read_to_end(100_000) == noise(100_000)
        assert await waiting is None
        await sending.acked()


@asynchronous
async def test_nothing_is_written_after_the_end() -> None:
    async with pair() as (client, server):
        finished, _ = await through(client, server)
        await finished.finish()
        for data in b"x", b"":
            with pytest.raises((ValueError, quic.QuicError)):
                await finished.write(data)
        with pytest.raises((ValueError, quic.QuicError)):
            finished.write_nowait(b"x")
        reset, _ = await through(client, server)
        reset.reset(1)
        with pytest.raises((ValueError, quic.QuicError)):
            await reset.write(b"x")


@asynchronous
async def test_nothing_is_written_after_the_connection_closed() -> None:
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        await server.close(code=3, reason="done", drain=0)
        await client.closed()
        for call in (
            sending.write(b"x"),
            sending.finish(),
            sending.acked(),
            client.open_bi(),
            client.accept_uni(),
        ):
            error = await ended(call)
            assert isinstance(error, quic.ConnectionClosed)
            assert (error.code, error.by) == (3, "peer")
        error = await ended(receiving.read())
        assert isinstance(error, quic.ConnectionClosed)
        assert error.by == "local"
        with pytest.raises(quic.ConnectionClosed):
            sending.write_nowait(b"x")


@asynchronous
async def test_a_dropped_sender_resets_and_a_dropped_reader_stops() -> None:
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        del sending
        with pytest.raises(quic.StreamReset) as reset:
            await receiving.read()
        assert reset.value.code == 0
        sending, receiving = await through(client, server)
        del receiving
        assert await sending.stopped() == 0


@asynchronous
async def test_opening_waits_for_credit() -> None:
    async with pair(server_config=quic.Config(uni_streams=2, bi_streams=2)) as (client, server):
        first, second = await client.open_uni(), await client.open_uni()
        third = asyncio.ensure_future(client.open_uni())
        for stream in first, second:
            await stream.finish()
        await rounds(20)
        assert not third.done()
        for _ in range(2):
            assert await (await server.accept_uni()).read() == b""
        assert (await third).id == 10


@asynchronous
async def test_many_streams_at_once_keep_apart() -> None:
    config = quic.Config(uni_streams=16, bi_streams=16)
    async with pair(config=config) as (client, server), asyncio.TaskGroup() as group:
        group.create_task(echo(server))

        async def one(number: int) -> None:
            data = noise(number * 37 % 5000, number)
            stream = await client.open_bi()
            await stream.send.write(data)
            await stream.send.finish()
            assert await stream.receive.read_to_end(len(data)) == data

        async with asyncio.TaskGroup() as callers:
            for number in range(400):
                callers.create_task(one(number))
        await client.close(drain=0)


@asynchronous
async def test_the_more_important_stream_overtakes() -> None:
    # Little credit for the connection: when the reader begins, nearly all of both is still to be sent.
    config = quic.Config(connection_window=64 * KIB, stream_window=64 * KIB)
    async with pair(server_config=config) as (client, server):
        data = noise(768 * KIB)
        later = await client.open_uni(priority=5)
        sooner = await client.open_uni(priority=10)
        names = {later.id: "later", sooner.id: "sooner"}
        later.set_priority(-5)
        ending: list[str] = []
        async with asyncio.TaskGroup() as group:
            for stream in later, sooner:
                group.create_task(_write_all(stream, data))
            await rounds(20)

            async def read(stream: quic.ReceiveStream) -> None:
                assert await stream.read_to_end(len(data)) == data
                ending.append(names[stream.id])

            for _ in range(2):
                group.create_task(read(await server.accept_uni()))
        assert ending == ["sooner", "later"]


async def _write_all(stream: quic.SendStream, data: bytes) -> None:
    await stream.write(data)
    await stream.finish()


@asynchronous
async def test_a_slow_reader_holds_the_writer_back() -> None:
    """What is under way stays below the windows, and so does the memory."""
    config = quic.Config(stream_window=MIB, connection_window=MIB, send_window=MIB)
    bound = config.stream_window + config.send_window + 192 * KIB
    total, piece = 48 * MIB, noise(16 * KIB)
    async with pair(config=config) as (client, server), asyncio.TaskGroup() as group:
        sending, receiving = await through(client, server)
        before = resident()
        written = got = most = highest = 0

        async def write() -> None:
            nonlocal written
            while written < total:
                await sending.write(piece)
                written += len(piece)
            await sending.finish()

        group.create_task(write())
        while chunk := await receiving.read(4096):
            got += len(chunk)
            most = max(most, written - got)
            highest = max(highest, resident())
        assert got == total
        assert MIB // 2 < most <= bound
        assert highest - before < bound + 16 * MIB


@pytest.mark.parametrize("size", [40, 300, 800])
@pytest.mark.parametrize("accepted", [True, False])
@asynchronous
async def test_regression_messages_that_wait_end_no_connection(accepted: bool, size: int) -> None:
    """noq closes a connection with 2049 pieces of a stream that fill their packets and cannot be merged."""
    async with pair() as (client, server):
        sending = await client.open_uni()
        await sending.write(b"!")
        receiving = await server.accept_uni() if accepted else None
        sent = bytearray()
        while client.stats().sent_stream_frames < 2500:
            sent += (message := noise(size, len(sent)))
            await sending.write(message)
            # It goes by itself: what waits at the end of a turn goes in one packet.
            await asyncio.sleep(0)
        await sending.finish()
        receiving = receiving or await server.accept_uni()
        assert await receiving.read_to_end(1 + len(sent)) == b"!" + sent


@pytest.mark.parametrize("kind", ["", "datagrams", "unordered"])
@asynchronous
async def test_regression_a_full_window_that_waits_ends_no_connection(kind: str) -> None:
    window = quic.Config().stream_window
    data = noise(2 * window)
    async with pair() as (client, server), asyncio.TaskGroup() as group:
        sending = await client.open_uni()
        group.create_task(sending.write(data))
        receiving = await server.accept_uni()
        pieces = aiter(receiving.unordered()) if kind == "unordered" else None
        got = bytearray(len(data))
        # With headers it is full a little later.
        while server.stats().received_bytes < window:
            if kind == "datagrams":
                await client.send_datagram(bytes(100))
            await asyncio.sleep(0)
        if pieces is None:
            assert await receiving.read_exactly(len(data)) == data
            return
        left = len(data)
        while left:
            offset, piece = await anext(pieces)
            got[offset : offset + len(piece)] = piece
            left -= len(piece)
        assert got == data


@asynchronous
async def test_regression_messages_long_and_short_that_wait_end_no_connection() -> None:
    """Each long one stays whole close to its reader, and noq merges no two pieces with one between."""
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        sent = bytearray()
        for turn in range(2400):
            sent += (message := noise(4 if turn % 2 else 1200, turn))
            await sending.write(message)
            await asyncio.sleep(0)
        await sending.finish()
        assert await receiving.read_to_end(len(sent)) == sent


@asynchronous
async def test_a_dozen_streams_that_wait_hold_no_other_back() -> None:
    """Room is given in eighths of the connection's window, so it is not as many as fit into it."""
    async with pair() as (client, server), asyncio.TaskGroup() as group:
        data = noise(quic.Config().stream_window + MIB)
        sending = [await client.open_uni() for _ in range(13)]
        for stream in sending:
            group.create_task(stream.write(data))
        for _ in sending:
            assert await (await server.accept_uni()).read_exactly(len(data)) == data


@asynchronous
async def test_a_short_read_gives_no_more_leave_than_it_took() -> None:
    """What noq merged, up to a whole window, is not taken at once to keep the rest of it here."""
    config = quic.Config(stream_window=2 * MIB, send_window=64 * KIB)
    async with pair(config=config) as (client, server), asyncio.TaskGroup() as group:
        group.create_task(echo(server))
        sending, receiving = await through(client, server)
        written = 0

        async def write() -> None:
            nonlocal written
            while True:
                await sending.write(bytes(900))
                written += 900
                await asyncio.sleep(0)

        async def stuck() -> int:
            """What was written when nothing more leaves, no matter how often both sides hear each other."""
            before = -1
            while before != written:
                before = written
                for _ in range(3):
                    stream = await client.open_bi()
                    await stream.send.finish()
                    assert await stream.receive.read_to_end(0) == b""
            return written

        writing = group.create_task(write())
        await until(lambda: written >= config.stream_window)
        full = await stuck()
        for _ in range(10):
            assert len(await receiving.read(100)) <= 100
        assert await stuck() - full < config.stream_window // 4
        writing.cancel()
        await client.close(drain=0)


def resident() -> int:
    """This process's memory in bytes, as the system counts it."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


@asynchronous
async def test_write_nowait_takes_what_there_is_room_for() -> None:
    config = quic.Config(stream_window=64 * KIB, connection_window=64 * KIB, send_window=64 * KIB)
    async with pair(config=config) as (client, server):
        sending, receiving = await through(client, server)
        data = noise(MIB)
        taken = 0
        while count := sending.write_nowait(data[taken:]):
            assert taken + count < len(data)
            taken += count
        assert 0 < taken < len(data)
        rest = asyncio.ensure_future(_write_all(sending, data[taken:]))
        assert await receiving.read_to_end(MIB) == data
        await rest


async def blocked_writer(sending: quic.SendStream) -> asyncio.Task[None]:
    """A task that waits for room on a stream that no peer reads."""

    async def write() -> None:
        while True:
            await sending.write(bytes(64 * KIB))

    while sending.write_nowait(bytes(64 * KIB)):
        await rounds(1)
    task = asyncio.ensure_future(write())
    await rounds(5)
    return task


@asynchronous
async def test_a_reset_wakes_the_writer_that_waits_for_room() -> None:
    config = quic.Config(stream_window=64 * KIB, send_window=64 * KIB)
    async with pair(config=config) as (client, server):
        sending, receiving = await through(client, server)
        task = await blocked_writer(sending)
        sending.reset(7)
        assert isinstance(await ended(task), (ValueError, quic.QuicError))
        with pytest.raises(quic.StreamReset):
            await _read_all(receiving)


async def _read_all(stream: quic.ReceiveStream) -> None:
    while await stream.read():
        pass


@asynchronous
async def test_a_stop_wakes_the_writer_that_waits_for_room() -> None:
    config = quic.Config(stream_window=64 * KIB, send_window=64 * KIB)
    async with pair(config=config) as (client, server):
        sending, receiving = await through(client, server)
        task = await blocked_writer(sending)
        receiving.stop(7)
        error = await ended(task)
        assert isinstance(error, quic.StreamStopped)
        assert error.code == 7


@asynchronous
async def test_every_wait_ends_with_the_connection() -> None:
    config = quic.Config(stream_window=64 * KIB, send_window=64 * KIB, uni_streams=2, bi_streams=1)
    async with pair(config=config) as (client, server):
        blocked, _kept = await through(client, server)
        quiet, _also_kept = await through(client, server)
        stream, idle = await client.open_bi(), await server.open_bi()
        writer = await blocked_writer(blocked)
        waits = {
            "write": writer,
            "acked": asyncio.ensure_future(quiet.acked()),
            "stopped": asyncio.ensure_future(quiet.stopped()),
            "read": asyncio.ensure_future(stream.receive.read()),
            "read_exactly": asyncio.ensure_future(idle.receive.read_exactly(1)),
            "open_uni": asyncio.ensure_future(client.open_uni()),
            "open_bi": asyncio.ensure_future(client.open_bi()),
            "second open_bi": asyncio.ensure_future(client.open_bi()),
            "accept_uni": asyncio.ensure_future(_awaited(client.accept_uni())),
            "second accept_uni": asyncio.ensure_future(_awaited(client.accept_uni())),
            "accept_bi": asyncio.ensure_future(_awaited(client.accept_bi())),
            "receive_datagram": asyncio.ensure_future(client.receive_datagram()),
        }
        await rounds(10)
        assert not [name for name, task in waits.items() if task.done()]
        await client.close(code=4, drain=0)
        for name, task in waits.items():
            error = await ended(task)
            assert isinstance(error, quic.ConnectionClosed), f"{name}: {error!r}"
        closed = await client.closed()
        assert isinstance(closed, quic.ConnectionClosed)
        assert closed.by == "local"


async def _awaited(waiting: object) -> object:
    return await waiting  # type: ignore[misc]  # anything that can be awaited


@asynchronous
async def test_unordered_gives_every_byte_once() -> None:
    async with pair() as (client, server), asyncio.TaskGroup() as group:
        sending, receiving = await through(client, server)
        data = noise(2 * MIB)
        group.create_task(_write_all(sending, data))
        got = bytearray(len(data) + 1)
        seen = bytearray(len(data) + 1)
        seen[0] = 1
        async for offset, piece in receiving.unordered():
            assert not any(seen[offset : offset + len(piece)])
            seen[offset : offset + len(piece)] = b"\1" * len(piece)
            got[offset : offset + len(piece)] = piece
        assert all(seen)
        assert bytes(got[1:]) == data


@asynchronous
async def test_unordered_survives_a_cancelled_wait() -> None:
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        pieces = receiving.unordered()
        waiting = asyncio.ensure_future(anext(pieces))
        await rounds(3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await sending.write(b"after")
        await sending.finish()
        assert await anext(pieces) == (1, b"after")
        with pytest.raises(StopAsyncIteration):
            await anext(pieces)


@asynchronous
async def test_order_is_given_up_for_good() -> None:
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        await sending.write(b"x")
        assert await anext(receiving.unordered()) == (1, b"x")
        with pytest.raises((ValueError, RuntimeError)):
            await receiving.read()


@asynchronous
async def test_busy_streams_do_not_starve_other_tasks() -> None:
    async with pair() as (client, server), asyncio.TaskGroup() as group:
        sending, receiving = await through(client, server)
        data = noise(200_000)
        await sending.write(data)
        await sending.finish()
        await sending.acked()
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        counter = group.create_task(count())
        # Everything is here already: no read ever has to wait.
        for _ in range(len(data) // 20):
            assert len(await receiving.read_exactly(20)) == 20
        counter.cancel()
        assert turns >= 10


@asynchronous
async def test_small_writes_arrive_without_a_flush() -> None:
    async with pair() as (client, server):
        sending, receiving = await through(client, server)
        for number in range(100):
            for _ in range(3):
                await sending.write(b"%02d" % number)
            assert await receiving.read_exactly(6) == b"%02d" % number * 3


@asynchronous
async def test_what_is_not_bytes_is_refused_in_pythons_words() -> None:
    async with pair() as (client, _):
        stream = await client.open_uni()
        with pytest.raises(TypeError, match=r"bytes-like object is required, not `str`; text\.encode\(\)"):
            await stream.write("x")  # type: ignore[arg-type]  # the mistake
        with pytest.raises(TypeError, match=r"bytes-like object is required, not `int`$"):
            stream.write_nowait(1)  # type: ignore[arg-type]  # the mistake
        with pytest.raises(TypeError, match="bytes-like object is required, not `NoneType`"):
            await client.send_datagram(None)  # type: ignore[arg-type]  # the mistake


@asynchronous
async def test_arguments_out_of_range_are_named() -> None:
    async with pair() as (client, _):
        stream = await client.open_bi()
        with pytest.raises(ValueError, match=r"^priority: 2147483648 is out of range"):
            stream.set_priority(2**31)
        with pytest.raises(ValueError, match=r"^code: -1 is out of range"):
            stream.reset(-1)
        with pytest.raises(ValueError, match=r"^code: 4611686018427387904 is out of range"):
            stream.stop(2**62)
        with pytest.raises(ValueError, match=r"^n: 0 is out of range"):
            await stream.read(0)
        with pytest.raises(ValueError, match=r"^length: 0 is out of range"):
            client.export_keying_material(b"", b"", 0)
