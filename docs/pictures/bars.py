"""Draw the pictures of the pages with figures, each from the first table of its page: python docs/pictures/bars.py.

A test compares the stored pictures with what this draws, so a picture cannot contradict its table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

DOCS = Path(__file__).parents[1]
#: Each page below ``docs/explanation``, and the panels of its picture: rows or columns of the table by their numbers.
PAGES = {
    "costs": ("rows", (1, 2, 4, 6, 7)),
    "how-fast": ("columns", (1, 2, 4, 5)),
    "how-large": ("columns", (1, 2, 3, 5)),
    "how-well-it-finds": ("rows", (0, 1, 2, 3, 4)),
    "how-well-facts-fit": ("rows", (0, 1, 2)),
}
_WIDTH, _LABELS, _BAR, _GAP = 760, 190, 18, 6
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}.t{font-weight:600}.b{fill:#b8c4d0}.k{fill:#2f6f9f}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#4b5766}.k{fill:#58a6d6}}"
)


def table(text: str) -> list[list[str]]:
    """Return the cells of the first table of a page, without the line below its head."""
    lines = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert lines is not None
    rows = [
        [cell.strip().replace("*", "").replace("`", "") for cell in line.strip("|").split("|")]
        for line in lines[0].splitlines()
    ]
    return [rows[0], *rows[2:]]


def number(cell: str) -> float | None:
    """Return the first number of a cell; None if it has none."""
    found = re.match(r"[\d,]*\.?\d+", cell)
    return float(found[0].replace(",", "")) if found else None


def panels(page: str) -> Iterator[tuple[str, Sequence[tuple[str, str]]]]:
    """Yield the title of each panel, and its bars: a label, and a cell with a number."""
    by, chosen = PAGES[page]
    head, *rows = table((DOCS / "explanation" / f"{page}.md").read_text("utf-8"))
    for index in chosen:
        if by == "columns":
            yield head[index], [(row[0], row[index]) for row in rows]
        else:
            row = rows[index]
            title = " ".join(cell for cell in row if number(cell) is None or cell is row[0])
            bars = [(head[at], cell) for at, cell in enumerate(row) if at and number(cell) is not None]
            yield title, bars


def drawn(page: str) -> str:
    """Return the picture of a page as SVG."""
    parts, top = [], 4
    for title, bars in panels(page):
        top += 20
        parts.append(f'<text class="t" x="0" y="{top}">{escape(title)}</text>')
        top += 8
        most = max(number(cell) or 0 for _, cell in bars)
        best = 0 if page == "costs" or PAGES[page][0] == "columns" else len(bars) - 1
        for at, (label, cell) in enumerate(bars):
            width = (number(cell) or 0) / most * (_WIDTH - _LABELS - 130)
            shade = "k" if at == best or PAGES[page] == PAGES["how-large"] else "b"
            parts.append(f'<text x="0" y="{top + 14}">{escape(label)}</text>')
            parts.append(f'<rect class="{shade}" x="{_LABELS}" y="{top}" width="{max(width, 1):.1f}" height="{_BAR}"/>')
            parts.append(f'<text x="{_LABELS + max(width, 1) + 6:.1f}" y="{top + 14}">{escape(cell)}</text>')
            top += _BAR + _GAP
    size = f'width="{_WIDTH}" height="{top + 4}" viewBox="0 0 {_WIDTH} {top + 4}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>\n' + "\n".join(parts) + "\n</svg>\n"


def main() -> None:
    """Write every picture."""
    for page in PAGES:
        (DOCS / "pictures" / f"{page}.svg").write_text(drawn(page), "utf-8")


if __name__ == "__main__":
    main()
