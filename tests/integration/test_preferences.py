"""What extensions prefer for a question moves results, and never prevents them."""

import pytest

from klaw_core import LiveComponent, Memory, PluginError, Preference, PreferringExtension, load_config

TEXTS = ("the red boat in the harbour", "the blue boat in the harbour", "a boat")


class Blue(PreferringExtension):
    name = "blue"

    def __init__(self, weight=1.0, holds=lambda stored: "blue" in stored.chunk.text):
        self.asked = []
        self.preference = Preference(weight, holds)

    def prefer(self, question, /):
        self.asked.append(question)
        if question == "what is a favourite boat":
            raise RuntimeError("no idea")
        return self.preference


def search(config, blue, question):
    live = LiveComponent("extension", "blue", blue, questions="favourite|best")
    with Memory.open(config, components=[live]) as memory:
        for text in TEXTS:
            memory.save(text)
        results = memory.search(question)
        return [result.content for result in results], results


@pytest.fixture
def config(tmp_path):
    return load_config(data_dir=tmp_path, overrides={"memory": {"embedding": {"type": "none"}}})


def test_it_is_asked_only_about_its_questions(config):
    blue = Blue()
    found, _ = search(config, blue, "boat in the harbour")
    assert (set(found), blue.asked) == (set(TEXTS), [])


def test_what_it_prefers_comes_first_and_is_explained(config):
    blue = Blue()
    found, results = search(config, blue, "my Favourite red boat in the harbour")
    assert (found[0], blue.asked) == (TEXTS[1], ["my Favourite red boat in the harbour"])
    (part,) = [part for part in results[0].explain if part.component == "blue"]
    assert (part.rank, part.weight) == (1, 1.0)
    assert results[0].score == pytest.approx(sum(part.value for part in results[0].explain))
    assert not [part for result in results[1:] for part in result.explain if part.component == "blue"]


@pytest.mark.parametrize(("question", "relevance"), [("favourite red boat", 0.5), ("favourite blue boat", 0.9)])
def test_what_it_prefers_has_at_least_its_relevance(config, question, relevance):
    blue = Blue()
    _, (as_it_is, *_) = search(config, blue, question)
    blue.preference = Preference(1.0, blue.preference.holds, relevance=0.5)
    _, (least, *others) = search(config, blue, question)
    assert (least.content, least.relevance) == (TEXTS[1], max(0.5, as_it_is.relevance))
    assert (as_it_is.relevance > relevance) == (relevance == 0.9)
    assert others[0].relevance != 0.5


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_a_preference_without_weight_leaves_the_order(config, weight):
    found, results = search(config, Blue(weight), "the best red boat in the harbour")
    assert (found[0], results.notices) == (TEXTS[0], ())


def test_a_preference_that_raises_leaves_the_order_and_a_notice_says_so(config):
    found, results = search(config, Blue(holds=lambda stored: stored / 0), "the best red boat in the harbour")
    assert found[0] == TEXTS[0]
    (notice,) = results.notices
    assert notice.startswith("the extension 'blue'")


def test_an_extension_that_raises_ends_no_search_and_is_not_broken(config):
    live = LiveComponent("extension", "blue", Blue(), questions="favourite|best")
    with Memory.open(config, components=[live]) as memory:
        for text in TEXTS:
            memory.save(text)
        assert {result.content for result in memory.search("what is a favourite boat")} == set(TEXTS)
        assert memory.status().problems == ()
        assert memory.search("the best red boat in the harbour")[0].content == TEXTS[1]


def test_questions_that_are_no_pattern_are_refused():
    with pytest.raises(PluginError, match="'blue': questions is not a regular expression"):
        LiveComponent("extension", "blue", Blue(), questions="(")
