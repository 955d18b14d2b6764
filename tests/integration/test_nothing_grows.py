"""A program that lives long keeps nothing of a call after its end: what is counted are objects, not bytes."""

from __future__ import annotations

import gc
from types import FrameType, TracebackType

import pytest

from klaw_core import Chat, Message, NotFoundError
from klaw_testing.values import MOMENT

ROUNDS = 12
CHAT = Chat("telegram", "1")
MISSING = {"type": "not_installed"}
#: What cannot be used, as the tables of a configuration: the memory works without it, and each call may ask for it.
UNUSABLE = {
    "nothing": {},
    "the embedder": {"embedding": MISSING},
    "both embedders": {"embedding": {**MISSING, "fallback": [{"type": "nor_this"}]}},
    "the language model": {"language_model": MISSING},
    "a reranker": {"reranking": [MISSING]},
}


def live(memory, number):
    """Use a memory in each way that a program does all the time, and leave it as it was."""
    saved = memory.save(f"lantern {number} of the pier")
    newer = memory.save(f"lantern {number} of the harbour", supersedes=saved.path)
    said = memory.conversations.append(Message("user", f"the lantern {number} is red", MOMENT, meta=CHAT.meta))
    memory.search("lantern")
    memory.context(f"which lantern is {number}?")
    for path in (newer.path, f"{CHAT.name}/{said.id}"):
        memory.forget(path)
    with pytest.raises(NotFoundError):
        memory.get(saved.path)


def kept():
    """Return how many frames and tracebacks somebody keeps: each has the texts of a call."""
    gc.collect()
    return sum(isinstance(each, FrameType | TracebackType) for each in gc.get_objects())


@pytest.mark.parametrize("missing", UNUSABLE)
def test_no_call_leaves_frames_behind(home, missing):
    """A kept error that is raised again would keep the frames of each call, and with them what was forgotten."""
    with home.open(**UNUSABLE[missing]) as memory:
        counts = []
        for number in range(3 * ROUNDS):
            live(memory, number)
            if number % ROUNDS == ROUNDS - 1:
                counts.append(kept())
    assert counts[2] - counts[1] < ROUNDS, counts
