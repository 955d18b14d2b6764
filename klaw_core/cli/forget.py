"""``klaw forget``: remove something from the index and the embedding cache."""

from __future__ import annotations

import sys
from shlex import join, quote
from typing import TYPE_CHECKING

import click

from klaw_core.cli.completion import document_paths
from klaw_core.cli.settings import Settings, common_options, pass_settings
from klaw_core.cli.shown_paths import with_shown_path

if TYPE_CHECKING:
    from klaw_core.memory import Memory
    from klaw_core.values.runs import ForgetReport, SourceStatus

_MAX_SHOWN = 60  # characters of a memory in the question


@click.command("forget", short_help="Remove a memory, a note or a workspace from the index.")
@click.argument("target", shell_complete=document_paths)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@common_options
@pass_settings
def command(settings: Settings, *, target: str, yes: bool) -> None:
    """Forget TARGET: a saved memory (path or chunk id), a note (notes/a.md), a message (CHAT/ID), a workspace (notes/).

    The file of a note is not deleted; the note is excluded from its workspace.
    """
    with settings.open_memory() as memory:
        if not yes:
            ask_to_forget(memory, target)
        before = {source.origin: source for source in memory.sources() if source.root is not None}
        place = before.get(target.rstrip("/")) if target.endswith("/") else None
        first = memory.documents(collection=place.collection, prefix=target, limit=1) if place is not None else ()
        trust = memory.get(first[0].path).trust if first else "owner"
        gone = with_shown_path(memory, target, memory.forget)
        later = memory.erases_later
    report_forgotten(settings, gone, later)
    from klaw_core.cli.notices import notify

    if place is not None:
        command = _index_again(place, trust)
        notify(settings, f"its files stay; `{command}` indexes them again")
    if len(gone.paths) == 1 and gone.paths[0].partition("/")[0] in before and not target.endswith("/"):
        notify(settings, f"`klaw restore {quote(gone.paths[0])}` undoes this")


def _index_again(place: SourceStatus, trust: str) -> str:
    """Return the command that indexes a workspace again; patterns of files are not known here."""
    from klaw_core.values.collections import MEMORY

    words = ["klaw", "index", str(place.root)]
    words += [] if place.root is not None and place.origin == place.root.name else ["--name", place.origin]
    words += [] if place.collection == MEMORY else ["--collection", place.collection]
    return join([*words, *([] if trust == "owner" else ["--trust", trust])])


def ask_to_forget(memory: Memory, target: str) -> None:
    """Ask for confirmation on the terminal. Raise Abort, UsageError, NotFoundError."""
    _ask(_question(memory, target))


def report_forgotten(settings: Settings, gone: ForgetReport, later: str) -> None:
    """Print what was forgotten; ``later`` says when its bytes are deleted, if not at once."""
    from klaw_core.cli.json_forms import to_json
    from klaw_core.cli.notices import notify
    from klaw_core.cli.output import counted, data, print_json

    if settings.json:
        print_json(to_json(gone))
    elif not settings.quiet:
        what = gone.paths[0] if len(gone.paths) == 1 else counted(len(gone.paths), "document")
        # The chunks of a message are not counted: one may contain several messages.
        data().line(f"forgot {what}" + (f" ({counted(gone.chunks, 'chunk')})" if gone.chunks else ""))
    if later:
        notify(settings, f"no search finds it; its bytes are deleted {later}")


def _ask(question: str) -> None:
    """Ask on the terminal; abort unless the answer is yes. Raise UsageError if stdin is not a terminal."""
    if not sys.stdin.isatty():
        raise click.UsageError("stdin is not a terminal; pass --yes to confirm")
    click.confirm(question, abort=True, err=True)


def _question(memory: Memory, target: str) -> str:
    """Return the question, which says what would be removed. Raise NotFoundError if the target does not exist."""
    from klaw_core.cli.neutral import neutral
    from klaw_core.cli.output import counted

    if target.endswith("/"):
        name, status = target.rstrip("/"), memory.status()
        documents, _ = status.origins.get(name, (0, 0))
        if name in status.workspaces and name in status.elsewhere:
            return f"Forget the workspace {name} (the notes that {status.elsewhere[name]} has indexed as {name} stay)?"
        if name in status.workspaces:
            notes, root = counted(documents, "note"), status.workspaces[name]
            return f"Forget the workspace {name} with {notes} (the files in {root} stay)?"
        if name in status.elsewhere:
            return f"Forget {counted(documents, 'document')} of {name}, which {status.elsewhere[name]} indexes?"
        if name in status.origins and all(source.origin != name for source in memory.sources()):
            return f"Forget {counted(documents, 'document')} of {name}, which is no longer a source?"
    excerpt = with_shown_path(memory, target, memory.get)
    if excerpt.file is not None:
        return f"Forget {excerpt.path} and exclude it from now on (the file stays)?"
    text = neutral(" ".join(excerpt.content.split()))
    return f'Forget {excerpt.path}: "{text[:_MAX_SHOWN]}{"…" if len(text) > _MAX_SHOWN else ""}"?'
