"""The hypothesis settings of inherited laws, and a measure of work that is the same in every run, unlike time."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, settings

#: An inherited law runs once for each class, with the fixtures of that class. hypothesis sees one test with several
#: executors and function-scoped fixtures, which is intended here.
law = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors], deadline=None
)


def examples(count: int) -> int:
    """Return the number of examples for a law: a fifth of ``count``, or ``count`` in a profile with more examples."""
    return count if settings().max_examples > settings.get_profile("default").max_examples else count // 5


def scaled(count: int) -> int:
    """Return the number of examples for a law that has ``count`` in a profile of 100 examples."""
    return max(1, count * settings().max_examples // 100)


def executed_lines(call: Callable[[], object]) -> int:
    """Return how many lines of Python a call executes."""
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(previous)
    return lines
