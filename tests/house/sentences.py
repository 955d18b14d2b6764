"""Count the sentences that a reader has to read twice: python tests/house/sentences.py [--write|--list].

It fails if a kind has grown. The limits are in ``sentences.json``, and may only fall: ``--write`` stores lower ones.
``--list`` prints every sentence with its page. Pages are the README, the documentation without decisions and
measurements, and the plugins' READMEs; the texts of a program are those that a user can see. The kinds:

- long: more than 35 words; of a list, each item is a sentence;
- semicolons: three or more in one sentence;
- which: two or more clauses with "which" or "whose" in one sentence;
- what: a clause with "what" that stands in for a noun at the beginning ("What it lacks is added later");
- old: words that the manuals of today do not use (beside, told, hence, thereby, wherein ...).
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMITS = Path(__file__).with_name("sentences.json")
_MOST_WORDS = 35
_CODE = re.compile(
    r"\b(?:SELECT|CREATE|INSERT|UPDATE|DELETE|WHERE)\b|'(?:self|none)'|\{\{|\(\?|\|\w+\||\\\\[bsdw]|^\w+(?: \w+)+$"
)
_OLD = r"\b(?:beside|besides|told|hence|thereby|wherein|whereby|thereof|therein|thus|lest|amid|upon)\b"
KINDS = {
    "long": lambda text: len(re.findall(r"[\w'’./-]+", text)) > _MOST_WORDS,
    "semicolons": lambda text: text.count(";") >= 3,
    "which": lambda text: len(re.findall(r"\b(?:which|whose)\b", text)) >= 2,
    "what": lambda text: bool(re.match(r"(?:What|Whatever) (?!.*[?:]$)(?:\w+ ){4}", text)) or "of which there" in text,
    "old": lambda text: bool(re.search(_OLD, text, re.IGNORECASE)),
}


def pages() -> list[Path]:
    """Return the pages that users read."""
    found = [path for place in ("README.md", "docs/**/*.md", "plugins/*/README.md") for path in ROOT.glob(place)]
    return sorted(path for path in found if not {"decisions", "measurements"} & set(path.relative_to(ROOT).parts))


def sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a page in Markdown: without code, tables, pictures and addresses."""
    text = re.sub(r"^( *)(```|~~~).*?^\1\2 *$", "", page, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(?s)<!--.*?-->|<[^>]+>|!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "Code", text)
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.)\s)|\n(?=#)", text):
        if not re.match(r"\s*(?:\||#| {4})", part) or re.match(r"\s*[-*] ", part):
            plain = re.sub(r"^\s*(?:[-*>]|\d+\.)\s+|\*\*", "", " ".join(part.split()))
            yield from (each for each in re.split(r"(?<=[.!?:])\s+(?=[A-Z0-9*(\"“])", plain) if each)


def shown(source: str) -> Iterator[str]:
    """Yield the sentences of a module that its users see: help texts of commands, and messages."""
    tree = ast.parse(source)
    hidden = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and not (
            isinstance(node, ast.FunctionDef) and any("command" in ast.unparse(each) for each in node.decorator_list)
        )
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in hidden
            and node.value.count(" ") > 2
        ):
            yield from (each for each in sentences(node.value) if not _CODE.search(each))


def found() -> dict[str, list[tuple[str, str]]]:
    """Return the place and the text of every sentence of each kind."""
    texts = [(path, each) for path in pages() for each in sentences(path.read_text("utf-8"))]
    modules = [*ROOT.glob("klaw_core/cli/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    modules = [path for path in modules if path.name != "gate_words.py"]  # lists of words, not sentences
    texts += [(path, each) for path in sorted(modules) for each in shown(path.read_text("utf-8"))]
    return {
        kind: [(str(path.relative_to(ROOT)), each) for path, each in texts if is_one(each)]
        for kind, is_one in KINDS.items()
    }


def main(arguments: list[str]) -> int:
    """Compare the counts with their limits; return 1 if one is larger."""
    every = found()
    limits = json.loads(LIMITS.read_text("utf-8")) if LIMITS.exists() else {}
    counts = {kind: len(places) for kind, places in every.items()}
    grown = [kind for kind, count in counts.items() if count > limits.get(kind, count)]
    for kind, places in every.items():
        print(f"{kind:>12} {counts[kind]:>4} of at most {limits.get(kind, counts[kind])}")  # noqa: T201  # a program's output
        if "--list" in arguments or kind in grown:
            print("".join(f"    {place}: {text}\n" for place, text in places), end="")  # noqa: T201  # as above
    if "--write" in arguments:
        lower = {kind: min(count, limits.get(kind, count)) for kind, count in counts.items()}
        LIMITS.write_text(json.dumps(lower, indent=4) + "\n", "utf-8")
    return int(bool(grown))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
