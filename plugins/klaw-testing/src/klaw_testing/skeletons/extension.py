"""An extension: a list of things to do, in a journal, with a tool for language models."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from attrs import define, field, frozen

from klaw_core import (
    AttachedExtension,
    Component,
    Extension,
    Host,
    RecordJournal,
    StatusExtension,
    Tool,
    ToolExtension,
    hookimpl,
)


@frozen
class Options:
    """The keys of the table ``[extensions.skeleton]``."""

    limit: int = 100


@define(eq=False)
class SkeletonExtension(AttachedExtension, ToolExtension, StatusExtension):
    """Inherits an ability for each thing it can do; a method without its ability is never called."""

    options: Options
    _host: Host | None = field(default=None, init=False)
    name = "skeleton"

    def attach(self, host: Host, /) -> None:
        """Keep the host, through which the extension reaches the rest of the memory."""
        self._host = host

    def tools(self) -> Sequence[Tool]:
        """Return the tool that adds a line."""
        text = {"type": "string", "description": "What is to be done.", "minLength": 1}
        return (Tool("skeleton_add", "Add something to do.", {"text": text}, self._add, ("text",)),)

    def status(self) -> dict[str, int | str]:
        """Return what ``klaw status`` shows."""
        return {"to do": len(self.journal.ids())}

    @property
    def journal(self) -> RecordJournal:
        """The journal ``skeleton.jsonl``, which ``klaw export`` writes, too."""
        assert self._host is not None
        return self._host.journal(self.name)

    def _add(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if len(self.journal.ids()) >= self.options.limit:
            return {"error": f"the list has {self.options.limit} entries already"}
        record = {"id": uuid4().hex, "text": arguments["text"]}
        self.journal.append([record])
        return {"added": record}


@hookimpl
def klaw_extensions() -> Iterable[Component[Options, Extension]]:
    """Yield the extension."""
    yield Component("skeleton", Options, lambda options, _context: SkeletonExtension(options), api=2)
