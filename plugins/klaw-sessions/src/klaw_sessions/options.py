"""Options of the sources of agents' sessions: ``[[memory.sources]] type = "claude-code"`` and the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import field, frozen, validators

from klaw_core import KlawError, check_collection_name

#: The roles of messages; ``tool`` means the calls and answers of tools.
ROLES = ("user", "assistant", "tool")

# The set of a pattern; its first character may be a bracket, also after an exclamation mark.
_SET = re.compile(r"(?s)\[!?+.[^]]*\]")


def _absolute(_options: object, attribute: Any, value: str) -> None:
    if value and not value.startswith(("/", "~")):
        raise ValueError(f"{attribute.name}: expected an absolute path, or one that begins with ~, got {value!r}")


def _without_slashes(patterns: Iterable[str]) -> tuple[str, ...]:
    return tuple(pattern.strip("/") for pattern in patterns)


def _valid_patterns(_options: object, attribute: Any, patterns: Sequence[str]) -> None:
    for pattern in patterns:
        if not pattern or "[" in _SET.sub("", pattern):  # `fnmatch` would take such a bracket literally
            raise ValueError(f"{attribute.name}: {pattern!r} is empty or has a bracket without its end")


def _valid_collection(_options: object, _attribute: Any, value: str) -> None:
    try:
        check_collection_name(value)
    except KlawError as error:
        raise ValueError(f"collection: {error.message}") from error


@frozen
class SessionOptions:
    """Options of a source of transcripts."""

    path: str = field(default="", validator=_absolute)  # default: the agent's own directory
    roles: tuple[str, ...] = field(
        default=("user", "assistant"), validator=validators.deep_iterable(validators.in_(ROLES))
    )
    #: Patterns of paths below ``path``, such as a project's directory.
    exclude: tuple[str, ...] = field(default=(), converter=_without_slashes, validator=_valid_patterns)
    #: The collection of the transcripts. A separate one is searched only by name.
    collection: str = field(default="memory", validator=_valid_collection)
