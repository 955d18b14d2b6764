"""The configuration files: where they are, which of them apply, and which data directory is used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from klaw_core.config.layers import PROJECT_MEMORY, Layer, Table, project_file, project_memory, read_file
from klaw_core.config.places import user_directory
from klaw_core.errors import ConfigError

#: The name of the configuration file inside a data directory.
DATA_CONFIG = "config.toml"


# The environment is not a default argument: tools that print signatures would print its secrets.
def user_config_file(environment: Mapping[str, str] | None = None) -> Path:
    """Return the path of the user's configuration: ``KLAW_CONFIG``, or the platform's default. Raise ConfigError."""
    named = (os.environ if environment is None else environment).get("KLAW_CONFIG")
    return _at_home(Path(named), "KLAW_CONFIG") if named else user_directory("config") / "config.toml"


def _at_home(path: Path, name: str) -> Path:
    """Expand ``~`` in a path. Raise ConfigError if the named user does not exist."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ConfigError([f"{name}: {error}: {path}"]) from error


class ConfigFiles:
    """The configuration files to read and the data directory to use.

    The data directory is the named one, else the project's own, else the user's.
    """

    def __init__(
        self, config_file: Path | None, data_dir: Path | None, directory: Path | None, environment: Mapping[str, str]
    ) -> None:
        self._named = config_file is not None or bool(environment.get("KLAW_CONFIG"))
        self._environment = environment
        self._user_problems: list[str] = []
        self._user = config_file or user_config_file(environment)
        self._own = read_file(self._user, self._user_problems, named=self._named)
        self._project = None if directory is None else project_file(directory.absolute())
        self._memory = None if directory is None else project_memory(directory.absolute())
        self.notices: tuple[str, ...] = ()
        self.data_dir = self._data_dir(data_dir).absolute()

    def _data_dir(self, data_dir: Path | None) -> Path:
        if data_dir is not None:
            return _at_home(data_dir, "--data-dir")
        if named := self._environment.get("KLAW_DATA_DIR"):
            return _at_home(Path(named), "KLAW_DATA_DIR")
        if self._memory is not None:
            # A cloned repository may contain a stranger's .klaw. Its facts would reach a model as the user's own.
            if _lists(self._own, "project_memories", self._memory.parent):
                return self._memory
            advice = f"run `klaw init --here` in {self._memory.parent} to accept it"
            self.notices = (f"{self._memory} is not used: {advice}",)
        return user_directory("data")

    def layers(self, problems: list[str]) -> list[Layer]:
        """Return the layers, lowest precedence first; append a problem for each file that cannot be read."""
        problems.extend(self._user_problems)
        layers: list[Layer] = []
        if self._own is not None:
            layers.append(Layer(str(self._user), self._own, self._user))
        elif self._named:
            problems.append(f"{self._user}: no such file")
        of_data = self.data_dir / DATA_CONFIG
        if of_data != self._user and (table := read_file(of_data, problems)) is not None:
            layers.append(Layer(str(of_data), table, of_data))
        project = self._project
        if project is not None and project != self._user and (table := read_file(project, problems)) is not None:
            trusted = _lists(self._own, "trusted_projects", project.parent)
            owns_index = self.data_dir == project.parent / PROJECT_MEMORY
            layers.append(Layer(str(project), table, project, trusted=trusted, owns_index=owns_index))
        if embedder := self._environment.get("KLAW_EMBEDDER"):
            layers.append(Layer("KLAW_EMBEDDER", {"memory": {"embedding": {"type": embedder}}}))
        return layers


def _lists(own: Table | None, key: str, directory: Path) -> bool:
    """Return whether the user's configuration lists this directory under ``key``."""
    listed = (own or {}).get(key)
    return isinstance(listed, list) and os.path.realpath(directory) in listed
