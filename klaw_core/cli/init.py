"""``klaw init``: places for the index and the configuration, and whether the configured parts work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from klaw_core.cli.settings import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core.cli.components import ComponentState


@click.command("init", short_help="Create the data directory and a configuration file.")
@common_options
@pass_settings
def command(settings: Settings) -> None:
    """Create the data directory and a commented configuration file, and say what is missing or does not work.

    Nothing that exists is changed, so it can be run again at any time.
    """
    from klaw_core.cli.components import examine
    from klaw_core.cli.output import print_json
    from klaw_core.cli.template import render
    from klaw_core.config.edit import write_source
    from klaw_core.config.load import disabled_plugins, load_config, user_config_file
    from klaw_core.files.atomic import make_private_directory
    from klaw_core.plugins.discover import discover

    file = settings.config_file or user_config_file()
    new_file = not file.exists()
    if new_file:
        write_source(file, render(discover(disabled=disabled_plugins())))
    config = load_config(config_file=file, data_dir=settings.data_dir)
    new_directory = not config.data_dir.exists()
    make_private_directory(config.data_dir)
    writable = os.access(config.data_dir, os.W_OK | os.X_OK)
    parts = examine(config, discover(disabled=config.disabled_plugins))
    if settings.json:
        print_json(
            {
                "data_dir": config.data_dir,
                "writable": writable,
                "config": file,
                "created": [str(path) for path, new in ((config.data_dir, new_directory), (file, new_file)) if new],
                "components": [attrs.asdict(part) for part in parts],
            }
        )
    elif not settings.quiet:
        states = {config.data_dir: "created" if new_directory else "exists" if writable else "read-only"}
        _show({**states, file: "created" if new_file else "exists"}, parts)


_PERMISSIONS = "make the data directory writable, or choose another: --data-dir or KLAW_DATA_DIR"
_STYLES = {"created": "green", "exists": "dim", "read-only": "bold red"}


def _show(places: dict[Path, str], parts: list[ComponentState]) -> None:
    from klaw_core.cli.output import StyledText, data, tilde

    out = data()
    out.rows([[StyledText(state, _STYLES[state]), tilde(path)] for path, state in places.items()])
    out.line()
    rows: list[list[Any]] = [
        [
            StyledText(_state(part), "bold red" if part.problem else "green"),
            StyledText(part.kind, "dim"),
            StyledText(part.type, "bold"),
            StyledText(_fault(part), "cyan") if part.problem else StyledText(part.distribution, "dim"),
        ]
        for part in parts
    ]
    out.rows(rows)
    out.line()
    remedies = [_PERMISSIONS] if "read-only" in places.values() else []
    remedies += [part.remedy or "klaw doctor" for part in parts if part.problem]
    out.line("next: ", StyledText(remedies[0] if remedies else "klaw index DIR", "bold"))


def _state(part: ComponentState) -> str:
    """Return ``ready``, ``missing`` if nothing that is installed provides the part, or ``broken``."""
    if not part.problem:
        return "ready"
    return "broken" if part.distribution else "missing"


def _fault(part: ComponentState) -> str:
    return f"{part.problem} → {part.remedy}" if part.remedy else part.problem
