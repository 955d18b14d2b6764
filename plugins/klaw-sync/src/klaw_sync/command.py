"""``klaw sync``: synchronise this memory with other machines, through a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from klaw_core.cli.kit import (
    Settings,
    StyledText,
    common_options,
    counted,
    data,
    notify,
    pass_settings,
    print_json,
)

if TYPE_CHECKING:
    from klaw_sync.extension import SyncExtension
    from klaw_sync.here import Missing, SyncReport

_CODE = "KLAW_SYNC_CODE"


class _Sync(click.Group):
    """A group that takes places: ``klaw sync DIR`` is ``klaw sync run DIR``."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Insert ``run`` unless a subcommand or the help is named."""
        if not args or (args[0] not in self.commands and args[0] not in {"--help", "-h"}):
            args = ["run", *args]
        return super().parse_args(context, args)


@click.group("sync", cls=_Sync, short_help="Share this memory with other machines, through a folder.")
@common_options
def command() -> None:
    """Share this memory with other machines. `klaw sync DIR` synchronises with the folder DIR, as `klaw sync run` does.

    The folder is carried by Syncthing, Dropbox, a network disk or a stick. Klaw needs no server.
    """


@command.command("run", short_help="Synchronise with folders.")
@click.argument("places", metavar="[DIR]...", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Only say what would be sent and received.")
@click.option(
    "--missing",
    type=click.Choice(("restore", "forget")),
    help="Bring back, or forget everywhere, what is missing here although nobody has forgotten it.",
)
@click.option("--again", is_flag=True, help="Repeat it until interrupted, every `interval_seconds`.")
@common_options
@pass_settings
def run(settings: Settings, *, places: tuple[str, ...], dry_run: bool, missing: Missing | None, again: bool) -> None:
    """Send what has changed here, receive what has changed elsewhere, and update the index.

    DIR is a folder, the address of a git repository (`ssh://…`, `git@…`, `git+https://…`, or a path that ends in .git),
    or `s3://BUCKET/PREFIX`; without one, those of `remotes` in the table `extensions.sync` of the configuration.
    """
    if sum((again, dry_run, missing is not None)) > 1:
        raise click.UsageError("--dry-run, --missing and --again: give only one of them")
    with _extension(settings) as sync:
        if again:
            from klaw_sync.background import Synchroniser

            seconds = max(1, sync.options.interval_seconds)
            sync.remotes(places)  # a mistake in a place ends it at once
            Synchroniser(lambda: sync.run(places), seconds, lambda report: _tell(settings, report)).loop()
        report = sync.run(places, dry_run=dry_run, missing=missing or "keep")
    _show(settings, report, dry_run=dry_run)
    if report.problems:
        raise SystemExit(1)


def _tell(settings: Settings, report: SyncReport) -> None:
    """Show a run that has changed something, or that went wrong."""
    if report.sent or report.received or report.forgotten or report.problems:
        _show(settings, report, dry_run=False)


def _show(settings: Settings, report: SyncReport, *, dry_run: bool) -> None:
    if settings.json:
        from klaw_core import to_json

        print_json(to_json(report))
        return
    if not settings.quiet:
        done = [f"received {report.received:,}", f"forgot {report.forgotten:,}"]
        told = [f"would send {report.sent:,}", f"would receive {report.received:,}"]
        parts = told if dry_run else [f"sent {report.sent:,}", *done]
        if report.conflicts:
            parts.append(f"{counted(len(report.conflicts), 'conflict')} (klaw sync conflicts)")
        if report.missing:
            parts.append(f"{counted(report.missing, 'record')} missing here (--missing)")
        data().line(" · ".join(parts))
    if report.withheld and not settings.quiet:
        notify(settings, f"{counted(report.withheld, 'record')} with secrets stay here, because encrypt = false")
    for problem in (*report.problems, *(f"{name} (it is tried again)" for name in report.waiting), *report.gaps):
        notify(settings, problem)


def _given(place: str | None) -> tuple[str, ...]:
    return () if place is None else (place,)


@command.command("init", short_help="Share this memory: make a key and print the join code.")
@click.argument("place", metavar="[DIR]", required=False)
@common_options
@pass_settings
def init(settings: Settings, *, place: str | None) -> None:
    """Make a key for this memory, mark the folder DIR, and print the code with which other machines join.

    Without DIR, it is the first one of `remotes` in the table `extensions.sync` of the configuration.
    """
    with _extension(settings) as sync:
        key = sync.sync.init(sync.remotes(_given(place))[0])
    if settings.json:
        print_json({"memory": key.memory, "code": key.code})
        return
    notify(settings, "the join code is a password: with it and the folder, anyone can read and change this memory")
    data().line(key.code)


@command.command("join", short_help="Join a memory that another machine shares.")
@click.argument("place", metavar="[DIR]", required=False)
@common_options
@pass_settings
def join(settings: Settings, *, place: str | None) -> None:
    """Join the memory of the folder DIR, and synchronise.

    Without DIR, it is the first one of `remotes` in the table `extensions.sync` of the configuration.
    The code is read from the environment variable KLAW_SYNC_CODE, or from the terminal. Other
    users can see arguments, so it is never one. What this machine already has is added to the memory.
    """
    code = os.environ.get(_CODE, "")
    if not code:
        if not sys.stdin.isatty():
            raise click.UsageError(f"no join code: set {_CODE}, or run this in a terminal")
        code = click.prompt("Join code", hide_input=True)
    from klaw_sync.run import RemovedError  # slow

    with _extension(settings) as sync:
        sync.sync.join(sync.remotes(_given(place))[0], code)
        try:
            report = sync.run(_given(place))
        except RemovedError:  # as this machine has only learned now: it joins under a new id
            sync.sync.join(sync.remotes(_given(place))[0], code)
            report = sync.run(_given(place))
    _show(settings, report, dry_run=False)
    if report.problems:
        raise SystemExit(1)


@command.command("code", short_help="Print the join code.")
@common_options
@pass_settings
def code(settings: Settings) -> None:
    """Print the code with which another machine joins. It is a password."""
    with _extension(settings) as sync:
        key = sync.sync.key
    if settings.json:
        print_json({"memory": key.memory, "code": key.code})
    else:
        data().line(key.code)


@command.command("status", short_help="Show the machines that share this memory.")
@common_options
@pass_settings
def status(settings: Settings) -> None:
    """Show the machines that share this memory, the last time that each wrote something, and the shared workspaces."""
    with _extension(settings) as sync:
        memory, machines = sync.sync.key.memory, sync.machines()
        conflicts, gaps = sync.sync.conflicts(), sync.sync.gaps()
        shared, private = sync.workspaces()
    if settings.json:
        rows = [
            {
                "id": one.id,
                "name": one.host,
                "segment": one.last,
                "at": str(one.at or ""),
                "own": one.is_own,
                "removed": one.is_removed,
            }
            for one in machines
        ]
        workspaces = [{"name": name, "here": here} for name, here in shared.items()]
        print_json(
            {
                "memory": memory,
                "machines": rows,
                "conflicts": len(conflicts),
                "workspaces": workspaces,
                "private_workspaces": private,
                "gaps": gaps,
            }
        )
        return
    data().line(f"memory {memory} · {counted(len(conflicts), 'conflict')}")
    for one in machines:
        when = (
            "this machine" if one.is_own else f"last change {one.at:%Y-%m-%d %H:%M} UTC" if one.at else "no change yet"
        )
        when += ", removed" if one.is_removed else ""
        data().line(StyledText(one.host or one.id, "bold cyan"), f"  {one.id}  segment {one.last:,}  {when}")
    for name, here in shared.items():
        told = "shared" if here else f"shared elsewhere: klaw index DIR --name {name}; klaw workspace share {name}"
        data().line(StyledText(f"{name}/", "bold cyan"), f"  {told}")
    if private:
        data().line(f"{counted(private, 'private workspace')}")
    for told in gaps:
        notify(settings, told)


@command.command("remove", short_help="Stop reading what a machine writes.")
@click.argument("machine", metavar="MACHINE")
@click.argument("places", metavar="[DIR]...", nargs=-1)
@click.option("--new-key", is_flag=True, help="Write with a new key from now on, which the machine does not have.")
@common_options
@pass_settings
def remove(settings: Settings, *, machine: str, places: tuple[str, ...], new_key: bool) -> None:
    """Remove the machine named MACHINE (its name, or its id in `klaw sync status`), such as one that was lost or sold.

    First this machine synchronises with the folders DIR, or with the configured ones. If that fails, nothing is
    removed. What the machine has written there stays. What it writes from now on is not read by any machine, once that
    has synchronised. The join code stays valid: whoever has it can join again.

    With --new-key, MACHINE cannot read what is written with the new key; it can still read what was written before.
    Each other machine needs the new join code: `klaw sync code` here, `klaw sync join DIR` there. Until it has that, it
    writes with the old key and reads nothing new.
    """
    with _extension(settings) as sync:
        _ = sync.sync.key  # a memory that is not shared is the first thing to say
        removed = sync.remove(machine, places, new_key=new_key)
    if settings.json:
        print_json({"id": removed.id, "name": removed.host})
        return
    notify(settings, f"removed {removed.host or removed.id}; the next `klaw sync` tells the other machines")
    if new_key:
        notify(
            settings, "each other machine needs the new code: `klaw sync code` here, then `klaw sync join DIR` there"
        )


@command.command("doctor", short_help="Examine the folders.")
@click.argument("places", metavar="[DIR]...", nargs=-1)
@common_options
@pass_settings
def doctor(settings: Settings, *, places: tuple[str, ...]) -> None:
    """Read every file of the folders DIR, or of the configured ones, and say what cannot be used. Change nothing.

    The exit code is 1 if something was found.
    """
    with _extension(settings) as sync:
        _ = sync.sync.key  # a memory that is not shared is an error, not a finding
        found = [(remote.location, what) for remote in sync.remotes(places) for what in sync.sync.examine(remote)]
    if settings.json:
        print_json([{"place": place, "problem": what} for place, what in found])
    else:
        for place, what in found:
            data().line(StyledText(place, "bold cyan"), f"  {what}")
        if not found:
            notify(settings, "every file can be read")
    if found:
        raise SystemExit(1)


@command.command("conflicts", short_help="Show values that a later write has replaced unseen.")
@common_options
@pass_settings
def conflicts(settings: Settings) -> None:
    """Show each value that another machine has replaced without having seen it. To take one back, write it again."""
    with _extension(settings) as sync:
        found = sync.sync.conflicts()
    if settings.json:
        print_json([{"journal": one.kind, "id": one.id, "version": one.version.v, "text": one.text} for one in found])
        return
    for one in found:
        data().line(StyledText(f"{one.kind} {one.id}", "bold cyan"), f"  {one.version.v}")
        data().block(one.text or "(deleted)")
    if not found:
        notify(settings, "no conflicts")


@contextmanager
def _extension(settings: Settings) -> Iterator[SyncExtension]:
    from klaw_sync.extension import SyncExtension

    with settings.open_memory() as memory:
        yield memory.extension(SyncExtension)
