"""What no option of any command may have as its value. The options are read from the commands."""

from __future__ import annotations

import os

import click
import pytest
from click.testing import CliRunner
from command_lines import commands, of_core, of_plugins

from klaw_core.cli.empty_values import MayBeEmpty, refuse_empty
from klaw_core.cli.program import cli
from klaw_serve.tokens import Tokens

#: Options for which an empty value means something, and what.
EMPTY = {
    "facts edit --tag": "no tags",
    "facts end --reason": "no reason",
    "facts retract --reason": "no reason",
    "index --version": "no version",
    "models add --document-prefix": "the model needs none",
    "models add --query-prefix": "the model needs none",
    "remember --tag": "no tag",
}


def options():
    """Return each option with a value of each command, as ``command --option``."""
    return {
        f"{name} {parameter.opts[-1]}": parameter
        for names in (of_core(), of_plugins())
        for name, command in commands(names)
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.is_flag
    }


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KLAW_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("KLAW_CONFIG", os.devnull)


def klaw(*arguments):
    return CliRunner().invoke(cli, arguments, prog_name="klaw")


def test_an_empty_value_is_refused_by_name_before_anything_happens(tmp_path):
    """A shell makes one of a variable that is not set. Treated as absent, it selects more than was meant."""
    for line, parameter in sorted(options().items()):
        if line in EMPTY:
            continue
        *command, option = line.split()
        others = ["x"] * (parameter.nargs - 1)
        for given in ([option, "", *others], [option, *others, ""], [f"{option}=", *others]):
            done = klaw(*command, *given)
            assert (done.exit_code, done.stdout) == (2, ""), (line, done.output)
            assert f"the value of {option} is empty" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs("klaw-facts")
def test_the_options_that_may_be_empty_say_so_and_are_not_refused_for_it():
    assert {line for line, option in options().items() if isinstance(option.type, MayBeEmpty)} == {*EMPTY}
    for line in EMPTY:
        *command, option = line.split()
        assert "is empty; give one" not in klaw(*command, option, "").stderr


def test_a_flag_has_no_value_and_the_empty_argument_after_it_is_named_instead():
    for line in (["search", "--exact", ""], ["save", "--secrets", ""], ["get", "--plain", ""], ["forget", "-y", ""]):
        done = klaw(*line)
        assert done.exit_code
        assert "the value of" not in done.stderr, done.stderr


def test_an_empty_value_is_refused_wherever_it_stands():
    for line in (["search", "kiln", "--path", ""], ["search", "--path", "", "kiln"], ["search", "kiln", "--path="]):
        assert "the value of --path is empty" in klaw(*line).stderr
    groups = {"plugins", "facts", "mcp", "people", "serve"}
    for line, parameter in options().items():
        *command, name = line.split()
        if parameter.nargs == 1 and not isinstance(parameter.type, MayBeEmpty):
            behind = [] if " ".join(command) in groups else [["a word", name, ""]]  # below a group, it is a command
            for words in ([name, ""], [f"{name}=", "a word"], *behind):
                with pytest.raises(click.UsageError):
                    refuse_empty(cli, [*command, *words])


def test_the_last_of_several_short_options_takes_the_value():
    assert "the value of --collection is empty" in klaw("search", "-vc", "", "kiln").stderr


def test_the_words_are_read_as_the_command_reads_them():
    """An empty argument is not the value of another option that stands in front of it, as a value or an argument."""
    for line, parameter in options().items():
        *command, name = line.split()
        if parameter.nargs == 1:
            refuse_empty(cli, [*command, name, name, ""])
        refuse_empty(cli, [*command, "--", name, ""])
    done = klaw("search", "kiln", "--path", "--since", "")
    assert "the value of" not in done.stderr


def test_the_owners_token_is_not_printed_for_an_agent_without_a_name(tmp_path):
    owner = Tokens(tmp_path / "data").make("")
    for given in (["--agent", ""], ["--agent="]):
        assert owner not in klaw("serve", "token", *given).output


@pytest.mark.needs("klaw-facts")
@pytest.mark.parametrize("value", ["nan", "NaN", "-nan", "inf", "-inf", "1e999"])
def test_no_option_takes_a_number_that_is_none(value):
    floats = {line: option for line, option in options().items() if isinstance(option.type, click.types.FloatParamType)}
    assert len(floats) >= 6
    for option in floats.values():
        with pytest.raises(click.UsageError):
            option.type.convert(value, option, None)
