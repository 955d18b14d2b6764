"""No secret passes any public call of a program: it is in no byte but those of the record, in no prompt, in no log."""

import inspect
import re
import sys
from pathlib import Path

import pytest

import klaw_facts  # noqa: F401  # the tests need it
from klaw_core import KlawError

sys.path.append(str(Path(__file__).parent))

from planted_secrets import KINDS, World
from public_calls import (
    ASYNCHRONOUS,
    OBJECTS,
    ROOT,
    WITHOUT_TEXT,
    NoCallWrittenError,
    calls_of,
    classes_with_operations,
    kinds_for,
    run,
    values_of,
)

CALLS = [call for kind in OBJECTS for call in calls_of(kind)]
DOORS = list(dict.fromkeys(call.door for call in CALLS))


@pytest.fixture
def world(tmp_path):
    made = World.open(tmp_path)
    yield made
    made.close()


def feed(world, door, every):
    """Put a secret of one of so many kinds into each parameter of a method; return how many calls were accepted."""
    accepted = 0
    for call in (call for call in CALLS if call.door == door):
        number = CALLS.index(call)
        for kind in kinds_for(call, number)[number % every :: every]:
            text = world.planter.plant(kind, str(call))
            for number, value in enumerate(values_of(world, call, text)):
                try:
                    run(world, call, value, 1000 * len(world.planter.places) + number)
                    accepted += 1
                except NoCallWrittenError:
                    raise
                except KlawError as error:
                    world.said.append(f"{error} {error!r}")
                except (TypeError, ValueError, AttributeError) as error:  # a value that no program passes
                    world.said.append(str(error))
    return accepted


def test_every_class_of_public_calls_is_fed():
    known = {kind.__name__ for kind in OBJECTS} | WITHOUT_TEXT.keys()
    assert classes_with_operations().keys() - known == set(), "no call written for these classes"


@pytest.mark.parametrize("kind", ASYNCHRONOUS, ids=lambda kind: kind.__name__)
def test_every_asynchronous_call_runs_one_that_is_fed(kind):
    own = {name for name, method in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}
    fed = own - {"close", "on_change", "extension", "read", "open"}
    assert fed
    for name in fed:
        assert getattr(kind, name).__wrapped__ is getattr(ASYNCHRONOUS[kind], name), f"no call written for {name}"


@pytest.mark.promise("S5")
@pytest.mark.parametrize("door", DOORS)
def test_no_secret_passes(world, cases, door):
    cases.add(feed(world, door, cases.every(8)))
    world.settle()
    assert world.leaks() == set()


def test_the_harness_finds_each_kind_of_secret_if_redaction_is_off(tmp_path):
    world = World.open(tmp_path, redacts=False)
    try:
        for kind in KINDS:
            world.memory.save(world.planter.plant(kind, kind))
        found = str(world.leaks(by_kind=True))
    finally:
        world.close()
    assert [kind for kind in KINDS if f"({kind})" not in found] == []


def test_a_new_call_makes_the_test_fail_until_a_value_is_written_for_it(world):
    class Programs:
        def store(self, thing: "Thing") -> None:  # noqa: F821  # a type that no table has
            """Store a thing."""

        def keep(self, **details: object) -> None:
            """Keep any keyword."""

    with pytest.raises(NoCallWrittenError, match=r"no call written for Programs\.keep"):
        calls_of(Programs)
    del Programs.keep
    (call,) = calls_of(Programs)
    with pytest.raises(NoCallWrittenError, match=r"no call written for Programs\.store\.thing, a Thing"):
        values_of(world, call, "a secret")


def test_no_message_cuts_a_value_before_it_is_redacted():
    cut = re.compile(r"\{[^{}]+![ra]:\.\d+\}")
    files = [*ROOT.glob("klaw_*/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    assert len(files) > 300
    assert [path.name for path in files if cut.search(path.read_text("utf-8"))] == [], "use klaw_core.quoted"
