"""Start and end the program ``klaw`` quickly; ``docs/decisions/0021-start-up.md`` has the measurements."""

from __future__ import annotations

import atexit
import gc
import os
import sys

TYPE_CHECKING = False  # as in klaw_core
if TYPE_CHECKING:
    from collections.abc import Callable


_HELP_COLUMNS = 80


INTERRUPTED = 130  # 128 + SIGINT, as in shells

# New objects between two garbage collections. Python's default of 700 causes dozens of them during imports.
_COLLECT_AFTER = 50_000


def main(*, in_helper: bool = False) -> None:
    """Run the command line and exit with 0 (success), 1 (error), 2 (wrong usage) or 130 (interrupted).

    ``in_helper``: this process is the helper's, so none is looked for.
    """
    if sys.argv[1:] in (["--help"], ["-h"]) and _printed_help():
        return
    if not in_helper:
        from klaw_core.cli.warm import run_in_helper

        if (status := run_in_helper(sys.argv[1:])) is not None:
            sys.exit(status)
    gc.set_threshold(_COLLECT_AFTER)
    from klaw_core.cli.program import cli

    cli.main(prog_name="klaw")


def run(*, in_helper: bool = False, end: Callable[[int], object] = os._exit) -> None:
    """Run :func:`main`, then end the process without destroying its objects.

    Python destroys all objects at exit, and onnxruntime its model, which takes a tenth of a search's time. This skips
    it. Exit handlers still run and streams are flushed. With other non-daemon threads the program exits normally.
    ``end`` ends the process with an exit status.
    """
    status = 0
    try:
        main(in_helper=in_helper)
    except SystemExit as exit_:
        if not isinstance(exit_.code, int):
            raise
        status = exit_.code
    except KeyboardInterrupt:  # while modules were imported; the command line says so itself
        sys.stderr.write("\nklaw: interrupted\n")
        status = INTERRUPTED
    threading = sys.modules.get("threading")
    others = threading.enumerate() if threading else ()
    if threading and any(not thread.daemon for thread in others if thread is not threading.main_thread()):
        sys.exit(status)
    try:
        atexit._run_exitfuncs()  # as Python does at exit  # noqa: SLF001
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # a stream is closed or None; a normal exit reports it
        sys.exit(status)
    end(status)


def _printed_help() -> bool:
    """Print the stored help of ``help.txt``, without importing click; return whether this was possible.

    The import of click takes twice as long as everything else here. It is still needed for narrow terminals, shell
    completion, and streams that fail.
    """
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or _columns()
        if columns < _HELP_COLUMNS or "_KLAW_COMPLETE" in os.environ:
            return False
        with open(os.path.join(os.path.dirname(__file__), "help.txt"), encoding="ascii") as file:  # noqa: PTH118, PTH120, PTH123  # pathlib
            sys.stdout.write(file.read())
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # AttributeError: a closed stream is None
        return False
    return True


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _HELP_COLUMNS
    except OSError:
        return _HELP_COLUMNS
