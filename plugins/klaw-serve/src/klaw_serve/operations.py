"""An operation: one thing a client can ask for, and every way to ask for it.

The table of operations makes the REST surface, its OpenAPI document and the methods of JSON-RPC.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen

from klaw_core import (
    KlawError,
    NotFoundError,
    QueryError,
    RecordError,
    StoreFullError,
    StoreLockedError,
    Tool,
    WorkspaceError,
    run_tool,
    to_json,
)
from klaw_serve.tenants import Tenant

Json = dict[str, Any]

# A caller is wrong (4xx), or something here is (5xx); the first class that fits counts.
_STATUSES: tuple[tuple[type[KlawError], int], ...] = (
    (NotFoundError, 404),
    (QueryError, 400),
    (RecordError, 400),
    (WorkspaceError, 409),
    (StoreLockedError, 503),
    (StoreFullError, 507),
)
_DEFECT = 500


class OperationError(Exception):
    """What is wrong with a call, as a client is told."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint

    def as_json(self) -> Json:
        """Return what the body of an answer says."""
        return {"error": self.message, **({"hint": self.hint} if self.hint else {})}


@frozen(eq=False)
class Operation:
    """Something to ask for: as ``METHOD path`` over HTTP, and as ``name`` by JSON-RPC.

    ``run`` gets arguments that match the schema. ``aliases`` are other names of arguments. ``streams`` says that only
    HTTP can answer it. ``status`` is that of a good answer.
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
            status = next((status for kind, status in _STATUSES if isinstance(failed[0], kind)), _DEFECT)
        else:
            status = _DEFECT if ran else 400
        return OperationError(status, answer["error"], answer.get("hint", ""))
