"""What .gitignore and .klawignore leave out: the patterns of git."""

import os
import random
import shutil
import subprocess

import pytest

from klaw_core import Entry, SkippedEntry
from klaw_notes.ignore_files import IgnoreRules
from klaw_notes.workspace import Workspace

FILES = ("a.md", "b.md", "private/c.md", "private/deep/d.md", "sub/a.md", "sub/keep/e.md", "sub/log.txt", "log.txt")


@pytest.fixture
def root(tmp_path):
    for name in FILES:
        path = tmp_path / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text", "utf-8")
    return (tmp_path / "notes").resolve()


@pytest.fixture
def found(root):
    workspace = Workspace(root, "notes")
    return lambda: [item.path.removeprefix("notes/") for item in workspace.scan() if isinstance(item, Entry)]


def test_nothing_is_ignored_without_an_ignore_file(found):
    assert found() == sorted(FILES)


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ("private/", ["a.md", "b.md", "log.txt", "sub/a.md", "sub/keep/e.md", "sub/log.txt"]),
        ("*.txt\nprivate", ["a.md", "b.md", "sub/a.md", "sub/keep/e.md"]),
        ("/a.md\n*.txt\nprivate/", ["b.md", "sub/a.md", "sub/keep/e.md"]),
        ("# a comment\n*\n!b.md", ["b.md"]),
        ("**/deep/\n*.txt\nsub", ["a.md", "b.md", "private/c.md"]),
        ("!\n\n*.txt\nsub/\nprivate/", ["a.md", "b.md"]),  # a line that is no pattern
    ],
)
def test_patterns_have_the_meaning_of_git(root, found, lines, left):
    (root / ".gitignore").write_text(lines, "utf-8")
    assert found() == left


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    "lines",
    [
        "private/",
        "*\n!*/\n!*.md",
        "*\n!*/\n!sub/**",
        "sub/*\n!sub/keep",
        "private\n!private/c.md",
        "log.txt\n!/log.txt",
        "a.*\n!a.md",
        "deep/\n!private/",
        "**/keep\nprivate/**",
        "private/**/d.md",
        "/private/*/d.md\nsub/**/e.md",
        "[ab].md\n[!a-y]*",
        "?.md",
        "l*g.tx?",
        "a.md   \n\\#b\nsub\\/a.md",
        "[]x]\n[a\n\\*",
        "sub/a.md\nkeep/e.md",
        "**",
        "**/\n!**",
        "*/a.md",
    ],
)
def test_ignored_files_agree_with_git(root, found, lines):
    (root / ".gitignore").write_text(lines, "utf-8")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q"], cwd=root, env=environment, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "*.md", "*.txt"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found() == sorted(listed.stdout.split())


def test_an_ignore_file_in_a_subdirectory_takes_precedence(root, found):
    (root / ".gitignore").write_text("*.txt\nprivate/\n", "utf-8")
    (root / "sub" / ".gitignore").write_text("!log.txt\na.md\n", "utf-8")
    assert found() == ["a.md", "b.md", "sub/keep/e.md", "sub/log.txt"]


def test_klawignore_takes_precedence_over_gitignore(root, found):
    (root / ".gitignore").write_text("private/\n*.txt\n", "utf-8")
    (root / ".klawignore").write_text("!private/\nsub/\n", "utf-8")
    assert found() == ["a.md", "b.md", "private/c.md", "private/deep/d.md"]


def test_an_ignored_file_is_not_found_by_its_path(root):
    (root / ".gitignore").write_text("private/\n", "utf-8")
    workspace = Workspace(root, "notes")
    assert workspace.locate(str(root / "private" / "c.md")) is None
    assert workspace.file_of("notes/private/deep/d.md") is None
    assert workspace.file_of("notes/a.md") == root / "a.md"
    assert "is ignored" in workspace.why_left_out("notes/private/c.md")
    assert workspace.why_left_out("notes/a.md") == ""
    assert workspace.why_left_out("notes/nope.md") == ""


def test_an_ignore_file_that_cannot_be_read_ignores_nothing(root, found):
    os.mkfifo(root / ".gitignore")
    (root / "sub" / ".gitignore").mkdir()
    (root / ".klawignore").write_bytes(b"\xff\xfe*.txt\nsub/\nprivate/\n")
    assert "a.md" in found()
    assert "sub/a.md" not in found()


def test_directories_without_an_ignore_file_are_not_read(root):
    rules = IgnoreRules(root)
    assert not rules.ignores_file("private/deep/d.md")
    assert [lines for lines, _ in rules._rules.values()] == [[], [], []]


# Parts of patterns, of which a random pattern consists, and names that many of them match.
PARTS = ("a", "b", "ab", "*", "**", "/", "/**/", "?", "[ab]", "[!a]", "\\*", "**/", ".md")


def _git_ignores(root, environment, paths):
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        input="\n".join(paths),
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return set(asked.stdout.split())


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_random_patterns_agree_with_git(tmp_path):
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, env=environment, check=True)
    drawn = random.Random(7)
    names = ["a", "b", "ab", "aab", "ba.md", "a.md", "aba"]
    paths = sorted({"/".join(drawn.choices(names, k=drawn.randint(1, 4))) for _ in range(150)})
    matched = 0
    for _ in range(60):
        line = "".join(drawn.choices(PARTS, k=drawn.randint(1, 7)))
        (tmp_path / ".gitignore").write_text(line + "\n", "utf-8")
        rules = IgnoreRules(tmp_path)
        expected = _git_ignores(tmp_path, environment, paths)
        assert {path for path in paths if rules.ignores_file(path)} == expected, line
        matched += bool(expected)
    assert matched > 20


@pytest.mark.parametrize(
    "line",
    ["a*" * 12 + "b", "a*" * 2000 + "b", "**/" * 1300 + "b", "**/a*/" * 600 + "b", "[" * 4000, "*?" * 1500 + "b"],
)
def test_a_pattern_with_many_wildcards_is_soon_decided(tmp_path, line):
    """An expression that tried all ways to divide the name between the wildcards would not end."""
    (tmp_path / ".gitignore").write_text(f"{line}\n!keep\n*.log\n", "utf-8")
    rules = IgnoreRules(tmp_path)
    assert not rules.ignores_file("a" * 250 + ".md")
    assert not rules.ignores_file("/".join(["aaab"] * 500) + "/x")
    assert rules.ignores_file("a" * 40 + ".log")


def test_what_of_an_ignore_file_has_no_effect_is_told(root, found):
    (root / ".gitignore").write_text("a.md\n" + "b" * 5000 + "\n", "utf-8")
    (root / "sub" / ".klawignore").write_text("#" * 2_000_000, "utf-8")
    told = {item.path: item.reason for item in Workspace(root, "notes").scan() if isinstance(item, SkippedEntry)}
    assert told == {
        "notes/.gitignore": "line 2 has more than 4,096 characters: it has no effect",
        "notes/sub/.klawignore": "has more than 1,000,000 bytes, so that it ignores nothing",
    }
    assert "a.md" not in found()
