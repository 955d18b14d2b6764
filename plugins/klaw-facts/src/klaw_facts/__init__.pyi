from klaw_facts.facts import Facts
from klaw_facts.options import FactsOptions
from klaw_facts.store import FactStore, JournalFactStore, MemoryFactStore, inject
from klaw_facts.values import Compaction, Digest, Fact, Proposal, Quote

__all__ = [
    "Compaction",
    "Digest",
    "Fact",
    "FactStore",
    "Facts",
    "FactsOptions",
    "JournalFactStore",
    "MemoryFactStore",
    "Proposal",
    "Quote",
    "inject",
]
