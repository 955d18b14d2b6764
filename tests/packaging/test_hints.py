"""A command that Klaw prints is run as it is, in an environment of each installer, and does what it says.

Run again after a change of the clone, as an update is, it installs the change.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def clone(tmp_path_factory):
    """Copy what a clone has, to a directory whose name pip has to be told as an address."""
    clone = tmp_path_factory.mktemp("clone") / "a clone"
    left_out = shutil.ignore_patterns(".*", "tests", "build", "site", "__pycache__")
    for name in ("klaw_core", "klaw_redaction", "plugins"):
        shutil.copytree(ROOT / name, clone / name, ignore=left_out)
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "constraints.txt"):
        shutil.copy(ROOT / name, clone)
    return clone


class Shell:
    """A shell whose environment is its own, with the programs of this session."""

    def __init__(self, home):
        self.home = home
        programs = f"{home / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        places = ("UV_TOOL_DIR", "PIPX_HOME", "KLAW_DATA_DIR", "XDG_CONFIG_HOME")
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "CONDA_PREFIX"}},
            **{name: str(home / name.lower()) for name in places},
            **dict.fromkeys(("UV_TOOL_BIN_DIR", "PIPX_BIN_DIR"), str(home / "bin")),
            "PATH": programs,
            "COLUMNS": "1000",
        }

    def run(self, command, *, status=0):
        """Run a command line and return what it prints."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.home, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


# pip takes ten times as long as uv to install what Klaw depends on.
_DEPENDENCIES = "uv pip install -p env/bin/python -r {clone}/pyproject.toml -r {clone}/plugins/klaw-eval/pyproject.toml"
#: By installer: what installs the core from a clone, and what calls its program.
INSTALL = {
    "pip": ("python3 -m venv env && " + _DEPENDENCIES + " && env/bin/pip install --no-deps {clone}", "env/bin/klaw"),
    "uv": ("uv venv env && uv pip install -p env/bin/python {clone}", "env/bin/klaw"),
    "uv tool": ("uv tool install {clone}", "klaw"),
    "pipx": ("cd {clone} && pipx install .", "klaw"),
}


@pytest.mark.parametrize("installer", INSTALL)
def test_the_command_that_is_named_for_a_missing_part_installs_it(installer, clone, tmp_path):
    shell = Shell(tmp_path)
    install, klaw = INSTALL[installer]
    shell.run(install.format(clone=shlex.quote(str(clone))))
    hint = shell.run(f"{klaw} eval", status=1).strip().partition(" → ")[2]
    assert hint.startswith(f"cd {shlex.quote(str(clone))} && ")
    assert ("uv " in hint) == (installer in {"uv", "uv tool"})
    shell.run(hint)
    assert "[DATASET]" in shell.run(f"{klaw} eval --help")
    changed = clone / "plugins" / "klaw-eval" / "src" / "klaw_eval" / "__init__.py"
    changed.write_text(f"{changed.read_text('utf-8')}# {installer}\n", "utf-8")  # as `git pull` does
    shell.run(hint)
    python = shell.run(f"head -n 1 $(command -v {klaw})").strip().removeprefix("#!")
    used = Path(shell.run(f"{python} -P -c 'import klaw_eval; print(klaw_eval.__file__)'").strip())
    assert used.read_text("utf-8").endswith(f"# {installer}\n"), "the installer took an earlier wheel"
