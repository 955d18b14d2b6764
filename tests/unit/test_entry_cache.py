"""What an earlier process found installed serves the next one, and never hides what has changed since."""

import json
import os
import sys
import textwrap
from pathlib import Path

import pytest

from klaw_core import PluginConflictError, PluginNotFoundError, SearchEvent
from klaw_core.cli.entry_cache import installed
from klaw_core.kinds import EXTENSION as EXTENSIONS

NEEDED = {("embedder", "alpha")}
SOURCE = """
    from attrs import frozen
    from klaw_core import API, Component, hookimpl

    @frozen
    class Options:
        k: int = 1

    @hookimpl
    def klaw_embedders():
        yield Component("{name}", Options, lambda options, place: options, API)
"""


class Site:
    """A directory on ``sys.path`` in which plugins are installed as pip does it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def install(self, distribution: str, source: str) -> str:
        """Install a distribution with one plugin; return its module's name."""
        module = f"plugin_of_{distribution}_{self.path.name}"
        self.write(module, source)
        information = self.path / f"{distribution}-1.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
        (information / "entry_points.txt").write_text(f"[klaw]\n{distribution} = {module}\n")
        return module

    def write(self, module: str, source: str) -> None:
        """Write a plugin's module; it gets a time of change of its own, however fast the test is."""
        file = self.path / f"{module}.py"
        moment = file.stat().st_mtime_ns + 1_000_000 if file.exists() else None
        file.write_text(textwrap.dedent(source))
        if moment is not None:
            os.utime(file, ns=(moment, moment))
        sys.modules.pop(module, None)


@pytest.fixture
def site(tmp_path, monkeypatch, request):
    mark = "".join(character if character.isalnum() else "_" for character in request.node.name)
    path = tmp_path / mark
    path.mkdir()
    monkeypatch.syspath_prepend(path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two versions of a module within a second
    return Site(path)


@pytest.fixture
def modules(site):
    return [site.install(name, SOURCE.format(name=name)) for name in ("alpha", "beta")]


def fresh(modules):
    """Forget what was imported, as a new process has."""
    for module in modules:
        sys.modules.pop(module, None)


def remembered(cache: Path) -> Path:
    (file,) = cache.glob("plugins-*.json")
    return file


class TestCachedPlugins:
    def test_only_what_is_needed_is_loaded(self, modules, tmp_path):
        assert installed(tmp_path, NEEDED).component("embedder", "alpha").name == "alpha"
        fresh(modules)

        registry = installed(tmp_path, NEEDED)

        assert registry.component("embedder", "alpha").name == "alpha"
        assert [module in sys.modules for module in modules] == [True, False]
        assert {plugin.name for plugin in registry.plugins} == {"alpha"}

    def test_a_plugin_that_offers_nothing_or_fails_does_not_affect_others(self, site, modules, tmp_path):
        site.install("empty", "")
        site.install("broken", "raise RuntimeError('a defect')")
        for _ in range(2):
            assert installed(tmp_path, NEEDED).component("embedder", "alpha").name == "alpha"
            fresh(modules)

    def test_other_plugins_are_found_on_request(self, modules, tmp_path):
        installed(tmp_path, NEEDED)
        fresh(modules)
        registry = installed(tmp_path, NEEDED)

        assert {"alpha", "beta"} <= {plugin.name for plugin in registry.whole.plugins}
        assert {"alpha", "beta"} <= set(registry.names("embedder"))
        assert registry.component("embedder", "beta").name == "beta"
        with pytest.raises(PluginNotFoundError, match="'gamma'"):
            registry.component("embedder", "gamma")

    def test_a_disabled_plugin_is_not_loaded_until_it_is_enabled_again(self, modules, tmp_path):
        with pytest.raises(PluginNotFoundError):
            installed(tmp_path, NEEDED, disabled=["alpha"]).component("embedder", "alpha")
        assert installed(tmp_path, NEEDED).component("embedder", "alpha").name == "alpha"
        fresh(modules)

        plugins = installed(tmp_path, NEEDED, disabled=["alpha"]).plugins
        (plugin,) = [plugin for plugin in plugins if plugin.name == "alpha"]

        assert plugin.disabled
        assert modules[0] not in sys.modules


EXTENSION = """
    from attrs import frozen
    from klaw_core import API, Component, NoOptions, SearchEvent, hookimpl

    @hookimpl
    def klaw_extensions():
        yield Component("{name}", NoOptions, lambda options, place: options, API, rank={rank}, {more})
"""


class TestListedExtensions:
    """Extensions are known by name, rank and events before their plugins are imported."""

    @pytest.fixture
    def modules(self, site):
        return [
            site.install("alpha", SOURCE.format(name="alpha")),
            site.install("late", EXTENSION.format(name="late", rank=101, more="questions='late|after'")),
            site.install("early", EXTENSION.format(name="early", rank=99, more="listens=(SearchEvent,)")),
            site.install("first", EXTENSION.format(name="first", rank=1, more="")),
        ]

    def names(self, registry, known=("late", "early", "first")):
        return [name for name in registry.listed_names(EXTENSIONS) if name in known]

    @pytest.fixture
    def registry(self, modules, tmp_path):
        written = installed(tmp_path, NEEDED)
        assert self.names(written) == ["first", "early", "late"]
        assert "early" in written.listeners(SearchEvent)
        fresh(modules)
        return installed(tmp_path, NEEDED)

    def test_they_are_listed_by_rank_without_an_import(self, modules, registry):
        assert self.names(registry) == ["first", "early", "late"]
        listeners = registry.listeners(SearchEvent)
        assert "early" in listeners
        assert not {"late", "first"} & set(listeners)
        assert [module in sys.modules for module in modules] == [True, False, False, False]

    def test_only_the_one_that_is_asked_about_a_question_is_loaded(self, modules, registry):
        assert [name for name in registry.asked("What came AFTER it?") if name not in {"date", "conditions"}] == [
            "late"
        ]
        assert "late" not in registry.asked("What came before it?")
        assert registry.component("extension", "late").name == "late"
        assert [module in sys.modules for module in modules] == [True, True, False, False]
        registry.load_listed()
        assert [module in sys.modules for module in modules] == [True] * 4

    def test_one_of_them_is_loaded_without_a_look_at_all_metadata(self, registry, monkeypatch):
        def refuse(**_options):
            raise AssertionError("read the metadata of all packages")

        monkeypatch.setattr("importlib.metadata.entry_points", refuse)
        assert registry.component("extension", "late").rank == 101
        with pytest.raises(AssertionError, match="metadata"):
            registry.component("embedder", "gamma")

    @pytest.mark.usefixtures("registry")
    def test_one_of_a_disabled_plugin_is_not_listed_until_it_is_enabled_again(self, tmp_path):
        disabled = installed(tmp_path, NEEDED, disabled=["early"])
        assert self.names(disabled) == ["first", "late"]
        assert "early" not in disabled.listeners(SearchEvent)
        assert self.names(installed(tmp_path, NEEDED)) == ["first", "early", "late"]

    def test_one_that_was_disabled_when_the_cache_was_written_is_listed_later(self, modules, tmp_path):
        assert self.names(installed(tmp_path, NEEDED, disabled=["early"])) == ["first", "late"]
        fresh(modules)
        assert self.names(installed(tmp_path, NEEDED)) == ["first", "early", "late"]


class TestChangedPlugins:
    def test_a_plugin_that_was_installed_later_is_found(self, site, modules, tmp_path):
        installed(tmp_path, NEEDED)
        site.install("gamma", SOURCE.format(name="alpha"))

        with pytest.raises(PluginConflictError, match="alpha and gamma"):
            installed(tmp_path, NEEDED).component("embedder", "alpha")
        fresh(modules)
        with pytest.raises(PluginConflictError, match="alpha and gamma"):
            installed(tmp_path, NEEDED).component("embedder", "alpha")

    def test_a_plugin_that_was_removed_later_is_not_found(self, site, modules, tmp_path):
        installed(tmp_path, NEEDED)
        (site.path / "alpha-1.dist-info" / "entry_points.txt").unlink()
        (site.path / "alpha-1.dist-info").rename(site.path / "gone")

        with pytest.raises(PluginNotFoundError):
            installed(tmp_path, NEEDED).component("embedder", "alpha")
        assert modules[0] in sys.modules

    def test_a_plugin_that_was_edited_offers_its_new_components(self, site, modules, tmp_path):
        installed(tmp_path, NEEDED)
        site.write(modules[1], SOURCE.format(name="alpha"))
        fresh(modules)

        with pytest.raises(PluginConflictError, match="alpha and beta"):
            installed(tmp_path, NEEDED).component("embedder", "alpha")


class TestTrustedFiles:
    """The file says what code is loaded: whatever is odd about it, it is not believed, and is written anew."""

    @pytest.mark.parametrize(
        "content", ["", "{", "[]", "null", '{"stamp": 1}', '{"modules": [1], "plugins": 3}', "[" * 9999]
    )
    def test_a_damaged_cache_is_ignored(self, modules, tmp_path, content):
        installed(tmp_path, NEEDED)
        sound = remembered(tmp_path).read_text()
        remembered(tmp_path).write_text(content)

        assert installed(tmp_path, NEEDED).component("embedder", "alpha").name == "alpha"
        assert json.loads(remembered(tmp_path).read_text()) == json.loads(sound)
        assert modules

    def test_a_cache_that_only_the_owner_can_write_is_used(self, modules, tmp_path):
        self.poison(modules, tmp_path)

        plugins = installed(tmp_path, NEEDED).plugins
        (plugin,) = [plugin for plugin in plugins if plugin.name == "alpha"]

        assert "nowhere_at_all" in plugin.problem

    @pytest.mark.parametrize("mode", [0o660, 0o606, 0o666])
    def test_a_cache_that_others_can_write_is_not_read(self, modules, tmp_path, mode):
        self.poison(modules, tmp_path).chmod(mode)

        assert installed(tmp_path, NEEDED).component("embedder", "alpha").name == "alpha"
        assert remembered(tmp_path).stat().st_mode & 0o777 == 0o600

    def test_a_link_is_not_followed(self, modules, tmp_path):
        file = self.poison(modules, tmp_path)
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")

        assert installed(tmp_path, NEEDED).component("embedder", "alpha").name == "alpha"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
    def test_a_cache_of_another_owner_is_not_read(self, modules, tmp_path):
        os.chown(self.poison(modules, tmp_path), 12345, -1)

        assert installed(tmp_path, NEEDED).component("embedder", "alpha").name == "alpha"

    def test_plugins_are_found_without_a_writable_cache(self, modules, tmp_path):
        (tmp_path / "file").write_text("")

        assert installed(tmp_path / "file", NEEDED).component("embedder", "alpha").name == "alpha"
        assert modules

    def poison(self, modules, cache):
        """Remember something else than what is true; what is believed of it raises."""
        installed(cache, NEEDED)
        fresh(modules)
        file = remembered(cache)
        content = json.loads(file.read_text())
        content["plugins"] = json.loads(json.dumps(content["plugins"]).replace(modules[0], "nowhere_at_all"))
        file.write_text(json.dumps(content))
        return file
