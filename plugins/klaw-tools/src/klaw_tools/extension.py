"""The extension ``tools``: what ``Memory.context``, ``tools``, ``toolbox`` and ``call_tool`` call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from klaw_core import Extension
from klaw_tools.options import ToolsOptions

if TYPE_CHECKING:
    from klaw_core import SearchResults, Tool
    from klaw_core.values.tools import Json
    from klaw_redaction import Redactor
    from klaw_tools import Context
    from klaw_tools.interfaces import ContextPart
    from klaw_tools.memory_tools import ToolMemory


@frozen(eq=False)
class ToolsExtension(Extension):
    """Offers a memory to a language model. It keeps nothing of its own."""

    options: ToolsOptions = field(factory=ToolsOptions)

    name = "tools"

    def described(self, memory: ToolMemory, allow: Collection[str]) -> list[Json]:
        """Return the tools of a memory as plain JSON."""
        from klaw_tools.tools import tools

        return tools(memory, allow)

    def toolbox(self, memory: ToolMemory, allow: Collection[str]) -> Mapping[str, Tool]:
        """Return the tools of a memory by name."""
        from klaw_tools.tools import all_tools

        return all_tools(memory, allow)

    def call(self, memory: ToolMemory, name: str, arguments: Mapping[str, Any] | str, allow: Collection[str]) -> Json:
        """Run a tool with a model's arguments."""
        from klaw_tools.tools import call

        return call(memory, name, arguments, allow)

    def context(
        self,
        extensions: Sequence[tuple[str, Extension]],
        search: Callable[..., SearchResults],
        redactor: Redactor,
        part: ContextPart | None,
        **question: Any,
    ) -> Context:
        """Return the context for a ``ContextQuestion``, given as its fields, or one part of it.

        Without a ``trust``, it has that of the options.
        """
        from klaw_tools.context import build_context
        from klaw_tools.interfaces import ContextQuestion

        question["trust"] = question.get("trust") or self.options.trust
        return build_context(ContextQuestion(**question), extensions, search, part=part, redactor=redactor)
