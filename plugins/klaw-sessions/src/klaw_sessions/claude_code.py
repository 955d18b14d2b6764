"""The transcripts of Claude Code: ``~/.claude/projects/PROJECT/SESSION.jsonl``, one line per message or part of one.

The format is not documented; this module reads ``type`` (``user`` or ``assistant``), ``message`` in the format of the
Messages API, ``timestamp``, ``cwd`` and ``uuid``. Messages of subagents (``isSidechain``) and of the program itself are
left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from klaw_sessions.agent import Agent, Message, WorkingDirectory, join_texts, tool_texts


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"null")
    content: msgspec.Raw = msgspec.Raw(b"null")


class _Content(msgspec.Struct):
    content: str | list[_Block] | None = None


class _Line(msgspec.Struct, rename="camel"):
    type: str = ""
    uuid: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    is_meta: bool | None = None
    is_sidechain: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    message: _Content | None = None


_DECODER = msgspec.json.Decoder(_Line)
# Most lines are not messages. Looking for the type first is faster than decoding them.
_MESSAGES = (b'"type":"user"', b'"type":"assistant"', b'"type": "user"', b'"type": "assistant"')

# Elements that the program adds to the user's message, and elements with text that the user typed, such as commands.
_ADDED = re.compile(
    r"<(system-reminder|local-command-(?:caveat|stdout|stderr)|command-message|command-contents|bash-std(?:out|err)"
    r"|ide_[a-z_]+|task-notification|user-prompt-submit-hook|klaw-memory)>.*?</\1>",
    re.DOTALL,
)
_TYPED = re.compile(r"<(command-name|command-args|bash-input)>(.*?)</\1>", re.DOTALL)
_INTERRUPTED = "[Request interrupted by user"


def _root() -> Path:
    home = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(home) if home else Path.home() / ".claude") / "projects"


def _read_line(data: bytes, roles: Collection[str]) -> Iterator[Message | WorkingDirectory]:
    if not any(mark in data for mark in _MESSAGES):
        return
    line = _DECODER.decode(data)
    if line.type not in {"user", "assistant"} or line.message is None or line.is_sidechain:
        return
    if line.cwd:
        yield WorkingDirectory(line.cwd)
    if line.is_meta or line.is_compact_summary or line.is_api_error_message:
        return
    content = line.message.content
    blocks = [_Block("text", content)] if isinstance(content, str) else content or []
    text = join_texts(block.text for block in blocks if block.type == "text")
    if line.type == "user":
        text = _user_text(text)
    moment, name = line.timestamp or "", line.uuid or ""
    if text.strip() and line.type in roles:
        yield Message(line.type, text, moment, name)
    if "tool" in roles:
        tool_text = join_texts(text for block in blocks for text in _tool(block))
        if tool_text.strip():
            yield Message("tool", tool_text, moment, f"{name}/tool")


def _user_text(text: str) -> str:
    """Return the text that the user typed."""
    text = _TYPED.sub(lambda match: f"{match[2]} ", _ADDED.sub("", text))
    return "" if text.lstrip().startswith(_INTERRUPTED) else text


def _tool(block: _Block) -> Iterator[str]:
    if block.type == "tool_use":
        yield f"{block.name} {bytes(block.input).decode(errors='replace')}"
    elif block.type == "tool_result":
        answer: Any = msgspec.json.decode(block.content)
        yield from tool_texts(answer)


#: Claude Code. Files of subagents are called ``agent-…``.
CLAUDE_CODE = Agent(
    "claude-code",
    _root,
    frozenset({1}),
    lambda name: name.endswith(".jsonl") and not name.startswith("agent-"),
    _read_line,
    names_project=True,
)
