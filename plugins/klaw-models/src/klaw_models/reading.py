"""Read and validate a ``model.json`` from any source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from klaw_core import ModelCorruptError
from klaw_models.kinds import FIRST_KIND, KINDS
from klaw_models.manifest import FORMAT, MANIFEST, ModelManifest, repair_hint

#: The maximum size of a manifest, which usually has a few kilobytes.
_MAX_BYTES = 1_000_000


def read_manifest(directory: Path) -> ModelManifest:
    """Read the ``model.json`` in a directory. Raise ModelCorruptError."""
    path = directory / MANIFEST
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES)  # a longer file is truncated, and therefore invalid
        return parse_manifest(directory, json.loads(content.decode("utf-8")))
    except OSError as error:
        raise ModelCorruptError(f"cannot read {path}: {error.strerror}", hint=repair_hint(directory)) from error
    except KeyError as error:
        raise ModelCorruptError(f"{path} has no {error}", hint=repair_hint(directory)) from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = str(error.args[0]) if error.args else type(error).__name__
        raise ModelCorruptError(f"{path} is not a model manifest: {reason}", hint=repair_hint(directory)) from error


def parse_manifest(directory: Path, content: Mapping[str, Any]) -> ModelManifest:
    """Make a manifest from a JSON object.

    Raise ModelCorruptError for the format of a newer version of Klaw, and KeyError, ValueError, TypeError or
    AttributeError for an invalid manifest.
    """
    if content["format"] != FORMAT:
        from klaw_core import update_command

        raise ModelCorruptError(
            f"{directory / MANIFEST} has format {content['format']!r}; this version reads {FORMAT}",
            hint=update_command("klaw-models"),
        )
    kind = content.get("kind", FIRST_KIND)
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} is not one of {', '.join(KINDS)}")
    manifest = KINDS[kind].parse(directory, content)
    if missing := set(manifest.needed) - manifest.files.keys():
        raise ValueError(f"no SHA-256 of {', '.join(sorted(missing))}")
    return manifest
