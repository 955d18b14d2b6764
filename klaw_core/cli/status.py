"""``klaw status``: show what is indexed, with which components, and what does not work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

import click

from klaw_core.cli.settings import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core.cli.output import Output, StyledText
    from klaw_core.memory import Memory
    from klaw_core.values.runs import Status

# The names of the documents of an origin; the default is "note".
_NOUNS = {"saved": ("memory", "memories")}  # of origins that are not workspaces; other such origins have documents
_MAX_KINDS = 4  # of files that are not read, by name
_DEFAULT_COLLECTION = "memory"  # the collection that `klaw search` searches by default


@click.command("status", short_help="Show what is indexed, the model in use, and any problems.")
@common_options
@pass_settings
def command(settings: Settings) -> None:
    """Show the location and content of the index, the retrievers, and each problem with its fix."""
    with settings.open_memory() as memory:
        status = memory.status()
        files = memory.config.files
        unread = {name: _unread(memory, name) for name in status.workspaces}
    from klaw_core.cli.json_forms import to_json
    from klaw_core.cli.output import StyledText, data, print_json

    if settings.json:
        print_json({**to_json(status), "config_files": to_json(files), "unread": to_json(unread)})
    else:
        _show(data(), status, [str(file) for file in files], unread)
        for item in chain.from_iterable(status.skipped.values()) if settings.verbose else ():
            data().line(StyledText("skipped ", "yellow"), f"{item.path}: {item.reason}")


def _unread(memory: Memory, name: str) -> Mapping[str, int]:
    """Return how many files of each kind a workspace has that are not read; none if they cannot be listed."""
    from klaw_core.errors import KlawError

    unread: Mapping[str, int] = {}
    with suppress(KlawError):
        unread = memory.workspaces.unread(name)
    return unread


def _show(out: Output, status: Status, files: list[str], unread: Mapping[str, Mapping[str, int]]) -> None:
    from klaw_core.cli.output import StyledText, tilde

    space = status.space
    embedder = f"{status.embedder}: {space}" if space else f"{status.embedder} (nothing embedded yet)"
    search = f"{' + '.join(status.retrievers) or 'none works'}, merged by {status.fusion}"
    rows = [
        ("index", tilde(status.location)),
        ("config", ", ".join(map(tilde, files)) or "defaults (klaw init writes a file)"),
        ("embedder", status.embedder if status.embedder == "none" else embedder),
        ("search", search),
        *(
            (name.replace("_", " ").removesuffix(" bytes"), _amount(name, value))
            for name, value in status.statistics.items()
        ),
    ]
    out.rows([[StyledText(name, "dim"), value] for name, value in rows])
    out.line()
    _show_origins(out, status, unread)
    for problem in status.problems:
        out.line(StyledText("! ", "bold red"), problem)


def _show_origins(out: Output, status: Status, unread: Mapping[str, Mapping[str, int]]) -> None:
    from klaw_core.cli.output import StyledText, counted, tilde

    rows: list[list[StyledText | str]] = []
    for name in sorted({*status.origins, *status.workspaces}):
        documents, chunks = status.origins.get(name, (0, 0))
        noun = counted(documents, *(("note",) if name in status.workspaces else _NOUNS.get(name, ("document",))))
        remarks = (*_remarks(status, name), _not_read(unread.get(name, {})))
        where = " ".join(filter(None, (tilde(status.workspaces.get(name, "")), *remarks)))
        rows.append([StyledText(name, "bold cyan"), noun, counted(chunks, "chunk"), StyledText(where, "dim")])
    if rows:
        out.rows(rows, right=(1, 2))
    else:
        out.line("nothing is indexed yet: klaw index DIR")


def _remarks(status: Status, name: str) -> Iterator[str]:
    """Yield remarks on an origin: another machine's, collections other than the default, excluded or skipped files."""
    if name in status.elsewhere:
        yield f"on {status.elsewhere[name]}"
    collections = status.collections.get(name, (_DEFAULT_COLLECTION,))
    if len(collections) > 1:
        yield f"(in the collections {', '.join(collections)})"
    elif collections != (_DEFAULT_COLLECTION,):
        yield f"(in the collection {collections[0]})"
    if excluded := status.excluded.get(name):
        yield f"({excluded:,} excluded)"
    if skipped := status.skipped.get(name):
        from klaw_core.cli.reports import by_reason

        yield f"({len(skipped):,} skipped: {by_reason(skipped)})"


def _not_read(kinds: Mapping[str, int]) -> str:
    """Return a remark on the most frequent kinds of files that are not read."""
    named = ", ".join(f"{count:,} {ending}" for ending, count in list(kinds.items())[:_MAX_KINDS])
    return f"(not read: {named}{', …' if len(kinds) > _MAX_KINDS else ''})" if kinds else ""


def _amount(name: str, value: int | str) -> str:
    from klaw_core.cli.output import size

    if isinstance(value, str):
        return value
    return size(value) if name.endswith("_bytes") else f"{value:,}"
