"""Open journals without a memory, for commands that need only these and no intact database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from klaw_core.config.tables import DEFAULTS
from klaw_core.files.journals import FileJournals
from klaw_core.files.layout import DataDirectory
from klaw_core.holds import Closing

if TYPE_CHECKING:
    from klaw_core.interfaces.journal import Journals
    from klaw_core.plugins.registry import Registry
    from klaw_core.values.config import Config


@contextmanager
def open_journals(config: Config, find_registry: Callable[[], Registry]) -> Iterator[Journals]:
    """Open the journals: those of the store, if it has its own, else the files of the data directory.

    Raise ConfigError, PluginError, StoreError.
    """
    if not keeps_journals(config, find_registry):
        yield FileJournals(DataDirectory(config.data_dir))
        return
    from klaw_core.assembly import build_store

    with Closing[Any](lambda: build_store(config, find_registry())) as store:
        yield store.journals


def keeps_journals(config: Config, find_registry: Callable[[], Registry]) -> bool:
    """Return whether the configured store has its own journals. Raise PluginError if there is no such store.

    The default store has none. Its plugin is not loaded, so commands that need no database work without it.
    """
    if config.store.type == DEFAULTS["memory"]["store"]["type"]:
        return False
    from klaw_core.kinds import STORE

    return find_registry().component(STORE, config.store.type).keeps_journals
