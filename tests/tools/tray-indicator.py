#!/usr/bin/env python3
"""A program with an icon in the tray, by libayatana-appindicator: a name of an icon, and a menu.

Writes a line to stdout for each entry that the user chooses. `Rename` changes its title, its icon, which then is a file
of its own, and its menu; `Quit` ends it.
"""

import os

import gi

gi.require_version("Gtk", "3.0")
gi.require_version("AyatanaAppIndicator3", "0.1")
from gi.repository import AyatanaAppIndicator3, GdkPixbuf, Gtk  # noqa: E402

indicator = AyatanaAppIndicator3.Indicator.new(
    "mail", "mail-unread", AyatanaAppIndicator3.IndicatorCategory.COMMUNICATIONS
)
indicator.set_status(AyatanaAppIndicator3.IndicatorStatus.ACTIVE)
indicator.set_title("Mail")
menu = Gtk.Menu()


def add(to, entry, act=None):
    def chosen(entry):
        print(entry.get_label(), flush=True)
        if act:
            act(entry)

    entry.connect("activate", chosen)
    to.append(entry)
    return entry


def rename(entry):
    entry.set_label("Renamed")
    indicator.set_title("Post")
    # A picture that no theme has.
    home = os.environ["HOME"]
    picture = GdkPixbuf.Pixbuf.new(GdkPixbuf.Colorspace.RGB, True, 8, 32, 32)
    picture.fill(0x010203FF)
    picture.savev(f"{home}/own.png", "png", [], [])
    indicator.set_icon_theme_path(home)
    indicator.set_icon_full("own", "read")


add(menu, Gtk.MenuItem(label="Rename"), rename)
add(menu, Gtk.CheckMenuItem(label="Quiet", active=True))
menu.append(Gtk.SeparatorMenuItem())
folders = Gtk.MenuItem(label="Folders")
folders.set_submenu(Gtk.Menu())
add(folders.get_submenu(), Gtk.MenuItem(label="Inbox"))
menu.append(folders)
add(menu, Gtk.MenuItem(label="Grey", sensitive=False))
add(menu, Gtk.MenuItem(label="Quit"), Gtk.main_quit)
menu.show_all()
indicator.set_menu(menu)
Gtk.main()
