"""What the agents' transcripts have in common: files of JSON lines, of which some lines are messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from attrs import frozen


@frozen
class Message:
    """What was said. ``moment`` is when, as the agent wrote it; ``id`` is empty where it gives none."""

    role: str
    text: str
    moment: str = ""
    id: str = ""


@frozen
class Begun:
    """Where the agent worked, as the beginning of a transcript says."""

    directory: str


#: Makes of one line what it holds. Raise what a line of another form makes msgspec raise.
ReadLine = Callable[[bytes, Collection[str]], Iterable["Message | Begun"]]


@frozen(eq=False)
class Agent:
    """An agent that keeps transcripts.

    ``get_root`` returns where, ``depths`` how many directories below it files lie, ``takes`` tells by a file's name
    whether it is a transcript, ``read_line`` reads a line for some roles. ``names_project``: the first directory below
    the root is a project's.
    """

    name: str
    get_root: Callable[[], Path]
    depths: frozenset[int]
    takes: Callable[[str], bool]
    read_line: ReadLine
    names_project: bool = False


def joined(texts: Iterable[Any]) -> str:
    """Return the texts as one; what is no text is left out."""
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def flattened(value: Any) -> Iterator[str]:
    """Yield the texts of what a tool answered: a text, or a list of blocks of which some have a text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from flattened(item.get("text") if isinstance(item, dict) else item)
    elif isinstance(value, dict):
        for name in ("text", "content", "output"):
            yield from flattened(value.get(name))
