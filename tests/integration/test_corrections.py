"""Misspelled questions: the results of the corrected question are shown if those of the question do not fit."""

import pytest

NOTES = {
    "vpn.md": "# VPN\n\nThe WireGuard port is 51820 on the router.\n",
    "java.md": "# Java\n\nThe ConcurrentHashMap is used for the cache of sessions.\n",
    **{f"garden-{number}.md": f"# Bed {number}\n\nThe garden has bed {number} of roses.\n" for number in range(20)},
}


@pytest.fixture
def memory(make_home):
    home = make_home("sqlite")  # the words of the store in RAM suggest nothing
    for name, text in NOTES.items():
        home.write(name, text)
    with home.open(embedding={"type": "none"}) as opened:
        opened.index(home.notes)
        yield opened


@pytest.mark.parametrize(
    ("question", "path", "corrected"),
    [
        ("wirguard prot", "notes/vpn.md", "wireguard prot"),
        ("ConcurentHashMap", "notes/java.md", "concurrenthashmap"),
        ("wiregard prot of the rooter", "notes/vpn.md", "wireguard prot of the router"),
    ],
)
def test_a_misspelled_question_finds_what_the_corrected_one_finds(memory, question, path, corrected):
    found = memory.search(question)
    assert found[0].path == path
    assert not found[0].is_weak
    if found.notices:  # the parts of a name may be enough to find it
        (notice,) = found.notices
        assert notice.casefold() == f"nothing fits {question!r}; showing results for {corrected!r}".casefold()
        assert found.hints == found.notices
        assert found.results == memory.search(corrected).results


def test_the_notice_is_there_where_the_words_alone_find_nothing(memory):
    assert "showing results for 'wireguard'" in " ".join(memory.search("wirguard").notices)


@pytest.mark.parametrize("question", ["wireguard port", "which port has the router?"])
def test_a_question_that_is_answered_is_not_corrected(memory, question):
    found = memory.search(question)
    assert found[0].path == "notes/vpn.md"
    assert found.notices == ()


def test_a_correction_that_fits_no_better_is_only_offered(memory):
    found = memory.search("zzzz gardn")  # the corrected word is in nearly every note
    assert any(notice.startswith("did you mean: ") for notice in found.notices)
    assert not any("showing results for" in notice for notice in found.notices)


def test_a_secret_in_a_misspelled_question_is_not_repeated(memory):
    secret = "ghp_" + "a1B2" * 9
    found = memory.search(f"wirguard prot {secret}")
    notices = " ".join((*found.notices, *found.hints))
    assert "wireguard" in notices
    assert secret not in notices
