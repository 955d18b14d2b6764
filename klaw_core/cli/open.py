"""``klaw open``: open a result of the last search, or a note, in an editor or with the system's program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote, split
from shutil import which
from typing import TYPE_CHECKING

import click

from klaw_core.cli.completion import document_paths
from klaw_core.cli.settings import Settings, common_options, pass_settings
from klaw_core.files.atomic import read_regular
from klaw_core.values.lines import line_starts

if TYPE_CHECKING:
    from klaw_core.values.runs import Excerpt

# Kinds of files that a system shows and does not run. What a script's kind opens with may run it.
_SHOWN = """
.adoc .canvas .csv .docx .eml .epub .gif .htm .html .jpeg .jpg .markdown .md .odt .org .pdf .png .pptx .rst .srt .tsv
.txt .vtt .webp .xlsx
"""
_MOST_DIGITS = 9
# How editors are told a line, by the name of their program; all others understand `+LINE FILE`, as vi does.
_COLON = frozenset({"hx", "helix", "subl", "zed", "zeditor"})
_GOTO = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})


@click.command("open", short_help="Open a result of the last search in an editor.")
@click.argument("target", metavar="N", shell_complete=document_paths)
@click.option("--print", "only_print", is_flag=True, help="Print FILE:LINE, and open nothing.")
@common_options
@pass_settings
def command(settings: Settings, *, target: str, only_print: bool) -> None:
    """Open the Nth result of the last klaw search, or a note by its PATH or PATH:LINE.

    A text is opened at the line in the editor of $VISUAL or $EDITOR; any other file, or without an editor, with the
    program that the system has for it. With --json the place is printed, and nothing is opened.
    """
    from klaw_core.cli.output import data, print_json
    from klaw_core.cli.targets import parse_target
    from klaw_core.errors import NotFoundError

    if not target:
        raise click.UsageError("N is empty; give the number of a result, or a path such as notes/a.md:40")
    with settings.open_memory() as memory:
        if target.isascii() and target.isdigit() and len(target) <= _MOST_DIGITS:
            from klaw_core.cli.last_search import nth_result

            result = nth_result(memory.config, int(target))
            try:
                excerpt = memory.get(result)
            except NotFoundError as error:
                problem = f"result {target} of the last search is no longer indexed: it was changed, moved or deleted"
                raise NotFoundError(problem, hint="search again") from error
        else:
            path, first, _ = parse_target(target)
            try:
                excerpt = memory.get(target)
            except NotFoundError:
                if path == target:
                    raise
                excerpt = memory.get(path, first)
    if excerpt.file is None or not excerpt.file.is_file():
        raise _without_file(excerpt)
    line = _line_in(excerpt, excerpt.file)
    if settings.json:
        print_json({"path": excerpt.path, "file": str(excerpt.file), "line": line})
    elif only_print:
        data().line(str(excerpt.file) if line is None else f"{excerpt.file}:{line}")
    else:
        _run(command_for(excerpt.file, line))


def _without_file(excerpt: Excerpt) -> Exception:
    """Return why a document cannot be opened, and what to do."""
    from klaw_core.errors import NotFoundError

    get = f"klaw get {quote(excerpt.path)}"
    if excerpt.file is None and not excerpt.notice:
        return NotFoundError(f"{excerpt.path} cannot be opened: it is not in a file of its own", hint=get)
    return NotFoundError(
        f"{excerpt.path} cannot be opened: its file is gone, or was moved, since it was indexed",
        hint=f"`klaw index`, then search again; `{get}` prints the text that was indexed",
    )


def _line_in(excerpt: Excerpt, file: Path) -> int | None:
    """Return the line of the file at which the text begins; None if it is the text of a converted file."""
    try:
        text = read_regular(file).decode().replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, ValueError):
        return None
    starts, number = line_starts(text), excerpt.start_line
    begin = starts[number - 1] if number <= len(starts) else len(text)
    first = excerpt.content[: (*line_starts(excerpt.content), len(excerpt.content))[1]].rstrip("\r\n")
    return number if text[begin:].removeprefix("\ufeff").startswith(first) and begin < len(text) else None


def command_for(file: Path, line: int | None) -> Sequence[str]:
    """Return the command that opens a file: the editor's at a line, or the system's. Raise UsageError without one."""
    editor = next(filter(str.strip, map(os.environ.get, ("VISUAL", "EDITOR"), ("", ""))), "")
    try:
        words = [word.strip('"') for word in split(editor, posix=sys.platform != "win32")]
    except ValueError as error:
        raise click.UsageError(f"$EDITOR is not a command: {error}") from error
    if line is not None and words:
        program = Path(words[0]).stem.lower()
        if program in _GOTO:
            return [*words, "--goto", f"{file}:{line}"]
        return [*words, f"{file}:{line}"] if program in _COLON else [*words, f"+{line}", str(file)]
    opener = {"darwin": "open", "win32": "explorer"}.get(sys.platform, "xdg-open")
    if file.suffix.lower() not in _SHOWN.split():
        if words:
            return [*words, str(file)]
        raise click.UsageError(f"{file} is opened by an editor only, because the system may run it: set EDITOR")
    if which(opener) is None:
        why = f"no line of it is known, and {opener}" if words else f"$EDITOR is not set, and {opener}"
        raise click.UsageError(f"nothing opens {file}: {why} is not installed")
    return [opener, str(file)]


def _run(command: Sequence[str]) -> None:
    from klaw_core.errors import KlawError

    try:
        status = subprocess.run(command, check=False).returncode  # noqa: S603  # the user's editor
    except OSError as error:
        raise KlawError(f"{command[0]} cannot be run: {error.strerror}", hint="set EDITOR to your editor") from error
    if status and command[0] != "explorer":  # which ends with 1 when all went well
        raise KlawError(f"{command[0]} ended with the exit status {status}")
