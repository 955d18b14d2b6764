"""Klaw extension `facts`: facts with their validity, history and quotes."""

from importlib import import_module

_MODULES = {
    "compaction": "recency_buffer",
    "facts": "Facts",
    "options": "FactsOptions",
    "store": "FactStore JournalFactStore MemoryFactStore inject",
    "values": "Compaction Digest Fact FactResults Proposal Quote",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605  # a list; type checkers read the stub


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"klaw_facts.{_MODULE_OF[name]}"), name)
