"""What a release writes into a checkout, and that it writes and tags nothing that it was not asked for."""

import importlib.util
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("klaw-facts", "klaw-mcp", "klaw-notes", "klaw-store-postgres", "klaw-watch")
ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "tests" / "house"
COPIED = ("pyproject.toml", "CHANGELOG.md", "LICENSE", "constraints.txt", "klaw_core/plugins/catalogue.json")


def _load(name):
    spec = importlib.util.spec_from_file_location(f"house_{name}", HOUSE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


release, changelog = _load("release"), _load("changelog")


@pytest.fixture
def tree(tmp_path) -> Path:
    """Make a checkout of the files that a release changes, with one change that names no package."""
    parts = [ROOT / name for name in COPIED]
    parts += [
        path for pattern in ("pyproject.toml", "LICENSE", "server.json") for path in ROOT.glob(f"plugins/*/{pattern}")
    ]
    parts += [*HOUSE.glob("*.py"), *(ROOT / "tests" / "plugins").glob("checkout.py")]
    for path in parts:
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    text = (tmp_path / "CHANGELOG.md").read_text("utf-8")
    change = "## Unreleased\n\n### Added\n\n- `klaw watch` looks\n  twice.\n"
    (tmp_path / "CHANGELOG.md").write_text(text.replace("## Unreleased\n", change, 1), "utf-8")
    return tmp_path


def versions(tree) -> set[str]:
    files = [tree / "pyproject.toml", *tree.glob("plugins/*/pyproject.toml")]
    return {tomllib.loads(file.read_text("utf-8"))["project"]["version"] for file in files}


def test_a_version_is_written_everywhere_with_its_changes(tree):
    release.prepare(tree, "7.8.9")
    assert versions(tree) == {"7.8.9"}
    notes = tomllib.loads((tree / "plugins/klaw-notes/pyproject.toml").read_text("utf-8"))["project"]
    assert "klaw>=7.8.9,<8" in notes["dependencies"]
    assert '"klaw[default,mcp]==7.8.9"' in (tree / "plugins/klaw-mcp/server.json").read_text("utf-8")
    text = (tree / "CHANGELOG.md").read_text("utf-8")
    assert release.unreleased(text) == ""
    assert "\n## 7.8.9 (" in text
    assert "\n- `klaw watch` looks\n  twice. (klaw-watch)\n" in text
    assert release.next_version(tree) == "7.8.9"  # there is nothing else to release


def test_the_next_version_is_the_next_minor_one(tree):
    assert versions(tree) != {release.next_version(tree)}
    major, minor, _ = map(int, release.version_of(tree).split("."))
    assert release.next_version(tree) == f"{major}.{minor + 1}.0"


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("- `klaw-facts` keeps more.", "klaw-facts"),
        ("- `klaw[postgres]` is faster.", "klaw-store-postgres"),
        ("- `klaw mcp` says more.", "klaw-mcp"),
        ("- Front matter is read.", "klaw-notes"),
        ("- It is.", "klaw"),
    ],
)
def test_a_change_gets_the_package_that_it_names(line, package):
    text, added = changelog.with_names(f"{changelog.NEXT}\n\n{line}\n")
    assert added == [f"{line} ({package})"]
    assert changelog.with_names(text) == (text, [])


@pytest.mark.parametrize(("option", "tags"), [("--dry-run", ""), ("--version=7.8.9", ""), ("--tag", "v")])
def test_only_tag_makes_a_tag_and_a_dry_run_changes_nothing(tree, monkeypatch, option, tags):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Begin"]):
        subprocess.run([*git, *command], cwd=tree, check=True)
    for name, value in (("GIT_AUTHOR", "a"), ("GIT_COMMITTER", "a")):
        monkeypatch.setenv(f"{name}_NAME", value)
        monkeypatch.setenv(f"{name}_EMAIL", "a@example.org")
    (tree / ".git" / "info" / "exclude").write_text("build/\ndist/\n")
    run = release.run

    def some(*command, **options):
        return "" if "twine" in command or "pytest" in command else run(*command, **{"cwd": tree, **options})

    def build(projects, target, *_):
        target.mkdir(parents=True)
        return [target / f"{number}.whl" for number in range(2 * len(projects))]

    monkeypatch.setattr(release, "ROOT", tree)
    monkeypatch.setattr(release, "WHERE", tree / "build" / "release")
    monkeypatch.setattr(release, "run", some)
    monkeypatch.setattr(release, "build", build)
    monkeypatch.setattr(release, "previous", lambda _: tree)
    monkeypatch.setattr(sys, "argv", ["release.py", option])
    before, expected = release.version_of(tree), release.next_version(tree)
    release.main()
    after = before if option == "--dry-run" else "7.8.9" if "7.8.9" in option else expected
    assert versions(tree) == {after}
    assert (tree / "dist").exists() == (option != "--dry-run")
    assert run("git", "tag", cwd=tree).split() == ([f"v{expected}"] if tags else [])
    changed = run("git", "status", "--porcelain", cwd=tree).split("\n")
    assert bool(changed[0]) == (option == "--version=7.8.9")
