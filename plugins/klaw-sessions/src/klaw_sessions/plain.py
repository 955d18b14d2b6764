"""Plain transcripts: JSON Lines files with an object a message, as many programs write them.

A line is ``{"role", "content", "timestamp"}``, with other usual names: ``text``; ``ts``, ``time``, ``created_at``, also
in seconds since 1970; ``human`` for ``user``, ``ai``, ``model`` or ``bot`` for ``assistant``. ``content`` is a text or
a list of blocks with texts. A line may have the message in its field ``message``. Other lines are no messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from klaw_sessions.agent import Agent, Message, WorkingDirectory, join_texts, tool_texts

_ROLES = {
    **{role: role for role in ("user", "assistant", "tool")},
    **dict.fromkeys(("human",), "user"),
    **dict.fromkeys(("ai", "model", "bot"), "assistant"),
    **dict.fromkeys(("function", "tool_result"), "tool"),
}
_TEXTS = ("content", "text")
_TIMES = ("timestamp", "ts", "time", "created_at", "date")
_DEPTHS = 8
_MILLISECONDS = 1e11  # a larger number of seconds would be after the year 5000


def _root() -> Path:
    return Path.home() / "transcripts"


def _read_line(data: bytes, roles: Collection[str]) -> Iterator[Message | WorkingDirectory]:
    line = msgspec.json.decode(data)
    if not isinstance(line, dict):
        return
    inner = line.get("message")
    said: Mapping[str, Any] = {**line, **inner} if isinstance(inner, dict) else line
    role = _ROLES.get(str(said.get("role") or said.get("type") or "").lower(), "")
    if role not in roles:
        return
    text = next((found for name in _TEXTS if (found := join_texts(tool_texts(said.get(name)))).strip()), "")
    if text:
        moment = next((found for name in _TIMES if (found := _moment(said.get(name)))), "")
        yield Message(role, text, moment)


def _moment(value: object) -> str:
    """Return a time as text; empty if it is none."""
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float) or isinstance(value, bool):
        return ""
    try:
        return datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS else value, UTC).isoformat()
    except (OverflowError, OSError, ValueError):
        return ""


#: Plain transcripts, at any depth below a directory.
PLAIN = Agent("jsonl", _root, frozenset(range(_DEPTHS)), lambda name: name.endswith(".jsonl"), _read_line)
