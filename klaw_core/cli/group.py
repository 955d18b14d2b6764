"""The command group: it imports a command's module on first use, and prints each error on one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from klaw_core.cli.extensions import installed, load_command, load_own, official
from klaw_core.cli.settings import Settings, current_directory
from klaw_core.cli.startup import INTERRUPTED
from klaw_core.cli.streams import OutputError, ReaderGoneError, guarded_streams, trusted
from klaw_core.errors import ConfigError, KlawError, module_of


class KlawGroup(click.Group):
    """A click group. Its commands are the attribute ``command`` of modules of ``klaw_core.cli``, or come from plugins.

    ``modules`` has each command's module and its line of help; ``aliases`` maps other names to commands; ``groups``
    maps headings of the help to the names below each. A module with a dot belongs to a default distribution. Commands
    of other distributions (:mod:`klaw_core.cli.extensions`) are looked up when they are called.
    """

    def __init__(
        self,
        *args: Any,
        modules: Mapping[str, tuple[str, str]],
        aliases: Mapping[str, str],
        groups: Mapping[str, str],
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._groups = groups
        self._modules = modules
        self._aliases = aliases

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return the commands in the order of the help, then those of first-party plugins."""
        return [*self._modules, *official()]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import and return a command, or None if there is no such command. Raise PluginError."""
        entry = self._modules.get(self._aliases.get(name, name))
        if entry is None:
            # Completion offers installed commands only and must not raise an error.
            return None if context.resilient_parsing and name not in installed() else load_command(name)
        return load_own(name, entry[0], missing_ok=context.resilient_parsing)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command ``args[0]``. Raise UsageError, with the most similar name, if there is none."""
        name = args[0]
        own = [*self._modules, *self._aliases]
        if name in own or name.startswith("-") or context.resilient_parsing:
            return super().resolve_command(context, args)
        known = [*own, *official()]
        if name in known:
            return super().resolve_command(context, args)
        others = installed()
        if name not in others:
            from difflib import get_close_matches

            near = get_close_matches(name, [*known, *others], n=1)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"no such command {name!r}{guess}", context)
        return super().resolve_command(context, args)

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, in columns of one width, without importing their modules."""
        aliases = {target: alias for alias, target in self._aliases.items()}
        lines = {name: summary for name, (_, summary) in [*self._modules.items(), *official().items()]}
        shown = {name: f"{name}, {aliases[name]}" if name in aliases else name for name in lines}
        width = max(map(len, shown.values()))
        groups = {title: names.split() for title, names in self._groups.items()}
        grouped = {name for names in groups.values() for name in names}
        groups[next(reversed(groups))] += [name for name in lines if name not in grouped]
        for title, names in groups.items():
            with formatter.section(title):
                formatter.write_dl([(shown[name].ljust(width), lines[name]) for name in names if name in lines])

    def main(  # type: ignore[override]  # click's overloads only differ in the return type of the two modes
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Any:
        """Run and exit with Klaw's documented exit status; with ``standalone_mode=False``, return as click does."""
        if not extra.pop("standalone_mode", True):
            return super().main(args, prog_name, standalone_mode=False, **extra)
        words = list(sys.argv[1:] if args is None else args)
        # Look for --json before click parses the options, so that errors in other options are also printed as JSON.
        settings = Settings(json="--json" in words[: words.index("--") if "--" in words else None], words=words)
        main = super().main

        def run() -> Any:
            if any(not word or word.endswith("=") for word in words):
                from klaw_core.cli.empty_values import refuse_empty

                refuse_empty(self, words)
            return main(args, prog_name, standalone_mode=False, obj=settings, **extra)

        sys.exit(_exit_status(run, settings))


def _exit_status(run: Callable[[], Any], settings: Settings) -> int:
    """Run; print an error, if any, and return the exit status."""
    with guarded_streams():
        _accept_every_character()
        return _run(run, settings)


def _run(run: Callable[[], Any], settings: Settings) -> int:
    try:
        status = run()
        sys.stdout.flush()
    except ReaderGoneError:  # the reader closed the pipe, which is not an error
        return 0
    except click.exceptions.Abort as abort:
        interrupted = isinstance(abort.__cause__, KeyboardInterrupt)
        notes = getattr(abort.__cause__, "__notes__", ())
        what = "interrupted" if interrupted else "aborted, nothing was changed"
        _print_error(what, "; ".join(notes), as_json=settings.json)
        return INTERRUPTED if interrupted else 1
    except click.ClickException as error:
        _report_usage(error, settings)
        return error.exit_code
    except Exception as error:  # noqa: BLE001  # last resort: a defect is printed on one line too, unless --debug
        _report(error, settings)
        return 1
    return status if isinstance(status, int) else 0


# click names its own types
_PLAIN = {
    "is not a valid integer range": "is not a whole number",
    "is not a valid integer": "is not a whole number",
    "is not a valid float range": "is not a number",
    "is not a valid float": "is not a number",
}


def _report_usage(error: click.ClickException, settings: Settings) -> None:
    """Print what is wrong with the command line, and the command whose help to read."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # click 8.2; 8.1 prints and exits
        error.show()
        return
    context = error.ctx if isinstance(error, click.UsageError) else None
    program = context.command_path if context else "klaw"
    message = error.format_message().rstrip(".")
    for click_words, plain in _PLAIN.items():
        message = message.replace(click_words, plain)
    hint = f"{program} --help"
    if isinstance(error, click.NoSuchOption) and context and (text := _text_argument(context.command)):
        hint += f"; if a word of {text[-1]} begins with -: {program} -- {' '.join(text)}"
    _print_error(_uncapitalised(message), hint, program=program, as_json=settings.json)


def _text_argument(command: click.Command) -> list[str]:
    """Return the names of a command's arguments up to one that is any text, or nothing if none is."""
    from klaw_core.cli.free_text import FreeText

    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    texts = [place for place, each in enumerate(arguments, 1) if isinstance(each.type, FreeText)]
    return [(each.metavar or each.name or "").strip("[].").upper() for each in arguments[: max(texts, default=0)]]


def _uncapitalised(message: str) -> str:
    """Return click's message with a lower-case first letter; a name in capitals stays."""
    return message if message[:2].isupper() else message[:1].lower() + message[1:]


def _report(error: Exception, settings: Settings) -> None:
    """Print what happened, where, and how to fix it; with ``--debug`` print the traceback instead."""
    if settings.debug:
        import traceback

        traceback.print_exception(error)
    elif isinstance(error, OutputError):
        hint = "write to another file; changes of this command are kept"
        _print_error(str(error), hint, as_json=settings.json)
    elif _is_without_directory(error):
        _print_error("the current directory was removed", "cd to another directory", as_json=settings.json)
    elif settings.json and isinstance(error, KlawError):
        _print_error(error.message, error.hint, as_json=True)
    elif isinstance(error, ConfigError) and len(error.problems) > 1:
        _print_error(f"the configuration has {len(error.problems)} problems:", error.hint, below=error.problems)
    elif isinstance(error, KlawError):
        _print_error(error.message, error.hint)
    elif isinstance(error, OSError) and _is_typed(error.filename, settings.words):
        message = f"{error.filename} cannot be used: {error.strerror}"
        _print_error(message, "give another path, or check its permissions", as_json=settings.json)
    else:
        message = f"defect in Klaw: {type(error).__name__}: {error} (in {module_of(error)})"
        _print_error(message, "run it again with --debug and report it", as_json=settings.json)


def _is_without_directory(error: Exception) -> bool:
    """Return whether there is no current directory, which an operation reports as a file without a name."""
    cause = error.__cause__ if isinstance(error, KlawError) else error
    is_nameless = isinstance(cause, FileNotFoundError) and (cause is error or cause.filename is None)
    return is_nameless and current_directory() is None


def _is_typed(filename: Any, words: Sequence[str]) -> bool:
    """Return whether a file of an error was given on the command line, is in a directory that was, or contains it."""
    if not isinstance(filename, str):
        return False
    place = os.path.abspath(filename)  # noqa: PTH100  # pathlib keeps `..`
    given = {word.partition("=")[2] if word.startswith("--") else word.rpartition("://")[2] for word in words} - {""}
    typed = {word: os.path.abspath(word) for word in given}  # noqa: PTH100  # as above
    return any(_contains(path, place) or (os.sep in word and _contains(place, path)) for word, path in typed.items())


def _contains(directory: str, path: str) -> bool:
    return path == directory or path.startswith(os.path.join(directory, ""))  # noqa: PTH118  # text is enough


def _print_error(
    message: str, hint: str = "", *, below: Sequence[str] = (), program: str = "klaw", as_json: bool = False
) -> None:
    """Write one line to stderr with the error and its fix; with ``as_json`` write a JSON object with both.

    ``below`` are lines between the two, which are indented.

    An error may quote what was typed, or the text of an exception, so secrets of known formats are redacted.
    """
    from klaw_redaction import Redactor

    message, hint = map(Redactor().text, (message, hint))
    if as_json:
        import json

        click.echo(json.dumps({"error": message, "hint": hint}), file=sys.stderr)
        return
    from klaw_core.cli.neutral import one_line

    plain = not sys.stderr.isatty() or bool(os.environ.get("NO_COLOR"))
    name = f"{program}:" if plain else click.style(f"{program}:", fg="red", bold=True)
    shown = f" → {one_line(hint)}" if hint else ""
    shown = shown if plain else click.style(shown, fg="cyan")
    middle = "".join(f"\n  {one_line(line)}" for line in below) + "\n " * bool(below)
    text = f"{name} {one_line(message)}{middle}{shown}"
    click.echo(text, file=trusted(sys.stderr), color=not plain)


def _accept_every_character() -> None:
    """Print escapes for characters that the encoding of a stream does not have, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
