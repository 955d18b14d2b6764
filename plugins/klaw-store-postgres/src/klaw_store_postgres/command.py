"""``klaw migrate``: copy everything from one memory to another."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING
from urllib.parse import unquote

import click
from attrs import evolve

from klaw_core import ConfigError, Memory, NotFoundError
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

    For the memory of a directory, the path of the directory is enough. The command copies saved memories,
    conversations, core memory and other records, the list of workspaces, and computed vectors. Then it indexes TARGET,
    and compares the contents of both. SOURCE is not changed.
    """
    from klaw_store_postgres.migrating import migrate

    config = settings.load_config()
    places = config_of(config, source, is_source=True), config_of(config, target)  # both, before one is opened
    _require_source(places[0])
    with Memory.open(places[0]) as first, Memory.open(places[1]) as second:
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
    """Return the configuration of the memory at a URL, or in a directory. Raise ConfigError for another text."""
    if place.startswith(_POSTGRES):
        kept = dict(config.store.options) if config.store.type == "postgres" else {}
        kept.pop("read_dsn", None)  # of the memory in the configuration, not of this one
        if is_source:  # how the target is to be made; what a source is, its tables tell
            kept.pop("distributed", None)
        store = evolve(config.store, type="postgres", options={**kept, "dsn": place}, problem="")
        return evolve(config, store=store, default_retrieval=True)
    path = Path(unquote(place.removeprefix(_SQLITE)) if place.startswith(_SQLITE) else place).expanduser().absolute()
    if place.startswith(_SQLITE) or path.is_dir():
        directory, name = (path, "klaw.db") if path.is_dir() else (path.parent, path.name)
        store = evolve(config.store, type="sqlite", options={"path": name}, problem="")
        return evolve(config, store=store, data_dir=directory, default_retrieval=True)
    scheme, found, _ = place.partition("://")
    shown = f"{scheme}://…" if found else place  # the rest may contain a password
    raise ConfigError(
        [f"{shown:.80} is not the address of a memory"],
        hint="use the directory of a memory, sqlite:///PATH/klaw.db or postgresql://USER@HOST/DATABASE",
    )


def _require_source(config: Config) -> None:
    """Raise NotFoundError if the source is a file of SQLite that is missing: opening it would create a memory."""
    if config.store.type == "sqlite":
        database = config.data_dir / config.store.options["path"]
        if not database.exists():
            made = f"klaw --data-dir {quote(str(config.data_dir))} index"
            raise NotFoundError(
                f"there is no memory to copy: {database} does not exist",
                hint=f"`klaw status` shows where a memory is; if only its database is lost: {made}",
            )
