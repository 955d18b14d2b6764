"""``klaw init``: places for the index and the configuration, and a look at what is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from klaw_core.cli.settings import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core.config import Config
    from klaw_core.plugins import Registry


@attrs.frozen
class Part:
    """One component the configuration asks for. ``problem`` and ``remedy`` are empty if it is there."""

    kind: str
    type: str
    distribution: str = ""
    problem: str = ""
    remedy: str = ""


@click.command("init", short_help="Create the data directory and a configuration file.")
@common_options
@pass_settings
def command(settings: Settings) -> None:
    """Create the data directory and a commented configuration file, and say what is missing.

    Nothing that exists is changed, so it can be run again at any time.
    """
    from klaw_core.cli.output import print_json
    from klaw_core.cli.template import render
    from klaw_core.config import load_config
    from klaw_core.config.edit import write_source
    from klaw_core.config.load import user_config_file
    from klaw_core.files import make_private_directory
    from klaw_core.plugins import discover

    file = settings.config_file or user_config_file()
    new_file = not file.exists()
    if new_file:
        write_source(file, render(discover()))
    config = load_config(config_file=file, data_dir=settings.data_dir)
    new_directory = not config.data_dir.exists()
    make_private_directory(config.data_dir)
    parts = _parts(config, discover(disabled=config.disabled_plugins))
    if settings.json:
        print_json(
            {
                "data_dir": config.data_dir,
                "config": file,
                "created": [str(path) for path, new in ((config.data_dir, new_directory), (file, new_file)) if new],
                "components": [attrs.asdict(part) for part in parts],
            }
        )
    elif not settings.quiet:
        _show([(config.data_dir, new_directory), (file, new_file)], parts)


def _parts(config: Config, registry: Registry) -> list[Part]:
    from klaw_core.cli.effective import selections
    from klaw_core.errors import PluginError

    parts = []
    for selection in selections(config):
        try:
            registry.component(selection.kind, selection.type)
        except PluginError as error:
            parts.append(Part(selection.kind, selection.type, problem=error.message, remedy=error.hint))
        else:
            distribution = registry.offers[selection.kind, selection.type][0].distribution
            parts.append(Part(selection.kind, selection.type, distribution))
    return parts


def _show(places: list[tuple[Path, bool]], parts: list[Part]) -> None:
    from klaw_core.cli.output import Part as Text
    from klaw_core.cli.output import data, tilde

    out = data()
    rows: list[list[Any]] = [
        [Text("created", "green") if new else Text("exists", "dim"), tilde(path)] for path, new in places
    ]
    out.rows(rows)
    out.line()
    out.rows(
        [
            [
                Text("missing", "bold red") if part.problem else Text("ready", "green"),
                Text(part.kind, "dim"),
                Text(part.type, "bold"),
                Text(part.remedy or part.problem, "cyan") if part.problem else Text(part.distribution, "dim"),
            ]
            for part in parts
        ]
    )
    out.line()
    missing = [part for part in parts if part.problem]
    out.line("next: ", Text(missing[0].remedy if missing else "klaw index DIR", "bold"))
