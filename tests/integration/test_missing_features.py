"""Without the distribution of a feature, the methods that pass on to it name the extra that installs it."""

from io import BytesIO

import pytest
from attrs import evolve

from klaw_core import PluginNotFoundError
from klaw_core.plugins.installing import install_extras

CALLS = {
    "doctor": [
        lambda memory: memory.doctor(),
        lambda memory: memory.export(BytesIO()),
        lambda memory: memory.import_("export.jsonl"),
    ],
    "tools": [
        lambda memory: memory.tools(),
        lambda memory: memory.toolbox(),
        lambda memory: memory.call_tool("memory_status", {}),
        lambda memory: memory.context("a harbour"),
    ],
}


@pytest.mark.parametrize(
    ("extra", "call"), [(extra, number) for extra, calls in CALLS.items() for number in range(len(calls))]
)
def test_a_method_names_the_extra_of_its_missing_feature(home, monkeypatch, extra, call):
    registry = home.registry()
    offers = {key: found for key, found in registry.offers.items() if found[0].distribution != f"klaw-{extra}"}
    assert len(offers) < len(registry.offers)
    monkeypatch.setattr(type(home), "registry", lambda _self: evolve(registry, offers=offers))
    with home.open() as memory, pytest.raises(PluginNotFoundError, match=f"'{extra}' is not installed") as caught:
        CALLS[extra][call](memory)
    assert caught.value.hint == install_extras([extra])
