"""A retriever as the configuration has it."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from klaw_core.interfaces.index import Retriever


@frozen(eq=False, repr=False)
class ConfiguredRetriever:
    """One retriever as configured. ``problem`` says why it cannot take part; then it is not asked."""

    name: str
    retriever: Retriever[Any]
    weight: float
    problem: str = ""
