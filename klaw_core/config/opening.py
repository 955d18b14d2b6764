"""The configuration for ``Memory.open``, which takes a configuration, a database file or a data directory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from klaw_core.config.load import load_config
from klaw_core.errors import ConfigError
from klaw_core.values.config import Config, Selection

Check = Callable[[Sequence[Selection], Collection[str]], Sequence[str]]


def config_for(given: Config | str | Path | None, data_dir: str | Path | None, check: Check) -> Config:
    """Return the configuration to assemble a memory from.

    A path with a suffix (``notes.db``) is the SQLite database; its data directory is ``notes.db-data`` next to it,
    unless ``data_dir`` names another one. Any other path is a data directory. Raise ConfigError.
    """
    if given is None:
        return load_config(data_dir=data_dir, check=check)
    if not isinstance(given, str | Path):
        return given if data_dir is None else evolve(given, data_dir=_absolute(data_dir))
    if str(given) in {"", ":memory:"}:
        raise ConfigError(
            [f"{str(given)!r} is not a file name"],
            hint='for a memory in RAM configure [memory.store] with type = "memory"',
        )
    path = _absolute(given)
    if path.is_dir() or not path.suffix:
        if data_dir is not None:
            raise ConfigError([f"{given} and {data_dir} are different data directories"], hint="give one of them")
        return load_config(data_dir=path, check=check)
    store: dict[str, Any] = {"type": "sqlite", "path": str(path)}
    directory = data_dir or path.with_name(f"{path.name}-data")
    return load_config(data_dir=directory, overrides={"memory": {"store": store}}, check=check)


def _absolute(path: str | Path) -> Path:
    return Path(path).expanduser().absolute()
