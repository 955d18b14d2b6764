"""What is published works by itself: wheels of every distribution, in an empty environment, outside the checkout."""

import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
from building import PLUGINS, ROOT, install, run

#: Other versions of Python, which the session `packaging` found.
PYTHONS = list(filter(None, os.environ.get("KLAW_TEST_PYTHONS", "").split(os.pathsep)))
NOTE = "# Bees\n\nHives are opened in April, when the willows bloom.\n\n## Honey\n\nExtracted in July.\n"


@pytest.fixture(scope="session")
def environment(wheels, constraints, tmp_path_factory) -> Path:
    """Install the extra ``klaw[default]`` from the wheels alone and return the directory of its programs."""
    home = tmp_path_factory.mktemp("installed")
    return install(home, "klaw[default]", wheels, constraints)


def test_every_wheel_is_typed_and_licensed_and_bounds_the_others(wheels):
    assert len(wheels) == len(PLUGINS) + 1
    licence = (ROOT / "LICENSE").read_bytes()
    for name, path in wheels.items():
        archive = zipfile.ZipFile(path)
        files = archive.namelist()
        assert any(file.endswith("py.typed") for file in files), f"{name} has no py.typed"
        own_tests = [file for file in files if "tests/" in file and "/skeletons/" not in file]
        assert not own_tests, f"{name} ships its tests"
        (text,) = (file for file in files if file.endswith(".dist-info/licenses/LICENSE"))
        assert archive.read(text) == licence, name
        (metadata,) = (file for file in files if file.endswith(".dist-info/METADATA"))
        own = re.findall(r"(?m)^Requires-Dist: ((?:klaw|langchain-klaw)\b[^;\n]*)", archive.read(metadata).decode())
        assert own or name == "klaw-model-minilm", f"{name} needs nothing of Klaw"
        assert [need for need in own if not (">=" in need and "<" in need)] == [], name


def test_a_plugin_is_not_installed_beside_a_core_that_it_was_not_released_with(wheels, tmp_path):
    info = "klaw-9.0.0.dist-info"
    with zipfile.ZipFile(tmp_path / "klaw-9.0.0-py3-none-any.whl", "w") as newer:
        newer.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: klaw\nVersion: 9.0.0\n")
        newer.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        newer.writestr(f"{info}/RECORD", "")
    run("uv", "venv", "--quiet", tmp_path / "venv", cwd=tmp_path)
    command = ["uv", "pip", "install", "--dry-run", "--python", tmp_path / "venv/bin/python", Path(newer.filename)]
    run(*command, cwd=tmp_path)
    done = subprocess.run([*command, wheels["klaw-notes"]], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "klaw>=" in done.stderr


def test_the_wheels_search_real_notes_by_words_and_meaning(environment, tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "bees.md").write_text(NOTE)
    (notes / "tax.md").write_text("# Tax\n\nThe form is due on the last day of May.\n")
    klaw = environment / "klaw"
    places = {"KLAW_DATA_DIR": str(tmp_path / "data"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "KLAW_OFFLINE": "1"}
    run(klaw, "index", notes, cwd=tmp_path, **places)
    question = "when does the beekeeper look inside the boxes"
    found = json.loads(run(klaw, "search", "--json", "--explain", question, cwd=tmp_path, **places))
    assert found[0]["path"] == "notes/bees.md"
    assert {part["component"] for part in found[0]["explain"]} >= {"sqlite-vec"}
    words = json.loads(run(klaw, "search", "--json", "--mode", "fts", "willows", cwd=tmp_path, **places))
    assert [result["path"] for result in words] == ["notes/bees.md"]


def test_the_core_alone_says_what_to_install(wheels, tmp_path):
    run("uv", "venv", "--quiet", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run("uv", "pip", "install", "--quiet", "--python", python, wheels["klaw"], cwd=tmp_path)
    done = subprocess.run(
        [python.parent / "klaw", "search", "anything"],
        env={**os.environ, "KLAW_DATA_DIR": str(tmp_path / "data")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    for missing in ("store 'sqlite'", "embedder 'onnx'", "retriever 'fts5'", "uv pip install ", " 'klaw[default]'"):
        assert missing in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("python", PYTHONS)
def test_the_demo_and_the_unit_tests_pass_with_another_python(wheels, constraints, tmp_path, python):
    tools = ["pytest-httpserver", "pytest-xdist"]
    programs = install(tmp_path, "klaw[default,testing]", wheels, constraints, *tools, python=python)
    shown = run(programs / "klaw", "demo", cwd=tmp_path, KLAW_DATA_DIR=str(tmp_path / "data"))
    assert "sqlite-vec ranked it 1st" in shown
    tests = [ROOT / "tests" / "unit", "-q", "-p", "no:cacheprovider", "-n", "auto", "--dist", "worksteal"]
    # Killing thousands of processes, and what reads the tests, says nothing about the version of Python.
    left_out = [f"--ignore={ROOT}/tests/unit/test_{name}.py" for name in ("tests_can_fail", "patience", "mutants")]
    # One of eight tests, by their names; the sessions `tests-3.11` to `tests-3.14` run them all.
    some = ["--hypothesis-profile=few", "--share", "8", "-k", "not killed_at", *left_out]
    assert " passed" in run(programs / "pytest", *tests, *some, cwd=ROOT)
