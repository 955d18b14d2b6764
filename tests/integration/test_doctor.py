"""Every fault that `klaw doctor` knows is put into a real database or file, found, and fixed where that is safe."""

from __future__ import annotations

import os
import shlex
from contextlib import contextmanager
from datetime import UTC, datetime

import apsw
import attrs
import numpy as np
import pytest

from klaw_core import (
    API,
    Chunk,
    Component,
    EmbeddingError,
    Finding,
    LanguageModelError,
    Memory,
    SpaceRecord,
    StoredChunk,
    VectorSpace,
)
from klaw_core.interfaces.index import Index
from klaw_doctor.diagnosis import Diagnosis
from klaw_doctor.doctor import diagnose_unopened, guarded
from klaw_journals.chats import Chat
from klaw_journals.messages import Message
from klaw_memories.core_memory import CoreMemory
from klaw_testing.language_model import ScriptedModel

UNPACKED = [{"type": "sqlite-vec"}, {"type": "fts5", "search": "exact"}]
MOMENT = datetime(2026, 2, 24, 12, tzinfo=UTC)
# Of any size: FTS5 answers up to 0 chunks.
PACKED = [{"type": "sqlite-vec"}, {"type": "fts5", "exact_up_to": 0}]


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


@pytest.fixture
def memory(home):
    """A memory over three notes and a saved one."""
    home.write("a.md", "# Alpha\n\nThe harbour master writes down every ship.\n")
    home.write("b.md", "# Beta\n\nGulls sleep on the roof.\n")
    home.write("sub/c.md", "# Gamma\n\nThe lighthouse keeper bakes bread.\n")
    with home.open() as opened:
        opened.index(home.notes)
        opened.save("The ferry leaves at seven.")
        yield opened


def checks(diagnosis: Diagnosis) -> set[str]:
    return {finding.check for finding in diagnosis.findings}


@contextmanager
def writing(memory: Memory):
    """Write past Klaw, with the extension loaded."""
    with memory._assembly.store.write() as transaction:
        yield transaction.resource


def index_of(memory: Memory, name: str):
    return dict(memory._assembly.indexes())[name]


def add_orphan(memory: Memory) -> None:
    """Put the words of a chunk that is not there into their index."""
    with writing(memory) as connection:
        orphan = StoredChunk(999, Chunk("orphan", "nobody", 0, 6, 1, 1), "notes/gone.md", "gone.md", MOMENT)
        index_of(memory, "fts5").add(connection, "memory", [orphan], None)


def expect(memory: Memory, check: str, *, where: str = "", fixable: bool, severity: str = "error") -> None:
    """The fault is found, alone; fixed exactly if it is safe; and then nothing is left of it."""
    found = memory.doctor()
    assert checks(found) == {check}, found
    (finding, *_) = found.findings
    assert finding.severity == severity
    assert finding.hint
    assert not finding.fixed
    assert where in finding.where
    assert found.healthy == (severity != "error")
    assert memory.doctor() == found, "looking changes nothing"
    fixed = memory.doctor(fix=True)
    assert checks(fixed) == {check}
    assert all(finding.fixed for finding in fixed.findings) == fixable
    assert checks(memory.doctor()) == (set() if fixable else {check})


class TestHealthy:
    @pytest.mark.parametrize("backend", ["memory", "sqlite"])
    def test_a_healthy_memory_has_no_findings(self, make_home, backend):
        home = make_home(backend)
        home.write("a.md", "# Alpha\n\nOne.\n")
        with home.open() as memory:
            assert memory.doctor() == Diagnosis(), "before anything is indexed"
            memory.index(home.notes)
            memory.save("The ferry leaves at seven.")
            assert memory.doctor() == Diagnosis()
            memory.forget("notes/a.md")
            memory.reindex()
            assert memory.doctor(fix=True) == Diagnosis()

    def test_the_status_reads_the_keys_of_an_index_only_if_it_lacks_some(self, memory, monkeypatch):
        words, read = index_of(memory, "fts5"), []
        of_words = type(words).keys
        monkeypatch.setattr(type(words), "keys", lambda *given: read.append(given) or of_words(*given))
        assert memory.status().problems == ()
        assert read == []

        with writing(memory) as connection:
            words.remove(connection, "memory", of_words(words, connection, "memory").tolist()[:2])
        assert memory.status().problems == ("fts5 lacks 2 chunks: run `klaw index`",)
        assert read != []

    def test_every_index_implements_a_check(self, memory):
        indexes = dict(memory._assembly.indexes())
        assert set(indexes) == {"sqlite-vec", "fts5"}
        assert all(type(index).check is not Index.check for index in indexes.values())


class TestIndexes:
    @pytest.mark.parametrize(("name", "severity"), [("sqlite-vec", "warning"), ("fts5", "error")])
    def test_keys_that_an_index_lacks_are_found_and_added(self, memory, name, severity):
        with writing(memory) as connection:
            keys = index_of(memory, name).keys(connection, "memory").tolist()
            index_of(memory, name).remove(connection, "memory", keys[:2])
        expect(memory, "index-missing", where=f"memory/{name}", fixable=True, severity=severity)
        assert memory.search("harbour master", mode="fts" if name == "fts5" else "vector")

    def test_keys_that_only_the_compact_form_lacks_are_found(self, home):
        home.write("a.md", "The harbour master writes down every ship.\n")
        with home.open(retrieval=UNPACKED) as exact:
            exact.index(home.notes)
        with home.open(retrieval=PACKED) as memory:
            (finding,) = memory.doctor().findings
            assert (finding.check, finding.severity, finding.hint) == ("index-outdated", "warning", "klaw index")
            assert memory.search("harbour master", mode="fts")
            assert memory.status().problems == ("fts5 has 1 chunk in an earlier form: run `klaw index`",)
            memory.index()
            assert memory.status().problems == ()
            assert memory.doctor().findings == ()

    def test_fixing_creates_the_compact_form(self, home):
        home.write("a.md", "The harbour master writes down every ship.\n")
        with home.open(retrieval=UNPACKED) as exact:
            exact.index(home.notes)
        with home.open(retrieval=PACKED) as memory:
            expect(memory, "index-outdated", where="memory/fts5", fixable=True, severity="warning")

    def test_words_removed_while_packing_was_off_are_found(self, home):
        home.write("a.md", "The harbour master writes down every ship.\n")
        gone = home.write("b.md", "Gulls sleep on the roof.\n")
        with home.open(retrieval=UNPACKED) as exact:
            exact.index(home.notes)
        gone.unlink()
        with home.open(retrieval=UNPACKED[:1]) as wordless:
            wordless.index()
        with home.open() as memory:
            memory.index()
            with memory._assembly.store.read() as snapshot:
                rows = [row for (row,) in snapshot.resource.execute("SELECT rowid FROM memory_fts ORDER BY rowid")]
                assert rows == snapshot.keys("memory").tolist()
            assert memory.doctor().findings == ()

    def test_orphaned_keys_are_found_and_removed(self, memory):
        add_orphan(memory)
        expect(memory, "index-orphans", where="memory/fts5", fixable=True)

    def test_a_damaged_inverted_index_is_found_and_filled_again(self, memory):
        with writing(memory) as connection:
            connection.execute("UPDATE memory_fts_data SET block = x'00112233' WHERE id > 10")
        expect(memory, "index-content", where="memory/fts5", fixable=True)
        assert memory.search("lighthouse", mode="fts")

    @pytest.mark.parametrize("bad", [np.zeros(48), np.full(48, np.nan), np.full(48, 3.0)], ids=["zero", "nan", "long"])
    def test_an_invalid_vector_is_found(self, memory, bad):
        with writing(memory) as connection:
            key = connection.execute("SELECT MIN(rowid) FROM vec_memory_rowids").get
            connection.execute(
                "UPDATE vec_memory SET embedding = ? WHERE rowid = ?", (bad.astype("<f4").tobytes(), key)
            )
        expect(memory, "index-content", where="memory/sqlite-vec", fixable=True)

    @pytest.mark.parametrize(
        "damage",
        [
            "UPDATE vec_memory_vector_chunks00 SET vectors = x'00'",
            "DELETE FROM vec_memory_vector_chunks00",
            "UPDATE vec_memory_chunks SET validity = zeroblob(LENGTH(validity))",
            "UPDATE vec_memory_rowids SET chunk_offset = chunk_offset + 1",
            "UPDATE vec_memory_chunks SET rowids = zeroblob(LENGTH(rowids))",
        ],
    )
    def test_inconsistent_shadow_tables_are_found(self, memory, damage):
        with writing(memory) as connection:
            connection.execute(damage)
        expect(memory, "index-content", where="memory/sqlite-vec", fixable=True)
        assert memory.search("lighthouse keeper", mode="vector")

    def test_a_table_of_another_dimension_is_found(self, memory):
        with writing(memory) as connection:
            index_of(memory, "sqlite-vec").reset(connection, "memory", VectorSpace("other", "1", 8))
        found = memory.doctor()
        assert checks(found) == {"index-content", "index-missing"}
        assert "8 dimensions, the recorded space has 48" in str(found)
        assert memory.doctor(fix=True).healthy
        assert memory.doctor() == Diagnosis()

    def test_a_missing_table_is_found(self, memory):
        with writing(memory) as connection:
            connection.execute("DROP TABLE vec_memory")
        assert checks(memory.doctor()) == {"index-content", "index-missing"}
        assert memory.doctor(fix=True).healthy
        assert memory.doctor() == Diagnosis()

    def test_a_failing_index_is_named_and_the_others_are_checked(self, memory, monkeypatch):
        def fail(*_):
            raise ZeroDivisionError("a defect")

        monkeypatch.setattr(type(index_of(memory, "sqlite-vec")), "keys", fail)
        found = memory.doctor()
        assert ("index-unread", "memory/sqlite-vec") in {(item.check, item.where) for item in found.findings}
        assert not any(item.where == "memory/fts5" for item in found.findings)

    @pytest.mark.parametrize("method", ["keys", "check"])
    @pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
    def test_an_index_whose_check_fails_is_named_and_not_emptied(self, memory, monkeypatch, method, error):
        broken = type(index_of(memory, "fts5"))

        def fail(*_):
            raise error("no memory now")

        with monkeypatch.context() as patch:
            patch.setattr(broken, method, fail)
            patch.setattr(broken, "reset", fail)
            expected = {("index-unread", f"{name}/fts5", "klaw reindex", False) for name in ("memory", "docs")}
            for fix in (False, True):
                found = memory.doctor(fix=fix).findings
                assert {(item.check, item.where, item.hint, item.fixed) for item in found} == expected
        assert memory.search("harbour master", mode="fts")
        assert memory.doctor() == Diagnosis()

    def test_problems_that_cannot_be_fixed_stay_and_the_others_are_fixed(self, home, memory, monkeypatch):
        def fail(*_):
            raise ZeroDivisionError("a defect")

        broken = type(index_of(memory, "sqlite-vec"))
        monkeypatch.setattr(broken, "check", fail)
        monkeypatch.setattr(broken, "reset", fail)
        add_orphan(memory)
        home.write("b.md", "# Beta\n\nGulls sleep elsewhere.\n")
        assert {(item.check, item.fixed) for item in memory.doctor(fix=True).findings} == {
            ("index-unread", False),
            ("index-orphans", True),
            ("stale", True),
        }


class TestVectorSpaces:
    @pytest.mark.usefixtures("memory")
    def test_another_model_is_found(self, home):
        with home.open(embedding={"type": "counting", "model": "newer"}) as other:
            found = other.doctor(fix=True)
            assert {item.check for item in found.findings if item.severity == "error"} == {"vector-space"}
            assert "counting@1" in str(found)
            assert "newer@1" in str(found)
            assert not found.healthy
            other.reindex()
            assert other.doctor() == Diagnosis()

    def test_a_changed_model_with_the_same_name_is_found(self, memory):
        with memory._assembly.store.write() as transaction:
            record = transaction.space("memory")
            other = np.roll(record.probe, 7)
            transaction.set_space("memory", SpaceRecord(record.space, other))
        expect(memory, "vector-probe", where="memory", fixable=False)

    def test_vectors_of_an_unknown_model_are_found(self, memory):
        with writing(memory) as connection:
            connection.execute("DELETE FROM collection_spaces")
        found = memory.doctor()
        assert "vector-space" in checks(found)
        assert not memory.doctor(fix=True).healthy
        memory.reindex()
        assert memory.doctor() == Diagnosis()

    def test_a_model_that_does_not_work_is_found(self, home, memory):
        home.recorder.fail_at = 0
        expect(memory, "model", fixable=False)

    def test_a_model_without_a_name_is_found(self, home, memory):
        class Keyless:
            max_tokens = 100
            embed_query = embed_documents = None

            def count_tokens(self, texts, /):
                return [1 for _ in texts]

            @property
            def space(self):
                raise EmbeddingError("it needs a key", hint="export KEY=…")

        memory.close()
        options = attrs.make_class("Options", [], frozen=True)
        home.extra.append(("embedder", Component("keyless", options, lambda _options, _place: Keyless(), API)))
        with home.open(embedding={"type": "keyless"}) as opened:
            found = opened.doctor().findings
        assert [(item.check, item.where, item.hint) for item in found] == [
            ("model", "memory.embedding", "export KEY=…")
        ]

    @pytest.mark.parametrize(
        ("error", "findings"),
        [
            (None, []),
            (LanguageModelError("no answer from :1", hint="start it"), [("no answer from :1", "start it")]),
            (OSError("no route"), [("no route", "klaw config get memory.language_model")]),
        ],
    )
    @pytest.mark.usefixtures("memory")
    def test_a_language_model_that_does_not_answer_is_found(self, home, error, findings):
        class Checked(ScriptedModel):
            def check(self):
                if error is not None:
                    raise error

        model = Checked(model="checked")
        options = attrs.make_class("Options", [], frozen=True)
        home.extra.append(("language model", Component("checked", options, lambda _options, _place: model, API)))
        with home.open(language_model={"type": "checked"}) as opened:
            diagnosis = opened.doctor()
        found = [item for item in diagnosis.findings if item.check == "language-model"]
        assert [(item.where, item.severity, item.hint) for item in found] == [
            ("memory.language_model", "error", hint) for _, hint in findings
        ]
        assert all(what in item.what for item, (what, _) in zip(found, findings, strict=True))
        assert diagnosis.healthy == (not findings)
        assert not model.prompts

    @pytest.mark.usefixtures("memory")
    def test_a_language_model_without_a_check_is_built(self, home):
        def build(_options, _place):
            raise LanguageModelError("it is offline")

        options = attrs.make_class("Options", [], frozen=True)
        home.extra.append(
            ("language model", Component("plain", options, lambda _options, _place: ScriptedModel(), API))
        )
        home.extra.append(("language model", Component("unbuilt", options, build, API)))
        with home.open(language_model={"type": "plain"}) as opened:
            assert "language-model" not in checks(opened.doctor())
        with home.open(language_model={"type": "unbuilt"}) as opened:
            assert "language-model" in checks(opened.doctor())


class TestSources:
    def test_a_changed_note_is_found(self, home, memory):
        home.write("b.md", "# Beta\n\nGulls sleep elsewhere.\n")
        expect(memory, "stale", where="notes", severity="warning", fixable=True)
        assert memory.search("elsewhere", mode="fts")

    def test_a_deleted_note_is_found(self, home, memory):
        (home.notes / "b.md").unlink()
        found = memory.doctor()
        assert found.findings[0].items == ("notes/b.md",)
        expect(memory, "ghosts", where="notes", severity="warning", fixable=True)
        assert not memory.search("gulls", mode="fts")

    def test_a_note_that_was_never_indexed_is_found(self, home, memory):
        home.write("new.md", "# New\n\nPelicans.\n")
        expect(memory, "never-indexed", where="notes", severity="warning", fixable=True)

    def test_documents_of_a_missing_directory_are_kept(self, home, memory):
        home.notes.rename(home.root / "away")
        expect(memory, "source-gone", where="notes", severity="warning", fixable=False)
        assert memory.search("lighthouse")

    def test_a_missing_directory_is_named_whatever_it_is_called(self, home, memory):
        odd = home.root / "it's (an) odd name"
        odd.mkdir()
        (odd / "c.md").write_text("gulls")
        memory.index(odd)
        odd.rename(home.root / "away")
        (found,) = memory.doctor().findings
        assert found.what == f"{odd} does not exist; 1 of its documents stay indexed"
        assert (
            found.hint
            == f"mount or restore it; or `klaw forget {shlex.quote(odd.name)}/` removes its documents from the index"
        )

    def test_documents_of_an_unknown_workspace_are_found(self, memory):
        memory.extension("workspaces").registry.forget("notes")
        expect(memory, "ghost-source", where="notes", severity="warning", fixable=True)
        assert not memory.search("lighthouse", mode="fts")
        assert memory.search("ferry", mode="fts"), "saved memories stay"

    def test_an_unreadable_note_is_not_a_deleted_note(self, home, memory):
        if os.geteuid() == 0:
            pytest.skip("root reads everything")
        (home.notes / "sub").chmod(0)
        try:
            assert memory.doctor(fix=True) == Diagnosis()
        finally:
            (home.notes / "sub").chmod(0o700)


class TestOwnedFiles:
    def test_an_invalid_line_of_saved_memories_is_found(self, home, memory):
        memory.save("Second.")
        path = home.root / "data" / "saved.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"{broken}\n" + b"".join(lines))
        expect(memory, "saved-lines", where="saved.jsonl", fixable=False)

    def test_chunks_whose_journal_line_is_missing_are_kept(self, home, memory):
        path = home.root / "data" / "saved.jsonl"
        path.write_bytes(b"{" + path.read_bytes())
        assert checks(memory.doctor(fix=True)) == {"saved-lines"}
        assert memory.search("ferry", mode="fts")

    def test_a_torn_line_is_a_warning(self, home, memory):
        with (home.root / "data" / "saved.jsonl").open("ab") as file:
            file.write(b'{"id": "saved/')
        expect(memory, "saved-lines", severity="warning", fixable=False)

    def test_an_unfinished_forget_is_found_and_completed(self, home, memory):
        path = home.root / "data" / "saved.jsonl"
        secret = memory.save("the password is swordfish")
        memory._assembly.collection("memory").remove([secret.path])
        with path.open("ab") as file:
            file.write(f'{{"forget": "{secret.path}"}}\n'.encode())
        expect(memory, "saved-unfinished", fixable=True)
        assert b"swordfish" not in path.read_bytes()

    def test_a_missing_journal_is_found(self, home, memory):
        (home.root / "data" / "saved.jsonl").unlink()
        expect(memory, "journal-gone", where="saved", fixable=False)
        assert memory.search("ferry", mode="fts")

    def test_a_broken_core_memory_is_found(self, home, memory):
        path = home.root / "data" / "core_memory.json"
        CoreMemory(path).update("user", "name", "Ada")
        path.write_text('{"user": {"name": "Ada",}}')
        expect(memory, "core-memory", where="core_memory.json", fixable=False)
        assert path.read_text() == '{"user": {"name": "Ada",}}'

    def test_a_copy_of_a_broken_core_memory_is_named_after_the_repair(self, home, memory):
        path = home.root / "data" / "core_memory.json"
        path.write_text('{"user": {"name": "Ada",}}')
        memory.doctor()
        path.write_text('{"user": {"name": "Ada"}}')
        (found,) = (each for each in memory.doctor().findings if each.check.startswith("core-memory"))
        assert (found.check, found.severity) == ("core-memory-copy", "note")
        assert found.where == f"{path}.broken-1"
        path.with_name(f"{path.name}.broken-1").unlink()
        assert not [each for each in memory.doctor().findings if each.check.startswith("core-memory")]

    def test_a_broken_list_of_workspaces_is_found(self, home, memory):
        (home.root / "data" / "workspaces.json").write_text("[]")
        found = memory.doctor(fix=True)
        assert checks(found) == {"workspaces", "sources"}
        assert memory.search("lighthouse", mode="fts"), "nothing was taken for a ghost"

    @pytest.mark.needs("klaw-conversations")
    def test_an_invalid_line_of_a_conversation_is_found(self, home, memory):
        path = home.root / "data" / "conversations" / "telegram_1" / "2026-02-24.jsonl"
        path.parent.mkdir(parents=True, mode=0o700)
        path.touch(0o600)
        path.write_text("nonsense\n")
        found = memory.doctor()
        assert [(item.check, item.severity) for item in found.findings] == [("conversation-lines", "error")]
        path.write_text("")
        (path.parent.parent / "stray.jsonl").write_text("")
        assert checks(memory.doctor()) == {"conversation-files"}

    @pytest.mark.parametrize("name", ["saved.jsonl", "workspaces.json", "klaw.db", "klaw.db.lock"])
    def test_a_file_that_others_can_read_is_found(self, home, memory, name):
        (home.root / "data" / name).chmod(0o644)
        expect(memory, "permissions", where=name, fixable=True)
        assert (home.root / "data" / name).stat().st_mode & 0o777 == 0o600

    def test_permissions_that_cannot_be_changed_do_not_prevent_other_fixes(self, home, memory, monkeypatch):
        def refuse(path, _mode):
            raise PermissionError(1, "Operation not permitted", str(path))

        path = home.root / "data" / "saved.jsonl"
        secret = memory.save("the password is swordfish")
        memory._assembly.collection("memory").remove([secret.path])
        with path.open("ab") as file:
            file.write(f'{{"forget": "{secret.path}"}}\n'.encode())
        workspaces = home.root / "data" / "workspaces.json"
        workspaces.chmod(0o644)
        monkeypatch.setattr("pathlib.Path.chmod", refuse)
        assert {(item.check, item.where, item.fixed) for item in memory.doctor(fix=True).findings} == {
            ("permissions", str(workspaces), False),
            ("saved-unfinished", str(path), True),
        }
        assert b"swordfish" not in path.read_bytes()

    def test_summaries_are_checked_like_conversations(self, home, memory):
        memory.conversations.add_summary(Chat("telegram", "1"), "They spoke of piers.")
        root = home.root / "data" / "summaries"
        path = root / "telegram_1" / "summaries.jsonl"
        memory.index()
        assert memory.doctor() == Diagnosis()
        path.chmod(0o644)
        expect(memory, "permissions", where=str(path), fixable=True)
        path.write_bytes(path.read_bytes() + b"{}\n")
        expect(memory, "conversation-lines", where=str(path), fixable=False)
        path.unlink()
        memory.index()
        (root / "foo").mkdir()
        expect(memory, "conversation-files", where=str(root), severity="warning", fixable=False)


class TestParts:
    @pytest.mark.usefixtures("memory")
    def test_a_sqlite_extension_that_does_not_load_is_found(self, home, monkeypatch, tmp_path):
        monkeypatch.setattr("klaw_store_sqlitevec.vectors._extension", lambda: tmp_path / "vec0")
        with home.open() as crippled:
            found = crippled.doctor()
            assert checks(found) == {"retriever"}
            assert "vec0, which does not load" in found.findings[0].what
            assert found.healthy

    @pytest.mark.usefixtures("memory")
    def test_a_broken_plugin_is_a_warning(self, home):
        registry = home.registry()
        broken = attrs.evolve(registry.plugins[0], name="klaw-broken", problem="ImportError: no such thing")
        with Memory.open(home.config(), registry=attrs.evolve(registry, plugins=(*registry.plugins, broken))) as opened:
            found = opened.doctor()
        assert [(item.check, item.severity, item.where) for item in found.findings] == [
            ("plugin", "warning", "klaw-broken")
        ]
        assert found.healthy

    @pytest.mark.usefixtures("memory")
    def test_an_embedder_that_cannot_be_built_is_found(self, home):
        def build(_options, _place):
            raise RuntimeError("no runtime")

        home.extra.append(("embedder", Component("absent", attrs.make_class("Options", [], frozen=True), build, API)))
        with home.open(embedding={"type": "absent"}) as opened:
            found = opened.doctor(fix=True)
        assert "model" in checks(found)
        assert not found.healthy

    def test_a_database_that_does_not_open_and_broken_files_are_both_named(self, home, memory):
        memory.close()
        (home.root / "data" / "core_memory.json").write_text("[]")
        (home.root / "data" / "core_memory.json").chmod(0o600)
        path = home.root / "data" / "klaw.db"
        path.write_bytes(b"nothing like a database" * 400)
        with pytest.raises(Exception, match="not a valid SQLite database") as caught:
            home.open()
        found = diagnose_unopened(home.config(), home.registry(), caught.value)
        assert checks(found) == {"open", "core-memory"}

    def test_a_check_that_fails_keeps_what_it_found(self):
        def look():
            yield Finding("any", "note", "what came before", "here")
            raise ValueError("a defect")

        before, failed = guarded("any", "here", look)
        assert before.what == "what came before"
        assert failed.severity == "error"
        assert "a defect" in failed.what

    def test_findings_are_ordered_by_severity(self, home, memory):
        home.write("new.md", "# New\n\nPelicans.\n")
        add_orphan(memory)
        assert [item.severity for item in memory.doctor().findings] == ["error", "warning"]

    def test_nothing_is_fixed_while_another_process_holds_the_lock(self, home, memory):
        (home.root / "data" / "klaw.db").chmod(0o644)
        add_orphan(memory)
        with home.open(store={"type": "sqlite", "busy_timeout_seconds": 0.05}) as other:
            holder = apsw.Connection(str(home.root / "data" / "klaw.db"))
            holder.execute("BEGIN IMMEDIATE")
            found = other.doctor(fix=True)
            holder.close()
            assert {(item.check, item.fixed) for item in found.findings} == {
                ("lock", False),
                ("index-orphans", False),
                ("permissions", True),
            }
            assert other.doctor(fix=True).healthy


class TestConversations:
    @pytest.fixture
    def talked(self, memory):
        journal = memory.conversations.journal
        for number in range(6):
            where = {"channel": "telegram", "chat_id": str(number % 2)}
            journal.append(Message("user", f"message {number} of pelicans", ts=MOMENT, meta=where))
        memory.index()
        assert memory.doctor() == Diagnosis()
        return memory

    def test_messages_without_rows_are_found(self, talked):
        where = {"channel": "telegram", "chat_id": "1"}
        talked.conversations.journal.append(Message("user", "one more", ts=MOMENT, meta=where))
        found = talked.doctor()
        assert checks(found) == {"conversation-behind", "stale"}
        assert found.healthy
        assert [finding.fixed for finding in talked.doctor(fix=True).findings] == [True] * len(found.findings)
        assert talked.doctor() == Diagnosis()

    @pytest.mark.parametrize(
        "damage",
        [
            "DELETE FROM messages WHERE key = 1",
            "UPDATE messages SET position = position + 1 WHERE key = 3",
            "UPDATE messages SET id = 'another' WHERE key = 2",
        ],
    )
    def test_rows_that_differ_from_the_journal_are_found(self, talked, damage):
        with writing(talked) as connection:
            connection.execute(damage)
        found = talked.doctor()
        assert "conversation-rows" in checks(found)
        assert not found.healthy
        assert talked.doctor(fix=True).healthy
        talked.index()  # a message that is in no file was perhaps being forgotten, so its day was removed
        assert talked.doctor() == Diagnosis()

    def test_words_that_differ_from_the_messages_are_found(self, talked):
        with writing(talked) as connection:
            connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')")
        expect(talked, "messages-index", where="klaw.db", fixable=True)
        assert talked.conversations.search("pelicans")
