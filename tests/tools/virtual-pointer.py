#!/usr/bin/env python3
"""Moves and presses a virtual pointer on a wlroots compositor: zwlr_virtual_pointer_v1 over the raw wire.

Use: virtual-pointer.py WIDTH HEIGHT, then one command per line on stdin; each is answered with `done` once the
compositor has taken it: `move X Y`, `press [BUTTON]`, `release [BUTTON]`, `axis AMOUNT` as of a touchpad, `wheel STEPS`
with 15 to a step. The first `done` comes unasked, when the pointer exists. It stays until stdin ends.
"""

import os
import socket
import struct
import sys
import time

LEFT_BUTTON = 0x110
WHEEL = 0
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

    def request(self, sender, opcode, body=b""):
        self.socket.sendall(struct.pack("<II", sender, (len(body) + 8) << 16 | opcode) + body)

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


def main():
    width, height = int(sys.argv[1]), int(sys.argv[2])
    wire = Wire()
    pointer = make_pointer(wire)
    print("done", flush=True)
    for line in sys.stdin:
        act(wire, pointer, line.split(), width, height)
        wire.sync()
        print("done", flush=True)


def make_pointer(wire):
    registry, names = wire.new_id(), {}
    wire.request(DISPLAY, 1, struct.pack("<I", registry))
    for sender, opcode, body in wire.sync():
        if sender == registry and opcode == 0:
            name, length = struct.unpack_from("<II", body)
            names[body[8 : 8 + length - 1].decode()] = name
    seat = bind(wire, registry, names, "wl_seat")
    manager = bind(wire, registry, names, "zwlr_virtual_pointer_manager_v1")
    pointer = wire.new_id()
    wire.request(manager, 0, struct.pack("<II", seat, pointer))
    wire.sync()
    return pointer


def bind(wire, registry, names, interface):
    text, identifier = interface.encode() + b"\0", wire.new_id()
    padded = struct.pack("<I", len(text)) + text + b"\0" * (-len(text) % 4)
    wire.request(registry, 0, struct.pack("<I", names[interface]) + padded + struct.pack("<II", 1, identifier))
    return identifier


def act(wire, pointer, words, width, height):
    now = int(time.monotonic() * 1000) & 0xFFFFFFFF
    verb, values = words[0], words[1:]
    if verb == "move":
        wire.request(pointer, 1, struct.pack("<IIIII", now, int(values[0]), int(values[1]), width, height))
    elif verb in ("press", "release"):
        button = int(values[0], 0) if values else LEFT_BUTTON
        wire.request(pointer, 2, struct.pack("<III", now, button, verb == "press"))
    elif verb == "axis":
        wire.request(pointer, 3, struct.pack("<IIi", now, 0, int(float(values[0]) * 256)))
    elif verb == "wheel":
        steps = int(values[0])
        wire.request(pointer, 5, struct.pack("<I", WHEEL))
        wire.request(pointer, 7, struct.pack("<IIii", now, 0, steps * 15 * 256, steps))
    else:
        raise SystemExit(f"error: unknown command `{' '.join(words)}`")
    wire.request(pointer, 4)


main()
