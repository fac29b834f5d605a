"""`PEERS=required`, with which what is not there fails the tests that need it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from support import PACKAGE


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("ci", ["", "true"])
def test_a_peer_that_is_not_there_fails_where_peers_are_required(
    tmp_path: pathlib.Path, required: bool, ci: str
) -> None:
    (tmp_path / "test_peers.py").write_text(PROGRAM)
    environment = {**os.environ, "WAYFERRY_PEERS": str(tmp_path), "PEERS": "required" if required else ""}
    environment["CI"] = ci  # where it is set, pytest tells each reason twice
    environment["PYTHONPATH"] = os.pathsep.join([str(PACKAGE), str(PACKAGE / "tests")])
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-c", os.devnull]
    ended = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    counts = "1 failed, 1 skipped, 2 errors" if required else "4 skipped"
    assert counts in ended.stdout, ended.stdout + ended.stderr
    assert ("PEERS=required, and quic-go is not here" in ended.stdout) == required, ended.stdout


PROGRAM = """
import pytest
from programs import CANNOT, parameters, tell


@parameters(["quic-go"])
def test_program(peer):
    raise AssertionError


@pytest.mark.skipif(True, reason="Chromium is not installed")
def test_mark():
    raise AssertionError


def test_library():
    pytest.importorskip("no_such_library", reason="no_such_library is not installed")


def test_ability():
    tell("quic-go", "update", CANNOT, b"cannot be told to change keys")
"""
