"""Running the driver: one process, which forks for each run, so that a scene costs no start of Python."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(__file__).with_name("driver.py")
sys.path.append(str(DRIVER.parent))  # for the test that interrupts operations in its own process


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """Start the driver, which waits for scenes to run."""
    command = [sys.executable, str(DRIVER), str(tmp_path_factory.mktemp("crash"))]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # no threads: the driver forks
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as driver:
        yield driver


@pytest.fixture
def drive(driver: subprocess.Popen[str], cases: Any) -> Callable[..., dict[str, Any]]:
    """Run a scene with the driver's options; return what the driver printed. The points are cases of the campaign."""

    def run(scene: str, *options: str) -> dict[str, Any]:
        print(json.dumps([scene, *options]), file=driver.stdin, flush=True)
        outcome: dict[str, Any] = json.loads(driver.stdout.readline())
        assert "error" not in outcome, outcome["error"]
        cases.add(outcome["run"], 0 if "--bug" in options else len(outcome["failures"]))
        return outcome

    return run
