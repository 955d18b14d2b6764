"""The sessions of Aider: ``.aider.chat.history.md`` in each project, with a heading where a session starts.

Below it, lines that begin with ``####`` were typed by the user, quoted lines (``>``) are the program's, and the rest is
the model's. There is no place with the files of all projects, so ``path`` names a project, or a directory of projects.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from functools import partial
from hashlib import sha256
from itertools import groupby, pairwise
from pathlib import Path

from klaw_sessions.agent import Message, WorkingDirectory
from klaw_sessions.archive import Archive, Session

_FILE = ".aider.chat.history.md"
_START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d) (\d\d):(\d\d):(\d\d)\s*$", re.MULTILINE)
_USER, _TOOL = "####", ">"


def _find(root: Path) -> Iterator[Session]:
    for depth in ("", "*/", "*/*/"):
        for file in sorted(root.glob(f"{depth}{_FILE}")):
            yield from _sessions(file, file.parent.relative_to(root).as_posix())


def _sessions(file: Path, place: str) -> Iterator[Session]:
    text = file.read_text("utf-8", "replace")
    starts = list(_START.finditer(text))
    names: set[str] = set()
    for start, end in pairwise((*starts, None)):
        if start is None:
            return
        said = text[start.end() : end.start() if end else len(text)]
        if f"\n{_USER}" not in said:
            continue  # Aider writes the heading also if nothing is asked
        day, *time = start.groups()
        name = f"{'' if place == '.' else f'{place}/'}{day}-{''.join(time)}"
        while name in names:
            name += "-2"
        names.add(name)
        moment = datetime.fromisoformat(f"{day}T{':'.join(time)}").astimezone().isoformat()
        version = sha256(said.encode()).hexdigest()[:32]
        yield Session(name, file, len(said), version, partial(_read, said, moment, file.parent))


def _read(said: str, moment: str, directory: Path, roles: Collection[str]) -> Iterator[Message | WorkingDirectory]:
    yield WorkingDirectory(str(directory))
    for role, lines in groupby(said.splitlines(), _role):
        text = "\n".join(line.removeprefix(_USER).removeprefix(_TOOL).strip() for line in lines)
        if role in roles and text.strip():
            yield Message(role, text, moment)


def _role(line: str) -> str:
    if line.startswith(_USER):
        return "user"
    return "tool" if line.startswith(_TOOL) else "assistant"


#: Aider.
AIDER = Archive("aider", tuple, _find, "Aider keeps its chats in each project, so `path` has to name their directory")
