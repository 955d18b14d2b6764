"""The extension ``core_memory``: the few facts about user and agent that are part of every prompt."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attrs import asdict, define, field, fields

from klaw_core import (
    AttachedExtension,
    CheckedExtension,
    Finding,
    Host,
    KlawError,
    RecordError,
    SkippedEntry,
    Tool,
    ToolExtension,
    quoted,
)
from klaw_journals import (
    ImportCounts,
    Journals,
    Record,
    RecordedExtension,
    check_private,
    journals_of,
    make_private,
    parse_ts,
)
from klaw_journals.trust import AGENT, FOREIGN, OWNER, Trust, check_trust
from klaw_memories.arguments import Json, string
from klaw_memories.core_memory import (
    MAX_KEY_CHARACTERS,
    MAX_VALUE_CHARACTERS,
    SECTIONS,
    CoreMemory,
    ReplacedFact,
    Spellings,
)
from klaw_redaction import Redactor
from klaw_tools import ContextExtension, ContextItem, ContextQuestion
from klaw_tools.frames import item_text, one_line

NAME = "core_memory"
KIND = "core"
HISTORY = "core_history"

_FIELDS = tuple(each.name for each in fields(ReplacedFact))

# Other names that models use for the arguments of these tools.
_ALIASES = {
    **dict.fromkeys(("block", "category", "scope"), "section"),
    **dict.fromkeys(("name", "field"), "key"),
    **dict.fromkeys(("content", "text"), "value"),
}


@define(eq=False)
class CoreMemoryExtension(AttachedExtension, ToolExtension, CheckedExtension, RecordedExtension, ContextExtension):
    """Offers core memory to models as tools and as context, and exports it."""

    files: Journals = field(repr=False)
    record_kinds: Sequence[str] = (KIND, HISTORY)
    _host: Host | None = field(default=None, init=False)

    name = NAME

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host = host

    @property
    def core(self) -> CoreMemory:
        """The facts."""
        journals = self.files if self._host is None else journals_of(self._host)
        redactor = Redactor() if self._host is None else self._host.config.conversations.redactor
        return CoreMemory(journals.text(NAME), redactor)

    def check(self) -> Iterator[Finding]:
        """Check that the file can be read, and only by its owner; name the copies of broken ones."""
        core = self.core
        yield from check_private([Path(core.place.location)])
        try:
            core.get()
        except KlawError as error:
            yield Finding("core-memory", "error", error.message, core.place.location, error.hint)
            return
        file = Path(core.place.location)
        for copy in sorted(file.parent.glob(f"{glob.escape(file.name)}.broken-*")):
            what = f"{copy.name} is what was in {file.name} before it was repaired"
            hint = "add what you miss with `klaw core set`, then delete the copy: it may contain what you forget"
            yield Finding("core-memory-copy", "note", what, str(copy), hint)

    def fix(self, _findings: Sequence[Finding], /) -> None:
        """Make the file private."""
        make_private([Path(self.core.place.location)])

    def records(self) -> Iterator[Record | SkippedEntry]:
        """Yield every key, and the history. Raise StoreError, StoreCorruptError if the file cannot be read."""
        facts, classes = self.core.get(), self.core.classes()
        for section in SECTIONS:
            for key, value in getattr(facts, section).items():
                trust = classes.get((section, key))
                written = {"section": section, "key": key, "value": value}
                yield Record(KIND, {**written, "trust": trust} if trust else written)
        for fact in self.core.history():
            yield Record(HISTORY, asdict(fact))

    def check_record(self, record: Record, /) -> None:
        """Raise RecordError unless this is one key of core memory, or of its history."""
        if record.value.get("section") not in SECTIONS:
            raise RecordError(f"core memory has no section {quoted(record.value.get('section'))}")
        for name in ("key", "value", "by", "at") if record.kind == HISTORY else ("key", "value"):
            if not isinstance(record.value.get(name), str):
                raise RecordError(f"{name} is {'not a string' if name in record.value else 'missing'}")
        check_trust(record.value.get("trust", OWNER))
        check_trust(record.value.get("by", OWNER))
        if record.kind == HISTORY and record.value["at"]:
            parse_ts(record.value["at"])

    def add(self, records: Iterator[Record], /) -> ImportCounts:
        """Add keys, and what their history lacks. An existing key with another value is not changed."""
        counts = ImportCounts()
        facts = self.core.get()
        known = {section: Spellings(getattr(facts, section)) for section in SECTIONS}
        earlier: list[ReplacedFact] = []
        new: dict[Trust, list[tuple[str, str, str]]] = {}
        for record in records:
            if record.kind == HISTORY:
                earlier.append(ReplacedFact(**{name: record.value.get(name, OWNER) for name in _FIELDS}))
                continue
            section, key, value = (record.value[name] for name in ("section", "key", "value"))
            here = getattr(facts, section).get(known[section].find(key))
            if here is None:
                new.setdefault(record.value.get("trust", OWNER), []).append((section, key, value))
            elif here == value:
                counts += ImportCounts(present=1)
            else:
                counts += ImportCounts(kept=(f"core memory {section}.{key} already has another value",))
        for trust, found in new.items():
            counts += self._add_new(found, trust)
        return counts + self._add_history(earlier)

    def _add_history(self, facts: Sequence[ReplacedFact]) -> ImportCounts:
        try:
            added = self.core.add_history(facts)
        except RecordError as error:
            return ImportCounts(kept=(error.message,))
        return ImportCounts(added=added, present=len(facts) - added)

    def _add_new(self, new: Sequence[tuple[str, str, str]], trust: Trust) -> ImportCounts:
        """Add new keys: all at once, or one by one if one of them is rejected."""
        try:
            self.core.update_all(new, trust=trust)
        except RecordError as error:
            if len(new) == 1:
                return ImportCounts(kept=(error.message,))
            middle = len(new) // 2
            return self._add_new(new[:middle], trust) + self._add_new(new[middle:], trust)
        return ImportCounts(added=len(new))

    def offer(self, _question: ContextQuestion, /) -> Iterable[ContextItem]:
        """Offer all facts, in the stable part of the context. Filters are for documents and do not concern them."""
        facts, classes = self.core.get(), self.core.classes()
        titles = (("user", "About the user"), ("agent", "About yourself, the agent"))
        for section, title in titles:
            for key, value in getattr(facts, section).items():
                text, trust = f"{one_line(key)}: {item_text(value)}", classes.get((section, key), OWNER)
                yield ContextItem(text, "stable", 0, title, self.core.place.location, filtered=True, trust=trust)

    def tools(self) -> Sequence[Tool]:
        """Return the tools that read and change core memory."""
        section: Json = {"type": "string", "enum": list(SECTIONS), "description": "About the user, or about yourself."}
        key = string("Such as name, preferences, learned_rules.", MAX_KEY_CHARACTERS)
        value = string("Replaces the old one.", MAX_VALUE_CHARACTERS, least=0)
        return (
            Tool(
                "memory_core_get",
                "Read core memory, the few facts that always apply; memory_context has them too.",
                {},
                self._get,
                read_only=True,
            ),
            Tool(
                "memory_core_update",
                "Set one fact of core memory. Do it at once when the user states a preference, corrects you or gives "
                "a rule.",
                {"section": section, "key": key, "value": value},
                self._update,
                ("section", "key", "value"),
                aliases=_ALIASES,
            ),
            Tool(
                "memory_core_delete",
                "Remove an outdated fact of core memory.",
                {"section": section, "key": key},
                self._delete,
                ("section", "key"),
                destructive=True,
                aliases={alias: own for alias, own in _ALIASES.items() if own != "value"},
            ),
        )

    def _get(self, _arguments: Json) -> Json:
        facts = self.core.redacted()
        others = [f"{section}.{key}" for (section, key), trust in self.core.classes().items() if trust == FOREIGN]
        found: Json = {"user": dict(facts.user), "agent": dict(facts.agent)}
        return {**found, "foreign": [self.core.redactor.text(name) for name in others]} if others else found

    def _update(self, arguments: Json) -> Json:
        self.core.update(arguments["section"], arguments["key"], arguments["value"], trust=AGENT)
        return {"updated": self.core.redactor.text(f"{arguments['section']}.{arguments['key']}")}

    def _delete(self, arguments: Json) -> Json:
        self.core.delete(arguments["section"], arguments["key"], trust=AGENT)
        return {"deleted": self.core.redactor.text(f"{arguments['section']}.{arguments['key']}")}
