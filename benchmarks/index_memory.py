"""The most memory that a whole ``klaw index`` of many files takes, by words alone.

    python benchmarks/index_memory.py [--files 10000] [--bytes 50000] [--place DIRECTORY]

The files are Markdown with a heading every 600 words, made of 50,000 words from a seed, frequent ones as in a language
(Zipf). They are written below ``--place`` (default: the directory for temporary files; 10,000 of 50 kB and their index
need 2 GB), indexed by a process of its own without an embedder, and removed. Printed are the peak of the process
(``ru_maxrss``), its CPU and wall time, and the size of the database.
"""

from __future__ import annotations

import argparse
import os
import random
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import ONE_THREAD, disk_megabytes, table

_WORDS, _A_PART, _A_PARAGRAPH = 50_000, 600, 60
_KLAW = "import sys; sys.argv[0] = 'klaw'; from klaw_core.cli.startup import run; run()"


def write_files(directory: Path, files: int, size: int) -> None:
    """Write files of words from a seed, each of at most ``size`` characters."""
    chance = random.Random(1)
    words = ["".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 11))) for _ in range(_WORDS)]
    weights = [1 / rank for rank in range(1, _WORDS + 1)]
    for number in range(files):
        drawn = chance.choices(words, weights, k=size // 4)
        text = f"# File {number}\n"
        for start in range(0, len(drawn), _A_PARAGRAPH):
            if len(text) >= size:
                break
            heading = "" if start % _A_PART else f"\n## Part {start // _A_PART}\n"
            text += f"{heading}\n{' '.join(drawn[start : start + _A_PARAGRAPH])}.\n"
        (directory / f"{number:06}.md").write_text(text[:size], encoding="utf-8")


def main() -> None:
    """Write the files, index them, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=50_000)
    parser.add_argument("--place", type=Path, help="where everything is written")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.place) as temporary:
        place = Path(temporary)
        notes, data = place / "notes", place / "data"
        notes.mkdir()
        write_files(notes, arguments.files, arguments.bytes)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KLAW_")}
        directories = {f"XDG_{name}_HOME": str(place / name.lower()) for name in ("CACHE", "CONFIG")}
        own = {**kept, **ONE_THREAD, **directories, "KLAW_DATA_DIR": str(data), "KLAW_EMBEDDER": "none"}
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-c", _KLAW, "index", "--quiet", str(notes)], env=own)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"klaw index failed with status {process.returncode}")
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6  # kibibytes on Linux
        row = (arguments.files, peak, usage.ru_utime + usage.ru_stime, wall, disk_megabytes(data))
        print(table(("files", "peak MB", "CPU s", "wall s", "disk MB"), [row]))


if __name__ == "__main__":
    main()
