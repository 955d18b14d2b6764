"""``klaw config``: show and change the configuration."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from klaw_core.cli.settings import Settings, common_options, current_directory, pass_settings


@click.group("config", short_help="Show and change the configuration.")
@common_options
def command() -> None:
    """Show and change the configuration.

    A KEY is a dotted name: memory.fusion.k, memory.retrieval[0].weight.
    """


@command.command("list", short_help="Show every setting in force.")
@common_options
@pass_settings
def list_command(settings: Settings) -> None:
    """Show every setting in force; defaults are marked."""
    from klaw_core.cli.effective import effective, toml
    from klaw_core.cli.output import StyledText, data, print_json

    found = effective(settings.load_config())
    if settings.json:
        print_json({item.place: item.value for item in found})
        return
    for item in found:
        default = StyledText("  # default", "dim") if item.is_default else ""
        data().line(StyledText(item.place, "cyan"), f" = {toml(item.value)}", default)


@command.command("get", short_help="Print one setting, or all settings in a table.")
@click.argument("key")
@common_options
@pass_settings
def get_command(settings: Settings, *, key: str) -> None:
    """Print the value of KEY, or every setting in the table KEY."""
    from klaw_core.cli.effective import effective, toml
    from klaw_core.cli.output import print_json
    from klaw_core.cli.streams import echo
    from klaw_core.errors import ConfigError

    found = effective(settings.load_config())
    exact = [item for item in found if item.place == key]
    below = [item for item in found if item.place.startswith((f"{key}.", f"{key}["))]
    if not exact and not below:
        guess = _nearest(key, [item.place for item in found])
        meant = f"; did you mean {guess!r}?" if guess else ""
        raise ConfigError([f"no such setting: {key}{meant}"], hint="`klaw config list` shows all settings")
    if settings.json:
        print_json(exact[0].value if exact else {item.place: item.value for item in below})
    elif exact:
        value = exact[0].value
        echo(value if isinstance(value, str) else toml(value))
    else:
        echo("\n".join(f"{item.place} = {toml(item.value)}" for item in below))


@command.command("set", short_help="Change a setting in your configuration file.")
@click.argument("key")
@click.argument("value")
@common_options
@pass_settings
def set_command(settings: Settings, *, key: str, value: str) -> None:
    """Set KEY to VALUE in your configuration file; its comments stay.

    VALUE is a number, true, false, an array, or else a string. Nothing is written if the result would be invalid. A
    type that no installed plugin provides is written with a notice, because its plugin may be installed later.
    """
    from klaw_core.cli.config_edit import edit, parse_value, with_value
    from klaw_core.cli.effective import masked
    from klaw_core.cli.notices import notify
    from klaw_core.cli.output import data, print_json
    from klaw_core.config.load import load_config

    file = _user_file(settings)

    def change(source: str) -> tuple[str, tuple[Sequence[str], Sequence[str]]]:
        changed, removed = with_value(source, key, parse_value(value))
        return changed, (removed, _check_change(settings, key, source, changed))

    removed, missing = edit(file, change)
    dropped = (f"removed {place}, an option of the previous type" for place in removed)
    notify(settings, *dropped, *missing, *_override(settings, key, parse_value(value)))
    shown = masked(key, parse_value(value), load_config(config_file=file))
    if settings.json:
        print_json({"key": key, "value": shown, "config": file})
    elif not settings.quiet:
        data().line(f"{key} = {shown if shown != parse_value(value) else value}  ({file})")


@command.command("unset", short_help="Remove a setting from your configuration file.")
@click.argument("key")
@common_options
@pass_settings
def unset_command(settings: Settings, *, key: str) -> None:
    """Remove KEY, a setting or a whole table, from your configuration file, and so return to the default.

    Nothing is written if the result would be invalid.
    """
    from klaw_core.cli.config_edit import edit, without_value
    from klaw_core.cli.notices import notify
    from klaw_core.cli.output import data, print_json

    file = _user_file(settings)

    def change(source: str) -> tuple[str, tuple[bool, Sequence[str]]]:
        changed, was_there = without_value(source, key)
        return changed, (was_there, _check_change(settings, key, source, changed) if was_there else ())

    was_there, missing = edit(file, change)
    if was_there:
        notify(settings, *missing, *_override(settings, key, None))
    if settings.json:
        print_json({"key": key, "removed": was_there, "config": file})
    elif not settings.quiet:
        data().line(f"{key} removed  ({file})" if was_there else f"{key} is not set in {file}")


@command.command("path", short_help="Print the path of your configuration file.")
@common_options
@pass_settings
def path_command(settings: Settings) -> None:
    """Print the path of your configuration file, even if it does not exist. With --json, print all paths of Klaw."""
    from klaw_core.cli.output import print_json
    from klaw_core.cli.streams import echo
    from klaw_core.config.layers import project_file

    file = _user_file(settings)
    if not settings.json:
        echo(str(file))
        return
    config, here = settings.load_config(), current_directory()
    print_json(
        {
            "config": file,
            "exists": file.exists(),
            "project": None if here is None else project_file(here),
            "data_dir": config.data_dir,
            "cache_dir": config.cache_dir,
        }
    )


@command.command("trust", short_help="Trust a project's klaw.toml to set anything.")
@click.argument("directory", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@common_options
@pass_settings
def trust_command(settings: Settings, *, directory: Path) -> None:
    """Allow the klaw.toml of DIRECTORY (default: the current one) to set anything, plugins and paths included."""
    from klaw_core.cli.config_edit import list_directory
    from klaw_core.cli.output import data, print_json
    from klaw_core.config.layers import project_file
    from klaw_core.errors import ConfigError

    project = project_file(directory.resolve())
    if project is None:
        told = f"there is no klaw.toml in {directory.resolve()} or above it"
        raise ConfigError([told], hint="klaw config trust DIR, where DIR has the klaw.toml")
    file = _user_file(settings)
    list_directory(file, "trusted_projects", project.parent.resolve())
    if settings.json:
        print_json({"trusted": project.parent.resolve(), "config": file})
    elif not settings.quiet:
        data().line(f"{project} is now trusted  ({file})")


def _nearest(key: str, places: Sequence[str]) -> str:
    """Return the table or setting that was probably meant, or ``""``: with a similar name, or with the same ending."""
    by_name = {place.rpartition(".")[2]: place for place in reversed(places)}  # the first place of a name wins
    tables = sorted({place[:end] for place in places for end, letter in enumerate(place) if letter == "."})
    if table := get_close_matches(key, tables, n=1, cutoff=0.9):
        return table[0]
    ends = [place for place in places if place.endswith(f".{key}")]
    near = ends or get_close_matches(key, places, n=1) or get_close_matches(key.rpartition(".")[2], by_name, n=1)
    return by_name.get(near[0], near[0]) if near else ""


def _override(settings: Settings, key: str, value: Any) -> Iterator[str]:
    """Yield a notice if the value that a command has just given a key, None if it removed the key, has no effect.

    Layers of a higher precedence are the data directory, the project, and the environment.
    """
    from klaw_core.cli.effective import masked, toml
    from klaw_core.errors import ConfigError

    try:
        config = settings.load_config()
    except ConfigError:  # from another layer; the next command reports it
        return
    layer, winning = _decided(config.layers, key)
    if winning == value or layer in {"", str(_user_file(settings))}:
        return
    if winning is None:
        yield f"{layer} selects another type for {key.rpartition('.')[0]}, so {key} has no effect"
    else:
        yield f"{layer} sets it to {toml(masked(key, winning, config))}, which takes precedence"


def _user_file(settings: Settings) -> Path:
    from klaw_core.config.files import user_config_file

    return settings.config_file or user_config_file()


def _check_change(settings: Settings, key: str, source: str, changed: str) -> Sequence[str]:
    """Return a notice for each component of the changed configuration file that is not installed.

    If another layer overrides the changed setting, or prevents the check, the file is also checked by itself. Raise
    ConfigError if the change causes a problem.
    """
    from klaw_core.errors import ConfigError

    before, after = _checked(settings, key, source), _checked(settings, key, changed)
    new, missing = after.problems_beside(before), after.missing
    if not after.is_decisive:
        before, after = _checked(settings, key, source, alone=True), _checked(settings, key, changed, alone=True)
        new, missing = new + after.problems_beside(before), missing + after.missing
    if new:
        raise ConfigError(list(dict.fromkeys(new)), hint="nothing was changed; see `klaw config list`")
    return tuple(dict.fromkeys(missing))


@frozen
class _Checked:
    """The problems of a configuration, and notices on components that are not installed.

    ``is_decisive``: the user's file decides about the setting, and nothing prevented the check.
    """

    problems: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    is_decisive: bool = False

    def problems_beside(self, before: _Checked) -> list[str]:
        """Return the problems that ``before`` lacks."""
        return [problem for problem in self.problems if problem not in before.problems]


def _checked(settings: Settings, key: str, source: str, *, alone: bool = False) -> _Checked:
    """Check a text of the configuration file with the other layers, or ``alone``."""
    from klaw_core.cli.effective import check_options
    from klaw_core.config.load import load_config
    from klaw_core.errors import ConfigError

    file = _user_file(settings)
    environment = {name: value for name, value in os.environ.items() if not (alone and name == "KLAW_EMBEDDER")}
    with tempfile.TemporaryDirectory(prefix="klaw-") as directory:
        candidate = Path(directory) / file.name
        candidate.write_text(source, "utf-8")
        data_dir, project = (Path(directory), None) if alone else (settings.data_dir, current_directory())
        try:
            config = load_config(config_file=candidate, data_dir=data_dir, directory=project, environment=environment)
            problems, missing = check_options(config)
            decisive = _decided(config.layers, key)[0] in {"", str(candidate)}
        except ConfigError as error:
            problems, missing, decisive = list(error.problems), [], False
    renamed = (problem.replace(str(candidate), str(file)) for problem in problems)
    return _Checked(tuple(renamed), tuple(missing), decisive)


def _decided(layers: Sequence[tuple[str, Mapping[str, Any]]], place: str) -> tuple[str, Any]:
    """Return the name of the layer that decides about a setting, and the value; None if a layer has removed it.

    A layer removes a setting by another ``type`` of its table.
    """
    from klaw_core.config.layers import leaves, overlay

    name, value = "", None
    table: Mapping[str, Any] = {}
    for layer, own in layers:
        table = overlay(table, own)
        found = dict(leaves(table)).get(place)
        if found != value:
            name, value = layer, found
    return name, value
