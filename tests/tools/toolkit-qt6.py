#!/usr/bin/env python3
"""A Qt 6 window with a menu that has a menu of its own, a tool tip, and a long list."""

from PyQt6.QtWidgets import QApplication, QListWidget, QMainWindow

app = QApplication(["toolkit"])
app.setDesktopFileName("toolkit")
window = QMainWindow()
window.setWindowTitle("toolkit")
menu = window.menuBar().addMenu("open")
for number in range(4):
    menu.addAction(f"entry {number}")
more = menu.addMenu("more")
for number in range(8):
    more.addAction(f"what was hidden {number}")
rows = QListWidget()
rows.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
rows.addItems([f"row {number} " + "." * (number % 40) for number in range(200)])
window.setCentralWidget(rows)
window.resize(600, 400)
window.show()
app.exec()
