"""What our layer for aioquic's programs does where a comparison with aioquic cannot show it."""

from __future__ import annotations

import asyncio
import gc
import io
import pathlib
import pickle
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar

import pytest
from relay import Relay
from support import CERT, KEY, PACKAGE, PIN, asynchronous, failing, rounds, until
from test_cancellation import Harrier

from wayferry import quic
from wayferry.compat.aioquic.asyncio import QuicConnectionProtocol, connect, serve
from wayferry.compat.aioquic.asyncio.server import _running as running_servers
from wayferry.compat.aioquic.quic.configuration import REFUSED as REFUSED_FIELDS
from wayferry.compat.aioquic.quic.configuration import QuicConfiguration
from wayferry.compat.aioquic.quic.connection import QuicConnection
from wayferry.compat.aioquic.quic.events import (
    ConnectionTerminated,
    DatagramFrameReceived,
    HandshakeCompleted,
    QuicEvent,
    StopSendingReceived,
    StreamDataReceived,
)
from wayferry.compat.aioquic.quic.logger import QuicLogger
from wayferry.compat.aioquic.tls import SessionTicket


class Recorder(QuicConnectionProtocol):
    """Keeps its events. `made` has those that this test has made."""

    made: ClassVar[list[Recorder]] = []

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.events: list[QuicEvent] = []
        Recorder.made.append(self)

    def quic_event_received(self, event: QuicEvent) -> None:
        self.events.append(event)
        super().quic_event_received(event)

    def data(self) -> bytes:
        return b"".join(event.data for event in self.events if isinstance(event, StreamDataReceived))


@pytest.fixture(autouse=True)
def forget() -> None:
    Recorder.made.clear()


async def recorded() -> Recorder:
    """The one that was made last; on a server that may be later than the client's handshake."""
    await until(lambda: Recorder.made)
    return Recorder.made[-1]


def client_configuration(**options: Any) -> QuicConfiguration:
    return QuicConfiguration(alpn_protocols=["test"], cadata=CERT, **options)


@asynccontextmanager
async def served(create_protocol: Callable[..., Any] = Recorder, **options: Any) -> AsyncIterator[int]:
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=["test"], certificate=CERT, private_key=KEY
    )
    server = await serve(
        "127.0.0.1", 0, configuration=configuration, create_protocol=create_protocol, **options
    )
    try:
        yield server._transport.get_extra_info("sockname")[1]
    finally:
        server.close()
        await server.wait_closed()


# What is refused of a field, with words of the reason and of the way out.
REFUSED: dict[str, tuple[Any, str, str]] = {
    "capath": ("/etc/ssl/certs", "folders", "cafile or cadata"),
    "certificate_chain": (["x"], "`str` is not read", "PEM"),
    "cipher_suites": ([0x1301], "rustls's choice", "None"),
    "connection_id_length": (4, "chosen by QUIC", "8"),
    "initial_rtt": (0.2, "RFC 9002", "0.1"),
    "max_datagram_size": (1400, "probing", "1200"),
    "original_version": (1, "version 1", "None"),
    "quantum_readiness_test": (True, "parameters", "False"),
    "session_ticket": (object(), "in memory", "session_ticket_handler"),
    "supported_versions": ([0x6B3343CF], "version 1", "leave it in"),
    "token": (b"x", "kept by QUIC", "empty"),
    "certificate": (object(), "`object` is not read", "PEM"),
    "private_key": (object(), "`object` is not read", "PEM"),
    "quic_logger": (object(), "native half", "QuicFileLogger"),
    "secrets_log_file": (io.StringIO(), "by its name", r"open\(\)"),
}
# The same of arguments and of a server's field.
REFUSED_BESIDES = {
    "verify_mode": ("no certificates", "client_roots"),
    "password": ("encrypted", "openssl pkey"),
    "token_handler": ("kept by QUIC", "None"),
    "frame_type": ("only applications", "None"),
}


def refusal(name: str) -> str:
    """The pattern of an error's text: the name, the reason, the way out."""
    reason, way_out = REFUSED[name][1:] if name in REFUSED else REFUSED_BESIDES[name]
    return f"^{name}: [^;]*{reason}[^;]*; .*{way_out}"


@pytest.mark.parametrize("field", REFUSED)
@asynchronous
async def test_what_a_field_asks_for_is_refused_by_name_with_the_reason_and_the_way_out(field: str) -> None:
    configuration = client_configuration()
    setattr(configuration, field, REFUSED[field][0])
    with pytest.raises(NotImplementedError, match=refusal(field)):
        async with connect("127.0.0.1", 1, configuration=configuration):
            pass


def test_what_is_refused_stands_in_the_documentation() -> None:
    page = (PACKAGE.parent / "docs" / "python.md").read_text()
    section = page.partition("## Moving from aioquic")[2].partition("\n## ")[0]
    assert set(REFUSED_FIELDS) <= set(REFUSED)
    for name in [*REFUSED, *REFUSED_BESIDES]:
        assert f"`{name}`" in section, name


@pytest.mark.parametrize(
    ("field", "value"),
    [("is_client", False), ("max_stream_data", -1), ("max_data", -1), ("idle_timeout", -1.0),
     ("congestion_control_algorithm", "wishful"), ("cadata", b"no certificate")],
)  # fmt: skip
@asynchronous
async def test_a_wrong_value_fails_instead_of_hanging(field: str, value: Any) -> None:
    configuration = client_configuration()
    setattr(configuration, field, value)
    with pytest.raises(ValueError):  # noqa: PT011 - the words are those of the check
        async with connect("127.0.0.1", 1, configuration=configuration):
            pass


@asynchronous
async def test_options_without_counterpart_are_refused() -> None:
    with pytest.raises(NotImplementedError, match=refusal("token_handler")):
        async with connect("127.0.0.1", 1, token_handler=print):  # type: ignore[arg-type]  # the mistake
            pass
    for port in -1, 65536:
        with pytest.raises(OverflowError, match="local_port"):
            async with connect("127.0.0.1", 1, local_port=port):
                pass
    with pytest.raises(ValueError, match="certificate"):
        await serve("127.0.0.1", 0, configuration=QuicConfiguration(is_client=False))
    with pytest.raises(NotImplementedError, match=refusal("verify_mode")):
        await serve(
            "127.0.0.1", 0, configuration=QuicConfiguration(is_client=False, verify_mode=ssl.CERT_REQUIRED)
        )
    with pytest.raises(NotImplementedError, match=refusal("password")):
        QuicConfiguration().load_cert_chain("cert.pem", "key.pem", password="secret")
    with pytest.warns(UserWarning, match="QuicFileLogger"):
        assert QuicLogger().to_dict()["traces"] == [{"events": []}]
    with pytest.raises(ImportError, match="pull_quic_header: packets are made"):
        from wayferry.compat.aioquic.quic.packet import pull_quic_header  # noqa: F401 (it is refused)


@asynchronous
async def test_what_the_connection_cannot_do_is_refused() -> None:
    async with served() as port, connect("127.0.0.1", port, configuration=client_configuration()) as client:
        for method in ("datagrams_to_send", "receive_datagram", "next_event", "get_timer", "handle_timer"):
            with pytest.raises(NotImplementedError, match=r"no sans-IO .*; take connect\(\)"):
                getattr(client._quic, method)()
        with pytest.raises(NotImplementedError, match=refusal("frame_type")):
            client._quic.close(frame_type=0)
        with pytest.raises(NotImplementedError, match=r"^sendto: .*; send_datagram_frame\(\)"):
            client._transport.sendto(b"x")
        for code in (-1, 1 << 62):
            with pytest.raises(ValueError, match="62 bits"):
                client.close(code)
        with pytest.raises(ValueError, match="only receives"):
            client._quic.send_stream_data(3, b"x")
        with pytest.raises(ValueError, match="not the next"):
            client._quic.send_stream_data(4, b"x")
        with pytest.raises(ValueError, match="not there"):
            client._quic.stop_stream(0, 1)
        with pytest.raises(ValueError, match="datagram"):
            client._quic.send_datagram_frame(bytes(70_000))


@asynchronous
async def test_h3_of_aioquic_is_refused_unless_it_is_this_layers() -> None:
    h3 = pytest.importorskip("aioquic.h3.connection", reason="aioquic is not installed")
    async with served() as port, connect("127.0.0.1", port, configuration=client_configuration()) as client:
        with pytest.raises(NotImplementedError, match="h3"):
            h3.H3Connection(client._quic)


@asynchronous
async def test_untrusted_certificates_fail() -> None:
    async with served() as port:
        configuration = QuicConfiguration(alpn_protocols=["test"])
        with pytest.raises(ConnectionError):
            async with connect("127.0.0.1", port, configuration=configuration, create_protocol=Recorder):
                pass
        (event,) = (await recorded()).events
        assert isinstance(event, ConnectionTerminated)
        assert 0x100 < event.error_code < 0x200
        async with connect(
            "127.0.0.1",
            port,
            configuration=QuicConfiguration(alpn_protocols=["test"], verify_mode=ssl.CERT_NONE),
        ) as client:
            assert client._quic.tls.alpn_negotiated == "test"


@asynchronous
async def test_no_common_protocol_fails() -> None:
    async with served() as port:
        configuration = client_configuration()
        configuration.alpn_protocols = ["something else"]
        with pytest.raises(ConnectionError):
            async with connect("127.0.0.1", port, configuration=configuration, create_protocol=Recorder):
                pass
        (event,) = (await recorded()).events
        assert isinstance(event, ConnectionTerminated)
        assert event.error_code == 0x178


@asynchronous
async def test_a_silent_peer_fails_after_the_idle_timeout() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionError):
            async with connect(
                "127.0.0.1", silent.getsockname()[1], configuration=client_configuration(idle_timeout=0.2)
            ):
                pass


@asynchronous
async def test_a_host_that_does_not_exist_is_an_os_error() -> None:
    with pytest.raises(socket.gaierror):
        async with connect("nobody.invalid", 1, configuration=client_configuration()):
            pass


@asynchronous
async def test_a_handshake_can_be_abandoned() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        address = silent.getsockname()
        async with connect(*address, configuration=client_configuration(), wait_connected=False) as client:
            client._quic.send_stream_data(0, b"never sent", end_stream=True)
        assert client._closed.is_set()
        with pytest.raises(ConnectionError):
            await client.wait_connected()
        with pytest.raises(ConnectionError):
            await client.ping()


@asynchronous
async def test_what_is_written_before_the_handshake_is_sent_after_it() -> None:
    async with served() as port:
        configuration = client_configuration()
        async with connect("127.0.0.1", port, configuration=configuration, wait_connected=False) as client:
            for number in range(3):
                client._quic.send_stream_data(2 + 4 * number, b"%d" % number, end_stream=True)
            pinged = asyncio.ensure_future(client.ping())
            client.request_key_update()
            await client.wait_connected()
            await pinged
        recorder = await recorded()
        await recorder.wait_closed()
        assert sorted(recorder.data()) == sorted(b"012")


@asynchronous
async def test_an_error_in_a_handler_is_reported_and_the_next_event_comes() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))

    class Failing(Recorder):
        def quic_event_received(self, event: QuicEvent) -> None:
            super().quic_event_received(event)
            raise KeyError(type(event).__name__)

    async with served(Failing) as port:
        async with connect("127.0.0.1", port, configuration=client_configuration()) as client:
            _, writer = await client.create_stream()
            writer.write(b"one")
            writer.write_eof()
            await writer.wait_closed()
        failing = await recorded()
        await failing.wait_closed()
    names = [context["exception"].args[0] for context in reported]
    assert names[:2] == ["ProtocolNegotiated", "HandshakeCompleted"]
    assert names[-1] == "ConnectionTerminated"
    assert failing.data() == b"one"


@asynchronous
async def test_a_protocol_that_cannot_be_made_ends_its_connection_alone() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    made = iter([ZeroDivisionError(), None])

    def make(*args: Any, **options: Any) -> QuicConnectionProtocol:
        if (error := next(made)) is not None:
            raise error
        return Recorder(*args, **options)

    async with served(make) as port:
        async with connect("127.0.0.1", port, configuration=client_configuration()) as client:
            await client.wait_closed()
        async with connect("127.0.0.1", port, configuration=client_configuration()) as client:
            await client.ping()
    assert [type(context["exception"]) for context in reported] == [ZeroDivisionError]


@asynchronous
async def test_what_arrived_before_the_end_is_told_before_it() -> None:
    class Greeting(QuicConnectionProtocol):
        def quic_event_received(self, event: QuicEvent) -> None:
            if isinstance(event, HandshakeCompleted):
                stream_id = self._quic.get_next_available_stream_id(is_unidirectional=True)
                self._quic.send_stream_data(stream_id, b"hello " * 10_000, end_stream=True)
                self.close(7, "said it")

    async with served(Greeting) as port:
        async with connect(
            "127.0.0.1", port, configuration=client_configuration(), create_protocol=Recorder
        ) as client:
            await client.wait_closed()
        assert client.data() == b"hello " * 10_000
        assert client.events[-1] == ConnectionTerminated(7, None, "said it")
        assert sum(isinstance(event, ConnectionTerminated) for event in client.events) == 1


@asynchronous
async def test_bytes_and_end_in_one_packet_are_one_event() -> None:
    # Aioquic's own client puts both into one packet; of ours the bytes may leave before the end is known.
    client = pytest.importorskip("aioquic.asyncio", reason="aioquic is not installed")
    theirs = pytest.importorskip("aioquic.quic.configuration", reason="aioquic is not installed")
    configuration = theirs.QuicConfiguration(alpn_protocols=["test"], cadata=CERT)
    async with served() as port:
        async with client.connect("localhost", port, configuration=configuration) as connection:
            _, writer = await connection.create_stream()
            writer.write(b"all of it")
            writer.write_eof()
            await connection.ping()
        recorder = await recorded()
        await recorder.wait_closed()
        received = [event for event in recorder.events if isinstance(event, StreamDataReceived)]
        assert received == [StreamDataReceived(b"all of it", True, 0)]


@asynchronous
async def test_a_writer_waits_for_a_slow_reader_and_memory_is_bounded() -> None:
    class Slow(QuicConnectionProtocol):
        """Its stream handler takes the reader and does not read."""

    readers: list[asyncio.StreamReader] = []
    total = 16 << 20
    async with (
        served(Slow, stream_handler=lambda reader, writer: readers.append(reader)) as port,
        connect("127.0.0.1", port, configuration=client_configuration()) as client,
    ):
        _, writer = await client.create_stream(is_unidirectional=True)

        async def write() -> None:
            for _ in range(total // 65536):
                writer.write(bytes(65536))
                await writer.drain()
            writer.write_eof()

        writing = asyncio.ensure_future(write())
        await until(lambda: readers and client._quic.streams._backlog.size > 256 * 1024)
        # It is stuck: turn after turn nothing changes hands any more.
        await client.ping()
        assert not writing.done()
        assert len(readers[0]._buffer) < 1 << 20
        size = 0
        while data := await readers[0].read(1 << 20):
            size += len(data)
        await writing
        assert size == total


@asynchronous
async def test_too_much_unsent_is_refused() -> None:
    async with served() as port, connect("127.0.0.1", port, configuration=client_configuration()) as client:
        client._quic.streams._backlog.limit = 1 << 20
        client._quic.send_stream_data(0, bytes(4 << 20))  # The window is of 2 MiB.
        with pytest.raises(BufferError):
            client._quic.send_stream_data(0, b"x")
        client._quic.reset_stream(0, 1)
        assert client._quic.streams._backlog.size == 0


@asynchronous
async def test_a_reset_stream_ends_its_reader_and_frees_everything() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    tasks: list[asyncio.Task[None]] = []

    def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(reset(reader, writer)))

    async with (
        served(QuicConnectionProtocol, stream_handler=handler) as port,
        connect("127.0.0.1", port, configuration=client_configuration()) as client,
    ):
        reader, writer = await client.create_stream()
        writer.write(b"x")
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.write_eof()
        await writer.wait_closed()
        streams = client._quic.streams
        await until(lambda: not (streams._outgoing or streams._incoming))
        assert not client._stream_readers
        with pytest.raises(ValueError, match="finished"):
            client._quic.send_stream_data(0, b"late")
        client._quic.reset_stream(0, 1)


@asynchronous
async def test_writing_to_a_connection_that_is_over_does_nothing() -> None:
    async with served() as port:
        async with connect("127.0.0.1", port, configuration=client_configuration()) as client:
            reader, writer = await client.create_stream()
            writer.write(b"x")
        assert writer.is_closing()
        writer.write(b"y")
        writer.write_eof()
        await writer.wait_closed()
        assert await reader.read() == b""
        client._quic.send_datagram_frame(b"z")
        client._quic.send_ping(1)
        client.close()


@asynchronous
async def test_a_server_that_no_variable_keeps_goes_on() -> None:
    configuration = QuicConfiguration(
        is_client=False, certificate=CERT, private_key=KEY, alpn_protocols=["test"]
    )

    async def start() -> int:
        server = await serve("127.0.0.1", 0, configuration=configuration)
        port: int = server._transport.get_extra_info("sockname")[1]
        return port

    port = await start()
    await rounds(3)
    gc.collect()
    async with connect("127.0.0.1", port, configuration=client_configuration()) as client:
        await client.ping()
    (server,) = running_servers
    server.close()
    await server.wait_closed()
    assert not running_servers


@pytest.mark.parametrize("closer", ["client", "server"])
@asynchronous
async def test_a_loop_of_writes_ends_with_the_connection(closer: str) -> None:
    async def write(writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            writer.write(bytes(1000))
            await writer.drain()

    async with (
        served() as port,
        connect("127.0.0.1", port, configuration=client_configuration()) as client,
    ):
        _, writer = await client.create_stream()
        writing = asyncio.create_task(write(writer))
        recorder = await recorded()
        await until(recorder.data)
        (client if closer == "client" else recorder).close()
        with suppress(ConnectionResetError):
            await writing
        with pytest.raises(ConnectionResetError):
            await writer.drain()


@asynchronous
async def test_a_paused_reader_does_not_keep_a_connection_that_ended_unseen() -> None:
    async def send(port: int) -> None:
        async with connect("127.0.0.1", port, configuration=client_configuration()) as client:
            _, writer = await client.create_stream(is_unidirectional=True)
            writer.write(bytes(900_000))
            writer.write_eof()
            await writer.wait_closed()

    readers: list[asyncio.StreamReader] = []
    async with served(stream_handler=lambda reader, writer: readers.append(reader)) as port:
        sending = threading.Thread(target=lambda: asyncio.run(send(port)))
        sending.start()
        # This loop is busy meanwhile, so that it learns of the connection when that is over.
        sending.join(20)
        assert not sending.is_alive()
        await until(lambda: readers)
        await (await recorded()).wait_closed()
        assert len(await readers[0].read()) == 900_000


@asynchronous
async def test_a_stopped_stream_ends_though_its_reader_is_paused() -> None:
    readers: list[asyncio.StreamReader] = []

    def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        readers.append(reader)

    async with (
        served(stream_handler=handler) as port,
        connect("127.0.0.1", port, configuration=client_configuration()) as client,
    ):
        client._quic.send_stream_data(2, bytes(1 << 20))
        await until(lambda: readers)
        quic = (await recorded())._quic
        incoming = quic.streams._incoming
        await until(lambda: not incoming[2]._flows)
        quic.stop_stream(2, 1)
        await until(lambda: not incoming)


@asynchronous
async def test_a_program_may_pause_and_resume_in_each_of_its_events() -> None:
    class Hesitant(Recorder):
        def quic_event_received(self, event: QuicEvent) -> None:
            self.events.append(event)
            if isinstance(event, StreamDataReceived):
                streams = self._quic.streams
                streams.resume(event.stream_id)
                streams.pause(event.stream_id)
                asyncio.get_running_loop().call_soon(streams.resume, event.stream_id)
                streams.resume(event.stream_id)

    data = bytes(range(256)) * 12_000
    async with (
        served(Hesitant) as port,
        connect("127.0.0.1", port, configuration=client_configuration()) as client,
    ):
        client._quic.send_stream_data(2, data, end_stream=True)
        recorder = await recorded()
        await until(lambda: len(recorder.data()) >= len(data))
        await client.ping()
        assert recorder.data() == data
        last = [event.end_stream for event in recorder.events if isinstance(event, StreamDataReceived)]
        assert last.count(True) == 1
        assert last[-1]


@asynchronous
async def test_a_program_hears_no_more_of_a_stream_that_it_stopped_in_an_event() -> None:
    class Content(Recorder):
        def quic_event_received(self, event: QuicEvent) -> None:
            self.events.append(event)
            if isinstance(event, StreamDataReceived):
                self._quic.stop_stream(event.stream_id, 7)

    async with (
        served(Content) as port,
        connect("127.0.0.1", port, configuration=client_configuration(), create_protocol=Recorder) as client,
    ):
        assert isinstance(client, Recorder)
        client._quic.send_stream_data(2, bytes(8 << 20))
        await until(lambda: any(isinstance(event, StopSendingReceived) for event in client.events))
        server = next(recorder for recorder in Recorder.made if isinstance(recorder, Content))
        assert [type(event) for event in server.events].count(StreamDataReceived) == 1
        assert not server._quic.streams._incoming
        assert client._quic.streams._backlog.size == 0


@asynchronous
async def test_what_waits_for_room_leaves_before_the_close() -> None:
    class Hearer(Recorder):
        def quic_event_received(self, event: QuicEvent) -> None:
            self.events.append(event)

    async with served(Hearer) as port:
        async with connect("127.0.0.1", port, configuration=client_configuration()) as client:
            client._quic.send_stream_data(2, bytes(8 << 20), end_stream=True)
            assert client._quic.streams._backlog.size > 1 << 20
            client.close()
        recorder = await recorded()
        await recorder.wait_closed()
        assert len(recorder.data()) == 8 << 20
        assert isinstance(recorder.events[-1], ConnectionTerminated)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
@asynchronous
async def test_eager_tasks_do_no_harm() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())
        writer.write_eof()

    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    tasks: list[asyncio.Task[None]] = []

    def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(echo(reader, writer)))

    async with (
        served(QuicConnectionProtocol, stream_handler=handler) as port,
        connect("127.0.0.1", port, configuration=client_configuration()) as client,
    ):
        for _ in range(3):
            reader, writer = await client.create_stream()
            writer.write(b"one")
            writer.write(b"two")
            await writer.drain()
            writer.write(bytes(300_000))
            writer.write_eof()
            assert await reader.read() == b"onetwo" + bytes(300_000)
        await until(lambda: not client._quic.streams._outgoing)


@asynchronous
async def test_a_datagram_that_is_too_large_keeps_no_other_back() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    configuration = QuicConfiguration(
        is_client=False,
        certificate=CERT,
        private_key=KEY,
        alpn_protocols=["test"],
        max_datagram_frame_size=65536,
    )
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Recorder)
    port = server._transport.get_extra_info("sockname")[1]
    async with connect(
        "127.0.0.1",
        port,
        configuration=client_configuration(max_datagram_frame_size=65536),
        wait_connected=False,
    ) as client:
        for data in (b"a", bytes(70_000), b"c"):
            client._quic.send_datagram_frame(data)
        await client.wait_connected()
        await until(lambda: not client._quic._datagrams)
        await client.ping()
        recorder = await recorded()
        await until(lambda: any(isinstance(event, DatagramFrameReceived) for event in recorder.events))
    await recorder.wait_closed()
    received = [event.data for event in recorder.events if isinstance(event, DatagramFrameReceived)]
    assert received == [b"a", b"c"]
    assert [type(context["exception"]).__name__ for context in reported] == ["TooLarge"]
    server.close()
    await server.wait_closed()


@asynchronous
async def test_addresses_and_a_port_of_ones_own() -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        probe.bind(("::", 0))
        local_port = probe.getsockname()[1]
    async with (
        served() as port,
        connect("127.0.0.1", port, configuration=client_configuration(), local_port=local_port) as client,
    ):
        assert client._quic.get_peer_address()[1] == port
        assert client._transport.get_extra_info("peername")[1] == port
        assert client._transport.get_extra_info("sockname")[1] == local_port
        assert client._transport.get_extra_info("socket", "none") == "none"


@asynchronous
async def test_secrets_are_logged_where_the_file_is(tmp_path: pathlib.Path) -> None:
    with (tmp_path / "secrets").open("a") as log:
        configuration = client_configuration(secrets_log_file=log)
        async with served() as port, connect("127.0.0.1", port, configuration=configuration):
            pass
    assert "CLIENT_HANDSHAKE_TRAFFIC_SECRET" in (tmp_path / "secrets").read_text()


def test_connections_are_not_made_by_programs() -> None:
    assert QuicConnection(configuration=QuicConfiguration()).get_next_available_stream_id() == 0
    server = QuicConnection(configuration=QuicConfiguration(is_client=False))
    assert [server.get_next_available_stream_id(), server.get_next_available_stream_id(True)] == [1, 3]


@asynchronous
async def test_certificates_may_be_objects_of_cryptography(tmp_path: pathlib.Path) -> None:
    x509 = pytest.importorskip("cryptography.x509", reason="cryptography is not installed")
    serialization = pytest.importorskip(
        "cryptography.hazmat.primitives.serialization", reason="cryptography is not installed"
    )
    configuration = QuicConfiguration(
        is_client=False,
        alpn_protocols=["test"],
        certificate=x509.load_pem_x509_certificate(CERT),
        private_key=serialization.load_pem_private_key(KEY, None),
    )
    server = await serve("127.0.0.1", 0, configuration=configuration)
    port = server._transport.get_extra_info("sockname")[1]
    async with connect("127.0.0.1", port, configuration=client_configuration()) as client:
        await client.ping()
    server.close()
    await server.wait_closed()


def test_a_chain_is_the_same_from_one_file_and_from_two(tmp_path: pathlib.Path) -> None:
    cert, key, both = (tmp_path / name for name in ("cert.pem", "key.pem", "both.pem"))
    for path, text in (cert, CERT + CERT), (key, KEY), (both, KEY + CERT + CERT):
        path.write_bytes(text)
    apart, together = QuicConfiguration(), QuicConfiguration()
    apart.load_cert_chain(cert, key)
    together.load_cert_chain(both)
    assert apart == together
    assert (apart.certificate, apart.certificate_chain, apart.private_key) == (CERT, [CERT], KEY)
    with pytest.raises(ValueError, match=r"key.pem: there is no certificate"):
        apart.load_cert_chain(key)


@asynchronous
async def test_a_server_whose_socket_failed_ends() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=["test"], certificate=CERT, private_key=KEY
    )
    server = await serve("127.0.0.1", 0, configuration=configuration)
    with failing(server._transport.get_extra_info("sockname")):
        await server.wait_closed()
    (context,) = reported
    assert isinstance(context["exception"], OSError)


@pytest.mark.parametrize("mode", [None, ssl.CERT_NONE])
def test_regression_a_client_that_trusts_anybody_did_not_show_its_certificate(mode: int | None) -> None:
    @asynchronous
    async def test() -> None:
        tls = quic.ServerTls(CERT, KEY, client_pins=[PIN], alpn=["test"])
        configuration = client_configuration(certificate=CERT, private_key=KEY, verify_mode=mode)
        async with quic.serve("127.0.0.1", 0, tls=tls) as server:
            async with connect(*server.local_addr, configuration=configuration):
                accepted = await anext(server)
                assert len(accepted.peer_certificates) == 1
            await server.close(drain=0)

    test()


@asynchronous
async def test_a_session_is_resumed_by_its_ticket() -> None:
    """aioquic's server tells."""
    theirs = pytest.importorskip("aioquic.asyncio", reason="aioquic is not installed")
    from aioquic.quic.configuration import QuicConfiguration as TheirConfiguration
    from aioquic.quic.events import HandshakeCompleted as TheirHandshakeCompleted

    resumed: list[bool] = []
    kept: dict[bytes, Any] = {}

    class Server(theirs.QuicConnectionProtocol):  # type: ignore[misc]  # without types
        def quic_event_received(self, event: Any) -> None:
            if isinstance(event, TheirHandshakeCompleted):
                resumed.append(event.session_resumed)

    configuration = TheirConfiguration(is_client=False, alpn_protocols=["test"])
    with tempfile.NamedTemporaryFile() as file:
        file.write(CERT + KEY)
        file.flush()
        configuration.load_cert_chain(file.name)
    server = await theirs.serve(
        "127.0.0.1",
        0,
        configuration=configuration,
        create_protocol=Server,
        session_ticket_handler=lambda ticket: kept.update({ticket.ticket: ticket}),
        session_ticket_fetcher=lambda label: kept.pop(label, None),
    )
    port = server._transport.get_extra_info("sockname")[1]
    tickets: list[SessionTicket] = []
    for _ in range(3):
        again = client_configuration(session_ticket=tickets[-1] if tickets else None)
        async with connect(
            "127.0.0.1", port, configuration=again, session_ticket_handler=tickets.append
        ) as client:
            await client.ping()
    server.close()
    assert resumed == [False, True, True]
    assert tickets[-1].is_valid
    with pytest.raises(TypeError, match="stays in memory"):
        pickle.dumps(tickets[-1])


@asynchronous
async def test_tickets_of_ours_are_told_once_and_a_failing_handler_harms_nothing() -> None:
    told: list[SessionTicket] = []

    def fail(ticket: SessionTicket) -> None:
        told.append(ticket)
        raise ValueError("on purpose")

    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    async with (
        served(session_ticket_handler=print, session_ticket_fetcher=print) as port,
        connect(
            "127.0.0.1", port, configuration=client_configuration(), session_ticket_handler=fail
        ) as client,
    ):
        await client.ping()
    assert len(told) == 1
    assert [context["message"] for context in reported] == ["session_ticket_handler failed"]


class Early(Relay):
    """Holds no packet of a handshake (RFC 9000 §17.2)."""

    def _forward(self, way: Any, packet: bytes) -> None:
        if packet[0] & 0x80:
            way.send(packet)
        else:
            super()._forward(way, packet)


@asynchronous
async def test_regression_a_handler_was_told_of_a_ticket_with_the_next_event() -> None:
    """Without one it was not told before the idle timeout."""
    told = asyncio.Event()
    async with served() as port:
        with Early(("127.0.0.1", port)) as relay:
            relay.hold(answers=True)
            async with connect(
                *relay.address,
                configuration=client_configuration(),
                session_ticket_handler=lambda ticket: told.set(),
            ):
                relay.release()
                await told.wait()


@asynchronous
async def test_regression_a_handler_was_told_of_the_ticket_that_was_given_with_it() -> None:
    """Nor is it told of one that another connection gets meanwhile. aioquic's server gives none."""
    theirs = pytest.importorskip("aioquic.asyncio", reason="aioquic is not installed")
    from aioquic.quic.configuration import QuicConfiguration as TheirConfiguration

    kept: list[SessionTicket] = []
    silent: list[SessionTicket] = []
    told: list[SessionTicket] = []
    configuration = TheirConfiguration(is_client=False, alpn_protocols=["test"])
    with tempfile.NamedTemporaryFile() as file:
        file.write(CERT + KEY)
        file.flush()
        configuration.load_cert_chain(file.name)
    server = await theirs.serve("127.0.0.1", 0, configuration=configuration)
    their_port = server._transport.get_extra_info("sockname")[1]

    def client(port: int, tell: Callable[[SessionTicket], None]) -> Any:
        again = client_configuration(session_ticket=kept[0] if kept else None)
        return connect("127.0.0.1", port, configuration=again, session_ticket_handler=tell)

    async with served() as port:
        async with client(port, kept.append):
            await until(lambda: kept)
        async with client(their_port, silent.append) as quiet:
            async with client(port, told.append):
                await until(lambda: told)
            await quiet.ping()
    server.close()
    assert (len(kept), len(told), silent) == (1, 1, [])
    assert told[0]._store is kept[0]._store


@asynchronous
async def test_a_client_changes_its_connection_id() -> None:
    async with served() as port, connect("127.0.0.1", port, configuration=client_configuration()) as client:
        for _ in range(3):
            await client.ping()
            client.change_connection_id()
        await client.ping()
        with pytest.raises(NotImplementedError, match="follows its clients; call it on a client"):
            (await recorded())._quic.change_connection_id()


@asynchronous
async def test_what_waits_may_be_cancelled_at_each_wait() -> None:
    """Nothing is written twice, a ping that was given up is forgotten, the rest can be waited for again."""
    harrier = Harrier(0)
    readers: list[asyncio.StreamReader] = []
    async with served(
        QuicConnectionProtocol, stream_handler=lambda reader, writer: readers.append(reader)
    ) as port:
        async with connect(
            "127.0.0.1", port, configuration=client_configuration(), wait_connected=False
        ) as client:
            await client.wait_connected()
            await harrier.at_each_wait("ping", client.ping)
            assert not client._ping_waiters
            _, writer = await client.create_stream(is_unidirectional=True)
            pieces = [bytes([number]) * 65536 for number in range(200)]
            read = bytearray()

            async def write() -> None:
                for piece in pieces:
                    writer.write(piece)
                    await harrier.at_each_wait("drain", writer.drain)
                writer.write_eof()
                await harrier.at_each_wait("writer.wait_closed", writer.wait_closed)

            writing = asyncio.ensure_future(write())
            await until(lambda: harrier.cancelled["drain"])
            while data := await readers[0].read(1 << 20):
                read += data
            await writing
            assert read == b"".join(pieces)
            waiting = asyncio.ensure_future(harrier.at_each_wait("wait_closed", client.wait_closed))
            await rounds(5)
            assert not waiting.done()
        await waiting
    assert harrier.least(["ping", "drain", "writer.wait_closed", "wait_closed"]) > 0


@asynchronous
async def test_connects_cancelled_at_each_wait_leave_nothing() -> None:
    harrier = Harrier(0)

    async def ask(port: int) -> bytes:
        async with connect("127.0.0.1", port, configuration=client_configuration()) as client:
            reader, writer = await client.create_stream()
            writer.write(b"hello")
            writer.write_eof()
            return await reader.read()

    async with served(stream_handler=answer) as port:
        (server,) = running_servers
        assert await harrier.at_each_wait("connect", ask, port) == b"hello"
        await until(lambda: not server._protocols)
    await until(lambda: len(asyncio.all_tasks()) == 1)
    assert harrier.total > 3


def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async def echo() -> None:
        writer.write(await reader.read())
        writer.write_eof()

    answering.add(task := asyncio.ensure_future(echo()))
    task.add_done_callback(answering.discard)


answering: set[asyncio.Future[None]] = set()


def test_regression_cancelling_the_wait_for_a_server_to_close_cancelled_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    goes_on, close = asyncio.Event(), quic.Server.close

    async def slowly(server: quic.Server) -> None:
        await close(server)
        await goes_on.wait()

    monkeypatch.setattr(quic.Server, "close", slowly)

    @asynchronous
    async def test() -> None:
        harrier = Harrier(0)
        configuration = QuicConfiguration(is_client=False, certificate=CERT, private_key=KEY)
        server = await serve("127.0.0.1", 0, configuration=configuration)
        server.close()
        waiting = asyncio.ensure_future(harrier.at_each_wait("wait_closed", server.wait_closed))
        await until(lambda: waiting.done() or harrier.total >= 3)
        goes_on.set()
        await waiting

    test()
