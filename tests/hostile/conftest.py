"""Hostile input: a watchdog for whatever hangs, and the targets of ``tests/fuzz`` to throw bytes at."""

import importlib.util
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType

import pytest

HERE = Path(__file__).parent
FUZZ = HERE.parent / "fuzz"
# No test here takes a tenth of it: what is still running then hangs. A whole campaign takes longer.
_HANGS_SECONDS = 900


@pytest.fixture(autouse=True)
def _watchdog(request: pytest.FixtureRequest) -> Iterator[None]:
    def bark(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"still running after {_HANGS_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(0 if request.config.option.campaigns else _HANGS_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _load(name: str, directory: Path = FUZZ) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"klaw_{name}", directory / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def targets() -> ModuleType:
    """The module ``tests/fuzz/targets.py``."""
    return _load("targets")


@pytest.fixture(scope="module")
def make_target(targets: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], object]]:
    """Make a target once, in a directory of its own, for all the examples of a module."""
    made: dict[str, object] = {}

    def make(name: str) -> object:
        if name not in made:
            made[name] = targets.TARGETS[name](tmp_path_factory.mktemp(name).resolve() / "home")
        return made[name]

    yield make
    for target in made.values():
        target.close()  # type: ignore[attr-defined]  # a Target, of a module without a name to import


@pytest.fixture(scope="session")
def campaign() -> ModuleType:
    """What campaigns share: how bytes are damaged, and children that may die."""
    return _load("campaign", HERE)


@pytest.fixture(scope="session")
def places() -> ModuleType:
    """The module ``places.py``: damage in any place of the database."""
    return _load("places", HERE)
