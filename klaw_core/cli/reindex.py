"""``klaw reindex``: rebuild the index, optionally with another model."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klaw_core.cli.settings import Settings, common_options, current_directory, pass_settings

if TYPE_CHECKING:
    from klaw_core.values.config import Selection


@click.command("reindex", short_help="Rebuild the index from the files, optionally with another model.")
@click.option("--embedding", metavar="TYPE[:MODEL]", help="Switch to this embedder, and configure it when done.")
@common_options
@pass_settings
def command(settings: Settings, *, embedding: str | None) -> None:
    """Build a new index next to the current one, and switch to it when it is complete.

    Until then, searches use the old index. An interrupted run changes nothing, and the next run embeds nothing twice.
    With --embedding, the new embedder is written to the configuration at the end. A damaged database is set aside, and
    the new one is built from your files.
    """
    from klaw_core.cli.config_edit import edit
    from klaw_core.cli.notices import notify
    from klaw_core.cli.progress import progress_bar
    from klaw_core.cli.reports import interruptible, report_run

    move = None if embedding is None else _plan(settings, embedding)
    with (
        settings.open_memory(replace_damaged=True) as memory,
        interruptible(settings, "the index is unchanged; `klaw reindex` continues from here"),
    ):
        with progress_bar(settings) as on_progress:
            report = memory.reindex(None if move is None else move[0], on_progress=on_progress)
        # Rebuild first, then write the configuration. If the write fails, the next command reports that index and
        # configuration differ. In the other order every command would report it during the whole rebuild.
        if move is not None:
            _, file, rewrite = move
            edit(file, lambda source: (rewrite(source), None))
        report_run(settings, "reindexed", report)
        if move is not None:
            notify(settings, f"{move[1]} now uses the embedder {embedding}")


def _plan(settings: Settings, embedding: str) -> tuple[Selection, Path, Callable[[str], str]]:
    """Return the new embedder, the configuration file to change, and a function that changes its text.

    Before anything is embedded, raise PluginError if no plugin provides the embedder, and ConfigError if the file
    cannot be written or another layer would override it.
    """
    from klaw_core.cli.config_edit import read_source
    from klaw_core.config.files import DATA_CONFIG, user_config_file
    from klaw_core.config.layers import PROJECT_MEMORY
    from klaw_core.config.load import load_config
    from klaw_core.errors import ConfigError
    from klaw_core.maintenance.reindex import check_embedder
    from klaw_core.values.config import named_embedding

    config = settings.load_config()
    selection = named_embedding(embedding, config.embedding)
    check_embedder(settings.registry(config), selection)
    # An index of its own data directory is configured by the file in it, all others by the user's file.
    is_own = config.own_data_dir and settings.config_file is None
    file = config.data_dir / DATA_CONFIG if is_own else settings.config_file or user_config_file()
    rewrite = partial(_with_embedder, embedding=embedding, selection=selection, is_own=is_own)
    text = rewrite(read_source(file))
    with tempfile.TemporaryDirectory(prefix="klaw-") as directory:
        candidate = Path(directory) / file.name
        candidate.write_text(text, "utf-8")
        if is_own:
            project = None if config.data_dir.name == PROJECT_MEMORY else current_directory()
            loaded = load_config(data_dir=candidate.parent, directory=project).embedding
        else:
            loaded = load_config(
                config_file=candidate, data_dir=settings.data_dir, directory=current_directory()
            ).embedding
    if (loaded.type, dict(loaded.options)) != (selection.type, dict(selection.options)):
        raise ConfigError(
            [f"memory.embedding would stay {loaded.type!r} although {file} sets {embedding}"],
            hint="unset KLAW_EMBEDDER, and check this project's klaw.toml",
        )
    place = file if file.exists() else file.parent
    if place.exists() and not os.access(place, os.W_OK):
        raise ConfigError([f"{file} cannot be written"], hint="set memory.embedding there by hand, then `klaw reindex`")
    return selection, file, rewrite


def _with_embedder(source: str, *, embedding: str, selection: Selection, is_own: bool) -> str:
    """Set the embedder, and its model if one was given, in the text of a configuration. Raise ConfigError.

    A data directory's own file (``is_own``) always names the model, because the user's file below it may change.
    """
    from klaw_core.cli.config_edit import with_value

    text, _ = with_value(source, "memory.embedding.type", selection.type)
    if "model" in selection.options and (":" in embedding or is_own):
        text, _ = with_value(text, "memory.embedding.model", selection.options["model"])
    return text
