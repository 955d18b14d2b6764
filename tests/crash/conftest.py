"""Running the driver: each scene in a process of its own, two at a time."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(__file__).with_name("driver.py")

#: The driver's arguments: the scene, and its options.
Run = tuple[str, ...]


@pytest.fixture(scope="module")
def drive(tmp_path_factory) -> Callable[[Mapping[str, Run]], Mapping[str, Callable[[], dict[str, Any]]]]:
    """Begin runs, by name; return for each what waits for it and gives what the driver printed."""

    def start(runs: Mapping[str, Run]) -> Mapping[str, Callable[[], dict[str, Any]]]:
        root = tmp_path_factory.mktemp("crash")
        with ThreadPoolExecutor(2) as pool:
            futures = {name: pool.submit(_play, root / name, *run) for name, run in runs.items()}
        return {name: future.result for name, future in futures.items()}

    return start


@pytest.fixture(scope="session")
def whole() -> bool:
    """Whether every point is to be tried, and not a sample."""
    return os.environ.get("KLAW_CRASH_POINTS") == "all"


def _play(directory: Path, scene: str, *options: str) -> dict[str, Any]:
    directory.mkdir()
    command = [sys.executable, str(DRIVER), scene, str(directory), *options]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # no threads: the driver forks
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
