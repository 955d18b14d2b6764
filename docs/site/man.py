"""Write manual pages for section 1, one for `klaw` and one for each command: python docs/site/man.py DIRECTORY.

What `--help` says is all that is known of a command, so a page is made of the same texts. `man ./klaw-search.1` reads
one; a packager installs them below `share/man/man1`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click

from klaw_core.cli.program import cli


def escaped(text: str) -> str:
    """Return a text that roff shows as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", text)
    return re.sub(r"(?m)^(?=[.'])", r"\\&", text)


def paragraphs(text: str) -> str:
    """Return the paragraphs of a help text; of one that click does not wrap, the lines."""
    parts = [part for part in (text or "").replace("\f", "").split("\n\n") if part.strip()]
    written = []
    for part in parts:
        verbatim = part.lstrip("\n").startswith("\b")
        lines = [line.strip() for line in part.replace("\b", "").strip("\n").splitlines()]
        body = escaped("\n".join(lines) if verbatim else " ".join(lines).strip())
        written.append(f".PP\n.nf\n{body}\n.fi\n" if verbatim else f".PP\n{body}\n")
    return "".join(written)


def page(command: click.Command, context: click.Context) -> str:
    """Return the manual page of a command."""
    name = context.command_path.replace(" ", "-")
    usage = " ".join(command.collect_usage_pieces(context))
    text = f'.TH "{name.upper()}" "1" "" "klaw {version("klaw")}" "Klaw"\n'
    text += f".SH NAME\n{escaped(name)} \\- {escaped(command.get_short_help_str(300).rstrip('.'))}\n"
    text += f".SH SYNOPSIS\n.B {escaped(context.command_path)}\n{escaped(usage)}\n"
    text += f".SH DESCRIPTION\n{paragraphs(command.help or '').removeprefix('.PP' + chr(10))}"
    records = (parameter.get_help_record(context) for parameter in command.get_params(context))
    options = "".join(
        f".TP\n.B {escaped(one)}\n{escaped(' '.join(two.split()))}\n" for one, two in filter(None, records)
    )
    text += f".SH OPTIONS\n{options}" if options else ""
    if isinstance(command, click.Group):
        inner = [(each, command.get_command(context, each)) for each in command.list_commands(context)]
        rows = "".join(
            f".TP\n.B {escaped(each)}\n{escaped(found.get_short_help_str(300))}\n"
            for each, found in inner
            if found is not None and not found.hidden
        )
        text += f".SH COMMANDS\n{rows}"
    above = context.parent.command_path.replace(" ", "-") if context.parent else ""
    return text + (f".SH SEE ALSO\n.BR {escaped(above)} (1)\n" if above else "")


def pages(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the file name and the page of a command and of those below it."""
    yield f"{context.command_path.replace(' ', '-')}.1", page(command, context)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        found = command.get_command(context, name)
        if found is not None and not found.hidden:
            yield from pages(found, click.Context(found, info_name=name, parent=context))


def main(directory: Path) -> None:
    """Write all pages of the installed commands."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages(cli, click.Context(cli, info_name="klaw", **cli.context_settings)):
        (directory / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
