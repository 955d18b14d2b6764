"""The objects of an export, what an export and an import report, and extensions that export their data themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from klaw_core import Extension, SkippedEntry
from klaw_core.interfaces.extension import lists_names


@frozen
class Record:
    """A record of an export: a JSON object and its kind, which determines the extension that imports it."""

    kind: str
    value: Mapping[str, Any] = field(repr=False)


@frozen
class ImportCounts:
    """The result of an import: how many records were added, how many existed already, and which differ.

    ``kept`` describes, one line each, records that differ from the existing ones and were not imported. ``notices`` say
    what the user should do.
    """

    added: int = 0
    present: int = 0
    kept: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    def __add__(self, other: ImportCounts) -> ImportCounts:
        return ImportCounts(
            self.added + other.added,
            self.present + other.present,
            self.kept + other.kept,
            self.notices + other.notices,
        )


@frozen
class ExportReport:
    """The number of exported records by kind, and the skipped parts, such as broken lines in the files.

    ``notices`` name exported journals that belong to no installed extension.
    """

    counts: Mapping[str, int] = field(factory=dict)
    skipped: tuple[SkippedEntry, ...] = ()
    notices: tuple[str, ...] = ()


@frozen
class ImportReport:
    """The numbers of added and of existing (``present``) records by kind.

    ``kept`` describes what the import did not change. ``notices`` say what the user should do next, and why added
    records cannot be found yet, if so. ``skipped`` lists the parts that an importer could not read.
    """

    added: Mapping[str, int] = field(factory=dict)
    present: Mapping[str, int] = field(factory=dict)
    kept: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    skipped: tuple[SkippedEntry, ...] = ()


class CondensingExtension(Extension):
    """An extension that condenses its records by rules while nobody uses the memory, at night for instance."""

    __slots__ = ()

    @abstractmethod
    def condense(self, is_stopped: Callable[[], bool], /) -> str:
        """Condense; return what was done, in a few words. Running it again adds nothing.

        It changes nothing that a person wrote, and everything that it does can be listed and undone. It stops between
        two steps once ``is_stopped`` returns True. Raise KlawError.
        """


@lists_names("record_kinds")
class RecordedExtension(Extension):
    """An extension that exports and imports its data itself.

    Without this, the journals of an extension are exported as they are.
    """

    __slots__ = ()
    #: The journals whose content :meth:`records` yields; empty for the one with the extension's name.
    exported_journals: Sequence[str] = ()

    if TYPE_CHECKING:  # an attribute or a property

        @property
        def record_kinds(self) -> Sequence[str]:
            """Return the kinds of its records, in the order in which they are exported."""

    @abstractmethod
    def records(self) -> Iterator[Record | SkippedEntry]:
        """Yield all data that a person owns; an entry that cannot be read is a SkippedEntry."""

    @abstractmethod
    def check_record(self, record: Record, /) -> None:
        """Raise RecordError unless :meth:`add` can take the record. Change nothing."""

    @abstractmethod
    def add(self, records: Iterator[Record], /) -> ImportCounts:
        """Add records of one kind, which were checked before. Existing records stay; adding again changes nothing."""


class ConsentExtension(RecordedExtension):
    """An extension whose records do more than store a text, for instance change what is indexed.

    An export may come from another person. Such records are imported only on request.
    """

    __slots__ = ()

    @abstractmethod
    def effect(self, record: Record, /) -> str:
        """Return what adding a record would change, for people; empty if it would change nothing."""
