"""The command line as a whole: its tree, its common options, its errors, its start-up, its streams."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pytest

from klaw_core.cli.kit import FreeText
from klaw_core.cli.program import ALIASES, COMMANDS, GROUPS, cli
from klaw_core.plugins.catalogue import CATALOGUE

ROOT = Path(__file__).parents[3]
COMMON = ("--json", "--config", "--data-dir", "-q", "--quiet", "-v", "--verbose", "--debug")


#: Those of the core's table whose distribution is installed.
LISTED = [name for name, (module, _) in COMMANDS.items() if "." not in module or find_spec(module.partition(".")[0])]


def commands(group: click.Group, path: str = "klaw") -> Iterator[tuple[str, click.Command]]:
    """Yield every installed command of the tree with the words that call it."""
    context = click.Context(group, resilient_parsing=True)
    for name in group.list_commands(context):
        if group is cli and name in COMMANDS and name not in LISTED:
            continue
        command = group.get_command(context, name)
        if command is None:
            continue
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


ALL = dict(commands(cli))
OF_PLUGINS = [
    pytest.param(
        *command, marks=[] if f"klaw {command[0]}" in ALL else pytest.mark.skip(f"{each.distribution} is not installed")
    )
    for each in CATALOGUE
    for command in each.commands.items()
]

#: Arguments of several words that are names, and no text that people write.
OF_NAMES = {"targets", "places", "patterns", "names", "others", "datasets", "files"}


class TestTree:
    def test_an_argument_of_many_words_is_declared_as_text_or_known_as_names(self):
        many = [(path, each) for path, command in ALL.items() for each in command.params if each.nargs == -1]
        assert "klaw search" in {path for path, each in many if isinstance(each.type, FreeText)}
        assert {each.name for _, each in many if not isinstance(each.type, FreeText)} <= OF_NAMES

    @pytest.mark.parametrize("name", LISTED)
    def test_the_table_of_commands_has_the_summary_of_each_command(self, name):
        assert ALL[f"klaw {name}"].get_short_help_str(limit=200) == COMMANDS[name][1]

    def test_every_command_is_in_one_group_of_the_help(self):
        grouped = [name for names in GROUPS.values() for name in names.split()]

        assert sorted(grouped) == sorted(cli.list_commands(click.Context(cli)))

    def test_a_command_in_no_group_is_shown_in_the_last_one(self, monkeypatch):
        monkeypatch.setitem(cli._modules, "stroll", ("stroll", "Take a walk."))  # type: ignore[attr-defined]

        assert re.search(
            r"\nConfigure and measure:\n(  .*\n)*  stroll +Take a walk",
            cli.get_help(click.Context(cli, **cli.context_settings)),
        )

    @pytest.mark.parametrize(("name", "summary"), OF_PLUGINS)
    def test_a_plugins_command_says_of_itself_what_the_help_of_klaw_says(self, name, summary):
        assert ALL[f"klaw {name}"].get_short_help_str(limit=200) == summary

    @pytest.mark.parametrize("path", ALL)
    def test_every_command_takes_the_common_options(self, path):
        options = {flag for parameter in ALL[path].params for flag in parameter.opts}

        assert set(COMMON) <= options

    @pytest.mark.parametrize("path", ALL)
    def test_every_command_has_a_help_text(self, klaw, path):
        result = klaw(*path.split()[1:], "--help")

        assert result.exit_code == 0
        assert result.stdout.startswith(f"Usage: {path}")
        assert ALL[path].help

    @pytest.mark.parametrize("path", ALL)
    def test_every_command_and_option_is_documented(self, path):
        reference = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
        section = re.search(rf"^#+ `{path}`.*?(?=^#+ |\Z)", reference, re.MULTILINE | re.DOTALL)
        common = reference[reference.index("## Options of every command") :]

        assert section, f"docs/reference/cli.md has no section `{path}`"
        for parameter in ALL[path].params:
            where = common if parameter.opts[0] in COMMON else section[0]
            for name in parameter.opts if isinstance(parameter, click.Option) else [parameter.human_readable_name]:
                assert name.upper() in where.upper(), f"{path}: {name} is not documented"

    @pytest.mark.parametrize("path", ALL)
    def test_every_command_and_option_has_a_test(self, path):
        own = [*Path(__file__).parent.glob("test_cli*.py"), *ROOT.glob("plugins/*/tests/test_*.py")]
        tests = "\n".join(file.read_text("utf-8") for file in own)
        called = ", ".join(f'"{word}"' for word in path.split()[1:])

        assert called in tests, f"no test runs {path}"
        for parameter in ALL[path].params:
            if isinstance(parameter, click.Option):
                assert f'"{parameter.opts[-1]}"' in tests, f"no test uses {path} {parameter.opts[-1]}"

    def test_an_alias_is_the_same_command(self):
        context = click.Context(cli)

        assert {alias: cli.get_command(context, alias) for alias in ALIASES} == {
            "add": ALL["klaw index"],
            "ls": ALL["klaw list"],
        }

    def test_the_version_is_that_of_the_distribution(self, spawn):
        from importlib.metadata import version

        assert spawn("--version").stdout == f"klaw {version('klaw')}\n"

    def test_without_a_command_it_shows_its_help_and_exits_2(self, klaw):
        result = klaw()

        assert result.exit_code == 2
        assert "\nFind and read:\n" in result.stderr


class TestCompletion:
    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completion_scripts(self, spawn, shell):
        done = spawn(environment={"_KLAW_COMPLETE": f"{shell}_source"})

        assert "_KLAW_COMPLETE" in done.stdout
        assert done.returncode == 0

    def test_completion_of_commands_options_and_choices(self, spawn):
        def complete(words: str, at: int) -> str:
            variables = {"_KLAW_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
            return spawn(environment=variables).stdout

        assert "plain,search" in complete("klaw sea", 1)
        assert "plain,--explain" in complete("klaw search --ex", 2)
        assert "plain,hybrid" in complete("klaw search --mode hy", 3)


class TestCommonOptions:
    def test_they_apply_before_and_after_the_command(self, indexed):
        before = indexed("--json", "search", "bread")
        after = indexed("search", "bread", "--json")

        assert json.loads(before.stdout) == json.loads(after.stdout) != []

    def test_data_dir_sets_the_data_directory(self, indexed, user_home):
        assert json.loads(indexed("--data-dir", str(user_home / "other"), "search", "bread", "--json").stdout) == []
        assert (user_home / "other" / "klaw.db").exists()

    def test_config_sets_the_configuration_file(self, klaw, user_home):
        other = user_home / "other.toml"
        other.write_text('[memory.fusion]\ntype = "weighted"\n', "utf-8")

        assert klaw("config", "get", "memory.fusion.type", "--config", str(other)).stdout == "weighted\n"

    def test_a_configuration_file_that_was_named_must_exist(self, klaw):
        result = klaw("--config", "none.toml", "status")

        assert (result.exit_code, result.stdout) == (1, "")
        assert "none.toml: no such file" in result.stderr

    def test_quiet_prints_only_the_requested_data(self, klaw, notes):
        assert klaw("index", str(notes), "--quiet").output == ""
        assert klaw("-q", "search", "zebra").output == ""

    def test_only_debug_shows_a_traceback(self, klaw):
        plain, debug = klaw("index", "nowhere"), klaw("index", "nowhere", "--debug")

        assert plain.exit_code == debug.exit_code == 1
        assert plain.stderr == "klaw: nowhere does not exist → klaw index DIR\n"
        assert "Traceback" in debug.stderr
        assert "WorkspaceError" in debug.stderr


class TestErrors:
    def test_an_unknown_command_names_the_nearest(self, klaw):
        result = klaw("serch", "x")

        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == "klaw: no such command 'serch'; did you mean 'search'? → klaw --help\n"

    def test_an_unknown_option_names_the_nearest(self, klaw):
        result = klaw("search", "--limt", "3", "x")

        assert result.exit_code == 2
        assert result.stderr.startswith("klaw search: no such option '--limt'.")
        assert "'--limit'" in result.stderr

    def test_a_missing_argument_is_a_usage_error(self, klaw):
        result = klaw("get")

        assert result.exit_code == 2
        assert result.stderr == "klaw get: missing argument 'TARGET...' → klaw get --help\n"

    def test_every_problem_of_a_configuration_is_shown_at_once(self, klaw, user_home):
        broken = user_home / "broken.toml"
        broken.write_text('[memory.fusoin]\n[other]\n[plugins]\ndisabled = "x"\n', "utf-8")

        result = klaw("status", "--config", str(broken))

        assert result.exit_code == 1
        assert "has 3 problems" in result.stderr
        assert "memory.fusoin; did you mean 'fusion'?" in result.stderr
        assert "unknown key other" in result.stderr
        assert "plugins.disabled: expected an array of strings" in result.stderr

    def test_an_invalid_toml_file_is_named(self, klaw, user_home):
        broken = user_home / "broken.toml"
        broken.write_bytes(b"[memory\n")

        result = klaw("status", "--config", str(broken))

        assert result.exit_code == 1
        assert f"{broken}: not valid TOML" in result.stderr

    def test_a_disabled_component_names_the_command_that_enables_it(self, klaw, monkeypatch):
        monkeypatch.setenv("KLAW_DISABLE_PLUGINS", "klaw-fts5")

        result = klaw("status")

        assert result.exit_code == 1
        assert result.stderr.endswith(
            "klaw-fts5 is disabled → remove it from plugins.disabled and KLAW_DISABLE_PLUGINS\n"
        )

    def test_a_data_directory_that_cannot_be_created_is_named(self, klaw, user_home):
        (user_home / "file").write_text("", "utf-8")

        result = klaw("--data-dir", str(user_home / "file" / "data"), "init")

        assert result.exit_code == 1
        assert "cannot be created" in result.stderr

    def test_a_configuration_that_cannot_be_created_is_named_with_the_option_that_moves_it(self, klaw, user_home):
        (user_home / "file").write_text("", "utf-8")

        result = klaw("--config", str(user_home / "file" / "klaw" / "config.toml"), "init")

        assert result.exit_code == 1
        assert "for the configuration --config or KLAW_CONFIG" in result.stderr
        assert klaw("--config", str(user_home / "other" / "config.toml"), "init").exit_code == 0

    def test_an_unexpected_exception_is_one_line(self, klaw, monkeypatch):
        monkeypatch.setattr("klaw_core.memory.Memory.open", lambda *_, **__: 1 / 0)

        result = klaw("status")

        assert result.exit_code == 1
        assert result.stderr.count("\n") == 1
        assert f"defect in Klaw: ZeroDivisionError: division by zero (in {__name__})" in result.stderr


class TestStreams:
    def test_with_json_stdout_has_only_json(self, klaw, notes):
        (notes / "broken.md").write_bytes(b"\xff\xfe\xfd")
        for arguments in (
            ["init"],
            ["index", str(notes)],
            ["reindex"],
            ["search", "bread"],
            ["get", "notes/auth.md"],
            ["save", "the boat is red"],
            ["forget", "notes/auth.md", "--yes"],
            ["status"],
            ["plugins"],
            ["config", "list"],
            ["config", "get", "memory.fusion"],
            ["config", "set", "memory.fusion.k", "30"],
            ["config", "path"],
        ):
            result = klaw(*arguments, "--json")
            assert result.exit_code == 0, result.stderr
            json.loads(result.stdout)

    def test_notices_about_skipped_files_go_to_stderr(self, spawn, notes):
        (notes / "broken.md").write_bytes(b"\xff\xfe\xfd")

        done = spawn("index", str(notes))

        assert done.stdout.count("\n") == 1
        assert "broken.md" in done.stderr

    @pytest.mark.usefixtures("indexed")
    def test_a_reader_that_closes_the_pipe_is_not_an_error(self):
        read, write = os.pipe()
        os.close(read)  # the reader has gone before the first line
        with subprocess.Popen(
            [sys.executable, "-m", "klaw_core", "search", "bread"], stdout=write, stderr=subprocess.PIPE
        ) as process:
            os.close(write)
            _, errors = process.communicate(timeout=300)

        assert errors == b""

    @pytest.mark.usefixtures("indexed")
    def test_characters_that_the_encoding_lacks_are_escaped(self, spawn, user_home):
        (user_home / "notes" / "хлеб.md").write_text("# Хлеб\n\nРжаной хлеб.\n", "utf-8")
        environment = {"PYTHONIOENCODING": "ascii"}
        assert spawn("index", environment=environment).returncode == 0

        text = spawn("search", "ржаной", environment=environment)
        data = spawn("search", "ржаной", "--json", environment=environment)

        assert text.returncode == data.returncode == 0
        assert r"\u0420\u0436\u0430\u043d\u043e\u0439" in text.stdout
        assert json.loads(data.stdout)[0]["content"] == "# Хлеб\n\nРжаной хлеб.\n".strip()


class TestTerminal:
    @pytest.mark.usefixtures("indexed")
    def test_matching_words_are_marked_and_paths_are_links(self, user_home, terminal):
        code, shown = terminal("search", "decide OIDC")

        assert code == 0
        assert "\x1b[1;33mdecided\x1b[0m" in shown
        assert "\x1b[1;33mOIDC\x1b[0m" in shown
        assert (user_home / "notes" / "auth.md").as_uri() in shown

    @pytest.mark.usefixtures("indexed")
    def test_no_color_is_respected(self, terminal):
        _, shown = terminal("search", "decide OIDC", NO_COLOR="1")
        _, error = terminal("serch", NO_COLOR="1")

        assert not re.search(r"\x1b\[[0-9;]*3\d", shown)
        assert "\x1b[3" not in error

    def test_control_characters_of_a_note_do_not_reach_the_terminal(self, indexed, user_home, terminal):
        (user_home / "notes" / "evil.md").write_text(
            "# \x1b]0;owned\x07\n\nbeware \x1b[2J\x9b31m of the dragon\n", "utf-8"
        )
        assert indexed("index").exit_code == 0

        shown = terminal("search", "dragon")[1] + terminal("get", "notes/evil.md")[1]

        assert "dragon" in shown
        assert "\x1b]0;" not in shown
        assert "\x1b[2J" not in shown
        assert "\x9b" not in shown

    def test_an_index_run_shows_a_bar_and_ends_with_a_summary(self, notes, terminal):
        code, shown = terminal("index", str(notes))

        assert code == 0
        assert "reading notes" in shown
        assert "100%" in shown
        assert "3 new" in shown

    def test_forget_asks_and_does_nothing_after_no(self, indexed, terminal):
        code, shown = terminal("forget", "notes/", until="[y/N]", answer="n\n")

        assert code == 1
        assert "3 notes" in shown
        assert "nothing was changed" in shown
        assert len(json.loads(indexed("search", "bread", "--json").stdout)) == 1

    def test_forget_asks_and_forgets_after_yes(self, indexed, terminal):
        code, shown = terminal("forget", "notes/auth.md", until="[y/N]", answer="y\n")

        assert code == 0
        assert "the file stays" in shown
        assert indexed("search", "OIDC", "--format", "files").stdout == ""

    def test_forget_asks_about_documents_without_a_source(self, indexed, terminal, user_home):
        next(user_home.rglob("workspaces.json")).unlink()
        code, shown = terminal("forget", "notes/", until="[y/N]", answer="y\n")

        assert code == 0
        assert "3 documents" in shown
        assert indexed("search", "OIDC", "--format", "files").stdout == ""

    def test_an_interrupted_index_run_keeps_finished_work_and_the_next_run_continues(self, klaw, user_home, terminal):
        many = user_home / "many"
        many.mkdir()
        for number in range(1200):
            (many / f"{number:04}.md").write_text(f"# Note {number}\n\nAbout the number {number}.\n", "utf-8")

        code, shown = terminal("index", str(many), until="%", then=signal.SIGINT)
        report = json.loads(klaw("index", "--json").stdout)

        assert code == 130
        assert "finished work is kept" in shown
        assert "Traceback" not in shown
        assert report["added"] + report["unchanged"] == 1200

    @pytest.mark.usefixtures("klaw")
    def test_an_interrupt_of_another_command_exits_with_130(self):
        process = subprocess.Popen(
            [sys.executable, "-m", "klaw_core", "save", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with process:
            wait_until_it_reads_stdin(process)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=300)

        assert process.returncode == 130
        assert errors.decode().strip() == "klaw: interrupted"

    @pytest.mark.cold_start
    def test_an_interrupt_while_the_program_starts_exits_with_130(self):
        program = """
import sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == "klaw_core.cli.program":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from klaw_core.cli.startup import run
run()
"""
        done = subprocess.run([sys.executable, "-c", program, "status"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.strip()) == (130, "klaw: interrupted")


def wait_until_it_reads_stdin(process: subprocess.Popen[Any]) -> None:
    """Send a byte, and wait until nothing is left in the pipe: the process waits for the rest."""
    process.stdin.write(b"x")
    process.stdin.flush()
    while int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)), sys.byteorder):
        assert process.poll() is None
        time.sleep(0.01)


class TestErrorsAsJson:
    @pytest.mark.parametrize(
        ("words", "status"),
        [
            (("get", "notes/nope.md", "--json"), 1),
            (("--json", "search", "bread", "--mode", "psychic"), 2),
            (("serch", "--json"), 2),
            (("index", "/nowhere/at/all", "--json"), 1),
        ],
    )
    def test_an_error_is_an_object_on_stderr(self, indexed, words, status):
        result = indexed(*words)

        assert result.exit_code == status
        assert result.stdout == ""
        assert set(json.loads(result.stderr)) == {"error", "hint"}

    def test_every_problem_of_a_configuration_is_in_the_object(self, indexed, user_home):
        file = user_home / "wrong.toml"
        file.write_text("[memory.fusion]\nk = 'x'\n[memry]\n", "utf-8")
        told = json.loads(indexed("--config", str(file), "status", "--json").stderr)

        assert "memory.fusion" in told["error"]
        assert "memry" in told["error"]

    def test_without_json_an_error_is_a_line(self, indexed):
        assert indexed("get", "notes/nope.md").stderr.startswith("klaw: ")

    def test_json_after_two_hyphens_is_not_an_option(self, indexed):
        assert indexed("get", "--", "--json").stderr.startswith("klaw: ")
