"""The common options of all commands; they may come before or after the command's name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import define
from click.core import ParameterSource

if TYPE_CHECKING:
    from klaw_core.cli.served import ServedMemory, Server
    from klaw_core.memory import Memory
    from klaw_core.plugins.registry import Registry
    from klaw_core.values.config import Config, Selection

Answer = TypeVar("Answer")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def current_directory() -> Path | None:
    """Return the current directory; None if it cannot be read: an agent's may have been removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


@define(eq=False, repr=False)
class Settings:
    """The values of the common options. click's callbacks set them, wherever an option is given."""

    json: bool = False
    config_file: Path | None = None
    data_dir: Path | None = None
    quiet: bool = False
    verbose: bool = False
    debug: bool = False
    words: Sequence[str] = ()  # the command line: an error tells a path of the user from one of Klaw
    config: Config | None = None  # what was read last
    _notified: bool = False  # a command may read the configuration twice, but prints its notices once

    def load_config(self) -> Config:
        """Read the configuration for these options. Raise ConfigError."""
        from klaw_core.config.load import load_config

        here = current_directory()
        config = load_config(
            config_file=self.config_file, data_dir=self.data_dir, directory=here, check=_option_problems
        )
        if any("\ud800" <= character <= "\udfff" for character in str(config.data_dir)):
            from klaw_core.errors import ConfigError

            raise ConfigError(
                [f"the path of the data directory is not valid UTF-8: {str(config.data_dir)!a}"],
                hint="choose another directory: --data-dir or KLAW_DATA_DIR",
            )
        if config.notices and not self.quiet and not self._notified:
            from klaw_core.cli.output import print_notices

            print_notices(*config.notices)
            self._notified = True
        self.config = config
        return config

    def open_memory(self, *, replace_damaged: bool = False) -> Memory:
        """Open the configured memory. Raise ConfigError, PluginError or StoreError.

        With ``replace_damaged``, a damaged database is replaced by an empty one.
        """
        return self._open(self.load_config(), replace_damaged=replace_damaged)

    def registry(self, config: Config) -> Registry:
        """Return the plugins that a configuration needs; others are looked for when they are asked for."""
        return _registry(config)

    def _open(self, config: Config, *, replace_damaged: bool = False) -> Memory:
        from klaw_core.memory import Memory

        return Memory.open(config, registry=_registry(config), replace_damaged=replace_damaged)

    def find_server(self) -> Server | None:
        """Return the server that has this memory open, or None. Raise ConfigError."""
        return _server_of(self.load_config())

    def ask(self, question: Callable[[Memory | ServedMemory], Answer]) -> Answer:
        """Call ``question`` with a server that has this memory open; if there is none or it fails, with the memory.

        The question may run twice, so it must not change anything. Raise ConfigError, PluginError or StoreError.
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
    """Return the plugins that the configuration needs."""
    from klaw_core.cli.entry_cache import installed

    chosen = {(selection.kind, selection.type) for selection in config.selections()}
    return installed(config.cache_dir, chosen, disabled=config.disabled_plugins)


def _server_of(config: Config) -> Server | None:
    """Return the server that has the memory of this configuration open, or None."""
    from klaw_core.files.layout import DataDirectory

    if not DataDirectory(config.data_dir).server.exists():
        return None
    from klaw_core.cli.served import Server

    return Server.of(config)


def _option_problems(selections: Sequence[Selection], disabled: Collection[str]) -> Sequence[str]:
    """Return the problems of component options; only called if the configuration has other problems."""
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
        if value:  # an option may be given before the command's name and absent after it
            setattr(context.ensure_object(Settings), name, value)

    return put


def given_options(context: click.Context) -> dict[str, str]:
    """Return the options of a command that were given on the command line, without the common ones.

    The keys are the names of parameters, the values the options: ``{"read_only": "--read-only"}``.
    """
    own = (parameter for parameter in context.command.params if isinstance(parameter, click.Option))
    return {
        str(option.name): option.opts[-1]
        for option in own
        if option.expose_value and context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
    }


def refuse_before_subcommand(context: click.Context) -> None:
    """Raise UsageError if an option of a group was given and a subcommand follows, for which it has no effect."""
    for option in given_options(context).values():
        group, name = context.command_path, context.invoked_subcommand
        raise click.UsageError(f"{option} is an option of `{group}`, not of `{group} {name}`", context)
