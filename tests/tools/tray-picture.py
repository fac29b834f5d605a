#!/usr/bin/env python3
"""A program with an icon in the tray that is a picture, and that is clicked: no menu.

Its words are how many icons it has, and whether it changes them without end (`flood`). Writes what it is told as lines
to stdout, and first whether there is a tray.
"""

import sys

from gi.repository import Gio, GLib

ITEM = "org.kde.StatusNotifierItem"
WATCHER = "org.kde.StatusNotifierWatcher"
INTERFACE = """
<node><interface name="org.kde.StatusNotifierItem">
  <property name="Category" type="s" access="read"/><property name="Id" type="s" access="read"/>
  <property name="Title" type="s" access="read"/><property name="Status" type="s" access="read"/>
  <property name="IconName" type="s" access="read"/><property name="IconPixmap" type="a(iiay)" access="read"/>
  <property name="ToolTip" type="(sa(iiay)ss)" access="read"/><property name="ItemIsMenu" type="b" access="read"/>
  <method name="Activate"><arg type="i" direction="in"/><arg type="i" direction="in"/></method>
  <method name="SecondaryActivate"><arg type="i" direction="in"/><arg type="i" direction="in"/></method>
  <method name="ContextMenu"><arg type="i" direction="in"/><arg type="i" direction="in"/></method>
  <method name="Scroll"><arg type="i" direction="in"/><arg type="s" direction="in"/></method>
  <method name="ProvideXdgActivationToken"><arg type="s" direction="in"/></method>
</interface></node>
"""

count, flood = int(sys.argv[1]), "flood" in sys.argv
turn = 0


def say(*words):
    print(*words, flush=True)


def called(_connection, _sender, path, _interface, method, arguments, call):
    call.return_value(None)
    say(path, method, *arguments.unpack())


def get(_connection, _sender, path, _interface, name):
    pictures = [(16, 16, bytes([255, 9, 9, 9] * 256)), (48, 48, bytes([255, 1, 2, 3] * 48 * 48))]
    values = {
        "Category": ("s", "Hardware"),
        "Id": ("s", path),
        "Title": ("s", f"Title {turn} of <b>{path}</b>"),
        "Status": ("s", "NeedsAttention"),
        "IconName": ("s", "/etc/passwd"),
        "IconPixmap": ("a(iiay)", pictures),
        "ToolTip": ("(sa(iiay)ss)", ("", [], "A <b>tip</b>", "a &amp; b")),
        "ItemIsMenu": ("b", False),
    }
    return GLib.Variant(*values[name])


bus = Gio.bus_get_sync(Gio.BusType.SESSION)
interface = Gio.DBusNodeInfo.new_for_xml(INTERFACE).interfaces[0]


def watcher(target, method, words):
    return bus.call_sync(WATCHER, "/StatusNotifierWatcher", target, method, words, None, 0, -1, None)


def register():
    for number in range(count):
        path = f"/icon{number}"
        bus.register_object(path, interface, called, get, None)
        try:
            watcher(WATCHER, "RegisterStatusNotifierItem", GLib.Variant("(s)", (path,)))
        except GLib.Error as error:
            say("refused", path, error.message)


def change():
    global turn
    turn += 1
    for number in range(count):
        bus.emit_signal(None, f"/icon{number}", ITEM, "NewTitle", None)
    return True


def ask():
    words = GLib.Variant("(ss)", (WATCHER, "IsStatusNotifierHostRegistered"))
    return watcher("org.freedesktop.DBus.Properties", "Get", words).unpack()[0]


def hosts(_connection, _sender, _path, _interface, signal, _words):
    if "Host" in signal:
        say(signal)


bus.signal_subscribe(WATCHER, WATCHER, None, None, None, 0, hosts)
say("tray", ask())
register()
if flood:
    GLib.timeout_add(1, change)
GLib.MainLoop().run()
