"""Options of ``[[memory.sources]] type = "claude-code"`` and ``"codex"``."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen, validators

#: The roles of messages; ``tool`` means the calls and answers of tools.
ROLES = ("user", "assistant", "tool")


def _absolute(_options: object, attribute: Any, value: str) -> None:
    if value and not value.startswith(("/", "~")):
        raise ValueError(f"{attribute.name}: expected an absolute path, or one that begins with ~, got {value!r}")


@frozen
class SessionOptions:
    """Options of a source of transcripts."""

    path: str = field(default="", validator=_absolute)  # default: the agent's own directory
    roles: tuple[str, ...] = field(
        default=("user", "assistant"), validator=validators.deep_iterable(validators.in_(ROLES))
    )
    exclude: tuple[str, ...] = ()  # patterns of paths below ``path``, such as a project's directory
