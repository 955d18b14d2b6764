"""The journals of a memory, open or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from klaw_core import Closing, Host
from klaw_journals.file_journals import FileJournals
from klaw_journals.interfaces import JournalingStore

if TYPE_CHECKING:
    from klaw_core import Config
    from klaw_core.cli.kit import Settings
    from klaw_journals.interfaces import Journals


def journals_of(host: Host) -> Journals:
    """Return the journals of an extension's memory: those of the store if it has its own, else files.

    They contain the data that people own. The names that an extension uses should be, or begin with, its own.
    """
    store = host.store
    return store.journals if isinstance(store, JournalingStore) else FileJournals(host.data_dir)


@contextmanager
def open_journals(settings: Settings) -> Iterator[Journals]:
    """Open only the journals, for commands that need no more; this works if the database is damaged.

    Raise ConfigError, PluginError, StoreError.
    """
    config = settings.load_config()
    if not keeps_journals(settings, config):
        yield FileJournals(config.data_dir)
        return
    from klaw_core.assembly import build_store

    with Closing[Any](partial(build_store, config, settings.registry(config))) as store:
        yield store.journals


def keeps_journals(settings: Settings, config: Config) -> bool:
    """Return whether the configured store has its own journals. Raise PluginError if there is no such store.

    The default store has none. Its plugin is not loaded, so commands that need no database work without it.
    """
    from klaw_core.config.tables import DEFAULTS
    from klaw_core.kinds import STORE

    if config.store.type == DEFAULTS["memory"]["store"]["type"]:
        return False
    return settings.registry(config).component(STORE, config.store.type).keeps_journals
