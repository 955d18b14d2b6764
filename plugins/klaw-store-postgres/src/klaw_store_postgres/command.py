"""``klaw migrate``: copy everything from one memory to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import click
from attrs import evolve

from klaw_core import ConfigError, Memory
from klaw_core.cli.kit import Settings, common_options, counted, data, notify, pass_settings, print_json

if TYPE_CHECKING:
    from klaw_core import Config

_SQLITE = "sqlite://"
_POSTGRES = ("postgres://", "postgresql://")


@click.command("migrate", short_help="Copy a memory from SQLite to PostgreSQL, or back.")
@click.argument("source")
@click.argument("target")
@common_options
@pass_settings
def command(settings: Settings, *, source: str, target: str) -> None:
    """Copy the memory SOURCE to the memory TARGET: sqlite:///PATH/klaw.db or postgresql://USER@HOST/DATABASE.

    The command copies saved memories, conversations, core memory and other records, the list of workspaces, and
    computed vectors. Then it indexes TARGET, and compares the contents of both. SOURCE is not changed.
    """
    from klaw_store_postgres.migrating import migrate

    config = settings.load_config()
    with (
        Memory.open(config_of(config, source, is_source=True)) as first,
        Memory.open(config_of(config, target)) as second,
    ):
        report = migrate(first, second)
    if settings.json:
        print_json({"records": dict(report.records), "vectors": report.vectors, "differing": list(report.differing)})
        return
    for kind, count in report.records.items():
        data().line(f"{kind}: {count:,}")
    data().line(f"vectors: {report.vectors:,}")
    if report.differing:
        differing = counted(len(report.differing), "document")
        notify(settings, f"{differing} indexed differently; run `klaw index` on both memories")


def config_of(config: Config, place: str, *, is_source: bool = False) -> Config:
    """Return the configuration of the memory at a URL. Raise ConfigError for an invalid URL."""
    if place.startswith(_POSTGRES):
        kept = dict(config.store.options) if config.store.type == "postgres" else {}
        kept.pop("read_dsn", None)  # of the memory in the configuration, not of this one
        if is_source:  # how the target is to be made; what a source is, its tables tell
            kept.pop("distributed", None)
        store = evolve(config.store, type="postgres", options={**kept, "dsn": place}, problem="")
        return evolve(config, store=store, default_retrieval=True)
    if place.startswith(_SQLITE):
        path = Path(unquote(place.removeprefix(_SQLITE))).expanduser().absolute()
        directory, name = (path, "klaw.db") if path.is_dir() else (path.parent, path.name)
        store = evolve(config.store, type="sqlite", options={"path": name}, problem="")
        return evolve(config, store=store, data_dir=directory, default_retrieval=True)
    scheme, found, _ = place.partition("://")
    shown = f"{scheme}://…" if found else place  # the rest may contain a password
    raise ConfigError(
        [f"{shown:.80} is not the address of a memory"],
        hint="use sqlite:///PATH/klaw.db or postgresql://USER@HOST/DATABASE",
    )
