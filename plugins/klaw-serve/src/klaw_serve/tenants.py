"""The served memories: the owner's and those of agents, each with its events, its index run and its apps."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial

from attrs import define, field

from klaw_core import Agents, Config, Memory, NotFoundError, ThreadLock
from klaw_journals.trust import Trust
from klaw_serve.events import EventHub
from klaw_serve.index_run import IndexRun


@define(eq=False)
class Tenant:
    """A served memory. ``agent`` is empty for the owner's memory.

    ``trust`` is the class of what is written: that of the token with which a request came (:meth:`by`).
    """

    agent: str
    memory: Memory
    hub: EventHub
    run: IndexRun = field(init=False)
    trust: Trust = field(default="foreign", init=False)

    def by(self, trust: Trust) -> Tenant:
        """Return the same memory for a request whose token has this class."""
        found = copy(self)
        found.trust = trust
        return found

    def __attrs_post_init__(self) -> None:
        self.run = IndexRun(self.memory, self.hub.send)
        self.memory.on_change(self.hub.on)


@define(eq=False)
class Tenants:
    """The memories of one server. Thread-safe; all are closed together."""

    config: Config
    make_hub: Callable[[], EventHub]
    owner: Tenant = field(init=False)
    _agents: Agents = field(init=False)
    _open: dict[str, Tenant] = field(factory=dict, init=False)
    _opening: ThreadLock = field(factory=partial(ThreadLock, "the list of open memories"), init=False)

    @classmethod
    def of(cls, memory: Memory, make_hub: Callable[[], EventHub]) -> Tenants:
        """Serve a memory, and the memories of the agents below its data directory."""
        made = cls(memory.config, make_hub)
        made.owner = Tenant("", memory, make_hub())
        made._agents = Agents(memory.config)
        return made

    def get(self, agent: str) -> Tenant:
        """Return the memory of an agent; open it if necessary. Raise NotFoundError for an invalid name, StoreError."""
        if not agent:
            return self.owner
        with self._opening.hold():
            if agent not in self._open:
                memory = self._agents.memory(agent)
                if memory is None:
                    raise NotFoundError(f"the agent {agent!r} has no memory")
                self._open[agent] = Tenant(agent, memory, self.make_hub())
            return self._open[agent]

    def all(self) -> list[Tenant]:
        """Return the open memories."""
        return [self.owner, *self._open.values()]

    def close(self) -> None:
        """Wait for index runs to stop, and close all memories."""
        for tenant in self.all():
            tenant.run.close()
        self._agents.close()
        self.owner.memory.close()
