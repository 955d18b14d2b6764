"""Parse a USER.md, in which a person describes themselves, into keys and values."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from klaw_core import KlawError, NotFoundError, RecordError

_MAX_BYTES = 1 << 18

#: A key: a few words followed by a colon and a space. A sentence with a colon in it does not match.
_LABEL = r"[^\W_](?:[^\n:*.!?;,`\[\]]{0,48}[^\s:*.!?;,`\[\]])?"
_FACT = re.compile(
    rf"""(?P<indent>\s*)(?:[-*+]\s+)?                        # an optional list marker
    (?:\*\*(?P<bold>{_LABEL})(?::\s*\*\*|\*\*\s*:)(?=\s|$)   # **Name:** or **Name**:
    |(?P<plain>{_LABEL}):(?=\s|$))                           # Name:
    \s*(?P<value>.*)""",
    re.VERBOSE,
)
_HEADING = re.compile(r" {0,3}#{1,6}\s+(?P<title>.*?)(?:\s+#+)?\s*$")
_FENCE = re.compile(r"\s*(?P<mark>`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_MAX_KEY_WORDS = 5


def read_user_md(file: Path) -> str:
    """Return the text of a USER.md. Raise NotFoundError, RecordError if it cannot be one."""
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise RecordError(f"{file} has over {_MAX_BYTES >> 10} KiB", hint="a USER.md is a short description")
        text = file.read_text("utf-8")
    except FileNotFoundError as error:
        raise NotFoundError(f"{file} does not exist", hint="klaw core import USER.md") from error
    except OSError as error:
        raise RecordError(f"{file} cannot be read: {error.strerror}", hint="klaw core import USER.md") from error
    except UnicodeDecodeError as error:
        raise RecordError(f"{file} is not UTF-8", hint="save it as UTF-8") from error
    if not parse_user_md(text):
        raise RecordError(f"{file} says nothing about the user", hint="write lines such as `Name: Ada`")
    return text


def find_user_md(directory: Path) -> Path | None:
    """Return the USER.md of a directory, if it has one that says something."""
    file = directory / "USER.md"
    try:
        read_user_md(file)
    except KlawError:
        return None
    return file


def parse_user_md(text: str) -> Mapping[str, str]:
    """Return the facts of a USER.md by key, in order; the first fact of a key counts.

    ``Name: X``, ``- Name: X`` and ``**Name**: X`` are facts. Other text below a heading is the value of the heading.
    Indented text below an empty ``Projects:`` is the value of ``projects``. List items are joined with ``; ``. A key
    is in lower case, its words joined with ``_``. Fenced code, comments and text before the first heading are ignored.
    """
    facts: dict[str, list[str]] = {}
    heading = open_key = ""
    for line in _lines(text):
        if found := _HEADING.fullmatch(line):
            heading, open_key = _key(found["title"]), ""
        elif not line.strip():
            open_key = ""
        elif open_key and line[0].isspace():
            facts[open_key].append(_bare(line))
        elif (found := _FACT.fullmatch(line)) and len((found["bold"] or found["plain"]).split()) <= _MAX_KEY_WORDS:
            open_key = ""
            key, value = _key(found["bold"] or found["plain"]), found["value"].strip()
            if key not in facts:
                facts[key] = [value] if value else []
                open_key = "" if value else key
        elif heading:
            facts.setdefault(heading, []).append(_bare(line))
    return {key: _joined(parts) for key, parts in facts.items() if key and parts}


def _lines(text: str) -> Iterator[str]:
    """Yield the lines outside fenced code, without comments and the byte order mark."""
    fence = ""
    for line in _COMMENT.sub("", text.removeprefix("\ufeff")).splitlines():
        found = _FENCE.match(line)
        if fence:
            fence = "" if found and found["mark"].startswith(fence) else fence
        elif found:
            fence = found["mark"]
        else:
            yield line


def _key(label: str) -> str:
    return "_".join(re.findall(r"\w+", label.lower().replace("_", " ")))


def _bare(line: str) -> str:
    """Strip a line; a list item loses its marker and ends with a semicolon as the separator for :func:`_joined`."""
    found = _ITEM.match(line)
    return f"{line[found.end() :].strip()};" if found else line.strip()


def _joined(parts: list[str]) -> str:
    return " ".join(parts).removesuffix(";")
