"""The configuration file that ``klaw init`` writes: every default, commented out.

The options of each table are comments too, so a ``type`` can be changed without removing the options of the old
component. A comment is below the header of its table, because `klaw config set` keeps it there.
"""

from __future__ import annotations

from collections.abc import Iterator

from klaw_core.cli.effective import option_defaults, toml
from klaw_core.config.tables import COMPONENTS, DEFAULTS
from klaw_core.plugins.registry import Registry
from klaw_core.values.config import Selection

_HEAD = """\
# Klaw's configuration. Commented lines show the defaults: uncomment a line to change it.
# `klaw config list` shows the settings in force; `klaw plugins` lists the values for `type`.
# "${VAR}" in a string is replaced by the environment variable VAR, so secrets can stay out of this file.

# Projects whose klaw.toml may set anything; `klaw config trust` adds one.
trusted_projects = []

# Reranking stages, one table each, applied in order. None by default.
# [[memory.reranking]]
# type = "..."
"""
_SOURCES = """\
# Sources in addition to the directories added by `klaw index DIR`, one table each. None by default.
# [[memory.sources]]
# type = "workspace"
# path = "~/notes"
"""
_FORMATS = """\
# Documents in a format other than Markdown are chunked by the chunker named like the format. A table
# [memory.formats.NAME] sets its options, or selects another chunker with `type`.
"""
_CONVERTERS = """\
# A table [memory.converters.NAME] sets the options of a converter, which turns files of a kind into text.
"""
_EXTENSIONS = """\
# A table [extensions.NAME] sets the options of an extension; `klaw plugins` lists the extensions.
"""
_RETRIEVAL = "# Retrievers, and the weight of each when the rankings are merged. To change one, uncomment all."
_ABOUT = {
    "store": "The database.",
    "chunking": "How notes are split into chunks.",
    "embedding": "The model that turns chunks into vectors. After a change: klaw reindex.",
    "fusion": "How the rankings are merged into one.",
}

_ABOUT_SETTINGS = {
    "conversations": "Which messages are indexed, and patterns of text that must not reach the index.",
    "cache": "How many vectors are cached for texts that occur again.",
    "search": "More collections, like docs and facts, that a search leaves out unless it names them.",
    "sync": "Whether the index is updated before each search.",
}


def render(registry: Registry) -> str:
    """Return the file's text, with the options of the installed components."""
    sources = _options(registry, Selection("source", "workspace", "memory.sources[0]"))
    blocks = [_HEAD.rstrip("\n"), "\n# ".join((_SOURCES.rstrip("\n"), *sources)), _RETRIEVAL]
    for index, entry in enumerate(DEFAULTS["memory"]["retrieval"]):
        selection = Selection("retriever", entry["type"], f"memory.retrieval[{index}]")
        lines = [*(f"{key} = {toml(value)}" for key, value in entry.items()), *_options(registry, selection)]
        blocks[-1] += "".join(f"\n# {line}" for line in ("[[memory.retrieval]]", *lines))
    for key, about in _ABOUT.items():
        kind, default = COMPONENTS[key].name, DEFAULTS["memory"][key]["type"]
        options = _options(registry, Selection(kind, default, f"memory.{key}"))
        lines = [f"{about}{_choices(registry, kind)}", f"type = {toml(default)}", *options]
        blocks.append("\n# ".join((f"[memory.{key}]", *lines)))
    for key, about in _ABOUT_SETTINGS.items():
        settings = (f"{name} = {toml(value)}" for name, value in DEFAULTS["memory"][key].items())
        blocks.append("\n# ".join((f"[memory.{key}]", about, *settings)))
    blocks += [_FORMATS.rstrip("\n"), _CONVERTERS.rstrip("\n"), _EXTENSIONS.rstrip("\n")]
    blocks.append("[plugins]\n# Plugins (or distributions) that must not be loaded.\n# disabled = []")
    return "\n\n".join(blocks) + "\n"


def _options(registry: Registry, selection: Selection) -> Iterator[str]:
    for name, value in option_defaults(registry, selection).items():
        yield f"{name} = {toml(value)}"


def _choices(registry: Registry, kind: str) -> str:
    names = registry.names(kind)
    return f" Installed: {', '.join(names)}." if names else ""
