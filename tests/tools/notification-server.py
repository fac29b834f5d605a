#!/usr/bin/env python3
"""A desk's notification server without a screen.

Writes each thing that it is asked as a line of JSON to stdout. Where a body has the word `press:KEY`, or
PRESS in the environment is KEY and there are actions, the user chooses that action at once; where it has `dismiss`, the user takes the notification away.
"""

import json
import os

from gi.repository import Gio, GLib

NAME = "org.freedesktop.Notifications"
PATH = "/org/freedesktop/Notifications"
INTERFACE = """
<node><interface name="org.freedesktop.Notifications">
  <method name="GetCapabilities"><arg type="as" direction="out"/></method>
  <method name="GetServerInformation">
    <arg type="s" direction="out"/><arg type="s" direction="out"/>
    <arg type="s" direction="out"/><arg type="s" direction="out"/>
  </method>
  <method name="Notify">
    <arg type="s" direction="in"/><arg type="u" direction="in"/><arg type="s" direction="in"/>
    <arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="as" direction="in"/>
    <arg type="a{sv}" direction="in"/><arg type="i" direction="in"/><arg type="u" direction="out"/>
  </method>
  <method name="CloseNotification"><arg type="u" direction="in"/></method>
  <signal name="NotificationClosed"><arg type="u"/><arg type="u"/></signal>
  <signal name="ActionInvoked"><arg type="u"/><arg type="s"/></signal>
  <signal name="ActivationToken"><arg type="u"/><arg type="s"/></signal>
</interface></node>
"""
FIELDS = ["app", "replaces", "icon", "summary", "body", "actions", "hints", "timeout"]

# Numbers that a host could not guess from its own.
last = 1000


def say(line):
    print(json.dumps(line), flush=True)


def called(connection, _sender, _path, _interface, method, arguments, call):
    def signal(name, kinds, *values):
        connection.emit_signal(None, PATH, NAME, name, GLib.Variant(kinds, values))

    values = arguments.unpack()
    if method == "GetCapabilities":
        call.return_value(GLib.Variant("(as)", (["actions", "body", "body-markup"],)))
    elif method == "GetServerInformation":
        call.return_value(GLib.Variant("(ssss)", ("test", "test", "1", "1.2")))
    elif method == "CloseNotification":
        say({"close": values[0]})
        call.return_value(None)
        signal("NotificationClosed", "(uu)", values[0], 3)
    else:
        global last
        note = dict(zip(FIELDS, values))
        last += 1
        number = note["replaces"] or last
        say({"number": number, **note})
        call.return_value(GLib.Variant("(u)", (number,)))
        # Of a notification that another program of the desk has shown.
        signal("ActionInvoked", "(us)", 1, "default")
        pressed = ["press:" + os.environ["PRESS"]] if "PRESS" in os.environ and note["actions"] else []
        for word in note["body"].split() + pressed:
            if word.startswith("press:"):
                signal("ActivationToken", "(us)", number, "token-of-the-desk")
                signal("ActionInvoked", "(us)", number, word.removeprefix("press:"))
                signal("NotificationClosed", "(uu)", number, 2)
            elif word == "dismiss":
                signal("NotificationClosed", "(uu)", number, 2)


def acquired(connection, _name):
    interface = Gio.DBusNodeInfo.new_for_xml(INTERFACE).interfaces[0]
    connection.register_object(PATH, interface, called, None, None)


def ready(_connection, _name):
    say({"ready": True})


loop = GLib.MainLoop()
Gio.bus_own_name(Gio.BusType.SESSION, NAME, Gio.BusNameOwnerFlags.NONE, acquired, ready, lambda *_: loop.quit())
loop.run()
