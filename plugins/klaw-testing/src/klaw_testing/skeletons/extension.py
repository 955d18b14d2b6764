"""An extension: a tool with which a language model learns how much is indexed."""

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import define, field, frozen

from klaw_core import AttachedExtension, Component, Extension, Host, StatusExtension, Tool, ToolExtension, hookimpl


@frozen
class Options:
    """The keys of the table ``[extensions.skeleton]``."""

    collection: str = "memory"


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
        """Return the tool."""
        origin = {"type": "string", "description": "Count only the documents of this origin."}
        return (Tool("skeleton_count", "Count the documents that are indexed.", {"origin": origin}, self._count),)

    def status(self) -> dict[str, int | str]:
        """Return what ``klaw status`` shows."""
        return {"documents": sum(self.counts().values())}

    def counts(self) -> dict[str, int]:
        """Return the number of documents by origin."""
        assert self._host is not None
        with self._host.read() as snapshot:
            return {name: documents for name, (documents, _) in snapshot.counts(self.options.collection).items()}

    def _count(self, arguments: dict[str, Any]) -> dict[str, Any]:
        counts = self.counts()
        return {"documents": counts.get(arguments["origin"], 0) if "origin" in arguments else sum(counts.values())}


@hookimpl
def klaw_extensions() -> Iterable[Component[Options, Extension]]:
    """Yield the extension."""
    yield Component("skeleton", Options, lambda options, _context: SkeletonExtension(options), api=2)
