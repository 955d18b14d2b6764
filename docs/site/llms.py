"""The file ``llms.txt`` of the website: every page with its address and first sentence, for language models to read.

https://llmstxt.org describes the format: a title, a summary, and lists of links below headings. ``Optional`` is what a
model can leave out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
#: Sections for people who change Klaw.
OPTIONAL = ("Measurements", "Decisions")


def llms(docs: Path, name: str, summary: str, sections: Mapping[str, str]) -> str:
    """Return the file; ``sections`` are the directories of ``docs`` by their titles."""
    needed = "".join(f"\n## {title}\n\n{_list(docs, at)}" for title, at in sections.items() if title not in OPTIONAL)
    optional = "".join(_list(docs, sections[title]) for title in OPTIONAL if title in sections)
    return f"# {name}\n\n> {summary}.\n{needed}\n## Optional\n\n{optional}"


def _list(docs: Path, directory: str) -> str:
    paths = sorted((docs / directory).glob("*.md"))
    return "".join(f"- [{_title(path)}]({_address(docs, path)}): {_first_sentence(path)}\n" for path in paths)


def _address(docs: Path, path: Path) -> str:
    relative = path.relative_to(docs).with_suffix(".html")
    return (relative.with_name("index.html") if path.stem == "README" else relative).as_posix()


def _title(path: Path) -> str:
    return next(line for line in path.read_text("utf-8").splitlines() if line.startswith("# ")).removeprefix("# ")


def _first_sentence(path: Path) -> str:
    """Return the first sentence of the first paragraph, without links."""
    parts = path.read_text("utf-8").split("\n\n")
    text = next((part for part in parts if re.match(r"(?!```)[A-Z`0-9*\[]", part)), "")
    return re.split(r"(?<=[.:])\s", " ".join(_LINK.sub(r"\1", text).split()))[0].rstrip(":")
