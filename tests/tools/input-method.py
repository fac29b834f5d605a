"""An input method on a wlroots compositor that composes nothing: zwp_input_method_v2 over the raw wire.

With one bound, the compositor tells programs with a text input that they have its attention.
"""


def main():
    wire = Wire()
    registry, names = wire.globals()
    seat = bind(wire, registry, names, "wl_seat")
    manager = bind(wire, registry, names, "zwp_input_method_manager_v2")
    wire.request(manager, 0, struct.pack("<II", seat, wire.new_id()))
    wire.sync()
    converse(wire, lambda words: None)


main()
