"""Memories of several agents, each with a database of its own below one data directory."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection
from types import TracebackType
from typing import Self

from attrs import evolve

from klaw_core.config.load import load_config
from klaw_core.errors import NotFoundError, PluginError
from klaw_core.files.layout import DataDirectory
from klaw_core.memory import Memory
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Registry
from klaw_core.values.config import Config

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")


class Agents:
    """Opens the memory of each agent at its first use, in ``{data_dir}/agents/{name}``, and keeps it open.

        with Agents() as agents:
            memory = agents.memory("researcher")

    Safe to use from several threads. :meth:`close` closes all memories.
    """

    def __init__(
        self, config: Config | None = None, *, registry: Registry | None = None, disabled: Collection[str] = ()
    ) -> None:
        """Take the configuration that every agent shares, and the names of agents that have no memory."""
        self._config = config or load_config()
        self._registry = registry or discover(disabled=self._config.disabled_plugins)
        self._disabled = frozenset(disabled)
        self._open: dict[str, Memory] = {}
        self._opening = threading.Lock()
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
        letter or digit first), or after :meth:`close`; PluginError if the store cannot keep agents apart; StoreError
        and others as ``Memory.open``.
        """
        if not _NAME.fullmatch(name):
            raise NotFoundError(f"{name!r} is not a valid agent name", hint="use letters, digits and -._@+")
        if name in self._disabled:
            return None
        with self._opening:
            if self._closed:
                raise NotFoundError(f"the memory of agent {name!r} is closed")
            if name not in self._open:
                directory = DataDirectory(self._config.data_dir).agent(name)
                memory = Memory.open(evolve(self._config, data_dir=directory, agent=name), registry=self._registry)
                if not memory.isolates:
                    memory.close()
                    raise PluginError(
                        f"the store {self._config.store.type!r} does not support separate memories for several agents",
                        hint="choose another store: `klaw plugins`",
                    )
                self._open[name] = memory
            return self._open[name]

    def close(self) -> None:
        """Close every memory that was opened; closing twice is allowed."""
        with self._opening:
            self._closed = True
            while self._open:
                _, memory = self._open.popitem()
                memory.close()
