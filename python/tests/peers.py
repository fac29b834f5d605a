"""Other QUIC libraries as programs of their own: a server that obeys commands, and a client that plays a
scenario.

    peers.py serve LIBRARY '{"cert": …, "key": …, "retry": false}'
    peers.py call LIBRARY '{"roots": …, "port": …, "scenario": "bulk"}'

The programs of `python/peers` do the same without LIBRARY; for WebTransport their roles are `web-serve`, with
a session at /echo, and `web-call`. The server prints its port and serves until its input ends; the client
prints what it saw, as JSON.

On each bidirectional stream the client's first line is a command for the server; `commands.py` has ours.

    echo          send back all that follows       reset N    reset this stream with code N
    stop N        stop this stream with code N     close N    close the connection with code N
    update        change keys, then as echo

A unidirectional stream comes back on another one, and so does a datagram. The libraries' asyncio interfaces
are the same but for what `Peer` levels.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import inspect
import json
import ssl
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any

ALPN = "test"
HOST = "127.0.0.1"
SERVER_NAME = "localhost"
BULK = 10 * 1024 * 1024
MANY = 200
LARGEST_CODE = 2**62 - 1
UNKNOWN_VERSION, VERSION_1, VERSION_2 = 0x1A2A3A4A, 1, 0x6B3343CF


@dataclass
class Stream:
    """What came on a stream."""

    data: bytearray = field(default_factory=bytearray)
    ended: bool = False
    reset: int | None = None
    stopped: int | None = None
    command: list[bytes] | None = None
    outgoing: asyncio.Queue[tuple[bytes, bool]] = field(default_factory=asyncio.Queue)


class Peer:
    """Mixed into a library's `QuicConnectionProtocol`: keeps what happened, for a scenario to wait for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.streams: dict[int, Stream] = {}
        self.datagrams: list[bytes] = []
        self.handshake: Any = None
        self.terminated: Any = None
        self.changed = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    @property
    def quic(self) -> Any:
        return self._quic  # type: ignore[attr-defined]  # of the class it is mixed into

    def quic_event_received(self, event: Any) -> None:
        kind = type(event).__name__
        if kind == "StreamDataReceived":
            stream = self.stream(event.stream_id)
            stream.data += bytes(event.data)
            stream.ended = stream.ended or event.end_stream
            self.stream_changed(event.stream_id, stream)
        elif kind == "StreamReset":
            self.stream(event.stream_id).reset = event.error_code
        elif kind == "StopSendingReceived":
            self.stream(event.stream_id).stopped = event.error_code
        elif kind == "DatagramFrameReceived":
            self.datagrams.append(bytes(event.data))
            self.datagram_received_from_peer(bytes(event.data))
        elif kind == "HandshakeCompleted":
            self.handshake = event
        elif kind == "ConnectionTerminated":
            self.terminated = event
        self.changed.set()

    def stream_changed(self, number: int, stream: Stream) -> None:
        """More came on a stream."""

    def datagram_received_from_peer(self, data: bytes) -> None:
        """A datagram came."""

    def stream(self, number: int) -> Stream:
        if number not in self.streams:
            self.streams[number] = Stream()
        return self.streams[number]

    async def until(self, condition: Any) -> None:
        while not condition():
            if self.terminated is not None:
                raise ConnectionError(f"the connection ended: {self.terminated}")
            self.changed.clear()
            await self.changed.wait()

    def flush(self) -> None:
        transmit = getattr(self, "transmit", None)
        if transmit is not None:
            transmit()

    async def send(self, number: int, data: bytes, end: bool) -> None:
        drained = getattr(self.quic, "send_stream_data_drained", None)
        if drained is not None:
            await drained(number, data, end_stream=end)
        else:
            self.quic.send_stream_data(number, data, end)
            self.flush()

    def send_soon(self, number: int, data: bytes, end: bool) -> None:
        """As `send`, after what was sent before on this stream."""
        stream = self.stream(number)
        if stream.outgoing.empty() and not any(task.get_name() == str(number) for task in self.tasks):
            self.tasks.append(asyncio.create_task(self.pump(number, stream), name=str(number)))
        stream.outgoing.put_nowait((data, end))

    async def pump(self, number: int, stream: Stream) -> None:
        end = False
        while not end:
            data, end = await stream.outgoing.get()
            await self.send(number, data, end)
        self.tasks = [task for task in self.tasks if task.get_name() != str(number)]


class Server(Peer):
    """Obeys the commands."""

    def stream_changed(self, number: int, stream: Stream) -> None:
        if number % 4 == 2:
            if stream.ended:
                self.send_soon(
                    self.quic.get_next_available_stream_id(is_unidirectional=True), bytes(stream.data), True
                )
            return
        if number % 4 != 0:
            return
        if stream.command is None:
            line, newline, rest = bytes(stream.data).partition(b"\n")
            if not newline:
                return
            stream.command = line.split()
            stream.data[:] = rest
            self.obey(number, *stream.command)
        if stream.command[0] in {b"echo", b"update"} and (stream.data or stream.ended):
            self.send_soon(number, bytes(stream.data), stream.ended)
            stream.data.clear()

    def obey(self, number: int, command: bytes, code: bytes = b"0") -> None:
        if command == b"reset":
            self.quic.reset_stream(number, int(code))
        elif command == b"stop":
            self.quic.stop_stream(number, int(code))
        elif command == b"close":
            self.quic.close(error_code=int(code), reason_phrase="as told")
        elif command == b"update":
            self.quic.request_key_update()
        self.flush()

    def datagram_received_from_peer(self, data: bytes) -> None:
        self.quic.send_datagram_frame(data)
        self.flush()


class Client(Peer):
    """Gives the commands."""

    async def open(self, command: str, data: bytes = b"", end: bool = True) -> int:
        number = self.quic.get_next_available_stream_id()
        self.stream(number)
        await self.send(number, command.encode() + b"\n" + data, end)
        return int(number)

    async def echo(self, data: bytes, command: str = "echo") -> None:
        number = await self.open(command, data)
        await self.until(lambda: self.streams[number].ended)
        assert bytes(self.streams[number].data) == data, "the echo is not what was sent"

    async def handshake_scenario(self) -> None:
        await self.echo(b"hello")
        assert self.handshake.alpn_protocol == ALPN

    async def bulk_scenario(self) -> None:
        await self.echo(bytes(range(256)) * (BULK // 256))

    async def many_scenario(self) -> None:
        for first in range(0, MANY, 50):
            await asyncio.gather(*[self.echo(b"%d" % number * 100) for number in range(first, first + 50)])

    async def uni_scenario(self) -> None:
        number = self.quic.get_next_available_stream_id(is_unidirectional=True)
        await self.send(number, b"one way", True)
        await self.until(
            lambda: any(number % 4 == 3 and stream.ended for number, stream in self.streams.items())
        )
        assert [bytes(stream.data) for number, stream in self.streams.items() if number % 4 == 3] == [
            b"one way"
        ]

    async def codes_scenario(self) -> None:
        for code in 0, 7, LARGEST_CODE:
            reset = await self.open(f"reset {code}", end=False)
            await self.until(lambda reset=reset: self.streams[reset].reset is not None)
            assert self.streams[reset].reset == code, self.streams[reset]
            stop = await self.open(f"stop {code}", end=False)
            await self.until(lambda stop=stop: self.streams[stop].stopped is not None)
            assert self.streams[stop].stopped == code, self.streams[stop]
            # The other way round the server tells: see `commands.py`.
            sent = await self.open("watch", end=False)
            await self.until(lambda sent=sent: self.streams[sent].data)
            self.quic.reset_stream(sent, code)
            self.flush()
            await self.until(lambda sent=sent: self.streams[sent].ended)
            assert bytes(self.streams[sent].data) == b"!reset %d" % code, self.streams[sent]
            sent = await self.open("watch", end=False)
            await self.until(lambda sent=sent: self.streams[sent].data)
            self.quic.stop_stream(sent, code)
            self.flush()
            await self.echo(b"")

    async def close_scenario(self) -> None:
        with contextlib.suppress(ConnectionError):
            number = await self.open(f"close {LARGEST_CODE}")
            await self.until(lambda: self.streams[number].ended)
        assert self.terminated.error_code == LARGEST_CODE, self.terminated

    async def datagrams_scenario(self) -> None:
        await self.echo(b"")
        self.quic.send_datagram_frame(b"datagram")
        self.flush()
        await self.until(lambda: self.datagrams)
        assert self.datagrams == [b"datagram"]

    async def update_scenario(self) -> None:
        for _ in range(2):
            await self.echo(bytes(5000))
            self.quic.request_key_update()
            self.flush()
            await self.echo(bytes(5000), "update")


class Library:
    """One of the libraries, by name: where its parts are, and what it wants to be told."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asyncio = importlib.import_module(f"{name}.asyncio")
        self.client = importlib.import_module(f"{name}.asyncio.client")
        self.server = importlib.import_module(f"{name}.asyncio.server")
        self.protocol = importlib.import_module(f"{name}.asyncio.protocol").QuicConnectionProtocol
        self._configuration = importlib.import_module(f"{name}.quic.configuration").QuicConfiguration

    def configuration(self, is_client: bool, options: dict[str, Any]) -> Any:
        known = {"alpn_protocols": [ALPN], "is_client": is_client, "max_datagram_frame_size": 65536 - 1}
        if self.name == "aiopquic":
            known["stream_ring_cap"] = 2 * BULK
            if options.get("tickets"):
                known["session_ticket_file"] = options["tickets"]
        configuration = self._configuration(**known)
        if "versions" in options:
            configuration.supported_versions = options["versions"]
        if "original_version" in options:
            configuration.original_version = options["original_version"]
        if is_client:
            configuration.server_name = SERVER_NAME
            configuration.verify_mode = ssl.CERT_REQUIRED
            configuration.load_verify_locations(cafile=options["roots"])
        else:
            configuration.load_cert_chain(options["cert"], options["key"])
        return configuration

    def mixed(self, kind: type[Peer]) -> type[Any]:
        return type(kind.__name__, (kind, self.protocol), {})

    @property
    def keeps_tickets_in_a_file(self) -> bool:
        return self.name == "aiopquic"


async def serve(library: Library, options: dict[str, Any]) -> None:
    tickets: dict[bytes, Any] = {}
    extra: dict[str, Any] = {"retry": options.get("retry", False)}
    if "session_ticket_handler" in inspect.signature(library.server.serve).parameters:
        extra["session_ticket_handler"] = lambda ticket: tickets.__setitem__(ticket.ticket, ticket)
        extra["session_ticket_fetcher"] = lambda label: tickets.pop(label, None)
    port = options.get("port", 0)
    server = await library.server.serve(
        HOST,
        port,
        configuration=library.configuration(False, options),
        create_protocol=library.mixed(Server),
        **extra,
    )
    transport = getattr(server, "_transport", None)
    if port == 0:
        # There is one where ports are chosen.
        port = transport.get_extra_info("sockname")[1]  # type: ignore[union-attr]
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


async def call(library: Library, options: dict[str, Any]) -> dict[str, Any]:
    scenario = options["scenario"]
    if scenario == "resume":
        return await resume(library, options)
    configuration = library.configuration(True, options)
    connect = library.client.connect(
        HOST, options["port"], configuration=configuration, create_protocol=library.mixed(Client)
    )
    async with connect as client:
        await getattr(client, f"{scenario}_scenario")()
    return {"ok": True}


async def resume(library: Library, options: dict[str, Any]) -> dict[str, Any]:
    """Two connections; the second sends its data early."""
    kept: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        options = {**options, "tickets": f"{folder}/tickets"}
        connect = functools.partial(
            library.client.connect, HOST, options["port"], create_protocol=library.mixed(Client)
        )
        if not library.keeps_tickets_in_a_file:
            connect = functools.partial(connect, session_ticket_handler=kept.append)
        async with connect(configuration=library.configuration(True, options)) as client:
            await client.echo(b"first")
            if not library.keeps_tickets_in_a_file:
                while not kept:
                    await client.echo(b"")
        configuration = library.configuration(True, options)
        if kept:
            configuration.session_ticket = kept[0]
        async with connect(configuration=configuration, wait_connected=False) as client:
            await client.echo(b"second")
            await client.until(lambda: client.handshake is not None)
            return {"resumed": bool(client.handshake.session_resumed)}


async def main() -> None:
    role, name, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    library = Library(name)
    async with asyncio.timeout(60 if role == "call" else None):
        if role == "serve":
            await serve(library, options)
        else:
            print(json.dumps(await call(library, options)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
