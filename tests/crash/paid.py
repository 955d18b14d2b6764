"""Klaw as a process of its own, embedding with a paid provider that counts the texts that it answered.

The provider is a real server on a real socket, in the process that looks; Klaw is killed, by SIGKILL, either as a
request arrives (so everything answered before has been kept) or at the moment at which an answer has been counted and
is not sent yet: the one window in which a text can be paid for twice.

Run by hand, this kills a large index at random moments until it is complete, and prints what was paid for:

    python tests/crash/paid.py --chunks 5000 --kills 12
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

from attrs import define, field
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from klaw_core.embedding.run import PROBE
from klaw_testing.doubles.openai import FakeOpenAI

TEXTS_PER_CALL = 40


class Provider(FakeOpenAI):
    """Kills ``victim`` at its ``kill_at``-th request: as it ``arrives``, once it is ``counted``, or ``soon`` after."""

    victim: subprocess.Popen[bytes] | None = None
    kill_at: int | None = None
    when = "arrives"
    delay_seconds = 0.0
    seen = 0

    def _embeddings(self, request: Request) -> Response:
        self.seen += 1
        fatal = self.seen == self.kill_at
        if fatal and self.when == "arrives":
            self._kill()
            return Response(status=503)
        response = super()._embeddings(request)
        if fatal and self.when == "counted":
            self._kill()
        elif fatal:
            threading.Timer(self.delay_seconds, self._kill).start()
        return response

    def _kill(self) -> None:
        assert self.victim is not None
        self.victim.kill()
        self.victim.wait()

    @property
    def paid(self) -> Counter[str]:
        """The texts that were answered; the probe, which goes along once a run, is nobody's note."""
        return Counter({text: count for text, count in self.answered.items() if text != PROBE})


@define
class Trial:
    """A directory of notes and what indexes it."""

    root: Path
    provider: Provider
    kills: int = 0
    chunks: int = 0
    log: list[str] = field(factory=list)

    def prepare(self, chunks: int) -> None:
        """Write notes that make so many chunks, ten a note, all different."""
        self.chunks = chunks
        notes = self.root / "notes"
        notes.mkdir()
        for number in range(chunks // 10):
            parts = (
                f"# StyledText {number}.{part}\n\nentry{number * 10 + part} of the harbour log" for part in range(10)
            )
            (notes / f"{number:04}.md").write_text("\n\n".join(parts))
        (self.root / "config.toml").write_text(
            f'[memory.embedding]\ntype = "openai"\nurl = "{self.provider.url}"\nbatch_size = {TEXTS_PER_CALL}\n'
            "dimension = 64\nretries = 0\n"
            "[memory.chunking]\nmax_tokens = 20\noverlap_tokens = 0\n"
        )

    def klaw(self, *arguments: str, kill_at: int | None = None, when: str = "arrives") -> int:
        """Run Klaw, killed at the n-th request of the run if that is asked for; return its exit status."""
        variables = {"KLAW_CONFIG": str(self.root / "config.toml"), "KLAW_DATA_DIR": str(self.root / "data")}
        self.provider.seen, self.provider.kill_at, self.provider.when = 0, kill_at, when
        command = [sys.executable, "-m", "klaw_core", *arguments]
        with (self.root / "stderr").open("wb") as stderr:
            # The provider cannot be asked before the child has started up, so the assignment is early enough.
            self.provider.victim = subprocess.Popen(
                command, env={**os.environ, **variables}, stdout=subprocess.DEVNULL, stderr=stderr
            )
            status = self.provider.victim.wait()
        self.kills += status < 0
        return status

    def twice(self) -> int:
        """Return how many texts were paid for more than once, each as often as it was too often."""
        return self.provider.paid.total() - len(self.provider.paid)


def main() -> None:
    """Kill an index run at random moments until it is complete; print what was answered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)  # no secret
    server = HTTPServer(host="127.0.0.1", threaded=True)
    server.start()
    with tempfile.TemporaryDirectory() as directory:
        trial = Trial(Path(directory), Provider(server, dimension=64))
        trial.prepare(arguments.chunks)
        calls = arguments.chunks // TEXTS_PER_CALL
        in_window = 0
        for _ in range(arguments.kills):
            when = dice.choice(["arrives", "counted", "soon", "soon"])
            trial.provider.delay_seconds = dice.uniform(0, 0.03)  # a call and what is done with it take some 20 ms
            before = trial.kills
            trial.klaw("index", str(trial.root / "notes"), kill_at=dice.randint(1, calls // arguments.kills), when=when)
            in_window += when != "arrives" and trial.kills > before
        status = trial.klaw("index", str(trial.root / "notes"))
    server.stop()
    paid = trial.provider.paid
    print(f"killed {trial.kills} times, {in_window} of them at or soon after an answer; then exit {status}")  # noqa: T201
    print(f"texts answered {paid.total():,}, distinct {len(paid):,}, twice {trial.twice():,}")  # noqa: T201
    print(f"at most {in_window} x {TEXTS_PER_CALL} = {in_window * TEXTS_PER_CALL:,} may be answered twice")  # noqa: T201
    print(f"calls {len(trial.provider.requests):,}")  # noqa: T201


if __name__ == "__main__":
    main()
