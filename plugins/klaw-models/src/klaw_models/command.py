"""``klaw models``: list, fetch, try, verify and remove the models that embedders and rerankers run."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from klaw_core.cli.kit import MayBeEmpty, Settings, common_options, given_options, pass_settings
from klaw_models.manifest import MAX_LENGTH

if TYPE_CHECKING:
    from klaw_core.cli.kit import StyledText
    from klaw_models.adding import AddResult
    from klaw_models.inventory import Entry

_PATH = click.Path(path_type=Path, exists=True)
_LENGTH = click.IntRange(1, MAX_LENGTH)


@click.group("models", short_help="List, download and verify the models of embedders.")
@common_options
def command() -> None:
    """List, download, verify and remove the models of embedders and rerankers.

    Klaw looks for a model at the configured path, in the installed model packages, then in the cache. Only
    `klaw models add` downloads.
    """


@command.command("list", short_help="List the available models.")
@common_options
@pass_settings
def list_command(settings: Settings) -> None:
    """List the models that are installed, in the cache, or available for download."""
    from klaw_core.cli.kit import data, print_json
    from klaw_models.inventory import inventory

    entries = inventory(settings.load_config().cache_dir)
    if settings.json:
        print_json([attrs.asdict(entry) for entry in entries])
        return
    data().rows([_row(entry) for entry in entries], right=(2, 3))
    for entry in entries:
        if entry.problem:
            data().line(f"{entry.name}: {entry.problem}")


@command.command("add", short_help="Download a model, or add one that you have.")
@click.argument("name", required=False)
@click.option(
    "--from", "source", metavar="PATH", type=_PATH, help="Add this directory or GGUF file instead of a download."
)
@click.option("--dimension", type=_LENGTH, metavar="N", help="Length of its vectors.")
@click.option("--window", "window_tokens", type=_LENGTH, metavar="N", help="Number of tokens it reads at once.")
@click.option("--pooling", type=click.Choice(("mean", "cls", "last")), help="How token vectors become one vector.")
@click.option("--query-prefix", type=MayBeEmpty(), metavar="TEXT", help="Text put before each question.")
@click.option("--document-prefix", type=MayBeEmpty(), metavar="TEXT", help="Text put before each chunk.")
@click.option("--license", metavar="TEXT", default="", help="Its licence.")
@click.option("--cross-encoder", is_flag=True, help="The model scores pairs of question and chunk (a reranker).")
@common_options
@pass_settings
def add_command(settings: Settings, /, *, name: str | None, source: Path | None, **said: Any) -> None:
    """Download the known model NAME into the cache and verify it, or add the files at --from PATH.

    The options after --from describe a model that Klaw does not know; omit what its files already say.
    The environment variable HF_ENDPOINT selects a mirror of the hub.
    """
    from klaw_models.adding import ModelAdder
    from klaw_models.describing import ModelDescription
    from klaw_models.fetching import HUB, HUB_VARIABLE
    from klaw_models.progress import bytes_progress

    config = settings.load_config()
    hub_url = os.environ.get(HUB_VARIABLE) or HUB
    adding = ModelAdder(config.cache_dir, partial(bytes_progress, settings), offline=config.offline, hub_url=hub_url)
    if source is not None:
        _report_added(settings, adding.take(name, source, ModelDescription(**said)))
    elif given := given_options(click.get_current_context()):
        raise click.UsageError(f"{', '.join(given.values())}: what describes a model needs --from")
    elif name is None:
        raise click.UsageError("give a model; `klaw models list` shows the available ones")
    else:
        _report_added(settings, adding.fetch(name))


@command.command("try", short_help="Compare another model with yours, on your own questions.")
@click.argument("name")
@click.argument("questions", type=click.Path(path_type=Path), metavar="QUESTIONS.jsonl")
@click.option(
    "--chunks",
    type=click.IntRange(min=0),
    default=2_000,
    metavar="N",
    help="Index documents with about N chunks; 0 means all. [2000]",
)
@common_options
@pass_settings
def try_command(settings: Settings, /, *, name: str, questions: Path, chunks: int) -> None:
    """Ask your own questions with the configured model and with NAME, before a reindex. Nothing of yours changes.

    NAME is a model that `klaw models list` shows, its directory or GGUF file, TYPE or TYPE:MODEL of an embedder, or a
    configuration file (.toml) with [memory.embedding].

    Each line of QUESTIONS.jsonl is a question as `klaw eval --questions` takes it: {"question": "...", "path":
    "notes/a.md"} or {"question": "...", "text": "what the chunk contains"}. A part of your memory, with all documents
    that answer a question, is indexed with each model in a temporary directory.
    """
    from klaw_models.trying import try_model

    try_model(settings, name, questions, chunks)


@command.command("verify", short_help="Check every file of the installed models.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@common_options
@click.pass_context
def verify_command(context: click.Context, *, names: tuple[str, ...]) -> None:
    """Verify the hash of every file of the models NAME, or of all installed models. Exit with 1 if a file differs."""
    from klaw_core.cli.kit import StyledText, data, print_json
    from klaw_models.inventory import verify

    settings = context.ensure_object(Settings)
    problems = verify(names, settings.load_config().cache_dir)
    if settings.json:
        print_json([{"name": name, "sound": not said, "problems": said} for name, said in problems.items()])
    else:
        for name, said in problems.items():
            if not said:
                data().line(StyledText(name, "bold"), "  ok")
            for problem in said:
                data().line(StyledText(name, "bold"), StyledText("  broken  ", "bold red"), problem)
    if any(problems.values()):
        context.exit(1)


@command.command("remove", short_help="Remove a model from the cache.")
@click.argument("name")
@common_options
@pass_settings
def remove_command(settings: Settings, *, name: str) -> None:
    """Remove the model NAME from the cache; packages are removed by pip."""
    from klaw_core.cli.kit import data, print_json, tilde
    from klaw_models.cache import ModelCache

    directory = ModelCache(settings.load_config().cache_dir).remove(name)
    if settings.json:
        print_json({"name": name, "directory": directory})
    elif not settings.quiet:
        data().line(f"removed {tilde(directory)}")


def _row(entry: Entry) -> list[StyledText | str]:
    from klaw_core.cli.kit import StyledText, size

    here = {"package": StyledText("installed", "green"), "cache": StyledText("in the cache", "green")}
    return [
        StyledText(entry.name, "bold"),
        StyledText("broken", "bold red")
        if entry.problem
        else here.get(entry.where, StyledText("klaw models add", "dim")),
        f"{entry.dimension}-d" if entry.dimension else "",
        size(entry.size) if entry.size else "",
        entry.kind,
        entry.languages,
        StyledText(entry.license, "dim"),
    ]


def _report_added(settings: Settings, added: AddResult) -> None:
    from klaw_core.cli.kit import data, print_json, tilde
    from klaw_models.kinds import KINDS
    from klaw_models.known import KNOWN
    from klaw_models.reading import read_manifest

    if settings.json:
        print_json({"name": added.name, "directory": added.directory, "added": added.changed})
        return
    if settings.quiet:
        return
    verified = "added and verified" if added.name in KNOWN else "added"
    done = verified if added.changed else "is already installed and verified"
    data().line(f"{added.name} {done}: {tilde(added.directory)}")
    section, component = KINDS[read_manifest(added.directory).KIND].RUN_BY
    data().line(f"to use it: klaw config set {section}.type {component}")
    data().line(f"           klaw config set {section}.model {added.name}")
    if section == "memory.embedding":
        data().line("           klaw reindex")
