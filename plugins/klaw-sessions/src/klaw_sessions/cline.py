"""The sessions of Cline: of its command line and of its extension of VS Code.

``~/.cline/data/sessions/SESSION/SESSION.messages.json`` has an object with ``messages``, and ``SESSION.json`` beside it
the directory. The extension writes ``tasks/TASK/api_conversation_history.json``, a list of messages. Both have messages
of the Messages API; what the user typed stands in elements among what the program adds.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from klaw_sessions.agent import Message, WorkingDirectory, join_texts, message_text, of_milliseconds, tools_of
from klaw_sessions.archive import Archive, Session, objects, read_json, version_of

_EXTENSION = "Code/User/globalStorage/saoudrizwan.claude-dev"
_TYPED = re.compile(r"<(user_input|task|feedback|user_message|answer)\b[^>]*>(.*?)</\1>", re.DOTALL)
_ADDED = re.compile(r"<(environment_details|thinking)>.*?</\1>", re.DOTALL)
# The result of a tool, which the extension writes as a text of the user.
_RESULT = re.compile(r"^\[\w+(?: for .*)?\] Result:", re.MULTILINE)


def _roots() -> Sequence[Path]:
    if sys.platform == "darwin":
        settings = Path.home() / "Library" / "Application Support"
    else:
        settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Path.home() / ".cline" / "data", settings / _EXTENSION


def _find(root: Path) -> Iterator[Session]:
    for file in sorted(root.glob("sessions/*/*.messages.json")):
        name = file.name.removesuffix(".messages.json")
        if name == file.parent.name:  # others are those of its subagents
            yield Session(name, file, *version_of(file), partial(_read_session, file))
    for file in sorted(root.glob("tasks/*/api_conversation_history.json")):
        yield Session(file.parent.name, file, *version_of(file), partial(_read_task, file))


def _read_session(file: Path, roles: Collection[str]) -> Iterator[Message | WorkingDirectory]:
    found: Any = read_json(file)
    messages = found.get("messages") if isinstance(found, dict) else None
    about = file.with_name(f"{file.parent.name}.json")
    described: Any = read_json(about) if about.is_file() else {}
    if messages and isinstance(described, dict) and isinstance(described.get("cwd"), str):
        yield WorkingDirectory(described["cwd"])
    yield from _messages(messages, "", roles)


def _read_task(file: Path, roles: Collection[str]) -> Iterator[Message | WorkingDirectory]:
    begun = int(file.parent.name) if file.parent.name.isdecimal() else None
    yield from _messages(read_json(file), of_milliseconds(begun), roles)


def _messages(found: object, begun: str, roles: Collection[str]) -> Iterator[Message | WorkingDirectory]:
    for line in objects(found):
        role: Any = line.get("role")
        if not isinstance(role, str) or role not in {"user", "assistant"}:
            continue
        yield WorkingDirectory()
        moment = of_milliseconds(line.get("ts")) or begun
        text = message_text(line.get("content"))
        text = _typed(text) if role == "user" else _ADDED.sub("", text)
        if role in roles and text.strip():
            yield Message(role, text, moment)
        if "tool" in roles and (called := join_texts(tools_of(line.get("content")))).strip():
            yield Message("tool", called, moment)


def _typed(text: str) -> str:
    """Return the text that the user typed."""
    if typed := _TYPED.findall(text):
        return "\n".join(match[1] for match in typed)
    return "" if _RESULT.search(text) else _ADDED.sub("", text)


#: Cline.
CLINE = Archive("cline", _roots, _find)
