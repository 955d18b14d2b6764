"""A git repository as a remote: a branch for each machine, each with a single commit without a parent.

So there is nothing to merge, no machine waits for another one, and the history does not grow. The server keeps commits
that no branch has any more until it collects garbage. Git does the transport: a path, ``https``, ``ssh`` or ``file``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from attrs import define, field

from klaw_core import StoreError, locked, own_directory
from klaw_sync.errors import SegmentError
from klaw_sync.remotes import MACHINE, MEMORY_FILE, Remote
from klaw_sync.segments import MAX_FILE_BYTES, SUFFIX

_BRANCHES = "refs/heads/klaw"
#: The branch of the file that says which memory the repository has.
_MARK = "memory"
_SECONDS = 300
_IDENTITY = {
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "klaw"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "klaw@localhost"),
    **dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2000-01-01T00:00:00Z"),
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
}
#: What to do if git's reason for a refusal contains a text; else the address or the access is wrong.
_HINTS = {
    "(non-fast-forward)": "let that repository accept it: git config receive.denyNonFastForwards false",
    "declined": "let the hooks and rules of that repository accept the branches klaw/*",
    "(stale info)": "klaw sync",
}


@define(eq=False)
class GitRepository(Remote):
    """The repository at an address. ``cache`` is a bare repository in the data directory, which is derived."""

    address: str
    cache: Path
    #: The blobs of each branch by name; what was fetched, and what this machine changes.
    _trees: dict[str, dict[str, str]] = field(factory=dict, init=False)
    _commits: dict[str, str] = field(factory=dict, init=False)
    _changed: set[str] = field(factory=set, init=False)

    @property
    def location(self) -> str:  # type: ignore[override]  # an attribute of the base
        """The address, without a password."""
        scheme, mark, rest = self.address.partition("://")
        return f"{scheme}://{rest.rpartition('@')[2]}" if mark else self.address

    def fetch(self) -> None:
        """Get all branches of Klaw. A damaged cache is made again."""
        with locked(self.cache, limit_seconds=_SECONDS):  # a run and `klaw doctor` may fetch at the same time
            try:
                self._update()
            except StoreError:
                if not self._drop_damaged():
                    raise
                self._update()

    def fetch_all(self) -> None:
        """Get all branches from the repository itself, too: the cache has what a damaged one can no longer give."""
        place = self.cache.with_name(f"{self.cache.name}-examined")  # below the data: a kill may leave what is in it
        with locked(self.cache, limit_seconds=_SECONDS):
            shutil.rmtree(place, ignore_errors=True)
            try:
                GitRepository(self.address, place).fetch()
            finally:
                shutil.rmtree(place, ignore_errors=True)
        self.fetch()

    def _update(self) -> None:
        if not (self.cache / "HEAD").exists():
            self._git("init", "--quiet", "--bare")
        self._git(
            # a shallow repository gives nothing without --update-shallow, and git does not say so
            *("fetch", "--quiet", "--prune", "--no-tags", "--update-shallow"),
            *(self.address, f"+{_BRANCHES}/*:{_BRANCHES}/*"),
        )
        self._trees, self._commits, self._changed = {}, {}, set()
        listed = self._git("for-each-ref", "--format=%(objectname) %(refname)", _BRANCHES).decode()
        for line in listed.splitlines():
            commit, _, branch = line.partition(" ")
            name = branch.removeprefix(f"{_BRANCHES}/")
            if name == _MARK or MACHINE.fullmatch(name):
                self._commits[name], self._trees[name] = commit, self._tree(commit)

    def _drop_damaged(self) -> bool:
        """Empty the cache if git finds it damaged, as by a power cut, and return whether it did."""
        with suppress(StoreError):
            self._git("fsck", "--no-dangling")
            return False
        for name in ("objects", "refs"):
            shutil.rmtree(self.cache / name, ignore_errors=True)
        for name in ("HEAD", "config", "packed-refs", "shallow"):
            (self.cache / name).unlink(missing_ok=True)
        return True

    def _tree(self, commit: str) -> dict[str, str]:
        found = {}
        for line in self._git("ls-tree", "-z", commit).decode("utf-8", "replace").split("\0"):
            mode, _, rest = line.partition(" ")
            if mode == "100644" and rest.startswith("blob "):
                blob, _, name = rest.removeprefix("blob ").partition("\t")
                found[name] = blob
        return found

    def names(self) -> list[str]:
        """Return the segments of all branches."""
        return sorted(
            f"{branch}/{name}"
            for branch, tree in self._trees.items()
            for name in tree
            if branch != _MARK and SUFFIX in name and "/" not in name
        )

    def get(self, name: str) -> bytes:
        """Return a file."""
        branch, base = _placed(name)
        blob = self._trees.get(branch, {}).get(base)
        if blob is None:
            raise SegmentError(f"{name} does not exist")
        if int(self._git("cat-file", "-s", blob)) > MAX_FILE_BYTES:
            raise SegmentError(f"{name} has over {MAX_FILE_BYTES >> 20} MiB")
        return self._git("cat-file", "blob", blob)

    def put(self, name: str, data: bytes) -> None:
        """Write a file into the cache; :meth:`flush` pushes it."""
        branch, base = _placed(name)
        tree = self._trees.setdefault(branch, {})
        if base not in tree:
            tree[base] = self._git("hash-object", "-w", "--stdin", stdin=data).decode().strip()
            self._changed.add(branch)

    def delete(self, name: str) -> None:
        """Leave a file out of its branch; :meth:`flush` pushes that."""
        branch, base = _placed(name)
        if self._trees.get(branch, {}).pop(base, None) is not None:
            self._changed.add(branch)

    def flush(self) -> None:
        """Push the changed branches. One that somebody has changed since the fetch is refused: the next run does it."""
        try:
            self._push()
        except StoreError as error:
            if not self._drop_damaged():
                raise
            told = f"{error.message}; the local copy was damaged and is made again by the next `klaw sync`"
            raise StoreError(told, hint="klaw sync") from error

    def _push(self) -> None:
        for branch in sorted(self._changed):
            lines = "".join(f"100644 blob {blob}\t{name}\0" for name, blob in sorted(self._trees[branch].items()))
            tree = self._git("mktree", "-z", stdin=lines.encode()).decode().strip()
            commit = self._git("commit-tree", tree, "-m", "klaw").decode().strip()
            old = self._commits.get(branch, "")
            place = f"{_BRANCHES}/{branch}"
            if commit != old:
                self._git("push", "--quiet", f"--force-with-lease={place}:{old}", self.address, f"{commit}:{place}")
            self._commits[branch] = commit
            self._changed.discard(branch)

    def _git(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | _IDENTITY
        if command := os.environ.get("GIT_SSH_COMMAND"):
            environment["GIT_SSH_COMMAND"] = command
        # The user's hooks are for the user's repositories.
        command_line = ["git", f"--git-dir={self.cache}", "-c", f"core.hooksPath={os.devnull}", *arguments]
        try:
            done = subprocess.run(  # noqa: S603  # git, found by its name as a shell does
                command_line, input=stdin, capture_output=True, check=True, timeout=_SECONDS, env=environment
            )
        except FileNotFoundError as error:
            raise StoreError("git is not installed", hint="install git, or use a folder") from error
        except subprocess.TimeoutExpired as error:
            raise StoreError(f"git {arguments[0]} did not answer for {_SECONDS} seconds") from error
        except subprocess.CalledProcessError as error:
            told = error.stderr.decode("utf-8", "replace").strip().splitlines()
            what = next((line for line in told if line.startswith(("fatal:", "error:", " !"))), "it failed")
            hint = next((_HINTS[reason] for reason in _HINTS if reason in what), "check the address and your access")
            raise StoreError(f"git {arguments[0]}: {what.strip()}", hint=hint) from error
        return done.stdout


def _placed(name: str) -> tuple[str, str]:
    """Return the branch of a file, and its name there."""
    if name == MEMORY_FILE:
        return _MARK, name
    branch, _, base = name.partition("/")
    if MACHINE.fullmatch(branch) is None or not base or "/" in base:
        raise SegmentError(f"{name} is not the name of a segment")
    return branch, base


def cache_of(data_dir: Path, address: str) -> Path:
    """Return the directory of the cache of a repository."""
    from klaw_journals.traces import digest

    return own_directory(data_dir, "sync", "git", digest(address))
