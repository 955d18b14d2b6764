"""``klaw index``: bring the index up to date with directories of notes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from klaw_core.cli.empty_values import MayBeEmpty
from klaw_core.cli.settings import Settings, common_options, pass_settings
from klaw_core.values.metadata import TRUST_CLASSES

if TYPE_CHECKING:
    from klaw_core.indexing.run_counts import ProgressCallback
    from klaw_core.memory import Memory
    from klaw_core.values.runs import IndexReport


_MAX_EXTENSIONS = 4  # file name extensions in a notice


@click.command("index", short_help="Index directories or files, or bring the index up to date.")
@click.argument("places", nargs=-1, metavar="[DIR|FILE]...")
@click.option(
    "--name", metavar="NAME", help="Workspace name: the start of paths in results. [default: the directory's name]"
)
@click.option(
    "-c",
    "--collection",
    metavar="NAME",
    help="memory, docs, or a name of your own. [default: memory]",
)
@click.option(
    "--version",
    type=MayBeEmpty(),
    metavar="TEXT",
    help="Version of the documented software, stored with each chunk.",
)
@click.option(
    "--include",
    multiple=True,
    metavar="PATTERN",
    help="Read files that match. [default: *.md *.markdown *.mdx *.qmd *.rmd *.txt, and those of converters]",
)
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Skip paths below DIR that match, e.g. 'drafts/*'.")
@click.option(
    "--trust",
    type=click.Choice(TRUST_CLASSES),
    metavar="CLASS",
    help="Who wrote them: owner, agent or foreign, which no prompt gets unasked. [default: owner]",
)
@click.option("--verify", is_flag=True, help="Read every note, not only those whose size or times changed.")
@click.option("--force", is_flag=True, help="Chunk every note again, changed or not.")
@click.option("--no-embed", is_flag=True, help="Index words only; `klaw embed` adds the vectors.")
@common_options
@pass_settings
def command(
    settings: Settings,
    *,
    places: tuple[str, ...],
    name: str | None,
    collection: str | None,
    version: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    trust: str | None,
    verify: bool,
    force: bool,
    no_embed: bool,
) -> None:
    """Index the notes below each DIR, or each FILE of an indexed directory. Without arguments, update all workspaces.

    New and changed notes are indexed; deleted notes are removed from the index. Each directory is remembered with its
    patterns, so a plain `klaw index` updates it later. New text can be found by words at once, and by meaning when its
    vectors are computed. If embedding fails, the run still succeeds and reports the number left for `klaw embed`.
    """
    if name is not None and len(places) != 1:
        raise click.UsageError("--name names one directory; give exactly one")
    of_directories = {
        "name": name,
        "collection": collection,
        "version": version,
        "include": include,
        "exclude": exclude,
        "trust": trust,
    }
    _check_options(places, [f"--{option}" for option, value in of_directories.items() if value], verify=verify)
    from klaw_core.cli.init import offer_user_md
    from klaw_core.cli.notices import notify
    from klaw_core.cli.output import print_json
    from klaw_core.cli.progress import progress_bar
    from klaw_core.cli.reports import as_dict, interruptible, report_run
    from klaw_core.cli.roots import naming_notices, roots, workspace_of

    def run(memory: Memory, place: str | None, on_progress: ProgressCallback) -> tuple[str, IndexReport]:
        if place is not None and _is_file(place):
            return place, memory.index(paths=[place], force=force, embed=not no_embed, on_progress=on_progress)
        report = memory.index(
            place,
            name=name,
            collection=collection,
            version=version,
            include=include or None,
            exclude=exclude or None,
            trust=trust,
            verify=verify,
            force=force,
            embed=not no_embed,
            on_progress=on_progress,
        )
        return "all sources" if place is None else workspace_of(memory, place), report

    reports = []
    with (
        settings.open_memory() as memory,
        interruptible(settings, "finished work is kept; `klaw index` continues from there"),
    ):
        for place in places or (None,):
            before = {} if place is None else roots(memory)
            with progress_bar(settings) as on_progress:
                title, report = run(memory, place, on_progress)
            reports.append(as_dict(title, report))
            if not settings.json:
                report_run(settings, title, report)
            if place is None or _is_file(place):
                continue
            notify(settings, *naming_notices(title, place, before, roots(memory), chosen=name is not None))
            notify(settings, *memory.workspaces.unmatched(title, include, exclude))
            offer_user_md(settings, Path(place).expanduser())
            if settings.verbose or not report.unchanged:
                notify(settings, *_converted(memory, title), *_unsupported_files(memory, title))
    if settings.json:
        print_json(reports if len(reports) != 1 else reports[0])


def _check_options(places: Sequence[str], of_directories: Sequence[str], *, verify: bool) -> None:
    """Raise UsageError for options that do not apply to these places."""
    file = next(filter(_is_file, places), None)
    if of_directories and (file is not None or not places):
        why = "give at least one" if file is None else f"{file} is a file"
        raise click.UsageError(f"{' and '.join(of_directories)} apply only to directories; {why}")
    if verify and file is not None:
        raise click.UsageError(f"--verify applies only to directories; {file} is a file, which is always read")


def _converted(memory: Memory, name: str) -> Iterator[str]:
    """Yield a notice with the number of indexed files by extension, if there are several extensions."""
    from klaw_core.errors import NotFoundError

    try:
        counts = memory.workspaces.kinds(name)
    except NotFoundError:
        return
    if len(counts) > 1:
        yield f"indexed in {name}: {', '.join(f'{count:,} {ending}' for ending, count in counts.items())}"


def _unsupported_files(memory: Memory, name: str) -> Iterator[str]:
    """Yield a notice on the files of unsupported types in a directory, which search will not find."""
    from klaw_core.cli.output import counted
    from klaw_core.errors import NotFoundError

    if counts := memory.workspaces.unread(name):
        kinds = [f"{count:,} {ending}" for ending, count in list(counts.items())[:_MAX_EXTENSIONS]]
        more = f", {counted(others, 'other kind')}" if (others := len(counts) - _MAX_EXTENSIONS) > 0 else ""
        indexed: Collection[str] = ()
        with suppress(NotFoundError):  # it is one of the configuration
            indexed = memory.workspaces.kinds(name, whole=True)
        way = _how_to_index(list(counts)[:_MAX_EXTENSIONS], indexed)
        yield f"other files in {name}, not read: {', '.join(kinds)}{more}; {way}"


def _how_to_index(kinds: Sequence[str], indexed: Collection[str]) -> str:
    """Return how to index files with these extensions, too: install a distribution, or pass all patterns."""
    from importlib.util import find_spec

    from klaw_core.plugins.catalogue import CATALOGUE, install_command

    missing = [row for row in CATALOGUE if row.reads & {*kinds} and not find_spec(row.distribution.replace("-", "_"))]
    if not missing:
        patterns = " ".join(f"--include {quote(f'*{kind}')}" for kind in (*(sorted(indexed) or [".md"]), *kinds))
        return f"if they are text, `klaw index DIR {patterns}` reads them"
    readable = sorted({kind for row in missing for kind in row.reads & {*kinds}})
    return f"`{install_command([row.extras[0] for row in missing])}` reads {' '.join(readable)}"


def _is_file(place: str) -> bool:
    try:
        return Path(place).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):  # an invalid path is treated as a directory, which reports the error
        return False
