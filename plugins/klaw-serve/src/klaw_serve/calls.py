"""Run each operation in a thread, with a deadline, and count it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import define, field, frozen

from klaw_core import KlawError, NotFoundError, quoted
from klaw_journals.trust import Trust
from klaw_serve.answers import json_body
from klaw_serve.metrics import Metrics
from klaw_serve.operations import Operation, OperationError
from klaw_serve.options import Limits
from klaw_serve.tenants import Tenant, Tenants
from klaw_serve.threads import Threads

T = TypeVar("T")

_LOG = logging.getLogger("klaw")
# For calls that read, and as many for those that change something: those wait for each other, and no search waits for
# them. More than processors, because some wait for the disk or for a lock of another process.
_THREADS = 8


@frozen
class Caller:
    """Whose memory a request names (``""`` for the owner's), and the class of its token: what it writes gets it."""

    agent: str
    trust: Trust


@define(eq=False)
class Calls:
    """Runs work that uses a memory outside the event loop."""

    tenants: Tenants
    operations: Mapping[str, Operation]
    limits: Limits
    metrics: Metrics
    _reading: Threads = field(factory=lambda: Threads(_THREADS), init=False)
    _changing: Threads = field(factory=lambda: Threads(_THREADS), init=False)
    _pending: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._reading.start()
        self._changing.start()

    async def tenant(self, caller: Caller) -> Tenant:
        """Return the memory for a caller. Raise OperationError if there is none, or it cannot be opened.

        The reason why it cannot be opened is for the owner, who reads the log: it may quote the configuration.
        """
        agent = caller.agent
        if not agent:
            return self.tenants.owner.by(caller.trust)
        try:
            return (await self.run(lambda: self.tenants.get(agent))).by(caller.trust)
        except NotFoundError as error:
            raise OperationError(404, error.message, error.hint) from error
        except KlawError as error:
            _LOG.warning("the memory of the agent %r cannot be opened: %s", agent, error)
            hint = "the log of `klaw serve` has the reason"
            raise OperationError(503, "this memory cannot be opened", hint) from error

    async def call(self, caller: Caller, name: str, arguments: object) -> Any:
        """Call an operation by name; return plain JSON. Raise OperationError if it fails or takes too long."""
        return await self._called(caller, name, arguments, _as_it_is)

    async def body(self, caller: Caller, name: str, arguments: object) -> bytes:
        """Do the same as :meth:`call`, but return the JSON as bytes, encoded in the thread."""
        encoded: bytes = await self._called(caller, name, arguments, json_body)
        return encoded

    async def _called(self, caller: Caller, name: str, arguments: object, finish: Callable[[Any], Any]) -> Any:
        operation = self.operations.get(name)
        if operation is None:
            raise OperationError(404, f"there is no method {quoted(name)}", "GET /openapi.json lists the methods")
        tenant = await self.tenant(caller)
        began, status = time.perf_counter(), 500
        try:
            async with asyncio.timeout(self.limits.request_seconds):
                answer = await self.run(
                    lambda: finish(operation.call(tenant, arguments)), changes=not operation.read_only
                )
            status = operation.status
        except TimeoutError as error:
            status = 504
            raise OperationError(status, f"{name} took longer than {self.limits.request_seconds:g} s") from error
        except OperationError as error:
            status = error.status
            raise
        finally:
            self.metrics.count(name, status, time.perf_counter() - began)
        return answer

    async def run(self, work: Callable[[], T], *, changes: bool = False) -> T:
        """Run work in a thread. Raise OperationError if too many calls wait, and every exception of the work.

        A call that is cancelled while it waits for a thread never runs; a call that has started runs to its end.
        """
        if self._pending >= self.limits.pending:
            raise OperationError(503, "too many calls are waiting", "try again in a moment")
        self._pending += 1
        try:
            found: T = await (self._changing if changes else self._reading).run(work)
            return found
        finally:
            self._pending -= 1

    def close(self) -> None:
        """Wait for the running calls; waiting calls never run."""
        self._reading.close()
        self._changing.close()


def _as_it_is(answer: Any) -> Any:
    return answer
