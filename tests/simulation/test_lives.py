"""What only a seed decides of a life: neither the lives before it, nor processes with a real clock."""

import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_LIVED = """
import os, sys
sys.path[:0] = sys.argv[1:]
import simulator
from lives import REAL, Outcome

here, kept = os.getpid(), []

class Stage(simulator.Stage):
    def live_here(self, life, seed):
        kept.append(seed)  # as a cache does
        if seed == 3:
            os._exit(9)
        return Outcome([(1, f"{os.getpid() == here} {kept}")], simulator.Counter(save=seed), ["a", "b"])

stage = Stage(None, None)
for seed in 1, 2, 3:
    outcome = stage.live([], seed)
    print(outcome.problems, outcome.counts["save"], outcome.digests)
one, other = (Outcome([(1, each)], digests=["a", REAL, each]) for each in "bc")
print(one == other, one.of_seed() == other.of_seed(), simulator.difference(one, other))
early = Outcome(digests=["b", REAL])
print(one.of_seed() == early.of_seed(), simulator.difference(one, early))
print(Outcome([(1, "b")]).of_seed() == Outcome([(1, "c")]).of_seed())
"""


def test_a_life_depends_on_its_seed_only():
    """It is lived in a process of its own, and compared until another process has a real clock."""
    command = [sys.executable, "-c", _LIVED, str(_HERE), str(_HERE.parent / "crash")]
    first, second, ended, alike, unlike, all_ = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert first == "[(1, 'False [1]')] 1 ['a', 'b']"
    assert second == "[(1, 'False [2]')] 2 ['a', 'b']"
    assert ended == "[(-1, 'the day: it ended early')] 0 []"
    assert alike.startswith("False True")
    assert unlike == "False a, b"
    assert all_ == "False"
