"""The common part of agents' transcripts: JSON Lines files in which some lines are messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
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
    """The directory in which the agent worked; empty if a line of the agent does not tell it."""

    directory: str = ""


#: A function from a line, and the wanted roles, to its contents. Raises msgspec's exceptions for an invalid line.
ReadLine = Callable[[bytes, Collection[str]], Iterable["Message | WorkingDirectory"]]


@frozen(eq=False)
class Agent:
    """An agent that writes transcripts.

    ``get_root`` returns their directory, ``depths`` are the depths below it at which transcripts lie. ``is_transcript``
    decides by the name of a file, and ``read_line`` reads a line for some roles. ``names_project``: the first directory
    below the root is named after the project. ``names_session``: the directory of a transcript is named after the
    session. ``below`` are names of directories that a transcript must lie in.
    """

    name: str
    get_root: Callable[[], Path]
    depths: frozenset[int]
    is_transcript: Callable[[str], bool]
    read_line: ReadLine
    names_project: bool = False
    names_session: bool = False
    below: tuple[str, ...] = ()


def as_object(data: bytes) -> dict[str, Any]:
    """Return a line's JSON object; an empty one for another value. Raise msgspec's exceptions for an invalid line."""
    line = msgspec.json.decode(data)
    return line if isinstance(line, dict) else {}


def message_text(content: Any) -> str:
    """Return the text of a message: a string, or blocks of which some are texts."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [content]
    of_text = (block for block in blocks if isinstance(block, dict) and block.get("type", "text") == "text")
    return join_texts(block.get("text") for block in of_text)


def tools_of(content: Any) -> Iterator[str]:
    """Yield the calls of tools and their answers among the blocks of a message."""
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_use":
            yield tool_call(block.get("name"), block.get("input"))
        elif isinstance(block, dict) and block.get("type") == "tool_result":
            yield from tool_texts(block.get("content"))


def tool_call(name: Any, arguments: Any) -> str:
    """Return the text of a call."""
    return f"{name} {msgspec.json.encode(arguments).decode()}"


def of_milliseconds(value: Any) -> str:
    """Return a moment in milliseconds since 1970 as ISO 8601; empty for any other value."""
    try:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        return ""


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
