"""What a person says of himself: not what the person quotes, pastes, reports, pretends or takes back.

A clause states something if it is a main clause of the person's own sentence. Before it may stand other clauses, and a
few words that change nothing ("by the way", "last week"); a word that makes it somebody else's, or not true, may not.
English, Russian and Chinese. Patterns are allowed to miss a statement; a false one is worse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from klaw_facts.extracting import plain

_LABELS = (
    r"(?:(?:please )?(?:note|remember|memorize|keep in mind|be aware)(?: that| this)?|notes?|reminder|updates?|corrections?|(?:some |big |good |great )?news|ps|p\.s\.?|nb|fyi|btw"
    r"|by the way|(?:a )?quick (?:one|note|update|question)|for the record|for your information|info|information|about me|profile|(?:fun |quick )?facts?|my (?:address|details|data|situation|story|profile|info)|here(?:['’]s| is| are)(?: my| some)? [\w ]{1,20}|bio|intro|introduction|background|context|personal"
    r"|важно|запомни(?:те)?|заметка|кстати|обо мне|новости|о себе|п\.?с\.?|请记住|记住|备注|注意|更新|补充)"
)
# A copied program, a quotation of a message, and what follows the head of a letter.
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*>[^\n]*", re.MULTILINE)
_HEAD = "From|To|Sent|Subject|От|Кому|Тема|发件人|收件人|主题"
_LETTER = re.compile(
    rf"^[ \t>*]*(?:{_HEAD})[*]?[:：][^\n]*\n(?:[^\n]*\n){{0,3}}?"
    rf"[ \t>*]*(?:{_HEAD}|Date|Cc|Дата|日期)[*]?[:：].*\Z"
    r"|^-{2,} ?(?:Forwarded message|Original message|Исходное сообщение|Пересылаемое сообщение).*\Z",
    re.MULTILINE | re.DOTALL,
)
_TURN = re.compile(
    rf"^[ \t*_-]*(?:\[[^\]\n]{{1,30}}\][ \t]*)?(?!(?i:{_LABELS})[ \t]*[*_]*[:：])"
    r"(?:[A-ZА-ЯЁ][\w.’'-]{0,20}(?: [A-ZА-ЯЁ][\w.’'-]{0,20}){0,2}|me|user|assistant|system|bot|я|[一-鿿]{1,4})"
    r"(?: \([^)\n]{1,30}\))?[*_]*[:：][^\n]*",
    re.MULTILINE,
)
_MARKS = re.compile(
    r"\"[^\"\n]{1,1000}\"|“[^”]{1,1000}”|«[^»]{1,1000}»|„[^“”\n]{1,1000}[“”]|「[^」]{1,1000}」|『[^』]{1,1000}』|`[^`\n]{1,1000}`"
)
# What a text is to be done with, or a part that somebody is to play: the rest of the message is about it.
_TASK = re.compile(
    r"(?:^|(?<=[.!?。！？\n]))[ \t]*(?:(?:please|can you|could you|now|hi|hello),? )*"
    r"(?:(?:translate|rewrite|rephrase|paraphrase|proof-?read|correct|fix|summari[sz]e|improve|переведи\w*|перепиши\w*|исправь\w*|(?:请|帮我|请帮我)?(?:翻译|改写|润色))(?![a-z])"
    r"(?=[^.!?。\n]*(?:[:：\n]|\b(?:this|following|next|sentence|text|line|phrase|below|следующ\w+|текст|фраз\w)\b|下面|以下|这))"
    r"|(?:act as|act like|pretend|imagine|suppose|assume|let['’]?s (?:say|pretend|assume|suppose|imagine|role)|role-?play"
    r"|представь|притвор\w+|вообрази|предположи\w*|допустим|сыграй)\b|(?:请)?扮演|假设|假装|假如|想象)",
    re.IGNORECASE | re.MULTILINE,
)
_INTRODUCTION = re.compile(r"(?:^|(?<=[.!?。！？\n]))[^.!?。！？\n]{1,200}(?::(?=\s)|：)[^\n]*")
#: Words before a clause that make it somebody else's, or say that it is not true.
_NOT_SAID = re.compile(
    r"(?<!\bi )(?<!\bwe )(?<!\bi’ve )(?<!\bi've )(?<!\byou )(?<!\bi just )(?<!\bi already )"
    r"\b(?:said|says|tells|told|wrote|writes|thinks|thought|believes|believed|claims|claimed|assumes|assumed|replie[sd]|answers|answered|texted|shouted"
    r"|insists|insisted|announced|asked|asks|(?:people|they|some|others|friends|everybody|everyone|who) (?:say|think|believe|claim|assume|insist)"
    r"|according to|quote|quoting|allegedly|supposedly)\b"
    r"|\b(?:pretend\w*|role[- ]?play\w*|hypothetical\w*|assum(?:e|ing)|suppos(?:e|ing)|let['’]?s say|let us (?:say|suppose|assume)|imagin\w+"
    r"|(?:novel|story|dreams?|movie|film|song|lyrics|poem|game|play|book|script|essay|comic)(?=\W*$| ?,| (?:i|the|my|we)\b)|dreamed|dreamt|example|e\.g\.?|for instance"
    r"|translate|proof-?read|rewrite|fiction\w*|imaginary|virtual|as if|false|untrue|lie|rumou?rs?|myth|joke|doubts?|hero|character|protagonist|in theory)"
    r"|\b(?:он|она|они|мама|папа|друг|подруга|брат|сестра|(?-i:[А-ЯЁ][а-яё]+))\s+(?:\w+\s+)?(?:сказал\w*|говор\w+|написал\w*|пишет|дума\w+|счита\w+|утвержда\w+"
    r"|ответил\w*|спросил\w*|уверен\w*)\b|\b(?:говорят|якобы|по мнению|по словам|будто|представь\w*|предположим|допустим|притвор\w+|переведи\w*|например"
    r"|неправда|ложь|слух\w*|книг[еаи]|фильм\w*|игр[еаы]|роман\w*|рассказ\w*|сн[еу]|герой|персонаж)\b"
    r"|(?<![我你])[说說](?!一[下句声])|听说|据说|认为|以为|觉得|(?<!想)告诉(?!你)|写道|问(?![题一])|假设|假装|假如|想象|翻译|小说|故事|例如|比如|角色|主角|梦见|梦里|要是|万一|谣言",
    re.IGNORECASE,
)
#: Words after a clause that take it back, or say that it is somebody else's.
_TAKEN_BACK = re.compile(
    rf"\b(?:{plain.JOKE}|just a joke|(?:that|this|it|which)(?:['’]s| is| was)(?: all)? (?:wrong|false|a lie|a joke|untrue|nonsense"
    r"|my (?:brother|sister|friend|cousin|wife|husband|mother|mom|father|dad|son|daughter))|is (?:wrong|false|a lie|nonsense|untrue)"
    r"|(?:that|this|it)(?:['’]s| is| was) what)\b|[,”\"] (?:he|she|they) (?:said|says|wrote|thinks?|thought|lied|claims|claimed)\b"
    r"|\b(?:шучу|шутка|пошутил\w*|вру|неправда|сказал\w*|написал\w*|говорит|нет,? подожди)\b|开玩笑|骗你|才怪|(?<!我)[说說]",
    re.IGNORECASE,
)
_ASCRIBED = re.compile(
    r"[\W_]*(?:(?:is|was) (?:what|how|his|her|their|an? (?:sentence|phrase|line|example|quote|lyric))\b|only in my (?:head|dreams|mind)\b|(?:(?:he|she|they|the \w+|my \w+|(?-i:[A-Z]\w+)) )?(?:said|says|wrote|replied|lied|claims|claimed)\b)",
    re.IGNORECASE,
)
#: Sentences that take the one before back, if it is not about the speaker: otherwise `plain.goes_on` decides.
_NEXT = re.compile(
    rf"[\s.!…。！—–-]*(?:(?:just|only|haha|lol|no|nah|oh)?,? ?(?:{plain.JOKE}|not really)\b|(?:шучу|шутка|пошутил)|开玩笑|骗你)",
    re.IGNORECASE,
)
#: Words before a clause that change nothing.
_OPENER = re.compile(
    rf"(?:{plain.TIMES}"
    r"|(?:hi|hello|hey|dear|good morning|thanks|thank you),? (?-i:[A-Z]\w+)|(?:hi|hello|hey|dear) (?:there|all|team|everyone|everybody|folks|guys)"
    r"|(?:hi|hello|hey|hiya|oh|well|so|yes|yeah|yep|ok|okay|no|sure|thanks|thank you|actually|basically|anyway|also|btw|fyi|by the way|in fact|plus|there|all"
    r"|everyone|everybody|folks|team|guys|good (?:morning|afternoon|evening|day)|greetings|nice to meet you|pleased to meet you|sorry|look|listen|you know|guess what"
    r"|as (?:you know|i (?:said|mentioned|told you|wrote)(?: before| earlier)?)|please|just|for (?:the record|your information)|about me|at (?:home|least)|of course|so yeah|in short|(?:to be (?:honest|precise|exact))|to answer your question|correction|not (?-i:[A-Z])\w+|still|finally|really|currently|eventually|morning|раз уж ты спросил|извини(?:те)?|прости(?:те)?|抱歉|对不起|这个|with my \w+|thanks to my \w+"
    r"|since|because|as|although|though|now that|given that|while|whereas|luckily|fortunately|sadly|unfortunately|happily|personally|i think it helps that"
    r"|(?:please )?(?:note|remember|memorize|keep in mind|know|save|store|be aware)(?: the fact)?(?: that)?|so you know"
    r"|(?:i|we)(?:['’]m| am|['’]re| are)? ?(?:so |very |really )?(?:happy|glad|proud|excited|pleased|sad|sorry|thrilled|here)(?: to (?:say|report|announce|tell you|share|add))?(?: that)?"
    r"|i (?:should|can|must|want to|wanted to|have to|forgot to|need to|would like to) (?:mention|tell you|say|add|note|confirm|let you know|share)(?: that)?"
    r"|the (?:\w+ )?(?:news|thing|fact|truth|point) is(?: that)?|i think you should know(?: that)?"
    r"|(?:you (?:can|may|could|should)|feel free to|everyone can|people can|from now on|always)"
    r"|да|нет|ну|привет|здравствуй(?:те)?|добрый (?:день|вечер)|доброе утро|всем|кстати|вообще|вообще-то|на самом деле|в общем|итак|просто|знаешь|знаете"
    r"|запомни(?:те)?|помни(?:те)?|учти(?:те)?|потому что|так как|поскольку|хотя|пожалуйста|тоже"
    r"|其实|对了|顺便说一下|顺便|你好|您好|大家好|嗨|那|嗯|因为|所以|但是?|而且|不过|请?记住|请?记得|事实上|我想告诉你|告诉你|虽然|另外|还有)"
    r")(?![\w’'](?<![一-鿿]))",
    re.IGNORECASE,
)
# What separates a clause from the one before it.
_BOUNDARY = re.compile(
    r"[,;.!…()\[\]|•*_#—–，；。！、（）\n]|(?:^|\s)-+(?:\s|$)|(?:^|\s)(?:and|but|so|и|а|но|поэтому|затем)(?=\s|$)|而且|并且|但是|所以|因为",
    re.IGNORECASE,
)
_NEW_STATEMENT = re.compile(
    r"(?:\b(?:so|but|therefore|поэтому|но)(?: now| теперь)?|所以|但是?|不过)\W*$|[.!\n。！]\W*$", re.IGNORECASE
)
_ONLY_LABEL = re.compile(rf"(?:^|[.!\n])[\s*_-]*{_LABELS}[\s*_]*[:：][\s*_]*$", re.IGNORECASE)
_OPENERS = 4
_BETWEEN = " \t\n,;:.!…，；。！：*_#()[]•-–—"
_MAX_BEFORE = 300


@lru_cache(64)
def _copied(content: str) -> tuple[tuple[int, int], ...]:
    """Return the parts of a message that its writer copied: programs, quotations, letters, and talks of others."""
    turns = [*_TURN.finditer(content)]
    patterns = (_FENCE, _QUOTED_LINE, _LETTER)
    found = [match.span() for pattern in patterns for match in pattern.finditer(content)]
    is_talk = len({turn[0].partition(":")[0] for turn in turns}) > 1
    return (*found, *(turn.span() for turn in turns if is_talk))


@lru_cache(64)
def _not_meant(content: str) -> tuple[tuple[int, int], ...]:
    """Return the parts of a message that state nothing about its writer: also quotations, and what a task is about."""
    task = _TASK.search(content)
    marked = [match.span() for match in _MARKS.finditer(content)]
    told = [item.span() for item in _INTRODUCTION.finditer(content) if _is_of_others(re.split("[:：]", item[0])[0])]
    return (*_copied(content), *marked, *told, *([(task.start(), len(content))] if task else ()))


def is_copied(content: str, start: int, end: int) -> bool:
    """Return whether characters of a message are not the words of its writer."""
    return _overlaps(_copied(content), start, end)


def is_meant(content: str, start: int, end: int, *, is_personal: bool = True) -> bool:
    """Return whether characters of a message are what its writer says, and the next words do not take them back.

    ``is_personal``: they are about the writer, so that they are somebody else's after a name and a colon.
    """
    turns = [match.span() for match in _TURN.finditer(content)] if is_personal else []
    spans = (*_not_meant(content), *turns)
    if _overlaps(spans, start, end):
        return False
    if is_personal:
        return _is_among_plain_text(content, start, end)
    return _NEXT.match(content, _sentence_end(content, end)) is None


def is_own_statement(text: str, start: int, end: int, *, slot: str = "") -> bool:
    """Return whether a clause, characters ``start`` to ``end`` of a sentence, is a main clause of the speaker.

    ``slot``: without a colon it is about the speaker, so that only words that are known may stand around it.
    """
    is_personal = not slot.endswith(":")
    if start > _MAX_BEFORE:
        text, start, end = text[start - _MAX_BEFORE :], _MAX_BEFORE, end - start + _MAX_BEFORE
    before = text[:start]
    if _overlaps(_not_meant(text), start, end) or _TAKEN_BACK.search(text, end) or _ASCRIBED.match(text, end):
        return False
    if not is_personal:
        return _is_free(before)
    is_begun = _is_free(before) and _opens(before) and not _is_introduced(before)
    return is_begun and plain.ends(text[end:], slot) and not plain.is_doubtful(text)


def _is_free(before: str) -> bool:
    """Return whether the words before a clause leave it to the speaker: no other person's words, and no pretence."""
    return _NEW_STATEMENT.search(before) is not None or not _is_of_others(before)


def _is_of_others(before: str) -> bool:
    return _NOT_SAID.search(f"{before.rstrip()} ") is not None


def _is_introduced(before: str) -> bool:
    """Return whether a clause follows a colon or the mark of a quotation, and not a label such as "Note:"."""
    is_marked = before.rstrip(" *_").endswith((":", "：", '"', "“", "«", "「", "'", "‘", "`", ">"))
    return is_marked and _ONLY_LABEL.search(before) is None


def _opens(before: str) -> bool:
    """Return whether a clause begins after these words, and each clause among them is one that is known."""
    label, colon, rest = before.rpartition(":")
    *clauses, last = _BOUNDARY.split(rest if _ONLY_LABEL.search(label + colon) else before)
    return _only_opens(last) and all(_only_opens(clause) or plain.is_of_speaker(clause) for clause in clauses)


def _only_opens(rest: str) -> bool:
    """Return whether a clause consists of a few words that change nothing."""
    for _ in range(_OPENERS):
        rest = rest.strip(_BETWEEN)
        opener = _OPENER.match(rest)
        if opener is None:
            break
        rest = rest[opener.end() :]
    return not any(character.isalnum() for character in rest)


def _is_among_plain_text(content: str, start: int, end: int) -> bool:
    """Return whether nothing around a sentence, and no form of its line, makes it something copied or taken back."""
    first = content.rfind("\n", 0, start) + 1
    line = content[first:].partition("\n")[0]
    if plain.is_of_program(line) or not plain.goes_on(content[_sentence_end(content, end) :]):
        return False
    if plain.is_doubtful(re.split(r"[.!?…\n]", content[:start].rstrip(" .!?…*_\n"))[-1]):
        return False
    lines = [item for item in _QUOTED_LINE.sub(">", content[:first]).split("\n") if item.strip()]
    return all(_is_known_line(item, following) for item, following in pairwise([*lines, line]))


def _is_known_line(line: str, following: str) -> bool:
    """Return whether a line before a statement is no head of something copied."""
    if plain.is_head(line):
        return following.lstrip().startswith(">")
    if line.rstrip(" *_").endswith((":", "：")):
        return plain.is_block(following) or _ONLY_LABEL.search(f"\n{line}") is not None or plain.is_told(line)
    if plain.is_sentence(line) or plain.is_block(line):
        return True
    return _only_opens(re.sub(r"[,.!]", " ", line)) or plain.is_told(line)


def _sentence_end(content: str, end: int) -> int:
    """Return where the sentence ends that contains a place."""
    match = re.compile(r"[.!?…。！？\n]").search(content, end)
    return len(content) if match is None else match.start()


def _overlaps(spans: Iterable[tuple[int, int]], start: int, end: int) -> bool:
    return any(first < end and start < last for first, last in spans)
