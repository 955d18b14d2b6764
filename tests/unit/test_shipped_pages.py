"""The manual pages and the list of pages for language models say what the commands and the documentation say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from klaw_core.cli.program import cli

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs" / "site"))
from llms import llms  # noqa: E402  # beside the documentation
from man import main  # noqa: E402


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("man")
    main(place)
    return place


@pytest.mark.needs("klaw-conversations")
def test_every_command_and_option_has_its_page(pages):
    group = click.Context(cli, info_name="klaw", **cli.context_settings)
    names = [name for name in cli.list_commands(group) if not cli.get_command(group, name).hidden]
    assert "search" in names
    for name in names:
        command = cli.get_command(group, name)
        text = (pages / f"klaw-{name}.1").read_text("utf-8").replace("\\-", "-")
        options = [
            option
            for each in command.params
            if isinstance(each, click.Option) and not each.hidden
            for option in each.opts
        ]
        assert [option for option in options if f"{option}" not in text] == [], name
    assert [name for name in names if f".B {name}\n" not in (pages / "klaw.1").read_text("utf-8")] == []


@pytest.mark.skipif(not shutil.which("groff"), reason="there is no groff")
@pytest.mark.needs("klaw-conversations")
def test_the_pages_are_set_without_a_warning(pages):
    files = sorted(map(str, pages.glob("*.1")))
    assert files
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-wall", "-z", *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr == ""


def test_the_list_for_language_models_has_every_page():
    sections = {"How to": "how-to", "Decisions": "decisions", "Reference": "reference"}
    text = llms(ROOT / "docs", "Klaw", "Memory for agents", sections)
    assert text.startswith("# Klaw\n\n> Memory for agents.\n\n## How to\n\n- [")
    listed = set(re.findall(r"\]\(([^)]*)\): \S", text))
    wanted = {
        path.relative_to(ROOT / "docs").as_posix().replace("README.md", "index.html").replace(".md", ".html")
        for directory in sections.values()
        for path in (ROOT / "docs" / directory).glob("*.md")
    }
    assert listed == wanted
    assert text.index("## Optional") > text.index("## Reference")
