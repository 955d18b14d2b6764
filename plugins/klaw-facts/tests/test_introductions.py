"""Introductions and plain statements of a slot, and sentences that look like them and state none."""

from datetime import UTC, datetime

import pytest

from klaw_facts.extracting import rule_extractor
from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.extracting.extraction import make_fact
from klaw_facts.extracting.slots import slot_of
from klaw_facts.values import Fact

MONDAY = datetime(2026, 2, 23, 10, tzinfo=UTC)

STATED = {
    "I'm Susan": ("name", "Susan"),
    "I’m Susan Miller.": ("name", "Susan Miller"),
    "I am Susan, nice to meet you": ("name", "Susan"),
    "Hi, I'm Susan!": ("name", "Susan"),
    "Hello there! I'm Peter, and I need some help.": ("name", "Peter"),
    "Hey, I'm Olga": ("name", "Olga"),
    "Nice to meet you, I'm Ahmed.": ("name", "Ahmed"),
    "Hello, my name is Emily": ("name", "Emily"),
    "By the way, I'm Jean-Luc": ("name", "Jean-Luc"),
    "Good morning, I am Maria de Souza": ("name", "Maria de Souza"),
    "Я Анна": ("name", "Анна"),
    "Привет, я Анна Ковалёва.": ("name", "Анна Ковалёва"),
    "Здравствуйте! Я — Сергей": ("name", "Сергей"),
    "Меня зовут Ольга": ("name", "Ольга"),
    "Привет, меня зовут Иван": ("name", "Иван"),
    "我是王芳": ("name", "王芳"),
    "你好，我是李晓明。": ("name", "李晓明"),
    "大家好！我是张伟，很高兴认识大家": ("name", "张伟"),
    "你好，我叫李明": ("name", "李明"),
    "Я врач": ("job_title", "врач"),
    "我是医生": ("job_title", "医生"),
    "我是程序员": ("job_title", "程序员"),
    "I was promoted to team lead": ("job_title", "team lead"),
    "I've been promoted to Senior Engineer last week!": ("job_title", "Senior Engineer"),
    "I just got promoted to head of sales": ("job_title", "head of sales"),
    "I got promoted to assistant manager at Acme.": ("job_title", "assistant manager"),
    "I was recently promoted to a senior product manager": ("job_title", "senior product manager"),
    "I was promoted to director in March": ("job_title", "director"),
    "Меня повысили до руководителя отдела": ("job_title", "руководителя отдела"),
    "Меня недавно повысили до старшего инженера в марте": ("job_title", "старшего инженера"),
    "меня повысили до тимлида": ("job_title", "тимлида"),
    "我上个月升职为项目经理了": ("job_title", "项目经理"),
    "我被提拔为主管": ("job_title", "主管"),
    "The deadline has been pushed to May 3": ("deadline:main", "May 3"),
    "our deadline is now May 3": ("deadline:main", "May 3"),
    "The deadline was moved from April 2 to May 3.": ("deadline:main", "May 3"),
    "The deadline has just been pushed back to 3 May 2026": ("deadline:main", "3 May 2026"),
    "The deadline was pushed back to 3 May 2026": ("deadline:main", "3 May 2026"),
    "The gate deadline has been moved to March 19": ("deadline:gate", "March 19"),
    "Срок перенесли на 3 мая": ("deadline:main", "3 мая"),
    "срок сдачи отчёта перенесли на 3 мая 2026": ("deadline:сдачи отчёта", "3 мая 2026"),
    "Дедлайн теперь 3 мая": ("deadline:main", "3 мая"),
    "We upgraded to Postgres 17": ("version:postgres", "17"),
    "We've just upgraded to Python 3.13.": ("version:python", "3.13"),
    "We upgraded Postgres from 15 to 17": ("version:postgres", "17"),
    "I upgraded to iOS 18 yesterday": ("version:ios", "18"),
    "мы перешли на Postgres 17": ("version:postgres", "17"),
    "Мы обновились до Django 5.1": ("version:django", "5.1"),
    "我们升级到Postgres 17了": ("version:postgres", "17"),
    "I got a job at Siemens": ("employer", "Siemens"),
    "I just landed a new job at Siemens Energy": ("employer", "Siemens Energy"),
}
NOT_STATED = """
I'm tired
I'm Tired.
I'm Italian
I am German and proud of it
I'm in Lyon
I'm Susan's brother
I'm Susan’s brother
I'm Susan Miller's boss
I'm sure
I'm Sure!
I'm Done
I'm OK
I'm Back!
I'm Christian
I'm Jewish
I'm Gemini
I'm Team Edward
I'm Batman
I'm May
I'm Sorry
I'm Susan if you like
I'm not Susan
Am I Susan?
I'm Susan for Halloween
I'm Mark-ing the tests
I'm Marketing
I'm Thomasina
I'm Adam-ant
I'm Jack of all trades
I'm Paris bound
I'm Alexander technique certified
"I'm Susan," she said
He said I'm Susan
Maybe I'm Susan
I'm an Anna
I wish I'm Emma
I am Legend
I'm CEO
I'm with Susan
Я из Москвы
Я рад
Я Лев по гороскопу
Я Лев
Я Москвич
Я не Анна
Я брат Анны
Я Анны не видел
Я Роман читаю
我是王芳的哥哥
我是王子
我是高中生
我是金牛座
我是江苏人
我是学生
我是韩国人
我是周末来的
我是孙子
我是谁
我不是王芳
我是张家口人
I was promoted by accident
I was promoted to tears
I was promoted to the Premier League
I was promoted to the next round
I was promoted
She was promoted to team lead
I was almost never promoted to team lead
I might be promoted to team lead
I hope I am promoted to director
My team was promoted to the leader board
I was promoted to lead a team
меня повысили
меня не повысили до начальника
Его повысили до директора
мне повысили зарплату до 100 000
The deadline has been pushed to next week
The deadline is tight
The deadline might be pushed to May 3
Has the deadline been pushed to May 3?
The line has been pushed to May 3 metres
If the deadline is moved to May 3, we win
We upgraded to first class
We upgraded to Room 12
We upgraded to Premium 3 years ago
We upgraded to Business 2 weeks ago
We moved to Apartment 5
We upgraded to 3 screens
We have not upgraded to Postgres 17
We want to upgrade to Postgres 17
Should we upgrade to Postgres 17?
They upgraded to Postgres 17
We updated Chapter from 3 to 4
мы перешли на Zoom 5 лет назад
мы не перешли на Postgres 17
мы перешли на второй курс
我们没有升级到Postgres 17
I'm also considering using Sass v1.56.1 for modular CSS
I got a job
I did not get a job at Siemens
She got a job at Siemens
срок годности йогурта — 3 дня
""".strip().split("\n")


@pytest.mark.parametrize("text", STATED)
def test_what_people_state_of_themselves_is_recognised(text):
    assert slot_of(text) == STATED[text]


@pytest.mark.parametrize("text", NOT_STATED)
def test_what_only_looks_like_it_is_not(text):
    assert slot_of(text) is None


@pytest.mark.parametrize("text", STATED)
@pytest.mark.parametrize("before", ["", "Ok! ", "Hello there. "])
def test_a_statement_of_a_slot_always_becomes_a_fact(text, before):
    message = SourceMessage("t_1", "m1", "user", "user", before + text, MONDAY)
    found = [make_fact(candidate, [message]) for candidate in rule_extractor.extract([message])]
    slots = [(fact.slot, fact.value) for fact in found if isinstance(fact, Fact) and fact.slot]
    assert slots == [STATED[text]]
