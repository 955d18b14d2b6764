"""The hypothesis settings that every inherited law needs."""

from hypothesis import HealthCheck, settings

#: A contract's law runs once for each class that inherits it, with that class's fixtures: hypothesis sees
#: one test with several executors and function-scoped fixtures, which is what is meant here.
law = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors], deadline=None
)


def examples(count: int) -> int:
    """Return how many examples a law gets: a fifth of them, unless the hypothesis profile asks for more than usual."""
    return count if settings().max_examples > settings.get_profile("default").max_examples else count // 5
