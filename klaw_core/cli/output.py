"""Print data on stdout and notices on stderr: styled on a terminal, as plain text elsewhere.

Commands pass a line as parts, each a text with a style. rich is imported only for a terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from attrs import evolve, frozen

from klaw_core.cli.neutral import escaped_json, neutral_parts, one_line
from klaw_core.cli.streams import echo, trusted

if TYPE_CHECKING:
    from rich.console import Console

_MIN_COLUMNS = 20  # text is not wrapped narrower than this
_HANGING = 2  # columns by which the rest of a wrapped line is indented, so that it cannot look like a line of its own


@frozen(eq=False, repr=False)
class StyledText:
    """A part of a line. ``style`` is a rich style (``"bold cyan"``); ``link`` is a URL that terminals can open."""

    text: str
    style: str = ""
    link: str = ""


class Output:
    """Prints lines to one stream."""

    def __init__(self, stream: IO[str], *, terminal: bool | None = None) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty() if terminal is None else terminal

    def line(self, *parts: StyledText | str, indent: int = 0) -> None:
        """Print the parts as one line; on a terminal it is wrapped at the terminal's width.

        Line breaks in a part, such as the name of a file, become spaces. If the line is indented they stay, and every
        line is indented: a text of somebody else forges no line at the left margin.
        """
        pieces = [StyledText(part) if isinstance(part, str) else part for part in parts]
        if not indent:
            texts = neutral_parts([piece.text for piece in pieces])
            pieces = [evolve(piece, text=" ".join(text.split("\n"))) for piece, text in zip(pieces, texts, strict=True)]
        self._print(pieces, indent, hanging=0 if indent else _HANGING)

    def block(self, text: str) -> None:
        """Print a text of several lines as it is."""
        self._print([StyledText(text)], 0)

    def _print(self, pieces: Sequence[StyledText], indent: int, hanging: int = 0) -> None:
        if self.is_terminal:
            self._styled(pieces, indent, hanging)
            return
        text = "".join(neutral_parts([piece.text for piece in pieces]))
        margin = " " * indent
        # Empty lines get no indentation, which would be trailing white space.
        echo("\n".join(f"{margin}{row}" if row else "" for row in text.split("\n")), stream=self.stream)

    def rows(self, rows: Sequence[Sequence[StyledText | str]], *, indent: int = 0, right: Iterable[int] = ()) -> None:
        """Print rows with aligned columns; the columns in ``right`` (from 0) are aligned to the right."""
        to_right = set(right)
        styled = ((StyledText(cell) if isinstance(cell, str) else cell for cell in row) for row in rows)
        table = [[evolve(cell, text=one_line(cell.text)) for cell in row] for row in styled]
        columns = max(map(len, table), default=0)
        widths = [
            max((display_width(row[at].text) for row in table if at < len(row)), default=0) for at in range(columns)
        ]
        for row in table:
            while row and not row[-1].text:
                row.pop()
            cells: list[StyledText | str] = []
            for at, cell in enumerate(row):
                gap = " " * (widths[at] - display_width(cell.text))
                last = at == len(row) - 1
                cells += [gap, cell] if at in to_right else [cell, "" if last else gap]
                cells += [] if last else ["  "]
            self.line(*cells, indent=indent)

    def _styled(self, pieces: Sequence[StyledText], indent: int, hanging: int) -> None:
        from rich.style import Style
        from rich.text import Text

        text = Text()
        for piece, said in zip(pieces, neutral_parts([piece.text for piece in pieces]), strict=True):
            style = Style.parse(piece.style) + Style(link=piece.link or None)
            text.append(said, style)
        # Not wrapped by a rich container, which would pad every line with spaces to the full width.
        width = max(self._console.width - indent, _MIN_COLUMNS)
        if text.cell_len > width:
            width = max(width - hanging, _MIN_COLUMNS)
        for number, line in enumerate(text.wrap(self._console, width) or [text]):
            line.rstrip()
            margin = Text(" " * (indent + hanging * bool(number)))
            self._console.print(margin + line if line else line, soft_wrap=True)

    @cached_property
    def _console(self) -> Console:
        from rich.console import Console

        # The stream is known to be a terminal; rich still reads NO_COLOR, TERM and the width.
        return Console(file=trusted(self.stream), force_terminal=True, highlight=False, markup=False, emoji=False)


def data() -> Output:
    """Return the output for data, on stdout."""
    return Output(sys.stdout)


def notices() -> Output:
    """Return the output for notices, on stderr."""
    return Output(sys.stderr)


def print_notices(*messages: str) -> None:
    """Print notices on stderr, one per line, without secrets of known formats."""
    from klaw_redaction import Redactor  # here, because most commands have no notices

    for message in messages:
        notices().line(StyledText("klaw: ", "yellow"), Redactor().text(message))


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout, in UTF-8, or in ASCII if the encoding of stdout is not UTF-8."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    echo(escaped_json(json.dumps(value, ensure_ascii=encoding != "utf8", indent=2, default=_plain)))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "items"):
        return dict(value.items())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def timestamp(moment: datetime) -> str:
    """Format a timezone-aware time as ISO 8601, with ``Z`` for UTC."""
    return moment.isoformat().replace("+00:00", "Z")


def display_width(text: str) -> int:
    """Return the number of terminal columns that one line of text needs."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 note`` or ``5,812 notes``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Format a duration: ``0.4 s``, ``12 s``, ``3 min 20 s``, ``1 h 5 min``."""
    if seconds < 10:  # noqa: PLR2004  # below this, show tenths
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if hours else f"{minutes} min {rest} s"


def size(number: int) -> str:
    """Format a number of bytes: ``512 B``, ``12.3 MB``."""
    amount = float(number)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004  # SI units, as in `du --si`
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def tilde(path: Path | str) -> str:
    """Return a path with the home directory as ``~``."""
    try:
        return f"~/{Path(path).relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)
