"""What a fresh process loads: little for the help, for a search what that search needs, and how it ends."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import klaw_core
from klaw_core.cli.program import COMMANDS, cli

pytestmark = pytest.mark.cold_start

# What only some commands need, each of them slow to import.
HEAVY = {"numpy", "rich", "onnxruntime", "tokenizers", "cattrs", "markdown_it", "apsw", "httpx2", "tomlkit", "regex"}
MODELS = {"onnxruntime", "tokenizers", "klaw_models", "klaw_embed_onnx.embedder"}
# What a search has no use for, whichever it is. To import sqlite_vec itself would import all of numpy.
NEVER = {"httpx2", "klaw_http", "sqlite_vec", "rich", "cattrs", "markdown_it", "regex", "tomlkit", "importlib.metadata"}
# What a search for words has no use for beyond that. Every module of these makes classes, each slow to make.
NOT_FOR_WORDS = {
    "klaw_rerank_basic",
    "klaw_notes.workspace",
    "klaw_notes.workspace_options",
    "klaw_core.values.documents",
    "klaw_core.embedding.run",
    "klaw_core.embedding.fallback",
    "klaw_core.values.findings",
    "logging",
    "klaw_journals",
    "klaw_core.embedding.query_vectors",
    "klaw_core.values.key_digest",
    "klaw_store_sqlitevec.transaction",
    "klaw_store_sqlitevec.unused_space",
    "hashlib",
    "glob",
    "numpy",
    "tempfile",
}
# What a plugin beside those of `klaw[default]` may import for its options: events, with the reports in them.
REPORTS = {"klaw_core.values.events", "klaw_core.values.runs"}


def loaded(*arguments: str, entry: str = "cli.main(sys.argv[1:], prog_name='klaw')") -> tuple[str, set[str]]:
    """Run ``klaw`` in a process of its own; return its standard output, and the modules it has loaded."""
    program = (
        "import sys\nfrom klaw_core.cli.program import cli\n"
        f"try:\n    {entry}\n"
        "finally:\n    print('\\n@', *sorted(sys.modules))"
    )
    if entry == "main()":
        program = program.replace("cli.program import cli", "cli.startup import main")
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, encoding="utf-8", check=False
    )
    output, _, modules = done.stdout.rpartition("\n@")
    return output, set(modules.split())


class TestImports:
    @pytest.mark.parametrize(
        "arguments", [["--help"], ["--version"], ["search", "--help"], ["config", "--help"], ["serch"]]
    )
    @pytest.mark.usefixtures("user_home")
    def test_help_and_usage_errors_import_nothing_heavy(self, arguments):
        _, modules = loaded(*arguments)

        assert "klaw_core.cli.program" in modules
        assert not modules & HEAVY

    @pytest.mark.usefixtures("user_home")
    def test_help_imports_no_command(self):
        _, modules = loaded("--help", "--quiet")

        assert {name for name in modules if name.startswith("klaw_core.cli.")} == {
            f"klaw_core.cli.{name}" for name in ("extensions", "group", "program", "settings", "startup", "streams")
        }

    @pytest.mark.usefixtures("user_home")
    def test_the_main_help_imports_few_modules(self):
        output, modules = loaded("--help", entry="main()")

        assert output.startswith("Usage: klaw ")
        assert {name for name in modules if name.startswith("klaw_core")} == {
            "klaw_core",
            "klaw_core.cli",
            "klaw_core.cli.startup",
        }
        assert not modules & {"click", "attrs", "typing", "pathlib"}

    @pytest.mark.parametrize("mode", ["fts", "hybrid"])
    @pytest.mark.parametrize("question", ["bread?", "bread"])
    @pytest.mark.usefixtures("indexed")
    def test_a_search_imports_only_what_it_needs(self, mode, question):
        loaded("search", question)  # which plugins there are is remembered from here on
        output, modules = loaded("search", "--mode", mode, question)
        if question == "bread":  # a name may be defined somewhere, and nothing else of that plugin is asked
            modules -= {"klaw_rerank_basic", "klaw_rerank_basic.plugin", "klaw_rerank_basic.definition"}

        assert "rye bread" in output
        assert {"apsw", "klaw_fts5.index"} <= modules
        assert not modules & (NEVER | MODELS)
        assert not {name for name in modules if name.startswith(("klaw_embed_", "klaw_rerank_"))}
        if mode == "fts":
            assert modules & NOT_FOR_WORDS == set()
        assert not modules & {
            "klaw_core.indexing.flow",
            "klaw_conversations.archive",  # its reranking stage is small
            "klaw_memories.saved",
            "klaw_core.maintenance",
        }

    @pytest.mark.parametrize("question", ["bread?", "bread", "what is nowhere"])
    @pytest.mark.usefixtures("indexed")
    def test_the_default_plugins_import_no_reports_of_index_runs(self, question, monkeypatch):
        monkeypatch.setenv("KLAW_DISABLE_PLUGINS", "klaw-facts,klaw-serve")
        loaded("search", "--mode", "fts", question)
        _, modules = loaded("search", "--mode", "fts", question)

        assert "klaw_notes.presence" in modules  # so that it is known that a search was listened to
        if question != "what is nowhere":  # then the names of files that are not read are looked at
            assert modules & REPORTS == set()
        assert "klaw_journals" not in modules

    @pytest.mark.skipif(find_spec("klaw_facts") is None, reason="facts are not installed")
    @pytest.mark.parametrize("arguments", [["index"], ["status"]])
    @pytest.mark.usefixtures("indexed")
    def test_without_facts_nothing_is_imported_that_extracts_or_recalls_them(self, arguments):
        _, modules = loaded(*arguments)

        assert "klaw_facts.facts" in modules
        assert {name for name in modules if name.startswith("klaw_facts.extracting.")} <= {
            "klaw_facts.extracting.sentences"
        }
        assert not modules & {f"klaw_facts.{name}" for name in ("compressing", "keeper", "recall", "runs", "tools")}

    @pytest.mark.parametrize("stage", ["recency", "importance", "mmr"])
    @pytest.mark.usefixtures("indexed")
    def test_a_configured_stage_imports_no_other(self, stage, user_home):
        (user_home / "stages.toml").write_text(f'[[memory.reranking]]\ntype = "{stage}"\n', "utf-8")
        arguments = ("--config", str(user_home / "stages.toml"), "search", "bread?")
        loaded(*arguments)
        output, modules = loaded(*arguments)

        assert "rye bread" in output
        assert modules & {f"klaw_rerank_basic.{name}" for name in ("recency", "importance", "mmr", "definition")} == {
            f"klaw_rerank_basic.{stage}"
        }

    @pytest.mark.skipif(find_spec("klaw_model_minilm") is None, reason="no model is installed")
    @pytest.mark.usefixtures("user_home")
    def test_with_a_model_only_its_own_libraries_are_loaded(self, notes):
        loaded("index", str(notes))
        output, modules = loaded("search", "baking")

        assert "rye bread" in output
        assert modules >= MODELS
        assert not modules & NEVER


class TestHelp:
    @pytest.mark.parametrize("columns", ["80", "100", "200"])
    @pytest.mark.parametrize("option", ["--help", "-h"])
    def test_the_help_equals_the_output_of_click(self, spawn, columns, option):
        quick = spawn(option, environment={"COLUMNS": columns})
        slow = spawn("--quiet", option, environment={"COLUMNS": columns})

        assert quick.stdout == slow.stdout
        assert quick.returncode == slow.returncode == 0
        assert all(f"  {name}" in quick.stdout for name in COMMANDS)

    def test_a_narrow_terminal_gets_lines_that_fit(self, spawn):
        assert (
            "words and by meaning, all\n  in one SQLite file." in spawn("--help", environment={"COLUMNS": "50"}).stdout
        )

    def test_a_full_disk_is_reported(self):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "klaw_core", "--help"], stdout=full, stderr=subprocess.PIPE, check=False
            )

        assert done.returncode == 1
        assert b"cannot write to standard output" in done.stderr


class TestEnd:
    """A program ends without taking itself apart; nobody may notice."""

    def run(self, program: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False)

    @pytest.mark.parametrize(("arguments", "status"), [(["--version"], 0), (["serch"], 2), (["get", "nothing"], 1)])
    @pytest.mark.usefixtures("user_home")
    def test_the_exit_status_and_all_output_are_complete(self, arguments, status):
        done = subprocess.run(
            [sys.executable, "-m", "klaw_core", *arguments], capture_output=True, encoding="utf-8", check=False
        )

        assert done.returncode == status
        assert (done.stdout + done.stderr).strip()

    def test_exit_handlers_are_called(self):
        done = self.run(
            "import atexit, sys; from klaw_core.cli.startup import run; sys.argv = ['klaw', '--version'];"
            "atexit.register(print, 'put away'); run()"
        )

        assert done.stdout.endswith("\nput away\n")

    def test_a_running_thread_is_waited_for(self):
        done = self.run(
            "import sys, threading; from klaw_core.cli.startup import run; sys.argv = ['klaw', '--version'];"
            "last = lambda: (threading.main_thread().join(), print('finished', flush=True));"
            "threading.Thread(target=last).start(); run()"
        )

        assert done.stdout.endswith("\nfinished\n")


def test_every_lazy_name_of_the_core_can_be_imported():
    for name in klaw_core.__all__:
        assert getattr(klaw_core, name) is not None
    assert set(klaw_core.__all__) == set(klaw_core._MODULE_OF)
    assert set(klaw_core.__all__) <= set(dir(klaw_core))
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = klaw_core.nothing_of_the_kind


def test_the_cli_package_still_exports_the_group():
    assert cli.name == "cli"
