"""The table ``[extensions.tools]``."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen, validators

from klaw_core.values.metadata import TRUST_CLASSES

# What the memory of an agent inherits from the owner's configuration: not the texts that its contexts trust.
_INHERITED = {"agents": True}
_OWN = {"agents": ()}
MAX_RESULTS = 50
MIN_BUDGET, MAX_BUDGET = 50, 20_000


def _between(least: float, most: float) -> list[Any]:
    return [validators.ge(least), validators.le(most)]


@frozen
class ToolsOptions:
    """Options of the extension ``tools``: what a model gets if its call does not say it.

    ``trust`` is the lowest class of texts that a context takes: by default nothing foreign. ``max_results``: chunks of
    ``memory_search``. ``min_relevance``: results below it are left out of ``memory_search``; 0 leaves none out.
    ``context_tokens``: the budget of ``memory_context``.
    """

    trust: str = field(default="agent", validator=validators.in_(TRUST_CLASSES), metadata=_OWN)
    max_results: int = field(default=10, validator=_between(1, MAX_RESULTS), metadata=_INHERITED)
    min_relevance: float = field(default=0.0, validator=_between(0.0, 1.0), metadata=_INHERITED)
    context_tokens: int = field(default=1_000, validator=_between(MIN_BUDGET, MAX_BUDGET), metadata=_INHERITED)


@frozen
class AskOptions:
    """Options of ``[extensions.ask]``: how many chunks the model gets, of which writers, and how long it may take.

    ``trust`` is the lowest class of texts that an answer takes: by default nothing foreign.
    """

    trust: str = field(default="agent", validator=validators.in_(TRUST_CLASSES), metadata=_OWN)
    sources: int = field(default=8, validator=_between(1, MAX_RESULTS), metadata=_INHERITED)
    deadline_seconds: float = field(default=120.0, validator=validators.gt(0), metadata=_INHERITED)
