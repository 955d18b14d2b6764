"""Compare the configured embedder with another one, on the user's own questions: ``klaw models try``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from klaw_core import ModelNotFoundError, PluginNotFoundError, install_extras
from klaw_models.inventory import REMOTE, inventory
from klaw_models.kinds import KINDS
from klaw_models.manifest import MANIFEST
from klaw_models.reading import read_manifest

if TYPE_CHECKING:
    from klaw_core import Config
    from klaw_core.cli.kit import Output, Settings
    from klaw_eval.trials import Figures, Trial, Trials

_GGUF = ".gguf"
_EMBEDDING = "memory.embedding"
_NOT_KNOWN = "not known"


@frozen
class Candidate:
    """A configuration with another embedder, and the commands that switch to it."""

    config: Config
    commands: tuple[str, ...]


def candidate(name: str, config: Config) -> Candidate:
    """Return the configuration with the embedder that ``name`` means.

    It is a model that `klaw models list` shows, a model's directory or GGUF file, or TYPE or TYPE:MODEL. Raise
    ModelNotFoundError if it is a reranker, or a path without a model.
    """
    path = Path(name).expanduser()
    if path.suffix == _GGUF or (path / MANIFEST).is_file():
        kind = "gguf-embedder" if path.suffix == _GGUF else read_manifest(path).KIND
        if not path.exists():
            raise ModelNotFoundError(f"no such file: {path}", hint="klaw models list shows the available models")
        return _selected(name, config, kind, {"path": str(path.resolve())})
    entry = next((entry for entry in inventory(config.cache_dir) if entry.name == name), None)
    if entry is not None:
        if entry.problem:
            raise ModelNotFoundError(f"{name}: {entry.problem}", hint="klaw models verify")
        return _selected(name, config, entry.kind, {"model": name})
    component, _, model = name.partition(":")
    return _with(config, component, {"model": model} if model else {}, (f"klaw reindex --embedding {quote(name)}",))


def _selected(name: str, config: Config, kind: str, options: Mapping[str, str]) -> Candidate:
    """Return the candidate of a model of a kind, which is selected by its name or by its path."""
    section, component = KINDS[kind].RUN_BY
    if section != _EMBEDDING:
        raise ModelNotFoundError(
            f"{name} is a model of kind {kind}, which reorders results and embeds nothing",
            hint="klaw eval --compare compares two configurations",
        )
    commands = [f"klaw reindex --embedding {quote(f'{component}:{name}')}"]
    if "path" in options:
        given = {"type": component, **options}.items()
        commands = [f"klaw config set {quote(f'{section}.{key}')} {quote(value)}" for key, value in given]
        commands.append("klaw reindex")
    return _with(config, component, options, tuple(commands))


def _with(config: Config, component: str, options: Mapping[str, str], commands: tuple[str, ...]) -> Candidate:
    """Return the configuration with an embedder. As with `klaw reindex`, other options of the same type stay."""
    current = config.embedding
    kept = current.options if component == current.type else {}
    if options:  # either says which model it is
        kept = {key: value for key, value in kept.items() if key not in {"model", "path"}}
    embedding = evolve(current, type=component, options={**kept, **options}, fallback=())
    return Candidate(evolve(config, embedding=embedding), commands)


def try_model(settings: Settings, name: str, questions: Path, chunks: int) -> None:
    """Compare the configured embedder with another one, and print it; ``chunks`` limits the part, 0 means all.

    Raise KlawError for unusable questions, an unknown model, one that is not on this machine or fails.
    """
    from klaw_core.cli.kit import data, print_json

    try:
        from klaw_eval.datasets import read_questions
        from klaw_eval.progress import progress_bars
        from klaw_eval.trials import compare_embedders
    except ModuleNotFoundError as error:
        raise PluginNotFoundError("`klaw models try` needs `klaw eval`", hint=install_extras(["eval"])) from error
    asked = tuple(read_questions(questions).questions())
    config = settings.load_config()
    other = _of_file(settings, name) if name.endswith(".toml") else candidate(name, config)
    try:
        found = compare_embedders(config, other.config, asked, progress_bars(settings), chunks=chunks or None)
    except PluginNotFoundError as error:
        raise PluginNotFoundError(
            f"{name} is no known model, and no plugin provides an embedder of this type: {error.message}",
            hint="klaw models list shows models, klaw plugins embedders",
        ) from error
    sizes = [_model_bytes(trial.model, each) for trial, each in zip(found.trials, (config, other.config), strict=True)]
    if settings.json:
        print_json(trials_record(found, sizes))
        return
    print_trials(data(), found, sizes)
    data().line(f"to use the tried one: {', then '.join(other.commands)}")


def _of_file(settings: Settings, name: str) -> Candidate:
    """Return the embedder of a configuration file. Raise ConfigError."""
    config = evolve(settings, config_file=Path(name)).load_config()
    return Candidate(config, (f"copy [memory.embedding] from {name} to your configuration", "klaw reindex"))


def _model_bytes(model: str, config: Config) -> int | None:
    """Return the size of the files of a model on this machine; None if this is not known, as for a server's."""
    component, path = config.embedding.type, config.embedding.options.get("path")
    if path:
        place = Path(path).expanduser()
        if (place / MANIFEST).is_file():
            return sum(record.size or 0 for record in read_manifest(place).files.values()) or None
        return place.stat().st_size if place.is_file() else None
    runs = {"openvino": "onnx"}.get(component, component)
    here = (entry for entry in inventory(config.cache_dir) if entry.where != REMOTE and entry.name == model)
    return next((entry.size for entry in here if entry.kind and KINDS[entry.kind].RUN_BY[1] == runs), None)


def trials_record(found: Trials, sizes: Sequence[int | None]) -> dict[str, Any]:
    """Return the output of ``--json``."""
    part = found.part
    return {
        "questions": len(found.questions),
        "documents": len(part.paths),
        "all_documents": part.all_documents,
        "chunks": part.chunks,
        "all_chunks": part.all_chunks,
        "missing": part.missing,
        "configured": _record(found.trials[0], sizes[0]),
        "tried": _record(found.trials[1], sizes[1]),
    }


def _record(trial: Trial, size: int | None) -> dict[str, Any]:
    return {
        "embedder": trial.embedder,
        "model": trial.model,
        "dimension": trial.dimension,
        "model_bytes": size,
        **{
            kind: {"hit@1": round(each.hit(1), 4), "hit@5": round(each.hit(5), 4), "mrr": round(each.mrr, 4)}
            for kind, each in (("fused", trial.fused), ("vectors", trial.vectors))
        },
        "question_ms": round(1000 * trial.question_seconds, 1),
        "index_seconds": round(trial.index_seconds, 1),
        "index_bytes": trial.index_bytes,
        "reindex_seconds": round(trial.reindex_seconds),
    }


def print_trials(output: Output, found: Trials, sizes: Sequence[int | None]) -> None:
    """Print the two embedders side by side, and how many questions only one of them answers."""
    from klaw_core.cli.kit import StyledText, counted, duration
    from klaw_core.cli.kit import size as as_size
    from klaw_eval.trials import only_one_finds

    part, trials = found.part, found.trials
    output.line(
        f"{counted(len(found.questions), 'question')} about {counted(len(part.paths), 'document')} of "
        f"{part.all_documents:,}, {counted(part.chunks, 'chunk')} of {part.all_chunks:,}"
    )
    if part.missing:
        output.line(
            f"not in the memory: {counted(len(part.missing), 'right answer')}, the first is {part.missing[0]!r}"
        )
    output.line("")
    heads = [StyledText(head, "bold") for head in ("", "configured", "tried")]
    rows = [
        ["model", *(trial.model for trial in trials)],
        *_quality("", [trial.fused for trial in trials]),
        *_quality(", vectors alone", [trial.vectors for trial in trials]),
        ["a question, median", *(f"{1000 * trial.question_seconds:.0f} ms" for trial in trials)],
        ["dimension", *(f"{trial.dimension}" for trial in trials)],
        ["files of the model", *(as_size(size) if size else _NOT_KNOWN for size in sizes)],
        ["index of the part", *(as_size(trial.index_bytes) for trial in trials)],
        ["indexing the part", *(duration(trial.index_seconds) for trial in trials)],
        ["a reindex of all, about", *(duration(trial.reindex_seconds) for trial in trials)],
    ]
    output.rows([heads, *rows], right=(1, 2))
    only = only_one_finds(*(trial.fused for trial in trials))
    output.line("")
    output.line(f"among the first five only with the configured model: {only[0]}, only with the tried one: {only[1]}")


def _quality(said: str, figures: Sequence[Figures]) -> list[list[str]]:
    return [
        [f"hit@1{said}", *(f"{each.hit(1):.3f}" for each in figures)],
        [f"hit@5{said}", *(f"{each.hit(5):.3f}" for each in figures)],
        [f"MRR{said}", *(f"{each.mrr:.3f}" for each in figures)],
    ]
