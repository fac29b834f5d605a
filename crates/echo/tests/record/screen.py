"""A Wayland client that types on a virtual keyboard and takes every distinct frame of the first output.

It speaks the wire itself (zwp_virtual_keyboard_v1, zwlr_screencopy_v1), because nothing that can be installed does both
and says when. It judges no pixels.
"""

import array
import mmap
import os
import select
import socket
import struct
import time

KEYMAP = """xkb_keymap { xkb_keycodes { include "evdev+aliases(qwerty)" }; xkb_types { include "complete" };
xkb_compat { include "complete" }; xkb_symbols { include "pc+LAYOUT+inet(evdev)" }; };\0"""
SHIFT_CODE = 42


class Screen:
    def __init__(self, path, layout):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._unread, self._last_id = b"", 1
        self._registry = self._new()
        self._request(1, 1, struct.pack("<I", self._registry))
        done, names = self._new(), {}
        self._request(1, 0, struct.pack("<I", done))
        while done is not None:
            for object_id, opcode, body in self._events(1):
                if object_id == self._registry and opcode == 0:
                    name, length = struct.unpack_from("<II", body)
                    names.setdefault(body[8 : 8 + length - 1].decode(), name)
                if object_id == done:
                    done = None
        bind = lambda interface, version: self._bind(names[interface], interface, version)
        self._shm, seat, self._output = bind("wl_shm", 1), bind("wl_seat", 1), bind("wl_output", 1)
        keyboards = bind("zwp_virtual_keyboard_manager_v1", 1)
        self._copies = bind("zwlr_screencopy_manager_v1", 2)
        self._keyboard = self._new()
        self._request(keyboards, 0, struct.pack("<II", seat, self._keyboard))
        keymap, text = os.memfd_create("keymap"), KEYMAP.replace("LAYOUT", layout).encode()
        os.write(keymap, text)
        self._request(self._keyboard, 0, struct.pack("<II", 1, len(text)), keymap)
        self._buffer = self._memory = self._frame = None
        self.width = self.height = self._stride = 0
        # A seat that has had no key loses the first one.
        self.press(SHIFT_CODE, 0)

    def press(self, code, modifiers):
        stamp = int(time.monotonic() * 1000) & 0xFFFFFFFF
        self._request(self._keyboard, 2, struct.pack("<IIII", modifiers, 0, 0, 0))
        for state in (1, 0):
            self._request(self._keyboard, 1, struct.pack("<III", stamp, code, state))
        self._request(self._keyboard, 2, struct.pack("<IIII", 0, 0, 0, 0))

    def frame(self, timeout):
        """The rows of the next frame that has damage, as bytes of XRGB; None when none comes in time."""
        if self._frame is None:
            self._frame = self._new()
            self._request(self._copies, 0, struct.pack("<IiI", self._frame, 0, self._output))
        for object_id, opcode, body in self._events(timeout):
            if object_id != self._frame:
                continue
            if opcode == 0:
                self._offered(*struct.unpack("<IIII", body))
            elif opcode in (2, 3):
                rows = self._rows() if opcode == 2 else None
                self._request(self._frame, 1)
                self._frame = None
                if rows:
                    return rows
        return None

    def _offered(self, pixel_format, width, height, stride):
        first = self._buffer is None
        if first:
            file = os.memfd_create("pixels")
            os.ftruncate(file, stride * height)
            self._memory = mmap.mmap(file, stride * height)
            pool, self._buffer = self._new(), self._new()
            self._request(self._shm, 0, struct.pack("<Ii", pool, stride * height), file)
            layout = struct.pack("<IiiiiI", self._buffer, 0, width, height, stride, pixel_format)
            self._request(pool, 0, layout)
            self.width, self.height, self._stride = width, height, stride
        self._request(self._frame, 0 if first else 2, struct.pack("<I", self._buffer))

    def _rows(self):
        starts = range(0, self._stride * self.height, self._stride)
        return [self._memory[start : start + self.width * 4] for start in starts]

    def _bind(self, name, interface, version):
        text = interface.encode() + b"\0"
        text = struct.pack("<I", len(text)) + text + b"\0" * (-len(text) % 4)
        object_id = self._new()
        self._request(self._registry, 0, struct.pack("<I", name) + text + struct.pack("<II", version, object_id))
        return object_id

    def _new(self):
        self._last_id += 1
        return self._last_id

    def _request(self, object_id, opcode, body=b"", file=None):
        message = struct.pack("<II", object_id, (len(body) + 8) << 16 | opcode) + body
        files = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))] if file is not None else []
        self._socket.sendmsg([message], files)
        if file is not None:
            os.close(file)

    def _events(self, timeout):
        if select.select([self._socket], [], [], max(0, timeout))[0]:
            received = self._socket.recv(65536)
            if not received:
                raise SystemExit("the compositor has closed the connection")
            self._unread += received
        events = []
        while len(self._unread) >= 8:
            object_id, head = struct.unpack_from("<II", self._unread)
            if len(self._unread) < head >> 16:
                break
            events.append((object_id, head & 0xFFFF, self._unread[8 : head >> 16]))
            self._unread = self._unread[head >> 16 :]
            if events[-1][:2] == (1, 0):
                raise SystemExit(f"protocol error: {events[-1][2]!r}")
        return events
