"""Any JSON in a line of a journal or an export is a record, or raises RecordError with the reason."""

import copy
import json
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest

from klaw_core import Chat, ComponentContext, KlawError, Message, NewDocument, RecordError
from klaw_doctor.importing import _check_record as check_imported
from klaw_doctor.records import parse_line
from klaw_facts import Fact, Quote
from klaw_facts.fold import fold
from klaw_facts.records import OPERATIONS, check_operation, fact_record, operation
from klaw_journals.file_journals import FileJournals
from klaw_journals.records import Record
from klaw_memories.documents import DocumentsExtension
from klaw_memories.saved import Saved

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
TELEGRAM = Chat("telegram", "1")
#: Every type, and values at the ends of those that a record has.
ODD = [
    *(None, True, False, 0, -1, 2**63, 2**200, 1e308, -0.0, "", "x", "\x00", "x" * 200_000),
    *(
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
        "2026-02-30",
        "../../etc/passwd",
        "/\x00",
        "/" + "x" * 5_000,
    ),
    *([], {}, [[]], [None], [{}], {"": None}, {"a": {"b": []}}, [1, "x"], "person", "edit", "f-1"),
]
FACT = Fact(
    "f-1",
    "I live in Lyon",
    slot="home",
    value="Lyon",
    category="identity",
    importance=0.25,
    tags=("a",),
    metadata={"k": "v", "n": ("a", "b")},
    quotes=(Quote(TELEGRAM.name, "m1", 0, 4),),
    valid_from=NOON,
    valid_to=NOON,
    said_at=NOON,
    is_pinned=True,
    supersedes=("f-0",),
    batch="b-1",
    source="a note",
)
QUOTES = [quote.record() for quote in FACT.quotes]
DETAILS = {
    "assert": fact_record(FACT, NOON),
    "edit": {"changes": {"text": "I live in Rome", "tags": ["x"], "metadata": {"k": ["a"]}, "valid_from": None}},
    "end": {"valid_to": "2026-02-24T12:00:00Z", "by_fact": "f-2", "reason": "moved"},
    "confirm": {"quotes": QUOTES, "batch": "b-1"},
    "unquote": {"chat": TELEGRAM.name, "message": "m1"},
    "merge": {"people": ["telegram:7", "owner"]},
    "propose": {"other": "f-2", "reason": "both", "by_fact": "f-2"},
    "batch": {"chat": "c", "after": "", "through": "m1", "state": "done", "facts": 1, "tokens_in": 5, "error": "e"},
    "digest": {"chat": "c", "day": "2026-02-24", "quotes": QUOTES, "lines": ["a"]},
    "profile": {"facts": ["f-1"], "lines": ["a"], "basis": "p-1"},
    "compact": {"chat": "c", "through": "m1"},
    "undo": {"batch": "b-1"},
    "decide": {"proposal": "o-1", "accepted": True},
    "suppress": {"key": "0" * 32},
}


def line_of(op):
    made = operation(op, NOON, fact="f-1")
    return {**made, "batch": "b-1", **DETAILS.get(op, {}), "op": op}


def check_fact_line(record):
    """Check a line as it is read, and take it in as the state of the facts does."""
    check_operation(record)
    others = [{**line_of("assert"), "id": "f-1", "batch": None}, line_of("batch")]
    fold([*others, record, line_of("end")])


def check_workspace(record):
    """Check a workspace as an import does, and look at its directory."""
    from klaw_notes.extension import WorkspacesExtension, _parse
    from klaw_notes.workspace_list import is_gone

    owner = WorkspacesExtension(ComponentContext(Path("/nowhere"), Path("/nowhere")))
    try:
        check_imported(Record("workspace", record), {"workspace": owner})
        owner.effect(Record("workspace", record))
        is_gone(_parse(record).root)
    except KlawError as error:
        raise RecordError(error.message) from error


def parse_summary(record):
    return import_module("klaw_conversations.summaries").SummaryFiles(None).parse(TELEGRAM, record)


DOCUMENTS = DocumentsExtension(FileJournals(Path("/nowhere")))
READERS = {
    **{f"facts: {op}": (line_of(op), check_fact_line) for op in sorted(OPERATIONS)},
    "saved": (Saved.make("a text", "manual", "telegram_1", NOON).record(), Saved.parse),
    "document": (
        NewDocument("x", "text", {"k": ["a"]}, payload={"a": [1]}).record("memory"),
        DocumentsExtension(FileJournals(Path("/nowhere"))).parse,
    ),
    "message": (Message("user", "text", NOON, id="m1", meta=TELEGRAM.meta).record(), Message.parse),
    "summary": (
        {"ts": "2026-02-24T12:00:00Z", "content": "text", "from_message_id": "m1", "to_message_id": None},
        parse_summary,
    ),
    "workspace": (
        {"name": "notes", "value": {"path": "/notes", "exclude": ["*.tmp"], "include": ["*.md"], "collection": "docs"}},
        check_workspace,
    ),
    "export": ({"kind": "saved", "value": {"id": "x"}, "chat": "telegram_1", "day": "2026-02-24"}, parse_line),
}


def places(value, before=()):
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*before, key)
        yield from places(value[key], (*before, key))


def changed(record, place, value):
    copied = copy.deepcopy(record)
    holder = copied
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = copy.deepcopy(value)
    return copied


@pytest.mark.parametrize("name", READERS)
def test_any_json_line_is_a_record_or_a_record_error(name):
    record, read = READERS[name]
    record, refused = json.loads(json.dumps(record)), 0
    kind = type(read(record))
    for place in places(record):
        missing = copy.deepcopy(record)
        holder = missing
        for key in place[:-1]:
            holder = holder[key]
        del holder[place[-1]]
        for other in (missing, *(changed(record, place, value) for value in ODD)):
            try:
                assert type(read(other)) in {kind, type(None)}
            except RecordError as error:
                assert error.message.strip()  # noqa: PT017  # any other exception is a failure
                refused += 1
            except Exception as error:
                error.add_note(f"{place}: {str(other)[:500]}")
                raise
    assert refused
