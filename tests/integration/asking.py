"""The modules of Klaw that search a memory, found in their code."""

import ast
from pathlib import Path

# What holds a memory, or searches like one, by the last name before the call.
ASKED = ("memory", "host", "facts", "index", "get_memory()")


def asking_modules() -> set[str]:
    """Return the modules that search a memory, or ask it for a context."""
    root = Path(__file__).parents[2]
    asks = {"search", "search_for", "context"}
    found = set()
    for file in [*root.glob("klaw_core/cli/**/*.py"), *root.glob("plugins/*/src/**/*.py")]:
        calls = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Attribute)]
        if any(call.attr in asks and ast.unparse(call.value).endswith(ASKED) for call in calls):
            inside = file.parts[file.parts.index("src") + 1 :] if "src" in file.parts else file.relative_to(root).parts
            found.add(".".join(inside).removesuffix(".py"))
    return found
