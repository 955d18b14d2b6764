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
from klaw_sessions.archive import Archive, Session

_FILE = "opencode.db"
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


def _opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)


def _find(root: Path) -> Iterator[Session]:
    file = root / _FILE
    if not file.is_file():
        return
    with closing(_opened(file)) as database:
        rows = database.execute(_SESSIONS).fetchall()
    for name, directory, updated, size in rows:
        yield Session(name, file, size, f"{updated}/{size}", partial(_read, file, name, directory))


def _read(file: Path, session: str, directory: str, roles: Collection[str]) -> Iterator[Message | WorkingDirectory]:
    with closing(_opened(file)) as database:
        rows = database.execute(_PARTS, (session,)).fetchall()
    if rows:
        yield WorkingDirectory(directory)
    parts: dict[str, list[Mapping[str, Any]]] = {}
    messages = {}
    for message, data, created, part in rows:
        messages[message] = (json.loads(data), created)
        parts.setdefault(message, []).append(json.loads(part or "{}"))
    for message, (data, created) in messages.items():
        moment = of_milliseconds(created)
        if data.get("role") in roles and (text := join_texts(map(_text, parts[message]))).strip():
            yield Message(data["role"], text, moment, message)
        if "tool" in roles and (called := join_texts(call for part in parts[message] for call in _tool(part))).strip():
            yield Message("tool", called, moment, f"{message}/tool")


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
