"""``klaw list``, ``recent``, ``restore`` and ``workspace``, and ``klaw index`` with files and patterns."""

import csv
import io
import json
from shlex import split

import pytest

from klaw_core import install_extras
from klaw_core.cli.index import _how_to_index


class TestList:
    def test_documents_are_listed_by_path(self, indexed):
        lines = indexed("list").stdout.splitlines()
        assert [line.split()[1] for line in lines] == ["notes/2026-02-24.md", "notes/auth.md", "notes/sub/tls.md"]
        assert lines[0].startswith("2026-02-24")
        assert indexed("ls", "notes/sub/").stdout.split()[1] == "notes/sub/tls.md"

    def test_documents_are_listed_in_pages(self, indexed):
        first = json.loads(indexed("list", "--limit", "2", "--json").stdout)
        rest = json.loads(indexed("list", "--after", first[-1]["path"], "--json").stdout)
        assert [row["path"] for row in first + rest] == ["notes/2026-02-24.md", "notes/auth.md", "notes/sub/tls.md"]

    def test_all_collections_are_listed_unless_one_is_named(self, indexed, user_home):
        (user_home / "manual").mkdir()
        (user_home / "manual" / "m.md").write_text("usage", "utf-8")
        indexed("index", str(user_home / "manual"), "-c", "docs")
        assert indexed("list").stdout.splitlines()[-1].split()[1:] == ["manual/m.md", "docs"]
        assert indexed("list", "--collection", "docs", "--format", "files").stdout == "manual/m.md\n"
        assert indexed("list", "--collection", "nope").exit_code == 1

    def test_a_list_is_printed_in_each_format(self, indexed):
        files = ["notes/2026-02-24.md", "notes/auth.md", "notes/sub/tls.md"]
        rows = list(csv.DictReader(io.StringIO(indexed("list", "--format", "csv").stdout)))
        assert [row["path"] for row in rows] == files
        table = indexed("list", "--format", "md").stdout.splitlines()
        assert table[0] == "| path | origin | collection | created_at |"
        assert len(table) == 5
        assert indexed("list", "--format", "files").stdout.split() == files
        assert indexed("list", "--json", "--format", "md").exit_code == 2

    def test_saved_memories_are_listed(self, indexed):
        indexed("save", "The ferry leaves at seven.")
        shown = indexed("list", "--saved").stdout
        assert "saved/" in shown
        assert "The ferry leaves at seven." in shown
        assert json.loads(indexed("list", "--saved", "--json").stdout)[0]["preview"] == "The ferry leaves at seven."

    @pytest.mark.needs("klaw-conversations")
    def test_chats_are_listed(self, indexed, user_home):
        place = user_home / "data" / "klaw" / "conversations" / "telegram_1"
        place.mkdir(parents=True)
        (place / "2026-02-24.jsonl").write_text("{}\n", "utf-8")
        assert "telegram_1  1 day since 2026-02-24" in indexed("list", "--chats").stdout

    def test_workspaces_are_listed(self, indexed, user_home):
        assert indexed("list", "--workspaces").stdout == indexed("workspace", "list").stdout
        assert indexed("list", "--workspaces", "--format", "files").stdout == f"{user_home / 'notes'}\n"

    @pytest.mark.needs("klaw-conversations")
    @pytest.mark.parametrize("kind", [(), ("--saved",), ("--chats",), ("--workspaces",)])
    def test_an_empty_list_is_printed_with_a_notice(self, klaw, kind):
        result = klaw("list", *kind)
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.startswith("klaw: ")
        assert json.loads(klaw("list", *kind, "--json").stdout) == []

    def test_a_prefix_applies_only_to_documents(self, indexed):
        assert indexed("list", "notes/", "--saved").exit_code == 2
        assert "zzz" in indexed("list", "zzz").stderr


class TestRecent:
    def test_the_newest_documents_are_first_with_their_beginning(self, indexed):
        assert indexed("recent", "--format", "files").stdout.split()[-1] == "notes/2026-02-24.md"
        assert "Baked rye bread with buttermilk." in indexed("recent").stdout
        assert len(json.loads(indexed("recent", "--limit", "2", "--json").stdout)) == 2

    def test_since_and_collection_filter_the_documents(self, indexed):
        shown = indexed("recent", "--since", "2026-02-25", "--collection", "memory").stdout
        assert "2026-02-24.md" not in shown
        assert "notes/auth.md" in shown

    def test_an_empty_memory_has_no_recent_documents(self, klaw):
        assert "nothing is indexed yet" in klaw("recent").stderr
        assert json.loads(klaw("recent", "--json").stdout) == []


class TestRestore:
    def test_restore_undoes_forget(self, indexed):
        told = indexed("forget", "--yes", "notes/auth.md")
        assert "klaw restore notes/auth.md" in told.stderr
        assert "klaw restore notes/auth.md" in indexed("index", "../notes/auth.md").stderr
        assert indexed("restore", "notes/auth.md").stdout.startswith("notes/auth.md: 1 new; 1 chunk")
        assert "auth.md" in indexed("search", "OIDC").stdout

    def test_json(self, indexed):
        indexed("forget", "--yes", "notes/auth.md")
        assert json.loads(indexed("restore", "notes/auth.md", "--json").stdout)["added"] == 1
        assert "was not forgotten" in json.loads(indexed("restore", "notes/auth.md", "--json").stderr)["error"]

    def test_a_forgotten_saved_memory_cannot_be_restored(self, indexed):
        path = indexed("save", "The ferry leaves at seven.").stdout.strip()
        told = indexed("forget", "--yes", path)
        assert "restore" not in told.stderr
        assert "deleted" in indexed("restore", path).stderr


class TestWorkspace:
    def test_list_shows_workspaces_with_their_patterns(self, indexed):
        (row,) = json.loads(indexed("workspace", "list", "--json").stdout)
        assert (row["name"], row["documents"], row["is_there"]) == ("notes", 3, True)
        assert indexed("workspace", "list", "--format", "csv").stdout.startswith("name,root,")

    def test_rename_changes_the_name(self, indexed):
        assert indexed("workspace", "rename", "notes", "vault").stdout.startswith("vault: 3 new")
        assert indexed("list", "--format", "files").stdout.startswith("vault/")
        assert indexed("workspace", "rename", "notes", "x").exit_code == 1
        refused = json.loads(indexed("workspace", "rename", "vault", "saved", "--json").stderr.splitlines()[-1])
        assert refused["hint"] == "choose another name: klaw workspace rename vault NEW_NAME"

    def test_exclude_adds_and_removes_patterns(self, indexed):
        assert "excludes nothing" in indexed("workspace", "exclude", "notes").stderr
        assert "1 removed" in indexed("workspace", "exclude", "notes", "sub/*").stdout
        assert indexed("workspace", "exclude", "notes").stdout == "sub/*\n"
        assert json.loads(indexed("workspace", "exclude", "notes", "--json").stdout) == ["sub/*"]
        assert "(excludes sub/*)" in indexed("workspace", "list").stdout
        assert "1 new" in indexed("workspace", "exclude", "notes", "sub/*", "--remove").stdout
        assert indexed("workspace", "exclude", "notes", "--remove").exit_code == 2
        assert "matches" in indexed("workspace", "exclude", "notes", "notes/sub").stderr
        assert "1 removed" in indexed("workspace", "exclude", "notes", "./sub/").stdout
        assert indexed("workspace", "exclude", "notes", "").exit_code == 1

    def test_remove_asks_unless_told_not_to(self, indexed, user_home):
        assert indexed("workspace", "remove", "notes").exit_code == 2
        assert "forgot 3 documents" in indexed("workspace", "remove", "notes", "--yes").stdout
        assert (user_home / "notes" / "auth.md").exists()


class TestIndexing:
    def test_a_single_file_of_an_indexed_directory_is_updated(self, indexed, notes):
        (notes / "new.md").write_text("a gull", "utf-8")
        assert indexed("index", str(notes / "new.md")).stdout.startswith(f"{notes / 'new.md'}: 1 new")
        (notes / "code.py").write_text("print()", "utf-8")
        assert "does not match *.md" in indexed("index", str(notes / "code.py")).stderr

    def test_a_file_outside_of_indexed_directories_is_rejected(self, indexed, user_home):
        (user_home / "x.md").write_text("text", "utf-8")
        assert "belongs to no source" in indexed("index", str(user_home / "x.md")).stderr

    def test_include_and_exclude_set_patterns(self, klaw, notes):
        (notes / "code.py").write_text("gull = 1", "utf-8")
        klaw("index", str(notes), "--include", "*.py", "--include", "*.md", "--exclude", "sub/*")
        shown = klaw("list", "--format", "files").stdout.split()
        assert shown == ["notes/2026-02-24.md", "notes/auth.md", "notes/code.py"]
        assert "(reads *.py *.md)" in klaw("workspace", "list").stdout
        assert klaw("index", "--include", "*.py").exit_code == 2

    def test_a_directory_without_notes_is_reported(self, klaw, user_home):
        place = user_home / "code"
        place.mkdir()
        (place / "a.py").write_text("print()", "utf-8")
        told = (
            "klaw: other files in code, not read: 1 .py; "
            "if they are text, `klaw index DIR --include '*.md' --include '*.py'` reads them\n"
        )
        assert klaw("index", str(place)).stderr == told
        assert klaw("index", str(place), "--include", "*.py").stderr == ""

    def test_the_distribution_that_reads_other_files_is_named(self, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
        told = _how_to_index([".py", ".pdf", ".docx"], [".md"])
        assert told == f"`{install_extras(['documents'])}` reads .docx .pdf"
        way = "if they are text, `klaw index DIR --include '*.md' --include '*.py'` reads them"
        assert _how_to_index([".py"], [".md"]) == way

    def test_the_hint_to_read_other_files_loses_none(self, klaw, user_home):
        place = user_home / "mixed"
        place.mkdir()
        for name in ("a.md", "b.txt", "c.markdown", "d.csv", "e.yaml"):
            (place / name).write_text("gull = 1", "utf-8")
        hint = klaw("index", str(place)).stderr.partition("`klaw ")[2].partition("`")[0]
        assert klaw(*split(hint.replace("DIR", str(place)))).exit_code == 0
        shown = sorted(klaw("list", "--format", "files").stdout.split())
        assert shown == [f"mixed/{name}" for name in ("a.md", "b.txt", "c.markdown", "d.csv", "e.yaml")]

    def test_other_files_are_reported_once(self, klaw, user_home):
        place = user_home / "code"
        (place / "build").mkdir(parents=True)
        for name in ("a.md", "a.py", "b.PY", "c.csv", "Makefile", "x.png", "y.sty", "build/z.o", ".hidden.rst"):
            (place / name).write_text("a gull", "utf-8")
        (place / ".gitignore").write_text("build/\n", "utf-8")
        told = klaw("index", str(place)).stderr
        assert "not read: 2 .py, 1 .csv, 1 .png, 1 .sty, 1 other kind;" in told
        assert klaw("index", str(place)).stderr == ""
        assert "2 .py" in klaw("index", str(place), "-v").stderr
        assert klaw("index").stderr == ""

    def test_status_and_doctor_name_what_is_skipped(self, indexed, notes):
        (notes / "latin.md").write_bytes(b"\xc3\xa9a\xe9")
        assert "latin.md: is not valid UTF-8" in indexed("index").stderr
        assert "(1 skipped: 1 not valid UTF-8)" in indexed("status").stdout.replace(":  ", ": ")
        assert "skipped notes/latin.md: is not valid UTF-8" in indexed("status", "-v").stdout
        assert "iconv" in indexed("doctor").stdout


def test_a_shell_completes_workspaces_and_forgotten_notes(indexed, spawn):
    def complete(words: str, at: int) -> str:
        variables = {"_KLAW_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
        return spawn(environment=variables).stdout

    indexed("forget", "--yes", "notes/auth.md")
    assert "plain,notes" in complete("klaw workspace rename no", 3)
    assert "plain,notes/auth.md" in complete("klaw restore no", 2)
    assert complete("klaw restore zz", 2).strip() == ""
    assert len(complete("klaw list ", 2).split()) == 2
    assert complete("klaw get notes/s", 2).split() == ["plain,notes/sub/tls.md"]
    assert complete("klaw forget notes/2", 2).split() == ["plain,notes/2026-02-24.md"]
