"""Score a sentence as a fact, and find its category: patterns in English, Russian and Chinese.

Weights and threshold were chosen by hand and not measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from klaw_facts.extracting.statements import is_instruction, is_plain_statement
from klaw_facts.secret_gate import KEPT
from klaw_words.lazy_patterns import lazy_pattern

#: Sentences with a lower score are not facts.
THRESHOLD = 1.5
#: The maximum number of facts per message.
MAX_PER_MESSAGE = 3

_FLAGS = re.IGNORECASE
_FIRST_PERSON = lazy_pattern(
    r"\b(?:i|i'm|i’m|i've|i’ve|i'll|i'd|my|mine|me|we|we're|we've|our|us)\b"
    r"|\b(?:я|мне|меня|мой|моя|моё|мое|мои|моей|мою|моего|мы|нас|нам|наш|наша|наши|нашей)\b|我|咱",
    _FLAGS,
)
_NUMBER = lazy_pattern(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|hundred|thousand)\b", _FLAGS
)
_DATE = lazy_pattern(
    r"\b(?:today|yesterday|tomorrow|tonight|last|next|ago|since|until|week|month|year|monday|tuesday|wednesday|thursday|friday"
    r"|saturday|sunday|january|february|march|april|june|july|august|september|october|november|december)\b"
    r"|\b(?:сегодня|вчера|завтра|недел\w+|месяц\w*|год\w*|назад|январ\w+|феврал\w+|март\w*|апрел\w+|ма[йея]|июн\w+|июл\w+"
    r"|август\w*|сентябр\w+|октябр\w+|ноябр\w+|декабр\w+|понедельник\w*|вторник\w*|сред[ау]|четверг\w*|пятниц\w+|суббот\w+"
    r"|воскресень\w+)\b|今天|昨天|明天|上周|下周|上个月|去年|明年|星期|周[一二三四五六日末]|[年月日号]",
    _FLAGS,
)
_NAME = lazy_pattern(r"(?<=[\w,;:’'-]\s)[A-ZА-ЯЁ][\w’'-]+")
_ACKNOWLEDGEMENT = lazy_pattern(
    r"^(?:ok(?:ay)?|yes|yeah|yep|no|nope|sure|thanks|thank you|great|cool|nice|wow|got it|sounds good|perfect|hi|hello|hey|bye|good "
    r"(?:morning|night|luck)|congrats|congratulations|agreed|exactly|absolutely|definitely|awesome|amazing|да|нет|ага|угу|ок|окей"
    r"|спасибо|хорошо|ладно|понятно|привет|пока|круто|отлично|好的?|嗯+|是的|谢谢|不客气|你好|再见|没问题|哈+)\b.{0,25}$",
    _FLAGS | re.DOTALL,
)
# Agreement with another speaker, and nothing else except a name: "I 100% agree, Mel."
_AGREEMENT = lazy_pattern(
    r"^(?:(?:i|we)(?: (?:\d+ ?%|also|too|so|really|totally|completely|fully|absolutely|definitely|wholeheartedly"
    r"|couldn['’]t|could not))* agree(?: more)?(?: (?:with|on) (?:you|that|this)| completely| totally)*"
    r"|(?:я|мы)(?: (?:тоже|полностью|совершенно|абсолютно|на \d+ ?%))* соглас(?:ен|на|ны)(?: с (?:тобой|вами|этим))?"
    r"|我们?(?:也|完全|非常|很|\d+ ?[%％])*同意(?:你|您)?)(?:[,，]\s*[^\W\d_]+)?[\s.!…。！]*$",
    _FLAGS,
)
_QUESTION = lazy_pattern(r"[?？][\"'”’)]*$|[吗呢][。？?]?$")
_SECOND_PERSON = lazy_pattern(
    r"^(?:you|your|can you|could you|please|let me|let's|ты|вы|можешь|можете|пожалуйста|你|您|请)\b", _FLAGS
)
_CODE = lazy_pattern(r"^\s*(?:```|\$ |>>> |import |from \w+ import|def |class |\{|\[|<\w+)|[;{}]\s*$")
_SHORT, _LONG = 15, 60

# The names of secrets. What says where one is kept is about a credential.
_CREDENTIAL = (
    r"(?:\b(?:(?:api|access|ssh|private|licen[cs]e|recovery|signing)[ _-]?keys?|tokens?|passwords?|passphrases?|passcodes?|credentials?"
    r"|secrets?|seed phrase|passwort|kennwort|contraseña)\b|\b(?:парол|токен|секрет)\w*|ключ\w*|密码|密钥|令牌|口令)"
)

_CATEGORIES: Mapping[str, str] = {
    # An instruction, not a habit.
    "rule": r"^\W*(?:from now on|(?:please )?(?:always|never|don't ever|do not ever))\b|\bplease (?:always|never)\b"
    r"|^\W*(?:всегда|никогда не|впредь|отныне)\b|以后(?:都|请)|^(?:请?总是|永远(?:不要|别))",
    "identity": r"\bmy (?:full |last |first |middle )?(?:name|birthday|age|nationality)\b|\bi(?:'m| am) \d+ years old|\bi was born\b"
    r"|меня зовут|мой день рождения|мне \d+ (?:лет|год)|我叫|我的(?:名字|生日)|我今年\d+岁",
    "credential": rf"^(?=[^\n]*{_CREDENTIAL})(?=[^\n]*(?:{KEPT}))",
    "relationship": r"\bmy (?:wife|husband|partner|girlfriend|boyfriend|fianc[ée]e?|son|daughter|kids?|mother|father|mom|mum|dad|brother"
    r"|sister|uncle|aunt|cousin|grand\w+|dog|cat|pet|boss|manager|colleague|friend)\b"
    r"|\bмо[йяи] (?:жена|муж|сын|дочь|мама|папа|брат|сестра|друг|подруга|собака|кошка|начальник)|我(?:的)?(?:妻子|丈夫|老公|老婆|儿子|女儿"
    r"|妈妈|爸爸|哥哥|姐姐|弟弟|妹妹|朋友|狗|猫)",
    "preference": r"\bi(?:'ve)?(?: really| always| absolutely)? (?:like|love|prefer|hate|enjoy|dislike|can't stand|adore)\b"
    r"|\bmy favou?rite\b|\b(?:я|мне) (?:очень )?(?:люблю|предпочитаю|ненавижу|нравится|обожаю)|我(?:很|最|更)?(?:喜欢|爱|讨厌|偏好)",
    "decision": r"\b(?:i|we)(?:'ve| have)? (?:decided|chose|chosen|agreed|opted|settled on|picked|plan to|are going with|will use|switched)\b"
    r"|\b(?:решил[аи]?|выбрал[аи]?|договорились|перешл[иа])\b|决定|选择了|打算",
    "solution": r"\b(?:fixed|solved|resolved|the fix|works now|workaround|figured out)\b|исправил|решил проблему|починил|解决了|修好了",
    "debug": r"\btraceback\b|\b(?:stack trace|segfault|exception|error code)\b|报错|трассировк",
    "config": r"\b(?:port|version|config\w*|server|database|endpoint|environment variable|branch|directory|repository)\b"
    r"|\b(?:порт|верси\w+|сервер\w*|база данных)\b|端口|版本|服务器|数据库",
    "event": r"\b(?:yesterday|tomorrow|tonight|last (?:week|month|year|night|weekend)|next (?:week|month|year)|\w+ ago|went|visited"
    r"|attended|met|joined|started|finished|bought|signed up|moved|launched?|deadline)\b"
    r"|\b(?:вчера|завтра|на прошлой неделе|ходил[аи]?|ездил[аи]?|встретил\w*|купил[аи]?|начал[аи]?|запустил\w*)\b"
    r"|昨天|明天|上周|下周|去了|参加|买了|开始",
}
_IMPORTANCE: Mapping[str, float] = {
    "identity": 0.9,
    "rule": 0.9,
    "relationship": 0.8,
    "decision": 0.8,
    "preference": 0.7,
    "credential": 0.7,
    "config": 0.6,
    "solution": 0.6,
    "event": 0.5,
    "conversation": 0.4,
    "temp": 0.2,
    "debug": 0.2,
}


def score(text: str) -> float:
    """Return how much a sentence looks like a fact; negative for questions, acknowledgements, agreement and code."""
    if _QUESTION.search(text) or _CODE.search(text):
        return -2.0
    if _ACKNOWLEDGEMENT.match(text) or _AGREEMENT.match(text):
        return -1.0
    if is_instruction(text) or is_plain_statement(text):
        return THRESHOLD + 0.5
    length = len(text) * (3 if _is_ideographic(text) else 1)
    return (
        1.0 * bool(_FIRST_PERSON.search(text))
        + 0.5 * bool(_NUMBER.search(text))
        + 0.5 * bool(_DATE.search(text))
        + 0.5 * bool(_NAME.search(text))
        + 0.5 * (category_of(text) != "conversation")
        + 0.25 * (length > _LONG)
        - 1.0 * (length < _SHORT)
        - 0.75 * bool(_SECOND_PERSON.match(text))
    )


def category_of(text: str) -> str:
    """Return the first category whose pattern matches a sentence."""
    if is_instruction(text):
        return "rule"
    if is_plain_statement(text):
        return "identity"
    return next((name for name, pattern in _patterns().items() if pattern.search(text)), "conversation")


def importance_of(category: str) -> float:
    """Return the initial importance of facts of a category."""
    return _IMPORTANCE.get(category, 0.5)


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return {name: re.compile(pattern, _FLAGS) for name, pattern in _CATEGORIES.items()}


def _is_ideographic(text: str) -> bool:
    return any("一" <= character <= "鿿" for character in text)
