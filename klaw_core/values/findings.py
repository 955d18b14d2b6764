"""Findings of ``klaw doctor``, each with the command that fixes it."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from attrs import field, frozen

#: ``error``: something is lost, wrong or disabled; ``warning``: it will be, or is out of date; ``note``: information.
Severity: TypeAlias = Literal["error", "warning", "note"]

#: The hint of findings that ``klaw doctor --fix`` fixes.
FIX = "klaw doctor --fix"

_NAMED = 3


@frozen
class Finding:
    """One problem.

    ``check`` is the name of the check (``index-keys``), ``where`` the place: a file, an index, a source. ``hint`` is
    the command, or the action, that fixes it. ``items`` are all paths or keys concerned. ``fixed`` means that
    a second check no longer found it.
    """

    check: str
    severity: Severity
    what: str
    where: str
    hint: str = ""
    items: tuple[str, ...] = field(default=(), repr=False)
    fixed: bool = False


def named(items: Sequence[str]) -> str:
    """Return the first few items for a message, and how many more there are."""
    more = f" and {len(items) - _NAMED:,} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more
