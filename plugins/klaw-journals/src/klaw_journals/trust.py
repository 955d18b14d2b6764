"""Classes of writers: who wrote a text, as the door it came through says, and never the text or its metadata.

``owner`` is the person whose memory it is, ``agent`` a program that writes for this person, ``foreign`` everybody else:
what tools return, other people's files, chats of other programs. Records have the reserved field ``trust`` for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from klaw_core import RecordError, quoted
from klaw_core.values.metadata import TRUST_CLASSES

#: A class of writers.
Trust: TypeAlias = Literal["owner", "agent", "foreign"]

OWNER: Trust = "owner"
AGENT: Trust = "agent"
FOREIGN: Trust = "foreign"

_OF_ROLES: dict[str, Trust] = {"user": OWNER, "assistant": AGENT, "system": AGENT}


def of_role(role: str) -> Trust:
    """Return the class of a message without one of its own: tools, and roles that are not known, are foreign."""
    return _OF_ROLES.get(role, FOREIGN)


def lowest(classes: Iterable[str], default: Trust = OWNER) -> Trust:
    """Return the least trusted of some classes; one that does not exist counts as foreign."""
    ranks = [TRUST_CLASSES.index(each) if each in TRUST_CLASSES else len(TRUST_CLASSES) - 1 for each in classes]
    found: Any = TRUST_CLASSES[max(ranks)] if ranks else default
    return found  # type: ignore[no-any-return]


def check_trust(trust: Any) -> Trust:
    """Return a class. Raise RecordError if it does not exist."""
    if trust not in TRUST_CLASSES:
        raise RecordError(f"unknown class {quoted(trust)}", hint=f"one of {', '.join(TRUST_CLASSES)}")
    return trust  # type: ignore[no-any-return]
