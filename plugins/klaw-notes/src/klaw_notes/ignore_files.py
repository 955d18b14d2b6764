"""Apply ``.gitignore`` and ``.klawignore`` to a workspace, with the rules of gitignore(5).

In a directory with both files, the lines of ``.klawignore`` come after those of ``.gitignore``, so that ``!pattern``
includes what git ignores. A file in a subdirectory takes precedence; an ignored directory is not entered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from attrs import define, field, frozen

IGNORE_FILES = (".gitignore", ".klawignore")

_MAX_BYTES = 1_000_000
# The special parts of a pattern; all other characters are literal.
_PART = re.compile(
    r"(?P<any_depth>/\*\*(?=/))|(?P<inside>/\*\*\Z)|(?P<above>\A\*\*/)|(?P<stars>\*+)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>\]?(?:\\.|[^\]\\])*)\]|\\(?P<escaped>.)",
    re.DOTALL,
)


@frozen
class _Rule:
    """One line. ``expression`` matches a name, or if ``anchored`` the path from the file's directory."""

    expression: re.Pattern[str]
    ignores: bool
    anchored: bool
    directories_only: bool

    def decides(self, relative: str, *, is_directory: bool) -> bool:
        if self.directories_only and not is_directory:
            return False
        return self.expression.fullmatch(relative if self.anchored else relative.rpartition("/")[2]) is not None


@define(eq=False)
class IgnoreRules:
    """The ignore files of a directory and its subdirectories, each read when it is first needed."""

    root: Path = field(converter=Path)
    _rules: dict[str, list[_Rule]] = field(factory=dict, init=False)

    def ignores(self, relative: str, *, is_directory: bool) -> bool:
        """Return whether a path below the root is ignored, assuming that its parent directories are not."""
        decide = self.below(relative.rpartition("/")[0])
        return decide is not None and decide(relative, is_directory)

    def below(self, directory: str) -> Callable[[str, bool], bool] | None:
        """Return a function that says whether a child of a directory is ignored; None if no rule applies to children.

        Its arguments are the child's path relative to the root, and whether it is a directory. ``""`` is the root.
        """
        above = [place for place, _ in _places(f"{directory}/" if directory else "")]
        rules = [(rule, len(place) + 1 if place else 0) for place in above for rule in self._rules_of(place)]
        if not rules:
            return None
        # No rule matches most files: one search with the union of all rules finds that out.
        may_match = _union(rules)

        def ignores(relative: str, is_directory: bool) -> bool:  # noqa: FBT001  # called for every file
            if may_match(relative) is None:
                return False
            for rule, start in rules:
                if rule.decides(relative[start:], is_directory=is_directory):
                    return rule.ignores
            return False

        return ignores

    def ignores_file(self, relative: str) -> bool:
        """Return whether a file, or a directory above it, is ignored."""
        return self.ignores(relative, is_directory=False) or any(
            self.ignores(directory, is_directory=True) for directory, _ in _places(relative) if directory
        )

    def _rules_of(self, directory: str) -> list[_Rule]:
        """Return the rules of a directory's own files, last line first, because a later line takes precedence."""
        if directory not in self._rules:
            place = f"{self.root}/{directory}" if directory else str(self.root)
            lines = [line for name in IGNORE_FILES for line in _lines(f"{place}/{name}")]
            self._rules[directory] = [rule for line in reversed(lines) if (rule := _parse(line)) is not None]
        return self._rules[directory]


def _union(rules: Iterable[tuple[_Rule, int]]) -> Callable[[str], re.Match[str] | None]:
    """Return a matcher for every path to which a rule may apply. Each rule matches from its own start index."""
    parts = []
    for rule, start in rules:
        before = f".{{{start}}}" if rule.anchored else "(?:.*/)?"
        parts.append(f"(?:{before}(?:{rule.expression.pattern}))")
    return re.compile("|".join(dict.fromkeys(parts)), re.DOTALL).fullmatch


def _places(relative: str) -> Iterator[tuple[str, str]]:
    """Yield each directory above a path, nearest first, with the path relative to it; the root is ``""``."""
    parts = relative.split("/")
    for depth in range(len(parts) - 1, -1, -1):
        yield "/".join(parts[:depth]), "/".join(parts[depth:])


def _lines(file: str) -> list[str]:
    try:
        if not os.path.isfile(file) or os.path.getsize(file) > _MAX_BYTES:  # noqa: PTH113, PTH202  # a FIFO would not end
            return []
        return Path(file).read_text("utf-8-sig", errors="replace").splitlines()
    except (OSError, ValueError):  # an unreadable file counts as missing
        return []


def _parse(line: str) -> _Rule | None:
    """Parse a line (gitignore(5)); return None for a comment, an empty line and an invalid pattern."""
    pattern = re.sub(r"(?<!\\) +\Z", "", line)
    if pattern.startswith("#"):
        return None
    ignores = not pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    directories_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    if not pattern:
        return None
    try:
        expression = re.compile(_expression(pattern), re.DOTALL)
    except re.error:
        return None
    return _Rule(expression, ignores, "/" in pattern, directories_only)


def _expression(pattern: str) -> str:
    """Return the regular expression of a pattern."""
    text = pattern.removeprefix("/")
    parts, done = [], 0
    for found in _PART.finditer(text):
        parts += [re.escape(text[done : found.start()]), _translate(found)]
        done = found.end()
    return "".join([*parts, re.escape(text[done:])])


def _translate(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind == "set":
        members = re.sub(r"\\(.)", r"\1", found["set"]).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
        return f"(?!/)[{'^' if found['not'] else ''}{members}]"
    if kind == "escaped":
        return re.escape(found["escaped"])
    return {"any_depth": "(?:/.*)?", "inside": "/.+", "above": "(?:.*/)?", "stars": "[^/]*", "one": "[^/]"}[str(kind)]
