"""Find plugins, keep what they offer, and say what is wrong with the others."""

from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import KINDS, Offer, Plugin, Registry, install_command
from klaw_core.plugins.remembered import installed

__all__ = ["KINDS", "Offer", "Plugin", "Registry", "discover", "install_command", "installed"]
