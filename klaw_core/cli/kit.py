"""The API for commands of other distributions, so that they look and behave like Klaw's own.

    import click
    from klaw_core.cli.kit import Settings, common_options, notify, pass_settings, print_json

    @click.command("hello", short_help="Greet.")
    @common_options
    @pass_settings
    def command(settings: Settings) -> None:
        with settings.open_memory() as memory:
            notify(settings, f"hello from {memory.config.data_dir}")

The distribution registers the command as an entry point: ``[project.entry-points."klaw.commands"]``,
``hello = "klaw_hello:command"``. If it raises a KlawError, Klaw prints one line and exits with status 1.

``settings.find_server()`` returns the server that has the memory open, or None. Its method
``call("memory.context", message="…")`` sends a request, and raises NotServedError if there is no valid answer.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_core.cli.client_files import (
        confirm_client_file,
        own_command,
        read_client_file,
        write_client_file,
        write_file,
    )
    from klaw_core.cli.dates import as_of, since, until, when
    from klaw_core.cli.empty_values import MayBeEmpty
    from klaw_core.cli.free_text import FreeText
    from klaw_core.cli.listings import Listing, chosen_format, format_option, show
    from klaw_core.cli.moments import shown_day, shown_moment
    from klaw_core.cli.neutral import escaped_json, plain_lines, visible, visible_json
    from klaw_core.cli.notices import notify
    from klaw_core.cli.numbers import Number, NumberRange
    from klaw_core.cli.output import (
        Output,
        StyledText,
        counted,
        data,
        duration,
        notices,
        print_json,
        size,
        tilde,
    )
    from klaw_core.cli.progress import progress_bar
    from klaw_core.cli.served import NotServedError, ServedMemory, Server
    from klaw_core.cli.settings import (
        Settings,
        common_options,
        given_options,
        pass_settings,
        refuse_before_subcommand,
    )
    from klaw_core.cli.shown_paths import with_shown_path
    from klaw_core.cli.startup import run
    from klaw_core.cli.streams import echo, trusted
    from klaw_core.cli.units import systemd_unit
    from klaw_core.cli.warm import (
        HELPER_COMMANDS,
        HELPER_GREETING,
        HELPER_NUMBER_BYTES,
        HELPER_SOCKET,
        connect,
        installation,
    )

# The public names by the module that defines them. Each is imported at its first use, so that a command loads only the
# modules that it uses.
_MODULES = {
    "client_files": "confirm_client_file own_command read_client_file write_client_file write_file",
    "dates": "as_of since until when",
    "empty_values": "MayBeEmpty",
    "free_text": "FreeText",
    "listings": "Listing chosen_format format_option show",
    "moments": "shown_day shown_moment",
    "neutral": "escaped_json plain_lines visible visible_json",
    "notices": "notify",
    "numbers": "Number NumberRange",
    "output": "Output StyledText counted data duration notices print_json size tilde",
    "progress": "progress_bar",
    "served": "NotServedError ServedMemory Server",
    "settings": "Settings common_options given_options pass_settings refuse_before_subcommand",
    "shown_paths": "with_shown_path",
    "startup": "run",
    "streams": "echo trusted",
    "units": "systemd_unit",
    "warm": "HELPER_COMMANDS HELPER_GREETING HELPER_NUMBER_BYTES HELPER_SOCKET connect installation",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "HELPER_COMMANDS",
    "HELPER_GREETING",
    "HELPER_NUMBER_BYTES",
    "HELPER_SOCKET",
    "FreeText",
    "Listing",
    "MayBeEmpty",
    "NotServedError",
    "Number",
    "NumberRange",
    "Output",
    "ServedMemory",
    "Server",
    "Settings",
    "StyledText",
    "as_of",
    "chosen_format",
    "common_options",
    "confirm_client_file",
    "connect",
    "counted",
    "data",
    "duration",
    "echo",
    "escaped_json",
    "format_option",
    "given_options",
    "installation",
    "notices",
    "notify",
    "own_command",
    "pass_settings",
    "plain_lines",
    "print_json",
    "progress_bar",
    "read_client_file",
    "refuse_before_subcommand",
    "run",
    "show",
    "shown_day",
    "shown_moment",
    "since",
    "size",
    "systemd_unit",
    "tilde",
    "trusted",
    "until",
    "visible",
    "visible_json",
    "when",
    "with_shown_path",
    "write_client_file",
    "write_file",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"klaw_core.cli.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
