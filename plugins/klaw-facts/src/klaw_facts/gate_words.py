"""Words without content: thanks, greetings, reactions, approval, and function words.

A short message that consists only of these is an acknowledgement, a greeting or a farewell. The lists were written by
hand. They contain no names of things, persons, places or times that somebody could ask about.
"""

from __future__ import annotations

_ENGLISH = """
a a+ a-ok about absolute absolutely absorb accident accidentally ace aces ack acked acknowledged actually adds adios
adorable adore affirmative afk after afternoon again agree agreed ah aha ahh ahoy all all-set aloha alright alrighty
am amazing an and angel answer answered answers any anyhow anytime anyway aok apologies apologise apologize apology
applause appreciate appreciated appreciates appreciation approve approved are arigato around as at autocorrect aw
awesome aww aye back bacon bad banger based basically bathroom bbiab bbl bbs be bear beautiful beautifully been being
believe best bet better bingo bio bit bless blessed blimey blown bonkers boss both bounce bow bows brain bravo brb
breathe brill brilliant bro buddy bullseye bunch but by bye can can't cannot cant care catch certainly champ charm
charming chat chatting check checking cheers chef's chefs chill chuffed ciao clap clapping clarification clarified
clarifies clarity classic clean clear cleared clearer clearly clears clever click clicked clicks coffees complain
complete completed confirm confirmed confusion congrats congratulations convinced cool copy correct correctomundo cosy
could course covered cow cracking crazy crikey crossed crying crystal cute cya damn dang danke darn dash dat day dead
deal deeply definitely delighted delightful demystified detailed did digest diggity disagree disregard ditto do dokey
don't done done-deal dont doorbell dope down dream drop drops dude dunno duper easy ecstatic educational eh either
elated else emotional enjoy enjoyed enlightening enough epic even evening ever everyone everything exactly excellent
excited excuse explained explaining explains explanation explanations extremely eye fab fabulous fact facts fair
fantastic far farewell fart fast fat feel feeling feels felt figure figured finally fine fine-by-me fingered fingers
finished finito fire first-rate five fixed fixes flawless folks for fr friend from funny g2g gee geez gem genius give
glad gm gn gnight go goat goated god going golly gonna good goodbye goodness goodnight gorgeous gosh got gotcha gotta
gracias grateful gratitude grazie great greatly greetings grinning gtg guess guys hah haha handy hang happy hats have
having he's hear heard hearing hears heck hee heh hehe hell hello help helped helpful helping helps here hero hey heya
hi high highly hilarious hiya hm hmm hold holy honestly hooray hope hopefully hoping hot howdy hug hugely hugs huh
hurries hurry hyped i i'd i'll i'm i've iconic idc idk ignore ikr ill im immaculate imo impressed impressive in
incredible incredibly indebted indeed informative insane insightful interesting into is it it's its ive jeez jobs-done
joy joyful just k kay kettle killer kind kinda kindly king kiss kisses kk know kudos later laters laughing legend
legit let's lgtm life lifesaver lifesaving like liked likes likewise listened listening lit literally lmao logical lol
loo look looking looks lot loud love loved lovely lovely-jubbly loving luck lucky ma'am madam made magic magnificent
makes making man many marvellous marvelous massively mate may me means meh mental merci mhm mic might million min mind
mins minute misclick misclicked misread misspelled mistake mistaken mistook mistyped misunderstanding mkay mmkay moly
moment more morning moved-to-tears much myself mystery nah nailed namaste naw neat necessary need needed negative
neither never nevermind ngl nice nicely night nighty nm no noice nope not notch noted nothing now np nty nuh nuts nvm
obliged obrigado obviously of off oh ok ok-hand okay okey oki okie okie-dokie okk omfg omg omw on one ones only oof
ooh oops oops-a-daisy opener opening or ouch out outstanding ovation over overjoyed owe owed pal pardon pass patience
patient peace perfect perfection perfectly phenomenal phew plan pleasant please pleased pleasure point points preach
precisely pressure pretty priceless problem props proud psyched pumped put queen quick quickly quite r rad rather
reading ready really reasonable received reckon relax relief relieved remarkable reply resolved respect rest rested
ridiculous right rock rofl roger run rush safe said salutations salute same same-here sauce saved saves saving scrap
sec second see seems sense sensible seriously set settled sgtm shook shoot shortly shot should shoutout sick sir sis
skip slaps slay sleep sleepy smart smashing smile smiling smokes so sold solid solved solves somewhat soon soonish
sorry sort sorta sorted sound sounds soz spam spectacular speechless splendid spot spotless sry standby standing star
stellar stoked stuff stunned stunning sublime such sup super superb suppose sure surely sweet ta take talk tbh team
tears tee terrific than thank thankful thanks thanks-anyway thanx that that's thats's the then there these they're
thing think thinking this thnaks thrilled thumbs thx tidy tight till time tmrw to today tomorrow tonight tons too
toodles took top tops totally touche touched tq travels treat trick true truly truth try trying ttyl turned ty typo
tysm u ugh uh-huh um unbelievable understood unreal unsolved until up ur urs useful valid very w wait waiting was way
we we'll we're weekend welcome well were what-a whatever whew while whoa whoo whoops wilco wild will window with
without woah wonderful woo woohoo word work worked working works world-class worries worry worth would wow wowza
wowzers written wrong wtf xd xo xoxo ya yass yay yea yeah yep yes yess yesss yikes yo you you'd you'll you're you've
your youre yourself youve yowza yummy yup
"""

_RUSSIAN = """
touché ааа абсолютно ага агась адьос ай ауч ахах ахаха ахахах ахахаха баиньки бай-бай балдеж балдёж без безусловно
бери бесподобно беспокойство беспокойся беспокойтесь бинго благодарен благодарна благодарны благодарочка благодарствую
благодарю блин богу боже больше большое бомба брат братан буквально бывает бывай бывайте был была было быстро важно
вам вами вас вау вежливо везёт великолепно верно вернусь вечер вечера вечером вечерочек взаимно вина виноват виновата
вник вникла внимание вниманию внимания возьмусь волнуйся волнуйтесь волшебник вопрос вопросов воспользуюсь восторг
восторге восхитительно вот впечатлен впечатляет впечатлён времени время все всего всем всеми всех встало встречи
всякое всё всё-таки вы выглядит выручил выручила выручили выходных вышло гениально гений гляну гм говоря годится годно
голову гора гораздо господи готово да даа дада даешь даёшь двумя действительно дельно денек день денёк дня до добр
добрейшего добрейший доброго доброе доброй добры добрый доволен довольна довольны договорились доделаю достаточно
доходчиво дошло друг дружище души ерунда есс естественно есть жаль ждем жду ждём же жесть жуть за забавно забей
забейте заботу завтра задержку займусь закончили закончим замечательно записал записала запомнил заработало
зафиксировал зачет зачёт зачётно звучит здарова здорово здравия здравствуй здравствуйте здрасте здрасьте золото и
идеально идет идёт извини извините изумительно именно имею интересно искренне исправлюсь исчерпывающе йес йо кайф
кайфово кайфую капец кек класс классная классно конечно косяк красавец красавчик красота крепко круто ку ладненько
ладно лады лайк легко ловко логично лол лучшая лучше лучший любезно любезность любопытно мгновение мда мдя мелочи меня
мерси места место мило милота минут минутку минуточку минуту мм ммм мне мой молодец молодчина мощно моя моё мы на
наглядно надо нажал нажала наилучшего наконец наконец-то налью нам намного нас нашел нашла нашёл нда не неа неа-неа
неважно невероятно недели недоразумение недурно неет нене неплохо нет нет-нет нетушки никаких ничего норм нормально
нормалёк нормас нормуль ночи ночки нравится ну нужно о обалдеть обдумаю обижайся обижаюсь обнимаю обожди обращай
объяснение объяснения ого огонь огромное однозначно одну одобрено одобряю ой ок окей океюшки оки окно окс окси он она
оно оперативно оперативность опечаталась опечатался опечатка ору орунькаю остальное от отбегу ответ ответы отлегло
отличная отлично отличный отлучусь отойду отошел отошёл офигеть ох очень ошибку ошиблась ошибся парься парьтесь пасиб
пасибки пасибо переварю переживай переживайте перекур плеч плюс плюсую побежал побежала поболтать повезло погоди
погодите поддерживаю подожди подождите подписываюсь подробно подруга подсказку подтверждаю подумаем подумаю подходит
пожалуйста позже познавательно пойдет пойдёт пока пока-пока покатит покеда покедова полезно полностью получилось помог
помогла помогли помогло помощь пон понял поняла поняли понятнее понятненько понятно понятно-понятно пообщаться попозже
попробуем попробую последую посмотрим посмотрю потом потренируюсь потрясающе починил починила починилось почитаю
почтение поэкспериментирую пояснение прав права правда правильно правы прекрасная прекрасно прелестно прелесть
премного привет приветик приветы признателен признательна признательны прикол прикольно применю приму принял приняла
принято приятно приятного приятных проблем проблема проверим проверю проехали прокатит промахнулась промахнулся прости
простите просто прошу прощай прощайте прощения прямо пустяки путаницу пушка пха пхах пхаха работа работает работка рад
рада рады развёрнуто разобралась разобрались разобрался разумеется разумно разъяснение реально резонно респект решен
решена решено решены решил решила решилось решён ржака ржу ровно роскошно руками с салют сам сама само самое сведению
свидания свидимся свои связи сделаем сделаю себе сегодня сейчас сек секундочку секунду сенк сенкс сердечно сильно
сказочно скоро скорого слава славно сладких слово сложилось случается слышать смех смешно смеюсь смотрится снов собой
совершенно совет советы согласен согласна согласны соглашусь созвона созвонимся сойдет сойдёт сорри спас спасиб
спасибки спасибо спасибочки спасла спасли спеши спешите спишемся споки споки-ноки спокойной спорить спорю справедливо
спс спсб сработало срочно стало стоит стопудово страшно страшного супер суток счастлив счастлива счастливо так таки
тебе тебя теперь терпение то тобой тогда того тоже толково том торопись торопитесь тот точку точно точняк тронут
тронута туда ты убегаю убежал уважуха увидимся увы угар угу угу-угу удалось удачи удачно удачного уж уже умница умно
умора упс упсс ура ура-ура урааа услышал услышала успешно устраивает утверждаю утречка утречко утро уф ух ух-ты учтем
учтиво учту учтём учёл учёту ушел ушла ушёл фантастика фантастически физкульт-привет фух ха хай хаха хахаха хвалю
хватит хелло хеллоу хех хи хитро хихи хм хмм хороша хорошего хорошей хороших хорошо хотел хотела хэлло целиком целую
чай чао чат черт честно честное четко чмок чудесно чудненько чудно чудо чёрт чётко шикарно щас ыыы элементарно эм это
этого этом эх эээ я яблочко яснее ясненько ясно яснопонятно ёлки ёлки-палки
"""

_CHINESE = """
好的嗯是对不谢你您多客气用没问题事可以行明白了知道解收到太错厉害棒早上晚安见拜哈呵哦噢当然吧就这样辛苦真非常啊呀哇啦嘞滴
哒赞牛完美同意一定先回头聊慢走保重抱歉天嘛那很感激懂得妙极酷嘿嗨关系有趣分享别漂亮算决我自己搞佩服来讲清楚挺合适已照办试
等下终于动松口卧槽看今里理笑死随便起发救命给添麻烦喔耶哟嘻呼唉诶欸嗷啧唔额呃哎们绝强秒悟悉晰透彻详细耐心帮助答释复及时靠
谱专业功通过毛病认支持确实必须肯正果难怪原如此放祝顺利愉快开高兴幸会末午中梦歇休息忙闪溜撤改稍候请失误手滑打字谅包涵吓惊
喜爱比花香笔芯力位贴全满省神奇塞噻咯喽呐捏鸭丫呗奥欧克句点儿些在特十其相万无够足思涨识逼学紧杯水倒着急该厕所洗间离马转小
拍案叫顶呱大恩言仙星宝藏悍优秀叹艳膜体投地涕零受益匪浅醍醐灌茅顿豁朗勿虑担外跟套举劳乐效民务亲贝老师傅佬哥姐
"""


_MARKERS = """
thanks thank thx ty tysm cheers ok okay cool great nice perfect awesome lol haha wow yay sweet good sorry bye goodbye
hi hello hey phew brilliant спасибо спс спасибки пасиб ок окей хорошо ладно понял поняла понятно ясно отлично супер
круто здорово класс пока привет прости извини простите извините молодец ого вау ура ой фух
"""

EMPTY_WORDS = frozenset(f"{_ENGLISH}{_RUSSIAN}".split())
EMPTY_CHARACTERS = frozenset(_CHINESE.replace("\n", ""))
#: Words that make a message an acknowledgement even if it also contains one unknown word.
MARKERS = frozenset(_MARKERS.split())
