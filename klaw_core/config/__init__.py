"""Read the configuration: TOML files and the environment, checked strictly, every problem at once."""

from klaw_core.config.load import load_config
from klaw_core.config.model import AUTO, Config, Selection, named_embedding
from klaw_core.config.options import build_options

__all__ = ["AUTO", "Config", "Selection", "build_options", "load_config", "named_embedding"]
