"""The page for users, docs/python.md, is true: its programs run, its excerpts and tables are complete."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import subprocess
import sys

import pytest
from support import PACKAGE

from wayferry import quic
from wayferry.quic import errors

DOCS = PACKAGE.parent / "docs"
PAGE = (DOCS / "python.md").read_text()
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
BLOCKS = [found.groups() for found in FENCED.finditer(PAGE)]
PROGRAMS = [(code, output) for language, code, output in BLOCKS if language == "python"]
LIMIT = 60


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_example(number: int, tmp_path: pathlib.Path) -> None:
    code, output = PROGRAMS[number]
    assert output is not None, "the page does not say what the program prints"
    (tmp_path / "example.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "example.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    # The loop's debug mode reports steps that a loaded machine made slow.
    messages = [line for line in done.stderr.splitlines() if not line.startswith("Executing <")]
    assert (done.returncode, messages) == (0, [])
    assert done.stdout == output


def test_there_are_examples_for_every_subject() -> None:
    assert len(PROGRAMS) >= 7


@pytest.mark.parametrize(("language", "file"), [("py", "chat.py"), ("js", "chat.html")])
def test_excerpts_are_those_of_the_files(language: str, file: str) -> None:
    excerpts = [code for known, code, _ in BLOCKS if known == language]
    assert excerpts
    for excerpt in excerpts:
        assert excerpt in (DOCS / "python" / file).read_text()


def test_every_setting_and_its_default_is_in_the_table() -> None:
    rows = dict(re.findall(r"^\| (`.+?) \| (.+?) \|", PAGE, re.MULTILINE))
    told = {name: default for names, default in rows.items() for name in re.findall(r"`(\w+)`", names)}
    for field in dataclasses.fields(quic.Config):
        assert told[field.name].split(" ")[0].strip("`") == in_words(field.name, field.default)


def test_every_error_is_in_the_table() -> None:
    for name in set(errors.__all__) - {"By", "QuicError"}:
        assert f"| `{name}` |" in PAGE


def in_words(name: str, default: object) -> str:
    if default is None:
        return "none"
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, int) and default % (1 << 20) == 0:
        return str(default >> 20)
    return f"{default:g}" if isinstance(default, float) else str(default)
