"""``klaw watch``: keep the index up to date until interrupted."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING

import click

from klaw_core import Flag, KlawError
from klaw_core.cli.kit import (
    Settings,
    common_options,
    counted,
    data,
    echo,
    notify,
    own_command,
    pass_settings,
    print_json,
    systemd_unit,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from klaw_core import Memory
    from klaw_watch.background import BackgroundRun

# Enough to finish writing words. A running embedder is not waited for; the next start embeds the rest.
_STOP_SECONDS = 0.7


@click.command("watch", short_help="Keep the index up to date with the files.")
@click.option("--unit", "only_unit", is_flag=True, help="Print a systemd unit that runs this command, and exit.")
@common_options
@pass_settings
def command(settings: Settings, *, only_unit: bool) -> None:
    """Index everything that has changed, then each file shortly after it changes, until interrupted.

    The table `extensions.watch` of the configuration sets the delays and intervals. SIGHUP makes it read and chunk all
    files again. Each data directory has at most one watcher; `klaw status` shows its state. If `klaw sync` has places
    in the configuration, it synchronises with them, too.
    """
    if only_unit:
        text = systemd_unit(
            f"Klaw keeps its index up to date ({settings.load_config().data_dir})",
            own_command(settings, "watch"),
            ExecReload="/bin/kill -HUP $MAINPID",
            TimeoutStopSec=5,
            Nice=10,
        )
        print_json({"unit": text}) if settings.json else echo(text, nl=False)
        return
    from klaw_watch.watcher import Watcher

    stop = Flag()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    memory = settings.open_memory()
    watcher = Watcher(memory, lambda run: _report(settings, run))
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, lambda *_: watcher.request())
    watcher.start()
    stops = _start_others(settings, memory)
    watcher.wait_ready()
    state = watcher.state
    how = f"checking every file ({state.scanning})" if state.scanning else "notified by the system"
    notify(settings, f"watching {counted(state.watched, 'place')}, {how}; Ctrl-C ends it")
    if state.problem:
        notify(settings, state.problem)
    stop.wait()
    for end in stops:
        end()
    if not watcher.stop(_STOP_SECONDS):
        _exit_at_once()
    memory.close()


def _start_others(settings: Settings, memory: Memory) -> list[Callable[[], object]]:
    """Start what extensions do by themselves, such as `klaw sync`; return what stops it."""
    from klaw_journals import RunningExtension

    stops = []
    for name, extension in memory.extensions.having(RunningExtension):
        try:
            started = extension.start()
        except KlawError as error:
            notify(settings, f"the extension {name} does not run: {error.message}")
        else:
            stops += [] if started is None else [started]
    return stops


def _report(settings: Settings, run: BackgroundRun) -> None:
    from klaw_watch.state import result_of

    if settings.json:
        echo(json.dumps({"triggers": list(run.reasons), "result": result_of(run)}))
    elif not settings.quiet:
        data().line(f"{', '.join(run.reasons)}: {result_of(run)}")


def _exit_at_once() -> None:
    """End at once. The store rolls back an index run, or continues it at the next start."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
