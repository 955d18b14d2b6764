"""A pattern of files that cannot be meant so is refused, whatever source of whatever plugin has the option."""

from __future__ import annotations

import attrs
import pytest

from klaw_core import ConfigError, Memory
from klaw_core.config.load import load_config
from klaw_core.kinds import SOURCE
from klaw_core.plugins.discover import discover


def patterns():
    """Return each option of a source with patterns."""
    registry = discover()
    for name in sorted(registry.listed_names(SOURCE)):
        for field in attrs.fields(registry.component(SOURCE, name).options):
            if field.name in {"include", "exclude"}:
                yield name, field.name


@pytest.mark.parametrize("pattern", ["", "/", "[a", "drafts/[!", "a]b[c"])
@pytest.mark.parametrize(("source", "option"), list(patterns()))
def test_a_pattern_that_cannot_be_meant_so_is_refused(source, option, pattern, tmp_path):
    config = tmp_path / "config.toml"
    table = f'path = "{tmp_path}"\n{option} = ["*.md", "{pattern}"]\n'
    config.write_text(f'[memory.embedding]\ntype = "none"\n[[memory.sources]]\ntype = "{source}"\n{table}')
    read = load_config(config_file=config, data_dir=tmp_path / "data", environment={})
    with pytest.raises(ConfigError) as refused:
        Memory.open(read)
    assert f"{option}: " in refused.value.message


def test_each_source_with_files_has_such_options():
    agents = {"aider", "claude-code", "cline", "codex", "copilot-cli", "cursor", "gemini-cli", "opencode"}
    assert {name for name, _ in patterns()} == {*agents, "jsonl", "workspace"}


@pytest.mark.parametrize("name", ["config_file", "data_dir", "directory"])
def test_an_empty_path_is_not_the_current_directory(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="is empty"):
        load_config(**{name: ""})
    assert list(tmp_path.iterdir()) == []
