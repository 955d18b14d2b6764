"""The options that every command takes, before the command's name or after it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import define

if TYPE_CHECKING:
    from klaw_core.cli.served import ServedMemory, Server
    from klaw_core.interfaces.journal import Journals
    from klaw_core.memory import Memory
    from klaw_core.plugins.registry import Registry
    from klaw_core.values.config import Config, Selection

#: The file that a server leaves in the data directory whose memory it has open.
RENDEZVOUS = "server.json"

Answer = TypeVar("Answer")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@define(eq=False, repr=False)
class Settings:
    """What the common options say. Filled while click parses, so that both places of an option count."""

    json: bool = False
    config_file: Path | None = None
    data_dir: Path | None = None
    quiet: bool = False
    verbose: bool = False
    debug: bool = False
    _said: bool = False  # a command may read the configuration twice

    def load_config(self) -> Config:
        """Read the configuration as the options ask. Raise ConfigError."""
        from klaw_core.config.load import load_config

        config = load_config(
            config_file=self.config_file, data_dir=self.data_dir, directory=Path.cwd(), check=_option_problems
        )
        if config.notices and not self._said:
            from klaw_core.cli.output import notify

            notify(self, *config.notices)
            self._said = True
        return config

    def open_memory(self) -> Memory:
        """Assemble the configured memory. Raise ConfigError, PluginError or StoreError."""
        return self._open(self.load_config())

    def open_journals(self) -> AbstractContextManager[Journals]:
        """Open only the journals, which need no sound database. Raise ConfigError, PluginError, StoreError."""
        from klaw_core.extensions.journal_access import open_journals

        config = self.load_config()
        return open_journals(config, partial(_registry, config))

    def keeps_journals(self) -> bool:
        """Return whether the configured store keeps the journals. Raise ConfigError, PluginError."""
        from klaw_core.extensions.journal_access import keeps_journals

        config = self.load_config()
        return keeps_journals(config, partial(_registry, config))

    def _open(self, config: Config) -> Memory:
        from klaw_core.memory import Memory

        return Memory.open(config, registry=_registry(config))

    def find_server(self) -> Server | None:
        """Return the server that has this memory open, None if there is none. Raise ConfigError."""
        return _server_of(self.load_config())

    def ask(self, question: Callable[[Memory | ServedMemory], Answer]) -> Answer:
        """Ask a server that has this memory open, or (without one, or where it fails) the memory opened here.

        For what changes nothing: it may be asked of both. Raise ConfigError, PluginError or StoreError.
        """
        config = self.load_config()
        server = _server_of(config)
        if server is not None:
            from klaw_core.cli.served import NotServedError, ServedMemory

            with suppress(NotServedError):
                return question(ServedMemory(server))
        with self._open(config) as memory:
            return question(memory)


def _registry(config: Config) -> Registry:
    """Return the plugins that are needed for what is configured."""
    from klaw_core.plugins.entry_cache import installed

    chosen = {(selection.kind, selection.type) for selection in config.selections()}
    return installed(config.cache_dir, chosen, disabled=config.disabled_plugins)


def _server_of(config: Config) -> Server | None:
    """Return the server that a configuration's memory is open in, None if there is none."""
    if not (config.data_dir / RENDEZVOUS).exists():  # as a rule; then nothing needs to be imported
        return None
    from klaw_core.cli.served import Server

    return Server.of(config)


def _option_problems(selections: Sequence[Selection], disabled: Collection[str]) -> Sequence[str]:
    """Return what is wrong with the options of components; only where something is wrong already is it asked for."""
    from klaw_core.assembly import option_problems

    return option_problems(selections, disabled)


pass_settings = click.make_pass_decorator(Settings, ensure=True)

_PATH = click.Path(path_type=Path)
_OPTIONS: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    ("json", ("--json",), {"is_flag": True, "help": "Print only JSON on stdout."}),
    ("config_file", ("--config",), {"type": _PATH, "metavar": "FILE", "help": "Read this configuration file."}),
    ("data_dir", ("--data-dir",), {"type": _PATH, "metavar": "DIR", "help": "Use this data directory."}),
    ("quiet", ("-q", "--quiet"), {"is_flag": True, "help": "Print no notices and no progress."}),
    ("verbose", ("-v", "--verbose"), {"is_flag": True, "help": "Print more details."}),
    ("debug", ("--debug",), {"is_flag": True, "help": "Show a traceback on errors."}),
)


def common_options(function: Decorated) -> Decorated:
    """Add the common options to a command; they set fields of :class:`Settings`, not parameters."""
    for name, flags, attributes in reversed(_OPTIONS):
        option = click.option(*flags, f"common_{name}", expose_value=False, callback=_setter(name), **attributes)
        function = option(function)
    return function


def _setter(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def put(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value:  # an option that is absent here may have been given in the other place
            setattr(context.ensure_object(Settings), name, value)

    return put
