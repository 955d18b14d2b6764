"""The transcripts of Codex: ``~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl``.

A line is ``{"timestamp", "type", "payload"}``; messages are payloads of the type ``message``. In files from before
September 2025, a line is the payload itself. Messages that Codex adds with the role of the user (the environment,
instructions, the context of an editor) are left out.
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


class _Payload(msgspec.Struct):
    type: str | None = None
    role: str | None = None
    cwd: str | None = None
    name: str | None = None
    content: msgspec.Raw = msgspec.Raw(b"null")
    arguments: msgspec.Raw = msgspec.Raw(b"null")
    input: msgspec.Raw = msgspec.Raw(b"null")
    output: msgspec.Raw = msgspec.Raw(b"null")


class _Line(_Payload):
    timestamp: str | None = None
    payload: msgspec.Raw = msgspec.Raw(b"null")


_LINE = msgspec.json.Decoder(_Line)
_PAYLOAD = msgspec.json.Decoder(_Payload | None)
_BLOCKS = msgspec.json.Decoder(list[_Block] | str | None)

# The beginnings of messages that Codex adds with the role of the user.
_ADDED = (
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<klaw-memory>",
)
# An element of another kind that Codex adds. Its name has several words, unlike those of HTML, which people paste.
_ELEMENT = re.compile(r"\s*<([a-z]+(?:[_ ][a-z]+)+)(?:\s[^<>]*)?>.*</\1>\s*", re.DOTALL)
# The heading between the context of an editor and the text that the user typed.
_REQUEST = "## My request for Codex:"


def _root() -> Path:
    home = os.environ.get("CODEX_HOME")
    return (Path(home) if home else Path.home() / ".codex") / "sessions"


def _read_line(data: bytes, roles: Collection[str]) -> Iterator[Message | WorkingDirectory]:
    line = _LINE.decode(data)
    payload: _Payload | None = line
    if line.type in {"session_meta", "response_item", "turn_context"}:
        payload = _PAYLOAD.decode(line.payload)
    if payload is None:
        return
    if payload.cwd:
        yield WorkingDirectory(payload.cwd)
    moment = line.timestamp or ""
    if payload.type == "message" and payload.role in {"user", "assistant"} and payload.role in roles:
        content = _BLOCKS.decode(payload.content)
        text = content if isinstance(content, str) else join_texts(map(_block_text, content or ()))
        if text.strip():
            yield Message(payload.role, text, moment)
    elif "tool" in roles and (tool_text := join_texts(_tool(payload))).strip():
        yield Message("tool", tool_text, moment)


def _block_text(block: _Block) -> str:
    """Return the text of the user or the model in a block."""
    text = block.text or ""
    if block.type not in {"input_text", "output_text", "text"} or text.lstrip().startswith(_ADDED):
        return ""
    if block.type == "input_text" and _ELEMENT.fullmatch(text):
        return ""
    return text.partition(_REQUEST)[2] or text


def _tool(payload: _Payload) -> Iterator[str]:
    if payload.type in {"function_call", "custom_tool_call"}:
        arguments: Any = msgspec.json.decode(payload.arguments) or msgspec.json.decode(payload.input)
        yield f"{payload.name} {arguments}"
    elif payload.type in {"function_call_output", "custom_tool_call_output"}:
        yield from tool_texts(msgspec.json.decode(payload.output))


#: Codex. Its oldest transcripts are in the root directory itself.
CODEX = Agent(
    "codex",
    _root,
    frozenset({0, 3}),
    lambda name: name.startswith("rollout-") and name.endswith(".jsonl"),
    _read_line,
)
