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
# Words that say nothing by themselves. A short message of nothing else is an acknowledgement, a greeting or a farewell.
_EMPTY_WORDS = frozenset(
    re.findall(
        r"[^\W_][\w'’]*",
        "you see everything ok okay okey dokey okie k kk yes yeah yea yep yup ya no nope nah sure fine thanks thank thx ty ta tysm great cool nice nicely wow perfect got gotcha "
        "understood sounds sound good all awesome amazing excellent brilliant lovely exactly right alright correct agreed indeed absolutely "
        "definitely totally of course done noted makes sense will do problem worries worry welcome hi hello hey bye goodbye see ya later good "
        "morning evening night day lol haha hehe oh ah hm hmm um huh then that that's this it it's man mate everyone there thing is works work "
        "helps helped helpful i i'll cheers wonderful fantastic beautiful sweet neat yay hooray woohoo super roger np to know fair enough love you're youre "
        "the best rock a bunch million lot tons for now your quick help explanation answer reply me by with take care talk soon have too "
        "really appreciate appreciated bless sorry bad oops true please job one stuff was here guys folks team so very much well and just great "
        "works awesome sauce copy congrats congratulations bravo legend glad happy hear tomorrow yourself an excellent "
        "спасибо спасибки спс большое огромное вам тебе тебя вас ок окей окс хорошо ладно ладненько понятно понятненько понял поняла поняли ясно "
        "ясненько отлично супер да нет неа ага угу привет приветик здравствуй здравствуйте пока доброе утро добрый день вечер дня вечера спокойной ночи "
        "договорились конечно здорово круто готово благодарю верно точно класс классно ну принято всё все это так очень за помощь ответ "
        "объяснение согласен согласна замечательно прекрасно чудесно ура рад рада до завтра встречи скорого увидимся хорошего извини "
        "извините прости простите ой пожалуйста и сделаем помогло помог помогла молодец хаха хахаха ха пойдёт пойдет годится идёт идет "
        "спокойной свидания вот тогда огонь лады",
    )
)
_EMPTY_PHRASES = re.compile(r"\bmy bad\b|\bне за что\b", re.IGNORECASE)
_EMPTY_CHARACTERS = frozenset(
    "好的嗯是对不谢你您多客气用没问题事可以行明白了知道解收到太错厉害棒早上晚安再见拜哈呵哦噢当然吧就这样辛苦真非常啊呀哇啦嘞滴哒赞牛完美同意一定先回头聊慢走"
    "保重抱歉天嘛那很感激懂得妙极酷嘿嗨"
)
_WORD_OR_CHARACTER = re.compile(r"[一-鿿]|(?:(?![一-鿿])[^\W_])+(?:['’][^\W\d_]+)?")
_LAUGH = re.compile(r"(?:ha|he|ха|хе){2,}h?|l+o+l+|(?:y+a+y+|a+w+|o+h+|h+m+|m+)", re.IGNORECASE)
#: A message that begins so asks, or tells to do, even without a mark.
_ASKING = frozenset({"is", "was", "do", "have"})
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
    if len(text) <= _LONGEST_ACKNOWLEDGEMENT and _says_nothing(text):
        return "it is an acknowledgement"
    if _QUESTION.search(prose) and not _is_code(prose):
        return ""
    if (not prose and text) or _is_code(prose):
        return "it is code"
    return ""


def _says_nothing(text: str) -> bool:
    if "?" in text or "？" in text:
        return False
    words = _WORD_OR_CHARACTER.findall(_EMPTY_PHRASES.sub(" ok ", text.casefold().replace("’", "'")))
    if not words or (words[0] in _ASKING and words != ["do", "it"] and words[:2] != ["have", "a"]):
        return False
    return all(word in _EMPTY_WORDS or word in _EMPTY_CHARACTERS or _LAUGH.fullmatch(word) for word in words)


def _is_code(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) > 1 and sum(bool(_CODE_LINE.search(line)) for line in lines) > _MOST_CODE * len(lines)
