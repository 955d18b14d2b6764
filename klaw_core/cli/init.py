"""``klaw init``: create the data directory and the configuration file, and check the configured components."""

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
@click.option("--here", is_flag=True, help="Give this directory a memory of its own, in .klaw/.")
@click.option("--yes", is_flag=True, help="Add the USER.md of this directory to core memory.")
@common_options
@pass_settings
def command(settings: Settings, *, here: bool, yes: bool) -> None:
    """Create the data directory and a commented configuration file, and report missing or broken parts.

    Existing files are not changed, so you can run it at any time. With --here the data directory is .klaw/ in the
    current directory; commands there and in its subdirectories then use only that memory. If the current directory has
    a USER.md, its facts can be added to core memory: --yes does it, and on a terminal you are asked.
    """
    if here and settings.data_dir is not None:
        raise click.UsageError("--here and --data-dir cannot be used together")
    from klaw_core.cli.components import examine
    from klaw_core.cli.config_edit import edit
    from klaw_core.cli.output import print_json
    from klaw_core.cli.template import render
    from klaw_core.config.files import user_config_file
    from klaw_core.config.load import disabled_plugins, load_config
    from klaw_core.files.atomic import make_private_directory
    from klaw_core.plugins.discover import discover

    file = settings.config_file or user_config_file()
    new_file = not file.exists()
    if new_file:
        edit(file, lambda source: (source or render(discover(disabled=disabled_plugins())), None))
    new_directory = here and not Path(".klaw").exists()
    if here:
        settings.data_dir = _make_project_memory(file)
    config = load_config(config_file=file, data_dir=settings.data_dir)
    new_directory = new_directory or not config.data_dir.exists()
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
        states |= {file: "created" if new_file else "exists"}
        _show(states, parts, "klaw index ." if here else "klaw index DIR")
    offer_user_md(settings, Path.cwd(), yes=yes, may_ask=not settings.json)


def offer_user_md(settings: Settings, directory: Path, **how: bool) -> None:
    """Offer to add the USER.md of a directory to core memory, if klaw-memories is installed."""
    if not (directory / "USER.md").is_file():
        return
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("klaw_memories") is not None:
        import_module("klaw_memories.offering").offer_user_md(settings, directory, **how)


def _make_project_memory(file: Path) -> Path:
    """Create .klaw/ in the current directory and list it in the user's configuration. Raise ConfigError."""
    from klaw_core.cli.config_edit import list_directory
    from klaw_core.config.layers import PROJECT_MEMORY
    from klaw_core.errors import ConfigError
    from klaw_core.files.atomic import make_private_directory, write_atomically

    directory = Path.cwd().resolve() / PROJECT_MEMORY
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise ConfigError([f"{directory} is not a directory"], hint="move it away, then `klaw init --here`")
    ignore = directory / ".gitignore"
    make_private_directory(directory)  # first: what is listed must exist
    if not ignore.exists():
        write_atomically(ignore, "# The memory in this directory is private.\n*\n")
    list_directory(file, "project_memories", directory.parent)
    return directory


_PERMISSIONS = "make the data directory writable, or choose another: --data-dir or KLAW_DATA_DIR"
_STYLES = {"created": "green", "exists": "dim", "read-only": "bold red"}


def _show(places: dict[Path, str], parts: list[ComponentState], following: str) -> None:
    from klaw_core.cli.output import StyledText, data, tilde

    out = data()
    out.rows([[StyledText(state, _STYLES[state]), tilde(path)] for path, state in places.items()])
    out.line()
    rows: list[list[Any]] = [
        [
            StyledText(_state(part), "bold red" if part.problem else "green"),
            StyledText(part.kind, "dim"),
            StyledText(part.type, "bold"),
            StyledText(" → ".join(filter(None, (part.problem, part.remedy))), "cyan")
            if part.problem
            else StyledText("; ".join(filter(None, (part.distribution, part.limitation))), "dim"),
        ]
        for part in parts
    ]
    out.rows(rows)
    out.line()
    remedies = [_PERMISSIONS] if "read-only" in places.values() else []
    remedies += [part.remedy or "klaw doctor" for part in parts if part.problem]
    out.line("next: ", StyledText(remedies[0] if remedies else following, "bold"))


def _state(part: ComponentState) -> str:
    """Return ``ready``, ``missing`` if no installed distribution provides the component, or ``broken``."""
    if not part.problem:
        return "ready"
    return "broken" if part.distribution else "missing"
