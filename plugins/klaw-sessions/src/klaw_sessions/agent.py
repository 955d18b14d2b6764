"""The common part of agents' transcripts: JSON Lines files in which some lines are messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from attrs import frozen


@frozen
class Message:
    """A message. ``moment`` is its time in the agent's format; ``id`` is empty if it has none."""

    role: str
    text: str
    moment: str = ""
    id: str = ""


@frozen
class WorkingDirectory:
    """The directory in which the agent worked."""

    directory: str


#: A function from a line, and the wanted roles, to its contents. Raises msgspec's exceptions for an invalid line.
ReadLine = Callable[[bytes, Collection[str]], Iterable["Message | WorkingDirectory"]]


@frozen(eq=False)
class Agent:
    """An agent that writes transcripts.

    ``get_root`` returns their directory, ``depths`` are the depths below it at which transcripts lie. ``is_transcript``
    decides by the name of a file, and ``read_line`` reads a line for some roles. ``names_project``: the first directory
    below the root is named after the project.
    """

    name: str
    get_root: Callable[[], Path]
    depths: frozenset[int]
    is_transcript: Callable[[str], bool]
    read_line: ReadLine
    names_project: bool = False


def join_texts(texts: Iterable[Any]) -> str:
    """Join the texts that are not empty; other values are left out."""
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def tool_texts(value: Any) -> Iterator[str]:
    """Yield the texts in a tool's answer, which is a string, or blocks that may contain strings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from tool_texts(item.get("text") if isinstance(item, dict) else item)
    elif isinstance(value, dict):
        for name in ("text", "content", "output"):
            yield from tool_texts(value.get(name))
