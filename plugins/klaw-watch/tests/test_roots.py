"""Which changes below a watched directory concern documents."""

from pathlib import Path

import pytest

from klaw_watch.roots import Root, changes_rules, files_below

ROOT = Root("notes", Path("/home/ada/notes"), (1, 2))


@pytest.mark.parametrize("path", ["a.md", "deep/er/a.md", "deep", ".gitignore", "deep/.klawignore", "node_modules.md"])
def test_a_document_or_its_rules_may_have_changed(path):
    assert ROOT.relative(ROOT.path / path) == Path(path)


@pytest.mark.parametrize(
    "path",
    [".git/index", "deep/.git/a.md", "node_modules/a.md", "x/node_modules/y/a.md", "__pycache__/a.md", ".hidden.md",
     "node_modules", ".git", ".obsidian/plugins/a.md"],
)  # fmt: skip
def test_a_change_that_concerns_no_document_is_left_out(path):
    assert ROOT.relative(ROOT.path / path) is None


def test_a_path_outside_is_left_out():
    assert ROOT.relative(Path("/home/ada/notes-of-others/a.md")) is None


def test_files_below_leave_out_what_is_never_a_document(tmp_path):
    for name in ("a.md", "deep/b.md", ".git/c.md", "node_modules/d.md", ".e.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(files_below(tmp_path, 10)) == [tmp_path / "a.md", tmp_path / "deep" / "b.md"]
    assert files_below(tmp_path, 1) is None


def test_rules_are_known_by_name():
    assert [changes_rules(Path(name)) for name in (".gitignore", "x/.klawignore", "gitignore")] == [True, True, False]
