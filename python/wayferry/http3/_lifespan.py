"""ASGI's lifespan protocol: the application's own beginning and end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wayferry.http3.asgi import App

__all__ = ["Lifespan"]


class Lifespan:
    """One application's. An application that does not know the protocol raises, and goes without."""

    __slots__ = ("_app", "_asked", "_failure", "_started", "_stopped", "_task", "state")

    def __init__(self, app: App) -> None:
        self._app = app
        self.state: dict[str, Any] = {}
        """What the application gives to its requests."""
        self._asked: asyncio.Queue[str] = asyncio.Queue()
        self._started = asyncio.Event()
        self._stopped = asyncio.Event()
        self._failure: str | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Has the application begin. RuntimeError: it says that it cannot."""
        self._task = asyncio.create_task(self._run())
        self._asked.put_nowait("lifespan.startup")
        try:
            await self._started.wait()
        except BaseException:
            self.cancel()
            raise
        if self._failure is not None:
            raise RuntimeError(f"the application did not start: {self._failure}")

    async def stop(self) -> None:
        """Has the application end, if it began. RuntimeError: it says that it failed in that."""
        if self._task is None or self._task.done():
            return
        self._asked.put_nowait("lifespan.shutdown")
        try:
            await self._stopped.wait()
        finally:
            self.cancel()
        if self._failure is not None:
            raise RuntimeError(f"the application did not stop: {self._failure}")

    def cancel(self) -> None:
        """Ends it without being asked."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        try:
            await self._app(scope, self._receive, self._send)
        except Exception as error:
            if self._started.is_set():
                self._failure = repr(error)
        finally:
            self._started.set()
            self._stopped.set()

    async def _receive(self) -> dict[str, Any]:
        return {"type": await self._asked.get()}

    async def _send(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind.endswith(".failed"):
            self._failure = message.get("message") or "it does not say why"
        if kind.startswith("lifespan.startup."):
            self._started.set()
        elif kind.startswith("lifespan.shutdown."):
            self._stopped.set()
        else:
            raise RuntimeError(f"the application sent {kind!r} in its lifespan")
