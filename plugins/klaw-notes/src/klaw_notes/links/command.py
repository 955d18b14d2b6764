"""``klaw links``: what a note links to, what links to it, and which links are broken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from klaw_core.cli.kit import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core import Memory
    from klaw_notes.links.graph import BrokenLink


@click.command("links", short_help="Show what a note links to, what links to it, and broken links.")
@click.argument("note", required=False)
@common_options
@pass_settings
def command(settings: Settings, *, note: str | None) -> None:
    """Show the links of NOTE to other documents, the links to it, and those that lead nowhere.

    NOTE is a path as in results (notes/a.md), a file, or the name that a link would have. Without NOTE, list all broken
    links. A link is [[…]], a Markdown link, or a value in front matter that is one.
    """
    from klaw_core import to_json
    from klaw_core.cli.kit import notify, print_json

    with settings.open_memory() as memory:
        if note is None:
            links: Any = memory.extension("links")
            broken, found = list(links.graph().broken()), None
        else:
            broken, found = [], links_of(memory, note)
    if settings.json:
        print_json(to_json(broken if found is None else found))
        return
    if found is None:
        _show_broken(broken)
        if not broken:
            notify(settings, "no link is broken")
        return
    _show("links to", [(edge.line, _target(edge.target, edge.heading), edge.kind) for edge in found.to])
    _show("linked from", [(None, _place(edge.path, edge.line), edge.kind) for edge in found.backlinks])
    _show("broken", [(each.line, f"{each.target}: {each.reason}", each.kind) for each in found.broken])
    if not (found.to or found.backlinks or found.broken):
        notify(settings, f"{found.path} has no links, and nothing links to it")


def links_of(memory: Memory, note: str) -> Any:
    """Return the links of a document by its path, file or name. Raise NotFoundError."""
    from klaw_core import NotFoundError

    links: Any = memory.extension("links")
    try:
        return links.of(memory.get(note).path)
    except NotFoundError:
        return links.of(note)


def _target(path: str, heading: str) -> str:
    return f"{path}#{heading}" if heading else path


def _place(path: str, line: int | None) -> str:
    return path if line is None else f"{path}:{line}"


def _show(title: str, rows: Sequence[tuple[int | None, str, str]]) -> None:
    from klaw_core.cli.kit import StyledText, data

    if not rows:
        return
    out = data()
    out.line(StyledText(f"{title}:", "dim"))
    for line, text, kind in rows:
        related = "" if kind == "link" else f"  ({kind})"
        place = f"  line {line}" if line else ""
        out.line("  ", StyledText(text, "bold cyan"), StyledText(f"{related}{place}", "dim"))


def _show_broken(broken: Sequence[BrokenLink]) -> None:
    from klaw_core.cli.kit import StyledText, data

    for each in broken:
        data().line(StyledText(_place(each.path, each.line), "bold cyan"), f"  {each.target}: {each.reason}")
