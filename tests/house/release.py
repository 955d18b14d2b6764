"""Build and check a release of every distribution: python tests/house/release.py [--dry-run] [--version X.Y.Z] [--tag].

Everything happens in ``build/release``, in a copy of the checkout:

1. the version is written, by default that of the next minor release, or the present one if nothing is unreleased;
2. the changes in ``CHANGELOG.md`` get that version, and each that names no package the name of one;
3. a source distribution of each package is built, a wheel from that, and twine checks both;
4. the wheels alone are installed and used, those of the previous release are upgraded, and a downgrade is refused.

Only then, and without ``--dry-run``, the version and the changes are written to the checkout, and the files to
``dist``. ``--tag`` commits and tags them. Nothing is published. The previous release is the last tag; before the first
one it is a state of the repository that another layout of the database follows.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "plugins"))
from checkout import with_requirements  # noqa: E402  # beside it

WHERE = ROOT / "build" / "release"
#: What stands for the previous release until there is one.
UNTAGGED = "79eb0a9b^"
PREVIOUS_EXTRAS = ("default",)
TOGETHER = 2


def say(what: str) -> None:
    """Print what is being done."""
    print(f"release: {what}", flush=True)  # noqa: T201  # a program's output


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command; return what it prints to its output. End with it if it fails."""
    called = [str(part) for part in command]
    done = subprocess.run(called, cwd=cwd, env={**os.environ, **environment}, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{done.stdout.decode()}release: failed: {' '.join(called)}")
    return done.stdout.decode()


def version_of(tree: Path) -> str:
    """Return the version of a checkout."""
    version: str = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return version


def copy_checkout(target: Path) -> None:
    """Copy what git knows, as it is in the working tree, and what it does not ignore."""
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def export(revision: str, target: Path) -> None:
    """Write a state of the repository into a directory."""
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        raise SystemExit(f"release: there is no {revision}: fetch the history: git fetch --unshallow --tags")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(target, filter="data")


def unreleased(changelog: str) -> str:
    """Return the changes of the next version."""
    found = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def next_version(tree: Path) -> str:
    """Return the version to release: the next minor one, or the present one if nothing is unreleased."""
    present = version_of(tree)
    major, minor, *_ = map(int, present.split("."))
    return f"{major}.{minor + 1}.0" if unreleased((tree / "CHANGELOG.md").read_text("utf-8")) else present


def prepare(tree: Path, version: str) -> None:
    """Write a version, with its bounds and changes, into a checkout."""
    project = tree / "pyproject.toml"
    text = project.read_text("utf-8")
    project.write_text(re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', text, count=1), "utf-8")
    run(sys.executable, tree / "tests" / "house" / "metadata.py", "--write")
    guessed = run(sys.executable, tree / "tests" / "house" / "changelog.py", "--write")
    if guessed.strip():
        say(f"changes that named no package:\n{guessed}")
    changelog = tree / "CHANGELOG.md"
    text = changelog.read_text("utf-8")
    if unreleased(text):
        dated = f"## Unreleased\n\n## {version} ({datetime.now(UTC).date()})\n"
        changelog.write_text(text.replace("## Unreleased\n", dated, 1), "utf-8")
    if f"\n## {version}" not in changelog.read_text("utf-8"):
        raise SystemExit(f'release: CHANGELOG.md has no section "## {version}"')


def projects(tree: Path) -> list[Path]:
    """Return the directories of all distributions of a checkout."""
    return [tree, *sorted(path.parent for path in tree.glob("plugins/*/pyproject.toml"))]


def build(chosen: list[Path], target: Path, *options: str) -> list[Path]:
    """Build some distributions, several at a time; return the files."""
    with ThreadPoolExecutor(TOGETHER) as pool:
        command = ("uv", "build", "--quiet", *options, "--out-dir", target)
        list(pool.map(lambda project: run(*command, project), chosen))
    return sorted(path for path in target.iterdir() if path.name.endswith((".whl", ".tar.gz")))


def previous(revision: str) -> Path:
    """Build the wheels of the previous release that ``klaw[default]`` is made of; return their directory."""
    tree, target = WHERE / "old", WHERE / "previous"
    export(revision, tree)
    extra = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    listed = [need for name in PREVIOUS_EXTRAS for need in extra[name]]
    build([tree, *with_requirements(tree, listed)], target, "--wheel")
    return target


def last_release() -> str:
    """Return the last tag of a release before this commit, or what stands for one."""
    tags = run("git", "tag", "--merged", "HEAD", "--sort=-v:refname", "--list", "v*").split()
    return next((tag for tag in tags if tag != f"v{version_of(ROOT)}"), UNTAGGED)


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description="Build and check a release.")
    parser.add_argument("--dry-run", action="store_true", help="change nothing outside of build/release")
    parser.add_argument("--version", help="the version; default: the next minor one")
    parser.add_argument("--previous", help="the state of the repository to upgrade from; default: the last tag")
    parser.add_argument("--tag", action="store_true", help="commit the version, and tag it")
    return parser.parse_args()


def main() -> None:
    """Make a release, and check it."""
    options = arguments()
    if options.tag and not options.dry_run and run("git", "status", "--porcelain"):
        raise SystemExit("release: commit your changes first")
    shutil.rmtree(WHERE, ignore_errors=True)
    tree, target = WHERE / "new", WHERE / "dist"
    copy_checkout(tree)
    version = options.version or next_version(tree)
    say(f"version {version}")
    prepare(tree, version)
    run(sys.executable, tree / "tests" / "house" / "metadata.py")
    say(f"building {len(projects(tree))} packages")
    built = build(projects(tree), target)
    if len(built) != 2 * len(projects(tree)):
        raise SystemExit(f"release: {len(built)} files are in {target}")
    run("twine", "check", "--strict", *built)
    revision = options.previous or last_release()
    say(f"building the previous release, {revision}")
    wheels = {"KLAW_TEST_WHEELS": str(target), "KLAW_TEST_PREVIOUS": str(previous(revision))}
    say("installing, upgrading, downgrading")
    places = ("tests/packaging/test_wheels.py", "tests/packaging/test_upgrades.py")
    say(run(sys.executable, "-m", "pytest", "-q", "--confcutdir=tests/packaging", *places, cwd=tree, **wheels))
    say(f"{len(built)} files of version {version} are sound: {target.relative_to(ROOT)}")
    if options.dry_run:
        return
    written = [tree / "CHANGELOG.md", *tree.glob("plugins/klaw-mcp/server.json")]
    for path in [*projects(tree), *written]:
        file = path / "pyproject.toml" if path.is_dir() else path
        shutil.copy(file, ROOT / file.relative_to(tree))
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    shutil.copytree(target, ROOT / "dist")
    if options.tag:
        run("git", "commit", "--quiet", "--all", "--message", f"Release {version}")
        run("git", "tag", "--annotate", f"v{version}", "--message", f"Klaw {version}")
        say(f"git push origin HEAD v{version}")


if __name__ == "__main__":
    main()
