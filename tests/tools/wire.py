"""A Wayland connection of a few lines, for devices that a test plays: requests, `wl_display.sync` and globals.

It stands before the source of a device, which names itself in `main`.
"""

import array
import os
import socket
import struct
import sys
import time

DISPLAY = 1


class Wire:
    """A Wayland connection that only knows requests and `wl_display.sync`."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.path.join(os.environ["XDG_RUNTIME_DIR"], os.environ["WAYLAND_DISPLAY"]))
        self.unread = b""
        self.next_id = DISPLAY + 1

    def new_id(self):
        """Identifiers must follow each other without a gap."""
        self.next_id += 1
        return self.next_id - 1

    def request(self, sender, opcode, body=b"", file=None):
        message = struct.pack("<II", sender, (len(body) + 8) << 16 | opcode) + body
        files = [] if file is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))]
        self.socket.sendmsg([message], files)

    def sync(self):
        """Every event that came before the compositor answered."""
        callback = self.new_id()
        self.request(DISPLAY, 0, struct.pack("<I", callback))
        events = []
        while True:
            sender, opcode, body = self.event()
            if sender == DISPLAY and opcode == 0:
                raise SystemExit(f"error: the compositor says {body!r}")
            if sender == callback:
                return events
            events.append((sender, opcode, body))

    def event(self):
        while True:
            if len(self.unread) >= 8:
                sender, header = struct.unpack_from("<II", self.unread)
                size = header >> 16
                if len(self.unread) >= size:
                    body, self.unread = self.unread[8:size], self.unread[size:]
                    return sender, header & 0xFFFF, body
            more = self.socket.recv(65536)
            if not more:
                raise SystemExit("error: the compositor went away")
            self.unread += more

    def globals(self):
        """The registry, and the names of what it lists."""
        registry, names = self.new_id(), {}
        self.request(DISPLAY, 1, struct.pack("<I", registry))
        for sender, opcode, body in self.sync():
            if sender == registry and opcode == 0:
                name, length = struct.unpack_from("<II", body)
                names[body[8 : 8 + length - 1].decode()] = name
        return registry, names


def bind(wire, registry, names, interface):
    text, identifier = interface.encode() + b"\0", wire.new_id()
    padded = struct.pack("<I", len(text)) + text + b"\0" * (-len(text) % 4)
    wire.request(registry, 0, struct.pack("<I", names[interface]) + padded + struct.pack("<II", 1, identifier))
    return identifier


def converse(wire, act):
    """Answers each line of stdin with `done`, once the compositor has taken it, and the device itself before those."""
    print("done", flush=True)
    for line in sys.stdin:
        act(line.split())
        wire.sync()
        print("done", flush=True)
