"""Tables as text: one line for each row, which names the columns, so that a row is found by what its cells are."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise, repeat

from klaw_core import ConversionError

_DELIMITERS = ",;\t|"
_MAX_DIGITS = 9
_MAX_NAME = 60  # characters of a column's name
_MAX_CHARACTERS = 20_000_000
_SAMPLE = 10  # lines that show which delimiter a file has, and rows that show whether the first has names


def csv_rows(text: str, *, tabs: bool = False) -> Iterator[list[str]]:
    """Yield the rows of comma-separated values, or of others: the delimiter that the first lines have.

    Raise ConversionError.
    """
    delimiter = "\t" if tabs else _delimiter_of(text)
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    except csv.Error as error:
        raise ConversionError(f"is not a valid table: {error}") from None


def rows_as_text(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a line for each row that is not empty: ``- Name: Ann; City: Bremen``, or the cells if nothing names them.

    Raise ConversionError if the text becomes too long.
    """
    filled = filter(any, ([" ".join(cell.split()) for cell in row] for row in rows))
    first = next(filled, [])
    sample = list(islice(filled, _SAMPLE))
    names = [] if _is_of_data(first, sample) else _names(first, counted=_counts_on(first, sample))
    length = 0
    for cells in chain([] if names or not first else [first], sample, filled):
        line = f"- {_line(names, cells)}"
        length += len(line)
        if length > _MAX_CHARACTERS:
            raise ConversionError(f"has more than {_MAX_CHARACTERS:,} characters of text")
        yield line
    if names and not length:  # only a heading
        yield f"- {'; '.join(filter(None, names))}"


def _line(names: Sequence[str], cells: Sequence[str]) -> str:
    # The cells come first: a short row of a wide table does not read all names.
    named = zip(cells, chain(names, repeat("")), strict=False)
    return "; ".join(f"{name}: {cell}" if name else cell for cell, name in named if cell)


def _names(cells: Sequence[str], *, counted: bool) -> list[str]:
    """Return the names of the columns if the first row has them: words, of which some may be empty; otherwise none.

    With ``counted``, numbers may be names too.
    """
    given = [cell for cell in cells if cell]
    if len(given) < 2:  # noqa: PLR2004  # one cell is a title
        return []
    if not counted and any(not any(map(str.isalpha, cell)) for cell in given):
        return []
    return [cell[:_MAX_NAME] for cell in cells]


def _counts_on(first: Sequence[str], following: Sequence[Sequence[str]]) -> bool:
    """Return whether the numbers in a first row with words are a series, as of years, and those below are none."""
    has_words = any(any(map(str.isalpha, cell)) for cell in first)
    return has_words and bool(following) and _is_series(first) and not any(map(_is_series, following))


def _is_series(cells: Sequence[str]) -> bool:
    numbers = [int(cell) for cell in cells if cell.isdecimal() and len(cell) <= _MAX_DIGITS]
    steps = {after - before for before, after in pairwise(numbers)}
    others = [cell for cell in cells if cell and not cell.isdecimal()]
    return len(steps) == 1 and min(steps) > 0 and all(any(map(str.isalpha, cell)) for cell in others)


def _is_of_data(first: Sequence[str], following: Iterable[Sequence[str]]) -> bool:
    """Return whether a first row has a cell twice, as names of columns seldom do, and its cells occur below, too."""
    given = [cell.casefold() for cell in first if cell]
    if len(set(given)) == len(given):
        return False
    return any(
        cell and cell.casefold() == name.casefold() for row in following for name, cell in zip(first, row, strict=False)
    )


def _delimiter_of(text: str) -> str:
    """Return the delimiter that occurs in the first lines equally often, or else most often."""
    lines = [line for line in text[:20_000].split("\n")[:_SAMPLE] if line.strip()]
    counts = {mark: [line.count(mark) for line in lines] for mark in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda mark: (min(counts[mark], default=0), sum(counts[mark])))
    return best if any(counts[best]) else ","
