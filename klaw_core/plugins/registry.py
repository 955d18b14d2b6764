"""The registry: components of the installed plugins by kind and name, and each plugin's problem, if any."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Self, TypeVar, overload

from attrs import field, frozen

from klaw_core.errors import PluginConflictError, PluginError, PluginNotFoundError, QueryError, quoted
from klaw_core.hookspecs import API, Component, ComponentContext, NoOptions
from klaw_core.kinds import KINDS, Kind
from klaw_core.values.collections import DOCS, STANDARD_COLLECTIONS, check_collection_name

T_co = TypeVar("T_co", covariant=True)


@frozen(eq=False, repr=False)
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
    """A component and its distribution. ``problem`` says why it cannot be used."""

    component: Component[Any, Any]
    distribution: str
    problem: str = ""


def _kind(kind: Kind[Any] | str) -> Kind[Any]:
    """Return the kind with this name. Raise PluginError if there is none."""
    found = KINDS.get(kind) if isinstance(kind, str) else kind
    if found is None:
        raise PluginError(f"unknown kind of component {quoted(kind)}", hint=f"known: {', '.join(KINDS)}")
    return found


def _is_pattern(item: LiveComponent, _attribute: object, pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise PluginError(f"{item.name!r}: questions is not a regular expression: {error}") from error


@frozen(eq=False, repr=False)
class LiveComponent:
    """An object of the program, under a name that the configuration can select by ``type``.

    ``kind`` is given by its name, such as ``"embedder"``. ``listens``, ``retrievers``, ``separate`` and ``questions``
    are those of a :class:`~klaw_core.Component`: the events that an extension receives, the retrievers that go with a
    store, the collections of an extension that only searches that name them cover, the questions it is asked about.
    Raise PluginError for an unknown kind.
    """

    kind: Kind[Any] = field(converter=_kind)
    name: str
    component: Any
    listens: tuple[type, ...] = ()
    retrievers: tuple[str, ...] = ()
    separate: tuple[str, ...] = ()
    questions: str = field(default="", validator=_is_pattern)


@frozen(eq=False, repr=False)
class ListedComponent:
    """A component whose plugin may not be loaded; ``listens`` are the names of classes of events."""

    kind: str
    name: str
    rank: int
    listens: tuple[str, ...] = ()
    separate: tuple[str, ...] = ()
    questions: str = ""

    @classmethod
    def of(cls, kind: str, component: Component[Any, Any]) -> Self:
        """Return what is listed of a component."""
        listens = tuple(event.__qualname__ for event in component.listens)
        return cls(kind, component.name, component.rank, listens, component.separate, component.questions)


@frozen(eq=False, repr=False)
class Listing:
    """The installed extensions, converters and rerankers, and a function that loads those of a name, or all."""

    components: tuple[ListedComponent, ...]
    load: Callable[[str | None], Registry]


@frozen(eq=False, repr=False)
class Registry:
    """The installed components by kind and name; if ``discover`` is given, ``plugins`` is only a part of them."""

    plugins: tuple[Plugin, ...] = ()
    offers: Mapping[tuple[str, str], Sequence[Offer]] = field(factory=dict)
    discover: Callable[[], Registry] | None = None
    listing: Listing | None = None

    @cached_property
    def whole(self) -> Registry:
        """The registry of everything that is installed."""
        return self if self.discover is None else self.discover()

    @cached_property
    def _loaded(self) -> dict[str | None, Registry]:
        """What was loaded of the listed components: those of each name, or all, by None."""
        return {}

    def load_listed(self, name: str | None = None) -> Registry:
        """Load the plugins with a listed component of a name; without a name all, which is faster than one by one."""
        loaded = self._loaded.get(None) or self._loaded.get(name)
        if loaded is None:
            loaded = self._loaded[name] = Registry() if self.listing is None else self.listing.load(name)
        return loaded

    @cached_property
    def _listed(self) -> Sequence[ListedComponent]:
        """The listed components, by rank; of plugins that are loaded, if no cache lists them."""
        if self.listing is not None:
            return sorted(self.listing.components, key=lambda component: component.rank)
        loaded = (ListedComponent.of(kind, found[0].component) for (kind, _), found in self.offers.items())
        return sorted(loaded, key=lambda component: component.rank)

    def with_live(self, live: Sequence[LiveComponent]) -> Registry:
        """Return a registry in which these objects replace the plugins' components of the same name."""
        whole = self.whole
        offers = dict(whole.offers)
        for item in live:
            component: Component[Any, Any] = Component(
                item.name,
                NoOptions,
                partial(_give, item.component),
                API,
                "a live object",
                retrievers=item.retrievers,
                listens=item.listens,
                separate=item.separate,
                questions=item.questions,
            )
            offers[item.kind.name, item.name] = [Offer(component, "this program")]
        return Registry(whole.plugins, offers)

    def names(self, kind: Kind[Any] | str) -> list[str]:
        """Return the names of the components of this kind, sorted."""
        return sorted(name for offered, name in self.whole.offers if offered == str(kind))

    def listed_names(self, kind: Kind[Any]) -> list[str]:
        """Return the names of the installed components of a listed kind, by rank. No plugin is loaded for it."""
        return list(dict.fromkeys(component.name for component in self._listed if component.kind == kind.name))

    def separate_collections(self) -> frozenset[str]:
        """Return the collections that are separate: ``docs`` and those of extensions. No plugin is loaded for it."""
        return frozenset((DOCS, *(name for item in self._listed for name in item.separate)))

    def check_writable(self, collection: str, by: str = "") -> str:
        """Return the name of a collection. Raise QueryError if it is invalid or belongs to an extension but ``by``.

        No plugin is loaded for it.
        """
        owners = {item.name for item in self._listed if check_collection_name(collection) in item.separate}
        if collection not in STANDARD_COLLECTIONS and owners and by not in owners:
            raise QueryError(
                f"the collection {collection!r} belongs to the extension {min(owners)!r}", hint="use another collection"
            )
        return collection

    def listeners(self, event: type) -> list[str]:
        """Return the names of the extensions that listen to this class of events. No plugin is loaded for it."""
        return list(dict.fromkeys(item.name for item in self._listed if event.__qualname__ in item.listens))

    def asked(self, question: str) -> list[str]:
        """Return the names of the extensions that may prefer something for a question. No plugin is loaded for it."""
        return [
            item.name for item in self._listed if item.questions and re.search(item.questions, question, re.IGNORECASE)
        ]

    def components(self, kind: Kind[T_co]) -> list[Component[Any, T_co]]:
        """Return the usable components of this kind, in order of name. Raise PluginConflictError."""
        usable = {
            name
            for (offered, name), offers in self.whole.offers.items()
            if offered == kind.name
            if any(not offer.problem for offer in offers)
        }
        return [self.component(kind, name) for name in sorted(usable)]

    @overload
    def component(self, kind: Kind[T_co], name: str) -> Component[Any, T_co]: ...
    @overload
    def component(self, kind: str, name: str) -> Component[Any, Any]: ...
    def component(self, kind: Kind[Any] | str, name: str) -> Component[Any, Any]:
        """Return the component of this kind and name.

        Raise PluginNotFoundError (with what to install) or PluginConflictError (with what to disable).
        """
        kind = str(kind)
        offers = (
            self.offers.get((kind, name), ())
            or self.load_listed(name).offers.get((kind, name), ())
            or self.whole.offers.get((kind, name), ())
        )
        if not offers:
            raise self._not_found(kind, name)
        usable = [offer for offer in offers if not offer.problem]
        if not usable:
            raise PluginNotFoundError(
                f"{kind} {name!r} of {offers[0].distribution} cannot be used: {offers[0].problem}"
            )
        if len(usable) > 1:
            from klaw_core.plugins.installing import uninstall_command

            providers = sorted(offer.distribution for offer in usable)
            raise PluginConflictError(
                f"{' and '.join(providers)} both provide the {kind} {name!r}",
                hint=f'{uninstall_command(providers[-1])}, or set plugins.disabled = ["{providers[-1]}"]',
            )
        return usable[0].component

    def _not_found(self, kind: str, name: str) -> PluginNotFoundError:
        from difflib import get_close_matches

        from klaw_core.plugins.catalogue import install_command, provided_names, provider_of

        provider = provider_of(kind, name)
        if provider is not None:
            distribution, extras = provider.distribution, provider.extras
            installed = [plugin for plugin in self.whole.plugins if plugin.distribution == distribution]
            if any(plugin.disabled for plugin in installed):
                hint = "remove it from plugins.disabled and KLAW_DISABLE_PLUGINS"
                return PluginNotFoundError(f"{kind} {name!r}: {distribution} is disabled", hint=hint)
            broken = [plugin for plugin in installed if plugin.problem]
            reason = f": {distribution} is broken: {broken[0].problem}" if broken else " is not installed"
            return PluginNotFoundError(f"{kind} {name!r}{reason}", hint=install_command(extras), extras=extras)
        names = self.names(kind)
        near = get_close_matches(name, names, n=1) or get_close_matches(name, provided_names(kind), n=1)
        off = [plugin.distribution for plugin in self.whole.plugins if plugin.disabled]
        disabled = f"; disabled: {', '.join(off)}" if off else ""
        guess = f"did you mean {near[0]!r}? " if near else ""
        return PluginNotFoundError(
            f"no plugin provides the {kind} {name!r}",
            hint=f"{guess}installed: {', '.join(names) or 'none'}{disabled}; see `klaw plugins`",
            near=near[0] if near else "",
        )


def _give(component: Any, _options: NoOptions, _context: ComponentContext) -> Any:
    return component
