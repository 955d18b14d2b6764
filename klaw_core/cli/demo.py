"""``klaw demo``: index sample notes, ask questions, and explain each answer."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from klaw_core.cli.settings import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core.cli.output import Output
    from klaw_core.memory import Memory
    from klaw_core.values.search import SearchResult

_SHOWN = 2  # results for each question


@attrs.frozen
class Question:
    """A question of the demo, and the point that it demonstrates."""

    text: str
    point: str


QUESTIONS = (
    Question("employee authentication", "by meaning: the note that answers it contains none of these words"),
    Question("ERR_TLS_42", "by an exact identifier, which vectors miss"),
    Question("why did we not want a message broker?", "a plain question, by words and by meaning"),
    Question("когда сажать помидоры", "по-русски, by words: the default model reads English only"),
)


@click.command("demo", short_help="Try Klaw: index sample notes and search them.")
@click.option(
    "--keep", metavar="DIR", type=click.Path(path_type=Path), help="Keep the notes and the index in this directory."
)
@common_options
@pass_settings
def command(settings: Settings, *, keep: Path | None) -> None:
    """Index a few sample notes with your configuration, ask four questions, and explain the rank of each answer.

    Your own index is not changed.
    """
    from klaw_core.cli.notices import notify
    from klaw_core.cli.output import print_json
    from klaw_core.cli.result_forms import result_to_json
    from klaw_core.memory import Memory

    with _place(keep) as root:
        config = attrs.evolve(settings.load_config(), data_dir=root / "data", sources=())
        with Memory.open(config) as memory:
            answers = []
            if not settings.json:
                _begin(settings, memory, root / "notes")
            else:
                memory.index(root / "notes", name="notes")
            for question in QUESTIONS:
                found = memory.search(question.text, _SHOWN)
                answers.append({"query": question.text, "results": [result_to_json(result) for result in found]})
                notify(settings, *found.notices)
                if not settings.json:
                    _show(question, [result for result in found if not result.is_weak] or found[:1], root)
    if settings.json:
        print_json(answers)
    else:
        _end(keep)


@contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    """Yield a directory with the sample notes in ``notes``; it is deleted at the end unless ``keep`` is set."""
    with as_file(files("klaw_core.demo") / "notes") as notes:
        if keep is not None:
            root = keep.expanduser().absolute()
            shutil.copytree(notes, root / "notes", dirs_exist_ok=True)
            yield root
            return
        with tempfile.TemporaryDirectory(prefix="klaw-demo-") as directory:
            shutil.copytree(notes, Path(directory) / "notes")
            yield Path(directory)


def _begin(settings: Settings, memory: Memory, notes: Path) -> None:
    from klaw_core.cli.progress import progress_bar
    from klaw_core.cli.reports import report_run

    with progress_bar(settings) as on_progress:
        report = memory.index(notes, name="notes", on_progress=on_progress)
    report_run(settings, "sample notes", report)


def _show(question: Question, found: Sequence[SearchResult], root: Path) -> None:
    from klaw_core.cli.output import StyledText, data
    from klaw_core.cli.results import ResultStyle, show_one

    out = data()
    out.line()
    out.line(StyledText("$ ", "dim"), StyledText(f'klaw search "{question.text}"', "bold"))
    out.line(StyledText(question.point, "dim italic"), indent=2)
    out.line()
    for rank, result in enumerate(found, start=1):
        if rank > 1:
            out.line()
        show_one(out, result, ResultStyle(question.text, roots={"notes": root / "notes"}), f"{rank}. ")
        _print_ranks(out, result)
    if not found:
        out.line("nothing found", indent=3)


def _print_ranks(out: Output, result: SearchResult) -> None:
    """Print the rank that each retriever gave to a result."""
    from klaw_core.cli.output import StyledText

    found: list[Any] = [
        f"{part.component} ranked it {_ordinal(part.rank)} (+{part.value:.4f})" for part in result.explain
    ]
    out.line(StyledText(f"why: {', '.join(found)}", "green"), indent=3)


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    teen = 10 < number % 100 < 14  # noqa: PLR2004  # 11th, 12th, 13th
    return f"{number}{'th' if teen else endings.get(number % 10, 'th')}"


def _end(keep: Path | None) -> None:
    from klaw_core.cli.output import StyledText, data

    out = data()
    out.line()
    if keep is not None:
        out.line("The sample is kept. Ask it something:")
        place = shlex.quote(str(keep.expanduser().absolute() / "data"))
        question = 'search --explain "what is Ida allergic to"'
        out.line(StyledText(f"{program()} --data-dir {place} {question}", "bold"), indent=2)
        return
    out.line("Then index your own notes, from their directory:")
    for words in ("init", "index .", 'search --explain "what did we decide about auth"'):
        out.line(StyledText(f"{program()} {words}", "bold"), indent=2)


def program() -> str:
    """Return the command that starts this program: ``klaw`` if it is on the PATH, or else a full command line."""
    started = Path(sys.argv[0])
    if started.name == "klaw" and started.is_file():
        found = shutil.which("klaw")
        # nox adds its environment to the PATH only while it runs.
        is_found = found is not None and Path(found).samefile(started) and "NOX_CURRENT_SESSION" not in os.environ
        return "klaw" if is_found else shlex.quote(str(started.absolute()))
    return f"{shlex.quote(sys.executable)} -m klaw_core"
