"""``klaw search``: find the chunks that answer a question."""

from __future__ import annotations

import sys
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from klaw_core.cli.dates import since as parse_since
from klaw_core.cli.dates import until as parse_until
from klaw_core.cli.free_text import FreeText
from klaw_core.cli.numbers import Number, NumberRange
from klaw_core.cli.settings import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core.cli.results import ResultStyle
    from klaw_core.cli.served import ServedMemory
    from klaw_core.cli.snippets import ChooseWindow
    from klaw_core.memory import Memory
    from klaw_core.values.search import Mode, SearchResults

# Formats that do not show what these options add. JSON and CSV have whole chunks.
_LESS = {"csv": ("--explain",), "files": ("--explain", "--full")}


@click.command("search", short_help="Find the chunks that answer a question.")
@click.argument("query", nargs=-1, type=FreeText(), metavar="QUERY...")
@click.option(
    "-n",
    "--limit",
    "-k",
    "--top-k",
    "limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Show at most N chunks.",
)
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "fts", "vector"]),
    default="hybrid",
    show_default=True,
    help="Search by words and meaning, by words, or by meaning.",
)
@click.option(
    "--min-relevance",
    type=NumberRange(0, 1),
    metavar="R",
    help="Leave out results below this relevance, 0 to 1. [default: none]",
)
@click.option(
    "--per-document",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="N",
    help="Show at most N chunks per note if other notes match nearly as well.",
)
@click.option("--min-score", type=Number(), metavar="SCORE", help="Leave out results below this score. [default: none]")
@click.option(
    "-c",
    "--collection",
    "collections",
    multiple=True,
    metavar="NAME",
    help="Collections to search. [default: all but separate ones]",
)
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="COND",
    help="Only chunks with this metadata: tags=work, year>=2025, lang!=de.",
)
@click.option("--source", metavar="LABEL", help="Only this source, e.g. MEMORY.md or manual.")
@click.option("--path", "path", metavar="PREFIX", help="Only paths that start with PREFIX, e.g. notes/2026/.")
@click.option("--chat", "chat_id", metavar="NAME", help="Only this chat: CHANNEL_ID, e.g. telegram_123456.")
@click.option("--since", metavar="WHEN", callback=parse_since, help="Only from WHEN on: 2026-02-24, 2026-02, 7d.")
@click.option("--until", metavar="WHEN", callback=parse_until, help="Only up to WHEN; the day itself is included.")
@click.option("--explain", is_flag=True, help="Show what each retriever contributed to the score.")
@click.option("--full", is_flag=True, help="Show whole chunks instead of snippets.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "md", "csv", "files"]),
    help="Output format. [default: text]",
)
@common_options
@pass_settings
def command(
    settings: Settings,
    *,
    query: tuple[str, ...],
    limit: int,
    mode: Mode,
    min_score: float | None,
    min_relevance: float | None,
    per_document: int,
    collections: tuple[str, ...],
    conditions: tuple[str, ...],
    source: str | None,
    path: str | None,
    chat_id: str | None,
    since: datetime | None,
    until: datetime | None,
    explain: bool,
    full: bool,
    form: str | None,
) -> None:
    """Find the chunks that answer QUERY, best first; with conditions alone, list the newest notes that match.

    QUERY is plain words, with or without quotes; use - to read it from standard input. In quotes it may have
    conditions: tag:work, path:People/, -word, "a phrase". The number after each path is
    the relevance, from 0 to 1. Results are sorted by score, not by relevance, so a later result can have a higher
    relevance.
    """
    if not (query or conditions or path or source or chat_id or since or until):
        raise click.UsageError("missing argument 'QUERY...'")
    if settings.json and form not in {None, "json"}:
        raise click.UsageError(f"--json and --format {form} cannot be used together")
    given = {"--explain": explain, "--full": full}
    if unshown := [name for name in _LESS.get(form or "", ()) if given[name]]:
        raise click.UsageError(f"--format {form} does not show what {' and '.join(unshown)} would add")
    from klaw_core.cli.conditions import parse_condition
    from klaw_core.cli.output import data
    from klaw_core.cli.results import ResultStyle
    from klaw_core.values.search import Filters, SearchRequest

    text = sys.stdin.read() if query == ("-",) else " ".join(query)
    metadata = tuple(map(parse_condition, conditions))
    filters = Filters(source=source, path=path, chat_id=chat_id, since=since, until=until, metadata=metadata)

    names = collections or None
    request = SearchRequest(text, limit, mode, filters, names, min_score, min_relevance, per_document)

    def answer(memory: Memory | ServedMemory) -> tuple[SearchResults, ResultStyle]:
        found = memory.search_for(request)
        is_terminal = data().is_terminal
        roots = {item.origin: item.root for item in memory.sources() if item.root} if is_terminal else {}
        return found, ResultStyle(text, full=full, explain=explain, roots=roots, choose=_chooser(memory, text, found))

    found, look = settings.ask(answer)
    from klaw_core.cli.last_search import remember

    assert settings.config is not None
    remember(settings.config, [result.chunk_id for result in found])
    _print(settings, found, look, "json" if settings.json else form or "text")


def _chooser(memory: Memory | ServedMemory, text: str, found: SearchResults) -> ChooseWindow | None:
    """Return a chooser of snippets for chunks without a word of the question, or None if vectors found nothing."""
    if all(result.similarity is None for result in found):
        return None
    from klaw_core.cli.served import ServedMemory
    from klaw_core.cli.windows import WindowChooser

    ask = partial(memory.nearest, text)
    return WindowChooser.of_server(ask) if isinstance(memory, ServedMemory) else WindowChooser(ask)


def _explained(settings: Settings, notice: str) -> str:
    """Return a notice; if nothing is embedded because the embedder is not installed, the notice says that instead."""
    from klaw_core.searching.question_embedder import NOTHING_EMBEDDED

    if not notice.endswith(NOTHING_EMBEDDED):
        return notice
    from klaw_core.errors import PluginError
    from klaw_core.maintenance.reindex import check_embedder

    config = settings.load_config()
    try:
        check_embedder(settings.registry(config), config.embedding)
    except PluginError as error:
        return f"{notice.removesuffix(NOTHING_EMBEDDED)}searched without vectors: {error}"
    return notice


def _print(settings: Settings, found: SearchResults, look: ResultStyle, form: str) -> None:
    from klaw_core.cli.notices import notify
    from klaw_core.cli.output import data, print_json
    from klaw_core.cli.results import FORMATS, show
    from klaw_core.cli.streams import echo
    from klaw_core.values.search import NO_GOOD_MATCH

    # As text, the results are shown below such a line.
    shown = (notice for notice in found.notices if form != "text" or notice != NO_GOOD_MATCH)
    notify(settings, *(_explained(settings, notice) for notice in shown))
    if form == "json":
        from klaw_core.cli.result_forms import result_to_json

        forms = [result_to_json(result, explain=look.explain, query=look.query, choose=look.choose) for result in found]
        print_json(forms)
    elif form in FORMATS:
        echo(FORMATS[form](found, look), nl=False)
    elif found:
        show(data(), found, look)
    else:
        notify(settings, "nothing found")
