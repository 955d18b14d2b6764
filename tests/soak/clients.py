"""Sixty-four clients of ``klaw serve``, for an hour, next to ``klaw watch``: does anything grow that should not?

    python tests/soak/clients.py [--minutes 60] [--clients 64] [--days 60] [--pause 1.5] [--json FILE] [--keep DIR]

Each client saves, supersedes, searches, asks for contexts, says messages, and forgets the oldest of what it has: how
much there is to remember stays the same. Notes in a workspace change, too. The wall clock of both commands goes faster,
so that ``--days`` days pass in the time: nights, ages and dates are those of a long life. Timeouts are real. What both
remember of texts has a bound, which they reach in the first third of the time (``fast_clock.py``).

Measured every few seconds: the memory, descriptors and threads of both processes; the database, its log, the journals,
the caches and everything else that is written, in bytes. The first third is warming up. The rest is cut into twelve
parts. A line through their medians has a slope, and the scatter of the medians around it says how far off that slope
may be. A number grows if its slope is larger than four times that (1 of 800 flat numbers would be by chance), and the
line also rises by more than the number's least step (``MEASURES``). Then the exit code is 1. It also is if an answer
was wrong, a command wrote an error or did not end properly, `klaw doctor` finds something, or a forgotten text is in a
byte of a file.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from statistics import linear_regression, median
from urllib.parse import urlencode

from attrs import define, field, frozen

ROOT = Path(__file__).parents[2]
FAKES = ROOT / "tests" / "packaging" / "fakes"

#: How many memories and messages each client has, and how many notes there are.
KEPT, SAID, NOTES = 4, 4, 40
#: Between two calls of a client: random, and this many seconds on average.
PAUSE_SECONDS = 1.5
#: The server closes a connection after five seconds without a request.
IDLE_SECONDS = 3.0
PARTS = 12
SURE = 4.0

#: What is measured, in which unit, and the least step: growth below it, in the whole time, is none.
MEASURES: dict[str, tuple[str, float]] = {
    "serve memory": ("MB", 3.0),  # the allocator gives memory back in pieces of a megabyte and more
    "watch memory": ("MB", 3.0),
    "serve descriptors": ("", 3.0),
    "watch descriptors": ("", 3.0),
    "serve threads": ("", 2.0),
    "watch threads": ("", 2.0),
    "database": ("MB", 0.2),
    "write-ahead log": ("MB", 0.5),
    "journals": ("MB", 0.07),  # up to 64 kB are blank before a journal is written again
    "caches": ("MB", 0.05),
    "others": ("MB", 0.05),
    "files": ("", 2.0),
    "output": ("kB", 1.0),
}


@frozen
class Sample:
    """What was measured at a moment, in seconds since the start: a number for each of ``MEASURES``."""

    second: float
    values: dict[str, float]


@frozen
class Trend:
    """A line through the medians of the parts: where it begins and ends, and how far the rise may be off."""

    first: float
    last: float
    bound: float

    @property
    def rise(self) -> float:
        """How much the line rises in the time."""
        return self.last - self.first

    def grows(self, step: float) -> bool:
        """Whether it rises by more than the noise explains and by more than a step."""
        return self.rise > max(self.bound, step)


def trend(samples: Sequence[tuple[float, float]]) -> Trend:
    """Return the line through the medians of the parts of ``(second, value)``; the bound is that of a flat line."""
    size = len(samples) / PARTS
    parts = [samples[round(number * size) : round((number + 1) * size)] for number in range(PARTS)]
    middles = [(median(second for second, _ in part), median(value for _, value in part)) for part in parts]
    seconds, values = zip(*middles, strict=True)
    slope, height = linear_regression(seconds, values)
    off = sum((value - height - slope * second) ** 2 for second, value in middles) / (PARTS - 2)
    mean = sum(seconds) / PARTS
    spread = sum((second - mean) ** 2 for second in seconds)
    span = seconds[-1] - seconds[0]
    return Trend(height + slope * seconds[0], height + slope * seconds[-1], SURE * (off / spread) ** 0.5 * span)


@define(eq=False)
class Place:
    """The directories of a soak, and the commands that run there."""

    root: Path
    factor: float
    begin: float
    running: dict[str, subprocess.Popen[bytes]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for name in ("data", "notes", "out", "config/klaw", "cache", "plugins/klaw_hello-0.dist-info"):
            (self.root / name).mkdir(parents=True)
        described = self.root / "plugins" / "klaw_hello-0.dist-info"
        (described / "METADATA").write_text("Metadata-Version: 2.1\nName: klaw-hello\nVersion: 0\n", "utf-8")
        (described / "entry_points.txt").write_text("[klaw]\nhello = klaw_hello\n", "utf-8")
        (self.root / "config.toml").write_text(
            f"""[memory.embedding]
type = "hashing"
dimension = 384
[memory.cache]
max_entries = 300
[[memory.sources]]
type = "workspace"
path = {json.dumps(str(self.root / "notes"))}
[extensions.watch]
interval_minutes = 1
idle_minutes = 0
consolidate = "00:00-23:59"
""",
            "utf-8",
        )

    @property
    def data(self) -> Path:
        return self.root / "data"

    def environment(self) -> dict[str, str]:
        """Return an environment with nothing of the person who runs this."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KLAW_", "XDG_", "PYTHON"))}
        return kept | {
            "KLAW_DATA_DIR": str(self.data),
            "KLAW_CONFIG": str(self.root / "config.toml"),
            "KLAW_OFFLINE": "1",
            "HOME": str(self.root),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "PYTHONPATH": os.pathsep.join(map(str, (self.root / "plugins", FAKES / "klaw-hello"))),
        }

    def command(self, *words: str) -> list[str]:
        """Return the command line of klaw under the fast clock."""
        program = str(Path(__file__).with_name("fast_clock.py"))
        return [sys.executable, program, str(self.factor), str(self.begin), *words]

    def start(self, *words: str) -> None:
        """Start a command that goes on, with what it reports in a file of its name."""
        with (self.root / "out" / words[0]).open("wb") as out:  # not what klaw watch prints of each run
            nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
            started = subprocess.Popen(self.command(*words), env=self.environment(), stderr=out, **nothing)
        self.running[words[0]] = started

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        options = {"env": self.environment(), "stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        return subprocess.run(self.command(*words), check=False, timeout=600, **options)  # type: ignore[call-overload, no-any-return]

    def said(self, name: str) -> str:
        """Return what a command that goes on has written."""
        return (self.root / "out" / name).read_text("utf-8", "replace")

    def wait_for(self, name: str, pattern: str) -> re.Match[str]:
        """Return the first match in what a command writes. Raise RuntimeError if it ends before."""
        while self.running[name].poll() is None:
            if found := re.search(pattern, self.said(name)):
                return found
            time.sleep(0.1)
        raise RuntimeError(self.said(name))

    def stop(self) -> None:
        """End the commands as a service manager does."""
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(300)
            if process.poll() is None:
                process.kill()
                process.wait()

    def measure(self) -> dict[str, float]:
        """Return every number of ``MEASURES``."""
        values: dict[str, float] = {}
        for name, process in self.running.items():
            about = Path(f"/proc/{process.pid}")
            pages = int((about / "statm").read_text().split()[1])
            values[f"{name} memory"] = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
            values[f"{name} descriptors"] = len(list((about / "fd").iterdir()))
            values[f"{name} threads"] = len(list((about / "task").iterdir()))
        sizes = dict.fromkeys(MEASURES, 0)
        for path in self.files():
            with suppress(FileNotFoundError):  # a temporary file may be gone by now
                sizes[self.kind(path)] += path.stat().st_size
                sizes["files"] += 1
        values |= {
            name: sizes[name] / 1e6 for name, (unit, _) in MEASURES.items() if unit == "MB" and name not in values
        }
        return values | {"files": sizes["files"], "output": sizes["output"] / 1e3}

    def files(self) -> list[Path]:
        """Return all files but the notes themselves."""
        places = [self.root / name for name in ("data", "out", "config", "cache", ".klaw", ".cache")]
        return [path for place in places for path in place.rglob("*") if path.is_file()]

    def kind(self, path: Path) -> str:
        """Return the measure that a file counts for."""
        first = path.relative_to(self.root).parts[0]
        if first != "data":
            return {"out": "output", "cache": "caches", ".cache": "caches"}.get(first, "others")
        names = {"klaw.db": "database", "klaw.db-wal": "write-ahead log"}
        return names.get(path.name, "journals" if path.suffix == ".jsonl" else "others")


@define(eq=False)
class Client:
    """One client: a thread with a connection, some memories, and a chat. Each text has a word of its own."""

    number: int
    port: int
    token: str
    pause: float
    chance: Random
    ended: threading.Event
    wrong: list[str]
    calls: dict[str, list[float]]
    gone: list[str] = field(factory=list)
    _saved: deque[tuple[str, str]] = field(factory=deque)
    _said: deque[tuple[str, str]] = field(factory=deque)
    _connection: http.client.HTTPConnection | None = None
    _asked: float = 0.0

    def run(self) -> None:
        """Live until the end, then forget everything. What stops a client is wrong, too."""
        try:
            self.live()
        except Exception as error:  # noqa: BLE001  # nobody waits for what a thread raises
            self.wrong.append(f"a client has stopped: {error!r}")

    def live(self) -> None:
        """Call until the end, then forget everything."""
        steps = [self.save, self.supersede, self.search, self.search, self.context, self.say, self.forget]
        while not self.ended.wait(self.chance.uniform(0, 2 * self.pause)):
            self.chance.choice(steps)()
        while self._saved or self._said:
            self.forget()
        if self._connection is not None:
            self._connection.close()

    def ask(
        self, method: str, path: str, body: dict[str, object] | None = None, /, **query: object
    ) -> dict[str, object]:
        """Return the answer of the server; note it if it is not a success."""
        began = time.monotonic()
        idle = began - self._asked
        if self._connection is None or idle > IDLE_SECONDS or self.chance.random() < 0.02:  # clients come and go
            if self._connection is not None:
                self._connection.close()
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        where = f"{path}?{urlencode(query)}" if query else path
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            self._connection.request(method, where, json.dumps(body) if body is not None else None, headers)
            answer = self._connection.getresponse()
            text = answer.read()
            self._asked = time.monotonic()
        except (OSError, http.client.HTTPException) as error:
            self.wrong.append(f"{method} {path}: {error!r}")
            self._connection = None
            return {}
        self.calls[f"{method} {re.sub('(?<=/chats)/.*', '', path)}"].append(self._asked - began)
        if answer.status >= 300:
            self.wrong.append(f"{method} {path}: {answer.status} {text[:300]!r}")
            return {}
        found: dict[str, object] = json.loads(text or b"{}")
        return found

    def word(self) -> str:
        """Return a word that nobody has used."""
        return "".join(self.chance.choices("bcdfghjklmnpqrstvwxz", k=12))

    def text(self, word: str) -> str:
        """Return a text with a word, among words that others have, too."""
        return f"{word} " + " ".join(f"common{int(500 * self.chance.random() ** 3)}" for _ in range(25))

    def save(self) -> None:
        """Save a text; forget the oldest if there are too many."""
        word = self.word()
        made = self.ask("POST", "/api/memories", {"text": self.text(word)})
        if made:
            self._saved.append((str(made["path"]), word))
        while len(self._saved) > KEPT:
            self.forget_from(self._saved)

    def supersede(self) -> None:
        """Replace a memory by a new one, and forget the old one some time later."""
        if not self._saved:
            return
        path, _ = self._saved[-1]
        word = self.word()
        made = self.ask("POST", "/api/memories", {"text": self.text(word), "supersedes": path})
        if made:
            self._saved.append((str(made["path"]), word))
        while len(self._saved) > KEPT:
            self.forget_from(self._saved)

    def search(self) -> None:
        """Look for a word that is there, and for one that was forgotten."""
        if self._saved:
            path, word = self._saved[-1]
            self.expect(word, word, is_there=True, path=path)  # with other words, texts that have these may be first
        if self.gone:
            word = self.chance.choice(self.gone)
            self.expect(word, f"{word} common5", is_there=False)

    def expect(self, word: str, question: str, *, is_there: bool, path: str = "") -> None:
        """Note it if a search finds a word that is not there, or does not find one that is."""
        found = self.ask("GET", "/api/search", query=question, limit=5)
        if found and (word in json.dumps(found["results"])) != is_there:
            again = self.ask("GET", "/api/search", query=question, limit=50) if is_there else {}
            then = " and later it is" if word in json.dumps(again.get("results")) else ""
            self.wrong.append(f"{word} is {'not ' if is_there else ''}found{then} ({path}): {found.get('notices')}")

    def context(self) -> None:
        """Ask for the context of a message."""
        told = self.ask("GET", "/api/context", message=self.text("what"), budget=500, chat=self.chat)
        for word in self.gone[-20:]:
            if word in str(told.get("context", "")):
                self.wrong.append(f"{word} is in a context")

    @property
    def chat(self) -> str:
        return f"telegram_{self.number}"

    def say(self) -> None:
        """Say something in the client's chat; forget the oldest message if there are too many."""
        word = self.word()
        made = self.ask("POST", f"/api/chats/{self.chat}", {"role": "user", "content": self.text(word)})
        if made:
            self._said.append((f"{self.chat}/{made['id']}", word))
        while len(self._said) > SAID:
            self.forget_from(self._said)

    def forget(self) -> None:
        """Forget the oldest memory, or the oldest message."""
        kept = [each for each in (self._saved, self._said) if each]
        if kept:
            self.forget_from(self.chance.choice(kept))

    def forget_from(self, kept: deque[tuple[str, str]]) -> None:
        """Forget the oldest."""
        path, word = kept.popleft()
        if self.ask("DELETE", "/api/document", path=path):
            self.gone.append(word)


@define(eq=False)
class Notes:
    """Notes that change, each with the same number of words."""

    place: Path
    chance: Random
    rounds: int = 0

    def write(self, number: int) -> None:
        """Write a note anew."""
        parts = (" ".join(f"note{int(2000 * self.chance.random() ** 2)}" for _ in range(80)) for _ in range(3))
        (self.place / f"{number}.md").write_text("# A note\n\n" + "\n\n## Part\n\n".join(parts) + "\n", "utf-8")

    def change(self) -> None:
        """Write two notes anew, remove one and add one: there are as many as before."""
        first = self.rounds
        (self.place / f"{first}.md").unlink()
        for number in (first + 1, first + NOTES // 2, first + NOTES):
            self.write(number)
        self.rounds += 1


def soak(arguments: argparse.Namespace, root: Path) -> tuple[list[Sample], list[str], dict[str, list[float]]]:
    """Live for the time; return what was measured, what was wrong, and the seconds of each call, by kind."""
    seconds = 60 * arguments.minutes
    place = Place(root, 86_400 * arguments.days / seconds, time.time())
    notes = Notes(root / "notes", Random(f"{arguments.seed} notes"))
    for number in range(NOTES):
        notes.write(number)
    wrong: list[str] = []
    ended, calls, samples, clients = threading.Event(), defaultdict[str, list[float]](list), [], []
    place.start("watch")
    try:
        place.wait_for("watch", "watching ")
        place.start("serve", "--port", "0")  # watches nothing: each data directory has one watcher
        port = int(place.wait_for("serve", r"serving at http://127\.0\.0\.1:(\d+)")[1])
        token = (place.data / "serve.token").read_text().strip()
        clients = [
            Client(number, port, token, arguments.pause, Random(f"{arguments.seed} {number}"), ended, wrong, calls)
            for number in range(arguments.clients)
        ]
        threads = [threading.Thread(target=client.run, name=f"client {client.number}") for client in clients]
        for thread in threads:
            thread.start()
        try:
            samples = watch(place, notes, seconds)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
    finally:
        place.stop()
    wrong += afterwards(place, [word for client in clients for word in client.gone])
    return samples, wrong, calls


def watch(place: Place, notes: Notes, seconds: float) -> list[Sample]:
    """Measure until the time is over, and change notes; return what was measured."""
    samples: list[Sample] = []
    began = time.monotonic()
    every = max(1.0, seconds / 720)
    while (elapsed := time.monotonic() - began) < seconds:
        if any(process.poll() is not None for process in place.running.values()):
            break
        samples.append(Sample(elapsed, place.measure()))
        if len(samples) % 3 == 0:
            notes.change()
        time.sleep(every)
    return samples


def afterwards(place: Place, gone: Sequence[str]) -> list[str]:
    """Return what is wrong when everything has ended: findings, output, leftovers, words that were forgotten."""
    wrong = []
    for name, process in place.running.items():
        if process.returncode:
            wrong.append(f"klaw {name} ended with {process.returncode}: {place.said(name)[-1500:]}")
        unusual = [
            line for line in place.said(name).splitlines() if re.search(r"(?i)error|traceback|warning|defect", line)
        ]
        wrong += [f"klaw {name} wrote: {line[:300]}" for line in unusual[:5]]
    for words in (("index",), ("doctor",)):
        done = place.run(*words)
        if done.returncode:
            wrong.append(f"klaw {words[0]}: {done.stdout[-1500:]}{done.stderr[-500:]}")
    pattern = re.compile("|".join(gone).encode()) if gone else None
    for path in place.files():
        if pattern is not None and (found := pattern.search(path.read_bytes())):
            wrong.append(f"the forgotten {found[0].decode()} is in {path.name}")
        if path.name.startswith(".klaw-"):
            wrong.append(f"{path.name} is left")
    return wrong


def report(samples: Sequence[Sample], wrong: Sequence[str], calls: dict[str, list[float]]) -> bool:
    """Print the trend of every number and what was wrong; return whether all is well."""
    after = samples[len(samples) // 3 :]
    number = sum(map(len, calls.values()))
    lines = [f"{number} calls in {samples[-1].second:.0f} s; {len(after)} samples after warming up"]
    for name, seconds in sorted(calls.items()):
        seconds.sort()
        shown = "  ".join(f"{seconds[int(share * (len(seconds) - 1))]:7.2f}" for share in (0.5, 0.9, 0.99, 1))
        lines.append(f"    {len(seconds):7} {name:24} seconds of half, 90 %, 99 %, all: {shown}")
    lines.append(f"{'':18} {'from':>10} {'to':>10} {'bound':>10}        (least to most, warming up included)")
    flat = True
    for name, (unit, step) in MEASURES.items():
        line = trend([(sample.second, sample.values[name]) for sample in after])
        grows = line.grows(step)
        flat = flat and not grows
        low, high = (choose(sample.values[name] for sample in samples) for choose in (min, max))
        numbers = f"{line.first:10.3f} {line.last:10.3f} {max(line.bound, step):10.3f}"
        lines.append(f"{name:>18} {numbers} {unit:3} {'GROWS' if grows else 'flat':5}  ({low:.3f} to {high:.3f})")
    lines += [f"WRONG {number} times: {each}" for each, number in Counter(wrong).most_common(20)]
    print("\n".join(lines))  # noqa: T201  # a program's output
    return flat and not wrong


def main() -> int:
    """Soak, print, and say whether anything grows or is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--pause", type=float, default=PAUSE_SECONDS, help="seconds between two calls of a client")
    parser.add_argument("--days", type=float, default=60.0, help="days that pass on the clock of the commands")
    parser.add_argument("--json", type=Path, help="write every number, a line a sample")
    parser.add_argument("--keep", type=Path, help="a new directory for everything, which stays")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    if arguments.keep:
        arguments.keep.mkdir()
        samples, wrong, calls = soak(arguments, arguments.keep.resolve())
    else:
        with tempfile.TemporaryDirectory(prefix="klaw-soak-") as directory:
            samples, wrong, calls = soak(arguments, Path(directory).resolve())
    if arguments.json:
        lines = (json.dumps({"second": sample.second, **sample.values}) + "\n" for sample in samples)
        arguments.json.write_text("".join(lines), "utf-8")
    if len(samples) < 3 * PARTS:
        print("\n".join(wrong) or "too short to say anything")  # noqa: T201  # a program's output
        return 1
    return 0 if report(samples, wrong, calls) else 1


if __name__ == "__main__":
    sys.exit(main())
