"""Print lists: as aligned columns, JSON, Markdown, CSV, or one path per line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import field, frozen

from klaw_core.cli.neutral import csv_cell, one_line, path_line
from klaw_core.cli.settings import Settings

if TYPE_CHECKING:
    from klaw_core.cli.output import StyledText

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

FORMATS = ("text", "json", "md", "csv", "files")


def format_option(function: Decorated) -> Decorated:
    """Add the option ``--format`` to a command that prints a list."""
    return click.option("--format", "form", type=click.Choice(FORMATS), help="Output format. [default: text]")(function)


@frozen
class Listing:
    """A list to print. Each row is a mapping, which is printed as a JSON object.

    ``columns`` are the keys that are printed as Markdown and CSV, and ``path`` is the key that has the path. As text, a
    row is printed as its ``cells``, with the columns in ``right`` (from 0) aligned to the right, and the text ``below``
    on another line. ``empty`` is the notice if there are no rows.
    """

    rows: Sequence[Mapping[str, Any]]
    columns: Sequence[str]
    path: str
    cells: Callable[[Mapping[str, Any]], Sequence[StyledText | str]]
    empty: str
    right: Sequence[int] = ()
    below: Callable[[Mapping[str, Any]], str] = field(default=lambda _row: "")


def chosen_format(settings: Settings, form: str | None) -> str:
    """Return the output format. Raise UsageError if ``--json`` and ``--format`` contradict each other."""
    if settings.json and form not in {None, "json"}:
        raise click.UsageError(f"--json and --format {form} cannot be used together")
    return "json" if settings.json else form or "text"


def show(settings: Settings, listing: Listing, form: str) -> None:
    """Print a list on stdout; an empty list is a notice on stderr, except in JSON."""
    from klaw_core.cli.notices import notify
    from klaw_core.cli.output import print_json
    from klaw_core.cli.streams import echo

    if form == "json":
        print_json(listing.rows)
    elif not listing.rows:
        notify(settings, listing.empty)
    elif form == "text":
        _show_text(listing)
    elif form == "files":
        echo(
            "".join(f"{path_line(path)}\n" for path in dict.fromkeys(row[listing.path] for row in listing.rows)),
            nl=False,
        )
    else:
        echo({"md": _markdown, "csv": _csv}[form](listing), nl=False)


def _show_text(listing: Listing) -> None:
    from klaw_core.cli.output import StyledText, data

    out = data()
    if not any(map(listing.below, listing.rows)):
        out.rows([listing.cells(row) for row in listing.rows], right=listing.right)
        return
    for row in listing.rows:
        out.rows([listing.cells(row)])
        if text := listing.below(row):
            out.line(StyledText(text, "dim"), indent=4)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def _markdown(listing: Listing) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(one_line(" ".join(cell.split())).replace("|", "\\|") for cell in cells) + " |\n"

    body = (row([_text(item[name]) for name in listing.columns]) for item in listing.rows)
    return row(listing.columns) + row(["---"] * len(listing.columns)) + "".join(body)


def _csv(listing: Listing) -> str:
    import csv
    import io

    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(listing.columns)
    writer.writerows([csv_cell(_text(item[name])) for name in listing.columns] for item in listing.rows)
    return text.getvalue()
