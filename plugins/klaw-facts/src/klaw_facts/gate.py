"""The gate: which messages need nothing from memory. In doubt, something is looked up. English, Russian, Chinese."""

from __future__ import annotations

import re

_FLAGS = re.IGNORECASE
_QUESTION = re.compile(
    r"[?？]|\b(?:who|whom|whose|what|when|where|which|why|how|do you|did (?:i|we)|is there|are there|was|were|can you|could you"
    r"|tell me|show me|find|list|explain|summari[sz]e|describe|help me)\b"
    r"|\b(?:кто|кого|кому|что|чего|когда|где|куда|откуда|какой|какая|какое|какие|каком|почему|зачем|как|сколько|чей|ли"
    r"|расскажи|покажи|найди|объясни|напиши|помоги)\b|谁|什么|何时|什么时候|哪|为什么|怎么|如何|多少|几|吗|呢|告诉我|帮我|说说|列出",
    _FLAGS,
)
_MEMORY = re.compile(
    r"\b(?:remember|remind|recall|forgot|forget|earlier|before|previously|last time|again|we (?:said|decided|discussed|talked)|you said"
    r"|i (?:said|told)|as usual|my usual|same as)\b"
    r"|\b(?:помнишь|помни|запомни|напомни|забыл\w*|раньше|прошл\w+ раз|опять|снова|мы (?:решили|говорили|обсуждали)|ты говорил\w*"
    r"|я говорил\w*|как обычно)\b|记得|记住|提醒|忘了|之前|上次|以前|我们说过|你说过|我说过|老样子",
    _FLAGS,
)
_PARTS = (
    r"ok(?:ay)?|k|kk|yes|yeah|yep|yup|no|nope|nah|sure|fine|thanks|thank you|thx|ty|much appreciated|great|cool|nice|wow|perfect|got it|gotcha"
    r"|understood|sounds good|good|all good|awesome|amazing|excellent|brilliant|lovely|exactly|right|correct|agreed|indeed|absolutely"
    r"|definitely|of course|done|noted|makes sense|will do|no problem|no worries|you're welcome|welcome|hi|hello|hey|bye|goodbye|see you"
    r"|later|good (?:morning|evening|night|day)|lol|haha+|hehe+|oh|ah|hm+|very much|so much|a lot|then|that|this|it|you|man|everyone|there"
    r"|да|нет|ага|угу|ок|окей|хорошо|ладно|понятно|понял|поняла|ясно|спасибо|благодарю|большое|отлично|супер|круто|класс|здорово"
    r"|привет|здравствуй(?:те)?|пока|до свидания|доброе утро|добрый (?:день|вечер)|спокойной ночи|пожалуйста|не за что|конечно"
    r"|точно|верно|договорились|готово|ха(?:ха)+"
    r"|好+的?|嗯+|是的?|对的?|不是?|谢谢(?:你|您)?|多谢|不客气|不用谢|没问题|没事|可以|行|明白了?|知道了?|了解|收到|太好了|不错|厉害|棒"
    r"|你好|您好|早上好|晚上好|晚安|早|再见|拜拜|哈+|呵+|哦+|噢+|当然|好吧|就这样|辛苦了|真的?|非常|太|了|啊|呀|吧|哇"
)
_MARKS = r"[\s,.;:!…~，。；：！～、'\"()\-–—*_👍🙏😀-🙏❤️🎉✅👌😊😂🤣🔥💯]*"
_ACKNOWLEDGEMENT = re.compile(rf"{_MARKS}(?:(?:{_PARTS}){_MARKS})+", _FLAGS)
_LONGEST_ACKNOWLEDGEMENT = 80
_CODE_LINE = re.compile(
    r"^\s*(?:[{}\])]|//|#!|#include|import |from \S+ import|def |class |func |fn |public |private |const |let |var |return |if \(|for \(|while \("
    r"|<\/?\w|\$ |>>> |at \S+\(|Traceback|File \"|[\w.]+\s*[=:]\s*\S|\s*\S.*[;{]\s*$|\+\s|-\s{2}|@@|diff )"
)
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MOST_CODE = 0.6


def declines(message: str) -> str:
    """Return why a message needs nothing from memory; empty if something should be looked up."""
    text = message.strip()
    if not any(character.isalnum() for character in text):
        return "there are no words in it"
    prose = _FENCED.sub(" ", text).strip()
    if _MEMORY.search(prose):
        return ""
    if (
        len(text) <= _LONGEST_ACKNOWLEDGEMENT
        and "?" not in text
        and "？" not in text
        and _ACKNOWLEDGEMENT.fullmatch(text)
    ):
        return "it is an acknowledgement"
    if _QUESTION.search(prose) and not _is_code(prose):
        return ""
    if (not prose and text) or _is_code(prose):
        return "it is code"
    return ""


def _is_code(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) > 1 and sum(bool(_CODE_LINE.search(line)) for line in lines) > _MOST_CODE * len(lines)
