"""Commands that come with other distributions, found through their entry points."""

import re
import sys
from importlib.metadata import EntryPoints, MetadataPathFinder
from pathlib import Path

import pytest
from click import Context

from klaw_core import install_extras, reinstall_command
from klaw_core.cli.extensions import official
from klaw_core.cli.program import cli
from klaw_core.plugins.catalogue import FirstParty

MODULE = '''
import click
from klaw_core import NotFoundError
from klaw_core.cli.kit import Settings, common_options, pass_settings, print_json

@click.command("greet", short_help="Greet.")
@click.option("--fail", is_flag=True)
@common_options
@pass_settings
def command(settings: Settings, *, fail: bool) -> None:
    """Greet."""
    if fail:
        raise NotFoundError("nobody is here", hint="come back later")
    print_json({"data_dir": str(settings.data_dir)})

not_a_command = 3
'''


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put distributions on the path: a name, and the entry point of its command ``greet``."""
    (tmp_path / "klaw_greeting.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def put(distribution: str, value: str = "klaw_greeting:command", name: str = "greet") -> None:
        info = Path(tmp_path / f"{distribution.replace('-', '_')}-1.0.dist-info")
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[klaw.commands]\n{name} = {value}\n", "utf-8")

    return put


def test_a_command_of_a_plugin_runs_with_the_common_options(install, klaw, tmp_path):
    install("klaw-greeting")

    result = klaw("greet", "--data-dir", str(tmp_path))

    assert result.exit_code == 0
    assert str(tmp_path) in result.stdout


def test_an_error_of_a_command_is_one_line_with_exit_status_1(install, klaw):
    install("klaw-greeting")

    result = klaw("greet", "--fail")

    assert result.exit_code == 1
    assert result.stderr == "klaw: nobody is here → come back later\n"


def test_plugins_lists_commands_with_their_distributions(install, klaw):
    install("klaw-greeting")

    assert re.search(r"klaw greet +klaw-greeting", klaw("plugins").stdout)


def test_a_mistyped_name_suggests_a_command_of_a_plugin(install, klaw):
    install("klaw-greeting")

    assert "did you mean 'greet'" in klaw("gret").stderr


@pytest.mark.parametrize(
    ("value", "reason"),
    [("klaw_greeting:absent", "AttributeError"), ("klaw_absent:command", "ModuleNotFoundError")],
)
def test_a_command_that_cannot_be_loaded_names_its_package_and_the_fix(install, klaw, value, reason):
    install("klaw-greeting", value)

    result = klaw("greet")

    assert result.exit_code == 1
    assert reason in result.stderr
    assert reinstall_command("klaw-greeting") in result.stderr


def test_an_entry_point_that_is_not_a_command_is_rejected(install, klaw):
    install("klaw-greeting", "klaw_greeting:not_a_command")

    assert "is not a command: expected a click.Command, got int" in klaw("greet").stderr


def test_two_providers_are_a_conflict_that_names_both(install, klaw):
    install("klaw-greeting")
    install("klaw-salute")

    result = klaw("greet")

    assert result.exit_code == 1
    assert "klaw-greeting, klaw-salute" in result.stderr


def test_a_plugin_cannot_replace_a_builtin_command(install, klaw):
    install("klaw-greeting", name="status")

    assert "Show the location and content of the index" in klaw("status", "--help").stdout


def test_help_lists_builtin_commands_without_scanning_packages(klaw, monkeypatch):
    scans = []
    monkeypatch.setattr(MetadataPathFinder, "find_distributions", lambda *context: scans.append(context) or ())
    monkeypatch.setattr("klaw_core.cli.extensions._entry_points", lambda *_: scans.append("commands") or EntryPoints())
    listed = klaw("--help").stdout

    assert scans == []
    assert official()
    assert all(f"  {name} " in listed for name in official())


def test_completion_survives_a_command_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("klaw_core.cli.extensions._entry_points", lambda *_: EntryPoints())

    context = cli.make_context("klaw", [], resilient_parsing=True)

    assert {item.value for item in cli.shell_complete(context, "")}.isdisjoint(official())


def test_a_known_command_that_is_not_installed_names_its_install_command(monkeypatch, klaw):
    monkeypatch.setattr("klaw_core.cli.extensions._entry_points", lambda *_: EntryPoints())

    result = klaw("eval")

    assert result.exit_code == 1
    assert install_extras(["eval"]) in result.stderr


class TestCommandsOfDefaultDistributions:
    """They are listed with Klaw's own commands, in a place of their own, and start without a look at the metadata."""

    @pytest.fixture(autouse=True)
    def _borrowed(self, monkeypatch):
        """Take the command of a distribution as one of Klaw's own."""
        monkeypatch.setitem(cli._modules, "borrowed", ("klaw_watch.command", "Keep the index up to date."))

    @pytest.fixture
    def _missing(self, monkeypatch):
        monkeypatch.setitem(cli._modules, "borrowed", ("klaw_nowhere.command", "Keep the index up to date."))
        monkeypatch.setattr("klaw_core.plugins.catalogue.CATALOGUE", (FirstParty("klaw-nowhere", ("nowhere",)),))

    def test_they_run_without_entry_points(self, klaw, monkeypatch):
        monkeypatch.setattr("klaw_core.cli.extensions._entry_points", None)
        assert "--unit" in klaw("borrowed", "--help").stdout

    @pytest.mark.usefixtures("_missing")
    def test_the_error_for_a_missing_one_names_its_extra(self, klaw):
        result = klaw("borrowed")
        assert result.exit_code == 1
        assert "`klaw borrowed` is not installed" in result.stderr
        assert result.stderr.strip().endswith(install_extras(["nowhere"]))

    @pytest.mark.usefixtures("_missing")
    def test_completion_leaves_a_missing_one_out(self):
        assert cli.get_command(Context(cli, resilient_parsing=True), "borrowed") is None

    def test_an_import_that_fails_inside_of_one_is_not_hidden(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "klaw_watch.command", None)
        with pytest.raises(ModuleNotFoundError, match=r"klaw_watch\.command"):
            cli.get_command(Context(cli), "borrowed")
