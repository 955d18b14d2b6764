"""The image and the compose file say only what exists; no builder of images is needed here."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from klaw_serve.command import command
from klaw_serve.options import DEFAULT_PORT

ROOT = Path(__file__).parents[3]
PLACE = Path(__file__).parents[1] / "docker"
CLONE = pytest.mark.skipif(not (ROOT / "klaw_core").is_dir(), reason="only a clone has the whole context of the image")


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """Read the instructions of the image, with their arguments."""
    text = re.sub(r"(?m)^#.*\n", "", (PLACE / "Dockerfile").read_text("utf-8")).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def service() -> dict:
    return yaml.safe_load((PLACE / "compose.yaml").read_text("utf-8"))["services"]["klaw"]


def of(instructions, name) -> list[str]:
    return [arguments for each, arguments in instructions if each == name]


@CLONE
def test_everything_that_is_copied_exists(instructions):
    copied = [words[:-1] for words in map(str.split, of(instructions, "COPY")) if not words[0].startswith("--from")]
    assert {name for words in copied for name in words} >= {"pyproject.toml", "constraints.txt", "klaw_core", "plugins"}
    assert [name for words in copied for name in words if not (ROOT / name).exists()] == []
    kept = (PLACE / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert [name for words in copied for name in words if f"!{name}" not in kept] == []


@CLONE
def test_every_package_of_the_distribution_and_every_extra_is_there(instructions):
    settings = (ROOT / "pyproject.toml").read_text("utf-8")
    (packages,) = re.findall(r"(?m)^packages = \[(.*)\]", settings)
    copied = " ".join(of(instructions, "COPY")).split()
    assert [name for name in re.findall(r'"(\w+)"', packages) if name not in copied] == []
    (extras,) = re.findall(r"'\.\[(.*?)\]'", " ".join(of(instructions, "RUN")))
    assert [name for name in extras.split(",") if not re.search(rf"(?m)^{name} = ", settings)] == []


def test_it_runs_klaw_serve_with_options_that_exist(instructions):
    (entry,), (words,) = of(instructions, "ENTRYPOINT"), of(instructions, "CMD")
    program, arguments = yaml.safe_load(entry), yaml.safe_load(words)
    assert (program, arguments[0]) == (["klaw"], "serve")
    context = command.make_context("serve", arguments[1:], resilient_parsing=False)
    assert context.params["host"] == "0.0.0.0"
    with pytest.raises(click.UsageError):
        command.make_context("serve", ["--no-such-option"])


def test_it_is_healthy_if_its_own_server_answers(instructions):
    (check,) = of(instructions, "HEALTHCHECK")
    assert f"http://127.0.0.1:{DEFAULT_PORT}/health" in check
    assert of(instructions, "EXPOSE") == [str(DEFAULT_PORT)]
    program = yaml.safe_load(check.partition("CMD ")[2])
    assert program[:2] == ["python", "-c"]
    compile(program[2], "the check", "exec")


def test_it_has_no_rights_and_keeps_the_memory_in_a_volume(instructions):
    settings = dict(word.split("=", 1) for word in shlex.split(" ".join(of(instructions, "ENV"))))
    assert of(instructions, "VOLUME") == [settings["KLAW_DATA_DIR"]]
    (user,) = of(instructions, "USER")
    assert int(user) > 0
    assert f"--uid {user}" in " ".join(of(instructions, "RUN"))


def test_the_service_is_for_this_machine_only_and_of_the_same_image(service, instructions):
    assert service["ports"] == [f"127.0.0.1:{DEFAULT_PORT}:{DEFAULT_PORT}"]
    assert (PLACE / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]).resolve() == (PLACE / "Dockerfile").resolve()
    assert service["build"]["platforms"] == ["linux/amd64", "linux/arm64"]
    assert service["volumes"][0].endswith(f":{of(instructions, 'VOLUME')[0]}")
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
