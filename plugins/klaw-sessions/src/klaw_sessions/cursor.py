"""The transcripts of Cursor's agent: ``~/.cursor/projects/PROJECT/agent-transcripts/SESSION/SESSION.jsonl``.

The format is not documented; a line is ``{"role", "message": {"content"}}`` with the content of the Messages API. What
the user typed stands in an element ``user_query`` among what the program adds. There are no times: the date of a part
is that of its file. Chats of the editor, and of the agent before 2026, are in databases that are not read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from klaw_sessions.agent import Agent, Message, WorkingDirectory, as_object, join_texts, message_text, tools_of

_TYPED = re.compile(r"<user_query>(.*?)</user_query>", re.DOTALL)
_DEPTHS = frozenset({2, 3})


def _root() -> Path:
    return Path.home() / ".cursor" / "projects"


def _read_line(data: bytes, roles: Collection[str]) -> Iterator[Message | WorkingDirectory]:
    line = as_object(data)
    role, message = line.get("role"), line.get("message")
    if not isinstance(role, str) or role not in {"user", "assistant"} or not isinstance(message, dict):
        return
    yield WorkingDirectory()
    text = message_text(message.get("content"))
    if role == "user" and (typed := _TYPED.findall(text)):
        text = "\n".join(typed)
    if role in roles and text.strip():
        yield Message(role, text)
    if "tool" in roles and (called := join_texts(tools_of(message.get("content")))).strip():
        yield Message("tool", called)


#: Cursor. The transcripts of subagents lie deeper.
CURSOR = Agent(
    "cursor",
    _root,
    _DEPTHS,
    lambda name: name.endswith(".jsonl"),
    _read_line,
    names_project=True,
    below=("agent-transcripts",),
)
