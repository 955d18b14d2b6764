"""Anthropic's SDK: the memory tool, over a directory of notes that Klaw indexes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaAsyncLocalFilesystemMemoryTool, BetaLocalFilesystemMemoryTool
from pydantic import ValidationError

from klaw_agents.threads import in_thread
from klaw_core import KlawError, Memory, own_directory

if TYPE_CHECKING:
    from anthropic.types.beta import BetaMemoryTool20250818Command as Command

_log = logging.getLogger("klaw_agents")
# Models choose any file names; every text file is indexed.
_INCLUDE = ("*.md", "*.markdown", "*.txt", "*.xml", "*.json", "*.yaml", "*.yml", "*.csv", "*.log")


class KlawMemoryTool(BetaLocalFilesystemMemoryTool):
    """The memory tool of Anthropic's API. Claude writes notes as files, and searches of the memory find them at once.

        runner = client.beta.messages.tool_runner(model=..., messages=[...], tools=[KlawMemoryTool(memory)])

    The files are those of the SDK's own tool, in ``memories`` below ``base_path`` (default: the memory's data
    directory). No command leaves that directory. The files are a workspace of the memory: text that Claude deletes or
    replaces leaves the index in the same call. A command that fails raises ToolError, which the SDK shows to Claude.
    The caller closes ``memory``.
    """

    def __init__(self, memory: Memory, base_path: str | Path | None = None) -> None:
        if base_path is None:
            own_directory(memory.config.data_dir, "memories")
        super().__init__(str(memory.config.data_dir if base_path is None else base_path))
        self._memory = memory
        _index(memory, self.memory_root)

    def execute(self, command: Command) -> Any:
        """Run a command and update the index. Raise ToolError."""
        with _refusals(command):
            answer = super().execute(command)
        if command.command != "view":
            _index(self._memory, self.memory_root)
        return answer

    def clear_all_memory(self) -> str:
        """Delete every file and its indexed chunks."""
        answer: str = super().clear_all_memory()
        _index(self._memory, self.memory_root)
        return answer


class KlawAsyncMemoryTool(BetaAsyncLocalFilesystemMemoryTool):
    """:class:`KlawMemoryTool` for ``AsyncAnthropic``."""

    def __init__(self, memory: Memory, base_path: str | Path | None = None) -> None:
        blocking = KlawMemoryTool(memory, base_path)  # creates the directory and indexes it
        super().__init__(str(blocking.base_path))
        self._memory = memory
        self._root = blocking.memory_root

    async def execute(self, command: Command) -> Any:
        """Run a command and update the index. Raise ToolError."""
        with _refusals(command):
            answer = await super().execute(command)
        if command.command != "view":
            await in_thread(_index, self._memory, self._root)
        return answer

    async def clear_all_memory(self) -> str:
        """Delete every file and its indexed chunks."""
        answer: str = await super().clear_all_memory()
        await in_thread(_index, self._memory, self._root)
        return answer


@contextmanager
def _refusals(command: Command) -> Iterator[None]:
    """Convert every error of a command to ToolError.

    The SDK does not check the arguments, and passes on errors of the operating system.
    """
    try:
        type(command).model_validate(command.model_dump(warnings=False))
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise ToolError(f"not a command of the memory tool: {'; '.join(problems)}") from error
    try:
        yield
    except OSError as error:  # a name that is too long
        raise ToolError(f"{command.command}: {error.strerror}") from error
    except (ValueError, RuntimeError) as error:  # a NUL, an unpaired surrogate, circular links
        raise ToolError(f"{command.command}: not a valid path or text") from error


def _index(memory: Memory, root: Path) -> None:
    """Index the changed files. A failure is only logged, because the next run indexes them."""
    try:
        report = memory.index(root, include=_INCLUDE, trust="agent")
    except KlawError as error:
        _log.warning("%s is not indexed: %s", root, error)
    else:
        for notice in report.notices:
            _log.warning("%s", notice)
