#!/usr/bin/env python3
"""A desk's tray without a screen: a watcher, and a host that looks at icons.

Writes what it sees as lines of JSON to stdout: each icon when it comes and when it changes, with its menu, and its end.
With `--no-host` it is a watcher alone.
"""

import hashlib
import json
import sys

from gi.repository import Gio, GLib

WATCHER = "org.kde.StatusNotifierWatcher"
ITEM = "org.kde.StatusNotifierItem"
MENU = "com.canonical.dbusmenu"
PROPERTIES = "org.freedesktop.DBus.Properties"
INTERFACE = """
<node><interface name="org.kde.StatusNotifierWatcher">
  <method name="RegisterStatusNotifierItem"><arg type="s" direction="in"/></method>
  <method name="RegisterStatusNotifierHost"><arg type="s" direction="in"/></method>
  <property name="RegisteredStatusNotifierItems" type="as" access="read"/>
  <property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
  <property name="ProtocolVersion" type="i" access="read"/>
</interface></node>
"""

has_host = "--no-host" not in sys.argv


def say(line):
    print(json.dumps(line), flush=True)


def plain(value):
    """Pictures as their size and a hash."""
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], tuple) and len(value[0]) == 3:
        return [[w, h, hashlib.sha256(bytes(data)).hexdigest()[:8]] for w, h, data in value]
    return value


def entries(node):
    """Of the menu: number, properties, entries below."""
    number, properties, children = node
    return {"id": number, **properties, "below": [entries(child) for child in children]}


def look(connection, name):
    def call(path, interface, method, words, then):
        def done(source, result):
            try:
                then(source.call_finish(result).unpack())
            except GLib.Error as error:
                say({"trouble": str(error), "name": name})

        connection.call(name, path, interface, method, words, None, 0, -1, None, done)

    def seen(answer):
        item = {key: plain(value) for key, value in answer[0].items()}
        if item["Menu"] == "/NO_DBUSMENU":
            say({"name": name, **item})
            return
        words = GLib.Variant("(iias)", (0, -1, []))
        call(item["Menu"], MENU, "GetLayout", words, lambda menu: say({"name": name, **item, "menu": entries(menu[1])}))

    call("/StatusNotifierItem", PROPERTIES, "GetAll", GLib.Variant("(s)", (ITEM,)), seen)


def follow(connection, name):
    subscribe = connection.signal_subscribe

    def changed(*_):
        look(connection, name)

    def moved(_connection, _sender, _path, _interface, _signal, words):
        if words.unpack()[2] == "":
            say({"gone": name})

    subscribe(name, ITEM, None, None, None, 0, changed)
    subscribe(name, MENU, "LayoutUpdated", None, None, 0, changed)
    subscribe("org.freedesktop.DBus", None, "NameOwnerChanged", None, name, 0, moved)
    look(connection, name)


def called(connection, _sender, _path, _interface, method, arguments, call):
    call.return_value(None)
    if method == "RegisterStatusNotifierItem":
        follow(connection, arguments.unpack()[0])


def get(_connection, _sender, _path, _interface, name):
    if name == "IsStatusNotifierHostRegistered":
        return GLib.Variant("b", has_host)
    return GLib.Variant("as", []) if name == "RegisteredStatusNotifierItems" else GLib.Variant("i", 0)


def acquired(connection, _name):
    interface = Gio.DBusNodeInfo.new_for_xml(INTERFACE).interfaces[0]
    connection.register_object("/StatusNotifierWatcher", interface, called, get, None)


loop = GLib.MainLoop()
ready = lambda *_: say({"ready": True})  # noqa: E731
Gio.bus_own_name(Gio.BusType.SESSION, WATCHER, Gio.BusNameOwnerFlags.NONE, acquired, ready, lambda *_: loop.quit())
loop.run()
