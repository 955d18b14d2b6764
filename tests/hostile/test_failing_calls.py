"""What leaves a memory is a KlawError, in one line, whatever the system refuses and whichever call notices."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")

PROGRAM = Path(__file__).with_name("failing_calls.py")


@pytest.mark.needs("klaw-conversations")
@pytest.mark.cold_start  # imports are what fails
@pytest.mark.parametrize("fault", ["no descriptor", "no import", "no stat"])
def test_only_klaw_errors_leave_a_memory(fault, tmp_path, cases):
    every = cases.every(6)
    command = [sys.executable, str(PROGRAM), str(tmp_path), fault, str(every)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    *problems, last = [json.loads(line) for line in result.stdout.splitlines()]
    cases.add(len(last["calls"]) // every, len(problems))
    assert [f"{each['call']}: {each['problem']}" for each in problems] == []
    assert {"search", "save", "status", "export", "conversations.window", "workspaces.list"} <= set(last["calls"])
