"""An operation that a client can call over REST and over JSON-RPC.

The REST routes, their OpenAPI document and the JSON-RPC methods are generated from the table of operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen

from klaw_core import (
    KlawError,
    NotFoundError,
    PluginNotFoundError,
    QueryError,
    RecordError,
    RetryableStoreError,
    StoreFullError,
    StoreLockedError,
    Tool,
    WorkspaceError,
    to_json,
)
from klaw_serve.tenants import Tenant
from klaw_tools import run_tool

Json = dict[str, Any]

# The status of each error: 4xx if the caller must change something, 5xx otherwise. The first class that fits counts.
_STATUSES: tuple[tuple[type[KlawError], int], ...] = (
    (NotFoundError, 404),
    (QueryError, 400),
    (RecordError, 400),
    (WorkspaceError, 409),
    (StoreLockedError, 503),
    (RetryableStoreError, 503),
    (StoreFullError, 507),
    (PluginNotFoundError, 501),  # of a feature that the server does not have; the hint says what to install
)
_SERVER_ERROR = 500


class OperationError(Exception):
    """An error of a call, as the client gets it."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint

    def as_json(self) -> Json:
        """Return the JSON of the response."""
        return {"error": self.message, **({"hint": self.hint} if self.hint else {})}


@frozen(eq=False)
class Operation:
    """An operation: ``METHOD path`` over HTTP, ``name`` over JSON-RPC.

    ``run`` gets arguments that match the schema. ``aliases`` are other names of arguments. An operation with
    ``streams`` is available over HTTP only. ``status`` is the HTTP status of a success.
    """

    name: str
    method: str
    path: str
    summary: str
    run: Callable[[Tenant, Json], Any]
    properties: Mapping[str, Json] = field(factory=dict)
    required: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(factory=dict)
    read_only: bool = True
    status: int = 200

    def call(self, tenant: Tenant, arguments: object) -> Any:
        """Check the arguments, run, and return plain JSON. Raise OperationError."""
        failed: list[KlawError] = []
        began: list[bool] = []

        def run(given: Json) -> Json:
            began.append(True)
            try:
                return {"answer": to_json(self.run(tenant, given))}
            except KlawError as error:
                failed.append(error)
                raise

        if not isinstance(arguments, Mapping):
            raise OperationError(400, f"the parameters of {self.name} must be an object")
        tool = Tool(self.name, self.summary, self.properties, run, self.required, aliases=self.aliases)
        answer = run_tool({self.name: tool}, self.name, arguments)
        if "answer" in answer:
            return answer["answer"]
        raise self._error(answer, failed, ran=bool(began))

    def _error(self, answer: Json, failed: list[KlawError], *, ran: bool) -> OperationError:
        if failed:
            status = next((status for kind, status in _STATUSES if isinstance(failed[0], kind)), _SERVER_ERROR)
        else:
            status = _SERVER_ERROR if ran else 400
        return OperationError(status, answer["error"], answer.get("hint", ""))
