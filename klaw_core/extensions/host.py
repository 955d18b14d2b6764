"""The host of extensions: builds each when it is first needed, attaches it to the memory, and sends it events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, field

from klaw_core.config.options import build_options
from klaw_core.config.tables import extension_selection
from klaw_core.errors import (
    ConfigError,
    KlawError,
    PluginContractError,
    PluginError,
    StoreError,
    StoreFullError,
    as_klaw_error,
    check_base,
    isolated,
    quoted,
)
from klaw_core.holds import ThreadLock, operations
from klaw_core.hookspecs import ComponentContext
from klaw_core.interfaces.extension import (
    LISTS_OF_NAMES,
    AttachedExtension,
    Extension,
    Host,
    ListeningExtension,
    PreferringExtension,
    SourcedExtension,
)
from klaw_core.kinds import EXTENSION
from klaw_core.plugins.registry import Registry
from klaw_core.values.config import Config, Selection

if TYPE_CHECKING:
    from klaw_core.sources.catalogue import OwnedSources
    from klaw_core.values.candidates import Preference
    from klaw_core.values.events import Event

T = TypeVar("T")


def build_extension(
    config: Config, registry: Registry, name: str, context: ComponentContext | None = None
) -> Extension:
    """Build an extension from its options, without a host. Raise PluginError, ConfigError.

    The default of ``context`` is for an extension without a memory.
    """
    component = registry.component(EXTENSION, name)
    selection: Selection = config.extensions.get(name) or extension_selection(name)
    problems: list[str] = []
    options = build_options(component, selection, problems)
    if problems:
        raise ConfigError(problems, hint="`klaw config path` prints the path of your file")
    context = context or ComponentContext(config.data_dir, config.cache_dir, config.offline, config.agent)
    with isolated(f"the extension {name!r}"):
        found: Any = component.factory(options, context)
    built = check_base(found, Extension, f"the extension {name!r}")
    with isolated(f"the extension {name!r}"):
        found = built.name
    if found != name:
        raise PluginContractError(f"the extension {name!r} calls itself {quoted(found)}")
    for ability in type(built).__mro__:
        for attribute in LISTS_OF_NAMES.get(ability, ()):
            _check_names(name, built, attribute)
    return built


def _check_names(name: str, extension: Extension, attribute: str) -> None:
    """Raise PluginError if an attribute of an extension is not a sequence of strings."""
    with isolated(f"the extension {name!r}, at {attribute!r}"):
        values: Any = getattr(extension, attribute)
        sound = not isinstance(values, str) and all(isinstance(value, str) for value in values)
    if not sound:
        raise PluginContractError(f"the extension {name!r}: {attribute!r} is {quoted(values)}, not names")


def build_extensions(config: Config, registry: Registry) -> tuple[dict[str, Extension], dict[str, KlawError]]:
    """Build every installed extension, without a host; return those that work, and the errors of the others, by name.

    This is for commands that must work without a database: export, and the checks of files.
    """
    built, failed = dict[str, Extension](), dict[str, KlawError]()
    registry.load_listed()
    for name in registry.listed_names(EXTENSION):
        try:
            built[name] = build_extension(config, registry, name)
        except KlawError as error:
            failed[name] = error
    return built, failed


def having(extensions: Mapping[str, Extension], ability: type[T]) -> list[tuple[str, T]]:
    """Return the extensions that inherit this class, with their names."""
    return [(name, extension) for name, extension in extensions.items() if isinstance(extension, ability)]


@define(eq=False, repr=False)
class Extensions:
    """The extensions of one memory, built in ``context``; those that use the memory are attached to ``host``.

    Safe to use from several threads. One that cannot be built is left out; :meth:`problems` and :meth:`get` tell why.
    """

    config: Config
    registry: Registry
    make_host: Callable[[], Host]
    context: ComponentContext
    _built: dict[str, Extension] = field(factory=dict, init=False)
    _failed: dict[str, KlawError] = field(factory=dict, init=False)
    _listeners: list[Callable[[Event], None]] = field(factory=list, init=False)
    _lock: ThreadLock = field(factory=partial(ThreadLock, "the list of extensions"), init=False)

    @cached_property
    def host(self) -> Host:
        """The services of the memory for extensions."""
        return self.make_host()

    def get(self, name: str) -> Extension:
        """Return an extension. Raise PluginError, ConfigError if it does not exist or cannot be built."""
        with self._lock.hold():
            if name not in self._built:
                extension = build_extension(self.config, self.registry, name, self.context)
                for kind in [kind for kind in type(extension).__mro__ if issubclass(kind, Extension)]:
                    operations(kind)  # what it holds ends with its calls, whatever interrupts them
                self._attach(name, extension)
                self._built[name] = extension
                self._failed.pop(name, None)
            return self._built[name]

    def all(self) -> Mapping[str, Extension]:
        """Return every installed extension that works, by name."""
        self.registry.load_listed()
        tuple(self._working(self.registry.listed_names(EXTENSION)))
        return dict(self._built)

    def having(self, ability: type[T]) -> list[tuple[str, T]]:
        """Return the extensions that inherit this class, with their names."""
        return having(self.all(), ability)

    def problems(self) -> Mapping[str, KlawError]:
        """Return the errors of extensions, or of their sources, by name."""
        self.all()
        with suppress(KlawError):  # their own checks report unreadable files
            return {**{row.extension: row.failure for row in self.sources() if row.failure}, **self._failed}
        return dict(self._failed)

    def sources(self) -> Sequence[OwnedSources]:
        """Return the sources of each extension, or the defect that prevents an extension from returning them.

        Raise the KlawError of an extension whose files cannot be read.
        """
        from klaw_core.sources.catalogue import OwnedSources  # a search needs no source

        owned = []
        for name, extension in self.having(SourcedExtension):
            origins = frozenset(extension.origins)
            try:
                with isolated(f"the sources of the extension {name!r}"):
                    checked = extension.checks_collections
                    owned.append(OwnedSources(name, origins, tuple(extension.sources()), checked=checked))
            except PluginError as error:
                owned.append(OwnedSources(name, origins, (), error))
        unbuilt = (OwnedSources(name, frozenset(), (), error, built=False) for name, error in self._failed.items())
        return [*owned, *unbuilt]

    def reserved_origins(self) -> frozenset[str]:
        """Return the origins that belong to extensions."""
        return frozenset(origin for _, item in self.having(SourcedExtension) for origin in item.origins)

    def on_change(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``callback`` for every event; return a function that ends that."""
        with self._lock.hold():
            self._listeners.append(callback)

        def stop() -> None:
            with self._lock.hold(), suppress(ValueError):
                self._listeners.remove(callback)

        return stop

    def emit(self, event: Event) -> KlawError | None:
        """Send an event to its listeners; log and return what has failed: StoreFullError if a disk was full."""
        kind, failed = type(event), dict[str, KlawError]()
        for name, listener in [*self._listeners_for(kind), *(("", callback) for callback in self._listeners)]:
            try:
                listener(event)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # it may raise anything; the event has happened
                import logging  # its import is slow, and most listeners do not fail

                failed[name] = as_klaw_error(error)
                logging.getLogger("klaw").warning("a listener failed at %s: %s", kind.__name__, failed[name])
        failed |= {name: error for name, error in self._failed.items() if name in self.registry.listeners(kind)}
        told = "; ".join(f"the extension {name!r} failed: {error}" for name, error in failed.items() if name)
        failure = StoreFullError if any(isinstance(error, StoreFullError) for error in failed.values()) else StoreError
        return failure(f"the change is stored, but {told}", hint="run `klaw index`") if told else None

    def _listeners_for(self, kind: type) -> Iterator[tuple[str, Callable[[Event], None]]]:
        """Yield the listeners for a kind of event. Extensions that do not listen to it are not built, none to close."""
        names = self.registry.listeners(kind)
        used = names if kind.__name__ != "CloseEvent" else filter(self._built.__contains__, names)
        yield from ((name, each.on) for name, each in self._working(used) if isinstance(each, ListeningExtension))

    def _working(self, names: Iterable[str]) -> Iterator[tuple[str, Extension]]:
        """Yield the extensions of these names, without those that fail."""
        for name in names:
            try:
                yield name, self.get(name)
            except KlawError as error:
                self._failed[name] = error

    def preferences(self, question: str) -> Sequence[tuple[str, Preference]]:
        """Return what extensions prefer for a question, with their names; those that are not asked are not built."""
        found = []
        for name, extension in self._working(self.registry.asked(question)):
            with suppress(PluginError), isolated(f"the extension {name!r}"):  # without a preference the order stays
                preference = extension.prefer(question) if isinstance(extension, PreferringExtension) else None
                found.extend([] if preference is None else [(name, preference)])
        return found

    def _attach(self, name: str, extension: Extension) -> None:
        with isolated(f"the extension {name!r}"):
            if isinstance(extension, AttachedExtension):
                extension.attach(self.host)
