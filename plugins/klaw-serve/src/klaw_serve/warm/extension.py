"""The extension ``warm``: starts a helper after a search that none has answered, and shows it in ``klaw status``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define

from klaw_core import Event, ListeningExtension, SearchEvent, StatusExtension
from klaw_serve.warm.options import WarmOptions

if TYPE_CHECKING:
    from klaw_core.cli.kit import Settings
    from klaw_serve.warm.state import HelperFiles

_COMMAND = "klaw search"


@define(eq=False)
class WarmExtension(ListeningExtension, StatusExtension):
    """Starts and shows the helper of a data directory. The memory of an agent has none."""

    data_dir: Path
    options: WarmOptions
    is_agents: bool = False
    name = "warm"

    @property
    def files(self) -> HelperFiles:
        """The files of the helper; a search does not need them while it is off."""
        from klaw_serve.warm.state import HelperFiles

        return HelperFiles(self.data_dir)

    def on(self, event: Event, /) -> None:
        """After a ``klaw search`` that opened the memory itself: start a helper if none runs, or if it seems dead.

        One that runs is ended only by the new helper, which tries several times whether it answers. A search may have
        opened the memory because the machine is busy, or too many searches came at once.
        """
        if sys.platform == "win32" or not isinstance(event, SearchEvent) or self.is_agents or not self.options.enabled:
            return
        settings = _settings_of_search()
        if settings is None or settings.config is None:
            return
        state = self.files.running()
        if state is None:
            starts = not (self._has_just_failed() or self.files.is_starting())
        else:
            starts = state.configuration == settings.config.fingerprint and self.files.seems_dead(state)
        if starts:
            _start(settings)

    def status(self) -> dict[str, int | str]:
        """Return the process of the helper, its start, and when it ends without another search."""
        if sys.platform == "win32" or self.is_agents or not (self.options.enabled or self.files.state.exists()):
            return {}
        state = self.files.running()
        if state is not None:
            until = self.files.last_search() + state.idle_seconds
            return {"warm_helper": f"process {state.pid}, since {_clock(state.since)}, until {_clock(until)} if idle"}
        if not self.options.enabled:
            return {}
        if self.files.is_starting():
            return {"warm_helper": "starting"}
        if self._has_just_failed() and (failed := self.files.read()):
            return {"warm_helper": f"failed: {failed.failed}"}
        return {"warm_helper": "not running; the next search starts it"}

    def _has_just_failed(self) -> bool:
        state = self.files.read()
        return state is not None and bool(state.failed) and 0 <= time.time() - state.since < state.idle_seconds


def _settings_of_search() -> Settings | None:
    """Return the common options if this process is a ``klaw search``: other programs keep their memory open anyway."""
    click = sys.modules.get("click")
    context = click.get_current_context(silent=True) if click else None
    if context is None or context.command_path != _COMMAND:
        return None
    from klaw_core.cli.kit import Settings

    found: Settings | None = context.find_object(Settings)
    return found


def _start(settings: Settings) -> None:
    """Start a helper that outlives this process. It reports a failure in its file, which ``klaw status`` shows.

    Its current directory is that of the data, because it would keep another from being unmounted.
    """
    import subprocess

    from klaw_core.cli.kit import own_command

    command = own_command(settings, "serve", "warm", "--quiet")
    nothing, directory = subprocess.DEVNULL, settings.load_config().data_dir
    subprocess.Popen(  # noqa: S603  # Klaw itself
        command, stdin=nothing, stdout=nothing, stderr=nothing, cwd=directory, start_new_session=True
    ).returncode = 0


def _clock(seconds: float) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
