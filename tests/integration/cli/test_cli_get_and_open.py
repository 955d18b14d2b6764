"""``klaw get`` of several documents, ``klaw open``, and what directories are."""

import json
import sys
from pathlib import Path

import pytest
from click import UsageError

from klaw_core.cli.open import command_for


class TestSeveral:
    def test_each_text_is_below_its_path(self, indexed):
        printed = indexed("get", "notes/auth.md:5:1", "notes/sub/tls.md").stdout
        assert printed == (
            "==> notes/auth.md:5-5 <==\nWe decided to use OIDC, because tokens expire.\n"
            "\n==> notes/sub/tls.md:1-3 <==\n# TLS\n\nThe gate showed `ERR_TLS_42` at dawn.\n"
        )

    def test_a_pattern_is_every_document_that_it_matches(self, indexed):
        found = json.loads(indexed("get", "notes/*.md", "--json").stdout)
        assert [each["path"] for each in found] == ["notes/2026-02-24.md", "notes/auth.md", "notes/sub/tls.md"]

    def test_a_pattern_of_one_document_is_a_list_too(self, indexed):
        assert [each["path"] for each in json.loads(indexed("get", "notes/a*", "--json").stdout)] == ["notes/auth.md"]

    def test_a_text_is_printed_once(self, indexed):
        found = json.loads(indexed("get", "notes/auth.md", "notes/a*", "--json").stdout)
        assert [each["path"] for each in found] == ["notes/auth.md"]

    def test_a_path_with_the_letters_of_a_pattern_is_a_path_first(self, klaw, notes):
        (notes / "[a]uth.md").write_text("brackets\n", "utf-8")
        klaw("index", str(notes))
        assert klaw("get", "notes/[a]uth.md").stdout == "brackets\n"

    def test_what_exists_is_printed_before_the_error_for_the_others(self, indexed):
        found = indexed("get", "notes/auth.md:5:1", "notes/x*", "notes/sub/tls.md")
        assert found.exit_code == 1
        assert [line for line in found.stdout.splitlines() if line.startswith("==>")] == [
            "==> notes/auth.md:5-5 <==",
            "==> notes/sub/tls.md:1-3 <==",
        ]
        assert "no indexed document matches the pattern 'notes/x*'" in found.stderr
        found = indexed("get", "nosuch", "notes/auth.md", "neither", "--json")
        assert found.exit_code == 1
        assert [each["path"] for each in json.loads(found.stdout)] == ["notes/auth.md"]
        assert "'nosuch'" in found.stderr
        assert "'neither'" in found.stderr
        found = indexed("get", "nosuch", "neither", "--json")
        assert (found.exit_code, found.stdout) == (1, "")

    @pytest.mark.parametrize(
        "end", [":1", ":1-1", ":1:1", "#TLS", "#page=3"], ids=["line", "range", "count", "heading", "page"]
    )
    def test_a_pattern_takes_neither_lines_nor_a_heading(self, indexed, end):
        refused = indexed("get", f"notes/*/t*{end}")
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "is a pattern, which takes neither lines nor a heading" in refused.stderr
        assert "klaw get 'notes/*/t*'" in refused.stderr
        assert "matches the pattern" in indexed("get", f"notes/x*{end}").stderr


class TestOpen:
    def test_a_result_is_opened_at_its_line(self, indexed, notes, tmp_path, monkeypatch):
        editor = tmp_path / "editor"
        editor.write_text(f"#!{sys.executable}\nimport sys; open({str(tmp_path / 'seen')!r}, 'w').write(str(sys.argv))")
        editor.chmod(0o700)
        monkeypatch.setenv("VISUAL", f"{editor} --wait")
        indexed("search", "oidc tokens")
        assert indexed("open", "1").exit_code == 0
        line = next(word for word in (tmp_path / "seen").read_text().split("'") if word.startswith("+"))
        assert "OIDC" in "\n".join((notes / "auth.md").read_text().splitlines()[int(line[1:]) - 1 :])

    def test_the_numbers_are_those_of_the_last_search(self, indexed, notes):
        indexed("search", "rye bread")
        indexed("search", "ERR_TLS_42", "-n", "1")
        assert json.loads(indexed("open", "1", "--json").stdout)["file"] == str(notes / "sub" / "tls.md")
        refused = indexed("open", "2")
        assert refused.exit_code == 1
        assert "the last search has 1 result, and none with the number 2" in refused.stderr

    def test_without_a_search(self, indexed):
        assert "nothing was searched for yet" in indexed("open", "1").stderr

    def test_what_is_remembered_of_a_search_is_no_text_and_no_path(self, indexed, user_home):
        indexed("search", "oidc")
        (kept,) = user_home.rglob("searches/*.json")
        assert kept.stat().st_mode & 0o077 == 0
        assert "auth" not in kept.read_text()

    def test_what_was_forgotten_since_is_not_opened(self, indexed):
        indexed("search", "ERR_TLS_42", "-n", "1")
        indexed("forget", "notes/sub/tls.md", "--yes")
        assert "result 1 of the last search is no longer indexed" in indexed("open", "1").stderr

    def test_a_file_that_was_moved_since_is_gone(self, indexed, notes):
        indexed("search", "ERR_TLS_42", "-n", "1")
        (notes / "sub" / "tls.md").rename(notes / "sub" / "ssl.md")
        refused = indexed("open", "1")
        assert refused.exit_code == 1
        assert "its file is gone, or was moved, since it was indexed" in refused.stderr
        assert "`klaw index`, then search again; `klaw get notes/sub/tls.md` prints" in refused.stderr
        indexed("index")
        assert "search again" in indexed("open", "1").stderr
        indexed("search", "ERR_TLS_42", "-n", "1")
        assert indexed("open", "1", "--print").stdout.startswith(str(notes / "sub" / "ssl.md"))

    def test_a_path_with_a_line(self, indexed, notes):
        assert indexed("open", "notes/auth.md:5", "--print").stdout == f"{notes / 'auth.md'}:5\n"

    def test_a_saved_memory_has_no_file(self, indexed):
        path = indexed("save", "The boat is red.").stdout.strip()
        assert f"klaw get {path}" in indexed("open", path).stderr

    def test_an_editor_that_fails_is_an_error(self, indexed, monkeypatch):
        monkeypatch.setenv("VISUAL", "false")
        assert "false ended with the exit status 1" in indexed("open", "notes/auth.md").stderr
        monkeypatch.setenv("VISUAL", "nowhere-at-all")
        assert "nowhere-at-all cannot be run" in indexed("open", "notes/auth.md").stderr

    def test_a_converted_file_has_no_lines(self, klaw, notes):
        (notes / "page.html").write_text("<main><h1>Kiln</h1><p>Fired at dawn.</p></main>", "utf-8")
        klaw("index", str(notes))
        assert json.loads(klaw("open", "notes/page.html", "--json").stdout)["line"] is None

    @pytest.mark.parametrize(
        ("editor", "expected"),
        [
            ("vi", ["vi", "+7", "/n/a.md"]),
            ("/usr/bin/code --wait", ["/usr/bin/code", "--wait", "--goto", "/n/a.md:7"]),
            ("hx", ["hx", "/n/a.md:7"]),
        ],
    )
    def test_each_editor_is_told_the_line_in_its_way(self, editor, expected, monkeypatch):
        monkeypatch.setenv("VISUAL", editor)
        assert command_for(Path("/n/a.md"), 7) == expected

    @pytest.mark.parametrize("name", ["a.py", "a.sh", "a.js", "a.bat", "a.desktop", "a"])
    def test_what_the_system_may_run_is_for_an_editor_only(self, name, monkeypatch):
        monkeypatch.setattr("klaw_core.cli.open.which", str)
        monkeypatch.delenv("EDITOR", raising=False)
        monkeypatch.setenv("VISUAL", " ")
        with pytest.raises(UsageError, match="set EDITOR"):
            command_for(Path(name), None)
        monkeypatch.setenv("EDITOR", "vim")
        assert command_for(Path(name), None) == ["vim", name]
        assert command_for(Path("a.pdf"), None)[1:] == ["a.pdf"]

    def test_a_line_is_found_in_a_file_with_other_separators(self, indexed, notes):
        (notes / "pages.md").write_text("# One\x0c\u2028\n\nThe zebra.\n")
        indexed("index", str(notes))
        assert indexed("open", "notes/pages.md:3", "--print").stdout.endswith("pages.md:3\n")

    def test_a_long_number_is_no_defect(self, indexed):
        assert "defect" not in indexed("open", "9" * 5000).stderr


class TestDescribe:
    def test_results_say_what_their_directories_are(self, indexed):
        assert indexed("workspace", "describe", "notes", "Decisions of", "the gate team").exit_code == 0
        indexed("workspace", "describe", "notes/sub", "Protocols")
        (found,) = json.loads(indexed("search", "ERR_TLS_42", "-n", "1", "--json").stdout)
        assert found["about"] == "Decisions of the gate team > Protocols"
        shown = indexed("search", "ERR_TLS_42 OIDC rye", "--full").stdout
        assert shown.count("(Decisions of the gate team)\n") == 1  # two results, one line

    def test_a_directory_may_be_given_as_such(self, indexed, notes):
        indexed("workspace", "describe", str(notes / "sub"), "Protocols")
        assert indexed("workspace", "describe", "notes").stdout == "notes/sub: Protocols\n"
        assert indexed("workspace", "describe", str(notes), "--json").stdout == '{\n  "sub": "Protocols"\n}\n'

    def test_a_directory_is_the_same_however_it_is_written(self, indexed):
        indexed("workspace", "describe", "notes/.//sub/", "Protocols")
        assert indexed("workspace", "describe", "notes").stdout == "notes/sub: Protocols\n"

    def test_a_result_without_a_description_has_none(self, indexed):
        assert "about" not in json.loads(indexed("search", "oidc", "--json").stdout)[0]

    def test_the_text_of_a_note_describes_nothing(self, klaw, notes):
        (notes / "evil.md").write_text("---\nabout: trust me\n---\nzebra\n", "utf-8")
        klaw("index", str(notes))
        assert "about" not in json.loads(klaw("search", "zebra", "--json").stdout)[0]

    def test_it_survives_a_rename_and_can_be_removed(self, indexed):
        indexed("workspace", "describe", "notes", "Decisions")
        indexed("workspace", "rename", "notes", "papers")
        assert indexed("workspace", "describe", "papers").stdout == "papers: Decisions\n"
        assert indexed("workspace", "describe", "papers", "--remove").exit_code == 0
        assert "about" not in json.loads(indexed("search", "oidc", "--json").stdout)[0]

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (("notes/nowhere", "x"), "notes/nowhere is not a directory"),
            (("notes/..", "x"), "notes/.. is not a directory"),
            (("nowhere", "x"), "nowhere is in no workspace"),
            (("notes", "x" * 501), "at most 500 characters"),
            (("notes", " "), "the description is empty"),
            (("notes", "AKIAIOSFODNN7EXAMPLQ"), "the description of a directory"),
            (("notes", "--remove"), "notes has no description"),
        ],
    )
    def test_what_is_refused(self, indexed, arguments, problem):
        refused = indexed("workspace", "describe", *arguments)
        assert refused.exit_code == 1
        assert problem in refused.stderr
