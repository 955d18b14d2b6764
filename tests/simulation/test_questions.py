"""A question meets the same places of the code, whether its answer comes at once or late."""

import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_ASKED = """
import sys, time
sys.path[:0] = sys.argv[1:]
import numpy
import questions
from interrupts import Interrupter
from klaw_core import SpaceRecord, VectorSpace
from klaw_core.embedding.query_vectors import QueryVectors
vector = numpy.array([1, 0], numpy.float32)
class Slow:
    space = VectorSpace("slow", "1", 2)
    def embed_query(self, text, /):
        time.sleep(float(text))
        return vector
questions.install()
for seconds in ("0", "1.2", "0.1"):
    with Interrupter() as met:
        QueryVectors().embed(seconds, Slow(), SpaceRecord(Slow.space, vector), "memory")
    print(*met.places, sep=", ")
print(len(sys._current_frames()), "thread")
"""


def test_a_question_meets_the_same_places_however_late_its_answer_comes():
    paths = [str(_HERE), str(_HERE.parent / "crash")]
    run = subprocess.run([sys.executable, "-c", _ASKED, *paths], capture_output=True, text=True, check=True)
    _, late, soon, left = run.stdout.splitlines()  # the first one of a thread meets more
    assert late == soon
    assert "c_return get for QueryVectors.embed" in late
    assert left == "1 thread"  # none that has or has not begun to wait when the next question comes
