"""Every journal is exported and imported by its name, whether an extension does that, owns it, or is not installed."""

import json

import pytest
from homes import NoOptions

from klaw_core import API, AttachedExtension, Component, RecordError
from klaw_core.files.layout import DataDirectory
from klaw_journals import journals_of
from klaw_journals.contents import RESERVED_JOURNALS

RECORDS = [{"id": "b", "mood": "calm"}, {"id": "a", "mood": "glad", "why": {"deep": [1, None, "я"]}}]
LINES = [{"at": 1}, {"at": 1}, {"at": 2, "text": "öl"}]
TEXT = "- learn the accordion\n"
NAMES = ("mood", "mood_days", "mood_goals")


class Mood(AttachedExtension):
    """An extension that only opens journals: it has none of the methods of an export."""

    name = "mood"

    def attach(self, host, /):
        self.host = host

    def fill(self):
        journals_of(self.host).records("mood").append(RECORDS)
        journals_of(self.host).logs("mood_days").log("2026", "02").append(*LINES)
        journals_of(self.host).logs("mood_days").log("2026", "03").append(LINES[2])
        journals_of(self.host).text("mood_goals").replace(TEXT)


def content(memory):
    """Return what is in the three journals, however the memory keeps them."""
    journals = journals_of(memory.extensions.host)
    logs = journals.logs("mood_days")
    text = journals.text("mood_goals").read(999)
    return (
        list(journals.records("mood").replay().records.values()),
        {
            (group, name): [line.value for line in logs.log(group, name).read()]
            for group in logs.groups()
            for name in logs.names(group)
        },
        None if text is None else text.decode(),
    )


EVERYTHING = (RECORDS, {("2026", "02"): LINES, ("2026", "03"): [LINES[2]]}, TEXT)


@pytest.fixture
def with_mood(home):
    """Install the extension, and return the home."""
    home.extra.append(("extension", Component("mood", NoOptions, lambda _options, _context: Mood(), API)))
    return home


@pytest.fixture
def exported(with_mood, tmp_path):
    """The export of a memory with such an extension."""
    with with_mood.open() as memory:
        memory.extension("mood").fill()
        memory.save("the lantern")
        report = memory.export(tmp_path / "export.jsonl")
    assert report.counts["journal"] == len(RECORDS) + len(LINES) + 2
    assert report.skipped == report.notices == ()
    return tmp_path / "export.jsonl"


def other_home(make_home, home):
    return make_home("sqlite" if home.backend == "postgres" else home.backend)


def test_the_journals_of_an_extension_without_the_methods_are_carried(exported, make_home, with_mood):
    other = other_home(make_home, with_mood)
    other.extra = with_mood.extra
    with other.open() as memory:
        report = memory.import_(exported)
        assert report.added == {"saved": 1, "journal": 7}
        assert report.notices == ()
        assert content(memory) == EVERYTHING
        again = memory.import_(exported)
        assert (again.added, again.present, again.kept) == ({}, {"saved": 1, "journal": 7}, ())
        assert memory.import_(exported, dry_run=True).added == {}
        assert content(memory) == EVERYTHING


def test_a_journal_that_nobody_owns_is_kept_and_carried_on(exported, make_home, with_mood, tmp_path):
    other = other_home(make_home, with_mood)
    with other.open() as memory:
        report = memory.import_(exported, dry_run=True)
        assert report.added["journal"] == 7
        report = memory.import_(exported)
        told = [f"no installed extension owns the journal {name!r}; it is kept" for name in NAMES]
        assert [notice.partition(" for ")[0] for notice in report.notices] == told
        assert content(memory) == EVERYTHING
        again = memory.export(tmp_path / "again.jsonl")
        assert again.notices == tuple(
            f"included the journal {name!r}, which no installed extension owns" for name in NAMES
        )
    assert (tmp_path / "again.jsonl").read_bytes() == exported.read_bytes()


def test_existing_content_stays(exported, make_home, with_mood):
    other = other_home(make_home, with_mood)
    with other.open() as memory:
        journals = journals_of(memory.extensions.host)
        journals.records("mood").append([{"id": "a", "mood": "cross"}])
        journals.logs("mood_days").log("2026", "02").append({"at": 9}, LINES[0])
        journals.text("mood_goals").replace("rest")
        report = memory.import_(exported)
        assert len(report.kept) == 2
        assert all("already exists with other content" in kept for kept in report.kept)
        records, logs, text = content(memory)
        assert {record["id"]: record["mood"] for record in records} == {"a": "cross", "b": "calm"}
        assert sorted(map(str, logs["2026", "02"])) == sorted(map(str, [{"at": 9}, *LINES]))
        assert text == "rest"


def test_files_that_are_no_journals_are_not_exported(make_home, tmp_path):
    home = make_home("sqlite")
    with home.open() as memory:
        memory.index(home.notes)
        memory.save("the lantern")
        agent = DataDirectory(home.root / "data").agent("ann")
        agent.mkdir(parents=True)
        (agent / "saved.jsonl").write_text('{"id": "secret"}\n', "utf-8")
        for name in RESERVED_JOURNALS - {"agents", "locks"}:
            place = home.root / "data" / f"{name}.json"
            if not place.exists():
                place.write_text('{"secret": 1}', "utf-8")
        memory.export(home.root / "data" / "klaw-export.jsonl")
        report = memory.export(tmp_path / "export.jsonl")
    assert "secret" not in (tmp_path / "export.jsonl").read_text("utf-8")
    assert report.counts == {"workspace": 1, "saved": 1}
    assert [item.reason for item in report.skipped if "is not a journal" in item.reason] == [
        "is not a journal: it has no record"
    ]


def test_a_journal_of_an_extension_that_came_later_is_imported_by_it(make_home, tmp_path):
    """Exported without the extension, its records are checked and added by the extension."""
    home = make_home("sqlite")
    export = [
        {"kind": "header", "format": "klaw-export", "version": 1},
        {
            "kind": "journal",
            "journal": "saved",
            "form": "records",
            "value": {"id": "saved/2026-02-24/../x", "text": ""},
        },
        {"kind": "end", "records": 1},
    ]
    write(tmp_path / "export.jsonl", export)
    with home.open() as memory:
        with pytest.raises(RecordError, match="nothing was imported"):
            memory.import_(tmp_path / "export.jsonl")
        saved = memory.save("the lantern")
        (line,) = (home.root / "data" / "saved.jsonl").read_text("utf-8").splitlines()
        memory.forget(saved.path)
        export[1]["value"] = json.loads(line)
        write(tmp_path / "export.jsonl", export)
        assert memory.import_(tmp_path / "export.jsonl").added == {"saved": 1}
        assert memory.search("lantern")[0].path == saved.path


@pytest.mark.needs("klaw-conversations")
@pytest.mark.parametrize(
    "record",
    [
        {"journal": "../x", "form": "text", "text": ""},
        {"journal": ".hidden", "form": "text", "text": ""},
        {"journal": "", "form": "text", "text": ""},
        {"journal": "a/b", "form": "records", "value": {"id": "x"}},
        {"journal": "x" * 300, "form": "records", "value": {"id": "x"}},
        {"journal": "x\n", "form": "records", "value": {"id": "x"}},
        {"journal": "klaw.db", "form": "log", "group": "g", "log": "l", "value": {}},
        {"journal": "days", "form": "log", "group": "..", "log": "l", "value": {}},
        {"journal": "days", "form": "log", "group": "g", "log": "../l", "value": {}},
        {"journal": "days", "form": "log", "group": "g", "log": "l", "value": {"x": "y" * 2_000_000}},
        {"journal": "days", "form": "log", "group": "g", "log": "l", "value": []},
        {"journal": "conversations", "form": "log", "group": "telegram_1", "log": "2026-02-24", "value": {}},
        {"journal": "core_memory", "form": "text", "text": "{}"},
        {"journal": "sources", "form": "records", "value": {"id": "x"}},
        {"journal": "mood", "form": "records", "value": {}},
        {"journal": "mood", "form": "records", "value": {"id": ""}},
        {"journal": "mood", "form": "text", "text": 1},
        {"journal": "mood", "form": "secret"},
        {"journal": 1, "form": "text", "text": ""},
        {"form": "text", "text": ""},
        *({"journal": name, "form": "text", "text": "{}"} for name in sorted(RESERVED_JOURNALS)),
        {"journal": "agents", "form": "log", "group": "ann", "log": "saved", "value": {}},
    ],
)
def test_an_export_cannot_write_anything_else(make_home, tmp_path, record):
    home = make_home("sqlite")
    lines = [
        {"kind": "header", "format": "klaw-export", "version": 1},
        {"kind": "journal", **record},
        {"kind": "end", "records": 1},
    ]
    write(tmp_path / "export.jsonl", lines)
    with home.open() as memory:
        before = sorted(path for path in tmp_path.rglob("*") if "klaw.db" not in path.name)
        with pytest.raises(RecordError, match="nothing was imported"):
            memory.import_(tmp_path / "export.jsonl")
        assert sorted(path for path in tmp_path.rglob("*") if "klaw.db" not in path.name) == before


def write(path, lines):
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
