"""Print search results as text, Markdown, CSV, or a list of paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from klaw_core.cli.neutral import csv_cell, neutral, one_line, path_line, plain_lines
from klaw_core.cli.output import Output, StyledText
from klaw_core.cli.snippets import ChooseWindow, Snippet, find_marks, make_snippet, snippet_of
from klaw_core.values.search import Contribution, SearchResult

_MARK = "bold yellow"
_NOTHING_FITS = "no good match; weak matches:"
# Other chunks of the same note that are listed below its best chunk.
_MAX_ALSO = 5
# Weak matches that are shown in full if there is no good match. All other weak matches are shown on one line each.
_MAX_FULL_WEAK = 3
_GIST_CHARACTERS = 60
_COLUMNS = (
    "rank",
    "score",
    "relevance",
    "is_weak",
    "path",
    "start_line",
    "end_line",
    "heading",
    "origin",
    "source",
    "created_at",
    "chunk_id",
    "trust",
    "content",
)


@attrs.frozen(eq=False, repr=False)
class ResultStyle:
    """How to show results. ``roots`` are the directories of the workspaces by name, for links.

    ``choose`` selects the snippet of a chunk that only vector search found; without it, the chunk's start is shown.
    ``said`` are the lines of the results above, such as messages, which are not repeated before the next ones, and what
    their directories are.
    """

    query: str
    full: bool = False
    explain: bool = False
    roots: Mapping[str, Path] = attrs.field(factory=dict)
    choose: ChooseWindow | None = None
    said: set[str] = attrs.field(factory=set, init=False)


def place(result: SearchResult) -> str:
    """Return ``path:start-end``, which is a target for ``klaw get``."""
    return f"{result.path}:{result.start_line}-{result.end_line}"


def show(out: Output, results: Sequence[SearchResult], look: ResultStyle) -> None:
    """Print results as text: path, lines, relevance, headings and snippet. Most weak matches get one line each.

    Weak matches are below the others. The number of each result is its rank, as in other formats and for `klaw open`.
    """
    width = len(str(len(results)))
    ranked = [(f"{rank:>{width}}. ", result) for rank, result in enumerate(results, start=1)]
    fitting = [(label, result) for label, result in ranked if not result.is_weak]
    weak = [(label, result) for label, result in ranked if result.is_weak]
    _show_whole(out, fitting, look)
    if not weak:
        return
    if fitting:
        out.line()
    out.line(StyledText("weak matches:" if fitting else _NOTHING_FITS, "dim"))
    out.line()
    whole = len(weak) if look.full or look.explain else 0 if fitting else _MAX_FULL_WEAK
    _show_whole(out, weak[:whole], look)
    if 0 < whole < len(weak):
        out.line()
    for label, result in weak[whole:]:
        out.line(*_first_line(result, look, label), StyledText(_topic(result, look), "dim"))


def _show_whole(out: Output, labelled: Sequence[tuple[str, SearchResult]], look: ResultStyle) -> None:
    for number, (label, result) in enumerate(labelled):
        if number:
            out.line()
        show_one(out, result, look, label)


def show_one(out: Output, result: SearchResult, look: ResultStyle, label: str = "") -> None:
    """Print one result; the lines after the first are indented by the label's width."""
    indent = len(label) or 2
    out.line(*_first_line(result, look, label))
    if result.about and (about := f"({result.about})") not in look.said:
        look.said.add(about)
        out.line(*_marked(neutral(about), (), "dim"), indent=indent)
    if headings := _headings(result):
        heading = neutral(" > ".join(headings))
        out.line(*_marked(heading, find_marks(heading, look.query), "dim"), indent=indent)
    before_it = result.context.split("\n")
    context = neutral(result.context if look.full else "\n".join(line for line in before_it if line not in look.said))
    look.said.update(result.content.split("\n"))
    if context and (look.full or find_marks(context, look.query)):
        before = context if look.full else make_snippet(context, look.query).text
        out.line(*_marked(before, find_marks(before, look.query), "dim"), indent=indent)
    if look.full:
        content = neutral(result.content.strip("\n"))
        out.line(*_marked(content, find_marks(content, look.query)), indent=indent)
    else:
        snippet = _snippet(result, look)
        out.line(*_marked(snippet.text, snippet.marks), indent=indent)
    if result.also:
        lines = ", ".join(other.rpartition(":")[2] for other in result.also[:_MAX_ALSO])
        more = f" and {len(result.also) - _MAX_ALSO} more places" if len(result.also) > _MAX_ALSO else ""
        out.line(StyledText(f"also in lines {lines}{more}", "dim"), indent=indent)
    if look.explain and result.explain:
        out.rows(_reasons(result), indent=indent, right=(2, 4, 6))


def _first_line(result: SearchResult, look: ResultStyle, label: str) -> tuple[StyledText, ...]:
    return (
        StyledText(label, "dim"),
        StyledText(place(result), "bold cyan", _link(result, look.roots)),
        StyledText(_relevance_text(result), "green"),
        *([StyledText(f"  {result.trust}", "yellow")] if result.trust == "foreign" else []),
    )


def _topic(result: SearchResult, look: ResultStyle) -> str:
    """Return a few words on the content of a result: its last heading, except the day of a message, and a snippet."""
    heading = "" if result.chat_id is not None else "".join(_headings(result)[-1:])
    snippet = make_snippet(result.content, look.query).text
    about = neutral(" ".join((snippet if snippet.startswith(heading) else f"{heading}: {snippet}").split()))
    return f"  {about}" if len(about) <= _GIST_CHARACTERS else f"  {about[: _GIST_CHARACTERS - 1].rstrip()}…"


def _headings(result: SearchResult) -> tuple[str, ...]:
    """Return the headings above a result, after the title of its document if neither they nor the file name say it."""
    title = result.metadata.get("title")
    if not isinstance(title, str) or result.chat_id is not None:
        return result.heading
    said = {_words_of(Path(result.path).stem), _words_of(Path(result.path).name), *map(_words_of, result.heading[:1])}
    if _words_of(title) in {"", *said}:
        return result.heading
    short = " ".join(title.split())
    return (short if len(short) <= _GIST_CHARACTERS else f"{short[: _GIST_CHARACTERS - 1].rstrip()}…", *result.heading)


def _words_of(text: str) -> str:
    """Return the letters and digits of a text without case, to compare a title with a file name."""
    return "".join(filter(str.isalnum, text.casefold()))


def _relevance_text(result: SearchResult) -> str:
    """Return the relevance, or ``""`` if it is unknown; the score is not a substitute, because its scale differs.

    Of what is only listed, return the day.
    """
    if result.relevance is None and not result.explain:  # listed, not found: there was no question
        from klaw_core.cli.moments import shown_day

        return f"  {shown_day(result.created_at.isoformat())}"
    return "" if result.relevance is None else f"  {result.relevance:.2f}"


def _snippet(result: SearchResult, look: ResultStyle) -> Snippet:
    return snippet_of(result, look.query, look.choose, neutral)


def _marked(text: str, marks: Sequence[tuple[int, int]], style: str = "") -> list[StyledText]:
    parts: list[StyledText] = []
    done = 0
    for start, end in marks:
        parts += [StyledText(text[done:start], style), StyledText(text[start:end], _MARK)]
        done = end
    return [*parts, StyledText(text[done:], style)]


def _reasons(result: SearchResult) -> list[list[StyledText | str]]:
    """Return the rows of a table: retriever, rank, raw score, weight, contribution; the last row is the sum."""
    rows: list[list[StyledText | str]] = [
        [
            StyledText(part.component, "magenta"),
            StyledText("rank", "dim"),
            str(part.rank),
            StyledText("raw", "dim"),
            f"{part.raw:.4g}",
            StyledText("weight", "dim"),
            f"{part.weight:.3g}",
            StyledText(f"{part.value:+.4f}", "green"),
        ]
        for part in result.explain
    ]
    total = sum(part.value for part in result.explain)
    rows.append([StyledText("sum", "dim"), "", "", "", "", "", "", StyledText(f"={total:.4f}", "green")])
    return rows


def reason(parts: Sequence[Contribution]) -> str:
    """Return the contributions to a score on one line: ``sqlite-vec #1 (0.0082) + fts5 #3 (0.0159)``."""
    return " + ".join(f"{part.component} #{part.rank} ({part.value:.4f})" for part in parts)


def _link(result: SearchResult, roots: Mapping[str, Path]) -> str:
    origin, _, relative = result.path.partition("/")
    return (roots[origin] / relative).as_uri() if origin in roots else ""


def as_markdown(results: Sequence[SearchResult], look: ResultStyle) -> str:
    """Return results as Markdown, each quoted under a heading with its path and lines."""
    blocks = []
    for rank, result in enumerate(results, start=1):
        headings = _headings(result)
        heading = f"*{one_line(' > '.join(headings))}*\n\n" if headings else ""
        heading = f"({one_line(result.about)})\n\n{heading}" if result.about else heading
        whole = "\n".join(filter(None, (result.context, result.content.strip("\n"))))
        text = whole if look.full else _snippet(result, look).text
        quoted = "\n".join(f"> {line}".rstrip() for line in neutral(plain_lines(text)).split("\n"))
        why = f"\n\n{reason(result.explain)}" if look.explain else ""
        judged = "; weak match" if result.is_weak else ""
        judged += f"; {result.trust}" if result.trust == "foreign" else ""
        known = _relevance_text(result).strip() or f"score {result.score:.4f}"
        first = f"### {rank}. {one_line(place(result))} ({known}{judged})"
        blocks.append(f"{first}\n\n{heading}{quoted}{why}\n")
    return "\n".join(blocks)


def as_csv(results: Sequence[SearchResult], _look: ResultStyle) -> str:
    """Return results as CSV (RFC 4180) with a header line; headings are joined with `` > ``.

    Text that a spreadsheet would treat as a formula is prefixed with an apostrophe.
    """
    import csv
    import io

    from klaw_core.cli.result_forms import result_to_json

    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, _COLUMNS, extrasaction="ignore")
    writer.writeheader()
    for rank, result in enumerate(results, start=1):
        fields = result_to_json(result, explain=False)
        cells = {**fields, "rank": rank, "heading": " > ".join(result.heading)}
        writer.writerow({name: csv_cell(cell) if isinstance(cell, str) else cell for name, cell in cells.items()})
    return text.getvalue()


def as_files(results: Sequence[SearchResult], _look: ResultStyle) -> str:
    """Return each path once, best first, one per line."""
    return "".join(f"{path_line(path)}\n" for path in dict.fromkeys(result.path for result in results))


FORMATS: Mapping[str, Callable[[Sequence[SearchResult], ResultStyle], str]] = {
    "md": as_markdown,
    "csv": as_csv,
    "files": as_files,
}
