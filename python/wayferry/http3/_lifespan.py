"""ASGI's lifespan protocol: the application's own beginning and end."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wayferry.http3.asgi import App

__all__ = ["Lifespan"]

LOG = logging.getLogger("wayferry.http3")
"""Tells of an application that has no lifespan (INFO)."""


class Lifespan:
    """One application's. An application that does not know the protocol raises, and goes without."""

    __slots__ = (
        "_app",
        "_asked",
        "_error",
        "_failure",
        "_started",
        "_stopped",
        "_stopping",
        "_task",
        "state",
    )

    def __init__(self, app: App) -> None:
        self._app = app
        self.state: dict[str, Any] = {}
        """What the application gives to its requests."""
        self._asked: asyncio.Queue[str] = asyncio.Queue()
        self._started = asyncio.Event()
        self._stopping = False
        """Whether it was asked to end: its failure is told to who asked."""
        self._stopped = asyncio.Event()
        self._failure: str | None = None
        """What went wrong, in the application's words or in Python's."""
        self._error: Exception | None = None
        """The same as it was raised."""
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
            raise RuntimeError(f"the application did not start: {self._failure}") from self._error

    async def stop(self) -> None:
        """Has the application end, if it began. RuntimeError: it says that it failed in that, or has failed
        since it began, or takes longer than `PATIENCE`."""
        if self._task is None:
            return
        if self._failure is not None:
            raise RuntimeError(f"the application's lifespan failed: {self._failure}") from self._error
        self._stopping = True
        self._asked.put_nowait("lifespan.shutdown")
        try:
            async with asyncio.timeout(PATIENCE):
                await self._stopped.wait()
        except TimeoutError:
            self._failure = f"it took longer than {PATIENCE:g} s"
        finally:
            self.cancel()
        if self._failure is not None:
            raise RuntimeError(f"the application did not stop: {self._failure}") from self._error

    def cancel(self) -> None:
        """Ends it without being asked."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        try:
            await self._app(scope, self._receive, self._send)
        except Exception as error:
            self._fail(error)
        finally:
            self._started.set()
            self._stopped.set()

    def _fail(self, error: Exception) -> None:
        """The application raised. What it has said of its failure stands: to raise, too, is the custom."""
        if not self._started.is_set():
            LOG.info("the application goes without a lifespan: %r", error)
        elif self._failure is None:
            self._failure, self._error = repr(error), error
            if not self._stopping:
                message = "wayferry.http3: the application's lifespan failed"
                context = {"message": message, "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)

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


PATIENCE = 30.0
"""Seconds that an application may take to end."""
