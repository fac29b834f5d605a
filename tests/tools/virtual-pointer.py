"""Moves and presses a virtual pointer on a wlroots compositor: zwlr_virtual_pointer_v1 over the raw wire.

Arguments: WIDTH HEIGHT; then one command per line on stdin: `move X Y`, `press [BUTTON]`, `release [BUTTON]`,
`axis AMOUNT` as of a touchpad, `wheel STEPS` with 15 to a step. The pointer stays until stdin ends.
"""

LEFT_BUTTON = 0x110
WHEEL = 0


def main():
    width, height = int(sys.argv[1]), int(sys.argv[2])
    wire = Wire()
    pointer = make_pointer(wire)
    converse(wire, lambda words: act(wire, pointer, words, width, height))


def make_pointer(wire):
    registry, names = wire.globals()
    seat = bind(wire, registry, names, "wl_seat")
    manager = bind(wire, registry, names, "zwlr_virtual_pointer_manager_v1")
    pointer = wire.new_id()
    wire.request(manager, 0, struct.pack("<II", seat, pointer))
    wire.sync()
    return pointer


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
