"""Any bytes in any place: only KlawErrors come out, answers are sound, files that are broken stay as they are.

In the profile ``thorough`` every target gets 5,000 examples, otherwise some dozens.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaw_testing.laws import scaled
from klaw_testing.markdown import hard_documents, markdown_documents

THOROUGH = settings().max_examples > 1000
_TOKENS = {
    "markdown": "# \n- ```|>*_`[]()<!--\t  1. \\\r\x00\u2028👩🇷🇺",
    "jsonl": '{}[]":,\n\\u0 e9-truefalsnidrolcontexps.TZ',
    "queries": "\"'*()^:-+ANDORNEAR/{}. \0\ud800记忆ß%_;,",
    "configs": "[]{}=.,\"'\n #-_memorychunkigtypelugsdab019\t${}",
    "core_memory": '{}[]":,useragnt \\u0',
}


def budget(few: int):
    return settings(
        max_examples=5_000 if THOROUGH else scaled(few),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


@st.composite
def damaged(draw, seeds):
    """Bytes that were sound once: pieces are cut out, doubled, changed, swapped between seeds, or made many."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        end = min(at + draw(st.integers(0, 40)), len(data))
        change = draw(st.sampled_from(["cut", "double", "bytes", "seed", "flip", "many"]))
        if change == "cut":
            del data[at:end]
        elif change == "double":
            data[at:at] = data[at:end]
        elif change == "bytes":
            data[at:end] = draw(st.binary(max_size=8))
        elif change == "seed":
            other = draw(st.sampled_from(seeds))
            data[at:at] = other[: draw(st.integers(0, len(other)))]
        elif change == "flip" and at < len(data):
            data[at] ^= draw(st.integers(1, 255))
        elif change == "many":
            data[at:at] = data[at:end] * draw(st.sampled_from([2, 50, 300]))
    return bytes(data)


def odd(name, seeds):
    texts = st.text(_TOKENS[name], max_size=80) if name in _TOKENS else st.nothing()
    return damaged(seeds) | st.binary(max_size=80) | texts.map(lambda text: text.encode("utf-8", "surrogatepass"))


@given(st.data())
@budget(60)
def test_a_note_of_any_bytes(make_target, data):
    target = make_target("markdown")
    notes = (markdown_documents() | hard_documents()).map(lambda text: text.encode("utf-8", "surrogatepass"))
    target.run(data.draw(notes | odd("markdown", target.seeds)))


@given(st.data())
@budget(60)
def test_journals_of_any_bytes(make_target, data):
    target = make_target("jsonl")
    target.run(data.draw(odd("jsonl", target.seeds)))


@given(st.data())
@budget(80)
def test_any_text_as_a_query_and_as_a_path(make_target, data):
    target = make_target("queries")
    target.run(data.draw(odd("queries", target.seeds)))


@pytest.mark.parametrize("name", ["imports", "configs", "core_memory", "manifest", "tokenizer"])
@given(data=st.data())
@budget(100)
def test_files_of_any_bytes(make_target, name, data):
    target = make_target(name)
    target.run(data.draw(odd(name, target.seeds)))
