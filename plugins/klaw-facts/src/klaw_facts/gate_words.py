"""Words without content: thanks, greetings, reactions, approval, and function words.

A short message that consists only of these is an acknowledgement, a greeting or a farewell. The lists were written by
hand. They contain no names of things, persons, places or times that somebody could ask about.
"""

from __future__ import annotations

_ENGLISH = """
a a+ a-ok about absolute absolutely absorb accident accidentally ace aces ack acked acknowledged actually adds adios
adorable adore advice affirmative afk afternoon again agree agreed ah aha ahead ahh ahoy all all-set almost aloha
alright alrighty am amazing amen an angel answered answers any anyhow anytime anyway aok apologies apologise apologize
apology applause appreciate appreciated appreciates appreciation approve approved are argh arigato around as autocorrect
aw awesome awful aww aye back bacon bah banger based basically bathroom bbiab bbl bbs be beans bear beautiful
beautifully been being believe best bet better bingo bio bit bless blessed blimey blown bonkers boo boss both bounce bow
bows brain bravo brb breathe brill brilliant bro buddy bullseye bunch by bye can can't cannot cant care catch certainly
champ charm charming chat chatting check checking cheers chef's chefs chill chuffed ciao clap clapping clarification
clarified clarifies clarity classic clean clear cleared clearer clearly clears clever click clicks coffees complain
complete completed confirm confirmed confusion congrats congratulations convinced cool copy correct correctomundo cosy
could couldn't course covered cow cracking crap crazy crikey crossed crying crystal cute cya dammit damn dang danke darn
dash dat day dead deal dear deeply definitely delighted delightful demystified deserved detailed did digest diggity
disagree disregard ditto do doing dokey done done-deal dont doorbell dope doubt down dream drop drops dude dunno duper
easy ecstatic educational eh either elated else emotional enjoy enjoyed enlightening enough epic er even evening ever
everyone everything exactly excellent excited excuse explained explaining explains explanation explanations extremely
eye fab fabulous fact facts fair fantastic far farewell fart fascinating fast fat feel feeling feels felt figure figured
finally fine fine-by-me fingered fingers finished finito fire first-rate fixed fixes flawless folks for fr friend from
fully fun funny g2g gee geez gem genius getting give glad gm gn gnight go goat goated god going golly gonna good goodbye
goodness goodnight gorgeous gosh got gotcha gotta gracias grateful gratitude grazie great greatly greetings grinning
gross gtg guys hah haha handy hang happens happy hard harm hats have having he's hear heard hearing hears heck hee heh
hehe hell hello help helped helpful helping helps here hero hey heya hi high highly hilarious hiya hm hmm hold holidays
holy honestly hooray hope hopefully hoping horrible hot howdy hug hugely hugs huh hurray hurries hurry hyped i i'd i'll
i'm iconic idc idk if ignore ikr im immaculate imo impressed impressive in incredible incredibly indebted indeed
informative insane insightful insist interesting into is it it's its ive jeez jobs-done joking joy joyful just k kay
kettle kidding killer kind kinda kindly king kiss kisses kk knew knock know knows kudos later laters laugh laughing
learned legend legendary legit let let's letting lgtm life lifesaver lifesaving like liked likes likewise listened
listening lit literally lmao logical lol loo looking looks lot loud love loved lovely lovely-jubbly loving luck lucky
ma'am madam made magic magnificent makes making man many marvellous marvelous massively mate matter maybe me mean means
meh mental merci merry mess mhm mic might million min mind mine mins minute misclick misclicked misread misspelled
mistaken mistook mistyped misunderstanding mkay mmkay moly moment more morning most moved-to-tears much must myself
mystery nah nailed namaste naw neat necessarily necessary need needed negative neither never nevermind ngl nice nicely
night nightmare nighty nm no noice nope notch noted nothing now np nty nuh nuts nvm obliged obrigado obviously of off oh
ok ok-hand okay okey oki okie okie-dokie okk omfg omg omw on ones only oof ooh oops oops-a-daisy oopsie opener opening
ouch out outstanding ovation over overjoyed owe owed pal pardon pass patience patient peace peasy perfect perfection
perfectly perhaps phenomenal phew pity plan pleasant please pleased pleasure point points poor possibly preach precisely
pressure pretty priceless prob probably problem proceed props proud psyched pumped queen quick quickly quite r rad
rather reading ready real really reasonable received reckon relax relief relieved remarkable resolved respect rest
rested ridiculous right rock rofl roger rush safe salutations salute same same-here sauce saved saves saving scrap sec
second see seems sense sensible seriously set settled sgtm shame shit shocked shook shoot shortly shot should shoutout
sigh signing simple sir sis skip slaps slay sleep sleepy smart smashing smile smiling smokes so solid solved solves
somewhat soon soonish sorry sort sorta sorted sound sounds soz spam spectacular speechless splendid spot spotless sry
standby standing star stellar stoked stress stuff stunned stunning sublime such suits sup super superb suppose sure
surely surprised sweet ta take taken talk talking tbh team tears tee terrible terrific than thank thankful thanks
thanks-anyway thanx that that's thats's then there they're thing things think thinking this thnaks thought thrilled
thumbs thx tidy tight till time times timing tip tired tmrw to today told tonight tons too toodles took top tops totally
touch touche touched tq travels treat trick trouble true truly trust truth try trying ttyl turned ty typo tysm u ugh uh
uh-huh um unbelievable understand understood unlikely unreal unsolved until up ur urs useful valid very w wait waiting
wanted was way we we'll we're weekend welcome well were what-a whatever whew while whoa whoo whoops wilco wild will
window wise wish wishes with without woah wonderful woo woohoo word work worked working works world-class worries worry
worth would wow wowza wowzers written wtf xd xo xoxo ya yass yay yea yeah yep yes yess yesss yet yikes yippee yo you
you'd you'll you're you've your youre yourself youve yowza yummy yup
"""

_RUSSIAN = """
touché ааа абсолютно ага агась адьос ай аналогично ауч ахах ахаха ахахах ахахаха баиньки бай бай-бай балдеж балдёж бе
бегу бедняга бедняжка без безусловно бери бесподобно беспокойство беспокойся беспокойтесь бинго благодарен благодарна
благодарны благодарочка благодарствую благодарю блин блинский богу боже болей больше большое бомба браво брат братан
будем будь буквально бы бывает бывай бывайте был была было быстро важно вам вами вас вау вежливо везёт великолепно
верить верно вернулась вернусь вероятно верю весело вечер вечера вечером вечерочек взаимно взяла ви виделись видеть
виднее видно вижу вина виноват виновата вник вникла внимание вниманию внимания вовсе возможно возьмусь волнуйся
волнуйтесь волшебник вопрос вопросов воспользуюсь восторг восторге восхитительно вот вперёд впечатлен впечатляет
впечатлён времени время вряд все всего всем всеми всех встало всякое всё всё-таки вы выглядит выздоравливай выручил
выручила выручили вышло гениально гений гляну гм говоря годится годно голову гора гораздо господи готова готово да даа
давай давайте давно дада даешь дам даёшь двумя действительно дельно денек день денёк держать дерзай десятку дня днём до
добр добрейшего добрейший доброго доброе доброй добры добрый доверяю доволен довольна довольны договорились доделаю
дождались дождусь доказать достаточно доходчиво дошло друг дружище души ерунда есс естественно есть жалко жаль ждем жду
ждём же жесть жуть за забавно забей забейте заботу завтра задержку займусь закончил закончила закончили закончим
закругляемся замечательно занятно записал записала запомнил запомнила заработало зафиксировал зачет зачёт зачётно збс
звучит здарова здесь здорова здорово здравия здравствуй здравствуйте здрасте здрасьте знает знаешь знакомству знал знала
знать знаю золото и идеально идет иду идёт извини извините извиняюсь изумительно изучу имба имеет именно имею интересно
искренне исправлюсь исчерпывающе итак йес йо кайф кайфово кайфую капец каюсь кек класс классная классно клянусь конечно
косяк кошмар красавец красавчик красиво красота крепко круто крутяк кстати ку ладненько ладно лады лайк легко легкотня
лепота ловко логично лол лучшая лучше лучшие лучший любезно любезность любопытно мгновение мда мдя мелочи меня мерси
места место мило милота минут минутку минуточку минуту мм ммм мне мог может мои мой молодец молодцы молодчина молчу
момент мощно мощь моё мрак мудро мы на наверное наглядно надеюсь надо нажал нажала наилучшего наконец наконец-то налью
нам намного напишу нас насмешил насмешила наступающим нашел нашла нашёл нда не неа неа-неа неважно невероятно недели
недоразумение недурно неет некуда нене неожиданно неплохо несомненно нет нет-нет нетерпением нетушки никаких никогда
нисколько ничего ничуть норм нормально нормалёк нормас нормуль ночи ночки нравится ну нужно о об обалдеть обдумаю
обижайся обижаюсь обнимаю обожди обращай обращайтесь объяснение объяснения объяснил ого огонь огромное однозначно одну
одобрено одобряю ожидала ожидалось ой ок окей океюшки оки окно окс окси оно оперативно оперативность опечаталась
опечатался опечатка ору орунькаю от отбегу ответ ответы отключаюсь отлегло отличная отлично отличные отличный отлучусь
отойду отошел отошёл офигеть ох очень ошибку ошиблась парься парьтесь пасиб пасибки пасибо переварю переживай
переживайте перекур печаль печалька пжлст плачу плеч плиз плюс плюсую побежал побежала побери поболтать повезло поверить
поворот погнали погоди погодите поддерживаю поделаешь поделать подожди подождите подписываюсь подробно подруга подсказку
подтверждаю подумаем подумать подумаю подходит поехали пожалуйста поживём поздравления поздравляем поздравляю позже
познавательно познакомиться пойдет пойду пойдёт пока пока-пока покажет покатит покеда покедова полезно полностью
получилось помог помогла помогли помогло помочь помощь пон понравилось понял поняла поняли понятия понятнее понятненько
понятно понятно-понятно пообщаться попозже попробуем попробую пора порядке последую посмотрим посмотрю потом
потренируюсь потрясающе починил починила починилось почитаю почтение почти пошла поэкспериментирую пояснение прав права
правда правильно правы превосходно предвкушаю предупредил прекрасная прекрасно прелестно прелесть премного привет
приветик приветствую приветы признателен признательна признательны прикол прикольно применю приму принял приняла принято
приятно приятного приятных проблем проблема пробую проверим проверю проверяю продолжай продолжайте проехали прокатит
промахнулась промахнулся пронесло прости простите просто прошу прощай прощайте прощения прямо пустяки путаницу путём
пушка пха пхах пхаха работа работает работка равно рад рада рады разберусь развёрнуто разницы разобралась разобрались
разобрался разумеется разумно разъяснение реально резонно респект решай решен решена решено решены решил решила решилось
решён ржака ржу ровно роскошно руками с салют сам сама само самое сведению свидания свидимся свои связи сгодится сдаюсь
сделаем сделано сделаю се себе сегодня сейчас сек секундочку секунду сенк сенкс сердечно серьёзно сильно скажешь
сказочно скорее скоро скорого слава славно сладких слов слово сложилось сложно случается слышать смех смешно смеюсь
смотрится смотрю снов собой соболезную совершенно совет советы совсем согласен согласна согласны соглашусь созвона
созвонимся сойдет сойдёт сойти сомневаюсь сообщу сорри сочувствую спас спасиб спасибки спасибо спасибочки спасла спасли
спать спеху спеши спешите спешки спишемся споки споки-ноки спокойно спокойной спорить спорю справедливо справился спс
спсб сработало стало стараться стоит стопудово страшно страшного супер суток счастлив счастлива счастливо счастливого
сюрприз так таки такова такого тебе тебя теперь терпение то тобой тогда того толково только том топ торопись торопитесь
точку точно точняк требовалось тронут тронута трудно трындец туда тут ты тьфу тяжело убегаю убедил убежал уважуха
уверена увидим увидимся увы угар уговорил угу угу-угу удалось удачи удачно удачного уж ужас уже умница умничка умно
умора упс упсс ура ура-ура урааа услышал услышала усмотрение успешно устал устала устраивает утверждаю утречка утречко
утро уф ух ух-ты учтем учтиво учту учтём учёл учёту ушел ушла ушёл фантастика фантастически фе физкульт-привет фу фух ха
хай хаха хахаха хвалю хватит хе хелло хеллоу хех хи хитро хихи хм хмм хороша хорошая хорошего хорошей хороший хороших
хорошо хотел хотела хочется хочешь хэлло целиком целую чао чат черт честно честное четко чистая читаю чмок чудесно
чудненько чудно чудо чёрт чёрту чётенько чётко шикарно шоке щас ыыы элементарно эм это этого этом эх эээ я яблочко яснее
ясненько ясно яснопонятно ёлки ёлки-палки
"""

_CHINESE = """
好的嗯是对谢你您多客气用没问题事可以行明白了知道解收到太错厉害棒早上晚安见拜哈呵哦噢当然吧就这样辛苦真非常啊呀哇啦嘞滴哒
赞牛完美意定先回头聊走保抱歉天嘛那很感激懂得妙极酷嘿嗨关系有趣享别漂算决我自己搞佩服来讲清楚挺合适已照办试等下终于动松口
卧槽看今里理笑死随便起救命添麻烦喔耶哟嘻呼唉诶欸嗷啧唔额呃哎们绝强秒悟悉晰透彻细耐心助释复及时靠谱专业功通过毛认支持确实
必须肯正果难怪原如此放祝顺利愉快开高兴幸会末午中歇休息忙闪溜撤稍候请失误手滑字谅包涵吓惊喜爱花香笔芯力位贴全满省神奇塞噻
咯喽呐捏鸭丫呗奥欧克点儿些在特其相万够足思涨识逼学紧杯水倒着急该厕所洗离马转小拍案叫顶呱恩言仙星宝藏悍优秀叹艳膜体投地涕
零受益匪浅醍醐灌茅顿豁朗勿虑担外跟套举劳乐效民务亲贝师傅佬哥
"""


_CHINESE_PHRASES = """
一会儿见 一会聊 一切顺利 一样一样 一目了然 一般般 一言为定 一路平安 一路顺风 三克油 上午好 下了 下午好
下次再聊 下次聊 下次见 下线了 不一定 不出所料 不可思议 不好意思 不好说 不客气 不急 不想 不敢相信 不清楚
不用 不用谢 不着急 不知道 不确定 不碍事 不管了 不至于 不要 不要紧 不见不散 不谢 不赖 不辛苦 不错 不需要了
不麻烦 中午好 举双手赞成 举手之劳 乐意帮忙 乐意效劳 也许 了解 五体投地 交给我 今天先到这 优秀 伤心 但愿
你决定 你定 你帮了大忙 你忙 你救了我 你是天才 你看着办 你说 你说得有道理 你说得没错 你赢了 佩服 依你 保重
倒霉 借你吉言 假期愉快 做好了 做得不错 做得好 先忙 先这样 其实 再看 再见 再说 准备好了 凑合 出色 切
刚刚好 刚好 别客气 别怕 别急 别慌 别难过 到位 到时候再说 到此为止 加油 劳烦了 十分感谢 卧槽 厉害 原来如此
原来是这样 原来这样啊 去忙了 去睡觉 及时 反正 发错了 发错人了 受教了 受益匪浅 口误 可以 可怕 可怜 可惜
吃好喝好 同意 同感 吓到了 吓我一跳 吓死我了 听你的 听着呢 呃 呵呵 咦 咱们开始 哇 哇塞 哈哈谢谢 哈啰 哈喽
哦原来 哦豁 哦这样 哪里哪里 哼 啧啧 喂 喜欢 嗨嗨 嗯哪 嘻嘻 回头见 回头说 回来了 困 圣诞快乐 在做了 多谢
够了 大佬 大家好 大概 大神 天哪 天啊 太美了 太谢谢了 太酷了 头大 夸张 好东西 好主意 好久不见 好使 好办法
好吃 好听 好好休息 好建议 好快 好想法 好极了 好样的 好消息 好点子 好玩 好的谢谢 好看 好笑 好运 好问题
妈呀 妈耶 妙 妙极了 学会了 学到了 安 安心了 完了 完成 完美 完蛋 容易 对不起 对头 小事 小事情 小意思
就是它 就是说 就是这个 就要这个 就这么办 就这么定了 就这样 居然 崩溃 差不多 已收到 已解决 已阅 希望如此
希望能行 希望顺利 帮助很大 帮大忙了 常有的事 干得漂亮 幸会 应该做的 应该的 开始吧 开心 弄好了 弄完了 强
当我没说 当然 彼此 待会儿说 待会聊 很快 很清楚 很酷 很高兴见到你 很高兴认识你 心服口服 心疼 必须的 快了
快好了 忽略我 怎么会 怪不得 怪我 总之 恩 恭喜 恭喜发财 惊了 惊呆了 惨 想不到 想想 感动 感激不尽 感谢
慢慢来 慢走 懂了 懂啦 成 成交 成功了 成功啦 我也这么想 我也这么觉得 我信 我去办 我去试试 我就知道 我就说嘛
我懂 我查一下 我查查 我滴妈 我的天 我的错 我看下 我瞧瞧 我考虑下 我要的就是这个 我认输 我试一下 我试试
我超爱 我错了 我靠 我马上办 手误 打扰了 打扰您了 打错了 打错字了 托你的福 抱歉 拜 按你说的 搞定 搞笑 撤了
支持 收到 改天聊 放心 救命恩人 新年快乐 无所谓 无语 早 早日康复 早点休息 早点睡 明白 春节快乐 是这样 晚安
晚点聊 晚点说 暂时不用 暂时没有 有事叫我 有劳了 有帮助 有意思 有毒 有用 有趣 有需要叫我 服了 期待 机智
果不其然 果然 棒 棒极了 欢迎 欢迎回来 正合我意 正在做 正在试 正好 正常 正是 正是如此 比心 没了 没事
没什么 没关系 没别的了 没办法 没啥 没差 没想到 没有了 没有你我可怎么办 没有别的了 没有没有 没毛病 没法子
没问题 注意休息 注意安全 洗耳恭听 涨知识了 清晰明了 清楚了 溜了 满意 漂亮 激动 点赞 烦 烦死了 照顾好自己
爱了 爱你 牛 牛批 牛掰 牛逼 玩得开心 理解 生日快乐 用餐愉快 甭客气 疯了 白白 的确 的确如此 相信你 看一下
看看 真快 真的假的 真给力 真酷 真香 睡了 睡啦 睡觉了 知道了 知道啦 确实如此 确实是 祝你好运 祝好 祝福
祝贺 祝顺利 神速 离谱 稍等 竟然这样 笑哭 笑喷了 笑死 等一下 等不及了 等会 等我 等我一下 等等 简单 算了
精彩 精辟 糟糕了 累 累死了 绝了绝了 绝绝子 继续 老天 考虑一下 考虑考虑 聪明 肯定的 能用了 膜拜 节日快乐
被你说服了 见谅 解决了 解决啦 记下来了 记住了 试试看 话说 说不定 说吧 说定了 说错了 请无视 请稍等 请继续
请见谅 请讲 请说 谁知道 谢了 谢啦 谢谢亲 谢谢你 谢谢你的建议 谢谢你的耐心 谢谢啊 谢谢啦 谢谢大佬 谢谢帮忙
谢谢您 谢谢提醒 谢谢老师 谢谢解答 赞 赞同 走了 走吧 走起 足够了 辛苦了 过奖了 过奖过奖 还没 这就是生活
这样啊 这样子啊 逗死我了 速度 遗憾 那必须 那是自然 醉了 长见识了 闪了 随你 随便 随时效劳 难以置信 难怪
难说 难过 震惊 非常不错 非常好 非常完美 非常感谢 非常抱歉 非常棒 非常满意 马上 高兴 高手 麻烦你了 麻烦您了
"""

_CHINESE_PARTICLES = "啊呀哈嗯哦噢喔呢嘛吧啦了的哒滴嘞哟诶欸哎唉嘿额就很太真好那这先又多最挺蛮对行更得着在"

_TOPICS = """
in may for work the second first last one more two tomorrow today tonight tmrw weekend plan thing things problem rest
now a of and this that завтра сегодня вечером все всё оба и ещё один
"""

EMPTY_WORDS = frozenset(f"{_ENGLISH}{_RUSSIAN}".split())
EMPTY_CHARACTERS = frozenset(_CHINESE.replace("\n", ""))
#: Chinese phrases of acknowledgements, and characters that may be before, between and after them.
EMPTY_PHRASES = frozenset((*_CHINESE_PHRASES.split(), *_CHINESE_PARTICLES))
#: Times, orders and things: a message of nothing but these is an answer or a question.
TOPICS = frozenset(_TOPICS.split())
