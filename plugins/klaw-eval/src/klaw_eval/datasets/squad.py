"""SQuAD's JSON format (XQuAD and others), in which each question is answered by one paragraph.

Rajpurkar et al., *SQuAD: 100,000+ Questions for Machine Comprehension of Text* (EMNLP 2016). For retrieval, the
paragraphs of a file are the documents.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from klaw_core.cli.kit import counted
from klaw_eval.datasets.reading import OmittedQuestions, read_json, refuse_repeated
from klaw_eval.errors import DatasetError
from klaw_eval.values import Corpus, Dataset, Page, Question


class _QuestionRecord(msgspec.Struct, frozen=True):
    question: str
    id: str


class _Paragraph(msgspec.Struct, frozen=True):
    context: str
    qas: list[_QuestionRecord] = []


class _Article(msgspec.Struct, frozen=True):
    paragraphs: list[_Paragraph]
    title: str = ""


class _File(msgspec.Struct, frozen=True):
    data: list[_Article]


def read(path: Path) -> Dataset:
    """Return the paragraphs and questions of a file; equal paragraphs are one document. Raise DatasetError."""
    articles = read_json(path, _File, "a SQuAD file").data
    left_out = OmittedQuestions()
    pages: dict[str, Page] = {}
    questions = []
    for paragraph in (paragraph for article in articles for paragraph in article.paragraphs):
        page = pages.setdefault(paragraph.context, Page(f"{len(pages):04}", paragraph.context))
        questions += [
            Question(asked.id, asked.question, {page.id: 1.0}, side=page.id)
            for asked in paragraph.qas
            if not left_out.reason(asked.question, (page.id,))
        ]
    refuse_repeated(path, (question.id for question in questions), "questions")
    corpus = Corpus(path.stem, pages=tuple(pages.values()), questions=tuple(questions))
    return Dataset(path.stem, "document", f"one index of {counted(len(pages), 'paragraph')}", (corpus,), dict(left_out))


def read_bilingual(path: Path, other: Path) -> Dataset:
    """Return one index in two languages: every second paragraph is in the language of ``other``.

    The questions are those of ``path`` about exactly these paragraphs, so question and answer always have different
    languages. Translations are matched by the ids of the questions. Raise DatasetError.
    """
    first, second = (_pages_by_question(each) for each in (path, other))
    pages: dict[str, Page] = {}
    questions = []
    for page, asked in first:
        number = len(pages)
        translated = next((foreign for foreign, theirs in second if not asked.keys().isdisjoint(theirs)), None)
        if number % 2 and translated is not None:
            pages[page.id] = Page(page.id, translated.text)
            questions += [Question(name, text, {page.id: 1.0}, side=page.id) for name, text in asked.items()]
        else:
            pages[page.id] = page
    if not questions:
        raise DatasetError(f"{other} and {path} have different questions", hint="two files of one set, as XQuAD's are")
    name = f"{path.stem} about {other.stem}"
    corpus = Corpus(name, pages=tuple(pages.values()), questions=tuple(questions))
    return Dataset(name, "document", f"one index of {counted(len(pages), 'paragraph')} in two languages", (corpus,))


def _pages_by_question(path: Path) -> list[tuple[Page, dict[str, str]]]:
    """Return each paragraph of a file with its questions by id."""
    (corpus,) = read(path).corpora
    asked: dict[str, dict[str, str]] = {page.id: {} for page in corpus.pages}
    for question in corpus.questions:
        for name in question.gold:
            asked[name][question.id] = question.text
    return [(page, asked[page.id]) for page in corpus.pages]
