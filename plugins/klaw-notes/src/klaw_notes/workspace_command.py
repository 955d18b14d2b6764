"""``klaw workspace``: list and change the indexed directories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from klaw_core.cli.kit import FreeText, Settings, common_options, format_option, pass_settings
from klaw_notes.completion import workspace_names

if TYPE_CHECKING:
    from klaw_core.cli.kit import StyledText


@click.group("workspace", short_help="List, rename, share, describe and restrict indexed directories.")
@common_options
def command() -> None:
    """List, rename, remove, share, describe and restrict the directories of notes that klaw index remembers."""


@command.command("list", short_help="List the indexed directories.")
@format_option
@common_options
@pass_settings
def list_command(settings: Settings, *, form: str | None, limit: int | None = None) -> None:
    """List the indexed directories with their exclude patterns."""
    from klaw_core import to_json
    from klaw_core.cli.kit import Listing, chosen_format, show

    form = chosen_format(settings, form)
    with settings.open_memory() as memory:
        rows = [to_json(workspace) for workspace in memory.workspaces.list()[:limit]]
    columns = ("name", "root", "collection", "version", "include", "exclude", "documents", "chunks")
    show(settings, Listing(rows, columns, "root", _cells, "nothing is indexed yet: klaw index DIR", right=(1, 2)), form)


@command.command("rename", short_help="Rename a workspace.")
@click.argument("name", shell_complete=workspace_names)
@click.argument("new_name")
@common_options
@pass_settings
def rename_command(settings: Settings, *, name: str, new_name: str) -> None:
    """Rename the workspace NAME: the paths of its notes then start with NEW_NAME. Nothing is embedded again."""
    from klaw_core.cli.kit import progress_bar
    from klaw_core.cli.reports import report_run

    with settings.open_memory() as memory, progress_bar(settings) as on_progress:
        report = memory.workspaces.rename(name, new_name, on_progress=on_progress)
    report_run(settings, new_name, report)


@command.command("remove", short_help="Remove a workspace and its documents from the index.")
@click.argument("name", shell_complete=workspace_names)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@common_options
@pass_settings
def remove_command(settings: Settings, *, name: str, yes: bool) -> None:
    """Remove the workspace NAME from the index, like klaw forget NAME/. Its files stay."""
    from klaw_core.cli.forget import ask_to_forget, report_forgotten

    with settings.open_memory() as memory:
        if not yes:
            ask_to_forget(memory, f"{name}/")
        gone = memory.workspaces.remove(name)
        later = memory.erases_later
    report_forgotten(settings, gone, later)


@command.command("exclude", short_help="Exclude files of a workspace, or include them again.")
@click.argument("name", shell_complete=workspace_names)
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option("--remove", is_flag=True, help="Stop excluding these patterns.")
@common_options
@pass_settings
def exclude_command(settings: Settings, *, name: str, patterns: tuple[str, ...], remove: bool) -> None:
    """Exclude files that match a PATTERN from the workspace NAME. A PATTERN is a path below its directory: 'drafts/*'.

    * also matches /. A PATTERN that matches a directory excludes everything in it. Without a PATTERN, print the current
    patterns.
    """
    from klaw_core.cli.kit import notify, progress_bar
    from klaw_core.cli.reports import report_run

    if not patterns:
        if remove:
            raise click.UsageError("--remove needs a PATTERN")
        _show_patterns(settings, name)
        return
    with settings.open_memory() as memory, progress_bar(settings) as on_progress:
        added, removed = ((), patterns) if remove else (patterns, ())
        report = memory.workspaces.exclude(name, *added, remove=removed, on_progress=on_progress)
    report_run(settings, name, report)
    if added and not report.removed:
        notify(settings, "no indexed file matches; a PATTERN is a path below the workspace's directory")


@command.command("share", short_help="Let other machines use a workspace under the same name.")
@click.argument("name", shell_complete=workspace_names)
@common_options
@pass_settings
def share_command(settings: Settings, *, name: str) -> None:
    """Share the workspace NAME: the machines that do so exclude the same notes from it. `klaw sync` tells the others.

    Its notes stay files: another program carries them, and each machine indexes its copy with `klaw index DIR --name
    NAME`. A note that is forgotten on one machine is forgotten on all. Other workspaces are private.
    """
    from klaw_core.cli.kit import notify, print_json, progress_bar

    with settings.open_memory() as memory, progress_bar(settings) as on_progress:
        report = memory.workspaces.share(name, on_progress=on_progress)
    if settings.json:
        print_json({"name": name, "shared": True, "added": report.added, "removed": report.removed})
        return
    for notice in report.notices:
        notify(settings, notice)
    notify(settings, f"{name} is shared: `klaw sync` tells the other machines, `klaw sync status` shows it")


@command.command("unshare", short_help="Make a shared workspace private again, on all machines.")
@click.argument("name", shell_complete=workspace_names)
@common_options
@pass_settings
def unshare_command(settings: Settings, *, name: str) -> None:
    """Make the shared workspace NAME private again, on all machines. Each keeps its notes and its exclude patterns."""
    from klaw_core.cli.kit import notify, print_json

    with settings.open_memory() as memory:
        memory.workspaces.unshare(name)
    if settings.json:
        print_json({"name": name, "shared": False})
    else:
        notify(settings, f"{name} is private; the next `klaw sync` tells the other machines")


@command.command("describe", short_help="Say what a directory is, which is shown with its results.")
@click.argument("directory", metavar="DIR", shell_complete=workspace_names)
@click.argument("text", nargs=-1, type=FreeText(), metavar="[TEXT]...")
@click.option("--remove", is_flag=True, help="Remove the description.")
@common_options
@pass_settings
def describe_command(settings: Settings, *, directory: str, text: tuple[str, ...], remove: bool) -> None:
    """Say what DIR is: a workspace (notes), a path in it (notes/People) or a directory.

    Every search shows TEXT with the results below DIR, to you and to models. Without TEXT, print the descriptions of
    the workspace.
    """
    from klaw_core.cli.kit import notify, print_json

    if remove and text:
        raise click.UsageError("--remove takes no TEXT")
    if not (remove or text):
        _show_descriptions(settings, directory)
        return
    with settings.open_memory() as memory:
        said = None if remove else " ".join(text)
        place = memory.workspaces.describe(directory, said)
    if settings.json:
        print_json({"path": place, "description": said})
    else:
        notify(settings, f"{place}: {'the description is removed' if remove else 'described'}")


def _show_descriptions(settings: Settings, directory: str) -> None:
    from klaw_core.cli.kit import data, notify, print_json
    from klaw_notes.management import split_path
    from klaw_notes.workspace_list import workspaces_in

    known = workspaces_in(settings.load_config().data_dir)
    name, _ = split_path(directory, known, directory=True)
    described = dict(known.named(name).descriptions)
    if settings.json:
        print_json(described)
    elif not described:
        notify(settings, f"nothing in {name} has a description: klaw workspace describe {name} TEXT")
    for path, text in () if settings.json else described.items():
        data().line(f"{name}/{path}".rstrip("/"), ": ", text)


def _show_patterns(settings: Settings, name: str) -> None:
    from klaw_core.cli.kit import data, notify, print_json
    from klaw_notes.workspace_list import workspaces_in

    patterns = workspaces_in(settings.load_config().data_dir).named(name).exclude
    if settings.json:
        print_json(patterns)
    elif not patterns:
        notify(settings, f"{name} excludes nothing")
    for pattern in () if settings.json else patterns:
        data().line(pattern)


def _cells(row: Mapping[str, Any]) -> list[StyledText | str]:
    from klaw_core.cli.kit import StyledText, counted, tilde
    from klaw_notes.workspace_options import DEFAULT_INCLUDE

    remarks = [
        *([f"(in the collection {row['collection']})"] if row["collection"] != "memory" else []),
        *([f"(version {row['version']})"] if row["version"] else []),
        *([f"(reads {' '.join(row['include'])})"] if tuple(row["include"]) not in {DEFAULT_INCLUDE, ()} else []),
        *([f"(excludes {', '.join(row['exclude'])})"] if row["exclude"] else []),
        *([f"({row['trust']})"] if row["trust"] != "owner" else []),
        *([f"({described})"] if (described := row["descriptions"].get("")) else []),
        *(["(shared)"] if row["shared"] else []),
        *(["(configured)"] if row["configured"] else []),
        *([] if row["is_there"] else ["(missing)"]),
    ]
    return [
        StyledText(row["name"], "bold cyan"),
        counted(row["documents"], "note"),
        counted(row["chunks"], "chunk"),
        StyledText(" ".join((tilde(row["root"]), *remarks)), "dim"),
    ]
