"""No public call of a program lets an error of text encoding escape, or takes such a text for a defect of a plugin."""

import sys
from pathlib import Path

import pytest

from klaw_core import KlawError

sys.path.append(str(Path(__file__).parent))

from planted_secrets import MARK, World
from public_calls import OBJECTS, NoCallWrittenError, calls_of, run, values_of

CALLS = [call for kind in OBJECTS for call in calls_of(kind)]
DOORS = list(dict.fromkeys(call.door for call in CALLS))
#: Unpaired surrogates, alone and in words, the character that SQL ends a string with, and the one that PostgreSQL's
#: store escapes it with.
TEXTS = [f"{MARK}0001{end}" for end in ("\ud800", " \udfffb", "a\0b", "a\x01\x01b")]


@pytest.fixture
def world(tmp_path):
    made = World.open(tmp_path)
    yield made
    made.close()


def feed(world, call, text):
    """Yield what each call with this text raises that is no error for its caller."""
    world.planter.places.append(str(call))  # the next directory has another name
    try:
        values = values_of(world, call, text)
    except UnicodeError:  # the test itself cannot write it to a file
        return
    for number, value in enumerate(values):
        try:
            run(world, call, value, number)
        except NoCallWrittenError:
            raise
        except KlawError as error:
            if "codec can't" in f"{error}" and "surrogate" not in f"{error}".partition("codec can't")[0]:
                yield f"{call} of {text!r}: {error!r}"
        except UnicodeError as error:
            yield f"{call} of {text!r}: {error!r}"
        except (TypeError, ValueError, AttributeError):  # a value that no program passes
            pass


@pytest.mark.parametrize("door", DOORS)
def test_every_text_is_taken_or_refused_with_an_error_for_its_caller(world, door):
    calls = [call for call in CALLS if call.door == door]
    assert [told for call in calls for text in TEXTS for told in feed(world, call, text)] == []
