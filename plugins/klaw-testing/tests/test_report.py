"""What a contract did not test, the report names once for each class of tests."""

import subprocess
import sys

TESTS = """
import pytest
from klaw_testing.report import lacks

class TestFirst:
    def test_one(self): lacks("HeadingChunker")
    def test_two(self): lacks("HeadingChunker")
    def test_three(self): lacks("VariantChunker")

class TestSecond:
    def test_one(self): pytest.skip("another reason")
    def test_two(self): lacks("Index.compact")

class TestThird:
    def test_one(self): assert True
"""


LACKING = """
from klaw_testing.retriever import RetrieverContract

class TestMine(RetrieverContract):
    pass
"""


def run(tmp_path, text, *, expect=0):
    (tmp_path / "test_it.py").write_text(text)
    arguments = ["-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == expect, done.stdout
    return done.stdout


def test_the_report_names_each_missing_ability_once_for_each_class(tmp_path):
    lines = [line for line in run(tmp_path, TESTS).splitlines() if line.startswith("test_it.py::")]
    assert lines == [
        "test_it.py::TestFirst: HeadingChunker (2 laws), VariantChunker (1 law)",
        "test_it.py::TestSecond: Index.compact (1 law)",
    ]


def test_without_skipped_laws_the_report_says_nothing(tmp_path):
    assert "contracts" not in run(tmp_path, "def test_one(): assert True\n")


def test_a_contract_without_a_fixture_says_what_to_define(tmp_path):
    said = run(tmp_path, LACKING, expect=1)
    assert "define the fixture `retriever` in TestMine: Return the retriever under test." in said
    assert "NotImplementedError" not in said
