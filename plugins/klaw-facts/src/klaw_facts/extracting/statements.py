"""Sentences that are worth keeping whatever their length: instructions to an agent, and plain statements of a person.

"Answer in metric units" and "I am allergic to peanuts" name no date, number or name, so a score cannot find them.
Patterns in English, Russian and Chinese. A request for one answer ("Write a poem in French") is no instruction.
"""

from __future__ import annotations

import re

from klaw_words.lazy_patterns import lazy_pattern

# What an agent does again and again. "Never give up" asks nothing of an agent.
_ANSWERING = (
    r"(?:answer|reply|respond|repl(?:y|ies)|write|use|using|call(?:ing)?|address|include|add|mention|suggest|recommend|book|ask|give (?:me|us|an?|the)|provide"
    r"|send|format|show|explain|list|cite|quote|summari[sz]e|confirm|remind|check|translate|schedule|assume|apologi[sz]e|speak|talk|tell"
    r"|start|begin|end|keep|put|refer|highlight|specify|offer|propose|present|share|store|save|log|commit|push|delete|run)"
)
_ADVERB = r"(?:(?:also|only|just|first|please|briefly|ever) )?"
_LATER = r"(?:(?:from now on|in (?:the )?future|going forward|as a rule|by default)[,:]? )"
_MANNER = (
    r"(?:metric|imperial|celsius|fahrenheit|kilomet\w+|24[- ]hour|12[- ]hour|british|american|formal|informal|plain|simple|short|bullet"
    r"|markdown|plural|full sentences|iso dates?|tabs|spaces|type hints|snake_case|camelcase)"
)
_INSTRUCTION = lazy_pattern(
    rf"^\W*(?:{_LATER}|please )*(?:always|never|don['’]t ever|do not ever|never ever) {_ADVERB}{_ANSWERING}\b"
    rf"|^\W*{_LATER}(?:please )?(?:do not |don['’]t |always |never )?{_ANSWERING}\b"
    rf"|^\W*(?:please )?(?:stop|avoid) {_ADVERB}(?:answering|replying|writing|using|calling|adding|mentioning|suggesting|asking|sending|apologi[sz]ing)\b"
    r"|^\W*(?:please )?(?:do not|don['’]t) (?:use|call me|address me|apologi[sz]e|add|include|answer|reply in|write in)\b"
    r"|^\W*(?:please )?(?:answer|reply|respond|speak|talk)(?: to)?(?: me)? (?:only |always )?(?:in|with|briefly|shortly|concisely)\b"
    r"|^\W*(?:please )?keep (?:your|all|the) (?:answers|replies|responses)\b"
    rf"|^\W*(?:please )?(?:use|prefer) (?:only |the )?{_MANNER}\b"
    r"|^\W*(?:please )?(?:you can )?(?:call|address) me\b"
    rf"|\bi(?:['’]d| would)? (?:want|like|need) you to (?:always|never)\b"
    rf"|^\W*when(?:ever)? i (?:ask|say|mention|request|send|write)\b[^,]{{0,80}}, (?:please |always )*{_ANSWERING}\b"
    r"|^\W*(?:пожалуйста,? )?(?:всегда|никогда не|больше не|впредь|отныне)(?: не)? (?:отвеча|пиш|использ|называ|обраща|предлага|упомина|добавля"
    r"|спрашива|давай|присыла|показыва|напомина)\w*"
    r"|^\W*(?:пожалуйста,? )?(?:отвечай|говори|пиши)(?:те)? (?:мне |со мной )?(?:только |всегда )?(?:на \w+ском|по-\w+|кратко|коротко)"
    r"|^\W*(?:пожалуйста,? )?(?:называй|зови)(?:те)? меня|^\W*(?:пожалуйста,? )?не (?:используй|называй|обращайся|пиши)(?:те)?\b"
    r"|^(?:以后|今后|从现在起|从今以后)[,，]?(?:请|都|总是|一直)*(?:不要|别)?再?(?:用|使用|叫|称呼|回答|回复|写|说|推荐|建议|提)"
    r"|^请?(?:总是|一直|始终|永远|不要|别)再?(?:用|使用|叫|称呼|回答|回复|推荐|建议)"
    r"|^(?:请)(?:用|使用)[^，。]{1,8}(?:回答|回复|单位|格式)",
    re.IGNORECASE,
)
_STATEMENT = lazy_pattern(
    r"\b(?:i(?:['’]m| am)|we(?:['’]re| are))(?: (?:severely|very|highly|also|mildly|strictly|a strict|a))? (?:allergic|lactose[- ]intolerant"
    r"|gluten[- ]intolerant|intolerant|vegan|vegetarian|pescatarian|diabetic|coeliac|celiac|colou?r[- ]?blind|left[- ]handed|deaf|blind"
    r"|pregnant|asthmatic|teetotal)\b"
    r"|\bi have (?:a |an )?(?:severe |bad |mild )?(?:\w+ )?(?:allergy|allergies|intolerance|diabetes|asthma|coeliac|celiac|epilepsy|migraines?)\b"
    r"|\bi (?:can['’]?t|cannot|don['’]t|do not|never) (?:eat|drink)\b"
    r"|\bу меня (?:\w+ )?(?:аллерги|непереносимост|диабет|астм)\w*|\bмне нельзя\b|\bя (?:не (?:ем|пью)|веган\w*|вегетариан\w+|левша|диабети\w+)\b"
    r"|我对[^，。]{1,10}过敏|我(?:不吃|不喝|不能吃|不能喝|吃素|是素食)|我有(?:糖尿病|哮喘)",
    re.IGNORECASE,
)
_UNSURE = lazy_pattern(
    r"[?？]|\b(?:if|would|could|might|maybe|perhaps|wish|imagine|suppose|unless)\b|\b(?:если|бы|может)\b|如果|可能|也许",
    re.IGNORECASE,
)


def is_instruction(text: str) -> bool:
    """Return whether a sentence tells an agent what to do from now on."""
    return not text.rstrip().endswith(("?", "？")) and _INSTRUCTION.search(text) is not None


def is_plain_statement(text: str) -> bool:
    """Return whether a sentence states an allergy, a diet or a condition of the speaker, for certain."""
    return _STATEMENT.search(text) is not None and not _UNSURE.search(text)
