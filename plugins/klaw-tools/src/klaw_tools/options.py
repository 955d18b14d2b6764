"""The options of ``[extensions.tools]``."""

from __future__ import annotations

from attrs import field, frozen, validators

from klaw_core.values.metadata import TRUST_CLASSES


@frozen
class ToolsOptions:
    """``trust`` is the lowest class of texts that a context takes: by default nothing foreign."""

    trust: str = field(default="agent", validator=validators.in_(TRUST_CLASSES))
