"""Types on a virtual keyboard on a wlroots compositor: zwp_virtual_keyboard_v1 over the raw wire.

It has one keymap for all that it types, as a keyboard on a desk has. One command per line on stdin: `key CODE MODIFIERS`
presses and releases a key, by evdev's code, `hold CODE` presses it. The keyboard stays until stdin ends.
"""

KEYMAP = b"""xkb_keymap { xkb_keycodes { include "evdev+aliases(qwerty)" }; xkb_types { include "complete" };
xkb_compat { include "complete" }; xkb_symbols { include "pc+us+inet(evdev)" }; };\0"""
SHIFT_CODE = 42


def main():
    wire = Wire()
    registry, names = wire.globals()
    seat = bind(wire, registry, names, "wl_seat")
    manager = bind(wire, registry, names, "zwp_virtual_keyboard_manager_v1")
    keyboard = wire.new_id()
    wire.request(manager, 0, struct.pack("<II", seat, keyboard))
    file = os.memfd_create("keymap")
    os.write(file, KEYMAP)
    wire.request(keyboard, 0, struct.pack("<II", 1, len(KEYMAP)), file)
    # A seat that has had no key loses the first one.
    press(wire, keyboard, SHIFT_CODE, 0)
    wire.sync()
    converse(wire, lambda words: act(wire, keyboard, words[0], *map(int, words[1:])))


def act(wire, keyboard, what, code, modifiers=0):
    if what == "hold":
        turn(wire, keyboard, code, 1)
    else:
        press(wire, keyboard, code, modifiers)


def turn(wire, keyboard, code, state):
    stamp = int(time.monotonic() * 1000) & 0xFFFFFFFF
    wire.request(keyboard, 1, struct.pack("<III", stamp, code, state))


def press(wire, keyboard, code, modifiers):
    wire.request(keyboard, 2, struct.pack("<IIII", modifiers, 0, 0, 0))
    for state in (1, 0):
        turn(wire, keyboard, code, state)
    wire.request(keyboard, 2, struct.pack("<IIII", 0, 0, 0, 0))


main()
