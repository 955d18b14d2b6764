"""Measure which facts a context has: exactly the right ones for a message, and none if none is right.

    python benchmarks/beliefs.py [BELIEFS.json]

The protocol is that of PrecisionMemBench: every belief of a person is a fact with a scope, some have ended, some are
pinned (and do not count); each message has a scope and the set of beliefs that it needs. ``data/beliefs.json`` has 62
beliefs and 71 messages, 28 of which need none. Printed are the messages whose facts are exactly the right ones, the
precision and recall over them, and the messages without an answer whose context has no fact; then every other message.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from klaw_core import Condition, Filters, Memory
from klaw_facts import Facts

_DATA = Path(__file__).parent / "data" / "beliefs.json"


def main() -> None:
    """Store the beliefs, ask for a context for each message, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=_DATA)
    given = json.loads(parser.parse_args().path.read_text("utf-8"))
    exact = empty = shown_right = shown = wanted = 0
    wrong = []
    with tempfile.TemporaryDirectory() as place, Memory.open(data_dir=place) as memory:
        facts = memory.extension(Facts)
        names = {}
        for belief in given["beliefs"]:
            fact = facts.remember(belief["text"], tags=[belief["scope"]], is_pinned=belief.get("pinned", False))
            names[f"facts/{fact.id}"] = "" if belief.get("pinned") else belief["id"]
            if belief.get("ended"):
                facts.keeper.end(fact.id)
        for asked in given["questions"]:
            scope = Filters(metadata=(Condition("tags", "=", asked["scope"]),))
            context = memory.context(asked["message"], filters=scope)
            found = {names[item.source] for item in context.items if names.get(item.source)}
            right = set(asked["right"])
            if right:
                exact += found == right
                shown_right, shown, wanted = shown_right + len(found & right), shown + len(found), wanted + len(right)
            else:
                empty += not found
            if found != right:
                wrong.append((asked["message"], sorted(right), sorted(found)))
    needing = sum(bool(asked["right"]) for asked in given["questions"])
    print(f"exact {exact} of {needing}, precision {shown_right / shown:.2f}, recall {shown_right / wanted:.2f}")
    print(f"empty {empty} of {len(given['questions']) - needing}")
    for message, right, found in wrong:
        print(f"  {message}  right: {', '.join(right) or 'none'}; shown: {', '.join(found) or 'none'}")


if __name__ == "__main__":
    main()
