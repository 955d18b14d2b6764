"""What every benchmark measures with: CPU, wall time, memory, disk; quartiles; tables; programs in their own process.

CPU is that of the whole process, threads included (``time.process_time``): on a machine that does other work as well,
it is what can be compared. Figures are compared within one run only.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: One thread for every library that would take more: what is compared is work, not how many processors do it.
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "RAYON_NUM_THREADS",
        "TOKIO_WORKER_THREADS",
        "LANCE_CPU_THREADS",
    ),
    "1",
)


@dataclass(frozen=True)
class Cost:
    """What something took, in seconds."""

    cpu: float
    wall: float


def timed(action: Callable[[], object]) -> Cost:
    """Do something and return what it took."""
    cpu, wall = time.process_time(), time.perf_counter()
    action()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


@dataclass(frozen=True)
class Spread:
    """The middle half of some values, and their mean."""

    low: float
    median: float
    high: float
    mean: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Summarise one value or more."""
        numbers = sorted(values)
        if len(numbers) == 1:
            return cls(*numbers * 4)
        low, median, high = statistics.quantiles(numbers, n=4, method="inclusive")
        return cls(low, median, high, statistics.fmean(numbers))

    def __str__(self) -> str:
        return f"{figure(self.median)} ({figure(self.low)} to {figure(self.high)})"


def figure(value: float) -> str:
    """Return a number with three significant digits, and no exponent."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.2g}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table whose columns stand below each other; the first is aligned left."""
    cells = [list(map(str, head)), *([item if isinstance(item, str) else _cell(item) for item in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = [
        " | ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    rule = " | ".join("-" * width if column == 0 else "-" * (width - 1) + ":" for column, width in enumerate(widths))
    return "\n".join(f"| {line} |" for line in (lines[0], rule, *lines[1:]))


def _cell(value: object) -> str:
    return figure(value) if isinstance(value, float) else str(value)


def disk_megabytes(place: Path) -> float:
    """Return how much the files below a directory hold."""
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) / 1e6


def resident_megabytes() -> float:
    """Return how much memory this process holds now, in megabytes; at most, where the system does not say."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def in_own_process(program: Path, *arguments: object) -> dict[str, Any]:
    """Run ``python program arguments`` with one thread; return the JSON object in the last line that it prints.

    A program that fails gives ``{"failed": why}``: one peer that breaks must not cost the others their figures.
    """
    environment = os.environ | ONE_THREAD
    if environment.pop("PYTHONDONTWRITEBYTECODE", ""):  # else every process compiles all that it imports
        environment.setdefault("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir(), "klaw-benchmarks-bytecode")))
    command = [sys.executable, str(program), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return {"failed": (done.stderr.splitlines() or [f"exit code {done.returncode}"])[-1]}
    found: dict[str, Any] = json.loads(lines[-1])
    return found
