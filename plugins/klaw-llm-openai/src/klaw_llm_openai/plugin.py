"""The hook implementations of klaw-llm-openai: the language model ``openai``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, LanguageModelError, hookimpl
from klaw_http import require_network
from klaw_llm_openai.options import OpenAIModelOptions

if TYPE_CHECKING:
    from klaw_llm_openai.model import OpenAIModel


def _openai(options: OpenAIModelOptions, context: ComponentContext) -> OpenAIModel:
    require_network(options.url, context, "memory.language_model.url", LanguageModelError)
    from klaw_llm_openai.model import OpenAIModel
    from klaw_llm_openai.usage import UsageLedger

    path = context.data_dir / "language_model_usage.json"
    return OpenAIModel(options, UsageLedger(path, options.max_requests_per_day, options.max_tokens_per_day))


@hookimpl
def klaw_language_models() -> Iterable[Component[OpenAIModelOptions, OpenAIModel]]:
    """Yield the language model ``openai``."""
    summary = "completions from OpenAI, or a server that speaks its protocol"
    yield Component("openai", options=OpenAIModelOptions, factory=_openai, api=2, summary=summary)
