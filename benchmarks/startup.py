"""How long ``klaw`` takes in a fresh process, beside what nobody can do without.

    python benchmarks/startup.py NOTES [--runs 15] [--question "what did we decide about auth"]

NOTES, a directory of some dozens of notes, is indexed first, in a directory of its own. Then these programs run in
turn, so that all of them have met the machine in the same mood, and CPU and wall time of each whole process are
taken (``os.wait4``):

- the bare interpreter;
- ``import numpy, onnxruntime, tokenizers, apsw``;
- the same, then a session of the same model's file, and one embedding;
- ``klaw search QUESTION``, ``klaw search --mode fts QUESTION``, ``klaw --help``;
- ``klaw hook user-prompt`` with the question as the prompt, and ``klaw hook session-start``;
- ``klaw remember``, ``klaw status``, and ``klaw index`` of the notes, which have not changed.

``--before TREE`` runs another checkout with the same interpreter as well, and the last columns compare the two in
pairs: one run of each, one after the other.

Printed are medians, quartiles, and the ratio of each median to the third's. All processes find byte code for every
module, as after an installation with pip: it is kept in a directory of its own (``PYTHONPYCACHEPREFIX``), whatever the
environment says. Each library gets one thread. Needs ``klaw[default]``.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from measuring import ONE_THREAD, Cost, Spread, table

IMPORTS = "import numpy, onnxruntime, tokenizers, apsw"
BARE = f"""
{IMPORTS}
import sys
model, tokenizer, question = sys.argv[1:]
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
tokens = tokenizers.Tokenizer.from_file(tokenizer)
tokens.no_padding()
ids = numpy.array([tokens.encode(question).ids])
feed = {{"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)}}
states = session.run(None, {{value.name: feed[value.name] for value in session.get_inputs()}})[0][0]
vector = states.mean(axis=0)
vector /= numpy.linalg.norm(vector)
"""
KLAW = "import sys; sys.argv[0] = 'klaw'; from klaw_core.cli.startup import run; run()"
BASE = "the same, the model, one embedding"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notes", type=Path, help="a directory of notes to index")
    parser.add_argument("--runs", type=int, default=15, help="how often each program runs")
    parser.add_argument("--question", default="what did we decide about auth")
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        programs = commands(arguments.question, arguments.notes)
        trees = [Path(__file__).parent.parent, *filter(None, [arguments.before])]
        environments = [prepared(Path(place, str(number)), tree) for number, tree in enumerate(trees)]
        for environment in environments:
            run([sys.executable, "-c", KLAW, "index", "--quiet", str(arguments.notes)], environment)
        given = Path(place, "prompt.json")
        event = {"hook_event_name": "UserPromptSubmit", "prompt": arguments.question, "session_id": "one", "cwd": place}
        given.write_text(json.dumps(event))
        costs: dict[str, list[Cost]] = {name: [] for name in programs}
        before: dict[str, list[Cost]] = {name: [] for name in programs}
        for number in range(arguments.runs + 1):
            for name, command in programs.items():
                found = [run(command, environment, given) for environment in environments]
                if number:  # the first run of each makes the byte code, and fills the caches
                    costs[name].append(found[0])
                    before[name].append(found[-1])
    cpu = {name: Spread.of(cost.cpu * 1000 for cost in found) for name, found in costs.items()}
    wall = {name: Spread.of(cost.wall * 1000 for cost in found) for name, found in costs.items()}
    rows = [
        (
            name,
            cpu[name],
            wall[name],
            f"{cpu[name].median / cpu[BASE].median:.2f}",
            f"{wall[name].median / wall[BASE].median:.2f}",
            Spread.of(now.cpu / then.cpu for now, then in zip(costs[name], before[name], strict=True)),
        )
        for name in programs
    ]
    head = ("whole process", "CPU, ms", "wall, ms", "CPU ratio", "wall ratio", "CPU, now / before")
    columns = len(head) - (arguments.before is None)
    print(table(head[:columns], [row[:columns] for row in rows]))


def commands(question: str, notes: Path) -> dict[str, list[str]]:
    """Return what is compared, by name."""
    spec = find_spec("klaw_model_minilm")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the model is not installed: pip install 'klaw[default]'")
    model = Path(spec.submodule_search_locations[0])
    klaw = [sys.executable, "-c", KLAW]
    return {
        "python": [sys.executable, "-c", "pass"],
        IMPORTS: [sys.executable, "-c", IMPORTS],
        BASE: [sys.executable, "-c", BARE, str(model / "model.onnx"), str(model / "tokenizer.json"), question],
        "klaw search": [*klaw, "search", question],
        "klaw search --mode fts": [*klaw, "search", "--mode", "fts", question],
        "klaw --help": [*klaw, "--help"],
        "klaw hook user-prompt": [*klaw, "hook", "user-prompt", "--timeout", "60"],
        "klaw hook session-start": [*klaw, "hook", "session-start", "--timeout", "60"],
        "klaw remember": [*klaw, "remember", "--quiet", "I live in Lyon."],
        "klaw status": [*klaw, "status"],
        "klaw index, nothing changed": [*klaw, "index", "--quiet", str(notes)],
    }


def prepared(place: Path, tree: Path) -> dict[str, str]:
    """Return an environment with a checkout and places of its own, one thread for each library, and byte code."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KLAW_", "PYTHONDONTWRITE"))}
    places = {f"XDG_{name}_HOME": str(place / name.lower()) for name in ("DATA", "CACHE", "CONFIG")}
    own = {"PYTHONPYCACHEPREFIX": str(place / "bytecode"), "ORT_DISABLE_TELEMETRY": "1"}  # the latter as Klaw sets it
    sources = (path for path in tree.glob("plugins/*/src") if "-model-" not in str(path))  # models are as installed
    own["PYTHONPATH"] = os.pathsep.join(map(str, (tree, *sorted(sources))))
    return {**kept, **ONE_THREAD, **places, **own}


def run(command: list[str], environment: dict[str, str], given: Path | None = None) -> Cost:
    """Run a program to its end, with a file to read if any, and return what it cost; exit with its name if it fails."""
    with (given or Path(os.devnull)).open("rb") as read:
        began = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdin=read, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"failed with status {process.returncode}: {shlex.join(command)}")
    return Cost(usage.ru_utime + usage.ru_stime, wall)


if __name__ == "__main__":
    main()
