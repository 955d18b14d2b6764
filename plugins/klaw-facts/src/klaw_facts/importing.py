"""Import facts from MEMORY.md, day journals in Markdown, and the output of mem0's ``get_all``.

A fact's id is derived from its source and text, so a second import adds nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from attrs import evolve

from klaw_core import RecordError, check_metadata
from klaw_facts.extracting.resolve import Resolver
from klaw_facts.extracting.rules import category_of, importance_of
from klaw_facts.extracting.slots import slot_of
from klaw_facts.journal import FactsJournal
from klaw_facts.options import FactsOptions
from klaw_facts.records import MAX_TEXT_CHARACTERS
from klaw_facts.secret_gate import SecretGate
from klaw_facts.values import PERSON, Fact, make_id, normalised
from klaw_journals import ImportCounts, format_ts, parse_ts

#: Kinds of files: ``memory-md`` (MEMORY.md or a day journal) and ``mem0``.
Kind: TypeAlias = Literal["memory-md", "mem0"]

IMPORTED = "import"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.*)$")
_HEADING = re.compile(r"^#{1,6}\s+(?P<text>.*?)\s*#*$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_RULE = re.compile(r"^\s*(?:[-*_]\s*){3,}$|^\s*\|.*\|\s*$")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def read_files(files: Iterable[Path], kind: str | None = None) -> Iterator[Fact]:
    """Yield the facts in files; a directory means its Markdown files. Raise RecordError."""
    for given in files:
        for path in sorted(given.glob("*.md")) if given.is_dir() else [given]:
            try:
                text = path.read_text("utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                raise RecordError(f"{path} cannot be read: {error}") from error
            found = kind or {".md": "memory-md", ".json": "mem0"}.get(path.suffix.lower())
            if found is None:
                raise RecordError(
                    f"cannot tell the format of {path.name} from its name", hint="--from memory-md or --from mem0"
                )
            yield from _mem0(text, path) if found == "mem0" else _markdown(text, path)


def add_facts(
    journal: FactsJournal,
    options: FactsOptions,
    facts: Sequence[Fact],
    is_forgotten: Callable[[Fact], bool],
    *,
    now: datetime,
    dry_run: bool = False,
    only_unnamed: Callable[[], str] = str,
) -> tuple[ImportCounts, list[str]]:
    """Add facts in one batch; return counts and the ids of changed facts. Raise StoreError.

    Known and forgotten facts are skipped. A new value of a single-valued slot ends the previous one.
    """
    counts = ImportCounts()
    with journal.turn():
        state = journal.state()
        batch = make_id("b", IMPORTED, format_ts(now))
        resolver = Resolver(state, options, now, IMPORTED, batch, only_unnamed=only_unnamed)
        for given in facts:
            fact = _without_secrets(journal.gate, given)
            if fact is None:
                counts += ImportCounts(kept=(f"a secret: {given.source}; say instead where it is kept",))
            elif fact.id in state.facts:
                counts += ImportCounts(present=1)
            elif is_forgotten(fact):
                counts += ImportCounts(kept=(f"forgotten before: {fact.id}",))
            else:
                before = resolver.asserted
                resolver.add(fact)
                counts += ImportCounts(added=1) if resolver.asserted > before else ImportCounts(present=1)
        operations = resolver.finish()
        if not dry_run:
            journal.append(operations)
    ids = [line["id"] if line["op"] == "assert" else line.get("fact") for line in operations]
    return counts, [name for name in ids if name]


def _without_secrets(gate: SecretGate, fact: Fact) -> Fact | None:
    """Return a fact without secrets, also in what is derived from its text; None if nothing is left."""
    if not gate.has_secret(fact.text):
        return gate.fact(fact)
    text = gate.text(fact.text)
    if not text:
        return None
    slot, value = slot_of(text) or (None, None)
    name = make_id("f", fact.made_by, fact.source, normalised(text))
    return gate.fact(evolve(fact, id=name, text=text, slot=slot, value=value))


def _markdown(text: str, path: Path) -> Iterator[Fact]:
    """Yield a fact for each list item and paragraph, made by a person in MEMORY.md and by an agent in a day journal."""
    day = _DAY.match(path.stem)
    said_at = datetime.fromisoformat(day[0]).replace(tzinfo=UTC) if day else None
    for heading, number, said in _blocks(text):
        if len(said) > MAX_TEXT_CHARACTERS:
            raise RecordError(f"{path}:{number}: a fact has at most {MAX_TEXT_CHARACTERS:,} characters")
        made_by = IMPORTED if day else PERSON
        name = make_id("f", "markdown", path.name, normalised(said))
        metadata = {"heading": heading[:200]} if heading else {}
        yield _fact(name, said, "user", made_by, f"{path.name}:{number}", said_at, metadata)


def _blocks(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield heading, line and text of each block of Markdown, except code, tables, comments and front matter."""
    blanked = _blank_lines(_COMMENT, _blank_lines(_FRONT_MATTER, text))
    heading, first, in_code = "", 0, False
    block: list[str] = []
    for number, line in enumerate([*blanked.splitlines(), ""], start=1):
        is_fence = _FENCE.match(line) is not None
        item, title = _ITEM.match(line), _HEADING.match(line)
        starts = in_code or is_fence or item or title or not line.strip() or _RULE.match(line)
        if starts and block:
            yield heading, first, " ".join(block)
            block = []
        in_code ^= is_fence
        if title:
            heading = title["text"]
        elif item and not in_code and item["text"].strip():
            block, first = [item["text"].strip()], number
        elif not starts:
            first = first if block else number
            block.append(line.strip())


def _blank_lines(pattern: re.Pattern[str], text: str) -> str:
    """Replace each match in a text by its line ends, so that line numbers stay correct."""
    return pattern.sub(lambda match: "\n" * match[0].count("\n"), text)


def _mem0(text: str, path: Path) -> Iterator[Fact]:
    """Yield the memories of mem0's ``get_all``: a list, or an object with ``results``."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise RecordError(f"{path} is not JSON: {error}") from error
    items = value.get("results", value.get("memories")) if isinstance(value, Mapping) else value
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise RecordError(
            f"{path} contains no list of memories", hint="export it with json.dump(memory.get_all(...), file)"
        )
    users = {item.get("user_id") for item in items}
    for number, item in enumerate(items, start=1):
        said = item.get("memory") or item.get("text")
        if not isinstance(said, str) or not 0 < len(said.strip()) <= MAX_TEXT_CHARACTERS:
            raise RecordError(f"{path}: memory {number} has no text of 1 to {MAX_TEXT_CHARACTERS:,} characters")
        subject = str(item.get("user_id") or "user") if len(users) > 1 else "user"
        name = make_id("f", "mem0", item.get("id") or normalised(said), subject)
        said_at = _moment(item.get("updated_at")) or _moment(item.get("created_at"))
        source = " ".join(["mem0", *(str(item[key]) for key in ("agent_id", "run_id") if item.get(key))])
        yield _fact(name, said.strip(), subject, IMPORTED, source, said_at, _metadata(item.get("metadata")))


def _fact(  # noqa: PLR0917  # the values of a fact in the files
    name: str,
    text: str,
    subject: str,
    made_by: str,
    source: str,
    said_at: datetime | None,
    metadata: Mapping[str, Any],
) -> Fact:
    category = category_of(text)
    slot, value = slot_of(text) or (None, None)
    return Fact(
        name,
        text,
        subject=subject,
        category=category,
        slot=slot,
        value=value,
        importance=importance_of(category),
        metadata=metadata,
        valid_from=said_at if slot else None,
        precision="by" if slot and said_at else "unknown",
        verified="person" if made_by == PERSON else "none",
        made_by=made_by,
        source=source,
        said_at=said_at,
    )


def _metadata(value: object) -> Mapping[str, Any]:
    """Return the values of an object that metadata can contain."""
    found: dict[str, Any] = {}
    for key, item in value.items() if isinstance(value, Mapping) else ():
        try:
            found |= check_metadata({key: item})
        except RecordError:
            continue  # metadata cannot contain nested values
    return found


def _moment(value: object) -> datetime | None:
    try:
        return parse_ts(value)
    except RecordError:
        return None
