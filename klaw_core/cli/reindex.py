"""``klaw reindex``: everything anew, perhaps with another model."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klaw_core.cli.settings import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core.values.config import Selection


@click.command("reindex", short_help="Rebuild the index from the files, optionally with another model.")
@click.option("--embedding", metavar="TYPE[:MODEL]", help="Switch to this embedder, and configure it when done.")
@common_options
@pass_settings
def command(settings: Settings, *, embedding: str | None) -> None:
    """Build a new index next to the present one, and switch to it when it is complete.

    Until then, searches use the old index. An interrupted run changes nothing, and the next run embeds nothing twice.
    With --embedding, the new embedder is written to the configuration at the end.
    """
    from klaw_core.cli.output import notify
    from klaw_core.cli.progress import progress_bar
    from klaw_core.cli.reports import interruptible, report_run
    from klaw_core.config.edit import read_source, write_source

    move = None if embedding is None else _plan(settings, embedding)
    with (
        settings.open_memory() as memory,
        interruptible(settings, "the index is unchanged; `klaw reindex` continues from here"),
    ):
        with progress_bar(settings) as on_progress:
            report = memory.reindex(None if move is None else move[0], on_progress=on_progress)
        # The index first: if this comes to nothing, the next command says that index and configuration differ, and
        # what fixes it; the other way round it would say the same for as long as the embedding takes.
        if move is not None:
            _, file, rewrite = move
            write_source(file, rewrite(read_source(file)))  # as it is by now: people edit it meanwhile
        report_run(settings, "reindexed", report)
        if move is not None:
            notify(settings, f"{move[1]} now uses the embedder {embedding}")


def _plan(settings: Settings, embedding: str) -> tuple[Selection, Path, Callable[[str], str]]:
    """Return what is to be configured, the file that will say so, and what makes its text say so. Raise ConfigError.

    Everything that could keep the file from being written, or from being heard, is found before anything is embedded.
    """
    from klaw_core.config.edit import read_source
    from klaw_core.config.files import DATA_CONFIG, user_config_file
    from klaw_core.config.layers import PROJECT_MEMORY
    from klaw_core.config.load import load_config
    from klaw_core.errors import ConfigError
    from klaw_core.values.config import named_embedding

    config = settings.load_config()
    selection = named_embedding(embedding, config.embedding)
    # The user's file configures every index that has no file of its own.
    is_own = config.own_data_dir and settings.config_file is None
    file = config.data_dir / DATA_CONFIG if is_own else settings.config_file or user_config_file()
    rewrite = partial(_with_embedder, embedding=embedding, selection=selection, is_own=is_own)
    text = rewrite(read_source(file))
    with tempfile.TemporaryDirectory(prefix="klaw-") as directory:
        candidate = Path(directory) / file.name
        candidate.write_text(text, "utf-8")
        if is_own:
            project = None if config.data_dir.name == PROJECT_MEMORY else Path.cwd()
            heard = load_config(data_dir=candidate.parent, directory=project).embedding
        else:
            heard = load_config(config_file=candidate, data_dir=settings.data_dir, directory=Path.cwd()).embedding
    if (heard.type, dict(heard.options)) != (selection.type, dict(selection.options)):
        raise ConfigError(
            [f"memory.embedding would stay {heard.type!r} although {file} sets {embedding}"],
            hint="unset KLAW_EMBEDDER, and check this project's klaw.toml",
        )
    place = file if file.exists() else file.parent
    if place.exists() and not os.access(place, os.W_OK):
        raise ConfigError([f"{file} cannot be written"], hint="set memory.embedding there by hand, then `klaw reindex`")
    return selection, file, rewrite


def _with_embedder(source: str, *, embedding: str, selection: Selection, is_own: bool) -> str:
    """Return the text of a configuration with this embedder, and its model if one was named. Raise ConfigError.

    A file that lies over the user's (``is_own``) names the model always: the other may change it.
    """
    from klaw_core.config.edit import with_value

    text, _ = with_value(source, "memory.embedding.type", selection.type)
    if "model" in selection.options and (":" in embedding or is_own):
        text, _ = with_value(text, "memory.embedding.model", selection.options["model"])
    return text
