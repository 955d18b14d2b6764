"""A question about an identifier that no chunk contains has no answer, however similar the others are."""

import pytest

from klaw_core import Memory, NewDocument, load_config
from klaw_words.identifiers import identifiers

# The text with an identifier, a question about it, and the same question about another of its kind.
KINDS = {
    "error code": (
        "ERR_TLS_42 means that the certificate has expired.",
        "what does {} mean",
        "ERR_TLS_42",
        "ERR_TLS_43",
    ),
    "error number": ("The scanner shows error 503 when it is too hot.", "why is there error {}", "503", "517"),
    "ticket": ("OPS-1741: the nightly backup fails on Sundays.", "what is {} about", "OPS-1741", "OPS-1747"),
    "ticket in small letters": ("OPS-2741: the printer needs toner.", "what was wrong in {}", "ops-2741", "ops-2749"),
    "issue": ("Issue #1834 asks for dark mode on the page.", "what does #{} ask for", "1834", "1838"),
    "invoice": ("Invoice 77214 from the plumber is paid.", "who sent invoice {}", "77214", "77219"),
    "version": ("In version 4.7.2 the importer became faster.", "what became faster in v{}", "4.7.2", "4.7.3"),
    "version with a letter": ("v2.9 drops support for the old format.", "what does {} drop", "v2.9", "v2.8"),
    "telephone number": ("The dentist's number is 555-0142.", "whose number is {}", "555-0142", "555-0143"),
    "long telephone number": ("Call the landlord: 0171 234 5678.", "landlord {}", "01712345678", "01712345679"),
    "vulnerability": ("CVE-2023-38545 concerns the proxy of curl.", "is {} fixed", "CVE-2023-38545", "CVE-2023-38546"),
    "commit": ("7f3a9c2e81b04d changed the parser of dates.", "what did {} change", "7f3a9c2e", "7f3a9d2e"),
    "constant": ("MAX_RETRY_COUNT is 5, because the line is bad.", "what is {}", "MAX_RETRY_COUNT", "MAX_RETRY_DELAY"),
    "function": (
        "read_manifest returns the parts of a backup.",
        "what does {} return",
        "read_manifest",
        "read_manifests2",
    ),
    "method": ("closeAllWindows also saves the drafts.", "what does {} save", "closeAllWindows", "closeAllDoors"),
    "class": ("ConcurrentRingBuffer keeps the last lines.", "{}", "ConcurrentRingBuffer", "ConcurrentTreeBuffer"),
    "serial number": ("The boiler has serial number VK8842X1.", "which device is {}", "VK8842X1", "VK8842X7"),
    "flight": ("LH1138 to Lisbon leaves from gate B.", "where does {} go", "LH1138", "LH1139"),
    "address": ("The printer has the address 192.168.1.17.", "what is at {}", "192.168.1.17", "192.168.1.18"),
    "port": ("The metrics are on port 9187.", "what runs on port {}", "9187", "9188"),
}
NO_IDENTIFIERS = (
    """
who moved to Berlin in 2023|what happened on 2026-03-01 at 12:30|the meeting on 5.3.2026|3-day trip for 20-year-olds
how do I push to GitHub|which iPhone has macOS|python3 on windows11|a flat for 1,250,000 or $45000|100000 people
the 19th century and the 1990s|a 30min call at 10am|16GB of RAM and a 1080p TV|the top-10 of COVID news|it is 3.14159
the 2019-2020 season|24/7 support|/etc/hosts.d/my_file_1|bob_2@example.com|x=1|half of 50%|e.g. T-shirts|Q3 and B12
""".replace("\n", "|")
    .strip("|")
    .split("|")
)


@pytest.fixture(scope="module", params=["exact", "packed"])
def memory(request, tmp_path_factory):
    tables = {"retrieval": [{"type": "sqlite-vec"}, {"type": "fts5", "search": request.param}]}
    directory = tmp_path_factory.mktemp("identifiers")
    with Memory.open(load_config(data_dir=directory, overrides={"memory": tables}, environment={})) as opened:
        opened.add([NewDocument(kind, text) for kind, (text, *_) in KINDS.items()])
        yield opened


@pytest.mark.parametrize("kind", KINDS)
def test_an_identifier_of_the_memory_is_found_with_confidence(memory, kind):
    text, question, known, _ = KINDS[kind]
    found = memory.search(question.format(known))
    assert found[0].content == text
    assert not found[0].is_weak
    assert found.hints == ()


@pytest.mark.parametrize("kind", KINDS)
def test_an_identifier_that_is_nowhere_is_said_to_be_nowhere_and_no_result_is_confident(memory, kind):
    _, question, _, unknown = KINDS[kind]
    found = memory.search(question.format(unknown))
    assert any(hint.startswith("nothing contains '") and unknown in hint for hint in found.hints)
    assert set(found.hints) <= set(found.notices)
    assert all(result.is_weak for result in found)


def test_an_identifier_of_one_collection_is_not_nowhere(memory):
    memory.add([NewDocument("other", "ERR_TLS_99 means that the clock is wrong.")], collection="other")
    found = memory.search("what does ERR_TLS_99 mean", collection=["memory", "other"])
    assert [result.is_weak for result in found if "ERR_TLS_99" in result.content] == [False]
    assert found.hints == ()
    assert memory.search("what does ERR_TLS_99 mean", collection="memory").nothing_fits


def test_without_an_index_of_words_nothing_is_said_to_be_nowhere(memory):
    assert not [hint for hint in memory.search("what does ERR_TLS_43 mean", mode="vector").hints if "contains" in hint]


def test_a_file_name_is_an_identifier_that_is_found(tmp_path):
    with Memory.open(load_config(data_dir=tmp_path / "data", environment={"KLAW_EMBEDDER": "none"})) as memory:
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "report_2024_q3.md").write_text("# Report\n\nThe third quarter was good.\n")
        memory.index(tmp_path / "notes")
        for name in ("report_2024_q3.md", "report_2024_q3"):
            assert memory.search(name).hints == ()
        assert "nothing contains 'report_2024_q4.md'" in memory.search("report_2024_q4.md").hints


@pytest.mark.parametrize("question", NO_IDENTIFIERS)
def test_what_people_also_write_in_other_ways_is_no_identifier(question):
    assert list(identifiers(question)) == []
