"""``klaw get``: print notes, or some of their lines."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING

import click

from klaw_core.cli.completion import document_paths
from klaw_core.cli.settings import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core.errors import NotFoundError
    from klaw_core.memory import Memory
    from klaw_core.values.runs import Excerpt

_PAGE = 1000  # documents per query


@click.command("get", short_help="Print notes, or some of their lines.")
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True, shell_complete=document_paths)
@common_options
@pass_settings
def command(settings: Settings, *, targets: tuple[str, ...]) -> None:
    """Print each TARGET: PATH, PATH:LINE, PATH:LINE:COUNT, or PATH:FIRST-LAST as copied from a result.

    PATH#HEADING prints one section: notes/a.md#Plans, papers/b.pdf#page=3. PATH is a result's path (notes/a.md), a file
    in an indexed directory, or a result's chunk id. A pattern prints every document whose path it matches, where * also
    matches /: 'notes/2026-*.md'. If there are several texts, each is below its path.
    """
    if "" in targets:
        raise click.UsageError("TARGET is empty; give a path such as notes/a.md:40:20")
    from klaw_core.errors import NotFoundError

    found: list[_Found] = []
    problems: list[NotFoundError] = []
    with settings.open_memory() as memory:
        for target in targets:
            try:
                found.append(_excerpts(memory, target))
            except NotFoundError as error:
                problems.append(error)
    if found:
        _print(settings, found, several=len(targets) > 1 or not found[0].is_exact)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        hints = dict.fromkeys(error.hint for error in problems if error.hint)
        raise NotFoundError("; ".join(error.message for error in problems), hint="; ".join(hints))


def _print(settings: Settings, found: Sequence[_Found], *, several: bool) -> None:
    """Print texts, each once; ``several``: each below its path, or as an array."""
    excerpts = list(dict.fromkeys(excerpt for each in found for excerpt in each))
    from klaw_core.cli.json_forms import to_json
    from klaw_core.cli.notices import notify
    from klaw_core.cli.output import StyledText, data, print_json
    from klaw_core.cli.streams import echo

    if settings.json:
        print_json([to_json(excerpt) for excerpt in excerpts] if several else to_json(excerpts[0]))
        return
    for number, excerpt in enumerate(excerpts):
        if excerpt.notice:
            notify(settings, excerpt.notice)
        if several:
            place = f"{excerpt.path}:{excerpt.start_line}-{excerpt.end_line}"
            if number:
                data().line()
            data().line(StyledText(f"==> {place} <==", "bold cyan"))
        echo(excerpt.content, nl=not excerpt.content.endswith("\n"))


class _Found(list["Excerpt"]):
    """The texts of a target. ``is_exact``: it named one document, and was no pattern."""

    is_exact = True


def _excerpts(memory: Memory, target: str) -> _Found:
    """Return what TARGET names: lines of one document, or all documents that it matches as a pattern.

    Raise UsageError for an invalid range, NotFoundError.
    """
    from klaw_core.cli.shown_paths import with_shown_path
    from klaw_core.errors import NotFoundError

    try:
        return _Found([with_shown_path(memory, target, lambda path: _excerpt(memory, path))])
    except NotFoundError:
        if not _is_pattern(target):
            raise
    if not (paths := _matching(memory, target)):
        raise _nothing_matches(memory, target)
    found = _Found(memory.get(path) for path in paths)
    found.is_exact = False
    return found


def _is_pattern(target: str) -> bool:
    return bool(set(target) & set("*?["))


def _nothing_matches(memory: Memory, pattern: str) -> NotFoundError:
    """Return why a pattern matches no document."""
    from klaw_core.cli.targets import parse_target
    from klaw_core.errors import NotFoundError, quoted

    for shorter in (parse_target(pattern)[0], pattern.partition("#")[0]):
        if shorter != pattern and _is_pattern(shorter) and _matching(memory, shorter):
            problem = f"{quoted(pattern)} is a pattern, which takes neither lines nor a heading"
            return NotFoundError(problem, hint=f"klaw get {quote(shorter)}, or lines of one PATH")
    return NotFoundError(
        f"no indexed document matches the pattern {quoted(pattern)}", hint="`klaw search` shows paths and ids"
    )


def _matching(memory: Memory, pattern: str) -> list[str]:
    """Return the paths of the documents that match a pattern, in order."""
    from fnmatch import fnmatchcase

    paths: set[str] = set()
    for name in memory.collections():
        page = memory.documents(collection=name, limit=_PAGE)
        while page:
            paths.update(record.path for record in page if fnmatchcase(record.path, pattern))
            page = memory.documents(collection=name, after=page[-1].path, limit=_PAGE) if len(page) == _PAGE else ()
    return sorted(paths)


def _excerpt(memory: Memory, target: str) -> Excerpt:
    """Return the lines that TARGET names. Raise UsageError for an invalid range, NotFoundError."""
    from klaw_core.cli.targets import parse_target
    from klaw_core.errors import NotFoundError, QueryError

    try:
        return memory.get(target)  # first without a range: a file name may end with :40
    except NotFoundError:
        try:
            path, first, lines = parse_target(target)
        except QueryError as error:
            raise click.UsageError(error.message) from None
        if path != target:
            return memory.get(path, first, lines)
        if (document := _document_in(memory, target)) is not None:
            bad = target[len(document) + 1 :]
            raise click.UsageError(
                f"{bad!r} after {document} is not a line range; use LINE, LINE:COUNT or FIRST-LAST"
            ) from None
        raise


def _document_in(memory: Memory, target: str) -> str | None:
    """Return the longest part of ``target`` before a colon that names a document, or None."""
    from klaw_core.errors import NotFoundError

    path = target
    while ":" in path:
        path = path.rpartition(":")[0]
        try:
            memory.get(path)
        except NotFoundError:
            continue
        return path
    return None
