"""DSPy: a retriever over a memory, and the tools of a memory."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import dspy

from klaw_agents.turns import offered
from klaw_core import Filters, Memory, Tool
from klaw_core.cli.kit import visible


class KlawRetriever(dspy.Retrieve):
    """The chunks of a memory that answer a question, as ``passages`` of a prediction.

        retrieve = KlawRetriever(memory, k=3)
        dspy.ChainOfThought("context, question -> answer")(context=retrieve(question).passages, question=question)

    A program may say ``dspy.configure(rm=KlawRetriever(memory))`` and use ``dspy.Retrieve``. The prediction also has
    ``paths``, ``relevances`` (from 0 to 1) and ``is_weak``, in the order of the passages. ``filters``, ``collection``
    and ``min_relevance`` restrict searches. Raise klaw_core.QueryError for an empty query. The caller closes
    ``memory``.
    """

    def __init__(
        self,
        memory: Memory,
        k: int = 3,
        *,
        collection: str | None = None,
        filters: Filters = Filters(),  # noqa: B008  # frozen
        min_relevance: float | None = None,
    ) -> None:
        super().__init__(k=k)
        self._memory = memory
        self._options: dict[str, Any] = {"collection": collection, "filters": filters, "min_relevance": min_relevance}

    def forward(self, query: str, k: int | None = None, **_options: Any) -> Any:
        """Return the passages that answer a question, best first."""
        results = self._memory.search(query, self.k if k is None else k, **self._options)
        return _Passages(
            passages=[visible(result.content) for result in results],
            paths=[result.path for result in results],
            relevances=[result.relevance for result in results],
            is_weak=[result.is_weak for result in results],
        )


class _Passages(dspy.Prediction):
    """A prediction that is also the list of passages that ``dspy.Retrieve`` expects of ``rm``."""

    def __iter__(self) -> Any:
        return iter([dspy.Prediction(long_text=text) for text in self.passages])


def klaw_tools(memory: Memory, *, allow: Collection[str] = ()) -> list[dspy.Tool]:
    """Return the tools of a memory (search, read, save, ...) for ``dspy.ReAct(signature, tools=...)``.

    ``allow`` names the opt-in tools to offer (``memory_forget``). A module of DSPy tells the model what is wrong with
    a call.
    """
    return [_tool(tool, run) for tool, run in offered(memory, allow)]


def _tool(tool: Tool, run: Callable[[Any], str]) -> dspy.Tool:
    def call(**arguments: Any) -> str:
        return run(arguments)

    # DSPy checks values against their schemas, and Klaw the rest; of types DSPy would make others.
    kinds = dict.fromkeys(tool.properties, Any)
    return dspy.Tool(call, tool.name, tool.description, args=dict(tool.properties), arg_types=kinds)
