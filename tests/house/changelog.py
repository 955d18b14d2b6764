"""Hold that every line of the changelog names its packages: python tests/house/changelog.py [--write].

A line ends with the distributions that it is about, such as "(klaw-facts)", so that who has one of them finds what has
changed for them: ``grep '(.*klaw-facts' CHANGELOG.md``. ``--write`` adds it to the lines of the next version,
"Unreleased", that lack it: the names of packages, extras and commands in a line decide, or other words, or its heading.
The session ``release`` does so, too, and prints what it added, to be looked at.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEXT = "## Unreleased"
_NAMED = re.compile(r" \((klaw(?:-[a-z0-9]+)*|langchain-klaw)(?:, (?:klaw(?:-[a-z0-9]+)*|langchain-klaw))*\)$")
#: What a line is about if it names no package: words in it, and the heading above it.
_WORDS = {
    r"`?langchain|LangGraph": "langchain-klaw",
    r"Haystack": "klaw-haystack",
    r"`klaw logs|CHAT/MESSAGE": "klaw-conversations",
    r"BackgroundIndexer|BackgroundRun|memory\.sync": "klaw-watch",
    r"word index|full-text|packed words|merging the pieces": "klaw-fts5",
    r"`memory_\w+`": "klaw-tools",
    r"\*\.mdx|PATH#HEADING": "klaw-notes",
    r"PostgreSQL|pgvector|PgBouncer": "klaw-store-postgres",
    r"LanceDB": "klaw-lancedb",
    r"Qdrant": "klaw-qdrant",
    r"OpenVINO|openvino": "klaw-embed-openvino",
    r"PyTorch|sentence-transformers": "klaw-embed-sentence-transformers",
    r"llama\.cpp|GGUF": "klaw-embed-llamacpp",
    r"Ollama": "klaw-embed-ollama",
    r"Gemini": "klaw-embed-gemini",
    r"Agents SDK|Strands|Pydantic AI|ADK|KlawSession|KlawMemoryStore": "klaw-agents",
    r"[Rr]erank": "klaw-rerank-basic",
    r"web page at|OpenAPI document|REST|JSON-RPC|WebSocket|/metrics|`?serve`? ": "klaw-serve",
    r"MCP|Claude Desktop": "klaw-mcp",
    r"[Cc]ontract|conformance|`klaw plugins new`|klaw_testing": "klaw-testing",
    r"[Jj]ournal|JSONL": "klaw-journals",
    r"klaw\.db|SQLite|sqlite|database|FTS5": "klaw-store-sqlitevec",
    r"[Cc]hats?\b|[Cc]onversation|messages?\b": "klaw-conversations",
    r"[Ff]ront matter|[Ww]orkspace|[Nn]otes?\b|\.gitignore|Markdown": "klaw-notes",
    r"(?<!uv )[Tt]ools?\b|toolbox|[Cc]ontext": "klaw-tools",
    r"[Ff]acts?\b": "klaw-facts",
    r"`klaw eval|benchmark": "klaw-eval",
    r"klaw (?:doctor|export|import)|Memory\.(?:export|import_|doctor)": "klaw-doctor",
    r"[Cc]ore memory|`klaw (?:save|core)": "klaw-memories",
    r"models?\b": "klaw-models",
}
_HEADINGS = {"Facts": "klaw-facts"}


def names() -> list[str]:
    """Return the names of all distributions."""
    return ["klaw", *sorted(path.parent.name for path in (ROOT / "plugins").glob("*/pyproject.toml"))]


def of_line(line: str, heading: str) -> list[str]:
    """Return the distributions that a line is about."""
    known = set(names())
    catalogue = json.loads((ROOT / "klaw_core" / "plugins" / "catalogue.json").read_text("utf-8"))
    of_extra = {extra: name for name, row in catalogue.items() for extra in row["extras"]}
    of_command = {command: name for name, row in catalogue.items() for command in row.get("commands", ())}
    found = re.findall(r"\b(?:klaw|langchain)-[a-z0-9-]+|\bklaw_[a-z0-9_]+", line)
    found = [name.replace("_", "-") for name in found]
    found += [of_extra.get(extra, "") for extra in re.findall(r"klaw\[(\w[\w-]*)", line)]
    found += [of_command.get(command, "") for command in re.findall(r"`klaw (\w+)", line)]
    found = [name for name in dict.fromkeys(found) if name in known and name != "klaw"]
    if not found:
        words = (name for words, name in _WORDS.items() if re.search(words, line))
        found = [next((name for name in (*_heading(heading), *words) if name in known), "klaw")]
    return found[:3]


def _heading(heading: str) -> Iterator[str]:
    yield from (name for start, name in _HEADINGS.items() if heading.startswith(start))


def items(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number of the last line, the heading and the content of each change of the next version."""
    heading, content = "", text.splitlines()
    start = content.index(NEXT) + 1 if NEXT in content else len(content)
    end = next((number for number in range(start, len(content)) if content[number].startswith("## ")), len(content))
    for number in range(start, end):
        line = content[number]
        if line.startswith("**"):
            heading = line.strip("*").partition("*")[0]
        if line.startswith("- "):
            last = number
            while last + 1 < end and content[last + 1].startswith("  "):
                last += 1
            yield last, heading, " ".join(map(str.strip, content[number : last + 1]))


def with_names(text: str) -> tuple[str, list[str]]:
    """Return a changelog with a package for each change, and the changes that had none."""
    content, added = text.splitlines(), []
    for number, heading, change in items(text):
        if not _NAMED.search(change):
            name = f" ({', '.join(of_line(change, heading))})"
            content[number] += name
            added.append(change + name)
    return "\n".join(content) + "\n", added


def main() -> int:
    """Name the lines that name no package, or write it; return the exit code."""
    file = ROOT / "CHANGELOG.md"
    text, added = with_names(file.read_text("utf-8"))
    if "--write" in sys.argv[1:]:
        file.write_text(text, "utf-8")
    print("\n".join(added))  # noqa: T201  # a program's output
    return 0 if "--write" in sys.argv[1:] else bool(added)


if __name__ == "__main__":
    sys.exit(main())
