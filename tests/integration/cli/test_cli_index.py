"""``klaw init``, ``index``, ``reindex``, ``status``, ``plugins`` and ``demo``: the first five minutes."""

import json
import os
import re
import stat
import subprocess
import sys
import tomllib

import pytest

from klaw_core.cli.demo import program
from klaw_core.cli.reports import by_reason, summary
from klaw_core.config.load import load_config
from klaw_core.config.tables import DEFAULTS
from klaw_core.values.runs import IndexReport, SkippedEntry
from klaw_doctor.commands.counts import records


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def bare(klaw, user_home):
    """Run ``klaw`` where there is no configuration yet."""
    (user_home / "config" / "klaw" / "config.toml").unlink()
    (user_home / "config" / "klaw").rmdir()
    return klaw


class TestInit:
    def test_it_creates_private_directories_and_reports_the_components(self, bare, user_home):
        result = bare("init")

        assert result.exit_code == 0
        assert mode(user_home / "data" / "klaw") == 0o700
        assert mode(user_home / "config" / "klaw" / "config.toml") == 0o600
        assert "created  ~/config/klaw/config.toml" in result.stdout
        assert "store" in result.stdout

    def test_it_can_be_run_again_and_changes_nothing(self, bare, user_home):
        file = user_home / "config" / "klaw" / "config.toml"
        bare("init")
        file.write_text("# mine\n", "utf-8")

        again = bare("init")

        assert again.exit_code == 0
        assert file.read_text("utf-8") == "# mine\n"
        assert "exists" in again.stdout
        assert "created" not in again.stdout

    def test_the_created_file_means_the_defaults_commented_or_not(self, bare, user_home):
        bare("init")
        file = user_home / "config" / "klaw" / "config.toml"
        written = file.read_text("utf-8")
        # A default is a comment that is TOML: a key and a value, or a header.
        defaults = re.sub(r"# \[\[memory\.(reranking|sources)\]\]\n(# .*\n)*", "", written)  # examples of what is not
        lines = (line.removeprefix("# ") for line in defaults.splitlines())
        file.write_text("\n".join(line if is_toml(line) else f"# {line}" for line in lines), "utf-8")

        assert bare("config", "list").exit_code == 0
        assert {(selection.place, selection.type) for selection in load_config(config_file=file).selections()} == {
            (selection.place, selection.type)
            for selection in load_config(environment={"KLAW_CONFIG": "/dev/null"}).selections()
        }

    def test_the_created_file_has_every_table(self, bare, user_home):
        bare("init")
        text = (user_home / "config" / "klaw" / "config.toml").read_text("utf-8")

        for key, default in DEFAULTS["memory"].items():
            header = f"[[memory.{key}]]" if isinstance(default, list) else f"[memory.{key}]"
            header = f"[memory.{key}.NAME]" if key in {"formats", "converters"} else header
            assert header in text, key
        assert "# max_entries = 250000" in text
        assert '# include = ["*.md", "*.markdown", "*.mdx", "*.qmd", "*.rmd", "*.txt"]' in text

    def test_only_the_type_must_be_changed_in_the_created_file(self, bare, user_home):
        bare("init")
        file = user_home / "config" / "klaw" / "config.toml"
        text = file.read_text("utf-8")
        file.write_text(text.replace('# type = "rrf"', 'type = "weighted"'), "utf-8")

        assert bare("config", "get", "memory.fusion.type").stdout == "weighted\n"
        assert bare("config", "list").exit_code == 0

    def test_a_missing_component_names_its_fix(self, bare, monkeypatch):
        monkeypatch.setenv("KLAW_DISABLE_PLUGINS", "klaw-fts5")

        result = bare("init")
        components = json.loads(bare("init", "--json").stdout)["components"]

        assert result.exit_code == 0
        assert "remove it from plugins.disabled" in result.stdout
        assert "plugins.disabled" in {item["type"]: item["remedy"] for item in components}["fts5"]

    def test_init_does_not_import_a_disabled_plugin(self, bare, bomb, monkeypatch):
        monkeypatch.setenv("KLAW_DISABLE_PLUGINS", "klaw-bomb")

        assert bare("init").exit_code == 0
        assert not bomb.exists()

    def test_a_missing_model_is_named(self, bare, user_home):
        other = user_home / "other.toml"
        other.write_text(f'[memory.embedding]\ntype = "onnx"\npath = "{user_home}"\n', "utf-8")

        result = bare("init", "--config", str(other))
        components = json.loads(bare("init", "--config", str(other), "--json").stdout)["components"]
        status = bare("status", "--config", str(other))

        assert result.exit_code == 0
        assert re.search(r"broken +embedder +onnx +no model\.json in .* → set memory\.embedding\.path", result.stdout)
        assert "next: set memory.embedding.path to a model's directory" in result.stdout
        assert "no model.json" in {item["kind"]: item["problem"] for item in components}["embedder"]
        assert {item["kind"] for item in components if item["problem"]} == {"embedder"}
        assert status.exit_code == 0
        assert status.stdout.count("no model.json in") == 1

    def test_a_retriever_without_its_sqlite_extension_is_named(self, bare, user_home, monkeypatch):
        monkeypatch.setattr("klaw_store_sqlitevec.vectors._extension", lambda: user_home / "none")

        result = bare("init")

        assert re.search(r"ready +retriever +sqlite-vec +.*does without the SQLite extension vec0", result.stdout)
        assert re.search(r"ready +retriever +fts5", result.stdout)

    def test_an_invalid_database_is_named(self, bare, user_home):
        bare("init")
        (user_home / "data" / "klaw" / "klaw.db").write_bytes(b"no database at all" * 1000)

        assert re.search(r"broken +store +sqlite", bare("init").stdout)

    def test_invalid_options_are_named(self, bare, user_home):
        other = user_home / "other.toml"
        other.write_text("[memory.fusion]\nk = 'many'\n", "utf-8")

        result = bare("init", "--config", str(other))

        assert re.search(r"broken +fusion +rrf +.*memory\.fusion\.k.* → `klaw config path`", result.stdout)

    def test_a_data_directory_that_cannot_be_written_is_named(self, bare, user_home, monkeypatch):
        bare("init")
        # Root may write anywhere, so that permissions alone would not show it.
        monkeypatch.setattr("os.access", lambda path, _mode: path != user_home / "data" / "klaw")

        result = bare("init")

        assert "read-only  ~/data/klaw" in result.stdout
        assert "next: make the data directory writable" in result.stdout
        assert json.loads(bare("init", "--json").stdout)["writable"] is False


def is_toml(line):
    try:
        tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return False
    return True


class TestIndex:
    def test_index_prints_the_numbers_of_documents(self, klaw, notes):
        first = klaw("index", str(notes))
        assert first.stdout.startswith("notes: 3 new; 3 chunks in ")

        (notes / "auth.md").write_text("# Auth\n\nChanged.\n", "utf-8")
        (notes / "sub" / "tls.md").unlink()
        second = klaw("index")

        assert second.stdout.startswith("all sources: 1 changed, 1 unchanged, 1 removed; 1 chunk in ")

    def test_add_is_an_alias(self, klaw, notes):
        assert klaw("add", str(notes)).stdout.startswith("notes: 3 new")

    def test_several_directories_and_json(self, klaw, notes, user_home):
        (user_home / "more").mkdir()
        (user_home / "more" / "a.md").write_text("one more", "utf-8")

        both = json.loads(klaw("index", str(notes), str(user_home / "more"), "--json").stdout)

        assert [(report["workspace"], report["added"]) for report in both] == [("notes", 3), ("more", 1)]

    def test_index_sets_the_name_of_a_workspace(self, klaw, notes):
        klaw("index", str(notes), "--name", "diary")

        assert klaw("search", "bread", "--format", "files").stdout == "diary/2026-02-24.md\n"
        assert klaw("index", "--name", "other").exit_code == 2

    def test_a_name_that_is_taken_is_named_with_its_owner_once(self, indexed, notes, user_home):
        second = user_home / "elsewhere" / notes.name
        second.mkdir(parents=True)
        (second / "a.md").write_text("# Another", "utf-8")

        result = indexed("index", str(second))

        assert result.stdout.startswith("notes-2: 1 new")
        assert f"the name notes is already in use by {notes}, so this workspace is called notes-2" in result.stderr
        assert "klaw workspace rename notes-2 NAME" in result.stderr
        assert "--name NAME" in result.stderr
        assert indexed("index", str(second)).stderr == ""
        assert indexed("index", str(notes)).stderr == ""

    def test_a_name_that_klaw_itself_uses_is_named(self, klaw, user_home):
        (user_home / "saved").mkdir()
        (user_home / "saved" / "a.md").write_text("# A", "utf-8")

        assert "the name saved is already in use, so this workspace" in klaw("index", str(user_home / "saved")).stderr

    def test_a_directory_inside_a_workspace_is_said_to_belong_to_it(self, indexed, notes):
        result = indexed("index", str(notes / "sub"))

        assert result.stdout.startswith("notes: 3 unchanged")
        assert f"{notes / 'sub'} belongs to the workspace notes ({notes}), which was indexed as a" in result.stderr
        refused = indexed("index", str(notes / "sub"), "--name", "other")
        assert f"{notes / 'sub'} is in {notes}, which is the workspace 'notes'" in refused.stderr

    def test_force_splits_all_documents_again(self, indexed):
        assert json.loads(indexed("index", "--json").stdout)["unchanged"] == 3
        assert json.loads(indexed("index", "--force", "--json").stdout)["changed"] == 3

    def test_verify_finds_a_change_with_equal_size_and_times(self, indexed, notes):
        note = notes / "2026-02-24.md"
        before = note.stat()
        note.write_text(note.read_text("utf-8").replace("rye", "oat"), "utf-8")
        os.utime(note, ns=(before.st_atime_ns, before.st_mtime_ns))

        assert json.loads(indexed("index", "--verify", "--json").stdout)["changed"] == 1

    def test_skipped_files_are_named_with_their_reason(self, klaw, notes):
        for number in range(5):
            (notes / f"empty{number}.md").write_text("", "utf-8")
        (notes / "broken.md").write_bytes(b"\xc3\xa9a\xe9")

        brief, verbose = klaw("index", str(notes)), klaw("index", "--verbose")

        assert "6 skipped" in brief.stdout
        assert brief.stderr == "6 skipped: 5 empty, 1 not valid UTF-8; -v lists them\n"
        assert "skipped notes/broken.md: is not valid UTF-8 (byte 3)" in verbose.stderr
        assert "notes/empty3.md, notes/empty4.md: is empty" in verbose.stderr

    def test_a_few_skipped_files_are_named(self, klaw, notes):
        (notes / "empty.md").write_text("", "utf-8")
        (notes / "broken.md").write_bytes(b"\xc3\xa9a\xe9")

        result = klaw("index", str(notes))

        assert set(result.stderr.splitlines()) == {
            "skipped notes/empty.md: is empty",
            "skipped notes/broken.md: is not valid UTF-8 (byte 3)",
        }

    def test_reasons_are_counted_without_the_details_of_each_file(self):
        reasons = [*["is empty"] * 7, *["points outside the workspace"] * 2, "leads nowhere", "cannot be read: EIO"]
        reasons += [f"is not valid UTF-8 (byte {at})" for at in range(3)]
        counted = by_reason([SkippedEntry(f"{at}.md", reason, keep=False) for at, reason in enumerate(reasons)])
        many = by_reason([SkippedEntry(f"{at}.md", f"reason {at}", keep=False) for at in range(8)])

        assert counted == "7 empty, 3 not valid UTF-8, 2 point outside the workspace, 1 leads nowhere, 1 cannot be read"
        assert many.endswith("1 reason 4, 3 for other reasons")

    def test_an_invalid_path_is_an_error(self, klaw, notes):
        nothing, file = klaw("index"), klaw("index", str(notes / "auth.md"))

        assert (nothing.exit_code, nothing.stderr) == (1, "klaw: nothing has been indexed yet → klaw index DIR\n")
        assert file.exit_code == 1
        assert file.stderr.endswith(f"auth.md belongs to no source → klaw index {notes} --include auth.md\n")

    def test_reindex_prints_a_report(self, indexed):
        assert indexed("reindex").stdout.startswith("reindexed: 3 new; 3 chunks in ")
        assert json.loads(indexed("search", "bread", "--json").stdout)

    def test_the_summary_leaves_out_zero_counts(self):
        full = IndexReport(12, 3, 640, 1, chunks=5812, embedded=5700, cached=112, seconds=200)

        assert summary(full) == (
            "12 new, 3 changed, 640 unchanged, 1 removed; 5,812 chunks, 5,700 embedded, 112 from the cache"
            " in 3 min 20 s"
        )
        assert summary(IndexReport(unchanged=640, seconds=0.31)) == "640 unchanged in 0.3 s"
        assert summary(IndexReport(seconds=3900)) == "no notes in 1 h 5 min"
        assert summary(IndexReport(lacking=3, seconds=1)) == "nothing in 1.0 s"  # what `klaw embed` could not do

    def test_records_are_counted_with_their_names(self):
        assert records({"workspace": 2, "core": 1, "saved": 5812, "message": 1, "summary": 2}) == (
            "2 workspaces, 1 fact of core memory, 5,812 saved memories, 1 message, 2 summaries"
        )
        assert records({"fact": 33}) == "33 facts", "of another extension"
        assert records({}) == ""


class TestStatus:
    def test_an_empty_index_names_the_next_command(self, klaw):
        assert "nothing is indexed yet: klaw index DIR" in klaw("status").stdout

    def test_kinds_that_are_not_read_are_counted_in_configured_directories_too(self, klaw, user_home):
        place = user_home / "plans"
        place.mkdir()
        (place / "boat.md").write_text("# Boat", "utf-8")
        (place / "boat.dwg").write_text("drawing", "utf-8")
        config = user_home / "plans.toml"
        source = {"type": "workspace", "name": "plans", "path": str(place)}
        written = "\n".join(f"{key} = {json.dumps(value)}" for key, value in source.items())
        config.write_text(f"[[memory.sources]]\n{written}\n[memory.embedding]\ntype = 'none'\n", "utf-8")
        klaw("index", "--config", str(config))
        assert "(not read: 1 .dwg)" in klaw("status", "--config", str(config)).stdout

    def test_status_shows_sources_and_embedder(self, indexed, user_home):
        indexed("save", "the boat is red")
        text = indexed("status").stdout
        status = json.loads(indexed("status", "--json").stdout)

        assert "~/data/klaw/klaw.db" in text
        assert "~/config/klaw/config.toml" in text
        assert "3 notes" in text
        assert "1 memory " in text
        assert status["origins"] == {
            "notes": {"documents": 3, "chunks": 3},
            "saved": {"documents": 1, "chunks": 1},
        }
        assert status["workspaces"] == {"notes": str(user_home / "notes")}
        assert status["retrievers"] == ["fts5"]
        assert status["excluded"] == {}

    def test_a_forgotten_note_counts_as_excluded_until_it_is_restored(self, indexed, user_home):
        indexed("forget", "--yes", "notes/auth.md")

        assert "~/notes (1 excluded)" in indexed("status").stdout
        assert json.loads(indexed("status", "--json").stdout)["excluded"] == {"notes": 1}

        listed = user_home / "data" / "klaw" / "workspaces.json"
        workspaces = json.loads(listed.read_text("utf-8"))
        workspaces["notes"]["exclude"].remove("auth.md")
        listed.write_text(json.dumps(workspaces), "utf-8")

        assert "1 new" in indexed("index").stdout
        assert "excluded" not in indexed("status").stdout


class TestPlugins:
    def test_every_component_is_listed_under_its_plugin(self, klaw):
        listed = json.loads(klaw("plugins", "--json").stdout)
        text = klaw("plugins").stdout

        components = {(item["kind"], item["name"]) for plugin in listed for item in plugin["components"]}
        assert {("fusion", "rrf"), ("store", "sqlite"), ("retriever", "fts5")} <= components
        assert "builtin  klaw " in text
        assert "  retriever  fts5  " in text

    def test_a_disabled_plugin_is_shown_as_such(self, klaw, monkeypatch):
        monkeypatch.setenv("KLAW_DISABLE_PLUGINS", "klaw-fts5")

        assert "disabled" in klaw("plugins").stdout

    def test_plugins_are_listed_with_a_broken_configuration(self, klaw, user_home):
        (user_home / "broken.toml").write_text("[other]\n", "utf-8")

        result = klaw("plugins", "--config", str(user_home / "broken.toml"))

        assert result.exit_code == 0
        assert "builtin" in result.stdout
        assert "ignored the configuration" in result.stderr


class TestDemo:
    def test_demo_answers_its_questions_and_leaves_no_files(self, klaw, user_home):
        result = klaw("demo")

        assert result.exit_code == 0, result.stderr
        assert "11 new" in result.stdout
        assert "1. notes/postmortems/2026-01-17-gates.md" in result.stdout
        assert "why: fts5 ranked it 1st (+0.0164)" in result.stdout
        assert "дача.md" in result.stdout
        assert not (user_home / "data").exists()

    @pytest.mark.parametrize("options", [(), ("--keep", "my sample")])
    def test_the_commands_that_demo_prints_work(self, klaw, notes, monkeypatch, options):
        monkeypatch.chdir(notes)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        shown = klaw("demo", *options).stdout
        commands = [line.strip() for line in shown.splitlines()[-4:] if re.match(r"  \S", line)]

        assert len(commands) == (1 if options else 3)
        for command in commands:
            done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        assert "auth.md" in done.stdout or "Ida" in done.stdout

    def test_demo_prints_the_program_as_the_shell_finds_it(self, tmp_path, monkeypatch):
        script = tmp_path / "bin dir" / "klaw"
        script.parent.mkdir()
        script.write_text("#!/bin/sh\n")
        script.chmod(0o700)
        monkeypatch.setattr(sys, "argv", [str(script)])
        monkeypatch.delenv("NOX_CURRENT_SESSION", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        assert program() == f"'{script}'"
        monkeypatch.setenv("PATH", str(script.parent))
        assert program() == "klaw"
        monkeypatch.setenv("NOX_CURRENT_SESSION", "demo")
        assert program() == f"'{script}'"

    def test_the_question_of_the_readme_is_answered_by_the_decision(self, klaw, user_home):
        klaw("demo", "--keep", str(user_home / "sample"))
        found = klaw(
            "--data-dir", str(user_home / "sample" / "data"), "search", "what did we decide about auth", "--json"
        )
        best = json.loads(found.stdout)[0]
        assert best["path"] == "notes/decisions/sign-in.md"
        assert "We decided on server-side sessions" in best["content"]
        assert (
            "We decided on server-side sessions"
            in klaw("--data-dir", str(user_home / "sample" / "data"), "get", "notes/decisions/sign-in.md:20-24").stdout
        )

    def test_a_kept_demo_can_be_searched(self, klaw, user_home):
        result = klaw("demo", "--keep", str(user_home / "sample"))
        data = str(user_home / "sample" / "data")

        assert f"--data-dir {data} search" in result.stdout
        best = json.loads(klaw("--data-dir", data, "search", "why no message broker", "--json").stdout)[0]
        assert best["path"] == "notes/decisions/queue.md"

    def test_json(self, klaw):
        answers = json.loads(klaw("demo", "--json").stdout)

        assert len(answers) == 4
        assert all("explain" in result for answer in answers for result in answer["results"])
