"""Memories of several agents, each with a database of its own below one data directory."""

from __future__ import annotations

from collections.abc import Collection
from types import TracebackType
from typing import Self

from klaw_core.config.agents import agent_config, agent_error, check_agent_name
from klaw_core.config.load import load_config
from klaw_core.errors import ConfigError, NotFoundError, PluginError
from klaw_core.holds import ThreadLock, operations
from klaw_core.memory import Memory
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Registry
from klaw_core.values.config import Config


@operations
class Agents:
    """Opens the memory of each agent at its first use, in ``{data_dir}/agents/{name}``, and keeps it open.

        with Agents() as agents:
            memory = agents.memory("researcher")

    Safe to use from several threads. :meth:`close` closes all memories.
    """

    def __init__(
        self, config: Config | None = None, *, registry: Registry | None = None, disabled: Collection[str] = ()
    ) -> None:
        """Take the owner's configuration, and the names of agents that have no memory.

        An agent inherits components and limits, but no sources and no language model. Its own settings are in
        ``[agents.NAME]`` of the owner's files and in ``agents/NAME/config.toml``.
        """
        self._config = config or load_config()
        self._registry = registry or discover(disabled=self._config.disabled_plugins)
        self._disabled = frozenset(disabled)
        self._open: dict[str, Memory] = {}
        self._opening = ThreadLock("the list of open memories")
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def memory(self, name: str) -> Memory | None:
        """Return an agent's memory, None if it is disabled.

        Raise NotFoundError for a name that cannot be a directory's (letters, digits and ``-._@+``, at most 100, a
        letter or digit first), or after :meth:`close`; ConfigError for its own settings; PluginError if the store
        cannot keep agents apart; StoreError and others as ``Memory.open``.
        """
        check_agent_name(name)
        if name in self._disabled:
            return None
        with self._opening.hold():
            if self._closed:
                raise NotFoundError(f"the memory of agent {name!r} is closed")
            if name not in self._open:
                config = agent_config(self._config, name)
                if config is None:
                    return None
                memory = self._opened(config)
                if not memory.isolates:
                    memory.close()
                    raise PluginError(
                        f"the store {self._config.store.type!r} does not support separate memories for several agents",
                        hint="choose another store: `klaw plugins`",
                    )
                self._open[name] = memory
            return self._open[name]

    def _opened(self, config: Config) -> Memory:
        try:
            return Memory.open(config, registry=self._registry)
        except ConfigError as error:
            raise agent_error(config.agent, error.problems) from error

    def close(self) -> None:
        """Close every memory that was opened; closing twice is allowed."""
        with self._opening.hold():
            self._closed = True
            while self._open:
                _, memory = self._open.popitem()
                memory.close()
