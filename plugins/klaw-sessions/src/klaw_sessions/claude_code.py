"""The transcripts of Claude Code: ``~/.claude/projects/PROJECT/SESSION.jsonl``, a line for each message or part of one.

The form is not documented by its makers; what is read here is what its files hold: ``type`` ``user`` or ``assistant``,
a ``message`` as the Messages API has it, ``timestamp``, ``cwd``, ``uuid``. What subagents say (``isSidechain``) is left
out, and so is what the program itself puts between the messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from klaw_sessions.agent import Agent, Begun, Message, flattened, joined


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
# Most lines are answers of tools and notes of the program: their type is looked at before all else is decoded.
_MESSAGES = (b'"type":"user"', b'"type":"assistant"', b'"type": "user"', b'"type": "assistant"')

# What the program adds to what a person typed; of a command, its name and its arguments are what was typed.
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


def _read_line(data: bytes, roles: Collection[str]) -> Iterator[Message | Begun]:
    if not any(mark in data for mark in _MESSAGES):
        return
    line = _DECODER.decode(data)
    if line.type not in {"user", "assistant"} or line.message is None or line.is_sidechain:
        return
    if line.cwd:
        yield Begun(line.cwd)
    if line.is_meta or line.is_compact_summary or line.is_api_error_message:
        return
    content = line.message.content
    blocks = [_Block("text", content)] if isinstance(content, str) else content or []
    said = joined(block.text for block in blocks if block.type == "text")
    if line.type == "user":
        said = _typed(said)
    moment, name = line.timestamp or "", line.uuid or ""
    if said.strip() and line.type in roles:
        yield Message(line.type, said, moment, name)
    if "tool" in roles:
        done = joined(text for block in blocks for text in _tool(block))
        if done.strip():
            yield Message("tool", done, moment, f"{name}/tool")


def _typed(said: str) -> str:
    """Return what a person typed."""
    said = _TYPED.sub(lambda match: f"{match[2]} ", _ADDED.sub("", said))
    return "" if said.lstrip().startswith(_INTERRUPTED) else said


def _tool(block: _Block) -> Iterator[str]:
    if block.type == "tool_use":
        yield f"{block.name} {bytes(block.input).decode(errors='replace')}"
    elif block.type == "tool_result":
        answer: Any = msgspec.json.decode(block.content)
        yield from flattened(answer)


#: Claude Code. Files of subagents are called ``agent-…``.
CLAUDE_CODE = Agent(
    "claude-code",
    _root,
    frozenset({1}),
    lambda name: name.endswith(".jsonl") and not name.startswith("agent-"),
    _read_line,
    names_project=True,
)
