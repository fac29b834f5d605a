"""An input method on a wlroots compositor that composes nothing: zwp_input_method_v2 over the raw wire.

With one bound, the compositor tells programs with a text input that they have its attention. Any line of stdin waits
until a program has asked for that.
"""

ACTIVATE, DEACTIVATE, DONE = 0, 1, 5
PATIENCE = 60


class Method:
    def __init__(self, wire, method):
        self.wire, self.method = wire, method
        self.next, self.is_active = False, False

    def hear(self, sender, opcode, body):
        if sender != self.method:
            return
        if opcode in (ACTIVATE, DEACTIVATE):
            self.next = opcode == ACTIVATE
        elif opcode == DONE:
            self.is_active = self.next

    def wait(self, words):
        for event in self.wire.sync():
            self.hear(*event)
        while not self.is_active:
            self.hear(*self.wire.event())


def main():
    wire = Wire()
    wire.socket.settimeout(PATIENCE)
    registry, names = wire.globals()
    seat = bind(wire, registry, names, "wl_seat")
    manager = bind(wire, registry, names, "zwp_input_method_manager_v2")
    method = wire.new_id()
    wire.request(manager, 0, struct.pack("<II", seat, method))
    wire.sync()
    converse(wire, Method(wire, method).wait)


main()
