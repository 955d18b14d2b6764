"""Plugins are loaded behind a wall: whatever one does, the others work and it is named with its reason."""

import re
import textwrap
import tomllib
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path

import pytest

from klaw_core import PluginConflictError, PluginNotFoundError, install_extras, update_command
from klaw_core.kinds import KINDS
from klaw_core.plugins.catalogue import CATALOGUE, DEFAULT_EXTRAS, install_command, provider_of
from klaw_core.plugins.discover import discover

PROJECT = Path(__file__).parents[2]
FAKES = PROJECT / "tests" / "packaging" / "fakes"
EXTRAS = {
    extra: [re.match(r"[\w-]+(?:\[[\w,-]+\])?", needed)[0] for needed in needs]
    for extra, needs in tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ].items()
}

GOOD = """
    from attrs import frozen
    from klaw_core import API, Component, hookimpl

    @frozen
    class Options:
        k: int = 1

    def component(name="fine", **fields):
        return Component(**{"name": name, "options": Options, "factory": lambda o, p: o, "api": API, **fields})
"""


class Named(Distribution):
    """A distribution that is only a name and a version."""

    def __init__(self, name, version="1.0"):
        self._metadata = {"Name": name, "Version": version}

    def read_text(self, filename):
        if filename != "METADATA":
            return None
        return "".join(f"{key}: {value}\n" for key, value in self._metadata.items() if value is not None)

    def locate_file(self, path):
        return Path(path)


@pytest.fixture
def plugin(tmp_path, monkeypatch, request):
    """Write a module; return the entry point of a distribution that would install it."""
    monkeypatch.syspath_prepend(tmp_path)
    mark = "".join(character if character.isalnum() else "_" for character in request.node.name)

    def write(name, source, *, distribution=None):
        module = f"{name.replace('-', '_')}_{abs(hash((mark, name)))}"
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(GOOD) + textwrap.dedent(source))
        dist = Named(f"dist-{name}") if distribution is None else distribution
        return EntryPoint(name, module, "klaw")._for(dist)

    return write


@pytest.fixture
def fine(plugin):
    """A plugin that works."""
    return plugin(
        "fine",
        """
        @hookimpl
        def klaw_embedders():
            yield component(summary="does it")
        """,
    )


def hook(body, name="klaw_embedders()"):
    return f"@hookimpl\ndef {name}:\n    {body}\n"


class TestIsolation:
    def test_components_of_working_plugins_are_offered(self, fine):
        registry = discover(points=[fine])
        (plugin,) = registry.plugins
        assert (plugin.name, plugin.distribution, plugin.version, plugin.problem) == ("fine", "dist-fine", "1.0", "")
        assert plugin.components == (("embedder", "fine", "does it"),)
        assert registry.component("embedder", "fine").options().k == 1
        assert registry.names("embedder") == ["fine"]
        assert registry.names("chunker") == []

    @pytest.mark.parametrize(
        ("source", "problem"),
        [
            ("import a_package_that_nobody_has", "ModuleNotFoundError: No module named 'a_package_that_nobody_has'"),
            ("1 / 0", "ZeroDivisionError: division by zero"),
            ("raise SystemExit(3)", "SystemExit: 3"),
            ("import sys; sys.exit()", "SystemExit"),
            ("this is no Python", "SyntaxError: "),
            ("raise RuntimeError('one\\ntwo')", "RuntimeError: one"),
            ("raise RuntimeError", "RuntimeError"),
            (hook("raise RuntimeError('in the hook')"), "RuntimeError: in the hook"),
            (hook("yield component('half'); raise RuntimeError('midway')"), "RuntimeError: midway"),
            (hook("raise SystemExit"), "SystemExit"),
            (hook("return None"), "TypeError: "),
            (hook("return 5"), "TypeError: "),
            (hook("yield 'junk'"), "TypeError: a hook yielded 'junk', not a Component"),
            (hook("return component()"), "TypeError: "),
            (hook("yield component", name="klaw_embedders(config)"), "PluginValidationError: "),
            (hook("yield component(None)"), "TypeError: a component has the name None, not a string"),
            (hook("yield component('')"), "TypeError: a component has the name '', not a string"),
            (hook("yield component(['x'])"), "TypeError: a component has the name ['x'], not a string"),
            (hook("yield component(api='1')"), "TypeError: 'fine': api is not a number"),
            (hook("yield component(api=None)"), "TypeError: 'fine': api is not a number"),
            (hook("yield component(summary=None)"), "TypeError: 'fine': summary is not a string"),
            (hook("yield component(rank='1')"), "TypeError: 'fine': rank is not a number"),
            (hook("yield component(factory=None)"), "TypeError: 'fine': the factory is not callable"),
            (hook("yield component(options=dict)"), "TypeError: 'fine': options is not an attrs class"),
            (hook("yield component(options=Options())"), "TypeError: 'fine': options is not an attrs class"),
            (hook("yield component()") + "@hookimpl\ndef klaw_chunkers(x): pass", "PluginValidationError: "),
        ],
    )
    def test_a_plugin_that_fails_is_named_and_the_others_work(self, plugin, fine, source, problem):
        for name in ("a-bad", "z-bad"):  # loaded before the good one, and after it
            bad = plugin(name, source)
            registry = discover(points=[bad, fine])
            assert registry.component("embedder", "fine").name == "fine"
            assert registry.names("embedder") == ["fine"], "nothing of a plugin that failed is offered"
            (failed,) = [found for found in registry.plugins if found.name == name]
            assert failed.problem.startswith(problem)
            assert "\n" not in failed.problem
            assert failed.components == ()

    def test_an_interrupt_is_passed_on(self, plugin):
        with pytest.raises(KeyboardInterrupt):
            discover(points=[plugin("impatient", "raise KeyboardInterrupt")])

    @pytest.mark.parametrize("value", ["nowhere_at_all", "os:nothing_there", "not a module!!", ""])
    def test_an_entry_point_without_a_target_is_named(self, fine, value):
        lost = EntryPoint("lost", value, "klaw")
        registry = discover(points=[lost, fine])
        assert registry.names("embedder") == ["fine"]
        assert next(found for found in registry.plugins if found.name == "lost").problem

    def test_a_broken_installation_without_a_name_does_not_affect_others(self, plugin, fine):
        nameless = plugin("nameless", hook("yield component('other')"), distribution=Named(None, None))
        assert discover(points=[nameless, fine]).names("embedder") == ["fine", "other"]

    def test_a_plugin_without_hooks_offers_nothing(self, plugin):
        (found,) = discover(points=[plugin("silent", "")]).plugins
        assert (found.problem, found.components) == ("", ())

    def test_a_class_or_an_object_can_have_the_hooks(self, plugin):
        source = "class Hooks:\n    @hookimpl\n    def klaw_fusions(self): yield component('mine')\nhooks = Hooks()"
        point = plugin("object", source)
        registry = discover(points=[EntryPoint("object", f"{point.value}:hooks", "klaw")])
        assert registry.names("fusion") == ["mine"]

    def test_every_hook_is_called(self, plugin):
        kinds = KINDS.values()
        source = "".join(hook(f"yield component('of_{kind}')", name=f"{kind.hook}()") for kind in kinds)
        registry = discover(points=[plugin("all", source)])
        assert all(registry.names(kind) == [f"of_{kind}"] for kind in kinds)

    def test_a_misspelled_hook_is_reported_for_its_plugin(self, plugin, fine):
        registry = discover(points=[plugin("typo", hook("yield component('x')", name="klaw_embeders()")), fine])
        (found,) = [item for item in registry.plugins if item.name == "typo"]
        assert found.problem == "TypeError: unknown hook 'klaw_embeders'; did you mean 'klaw_embedders'?"
        assert registry.names("embedder") == ["fine"]


class TestGenerations:
    @pytest.mark.parametrize(
        ("api", "hint"), [(99, update_command()), (0, "update the plugin"), (-1, "update the plugin")]
    )
    def test_a_component_of_another_api_is_an_error_only_when_used(self, plugin, fine, api, hint):
        other = plugin("other", hook(f"yield component('other', api={api}); yield component('good')"))
        registry = discover(points=[other, fine])
        (shown,) = [found for found in registry.plugins if found.name == "other"]
        assert "'other'" in shown.problem
        assert hint in shown.problem
        assert registry.component("embedder", "good")
        with pytest.raises(PluginNotFoundError, match=f"'other' of dist-other cannot be used.*API {api}"):
            registry.component("embedder", "other")


class TestConflicts:
    def test_two_components_of_one_name_are_an_error_only_when_used(self, plugin, fine):
        twins = [plugin(f"twin-{name}", hook("yield component('twin')")) for name in "ab"]
        registry = discover(points=[*twins, fine])
        assert registry.component("embedder", "fine")
        with pytest.raises(PluginConflictError) as caught:
            registry.component("embedder", "twin")
        assert caught.value.message == "dist-twin-a and dist-twin-b both provide the embedder 'twin'"
        assert 'plugins.disabled = ["dist-twin-b"]' in caught.value.hint

    def test_one_name_in_two_kinds_is_not_a_conflict(self, plugin):
        both = plugin("both", hook("yield component('x')") + hook("yield component('x')", name="klaw_fusions()"))
        registry = discover(points=[both])
        assert registry.component("embedder", "x")
        assert registry.component("fusion", "x")

    def test_disabling_one_plugin_ends_a_conflict(self, plugin):
        twins = [plugin(f"twin-{name}", hook(f"yield component('twin', summary='{name}')")) for name in "ab"]
        for disabled in ("dist-twin-b", "twin-b", "Dist_Twin.B"):
            registry = discover(points=twins, disabled=[disabled])
            assert registry.component("embedder", "twin").summary == "a"

    def test_an_unusable_component_is_not_a_conflict(self, plugin):
        old = plugin("old", hook("yield component('twin', api=0)"))
        new = plugin("new", hook("yield component('twin', summary='new')"))
        assert discover(points=[old, new]).component("embedder", "twin").summary == "new"


class TestDisabled:
    def test_a_disabled_plugin_is_not_imported(self, plugin):
        registry = discover(points=[plugin("bomb", "raise RuntimeError('loaded')")], disabled=["bomb"])
        (found,) = registry.plugins
        assert (found.disabled, found.problem, found.components) == (True, "", ())

    def test_disabling_an_unknown_name_has_no_effect(self, fine):
        assert discover(points=[fine], disabled=["nothing", ""]).names("embedder") == ["fine"]


#: The distributions that the checkout has; the catalogue also knows those that were deleted.
HERE = [row for row in CATALOGUE if (PROJECT / "plugins" / row.distribution).is_dir()]


class TestMissing:
    @pytest.mark.parametrize(("kind", "name"), [key for row in HERE for key in row.components])
    def test_a_missing_known_component_names_its_install_command(self, kind, name):
        with pytest.raises(PluginNotFoundError) as caught:
            discover(points=[]).component(kind, name)
        row = provider_of(kind, name)
        extras, distribution = row.extras, row.distribution
        assert caught.value.message == f"{kind} {name!r} is not installed"
        assert caught.value.hint == install_extras(extras)
        assert distribution in {installed for extra in extras for installed in EXTRAS[extra]}
        assert caught.value.extras == extras

    def test_the_catalogue_has_every_component_with_its_distribution(self):
        ours = {
            path.parent.name for path in PROJECT.glob("plugins/*/pyproject.toml") if "points.klaw]" in path.read_text()
        }
        assert {row.distribution for row in HERE if row.components} == ours
        for plugin in discover().plugins:
            if plugin.distribution in ours:
                known = {key for row in CATALOGUE if row.distribution == plugin.distribution for key in row.components}
                assert {(kind, name) for kind, name, _ in plugin.components} == known

    def test_components_of_the_default_extra_name_the_default_extra(self):
        brought = {installed for extra in DEFAULT_EXTRAS & EXTRAS.keys() for installed in EXTRAS[extra]}
        assert brought == set(EXTRAS["default"])
        assert install_command([*DEFAULT_EXTRAS, "ollama"]) == install_extras(["default", "ollama"])
        assert install_command(["fts5", "ollama"]) == install_extras(["fts5", "ollama"])

    def test_a_disabled_component_of_another_kind_is_not_named_as_the_cause(self, plugin):
        point = plugin("rerank-onnx", "", distribution=Named("klaw-rerank-onnx"))
        with pytest.raises(PluginNotFoundError, match="embedder 'onnx' is not installed") as caught:
            discover(points=[point], disabled=["klaw-rerank-onnx"]).component("embedder", "onnx")
        assert caught.value.hint == install_extras(["onnx", "minilm"])

    def test_a_broken_known_component_is_reported_with_its_reason(self, plugin):
        broken = plugin("fts5", "import a_package_that_nobody_has", distribution=Named("klaw-fts5"))
        with pytest.raises(PluginNotFoundError, match="klaw-fts5 is broken: ModuleNotFoundError"):
            discover(points=[broken]).component("retriever", "fts5")

    def test_a_disabled_known_component_is_reported_as_disabled(self, plugin):
        point = plugin(
            "fts5", hook("yield component('fts5')", name="klaw_retrievers()"), distribution=Named("klaw-fts5")
        )
        with pytest.raises(PluginNotFoundError, match=r"klaw-fts5 is disabled .*plugins\.disabled"):
            discover(points=[point], disabled=["klaw-fts5"]).component("retriever", "fts5")

    def test_an_unknown_component_suggests_the_nearest_or_lists_all(self, fine):
        registry = discover(points=[fine])
        with pytest.raises(PluginNotFoundError, match=r"no plugin provides the embedder 'fien'.*did you mean 'fine'"):
            registry.component("embedder", "fien")
        with pytest.raises(PluginNotFoundError, match="installed: fine; see `klaw plugins`"):
            registry.component("embedder", "completely different")
        with pytest.raises(PluginNotFoundError, match="installed: none; disabled: dist-fine"):
            discover(points=[fine], disabled=["fine"]).component("embedder", "fine")


def test_the_builtin_plugin_is_found_by_its_installed_entry_point():
    registry = discover()
    (builtin,) = (plugin for plugin in registry.plugins if plugin.distribution == "klaw")
    assert builtin.problem == ""
    assert {kind for kind, _, _ in builtin.components} == {"embedder", "chunker", "fusion"}


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("hello", ""),
        ("liar", ""),
        ("twin-a", ""),
        ("broken", "a_package_that_nobody_has"),
        ("raises", "lost its licence"),
        ("future", "API 99"),
    ],
)
def test_the_fake_distributions_have_the_expected_states(monkeypatch, name, problem):
    monkeypatch.syspath_prepend(FAKES / f"klaw-{name}")
    (found,) = discover(points=[EntryPoint(name, f"klaw_{name.replace('-', '_')}", "klaw")]).plugins
    assert problem in found.problem
    assert bool(problem) == bool(found.problem)
