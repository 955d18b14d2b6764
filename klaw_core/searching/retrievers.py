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

    @property
    def limitation(self) -> str:
        """What the retriever does without, empty if nothing; nothing of one that is not asked."""
        return "" if self.problem else str(getattr(self.retriever, "limitation", ""))

    @property
    def complaint(self) -> str:
        """What a person should know before anything is asked of it: that it is off, or what it does without."""
        if self.problem:
            return f"{self.name} is off: {self.problem}"
        return f"{self.name} {self.limitation}" if self.limitation else ""
