"""Apply ``.gitignore`` and ``.klawignore`` to a workspace, with the rules of gitignore(5).

In a directory with both files, the lines of ``.klawignore`` come after those of ``.gitignore``, so that ``!pattern``
includes what git ignores. A file in a subdirectory takes precedence; an ignored directory is not entered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path

from attrs import define, field, frozen

IGNORE_FILES = (".gitignore", ".klawignore")

_MAX_BYTES = 1_000_000
_MAX_LINE = 4096  # characters; no path is longer
# The special parts of a pattern; all other characters are literal.
_PART = re.compile(
    r"(?P<any_depth>(?:\A|/)(?:\*\*/)+)|(?P<inside>/\*\*\Z)|(?P<stars>\*+)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>\]?(?:\\.|[^\]\\])*+)\]|(?P<open>\[)|\\(?P<escaped>.)",
    re.DOTALL,
)
_Matcher = Callable[[str], re.Match[str] | None]


@frozen
class _Rule:
    """One line. ``expression`` matches a name, or if ``anchored`` the path from the file's directory."""

    expression: str
    ignores: bool
    anchored: bool
    directories_only: bool

    @cached_property
    def _matches(self) -> _Matcher:  # the rules of a long file take seconds to compile, and few match a file
        return re.compile(self.expression, re.DOTALL).fullmatch

    def decides(self, relative: str, *, is_directory: bool) -> bool:
        if self.directories_only and not is_directory:
            return False
        return self._matches(relative if self.anchored else relative.rpartition("/")[2]) is not None


@define(eq=False)
class IgnoreRules:
    """The ignore files of a directory and its subdirectories, each read when it is first needed."""

    root: Path = field(converter=Path)
    _rules: dict[str, tuple[list[_Rule], _Matcher]] = field(factory=dict, init=False)
    _problems: list[tuple[str, str]] = field(factory=list, init=False)

    def ignores(self, relative: str, *, is_directory: bool) -> bool:
        """Return whether a path below the root is ignored, assuming that its parent directories are not."""
        decide = self.below(relative.rpartition("/")[0])
        return decide is not None and decide(relative, is_directory)

    def below(self, directory: str) -> Callable[[str, bool], bool] | None:
        """Return a function that says whether a child of a directory is ignored; None if no rule applies to children.

        Its arguments are the child's path relative to the root, and whether it is a directory. ``""`` is the root.
        """
        above = [place for place, _ in _places(f"{directory}/" if directory else "")]
        files = [(*found, len(place) + 1 if place else 0) for place in above if (found := self._rules_of(place))[0]]
        if not files:
            return None

        def ignores(relative: str, is_directory: bool) -> bool:  # noqa: FBT001  # called for every file
            for rules, may_match, start in files:
                # No rule matches most files: one search with the union of all rules finds that out.
                if may_match(relative[start:]) is None:
                    continue
                for rule in rules:
                    if rule.decides(relative[start:], is_directory=is_directory):
                        return rule.ignores
            return False

        return ignores

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what of the files read so far does not count, each once: the path below the root, and the reason."""
        while self._problems:
            yield self._problems.pop(0)

    def ignores_file(self, relative: str) -> bool:
        """Return whether a file, or a directory above it, is ignored."""
        return self.ignores(relative, is_directory=False) or any(
            self.ignores(directory, is_directory=True) for directory, _ in _places(relative) if directory
        )

    def _rules_of(self, directory: str) -> tuple[list[_Rule], _Matcher]:
        """Return the rules of a directory's own files, and their union.

        The last line comes first, because a later line takes precedence.
        """
        if directory not in self._rules:
            above = f"{directory}/" if directory else ""
            lines = [line for name in IGNORE_FILES for line in self._lines(above + name)]
            rules = [rule for line in reversed(lines) if (rule := _parse(line)) is not None]
            self._rules[directory] = rules, _union(rules)
        return self._rules[directory]

    def _lines(self, name: str) -> Iterator[str]:
        """Yield the lines of a file that count; an unreadable file counts as missing."""
        file = f"{self.root}/{name}"
        try:
            if not os.path.isfile(file):  # noqa: PTH113  # a FIFO would not end
                return
            if os.path.getsize(file) > _MAX_BYTES:  # noqa: PTH202
                self._problems.append((name, f"has more than {_MAX_BYTES:,} bytes, so that it ignores nothing"))
                return
            lines = Path(file).read_text("utf-8-sig", errors="replace").splitlines()
        except (OSError, ValueError):
            return
        for number, line in enumerate(lines, 1):
            if len(line) > _MAX_LINE:
                self._problems.append((name, f"line {number} has more than {_MAX_LINE:,} characters: it has no effect"))
            else:
                yield line


def _union(rules: Iterable[_Rule]) -> _Matcher:
    """Return a matcher for every path to which a rule may apply."""
    parts = [f"{'' if rule.anchored else '(?>(?:.*/)?)'}(?:{rule.expression})" for rule in rules]
    return re.compile("|".join(dict.fromkeys(parts)), re.DOTALL).fullmatch


def _places(relative: str) -> Iterator[tuple[str, str]]:
    """Yield each directory above a path, nearest first, with the path relative to it; the root is ``""``."""
    parts = relative.split("/")
    for depth in range(len(parts) - 1, -1, -1):
        yield "/".join(parts[:depth]), "/".join(parts[depth:])


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
        expression = _expression(pattern.removeprefix("/"))
        if "[" in pattern:  # the set may be invalid
            re.compile(expression)
    except re.error:
        return None
    return _Rule(expression, ignores, "/" in pattern, directories_only)


def _expression(text: str) -> str:
    """Return the regular expression of a pattern. Raise re.error.

    The time of a match grows only with the product of the lengths of pattern and path. Every wildcard but the last
    takes as little as it can, and nothing else is tried later. This loses no match: what stands between two wildcards
    has a fixed length, so the earliest place leaves the most to all that follow.
    """
    groups, done = [[""]], 0  # what stands between stars, for each part between two ``**``
    for found in _PART.finditer(text):
        groups[-1][-1] += re.escape(text[done : found.start()])
        done = found.end()
        if found.lastgroup == "any_depth":
            groups[-1][-1] += "/" if found["any_depth"].startswith("/") else ""
            groups.append([""])
        elif found.lastgroup == "stars":
            groups[-1].append("")
        else:
            groups[-1][-1] += _translate(found)
    groups[-1][-1] += re.escape(text[done:])
    *before, end = groups
    below = "(?:[^/]++/)*" if before else ""
    parts = [f"(?>{'(?:[^/]++/)*?' if number else ''}{_runs(group)})" for number, group in enumerate(before)]
    return "".join([*parts, below, _runs(end[:-1]), "[^/]*" if len(end) > 1 else "", end[-1]])


def _runs(runs: list[str]) -> str:
    """Return the expression of what stands between stars, each star as short as possible."""
    return "".join([*runs[:1], *(f"(?>[^/]*?{run})" for run in runs[1:])])


def _translate(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind == "set":
        members = re.sub(r"\\(.)", r"\1", found["set"]).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
        return f"(?!/)[{'^' if found['not'] else ''}{members}]"
    if kind == "escaped":
        return re.escape(found["escaped"])
    if kind == "open":  # git, too, lets such a pattern match nothing
        raise re.error("a bracket without its end")
    return {"inside": "/.+", "one": "[^/]"}[str(kind)]
