"""What a message says about others: that those after it are a play, a text to work on, or somebody else's words.

Or that the one before it was a joke, or a mistake. A statement there may be nobody's: it gives no slot. English,
Russian and Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from klaw_journals import Message
from klaw_journals.messages import speaker_of
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
_OTHER_SPEAKER = (
    r"\b(?:this is|it['’]s|it is) (?-i:[A-Z]\w+) (?:now|again|speaking)\b|^(?-i:[A-Z]\w+) speaking\b"
    r"|\b(?:speaking|typing|writing) for (?-i:[A-Z])|\bon behalf of\b"
    r"|\b(?:giving|handing|passing) (?:the|my) (?:phone|keyboard|laptop) to\b"
    r"|\bwants to (?:talk|speak|chat|write) (?:to|with) you\b|\bsay (?:hi|hello) to (?-i:[A-Z])"
)
# What concerns the next messages only: their language, a test, something read aloud, an old life or a wish.
_NEXT = (
    r"\b(?:uppercase|lowercase|passive voice|tokeni[sz]e|pronounce|spell[- ]?check|dictat\w+|aloud"
    r"|how do (?:you|i|we) say"
    r"|what language|(?:complete|finish|continue) (?:the|this|that|my)|(?:convert|turn)(?: it| this| that)? (?:in)?to"
    r"|make (?:it|this) (?:a |the )?(?:passive|question|past|polite|formal|shorter)|count the"
    r"|how many (?:letters|words|characters|syllables)|example (?:sentence|text)|(?:type|say|write) (?:any|some)thing"
    r"|any sentence|(?:typing|voice|sound|microphone|mic|speech) (?:test|check)|testing|drill|chorus|lyrics|verse"
    r"|slogan|caption|tongue twister|following (?:input|output|code|string)|(?:read|reading) (?:\w+ )?the (?:letter"
    r"|note|card)"
    r"|(?:old|my|her|his|this|your) (?:\w+ )?(?:diary|bio|letter|cv|resume|profile|post)|diary|affirmations?"
    r"|manifest\w*|flashback|throwback|vision board|(?:plans?|goals?|dreams?) for (?:19|20)\d\d"
    r"|found (?:this|a) (?:letter|note|text|message|card|diary|book|postcard)|truths? and"
    r"|(?:on|fill in|for) the (?:form|application|survey)|(?:the|that|this) sign|alibi|tell the (?:police|judge)"
    r"|password|movie|film|what (?:did|does|do|would|will) \w+ (?:say|write|tell)|(?:she|he|they) says?"
    r"|if you (?:were|had|could)|would you (?:live|work|be)|should (?:i|it|we|he|she) (?:say|write|put|text|send)"
    r"|(?:write|send|reply|answer|text)(?: \w+){0,3} (?:message|post|mail|email|e-mail|note|tweet|reply) (?:for|to)"
    r" (?:me|my|her|him|(?-i:[A-Z])\w+))\b"
    r"|^is (?:it|this|that) [\"“'‘«]|\bчто (?:значит|означает)\b|\bкак (?:это|будет|сказать|по-)"
    r"|\bпо-(?:русски|английски)\b|\bпроверка (?:связи|микрофона)\b"
    r"|(?:这|那)(?:句话|句|个词|是)?什么意思|(?:这|那)(?:句话|句)(?:对|正确)吗|怎么(?:说|读|念)|测试(?:一下)?(?:麦克风|话筒)"
)
_FRAME = lazy_pattern(f"{_WORKED_ON}|{_PLAYED}|{_OF_OTHERS}|{_OTHER_SPEAKER}|{_RUSSIAN}|{_CHINESE}", re.IGNORECASE)
_SENTENCE_ENDS = lazy_pattern(r"[.!?。！？\n]+")
_FRAME_OF_NEXT = lazy_pattern(_NEXT, re.IGNORECASE)
# For how long a statement can be taken back, and how long what does so is at most.
_BACK_WITHIN, _SHORT = timedelta(minutes=10), 80
_OPENING = (
    r"(?:(?:lol|ha|oops|ups|sorry|wait|hold on|hm+|well|actually|ok|okay|um|no|nope|ой|нет|упс|哈|哎呀|不)"
    r"[ ,.!…，。！]*)*"
)
# What takes back the last statement of its speaker, whatever was answered to it.
_JOKE = (
    r"(?:i(?:['’]m| am| was)? ?)?(?:just |only )*(?:kidding|joking|lying|testing|messing with you)"
    r"|(?:that|this|it)(?: was|['’]s| is|['’]s not| is not| was not| isn['’]t| wasn['’]t)?"
    r"(?: just| only)? (?:a |an |my )?(?:joke|lie|typo|mistake|test|joking|wrong|not true|untrue|false|nonsense"
    r"|autocorrect|not me|(?:\w+ ){0,2}(?:typing|writing))"
    r"|i (?:lied|made that up|misspoke|mistyped)|i take (?:that|it) back|not true"
    r"|(?:scratch|strike|undo|delete|disregard|ignore|forget) (?:that|this|it|what i (?:said|wrote)"
    r"|(?:my|the) (?:last|previous) (?:message|one|line|sentence))"
    r"|wrong (?:chat|window|person|thread|conversation|tab)(?:,? sorry)?|(?:sike|psych|april fools?|jk)|/s|/j"
    r"|(?:я )?(?:шучу|пошутил[аи]?|соврал[аи]?)|(?:это )?(?:была )?(?:шутка|неправда|опечатка|ошибка)"
    r"|не туда|не тот чат|забудь(?:те)?(?: это)?"
    r"|(?:我)?(?:开|跟你开)(?:个)?玩笑的?|骗你的|逗你的?|不是真的|我?(?:说|打|发)错了|假的|忽略(?:上一条|这条)?"
)
# What does so only right after it: else it may be an answer.
_AFTERTHOUGHT = (
    r"(?:not really|not yet|not any ?more|no|nope|nah|never ?mind|нет|не совсем|不是|没有)"
    r"|(?:i (?:meant|mean|wish)\b|\*\S|,|\.\.\.|…|(?-i:in|at|when|but|if|until|till|only|except|as|or|unless|before"
    r"|after|not)\b).*|.*\S\*"
)
_TAKES_BACK = lazy_pattern(rf"{_OPENING}(?:{_JOKE})\W*", re.IGNORECASE)
_ADDS = lazy_pattern(rf"(?:lol|ha(?:ha)+|oops|sorry|wait|hm+|well|ой)?[ ,.!…]*(?:{_AFTERTHOUGHT})\W*", re.IGNORECASE)
_ANNOUNCES = lazy_pattern(r"[:：]\s*$")


def framed(messages: Iterable[Message]) -> Iterator[bool]:
    """Yield for each message of a chat, in their order, whether an earlier one says that it may be nobody's words.

    What a person says lasts for some hours or minutes. What an assistant asks concerns the messages up to its next one,
    and who repeats what it said may only read it.
    """
    until = datetime.min.replace(tzinfo=UTC)
    is_asked, echoed = False, ""
    for message in messages:
        text = message.content
        is_echo = message.role != "assistant" and bool(text) and text.strip(" .!").casefold() in echoed
        yield is_asked or is_echo or message.ts <= until
        if message.role == "assistant":
            asked = text[-_ASKED:]
            question = _SENTENCE_ENDS.split(asked.strip().rstrip(".!?。！？ "))[-1]
            is_asked = _FRAME.search(asked) is not None or _FRAME_OF_NEXT.search(question) is not None
            echoed = text.casefold()
        elif _FRAME.search(text[:_BEGIN]):
            until = max(until, message.ts + _LASTS)
        elif _ANNOUNCES.search(text[-_ASKED:]) or _FRAME_OF_NEXT.search(text[:_BEGIN]):
            until = max(until, message.ts + _ANNOUNCES_FOR)


def taken_back(messages: Sequence[Message]) -> dict[int, int]:
    """Return the place of each message that takes another one of its speaker back, and the place of the latter."""
    found: dict[int, int] = {}
    last: dict[str, int] = {}
    for place, message in enumerate(messages):
        speaker, text = f"{message.role}:{speaker_of(message.role, message.meta)}", message.content.strip()
        before = last.get(speaker)
        last[speaker] = place
        if before is None or len(text) > _SHORT or message.ts - messages[before].ts > _BACK_WITHIN:
            continue
        if _TAKES_BACK.fullmatch(text) or (place - before == 1 and _ADDS.fullmatch(text)):
            found[place] = found.get(before, before)
    return found


def doubtful(messages: Sequence[Message]) -> list[bool]:
    """Return for each message whether an earlier or a later one says that it may be nobody's words."""
    back = set(taken_back(messages).values())
    return [is_framed or place in back for place, is_framed in enumerate(framed(messages))]
