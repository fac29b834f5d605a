"""A window with a password entry, focused."""
import gi

gi.require_version("Gtk", "3.0")
from gi.repository import Gtk

window = Gtk.Window(title="Sign in")
entry = Gtk.Entry(visibility=False)
window.add(entry)
window.show_all()
Gtk.main()
