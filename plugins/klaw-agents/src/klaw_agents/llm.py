"""Simon Willison's ``llm``: fragments ``klaw:QUESTION`` and the toolbox ``Klaw``. ``llm`` finds this module by itself.

Both use the memory of the configuration (``KLAW_CONFIG``, ``KLAW_DATA_DIR``).
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import llm

from klaw_agents.turns import offered
from klaw_core import KlawError, Memory
from klaw_core.cli.kit import visible

_LINES = re.compile(r"(?P<path>.+):(?P<first>[1-9]\d{0,8})-(?P<last>[1-9]\d{0,8})")


class Klaw(llm.Toolbox):
    """The tools of a memory: search, read, save and the others that ``klaw mcp`` offers."""

    def __init__(self, data_dir: str = "") -> None:
        self.data_dir = data_dir
        self._memory: Memory | None = None

    def tools(self) -> Iterator[llm.Tool]:
        """Open the memory, once, and yield its tools. Raise klaw_core.KlawError if it cannot be opened."""
        if self._memory is None:
            self._memory = _open(self.data_dir)
        for tool, run in offered(self._memory, ()):
            yield _tool(tool.name, tool.description, tool.input_schema, run)


def _tool(name: str, description: str, schema: dict[str, Any], run: Callable[[Any], str]) -> llm.Tool:
    def call(**arguments: Any) -> str:
        return run(arguments)

    return llm.Tool(name=name, description=description, input_schema=schema, implementation=call)


def _open(data_dir: str) -> Memory:
    return Memory.open(data_dir=data_dir) if data_dir else Memory.open()


def load(question: str) -> llm.Fragment:
    """Add what your memory says about a question, or a document of it: klaw:who keeps bees, klaw:notes/bees.md:3-9.

    ``llm fragments loaders`` prints this. Raise ValueError if it says nothing.
    """
    try:
        with _open("") as memory:
            text = _document(memory, question) or str(memory.context(question))
    except KlawError as error:
        raise ValueError(f"{error.message}; {error.hint}" if error.hint else error.message) from error
    if not text:
        raise ValueError(f"the memory says nothing about {question!r}; klaw search shows what it contains")
    return llm.Fragment(text, f"klaw:{question}")


def _document(memory: Memory, path: str) -> str:
    try:
        if found := _LINES.fullmatch(path):
            first, last = int(found["first"]), int(found["last"])
            return visible(memory.get(found["path"], first, last - first + 1, redact=True).content)
        return visible(memory.get(path, redact=True).content)
    except KlawError:  # it is no path
        return ""


@llm.hookimpl
def register_fragment_loaders(register: Callable[..., None]) -> None:
    """Offer the loader."""
    register("klaw", load)


@llm.hookimpl
def register_tools(register: Callable[..., None]) -> None:
    """Offer the toolbox."""
    register(Klaw)
