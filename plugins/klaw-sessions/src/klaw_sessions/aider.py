"""The sessions of Aider: ``.aider.chat.history.md`` in each project, with a heading where a session starts.

Below it, lines that begin with ``####`` were typed by the user, quoted lines (``>``) are the program's, and the rest,
also such lines in a block of code, is the model's. There is no place with the files of all projects, so ``path`` names
a project, or a directory of projects.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import sha256
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path

from klaw_sessions.agent import Message, WorkingDirectory
from klaw_sessions.archive import Archive, Session

_FILE = ".aider.chat.history.md"
_START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d) (\d\d):(\d\d):(\d\d)\s*$", re.MULTILINE)
_USER, _END = "####", "  "
_ROLES = {_USER: "user", ">": "tool"}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^`]*$")


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
    for role, lines in groupby(_lines(said), itemgetter(0)):
        text = "\n".join(line for _, line in lines)
        if role in roles and text.strip():
            yield Message(role, text, moment)


def _lines(said: str) -> Iterator[tuple[str, str]]:
    """Yield the role of each line, and the line without the mark of its role.

    Aider ends the lines that it marks with two spaces, unless a program has removed these: so a heading in an answer is
    no line of the user. In a block of code a mark counts only after an empty line, where an answer was interrupted.
    """
    lines = said.splitlines()
    end = _END if any(line.startswith(_USER) and line.endswith(_END) for line in lines) else ""
    closing = _last_closing(lines)
    fence, before = "", ""
    for number, line in enumerate(lines):
        mark = next(filter(line.startswith, _ROLES), "")
        if fence:
            is_marked = bool(mark and end) and line.endswith(end) and not before.strip()
        else:
            is_marked = bool(mark) and (mark != _USER or line.endswith(end))
        before = line
        if is_marked:
            fence = ""
            yield _ROLES[mark], line.removeprefix(mark).strip()
            continue
        if fence:
            fence = "" if _closes(fence, line) else fence
        elif (opened := _FENCE.match(line)) and (end or closing.get(opened[1], -1) > number):
            fence = opened[1]
        yield "assistant", line.strip()


def _last_closing(lines: Sequence[str]) -> Mapping[str, int]:
    """Return the number of the last line that closes each fence that is opened in these lines."""
    opened = {found[1] for line in lines if (found := _FENCE.match(line))}
    bare = {fence: number for number, line in enumerate(lines) if (fence := line.strip()) and not fence.strip(fence[0])}
    return {
        fence: max((number for closing, number in bare.items() if closing.startswith(fence)), default=-1)
        for fence in opened
    }


def _closes(fence: str, line: str) -> bool:
    rest = line.strip()
    return rest.startswith(fence) and not rest.strip(fence[0])


#: Aider.
AIDER = Archive("aider", tuple, _find, "Aider keeps its chats in each project, so `path` has to name their directory")
