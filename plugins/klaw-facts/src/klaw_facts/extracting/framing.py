"""What a message says about those after it: that they are a text to work on, somebody else's words, or a play.

A statement after such a message may be nobody's: it gives no slot. English, Russian and Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from klaw_journals import Message
from klaw_words.lazy_patterns import lazy_pattern

#: How many earlier messages of a chat are looked at.
EARLIER = 200
# For how long a message is about those after it, and one that ends with a colon.
_LASTS, _ANNOUNCES_FOR = timedelta(hours=6), timedelta(minutes=10)
# A message says what it is about at its begin; an assistant asks at the end of its own.
_BEGIN, _ASKED = 2000, 300

_KIN = (
    r"(?:mother|father|mom|mum|dad|wife|husband|partner|son|daughter|brother|sister|friend|boss|colleague|neighbou?r"
    r"|girlfriend|boyfriend)"
)
_TEXT = r"(?:messages?|sentences?|phrases?|lines?|texts?|words?|paragraphs?|essays?|letters?|statements?|answers?)"
_MADE_UP = (
    r"(?:story|stories|novel|tale|fairy tale|play|scene|screenplay|sketch|dialog(?:ue)?|poem|song|joke|exercise|game"
    r"|campaign|adventure|simulation|scenario)"
)
_WORKED_ON = (
    r"(?:^|[.!?:,\n]\s*|\b(?:please|you|and|then|just|help me)\s+)translate\b|\btranslate\b[^.!?\n]{0,60}\binto\b"
    r"|\btranslation (?:of|into|for)\b|\b(?:proofread|rephrase|paraphrase|reword)\w*\b|\bgrammar\b"
    r"|\b(?:repeat|say)(?: \w+)? after me\b|\b(?:correct|check|fix|improve|rewrite|edit|polish|analy[sz]e|summari[sz]e"
    r"|classify|echo|repeat) (?:the|my|this|these|that|his|her|their|each|every|all|following|next|what)\b"
    rf"[^.!?\n]{{0,40}}\b(?:english|spelling|writing|write|{_TEXT})\b"
    rf"|\b(?:is|are) (?:this|these|that|the (?:next|following)) {_TEXT}\b"
    rf"|\b(?:next|following|coming) {_TEXT}\b|\b{_TEXT} (?:follows?|below)\b|\btest {_TEXT}\b"
    r"|\bthis is (?:just |only )?an? (?:test|example)\b"
)
_PLAYED = (
    r"\brole-? ?play\w*|\blet['’]?s (?:play|pretend|imagine|act|say (?:that )?(?:i|you|we))\b|\bpretend\w*\b"
    r"|\bmake[- ]believe\b|(?<!\bi )\b(?:imagine|suppose|assume) (?:that )?(?:i|you|we|he|she|they|an?|the)\b"
    r"|\bact(?:ing)? (?:as|like)\b|\bin[- ]character\b"
    r"|\b(?:my|your|the|our|his|her|an?) (?:\w+ )?(?:character|hero|heroine|protagonist|narrator|persona|avatar)\b"
    rf"|\b(?:in|for|of|writing|write|draft) (?:(?:the|an?|my|our|this|your|his|her) )?(?:\w+ )?{_MADE_UP}\b"
    r"|\b(?:rehears\w+|mock interview|practi[sc]\w+ (?:for )?(?:the|an?|my|our) (?:\w+ )?interview)\b"
    r"|\b(?:fictional|fan ?fiction|hypothe\w+)\b"
    r"|\byou (?:are|play|be) (?:now )?(?:an?|the|my) [^.!?\n]{1,40}\b(?:and|while) i(?: am|['’]m| play|['’]ll be)\b"
    r"|\bi(?:['’]ll| will) (?:be|play) (?:an?|the) \w+"
    r"|\b(?:is|are|be|tell(?:ing)?(?: you)?) (?:all |only )?(?:an? )?(?:lies?|untrue|false)\b"
)
_OF_OTHERS = (
    r"\b(?:wrote|texted|messaged|emailed|posted|sent|told|said)\b[^.!?\n]{0,25}"
    r"\b(?:this|the following|that)\s*[.:!]?\s*$|\bforwarded\b|\bi quote\b|\bquot(?:ing|e from)\b"
    r"|\b(?:from|on|using|with|in) (?:\w+['’]s?|his|her|their) (?:\w+ )?(?:cv|resume|résumé|profile|bio|letter|e-?mail"
    r"|diary|account|phone|laptop|computer|chat)\b"
    rf"|\b(?:i am|i['’]m|this is|it['’]s|it is)[^.!?\n]{{0,20}} (?:\w+['’]s|his|her|their) {_KIN}\b|\b{_KIN} here\b"
    rf"|\b(?:fill|answer|write|speak|reply|sign)\b[^.!?\n]{{0,40}}\b(?:for|as) (?:your|my|his|her|\w+['’]s) {_KIN}\b"
    rf"|\b(?:what|where|who|when|how)\b[^.!?\n]{{0,30}}\byour {_KIN}\b"
)
_RUSSIAN = (
    r"\b(?:перевед|перевод)и(?:те)?\b|\b(?:исправь|проверь|отредактируй|перепиши|перефразируй|повтори)\w*"
    r"|\bролев\w+ игр\w+|\b(?:притвор|вообраз)\w*|\bпредставь(?:те)?\b"
    r"|\bдавай(?:те)? (?:поиграем|сыграем|притворимся|представим)|\b(?:в|из|для) (?:\w+ )?(?:роман\w*|рассказ\w*"
    r"|сказк\w*|пьес\w*|сценари\w*|игр[еы])\b|\bперсонаж\w*|\bгеро(?:й|я|е|ем|иня|ини)\b|\bпереслан\w*"
    r"|\bследующ\w+ (?:сообщени|предложени|фраз)\w*|\bс телефона \w+"
)
_CHINESE = (
    r"(?:请|帮我|把)[^。\n]{0,10}翻译|翻译(?:一下|成|下面|这)|改正|修改|润色|语法|跟我(?:说|读)|扮演|假装|假设|想象一下"
    r"|(?:小说|故事|游戏)(?:里|中)|写小说|剧本|台词|主角|转发|下一(?:句|条)|用\w{1,6}的(?:手机|账号)"
)
_FRAME = lazy_pattern(f"{_WORKED_ON}|{_PLAYED}|{_OF_OTHERS}|{_RUSSIAN}|{_CHINESE}", re.IGNORECASE)
_ANNOUNCES = lazy_pattern(r"[:：]\s*$")


def framed(messages: Iterable[Message]) -> Iterator[bool]:
    """Yield for each message of a chat, in their order, whether an earlier one says that it may be nobody's words.

    What a person says lasts for some hours. What an assistant asks concerns the messages up to its next one.
    """
    until = datetime.min.replace(tzinfo=UTC)
    is_asked = False
    for message in messages:
        yield is_asked or message.ts <= until
        text = message.content
        if message.role == "assistant":
            is_asked = _FRAME.search(text[-_ASKED:]) is not None
        elif _FRAME.search(text[:_BEGIN]):
            until = max(until, message.ts + _LASTS)
        elif _ANNOUNCES.search(text[-_ASKED:]):
            until = max(until, message.ts + _ANNOUNCES_FOR)
