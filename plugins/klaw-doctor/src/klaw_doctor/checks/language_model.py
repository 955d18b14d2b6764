"""The check of the language model."""

from collections.abc import Iterator

from klaw_core import Finding
from klaw_core.assembly import Assembly
from klaw_core.errors import as_klaw_error

_PLACE = "memory.language_model"


def check_language_model(assembly: Assembly) -> Iterator[Finding]:
    """Check that the language model, if one is configured, can be called."""
    try:
        model = assembly.language_model
        if model is not None:
            model.check()
    except Exception as error:  # noqa: BLE001  # a plugin may raise anything
        problem = as_klaw_error(error)
        if str(problem) in map(str, assembly.unusable):  # reported with the other components
            return
        what = f"the language model cannot be used: {problem.message}"
        yield Finding("language-model", "error", what, _PLACE, problem.hint or f"klaw config get {_PLACE}")
