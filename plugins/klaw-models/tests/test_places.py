"""Where a model is found, and what is said where it is not."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from klaw_core import ModelNotFoundError, PluginConflictError, install_extras, uninstall_command
from klaw_models import GgufEmbedderManifest, OnnxEmbedderManifest, find_model
from klaw_models.places import GROUP, _registered

ModelDirectory = Callable[..., Path]


def _find(name: str, cache: Path, path: Path | None = None) -> OnnxEmbedderManifest:
    return find_model(OnnxEmbedderManifest, name, None if path is None else str(path), cache)


def _register(site: Path, distribution: str, name: str) -> None:
    """Write what pip writes about a distribution that registers a model."""
    module = distribution.replace("-", "_")
    information = site / f"{module}-1.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
    (information / "entry_points.txt").write_text(f"[klaw.models]\n{name} = {module}\n")


@pytest.mark.parametrize("name", ["mine", "someone/theirs"])
def test_a_model_is_found_in_the_cache(model_directory: ModelDirectory, tmp_path: Path, name: str) -> None:
    model_directory(tmp_path / "models" / name, name)
    assert _find(name, tmp_path).name == name


def test_a_path_takes_precedence_over_a_name(model_directory: ModelDirectory, tmp_path: Path) -> None:
    model_directory(tmp_path / "models" / "mine", "mine", revision="cached")
    assert _find("mine", tmp_path, model_directory(tmp_path / "elsewhere")).revision != "cached"


def test_a_path_can_start_with_the_home_directory(
    model_directory: ModelDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_directory(tmp_path / "elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _find("any", tmp_path, Path("~/elsewhere")).name == "mine"


def test_a_packaged_model_takes_precedence_over_the_cache(
    model_directory: ModelDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _register(tmp_path / "site", "klaw-model-mine", "mine")
    model_directory(tmp_path / "site" / "klaw_model_mine", "mine")
    (tmp_path / "site" / "klaw_model_mine" / "__init__.py").write_text("raise AssertionError('it is not imported')")
    model_directory(tmp_path / "cache" / "models" / "mine", "mine", revision="cached")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert _find("mine", tmp_path / "cache").revision != "cached"


def test_the_cache_replaces_a_removed_package(
    model_directory: ModelDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _register(tmp_path / "site", "klaw-model-mine", "mine")
    model_directory(tmp_path / "cache" / "models" / "mine", "mine", revision="cached")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert _find("mine", tmp_path / "cache").revision == "cached"


@pytest.mark.parametrize(
    "registered",
    [
        "[klaw.models]\nmine = one\n",
        "[klaw.models]\nmine=one\nother = two\n",
        "[console_scripts]\nmine = wrong:main\n\n[klaw.models]\n# mine = wrong\n\n  mine  =  one.part  \n",
        "[klaw.models]\nmine = one\n\n[klaw]\nmine = wrong\n",
        "[klaw.models.more]\nmine = wrong\n[klaw.models]\r\nmine = one\r\n",
        "[klaw.models]\nmine = one:attribute [extra]\n",
        "[klaw.models]\nother = one\n",
        "[klaw]\nmine = one\n",
        "",
    ],
)
def test_the_scan_for_packages_finds_what_importlib_metadata_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registered: str
) -> None:
    for site, content in (("second", "[klaw.models]\nmine = hidden\n"), ("first", registered)):
        _register(tmp_path / site, "klaw-model-mine", "mine")
        information = tmp_path / site / "klaw_model_mine-1.dist-info"
        (information / "entry_points.txt").write_text(content, newline="")
        monkeypatch.syspath_prepend(tmp_path / site)
    assert list(_registered("mine")) == [point.module for point in entry_points(group=GROUP, name="mine")]


@pytest.mark.parametrize("name", ["../outside", "a/../../outside", "", "a\0b"])
def test_a_name_cannot_point_outside_of_the_cache(model_directory: ModelDirectory, tmp_path: Path, name: str) -> None:
    model_directory(tmp_path / "outside")
    (tmp_path / "models" / "a").mkdir(parents=True)
    with pytest.raises(ModelNotFoundError):
        _find(name, tmp_path)
    with pytest.raises(ModelNotFoundError):
        _find(str(tmp_path / "outside"), tmp_path)


def test_a_missing_model_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klaw_models.places.GROUP", "klaw.no.such.group")
    with pytest.raises(ModelNotFoundError, match="is not on this machine") as caught:
        _find("bge-small-en-v1.5", tmp_path)
    assert caught.value.hint == "klaw models add bge-small-en-v1.5"
    with pytest.raises(ModelNotFoundError) as caught:
        _find("all-MiniLM-L6-v2", tmp_path)
    assert caught.value.hint == f"{install_extras(['minilm'])}, or klaw models add all-MiniLM-L6-v2"
    with pytest.raises(ModelNotFoundError, match="no model 'another'") as caught:
        _find("another", tmp_path)
    assert "klaw models list" in caught.value.hint


def test_a_path_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"no model\.json in") as caught:
        _find("any", tmp_path, tmp_path)
    assert "memory.embedding.path" in caught.value.hint


def test_a_model_of_another_kind_names_its_component(model_directory: ModelDirectory, tmp_path: Path) -> None:
    path = model_directory()
    with pytest.raises(ModelNotFoundError, match="expected gguf-embedder") as caught:
        find_model(GgufEmbedderManifest, "mine", str(path), tmp_path)
    assert caught.value.hint == 'memory.embedding.type = "onnx" runs it'


def test_a_model_in_two_packages_is_an_error_when_used(
    tmp_path: Path, model_directory: ModelDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for distribution in ("klaw-model-first", "klaw-model-second"):
        _register(tmp_path / "site", distribution, "twice")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(PluginConflictError, match="klaw-model-first, klaw-model-second") as caught:
        _find("twice", tmp_path)
    assert uninstall_command("klaw-model-second") in caught.value.hint
    assert _find("twice", tmp_path, model_directory(name="twice")).name == "twice"
    model_directory(tmp_path / "models" / "mine", "mine")
    assert _find("mine", tmp_path).name == "mine"
