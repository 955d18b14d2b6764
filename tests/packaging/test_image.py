"""The image of `klaw serve` is built and becomes healthy, where there is something that builds images."""

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE = ROOT / "plugins" / "klaw-serve" / "docker" / "Dockerfile"
SECONDS = 300


def docker(*words, check=True) -> str:
    done = subprocess.run(["docker", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, done.stderr
    return done.stdout.strip()


def _has_builder() -> bool:
    found = FILE.is_file() and shutil.which("docker")
    return bool(found) and subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _has_builder(), reason="nothing here builds images")
def test_the_image_serves_without_rights_and_becomes_healthy():
    image = docker("build", "--quiet", "--file", FILE, ROOT)
    container = docker("run", "--detach", "--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", image)
    try:
        deadline, health = time.monotonic() + SECONDS, ""
        while health != "healthy" and time.monotonic() < deadline:
            time.sleep(0.2)
            health = json.loads(docker("inspect", "--format", "{{json .State.Health.Status}}", container))
        assert health == "healthy", docker("logs", container)
        assert docker("exec", container, "id", "--user") != "0"
        docker("exec", container, "klaw", "save", "The boat is in Split.")
        assert "Split" in docker("exec", container, "klaw", "search", "boat")
    finally:
        docker("kill", container, check=False)
        docker("image", "rm", "--force", image, check=False)
