"""Break a copy of Klaw in one place after another, and fail unless every test that must notice does.

nox -s mutants                  all of them, two at a time
nox -s mutants -- lock token    those with one of these words in their name or file
nox -s mutants -- promise:D7    those that break a promise of the documentation; promise: for all of these
nox -s mutants -- lock --show   the same, with what pytest printed about those that survive
"""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from attrs import define, field, frozen
from mutants import ROOT, Mutant, load

WORKERS = 2
#: A run that takes longer hangs. It is no limit of speed: on a busy machine a run takes a minute.
HANGS_AFTER_SECONDS = 900
#: Imported once, before the processes of the runs are forked: it takes longer than most of the runs.
PRELOADED = ("apsw", "hypothesis", "httpx2", "msgspec", "numpy", "sqlite_vec", "starlette.testclient", "werkzeug")
# What is preloaded cannot be rewritten for better messages; that is no error.
_QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
#: Exceptions of a change that is itself a mistake; any test would notice that.
MISTAKES = ("NameError", "UnboundLocalError", "SyntaxError", "ImportError", "ModuleNotFoundError")


@frozen
class Job:
    """Tests to run, with a mutant or, first of all, without."""

    tests: tuple[str, ...]
    mutant: Mutant | None = None

    @property
    def place(self) -> str:
        """The file of the first test."""
        return self.tests[0].partition("::")[0]


@frozen
class Outcome:
    """What became of a job: the tests of ``failed`` failed, and ``trouble`` is why this says nothing."""

    job: Job
    failed: tuple[str, ...]
    seconds: float
    trouble: str = ""
    output: str = ""

    @property
    def missed(self) -> list[str]:
        """The tests that had to notice and did not."""
        return [test for test in self.job.tests if test not in self.failed]


@define(eq=False)
class Noticing:
    """A plugin of pytest that writes down which of the named tests failed, and skips what cannot say more."""

    tests: Sequence[str]
    failed: set[str] = field(factory=set)
    mistakes: list[str] = field(factory=list)
    ran: set[str] = field(factory=set)

    def pytest_sessionstart(self) -> None:
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)  # no time for smaller examples, and equal ones in every run
        settings.register_profile("mutants", settings(), phases=phases, derandomize=True, database=None)
        settings.load_profile("mutants")

    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        return True if self.failed.issuperset(self._named(item.nodeid)) else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        names = self._named(report.nodeid)
        self.ran |= names if report.when == "call" or report.failed else set()
        self.failed |= names if report.failed else set()

    def pytest_exception_interact(self, call: pytest.CallInfo) -> None:
        if call.excinfo is not None and call.excinfo.typename in MISTAKES:
            self.mistakes.append(f"{call.excinfo.typename}: {call.excinfo.value}")

    def _named(self, node: str) -> set[str]:
        return {test for test in self.tests if node == test or node.startswith((f"{test}[", f"{test}::"))} or {node}


def copy_checkout(target: Path) -> Path:
    """Copy the checkout's files, with those that are not committed yet."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


@define(eq=False)
class Runner:
    """Runs jobs in forked processes, each in a copy of the checkout of its own, and restores the copy after each."""

    home: Path
    workers: int = WORKERS
    _copies: list[Path] = field(factory=list)
    _running: dict[int, tuple[Job, Path, float]] = field(factory=dict)

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Yield the outcome of each job as it ends."""
        self._copies = self._copies or [copy_checkout(self.home / str(number)) for number in range(self.workers)]
        waiting = list(jobs)
        while waiting or self._running:
            while waiting and self._copies:
                self._start(waiting.pop(0), self._copies.pop())
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if pid:
                yield self._ended(pid, status, used.ru_utime + used.ru_stime)
            else:
                self._stop_hanging()
                time.sleep(0.05)

    def stop(self) -> None:
        """End what still runs."""
        for pid in self._running:
            _kill_group(pid)

    def _start(self, job: Job, copy: Path) -> None:
        result = copy / ".result"
        result.unlink(missing_ok=True)
        pid = os.fork()
        if not pid:
            code = 1
            try:
                _play(job, copy, result)
                code = 0
            except BaseException:  # noqa: BLE001  # whatever it is, the child must not go on as its parent
                traceback.print_exc()
            finally:
                os._exit(code)
        self._running[pid] = (job, copy, time.monotonic())

    def _ended(self, pid: int, status: int, seconds: float) -> Outcome:
        job, copy, _ = self._running.pop(pid)
        _kill_group(pid)  # a test that failed may leave processes behind
        output = (copy / ".output").read_text("utf-8", "replace")
        if job.mutant is not None:
            shutil.copy2(ROOT / job.mutant.file, copy / job.mutant.file)
        self._copies.append(copy)
        if status or not (copy / ".result").exists():
            why = "it hangs" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL else f"status {status}"
            return Outcome(job, (), seconds, f"the run did not end: {why}", output)
        told = json.loads((copy / ".result").read_text("utf-8"))
        missing = [test for test in job.tests if test not in told["ran"]]
        trouble = f"not run: {', '.join(missing)}" if missing else "; ".join(told["mistakes"])
        return Outcome(job, tuple(told["failed"]), seconds, trouble, output)

    def _stop_hanging(self) -> None:
        for pid, (_, _, began) in self._running.items():
            if time.monotonic() - began > HANGS_AFTER_SECONDS:
                _kill_group(pid)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # not even begun, or already gone
        return


def _play(job: Job, copy: Path, result: Path) -> None:
    """Run a job in this process, which was forked for it."""
    os.setsid()
    output = os.open(copy / ".output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(copy)
    places = [str(copy), *map(str, sorted(copy.glob("plugins/*/src")))]
    sys.path[:0] = places
    scratch = copy / ".scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    tempfile.tempdir = str(scratch)
    os.environ.update(PYTHONPATH=os.pathsep.join(places), TMPDIR=str(scratch))
    if job.mutant is not None:
        job.mutant.apply(copy)
        # A time that no other version of the file has, so that no compiled one passes for it.
        now = time.time() + os.getpid() % 1000
        os.utime(copy / job.mutant.file, (now, now))
    noticing = Noticing(job.tests)
    options = [
        "-q",
        "--tb=short",
        "--sampled",  # what the tests leave out cannot notice
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:anyio",
        "--rootdir",
        str(copy),
        *_QUIET,
    ]
    pytest.main([*options, *job.tests], plugins=[noticing])
    told = {key: sorted(getattr(noticing, key)) for key in ("failed", "ran", "mistakes")}
    result.write_text(json.dumps(told), "utf-8")
    sys.stdout.flush()
    sys.stderr.flush()


def without_mutants(mutants: Sequence[Mutant]) -> list[Job]:
    """Return jobs that run all named tests on the unchanged copy, a file's together."""
    files: dict[str, dict[str, None]] = {}
    for test in (test for mutant in mutants for test in mutant.tests):
        files.setdefault(test.partition("::")[0], {})[test] = None
    return [Job(tuple(tests)) for tests in files.values()]


def verdict(outcome: Outcome) -> str:
    """Return what is wrong with an outcome; empty if it is as it must be."""
    if outcome.trouble:
        return f"broken: {outcome.trouble}"
    if outcome.job.mutant is None:
        return f"fails without a mutant: {', '.join(outcome.failed)}" if outcome.failed else ""
    return f"survived {', '.join(outcome.missed)}" if outcome.missed else ""


@define(eq=False)
class Report:
    """Prints each outcome as it comes, and counts."""

    show: bool
    counts: Counter[str] = field(factory=Counter)
    seconds: float = 0.0
    wrong: list[str] = field(factory=list)

    def stale(self, mutant: Mutant, found: Sequence[str]) -> None:
        """Print that a mutant does not fit the code."""
        self._say("STALE", f"{mutant.name}: {'; '.join(found)}", is_wrong=True)
        self.counts["stale"] += 1

    def add(self, outcome: Outcome) -> None:
        """Print an outcome, and with ``show`` what pytest printed if it is wrong."""
        found = verdict(outcome)
        self.seconds += outcome.seconds
        what = outcome.job.mutant.name if outcome.job.mutant else f"the unchanged code, {outcome.job.place}"
        if outcome.job.mutant:
            self.counts[
                "killed" if not found else "survived" if outcome.missed and not outcome.trouble else "broken"
            ] += 1
        word = found.partition(" ")[0].rstrip(":").upper() if found else "killed" if outcome.job.mutant else "passed"
        self._say(word, f"{outcome.seconds:5.1f} s  {what}" + (f": {found}" if found else ""), is_wrong=bool(found))
        if found and self.show:
            print(outcome.output, flush=True)

    def end(self) -> int:
        """Print the sums and, again, what is wrong; return the exit code."""
        counts = ", ".join(f"{self.counts[word]} {word}" for word in ("killed", "survived", "broken", "stale"))
        print(f"{self.counts.total()} mutants: {counts}; {self.seconds:.0f} s of CPU")
        for line in self.wrong:
            print(line)
        return 1 if self.wrong else 0

    def _say(self, word: str, what: str, *, is_wrong: bool) -> None:
        print(f"{word:8} {what}", flush=True)
        if is_wrong:
            self.wrong.append(f"{word:8} {what}")


def main(words: Sequence[str]) -> int:
    """Run the mutants with one of the words in their name or file; return the exit code."""
    report = Report(show="--show" in words)
    words = [word for word in words if word != "--show"]
    mutants = []
    for mutant in load():
        ids = "".join(f" promise:{name} " for name in mutant.promises)
        if words and not any(word in f"{mutant.name} {mutant.file}{ids}" for word in words):
            continue
        if found := mutant.problems():
            report.stale(mutant, found)
        else:
            mutants.append(mutant)
    for name in PRELOADED:
        importlib.import_module(name)
    home = Path(tempfile.mkdtemp(prefix="klaw-mutants-"))
    runner = Runner(home)
    try:
        for outcome in runner.run([*without_mutants(mutants), *(Job(one.tests, one) for one in mutants)]):
            report.add(outcome)
    finally:
        runner.stop()
        shutil.rmtree(home, ignore_errors=True)
    return report.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
