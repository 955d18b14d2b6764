"""Anthropic's SDK: the memory tool, over a directory of notes that Klaw indexes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaAsyncAbstractMemoryTool, BetaLocalFilesystemMemoryTool
from pydantic import ValidationError

from klaw_agents.threads import in_thread
from klaw_core import KlawError, Memory

if TYPE_CHECKING:
    from anthropic.types.beta import BetaMemoryTool20250818Command as Command

_log = logging.getLogger("klaw_agents")
# Models name their files as they like; the index of notes takes what is text.
_INCLUDE = ("*.md", "*.markdown", "*.txt", "*.xml", "*.json", "*.yaml", "*.yml", "*.csv", "*.log")


class KlawMemoryTool(BetaLocalFilesystemMemoryTool):
    """The memory tool of Anthropic's API: Claude keeps notes as files, which searches of the memory find at once.

        runner = client.beta.messages.tool_runner(model=..., messages=[...], tools=[KlawMemoryTool(memory)])

    The files are those of the SDK's own tool: in ``memories`` below ``base_path`` (default: the memory's data
    directory), and no command leaves that directory. They are a workspace of the memory: what Claude deletes or
    rewrites leaves the index in the same call. A command that cannot be carried out raises ToolError, which Claude is
    shown. ``memory`` stays the caller's to close.
    """

    def __init__(self, memory: Memory, base_path: str | Path | None = None) -> None:
        super().__init__(str(memory.config.data_dir if base_path is None else base_path))
        self._memory = memory
        self._index()

    def execute(self, command: Command) -> Any:
        """Carry out a command and bring the index up to date. Raise ToolError."""
        _check(command)
        try:
            answer = super().execute(command)
        except OSError as error:  # a name that is too long
            raise ToolError(f"{command.command}: {error.strerror}") from error
        except (ValueError, RuntimeError) as error:  # a NUL, half a character, links in a circle
            raise ToolError(f"{command.command}: not a valid path or text") from error
        if command.command != "view":
            self._index()
        return answer

    def clear_all_memory(self) -> str:
        """Delete every file, and what was indexed of it."""
        answer: str = super().clear_all_memory()
        self._index()
        return answer

    def _index(self) -> None:
        """Index what has changed; the files count, so a failure is logged, and the next index makes up for it."""
        try:
            report = self._memory.index(self.memory_root, include=_INCLUDE)
        except KlawError as error:
            _log.warning("%s is not indexed: %s", self.memory_root, error)
        else:
            for notice in report.notices:
                _log.warning("%s", notice)


def _check(command: Command) -> None:
    """Raise ToolError for a command that lacks an argument or has a wrong one: the SDK takes them as they come."""
    try:
        type(command).model_validate(command.model_dump(warnings=False))
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise ToolError(f"not a command of the memory tool: {'; '.join(problems)}") from error


class KlawAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """:class:`KlawMemoryTool` for ``AsyncAnthropic``: each command runs in a thread."""

    def __init__(self, memory: Memory, base_path: str | Path | None = None) -> None:
        super().__init__()
        self._tool = KlawMemoryTool(memory, base_path)

    async def execute(self, command: Command) -> Any:
        """Carry out a command and bring the index up to date. Raise ToolError."""
        return await in_thread(self._tool.execute, command)

    async def view(self, command: Any) -> Any:
        """Show a file with line numbers, or what is in a directory."""
        return await self.execute(command)

    async def create(self, command: Any) -> Any:
        """Write a new file."""
        return await self.execute(command)

    async def str_replace(self, command: Any) -> Any:
        """Replace a text that a file holds once."""
        return await self.execute(command)

    async def insert(self, command: Any) -> Any:
        """Insert a text after a line of a file."""
        return await self.execute(command)

    async def delete(self, command: Any) -> Any:
        """Delete a file or a directory."""
        return await self.execute(command)

    async def rename(self, command: Any) -> Any:
        """Rename or move a file or a directory."""
        return await self.execute(command)

    async def clear_all_memory(self) -> Any:
        """Delete every file, and what was indexed of it."""
        return await in_thread(self._tool.clear_all_memory)
