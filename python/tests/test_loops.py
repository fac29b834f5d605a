"""The same tests on other event loops: uvloop, and one that cannot watch files."""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import Callable
from typing import Any

import pytest
import test_connection
import test_datagrams
import test_http3
import test_http3_websocket
import test_streams
import test_webtransport
import uvloop
from support import LoopFactory, run

Test = Callable[[], None]


class WithoutReaders(asyncio.SelectorEventLoop):
    """An event loop that refuses `add_reader`, as the one of Windows does."""

    def add_reader(self, *_arguments: Any) -> None:  # type: ignore[override]  # it only refuses
        raise NotImplementedError

    def remove_reader(self, *_arguments: Any) -> bool:
        raise NotImplementedError


def cases(*modules: types.ModuleType) -> list[Any]:
    """The asynchronous tests of modules that need no argument."""
    return [
        pytest.param(test, id=f"{module.__name__}.{name}")
        for module in modules
        for name, test in vars(module).items()
        if name.startswith("test_")
        and hasattr(test, "__wrapped__")
        and not inspect.signature(test).parameters
    ]


EVERYWHERE = [
    test_streams,
    test_connection,
    test_datagrams,
    test_webtransport,
    test_http3,
    test_http3_websocket,
]


@pytest.mark.parametrize("test", cases(*EVERYWHERE))
def test_on_uvloop(test: Any) -> None:
    again(test, uvloop.new_event_loop)


@pytest.mark.parametrize("test", cases(test_streams, test_datagrams, test_http3))
def test_on_a_loop_without_readers(test: Any) -> None:
    again(test, WithoutReaders)


def again(test: Any, loop_factory: LoopFactory) -> None:
    run(test.__wrapped__(), loop_factory=loop_factory)
