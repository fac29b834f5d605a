#!/usr/bin/env python3
"""A GTK 4 window with a long list, and a button whose popover grows when the row in it is opened.

A popover that grows asks the compositor to place it again: `xdg_popup.reposition`.
"""

import gi

gi.require_version("Gtk", "4.0")
from gi.repository import Gio, Gtk  # noqa: E402


def activate(app):
    Gtk.Settings.get_default().set_property("gtk-enable-animations", False)
    rows = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
    for number in range(200):
        rows.append(Gtk.Label(label=f"row {number} " + "." * (number % 40), xalign=0))
    more = Gtk.Expander(label="more")
    more.set_child(Gtk.Label(label="\n".join(f"what was hidden {number}" for number in range(8))))
    button = Gtk.MenuButton(label="open", popover=Gtk.Popover(child=more))
    box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
    box.append(button)
    box.append(Gtk.ScrolledWindow(child=rows, vexpand=True, kinetic_scrolling=False, overlay_scrolling=False))
    window = Gtk.ApplicationWindow(application=app, title="toolkit", default_width=600, default_height=400)
    window.set_child(box)
    window.present()


app = Gtk.Application(application_id="wayferry.toolkit", flags=Gio.ApplicationFlags.NON_UNIQUE)
app.connect("activate", activate)
app.run()
