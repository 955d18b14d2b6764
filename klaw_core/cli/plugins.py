"""``klaw plugins``: list the installed plugins, their components and their problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from klaw_core.cli.extensions import OpenGroup, installed
from klaw_core.cli.settings import Settings, common_options, pass_settings
from klaw_core.errors import ConfigError

if TYPE_CHECKING:
    from klaw_core.cli.output import Output
    from klaw_core.plugins.registry import Plugin


@click.group(
    "plugins",
    cls=OpenGroup,
    invoke_without_command=True,
    short_help="List the installed plugins and what they provide.",
)
@common_options
@pass_settings
@click.pass_context
def command(context: click.Context, settings: Settings) -> None:
    """List every plugin with its components (kind, and the name for `type =`) and its problems.

    The list ends with additional commands of `klaw` and the export formats that it can import.
    """
    if context.invoked_subcommand is None:
        _list(settings)


def _list(settings: Settings) -> None:
    from klaw_core.cli.notices import notify
    from klaw_core.cli.output import StyledText, data, print_json
    from klaw_core.plugins.discover import discover

    disabled: tuple[str, ...] = ()
    try:
        disabled = settings.load_config().disabled_plugins
    except ConfigError as error:  # the list of plugins works without the configuration, and may help to fix it
        notify(settings, *(f"ignored the configuration: {problem}" for problem in error.problems))
    plugins = discover(disabled=disabled).plugins
    if settings.json:
        print_json([_as_dict(plugin) for plugin in plugins])
        return
    for plugin in plugins:
        _show(data(), plugin)
    for title, prefix, owners in (
        ("commands", "klaw ", installed()),
        ("commands of klaw plugins", "klaw plugins ", installed("klaw.commands.plugins")),
        ("importers", "klaw import --from ", installed("klaw.importers")),
    ):
        if owners:
            data().line(StyledText(title, "bold cyan"))
            data().rows([[f"{prefix}{name}", StyledText(owner, "dim")] for name, owner in owners.items()], indent=2)


def _as_dict(plugin: Plugin) -> dict[str, Any]:
    components = [{"kind": kind, "name": name, "summary": summary} for kind, name, summary in plugin.components]
    return {
        "name": plugin.name,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "disabled": plugin.disabled,
        "problem": plugin.problem,
        "components": components,
    }


def _show(out: Output, plugin: Plugin) -> None:
    from klaw_core.cli.output import StyledText

    state = [StyledText("  disabled", "yellow")] if plugin.disabled else []
    out.line(
        StyledText(plugin.name, "bold cyan"),
        StyledText(f"  {plugin.distribution} {plugin.version}".rstrip(), "dim"),
        *state,
    )
    out.rows(
        [[kind, StyledText(name, "bold"), StyledText(summary, "dim")] for kind, name, summary in plugin.components],
        indent=2,
    )
    if plugin.problem:
        out.line(StyledText("broken: ", "bold red"), plugin.problem, indent=2)
