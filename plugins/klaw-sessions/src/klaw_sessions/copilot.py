"""The transcripts of Copilot CLI: ``~/.copilot/session-state/SESSION/events.jsonl``.

A line is an event: ``type``, ``data``, ``timestamp``, ``id``. The types are documented in ``@github/copilot-sdk``.
Events of subagents (``agentId``) and messages that are not of the user (``source``) are left out.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from klaw_sessions.agent import Agent, Message, WorkingDirectory, as_object, join_texts, tool_call, tool_texts

_ROLES = {"user.message": "user", "assistant.message": "assistant"}


def _root() -> Path:
    home = os.environ.get("COPILOT_HOME")
    return (Path(home) if home else Path.home() / ".copilot") / "session-state"


def _read_line(data: bytes, roles: Collection[str]) -> Iterator[Message | WorkingDirectory]:
    event = as_object(data)
    kind, found = event.get("type"), event.get("data")
    if not isinstance(kind, str) or not isinstance(found, dict) or event.get("agentId"):
        return
    if kind in {"session.start", "session.resume"}:
        context = found.get("context")
        directory = context.get("cwd") if isinstance(context, dict) else None
        yield WorkingDirectory(directory if isinstance(directory, str) else "")
    moment, name = str(event.get("timestamp", "")), str(event.get("id", ""))
    role, text = _ROLES.get(kind), found.get("content")
    is_added = found.get("source") or found.get("isAutopilotContinuation") or found.get("parentToolCallId")
    if role in roles and isinstance(text, str) and text.strip() and not is_added:
        yield Message(str(role), text, moment, name)
    if "tool" in roles and (called := join_texts(_tool(kind, found))).strip():
        yield Message("tool", called, moment, name)


def _tool(kind: str, found: Mapping[str, Any]) -> Iterator[str]:
    if kind == "tool.execution_start":
        yield tool_call(found.get("toolName"), found.get("arguments"))
    elif kind == "tool.execution_complete":
        yield from tool_texts(found.get("result"))


#: Copilot CLI. Its oldest transcripts are in the root directory itself.
COPILOT_CLI = Agent(
    "copilot-cli", _root, frozenset({0, 1}), lambda name: name.endswith(".jsonl"), _read_line, names_session=True
)
