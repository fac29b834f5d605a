"""What is under way: had by `await`, or by `async with`, which closes it at its end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Coming"]

T = TypeVar("T", bound=AbstractAsyncContextManager[Any, None])


class Coming(Generic[T]):
    """See the module. What it becomes knows how it is closed, also when an exception leaves the block."""

    __slots__ = ("_start", "_value")

    def __init__(self, start: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._start = start
        self._value: T | None = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._start().__await__()

    async def __aenter__(self) -> T:
        self._value = await self._start()
        return self._value

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        value, self._value = self._value, None
        if value is not None:
            await value.__aexit__(kind, error, trace)
