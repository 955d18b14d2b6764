"""The transcripts of Gemini CLI: ``~/.gemini/tmp/PROJECT/chats/session-….jsonl``.

The first line has the session's id. Later lines are messages (``id``, ``timestamp``, ``type``, ``content``), which may
be written again with more in them, and changes of what the first line says (``$set``), which are not read. Subagents'
transcripts lie deeper. Versions before 2026 wrote one JSON object a session (``.json``); Gemini CLI writes such a
session again as lines when it is resumed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from klaw_sessions.agent import (
    Agent,
    Message,
    WorkingDirectory,
    as_object,
    join_texts,
    message_text,
    tool_call,
    tool_texts,
)

_ROLES = {"user": "user", "gemini": "assistant"}
# Contexts that the program adds with the role of the user.
_ADDED = ("<session_context>", "<klaw-memory>")


def _root() -> Path:
    return Path.home() / ".gemini" / "tmp"


def _read_line(data: bytes, roles: Collection[str]) -> Iterator[Message | WorkingDirectory]:
    line = as_object(data)
    if "sessionId" in line:
        yield WorkingDirectory()
    role = _ROLES.get(str(line.get("type", "")))
    if role is None:
        return
    moment, name = str(line.get("timestamp", "")), str(line.get("id", ""))
    text = message_text(line.get("displayContent") or line.get("content"))
    if role in roles and text.strip() and not text.lstrip().startswith(_ADDED):
        yield Message(role, text, moment, name)
    if "tool" in roles and (called := join_texts(_tools(line.get("toolCalls")))).strip():
        yield Message("tool", called, moment, f"{name}/tool")


def _tools(calls: Any) -> Iterator[str]:
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            yield tool_call(call.get("name"), call.get("args"))
            yield from tool_texts(call.get("resultDisplay"))


#: Gemini CLI.
GEMINI_CLI = Agent(
    "gemini-cli",
    _root,
    frozenset({2}),
    lambda name: name.startswith("session-") and name.endswith(".jsonl"),
    _read_line,
    names_project=True,
    below=("chats",),
)
