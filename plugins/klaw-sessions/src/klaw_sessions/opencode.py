"""The sessions of OpenCode: the tables ``session``, ``message`` and ``part`` of ``opencode.db`` (since version 1.2).

A message has its role in its JSON, a part its text. Sessions of subagents (``parent_id``) are left out.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from klaw_sessions.agent import Message, WorkingDirectory, join_texts, of_milliseconds, tool_call, tool_texts
from klaw_sessions.archive import Archive, Session, UnreadableError
from klaw_sessions.content import why_unknown

_FILE = "opencode.db"
_ROLES = ("user", "assistant")
# The kinds of parts of version 1.18; a session that has none of them has the form of another version.
_KINDS = (
    *("text", "reasoning", "tool", "file", "step-start", "step-finish", "snapshot", "patch", "agent", "subtask"),
    *("compaction", "retry"),
)
_SESSIONS = """
SELECT id, directory, time_updated, (SELECT coalesce(sum(length(data)), 0) FROM part WHERE session_id = session.id)
FROM session WHERE parent_id IS NULL ORDER BY id
"""
_PARTS = """
SELECT message.id, message.data, message.time_created, part.data
FROM message LEFT JOIN part ON part.message_id = message.id
WHERE message.session_id = ? ORDER BY message.time_created, message.id, part.id
"""


def _roots() -> Sequence[Path]:
    data = os.environ.get("XDG_DATA_HOME")
    return ((Path(data) if data else Path.home() / ".local" / "share") / "opencode",)


def _rows(file: Path, query: str, *values: str) -> list[tuple[Any, ...]]:
    """Return the rows that a query finds. Raise UnreadableError."""
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            return database.execute(query, values).fetchall()
    except sqlite3.Error as error:
        is_unknown = str(error).startswith("no such")  # table or column
        raise UnreadableError(file, why_unknown("opencode") if is_unknown else f"cannot be read: {error}") from error


def _find(root: Path) -> Iterator[Session]:
    file = root / _FILE
    if not file.is_file():
        return
    for name, directory, updated, size in _rows(file, _SESSIONS):
        yield Session(name, file, size, f"{updated}/{size}", partial(_read, file, name, directory))


def _read(file: Path, session: str, directory: str, roles: Collection[str]) -> Iterator[Message | WorkingDirectory]:
    parts: dict[str, list[Mapping[str, Any]]] = {}
    messages = {}
    for message, data, created, part in _rows(file, _PARTS, session):
        messages[message] = (_object(data), created)
        parts.setdefault(message, []).append(_object(part))
    if any(data.get("role") in _ROLES and any(map(_is_known, parts[key])) for key, (data, _) in messages.items()):
        yield WorkingDirectory(directory)
    for message, (data, created) in messages.items():
        moment = of_milliseconds(created)
        if data.get("role") in roles and (text := join_texts(map(_text, parts[message]))).strip():
            yield Message(data["role"], text, moment, message)
        if "tool" in roles and (called := join_texts(call for part in parts[message] for call in _tool(part))).strip():
            yield Message("tool", called, moment, f"{message}/tool")


def _object(text: str | bytes | None) -> Mapping[str, Any]:
    """Return the object in a text; an empty one for NULL and for any other value. Raise ValueError."""
    value = json.loads(text or "{}")
    return value if isinstance(value, dict) else {}


def _is_known(part: Mapping[str, Any]) -> bool:
    return not part or part.get("type") in _KINDS


def _text(part: Mapping[str, Any]) -> Any:
    """Return what the user typed or the model said; the program adds texts to both."""
    is_said = part.get("type") == "text" and not part.get("synthetic") and not part.get("ignored")
    return part.get("text") if is_said else None


def _tool(part: Mapping[str, Any]) -> Iterator[str]:
    state = part.get("state")
    if part.get("type") == "tool" and isinstance(state, dict):
        yield tool_call(part.get("tool"), state.get("input"))
        yield from tool_texts(state.get("output"))


#: OpenCode.
OPENCODE = Archive("opencode", _roots, _find)
