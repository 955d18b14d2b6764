"""A component's options: of the type that its class says, or a problem with its place; nothing is converted."""

from collections.abc import Mapping

import pytest
from attrs import field, frozen, validators

from klaw_core import API, Component
from klaw_core.config.options import build_options
from klaw_core.values.config import Selection


@frozen
class Inner:
    depth: int = 1


@frozen
class Options:
    count: int = 1
    share: float = 0.5
    name: str = "x"
    on: bool = False
    names: tuple[str, ...] = ()
    numbers: list[int] = field(factory=list)
    inner: Inner = field(factory=Inner)
    maybe: str | None = None
    choice: str = field(default="a", validator=validators.in_(("a", "b")))
    hidden: int = field(default=0, init=False)


@frozen
class Needy:
    path: str


class TestOptions:
    def build(self, options=Options, /, **values):
        found: list[str] = []
        component = Component("c", options, lambda *_: None, API)
        return build_options(component, Selection("embedder", "c", "memory.embedding", values), found), found

    def test_missing_options_have_their_defaults(self):
        assert self.build() == (Options(), [])

    @pytest.mark.parametrize(
        ("values", "options"),
        [
            ({"count": 3}, Options(count=3)),
            ({"share": 2}, Options(share=2.0)),
            ({"on": True}, Options(on=True)),
            ({"names": ["a", "b"]}, Options(names=("a", "b"))),
            ({"numbers": [1, 2]}, Options(numbers=[1, 2])),
            ({"inner": {"depth": 2}}, Options(inner=Inner(2))),
            ({"maybe": "y"}, Options(maybe="y")),
        ],
    )
    def test_valid_options_are_used(self, values, options):
        assert self.build(**values) == (options, [])

    @pytest.mark.parametrize(
        ("values", "problem"),
        [
            ({"count": "8"}, "memory.embedding.count: expected int, got '8'"),
            ({"count": True}, "memory.embedding.count: expected int, got True"),
            ({"count": 8.0}, "memory.embedding.count: expected int, got 8.0"),
            ({"count": [8]}, "memory.embedding.count: expected int, got [8]"),
            ({"share": "0.5"}, "memory.embedding.share: expected float, got '0.5'"),
            ({"share": True}, "memory.embedding.share: expected float, got True"),
            ({"name": 8}, "memory.embedding.name: expected str, got 8"),
            ({"name": ["x"]}, "memory.embedding.name: expected str, got ['x']"),
            ({"on": 1}, "memory.embedding.on: expected bool, got 1"),
            ({"on": "false"}, "memory.embedding.on: expected bool, got 'false'"),
            ({"names": "abc"}, "memory.embedding.names: expected an array of strings, got 'abc'"),
            ({"names": {"a": 1}}, "memory.embedding.names: expected an array of strings, got {'a': 1}"),
            ({"names": ["a", 1]}, "memory.embedding.names[1]: expected str, got 1"),
            ({"numbers": "12"}, "memory.embedding.numbers: expected an array of values, got '12'"),
            ({"numbers": [1, "2"]}, "memory.embedding.numbers[1]: expected int, got '2'"),
            ({"inner": {"depth": "2"}}, "memory.embedding.inner.depth: expected int, got '2'"),
            ({"inner": {"dept": 2}}, "memory.embedding.inner.dept: unknown key; did you mean 'depth'?"),
            ({"maybe": 3}, "memory.embedding.maybe: expected str, got 3"),
            ({"cuont": 3}, "memory.embedding.cuont: unknown key; did you mean 'count'?"),
            ({"a b": 3}, 'memory.embedding."a b": unknown key; known: count, share, name'),
            ({"hidden": 3}, "memory.embedding.hidden: unknown key; known: count, share, name"),
            ({"choice": "c"}, "memory.embedding: 'choice' must be in ('a', 'b') (got 'c')"),
            ({"share": int("9" * 400)}, "memory.embedding.share: int too large to convert to float"),
        ],
    )
    def test_an_invalid_option_is_reported_and_not_converted(self, values, problem):
        built, (found,) = self.build(**values)
        assert built is None
        assert found.startswith(problem)

    def test_a_missing_required_option_is_reported(self):
        assert self.build(Needy) == (None, ["memory.embedding.path: is required"])

    def test_all_problems_are_reported_at_once(self):
        _, found = self.build(count="8", name=8, cuont=1, inner={"depth": True})
        assert len(found) == 4

    def test_an_option_class_that_exits_is_reported(self):
        @frozen
        class Leaving:
            a: int = 1

            def __attrs_post_init__(self):
                raise SystemExit("goodbye")

        assert self.build(Leaving) == (None, ["memory.embedding: goodbye"])
        assert self.build(Leaving, a=2) == (None, ["memory.embedding: goodbye"])

    def test_an_unreadable_option_class_is_reported(self):
        class NotAttrs:
            pass

        assert self.build(NotAttrs)[1]
        assert self.build(NotAttrs, x=1)[1]


class TestSecrets:
    @frozen
    class Hidden:
        key: str = field(default="", repr=False)
        keys: Mapping[str, str] = field(factory=dict, repr=False)

    def build(self, **values):
        found: list[str] = []
        component = Component("c", self.Hidden, lambda *_: None, API)
        return build_options(component, Selection("embedder", "c", "memory.embedding", values), found), found

    def test_a_table_of_strings_may_be_secret(self):
        assert self.build(key="a", keys={"b": "c"}) == (self.Hidden("a", {"b": "c"}), [])

    @pytest.mark.parametrize(
        ("values", "problem"),
        [
            ({"key": 831}, "memory.embedding.key: expected a string"),
            ({"keys": 831}, "memory.embedding.keys: expected a table of strings"),
            ({"keys": ["831"]}, "memory.embedding.keys: expected a table of strings"),
            ({"keys": {"a": 831}}, "memory.embedding.keys.a: expected a string"),
        ],
    )
    def test_a_problem_never_shows_the_secret(self, values, problem):
        assert self.build(**values) == (None, [problem])
