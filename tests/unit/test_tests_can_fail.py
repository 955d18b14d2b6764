"""Every test can fail: it asserts something, of something that is there, and also of what does not raise.

An exception to the rule stands in the test as a comment ``# cannot fail otherwise: why``.
"""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXCEPTION = "# cannot fail otherwise: "
#: There are few reasons for an exception.
MOST_EXCEPTIONS = 6
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
LOOPS = ast.For | ast.AsyncFor
COMPREHENSIONS = ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp
#: What fails a test by itself.
FAILING = {"raises", "warns", "deprecated_call", "fail", "run_state_machine_as_test"}
#: Calls whose result has an element if their first argument has one, and such methods.
KEEPING = {"product", "enumerate", "list", "tuple", "set", "frozenset", "sorted", "reversed", "zip", "map", "dict"}
KEEPING_METHODS = {"items", "values", "keys", "copy"}


@cache
def helper_files() -> tuple[Path, ...]:
    """Return the tests and everything that is made for them."""
    places = [ROOT / "tests", ROOT / "plugins" / "klaw-testing" / "src" / "klaw_testing", *ROOT.glob("plugins/*/tests")]
    shipped = [path for path in ROOT.glob("plugins/*/src/*/*.py") if path.stem.endswith(("testing", "contract"))]
    return tuple(sorted([*shipped, *(path for place in places for path in place.rglob("*.py"))]))


@cache
def nodes_of(text: str) -> tuple[ast.AST, ...]:
    """Return the nodes of a program, outer ones first."""
    return tuple(ast.walk(ast.parse(text)))


@cache
def text_of(path: Path) -> str:
    return path.read_text("utf-8")


def functions(text: str) -> list[FUNCTIONS]:
    return [node for node in nodes_of(text) if isinstance(node, FUNCTIONS)]


@cache
def defined_in(path: Path) -> dict[str, tuple[frozenset[str], bool]]:
    """Return of each helper of a file what it names, and whether something in it can fail; methods are ``.name``."""
    found: dict[str, tuple[frozenset[str], bool]] = {}
    methods = {node for kind in nodes_of(text_of(path)) if isinstance(kind, ast.ClassDef) for node in kind.body}
    for function in functions(text_of(path)):
        if function.name.startswith("test_"):
            continue
        parts = list(ast.walk(function))
        calls, fails = frozenset(name for part in parts for name in names_of(part)), any(map(can_fail, parts))
        for name in [function.name, *([f".{function.name}"] if function in methods else [])]:
            before, failed = found.get(name, (frozenset(), False))
            found[name] = (before | calls, fails or failed)
    return found


@cache
def helpers(module: str) -> list[Path]:
    """Return the files for tests, which are no tests themselves, that an import may mean."""
    ending = f"/{module.replace('.', '/')}.py"
    return [path for path in helper_files() if str(path).endswith(ending) and not path.stem.startswith("test_")]


@cache
def asserting(path: Path) -> frozenset[str]:
    """Return the names of what a file can call that can fail: its own, what it imports, fixtures of conftest.py."""
    defined, text = defined_in(path), text_of(path)
    found = {name for name, (_, fails) in defined.items() if fails}
    for node in (node for node in nodes_of(text) if isinstance(node, ast.ImportFrom) and node.module):
        for place in helpers(node.module):
            names = {imported.name for imported in node.names}
            has_class = any(f"\nclass {name}" in text_of(place) for name in names)
            found |= asserting(place) if has_class else asserting(place) & names
    for other in helper_files() if path.stem.startswith("test_") else ():
        beside = other.stem == "conftest" or (other.parent == path.parent and f'"{other.stem}' in text)
        if beside and other != path and other.parent in path.parents and not other.stem.startswith("test_"):
            found |= asserting(other) & set(defined_in(other))
    while more := {name for name, (calls, _) in defined.items() if name not in found and calls & found}:
        found |= more
    return frozenset(found)


def can_fail(part: ast.AST) -> bool:
    """Return whether a part of a program fails a test by itself."""
    if isinstance(part, ast.Constant):
        return isinstance(part.value, str) and "assert " in part.value  # a program to run
    if isinstance(part, ast.Raise):
        return "AssertionError" in ast.unparse(part)
    names = names_of(part)
    return isinstance(part, ast.Assert) or any(
        name in FAILING or name.lstrip("_.").startswith(("assert", "test_")) for name in names
    )


def asserts(parts: Iterable[ast.AST], path: Path) -> bool:
    """Return whether a part of a test can fail, or a helper that it names."""
    return any(can_fail(part) or not asserting(path).isdisjoint(names_of(part)) for part in parts)


def name_of(node: ast.AST) -> str:
    """Return the last part of a name; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def names_of(node: ast.AST) -> tuple[str, ...]:
    """Return what a part of a program refers to: a function or fixture ``name``, or a method ``.name``."""
    if isinstance(node, ast.Attribute):
        is_own = name_of(node.value) in {"self", "cls", "pytest"} or isinstance(node.value, ast.Call)
        return (node.attr, f".{node.attr}") if is_own else (f".{node.attr}",)
    if isinstance(node, ast.arg):
        return (node.arg,)
    return (node.id,) if isinstance(node, ast.Name) else ()


def weaknesses(text: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each test of a file that cannot fail, and why."""
    lines, tree = text.splitlines(), nodes_of(text)[0]
    scopes = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
    known = values_in(node for scope in scopes for node in scope.body)
    for test in functions(text):
        if test.name.startswith("test_") and EXCEPTION not in "\n".join(lines[test.lineno - 1 : test.end_lineno]):
            parts = list(ast.walk(test))
            drawn = {part.arg: ast.Constant("drawn") for part in ast.walk(test.args) if isinstance(part, ast.arg)}
            reasons = [*without_assertion(parts, path), *of_nothing(parts, path, {**known, **drawn})]
            yield from ((test.name, why) for why in reasons)


def without_assertion(parts: list[ast.AST], path: Path) -> Iterator[str]:
    if not asserts(parts, path):
        if [ast.unparse(part.func) for part in parts if isinstance(part, ast.Call)] != ["pytest.skip"]:
            yield "it asserts nothing"
        return
    swallowed = {inner for part in parts for body in swallowing(part, path) for inner in ast.walk(body)}
    if swallowed and not asserts((part for part in parts if part not in swallowed), path):
        yield "it asserts nothing if what it calls raises"


def swallowing(node: ast.AST, path: Path) -> list[ast.stmt]:
    """Return what stands inside of ``with suppress``, or of ``try`` whose handlers assert nothing."""
    if isinstance(node, ast.With):
        managers = [name_of(part) for item in node.items for part in ast.walk(item)]
        return node.body if "suppress" in managers else []
    if isinstance(node, ast.Try) and node.handlers:
        caught = [part for handler in node.handlers for part in ast.walk(handler)]
        fails = any(isinstance(part, ast.Raise) for part in caught) or asserts(caught, path)
        return [] if fails else [*node.body, *node.orelse]
    return []


def of_nothing(parts: list[ast.AST], path: Path, known: dict[str, ast.expr]) -> Iterator[str]:
    """Yield each ``all()`` of what may be empty, and each such loop if all assertions are inside of loops."""
    claims = [node for node in parts if isinstance(node, ast.Assert)]
    loops = [node for node in parts if isinstance(node, LOOPS)]
    if not claims:
        return
    values = {**known, **values_in(parts)}

    def nothing(over: ast.expr) -> bool:
        return may_be_empty(over, values) and not bounded(over, parts, values)

    for call in (node for claim in claims for node in ast.walk(claim.test)):
        if is_all(call) and nothing(over := iterable_of(call.args[0])):
            yield f"all() of {ast.unparse(over)}, which may be empty"
    inside = {loop: set(ast.walk(loop)) for loop in loops}
    if set().union(*inside.values()).issuperset(claims) and not any(name_of(part) in FAILING for part in parts):
        for loop, looped in inside.items():
            if not looped.isdisjoint(claims) and nothing(loop.iter) and not asserts(ast.walk(loop.iter), path):
                yield f"asserts only in a loop over {ast.unparse(loop.iter)}, which may be empty"


def values_in(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """Return what names are bound to."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            found.update({target.id: node.value for target in targets if isinstance(target, ast.Name)})
    return found


def iterable_of(node: ast.expr) -> ast.expr:
    """Return what a comprehension goes through, or the expression itself."""
    return node.generators[0].iter if isinstance(node, COMPREHENSIONS) else node


def may_be_empty(  # noqa: C901, PLR0911  # a case for each kind of expression
    node: ast.expr, values: dict[str, ast.expr], depth: int = 6
) -> bool:
    """Return whether the source does not show that an expression has elements."""

    def empty(part: ast.expr) -> bool:
        return depth == 0 or may_be_empty(part, values, depth - 1)

    match node:
        case ast.Tuple() | ast.List() | ast.Set():
            return all(isinstance(part, ast.Starred) and empty(part.value) for part in node.elts)
        case ast.Dict():
            return not node.keys
        case ast.Constant():
            return not node.value
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return not name.isupper() and (name not in values or empty(values[name]))
        case ast.Subscript():
            return not name_of(node.value).isupper()
        case ast.BinOp(op=ast.Add() | ast.BitOr()):
            return empty(node.left) and empty(node.right)
        case ast.BinOp(op=ast.Mult()):
            return empty(node.left)
        case ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
            return any(part.ifs or empty(part.iter) for part in node.generators)
        case ast.Call():
            return any(map(empty, sources_of(node)))
        case _:
            return True


def sources_of(call: ast.Call) -> list[ast.expr]:
    """Return those whose elements the result of a call has; what is empty if that is unknown."""
    name = name_of(call.func)
    if isinstance(call.func, ast.Attribute):
        return [call.func.value if name in KEEPING_METHODS else ast.List([])]
    if name == "map":
        return call.args[-1:]
    if name in KEEPING:
        return (call.args if name in {"zip", "product"} and not is_strict(call) else call.args[:1]) or [ast.List([])]
    numbers = [part for part in call.args if isinstance(part, ast.Constant)]
    return numbers[-1:] if len(numbers) == len(call.args) > 0 else [ast.List([])]  # range(10), or as many as it is told


def is_strict(node: ast.Call) -> bool:
    return any(keyword.arg == "strict" and ast.unparse(keyword.value) == "True" for keyword in node.keywords)


def bounded(over: ast.expr, parts: list[ast.AST], values: dict[str, ast.expr]) -> bool:
    """Return whether the test shows elsewhere that an expression has elements, or that what it is made of has."""
    texts = set(origins(over, values))
    return any(shows_elements(part, texts) for part in parts)


def origins(node: ast.expr, values: dict[str, ast.expr], depth: int = 6) -> Iterator[str]:
    """Yield an expression, and those that have an element exactly if it has one."""
    yield ast.unparse(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEPING_METHODS:
        yield from origins(node.func.value, values, depth)
    elif isinstance(node, ast.Call) and name_of(node.func) in {*KEEPING, "pairwise"}:
        for part in node.args:
            yield from origins(part, values, depth)
    elif isinstance(node, COMPREHENSIONS) and not any(part.ifs for part in node.generators):
        yield from origins(node.generators[0].iter, values, depth)
    elif isinstance(node, ast.Name) and node.id in values and depth:
        yield from origins(values[node.id], values, depth - 1)


def shows_elements(part: ast.AST, texts: set[str]) -> bool:
    """Return whether a statement fails if one of these expressions is empty: an assertion, an index, an unpacking."""
    if isinstance(part, ast.Assert):
        return any(claims_elements(claim, texts) for claim in conjuncts(part.test))
    if isinstance(part, ast.Subscript):
        return ast.unparse(part.value) in texts and isinstance(part.slice, ast.Constant | ast.UnaryOp)
    if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Tuple | ast.List):
        return ast.unparse(part.value) in texts
    if isinstance(part, ast.Call):
        return name_of(part.func) in {"min", "max", "one_of", "sampled_from"} and any(
            text in texts for argument in part.args for text in origins(iterable_of(argument), {})
        )
    return False


def conjuncts(node: ast.expr) -> list[ast.expr]:
    return node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]


def claims_elements(claim: ast.expr, texts: set[str]) -> bool:
    if isinstance(claim, ast.Compare):
        sides = [claim.left, *claim.comparators]
        if any(ast.unparse(side) in {"[]", "()", "set()", "{}", "0", "''"} for side in sides):
            return any(isinstance(one, ast.Gt | ast.NotEq) for one in claim.ops) and mentions(claim, texts)
        return mentions(claim, texts)
    return not isinstance(claim, ast.UnaryOp | ast.BoolOp) and not is_all(claim) and mentions(claim, texts)


def is_all(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "all"


def mentions(node: ast.expr, texts: set[str]) -> bool:
    return any(isinstance(part, ast.expr) and ast.unparse(part) in texts for part in ast.walk(node))


def test_every_test_can_fail():
    found = [
        f"{path.relative_to(ROOT)}: {name}: {why}"
        for path in helper_files()
        for name, why in weaknesses(text_of(path), path)
    ]
    assert found == []


def test_exceptions_are_few():
    named = [line for path in helper_files() for line in text_of(path).splitlines() if EXCEPTION in line]
    assert len([line for line in named if "EXCEPTION" not in line]) <= MOST_EXCEPTIONS


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("read(text)", "nothing"),
        ("json.dumps(read(text))", "nothing"),
        ("with suppress(KlawError):\n  assert read(text)", "raises"),
        ("try:\n  assert read(text)\n except KlawError:\n  return", "raises"),
        ("assert all(read(text))", "all() of read(text)"),
        ("found = read(text)\n assert all(one > 1 for one in found)", "all() of found"),
        ("found = read(text)\n assert all(found) or found == []", "all() of found"),
        ("found = read(text)\n assert not found or all(one > 1 for one in found)", "all() of found"),
        ("for one in read(text):\n  assert one", "only in a loop"),
        ("found = [one for one in (1, 2) if one in text]\n for one in found:\n  assert one", "only in a loop"),
    ],
)
def test_the_rule_sees_each_way_to_be_unable_to_fail(body, why):
    ((name, found),) = weaknesses(f"def test_it(text):\n {body}\n", Path(__file__))
    assert name == "test_it"
    assert why in found


@pytest.mark.parametrize(
    "body",
    [
        "assert read(text) == 1",
        "with pytest.raises(KlawError):\n  read(text)",
        "np.testing.assert_allclose(read(text), 1)",
        "found = read(text)\n assert found\n assert all(one > 1 for one in found)",
        "found = read(text)\n assert len(found) == 2\n assert all(one > 1 for one in sorted(found))",
        "first, *_ = found = read(text)\n assert all(one > first for one in found)",
        "assert all(read(one) for one in (1, 2))",
        "for one in range(3):\n  assert read(one)",
        "try:\n  read(text)\n except KlawError as error:\n  assert error.hint",
        "def check(text):\n  assert text\n check(text)",
    ],
)
def test_the_rule_lets_other_tests_be(body):
    assert list(weaknesses(f"def test_it(text):\n {body}\n", Path(__file__))) == []
