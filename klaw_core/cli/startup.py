"""How the program ``klaw`` starts and ends quickly; what was measured is in ``docs/decisions/0021-start-up.md``."""

from __future__ import annotations

import atexit
import gc
import os
import sys

TYPE_CHECKING = False  # as in klaw_core
if TYPE_CHECKING:
    from typing import NoReturn


_HELP_COLUMNS = 80


# New objects between two looks of the garbage collector: Python's 700 mean dozens of them while modules are imported.
_COLLECT_AFTER = 50_000


def main() -> None:
    """Run the command line and exit: 0 done, 1 an error, 2 wrong usage, 130 interrupted."""
    if sys.argv[1:] in (["--help"], ["-h"]) and _printed_help():
        return
    gc.set_threshold(_COLLECT_AFTER)
    from klaw_core.cli.program import cli

    cli.main(prog_name="klaw")


def run() -> NoReturn:
    """Run the command line as a program: what :func:`main` does, and then an end without ceremony.

    Python takes apart every object before it exits, onnxruntime its model: a tenth of a search's time, for nothing.
    What was registered for the exit is called, the streams are flushed, and no other thread is left behind.
    """
    status = 0
    try:
        main()
    except SystemExit as exit_:
        if not isinstance(exit_.code, int):
            raise
        status = exit_.code
    threading = sys.modules.get("threading")
    others = threading.enumerate() if threading else ()
    if threading and any(not thread.daemon for thread in others if thread is not threading.main_thread()):
        sys.exit(status)
    try:
        atexit._run_exitfuncs()  # as Python itself does  # noqa: SLF001
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # a stream that is closed, or None: Python knows what to say of it
        sys.exit(status)
    os._exit(status)


def _printed_help() -> bool:
    """Print the help as it was printed before, in ``help.txt``; return whether that is what would be printed now.

    To import click takes twice as long as everything else here. A narrow terminal, a completion and a stream that
    fails are left to it.
    """
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or _columns()
        if columns < _HELP_COLUMNS or "_KLAW_COMPLETE" in os.environ:
            return False
        with open(os.path.join(os.path.dirname(__file__), "help.txt"), encoding="ascii") as file:  # noqa: PTH118, PTH120, PTH123  # pathlib
            sys.stdout.write(file.read())
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # AttributeError: a stream that is closed is None
        return False
    return True


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _HELP_COLUMNS
    except OSError:
        return _HELP_COLUMNS
