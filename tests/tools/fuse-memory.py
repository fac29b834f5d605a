#!/usr/bin/env python3
"""Hands a file to the compositor as shared memory, once the file system that it is on has stopped to answer.

Use: fuse-memory.py FILE STOPPED. Opens FILE and prints `open`, waits until STOPPED exists, then makes a pool of FILE and
prints the error that the compositor answers with: the interface's object, its code and its words.
"""

import array
import os
import socket
import struct
import sys
import time

DISPLAY, REGISTRY, SHM, POOL = 1, 2, 3, 4


def message(sender, opcode, body):
    return struct.pack("<II", sender, (len(body) + 8) << 16 | opcode) + body


def text(words):
    raw = words.encode() + b"\0"
    return struct.pack("<I", len(raw)) + raw + b"\0" * (-len(raw) % 4)


def events(wire):
    unread = b""
    while piece := wire.recv(65536):
        unread += piece
        while len(unread) >= 8 and len(unread) >= (size := struct.unpack_from("<II", unread)[1] >> 16):
            sender, header = struct.unpack_from("<II", unread)
            yield sender, header & 0xFFFF, unread[8:size]
            unread = unread[size:]


def main():
    path, stopped = sys.argv[1:]
    file = os.open(path, os.O_RDWR)
    print("open", flush=True)
    while not os.path.exists(stopped):
        time.sleep(0.01)
    wire = socket.socket(socket.AF_UNIX)
    wire.connect(os.path.join(os.environ["XDG_RUNTIME_DIR"], os.environ["WAYLAND_DISPLAY"]))
    wire.sendall(message(DISPLAY, 1, struct.pack("<I", REGISTRY)))
    for sender, opcode, body in events(wire):
        if sender == REGISTRY and body[8:].startswith(b"wl_shm\0"):
            name = struct.unpack_from("<I", body)[0]
            wire.sendall(message(REGISTRY, 0, struct.pack("<I", name) + text("wl_shm") + struct.pack("<II", 1, SHM)))
            pool = message(SHM, 0, struct.pack("<Ii", POOL, 4096))
            # In one piece: after its answer to the first the session reads nothing more.
            sync = message(DISPLAY, 0, struct.pack("<I", POOL + 1))
            wire.sendmsg([pool + sync], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))])
        elif sender == DISPLAY and opcode == 0:
            sender, code = struct.unpack_from("<II", body)
            print(sender, code, body[12:].rstrip(b"\0").decode(), flush=True)
            return
        elif sender == POOL + 1:
            print("no error", flush=True)
            return


main()
