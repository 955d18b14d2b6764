"""Find models by name, for the plugins that run them, and read their manifests."""

from klaw_models.kinds import CrossEncoderManifest, EmbedderManifest, GgufEmbedderManifest, OnnxEmbedderManifest
from klaw_models.known import KNOWN, KnownFile, KnownModel
from klaw_models.manifest import MANIFEST, FileRecord, ModelManifest
from klaw_models.places import find_model
from klaw_models.reading import read_manifest

__all__ = [
    "KNOWN",
    "MANIFEST",
    "CrossEncoderManifest",
    "EmbedderManifest",
    "FileRecord",
    "GgufEmbedderManifest",
    "KnownFile",
    "KnownModel",
    "ModelManifest",
    "OnnxEmbedderManifest",
    "find_model",
    "read_manifest",
]
