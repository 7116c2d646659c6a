"""Finds sentences that can't be understood alone, for one of three reasons.

`points_back` finds an opening that refers to another sentence ("Of these, eleven ...", "Die anderen beiden ..."),
`lacks_antecedent` a later word without a reference ("They met there."), and `leaves_speaker_open` a quotation whose
speaker is only a pronoun.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.text.language_detection import guess_language, primary_language
from pipeline.text.late_pattern import late_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBERS: Final = r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half|most|many|several|some|few|others|another"
# Openings by language. Demonstratives don't count before a time: "this year" and "in diesem Sommer" are understood
# without context.
_ENGLISH: Final = (
    # "Of these, ..."
    r"(?:of|among|amongst|between|from|with|to|for|by|against|despite|besides|apart from|instead of|because of|thanks to|in|on|at|under|after|before"
    r"|during|including) (?:these|those|them|which|whom|it|him|both|that|the latter|the former)\b(?! who\b| which\b)"
    # "At least three of them ..."
    r"|(?:all |both |each |either |neither |none |any |more than |fewer than |less than |at least |only |nearly |almost |about )?"
    r"(?:(?:all|both|each|either|neither|none|some|most|many|several|few|half|part|much|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|\d[\d.,]*|\d+ per ?cent|a (?:third|quarter|few|number|majority|handful|dozen)|two thirds|the (?:first|second|third|last|oldest|youngest|largest|smallest"
    r"|best|worst|rest|majority|others?)|another|others)(?: \d+)?) of (?:them|these|those|it|which|whom|this|that)\b"
    # "Both were ...", but not "Both Ann and Bo ..."
    r"|both(?! (?:[^\s,.;]+ ){1,6}?and\b)|neither(?! (?:[^\s,.;]+ ){1,6}?nor\b)|either(?! (?:[^\s,.;]+ ){1,6}?or\b)"
    # "The others ...", "Its remaining ..."
    r"|(?:the|his|her|its|their) (?:other(?! day\b)|others|latter|remaining|remainder|rest(?! (?:room|home|area|stop|day))|former(?= (?:is|was|has|had|will|were)\b|,))\b"
    r"|the same(?! (?:\S+ ){0,4}?as\b)"
    # "The two were ..."
    r"|the (?:two|three|four|five|six|seven|eight|nine|ten|pair|trio|duo)(?= (?:were|are|had|have|will|men|women|boys|girls|children|suspects|drivers|brothers|sisters|sides|met)\b)"
    # "The figure rose ..."
    r"|the (?:figure|number|sum|amount|total|share|percentage|rate|ratio)s?(?= (?:is|was|were|are|has|had|rose|fell|grew|includes?|excludes?|does|did|will|would|could|may|might|compares?|comes?|came)\b|,)"
    # "Eleven were ..."
    rf"|(?:{_NUMBERS})(?: more| others?)?(?= (?:were|was|are|is|had|has|have|did|died|came|went|said|says|stayed|left|survived|remain(?:ed|s)?|followed|failed)\b)"
    # "Another 40 ..."
    r"|(?:another|a further|a second|a third) (?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|of)\b"
    # "By then ...", "Two days later ..."
    r"|(?:by|since|until|from|before|after) then\b|(?:a|an|one|two|three|four|five|six|seven|eight|nine|ten|\d+|some|several|many|a few) "
    r"(?:minutes?|hours?|days?|nights?|weeks?|months?|years?|decades?) (?:later|earlier|before that|after that|afterwards?|on)\b"
    # "The next day ..."
    r"|(?:on |in |at )?the (?:next|same|following|previous) (?:day|morning|afternoon|evening|night|week|month|year|time|place|street|spot)\b"
    # "Later that ...", "Afterwards, ..."
    r"|(?:later|earlier) that\b|(?:shortly|soon|immediately) (?:after|before|afterwards?|thereafter)\b(?= ?,| [a-z]+ed\b)|(?:afterwards?|thereafter|there|here|elsewhere|later|instead),"
    # "Yes, ..."
    r"|(?:yes|no|yeah|nope)[,.!:;—–](?! \d)"
)
_GERMAN_TIMES: Final = (
    r"(?! (?:jahr|woche|monat|sommer|herbst|winter|früh|saison|wochenende|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag|abend"
    r"|morgen|nachmittag|mittag|mai\b|tagen\b))"
)
# "Davon ...", "Die beiden anderen ...", "Zwei von ihnen ...", "Tags darauf ...".
_GERMAN: Final = (
    r"davon|dabei|dazu|dafür|dagegen|dadurch|danach|daraufhin|darunter|darin|daran|darauf|daraus|darüber|dahinter|daneben|dazwischen|demnach|dort|seitdem|seither|zuvor"
    r"|deshalb|deswegen|daher|darum|trotzdem|dennoch|stattdessen|hingegen|jedoch|aber|doch(?= )|und|denn|sondern|anschließend|hinzu (?:kommt|kommen|kam)"
    rf"|(?:dies|diese[mnrs]?|jene[mnrs]?|solche[mnrs]?){_GERMAN_TIMES}|letztere[mnrs]?|erstere[mnrs]?|beide[mnrs]?|deren|dessen(?! ungeachtet)|sein(?:e[mnrs]?)(?= [A-ZÄÖÜ])"
    r"|das (?:ist|sind|war|waren|wird|wurde|hat|hatte|macht|kostet|bedeutet|entspricht|gilt|sagte|heißt|reicht|zeigt|soll|liegt|lag|geht|ging)"
    r"|(?:die|der|den|das|dem) (?:anderen?|andere[mnrs]|beiden|übrigen?|restlichen?|rest|letzteren?|zwei|drei|vier|fünf|sechs|gleiche[nr]?)(?! (?:als|wie))"
    rf"|(?:von|unter|mit|bei|nach|aus|für|auf|in|an|zu|gegen|durch|seit|vor|über|neben|zwischen|trotz|wegen|während|außer) "
    rf"(?:ihnen|ihm|ihn|denen|beiden|(?:diese[mnrs]?|jene[mnrs]?){_GERMAN_TIMES})"
    r"|(?:\S+ ){1,4}?(?:davon|von ihnen|von denen|unter ihnen)"
    r"|(?:ein|eine|einer|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|die meisten|viele|einige|mehrere|alle|weitere \S+|\d[\d.]*)"
    r" (?:waren|sind|wurden|starben|hatten|haben|blieben|kamen|überlebten)"
    r"|(?:am|im|in der) (?:selben|gleichen|folgenden|nächsten) (?:tag|jahr|monat|woche|abend|morgen|ort)"
    r"|(?:kurz|bald|wenig|\S+ (?:minuten?|stunden?|tage?|wochen?|monate?|jahre?)) (?:darauf|danach|später|zuvor)|tags darauf"
    r"|es (?:hat|hatte|kostet|kostete|misst|umfasst|enthält|bietet|besteht|öffnet|schließt|wiegt|gehört|stammt|entstand|dient|trägt|steht|stand|liegt|lag)"
    r"|sie (?:hat|hatte|hatten|ist|war|waren|wird|wurde|wurden|kostet|kostete|kosteten|misst|liegt|lag|lagen|steht|stand|standen|umfasst|enthält|bietet|besteht"
    r"|öffnet|schließt|wiegt|gehört|stammt|stammen|kam|kamen|ging|gingen|sagte|sagten|erklärte|leitet|soll|sollte|sollten|will|wollte|wollten|arbeitet|lebt|starb|starben)"
    r"|(?:ja|nein)[,.!:;–—]"
)
_FRENCH_TIMES: Final = r"(?! (?:année|semaine|mois|été|automne|hiver|printemps|saison|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|matin|soir|nuit|après-midi|week-end))"
# "Ces derniers ...", "Parmi eux ...", "Le lendemain ...".
_FRENCH: Final = (
    rf"(?:ce|cet|cette|ces){_FRENCH_TIMES}(?! (?:qui|que|n['’]est|sont|fut|soir|sera))|cela|ceci|celui-ci|celle-ci|ceux-ci|celles-ci|celui-là|c['’]était"
    r"|(?:sur|de|dans|avec|pour|chez|contre|sans|entre|parmi|d['’]|selon|après|avant|outre|malgré|à) ?(?:eux|elles?|lui|celui|ceux|celles?|cela|"
    rf"(?:ces|cette|cet|ce){_FRENCH_TIMES}(?! (?:qui|que)))"
    r"|l['’]autre|les autres|les (?:deux|trois|quatre|cinq|dix) (?:autres|derniers|dernières|premiers|premières)|les deux(?= [a-zéè]+(?:ent|ont)\b)|tous (?:les )?(?:deux|trois)|toutes (?:les )?(?:deux|trois)"
    r"|le reste|les autres|ce dernier|cette dernière|ces derniers|(?:son|sa|ses|leur|leurs)(?= [a-zéèà\d])"
    r"|(?:\S+ ){1,4}?d['’]entre (?:eux|elles|ces)|là,|depuis lors|le lendemain|la veille|(?:le|la) même (?:jour|année|mois|semaine|endroit)"
    r"|\S+ (?:minutes?|heures?|jours?|semaines?|mois|ans?|années?) (?:plus tard|après|auparavant)|(?:oui|non)[,.!:;]"
    r"|(?:deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze|plusieurs|certains|la plupart|beaucoup|\d+) (?:étaient|sont|ont|avaient|sont morts)"
)
# Spanish, Portuguese and Italian.
_ROMANCE_TIMES: Final = (
    r"(?! (?:año|ano|semana|mes|verano|verão|otoño|outono|invierno|inverno|primavera|temporada|lunes|martes|miércoles|jueves|viernes|sábado|domingo|segunda|terça"
    r"|quarta|quinta|sexta|mañana|manhã|tarde|noche|noite|fin de semana|fim de semana|anno|settimana|mese|estate|autunno|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica|mattina|sera|notte))"
)
# "Estos ...", "De ellas ...", "Al día siguiente ...".
_SPANISH: Final = (
    rf"(?:est[aeo]s?|es[aeo]s|es[ao]|ese|aquel(?:l[ao]s?)?){_ROMANCE_TIMES}|amb[oa]s|dich[oa]s?"
    rf"|(?:de|entre|con|por|para|en|sin|sobre|tras|desde|hasta|según|ante|contra) (?:ell[oa]s?|él|amb[oa]s|l[oa]s cuales|(?:est[aeo]s?|es[aeo]s?|aquell?[ao]?s?){_ROMANCE_TIMES})"
    r"|l[oa]s (?:otr[oa]s|demás|restantes|dos|tres|cuatro|cinco)(?! (?:mil|millones|cosas|lados|países))|el (?:otro|resto)|la otra|otr[oa]s? (?:dos|tres|cuatro|cinco|seis|diez|\d+)|ella(?=\s[a-zé])"
    r"|(?:sus?)(?= [a-zñ])|(?:\S+ ){1,4}?de (?:ell[oa]s|est[oa]s|es[oa]s)\b|al día siguiente|(?:el|la|ese|esa) mism[oa] (?:día|año|mes|semana)|desde entonces|allí|entonces"
    r"|\S+ (?:minutos?|horas?|días?|semanas?|mes(?:es)?|años?) (?:después|más tarde|antes)|(?:sí|no)[,.!:;]"
    r"|(?:dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce|vari[oa]s|algun[oa]s|much[oa]s|la mayoría|\d+) (?:eran|son|fueron|habían|han|murieron|estaban|están)"
)
# "Questi ...", "Tra loro ...", "Il giorno dopo ...".
_ITALIAN: Final = (
    rf"(?:quest[oaei]|quell[oaei]|quei|quegli){_ROMANCE_TIMES}|quest['’](?!anno|estate|autunno|inverno|ultima settimana)|ess[oaei]|egli|ella|lui|lei|loro|ciò|entramb[ie]"
    rf"|(?:di|tra|fra|con|per|in|su|da|senza|secondo|dopo|prima di|oltre a) (?:essi|esse|loro|lui|lei|ciò|entramb[ie]|(?:quest[oaei]|quell[oaei]){_ROMANCE_TIMES})"
    r"|(?:gli|le) altr[ie]|l['’]altr[oa]|(?:i|le) (?:due|tre|restanti|rimanenti)(?= [a-z]+(?:no)\b)|il resto|(?:il |la |i |le )?(?:suo|sua|suoi|sue)(?= [a-z])|(?:il|la|i|le) loro"
    r"|(?:\S+ ){1,4}?di (?:essi|esse|loro|questi|queste)|il giorno (?:dopo|seguente)|lo stesso (?:giorno|anno|mese)|da allora|\S+ (?:minuti|ore|giorni|settimane|mesi|anni) (?:dopo|prima)"
    r"|(?:due|tre|quattro|cinque|sei|sette|otto|nove|dieci|undici|dodici|alcuni|molti|\d+) (?:erano|sono|hanno|avevano|furono)"
)
# "Essas ...", "Entre eles ...", "No dia seguinte ...".
_PORTUGUESE: Final = (
    rf"(?:ess[ae]s?|isto|isso|aquel[ae]s?|aquilo){_ROMANCE_TIMES}|(?:d|n)(?:el[ea]s?|(?:est[ea]s?|ess[ea]s?|aquel[ea]s?){_ROMANCE_TIMES}|isto|isso)|entre (?:eles|elas)|ambas"
    r"|(?:os|as) (?:outros|outras|restantes|demais|dois|duas|três)(?= [a-zéã]+(?:m|ão)\b)|os outros|as outras|o (?:outro|resto)|a outra"
    r"|(?:o |a |os |as )?(?:seu|sua|seus|suas)(?= [a-z])|(?:\S+ ){1,4}?(?:del[ea]s|dest[ea]s|dess[ea]s)\b|no dia seguinte|no mesmo (?:dia|ano|mês)|desde então|lá,|(?:sim|não)[,.!:;]"
    r"|\S+ (?:minutos?|horas?|dias?|semanas?|mês|meses|anos?) depois"
)
# "Daarvan ...", "De andere ...", "De volgende dag ...".
_DUTCH: Final = (
    r"deze(?! (?:week|maand|zomer|herfst|winter|lente|maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag|avond|ochtend))|dit(?! (?:jaar|weekend|najaar|voorjaar|seizoen))"
    r"|hiervan|daarvan|daarbij|daarna|daarom|daardoor|daarmee|daarin|daarop|daarvoor|allebei|laatstgenoemde"
    r"|de (?:andere|overige|overigen|twee|drie|vier)(?= \S+)|het andere|de rest|(?:van|onder|met|voor|bij) (?:hen|hem|deze(?! week| maand| zomer)|die)(?= )"
    r"|dat (?:is|was|zijn|waren|heeft|wordt|werd|kost|komt|betekent)|er (?:is|was|zijn|waren|komt|kwam)(?: \S+){0,4} een (?:nieuwe|andere|tweede)(?=[.,])|(?:ze|het) (?:heeft|hebben|is|zijn|was|waren|kost|werd|werden|staat|ligt)(?= )"
    r"|(?:\S+ ){1,4}?(?:daarvan|hiervan|van hen|van deze)\b|de volgende dag|dezelfde dag|\S+ (?:minuten|uur|dagen|weken|maanden|jaar) (?:later|eerder)|nee[,.!:;]"
)
# The Scandinavian languages ("Disse ...", "Dagen efter ..."), and Finnish ("Niistä ...").
_NORDIC: Final = (
    r"disse|dette|denne|dessa|detta|denna|båda|begge(?! to)|(?:den|det|de) (?:andra|andre|øvrige|övriga|to|två|tre)|resten"
    r"|(?:av|af|blant|blandt|bland|med|för|for) (?:dem|disse|dessa|dette|detta)|(?:den|de) (?:kostar|koster|har|hade|hadde|havde|ligger|blev|ble|skal|ska|var)|det (?:kostar|koster|ligger|skal|ska)"
    r"|(?:\S+ ){1,4}?(?:av|af) (?:dem|disse|dessa)\b|dagen efter|dagen etter|samma (?:dag|år)|samme (?:dag|år)|(?:hans|hennes|hendes|deres|deras)(?= )"
    r"|(?:nej|nei)[,.!:;]|\S+ (?:dager|dage|dagar|uker|uger|veckor|måneder|månader|år) (?:senere|senare)|niistä|näistä|heistä|nämä|molemmat|muut|loput|(?:se|tämä|hän) (?:on|oli|maksaa)"
)
# Polish ("Z nich ..."), Czech ("Oba ..."), Russian ("Из них ..."), Ukrainian ("Обидва ...").
_SLAVIC: Final = (
    r"(?:z|spośród|wśród|dla|od|do|przy|po|w) (?:nich|niego|niej|tych|tego|tej)(?! roku| tygodni\w*| miesi\w*)|ob(?:a|ie|aj|oje|ydw\w+)|pozostał\w+|jego|jej|tych|tymi"
    r"|(?:ta|ten|te|to|ci|on|ona|oni|one|tam)(?= )(?! rok| tydzień| miesiąc)(?=.{0,80}[ąęłńśźż])(?!.*\b(?:the|were|was|are|is|people)\b)|(?:\S+ ){1,4}?(?:z|spośród) nich|następnego dnia|tego samego dnia|\S+ (?:dni|tygodni|miesięcy|lat) później"
    r"|(?:z|mezi|od|pro) (?:nich|nimi|toho|těch)|obě|oba|t(?:ento|ato|oto|yto|ěchto|omuto)(?! (?:rok|týden|měsíc|víkend))|ostatní|zbývající|její|jejich|následující den|(?:\S+ ){1,4}?z nich"
    r"|(?:из|среди|у|для|от|с|при|после|до|между|без|на|в|во|о|об) (?:них|него|неё|нее|ним|ними|этих|этого|этой|этом|эту|тех|том|этим|тогда)(?! (?:год|недел|месяц|лет|осен|зим|весн|сезон|утр|вечер))"
    r"|эт(?:о|от|а|и|их|ого|им|ими|ому|ой|у|ом)(?! (?:год|недел|месяц|лет|осен|зим|весн|сезон|утр|вечер))|так(?:ой|ая|ие|ое)|об[ае]|остальн\w+|друг(?:ие|ой|ая)|последн(?:ий|яя|ие)(?= (?:из|был|стал))"
    r"|(?:его|её|ее|их)(?= )|там|тогда|затем|потом|оттуда|поэтому|(?:\S+ ){1,4}?из (?:них|этих)|на следующий день|в тот же (?:день|год)|(?:через|спустя) \S+ (?:дн\w+|недел\w+|месяц\w*|год\w*|лет)(?! \S+ (?:открыва|начина))|(?:да|нет)[,.!:;]"
    r"|(?:з|серед|від|до|для|після|на|в|у) (?:них|нього|неї|цих|цього|цієї|цьому|цим|тих)(?! (?:ро[цк]|тиж|місяц))|ц(?:ей|я|е|і|их|ього|ієї|ьому|ими)(?! (?:р[іо]к|тиж|місяц))|обидв[аі]|решта|інші|їх(?:ні|ній)?|його|її"
)
# A line each for Turkish, Greek, Hungarian, Romanian, Hebrew, Arabic and Hindi.
_OTHERS: Final = (
    r"(?:bunlar|onlar)\w*|bunun|bununla|bu(?! (?:yıl|hafta|ay|yaz|kış|sabah|akşam|gece|sezon)) |her ikisi\w*|ikisi\w*|diğer\w*|ertesi gün|aynı gün|(?:\S+ ){1,3}?(?:bunların|onların)"
    r"|(?:από|μεταξύ|για|με) αυτ\w+|αυτ(?:ό|ά|ή|ές|οί|ός|ών|ού|ής)|και οι (?:δύο|δυο|τρεις)|(?:οι|τα|το|η|ο) (?:άλλ|υπόλοιπ)\w+|(?:\S+ ){1,4}?από (?:αυτ|εκείν)\w+"
    r"|ez(?:ek|ek\S+|ek közül)?|azok\S*|ebből|ebben|közülük|mindk\w+|a (?:többi|másik|maradék)\w*|(?:\S+ ){1,4}?közülük|másnap|ugyanaznap"
    r"|(?:dintre|printre|despre|cu|pentru) (?:acestea|aceștia|ele|ei|aceasta|acesta)|aceșt?i?[ae]\w*|această|acesta?|ambele|ambii|celelalte|ceilalți|celălalt|cealaltă|(?:\S+ ){1,4}?dintre (?:ei|ele|acest\w+)"
    r"|מתוכם|מתוכן|ביניהם|ביניהן|אלה|אלו|שניהם|שתיהן|השאר|זה|זאת|זו|הם|הן|למחרת"
    r"|(?:و)?(?:منهم|منها|من بينهم|من بينها|هؤلاء|كلاهما|كلتاهما|ذلك|تلك|هو|هي|هما|وهو|وهي|الباقون|الباقي|والآخران|الآخران)|(?:و)?(?:هذا|هذه)(?! (?:العام|الأسبوع|الشهر|الصيف|الشتاء|المساء|الصباح|السنة))"
    r"|इनमें|उनमें|इनमे|उनमे|इन|उन|ये|वे|यह|वह|दोनों|बाकी|शेष|उस|उसी|(?:इस)(?! (?:साल|वर्ष|हफ्ते|सप्ताह|महीने|गर्मी))"
)
# A pronoun of one language is an article, a noun or a verb in another ("Il museo", "Lei que", "Son 40 vecinos").
_BY_LANGUAGE: Final = {
    "en": _ENGLISH,
    "de": _GERMAN,
    "fr": rf"{_FRENCH}|or(?=,)",
    "es": _SPANISH,
    "it": rf"{_ITALIAN}|(?:sì|no)[,.!:;]",
    "pt": rf"{_SPANISH}|{_PORTUGUESE}",
    "nl": _DUTCH,
    **dict.fromkeys(("da", "no", "nb", "nn", "sv", "fi"), _NORDIC),
    **dict.fromkeys(("pl", "cs", "sk", "ru", "uk", "be", "bg"), _SLAVIC),
    **dict.fromkeys(("tr", "el", "hu", "ro", "he", "ar", "hi"), _OTHERS),
}
_SPACED: Final = {
    name: late_pattern(rf"(?:{words})(?![^\W_])", re.IGNORECASE) for name, words in _BY_LANGUAGE.items()
}
_SPACED_ANY: Final = late_pattern(
    rf"(?:{_ENGLISH}|{_GERMAN}|{_FRENCH}|{_SPANISH}|{_ITALIAN}|{_PORTUGUESE}|{_DUTCH}|{_NORDIC}|{_SLAVIC}|{_OTHERS})(?![^\W_])",
    re.IGNORECASE,
)
# Openings in Chinese, Japanese, Korean and Thai.
_SPACELESS: Final = late_pattern(
    r"其中|这些|這些|它们|它們|他们|他們|她们|她們|[他她它](?!人|国|國|們|们|山)|该(?!死|隐)|該(?!死|隱)|两者|兩者|二者|另外|另一|其余|其餘|其他|剩下|前者|后者|後者"
    r"|[这這](?!个?[月周夏冬春秋年]|個?[月週夏冬春秋年]|一?[周年]|里|裡)|那(?:些|个|個|一|是|座|家|项|項|次|名|位|条|條|时|時|天)|对此|對此|对于此|当时|當時|当天|當天|次日|同日|同年|此"
    r"|これ|それ|この(?!夏|春|秋|冬|週末|たび|度)|その|あの|両者|両方|彼|同[社氏市館校県町村](?!民)|うち|残り|前者|後者|翌日|翌年|いずれも|どちらも|ほかの"
    r"|이들|이 중|그중|그 중|이는|이것|그것|그는|그녀|그들|둘 다|두 사람|나머지|다음 날|이에|그 (?=\S)|이 (?=\S)"
    r"|ในจำนวน(?:นี้|นั้น)|ทั้งสอง|ทั้งคู่|พวกเขา|สิ่งนี้|ส่วนที่เหลือ|ที่เหลือ|วันรุ่งขึ้น"
)
_OPENING_MARKS: Final = "\"'‘’“”„«»‹›「『([ \t¿¡"
# Speech with a speaker who is only a pronoun: "… ,” she added.", "…“, sagte er."
_SHE: Final = r"he|she|they|er|sie|il|elle|ils|elles|él|ella|ellos|ellas|lui|lei|egli|ele|ela|eles|elas|hij|zij|ze|han|hon|hun|on|ona|oni|он|она|они|він|вона|вони"
# "said his colleague, Anna Cruz": another sentence says whose colleague.
_HER: Final = (
    r"(?:his|her|their|one of (?:his|her|their)|sein(?:e[mnrs]?)?|ihr(?:e[mnrs]?)?|son|sa|ses|leur|sus?|(?:il |la |un |una )?su[oa]|(?:o |a )?(?:seu|sua)"
    r"|zijn|haar|hun|hans|hennes|hendes|jego|jej|jeho|její|его|её|ее|його|її)"
)
_SAYS: Final = (
    r"(?:said|says|added|adds|told|explained|noted|recalled|insisted|warned|wrote|argued|continued|asked|sagte|sagt|erklärte|meinte|ergänzte|betonte|fügte|erzählt|so"
    r"|dit|déclaré|ajoute|ajouté|explique|affirme|assure|dijo|dice|añadió|explicó|afirmó|señaló|disse|dice|aggiunge|ha detto|spiega|disse|afirmou|explicou|acrescentou"
    r"|zei|zegt|voegde|vertelt|aldus|sa|säger|sade|siger|sagde|sier|powiedział[ao]?|mówi|dodał[ao]?|řekl[ao]?|dodal[ao]?|сказал[аи]?|говорит|добавил[аи]?|сказав|сказала|додав|додала)"
)
_SAID_BY_UNNAMED: Final = late_pattern(
    rf"[\"”“»«'’][,.]?\s*[–—-]?\s*(?:(?:ont |a |ha |hat )?{_SAYS}\s(?-i:{_HER})\s|(?:{_SHE})\s(?:\S+\s)?{_SAYS}|(?:a-t-|ont-|a )?{_SAYS}[\s-](?:t-)?(?:{_SHE}))\b(?!(?-i:\s[A-ZÀ-ÞА-Я]))|[\"”»]\s*[,.]?\s*a-t-(?:il|elle)\b|[\"”»'’]\s(?:(?:he|she|they)\s\w+(?:\s\w+)?|\w+\s(?:he|she|they))[.!?]$",
    re.IGNORECASE,
)


_TIME: Final = (
    r"(?:so far|until now|by now|now|today|yesterday|tomorrow|tonight|still|at (?:first|last)|(?:last|this|next|every) \w+"
    r"|(?:in|on|by|since|until|from|at|before|after|around) (?:(?:early|late|about) )?(?:\d[\d:.]*(?: ?[ap]\.?m\.?)?|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|spring|summer|autumn|winter)(?: \d+)?)"
)
# "In 2019 she left the club."
_AFTER_TIME: Final = late_pattern(rf"{_TIME},? (?:he|she|they|his|her|their)(?:['’]\w+)?(?= )", re.IGNORECASE)
# "Owners of the H2-S can skip this step.": nothing before the first comma is a step.
_STEP: Final = late_pattern(
    r"(?:(?! and | but | und | et | y | e )[^,;:–—?])*?\s(?<!\bat )(?:(?:this|these|those) (?:steps?|sections?|points?|cases?|ways?|reasons?|methods?|process|procedures?|settings?|options?"
    r"|figures?|numbers?|amounts?|claims?|plans?|rules?|measures?|decisions?|problems?|changes?|ideas?|proposals?)"
    r"|diese[mnrs]? (?:schritte?n?|punkte?n?|abschnitte?|falle?|fälle|grund|plan|pläne|zahl(?:en)?|methode|maßnahmen?|frage)"
    r"|(?:cette|cet|ce|ces) (?:étapes?|points?|cas|méthodes?|chiffres?|plan|mesures?|raisons?|décisions?)"
    r"|est[aeo]s? (?:pasos?|puntos?|casos?|cifras?|medidas?|planes|plan|passos?|plano|número|método|decisión)"
    r"|quest[aoei] (?:passaggi?o?|passo|punto|caso|cifra|misura|piano|metodo|decisione)|(?:deze|dit) (?:stap(?:pen)?|punt|geval|plan|maatregel(?:en)?)"
    r"|(?:denna|detta|dette|denne) (?:punkten|steget|skridt|steg|plan|planen)|(?:ten|tego|tym) (?:krok|kroku|punkt|punktu)|эт(?:от|ого|ом|у) (?:шаг|шага|пункт|меру))(?![^\W_]|:)",
    re.IGNORECASE,
)
# "there" as a place ("They met there."), not in "there is", "over there" or "out there".
_THERE: Final = late_pattern(
    r"(?<=\s)(?<!\band )(?<!\bover )(?<!\bout )(?<!\bup )(?<!\bdown )(?<!\bin )(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )(?<!\bbe )there(?=[\s.,;!])"
    r"(?! (?:is|are|was|were|be|been|being|has|have|had|will|would|can|could|may|might|must|should|shall|to be|used|seem\w*|appear\w*|remain\w*|exist\w*|comes?|came|isn|aren|wasn"
    r"|weren|won|now|also|still|never|always|no longer|really|simply|just|lies|lay|stands|stood|lived|lives)\b)"
)
# A word that may introduce or name the place before it: "in", "visited", "Kiel".
_PLACE: Final = late_pattern(
    r"\b(?:in|at|to|from|near|of|into|onto|on|around|through|across|outside|inside|behind|under|over|where|visit\w*|left|leav\w+|reach\w*)\b|,|(?<=\s)[A-Z]\w"
)
_PRONOUN: Final = late_pattern(
    r"(?<=\s)(?:he|she|him|his|her)\b|\b(?:at|of|about|for|with|into|behind|under) it\b"
)
# A possible antecedent of a pronoun: a name, or a noun with an article or the like.
_POSSIBLE_ANTECEDENT: Final = late_pattern(
    r"(?<=\s)[^\W\d_a-z]\w+"
    r"|^(?!(?:We|You|They|It|There|People|Police|Nobody|Doctors|Officials|Inspectors|Experts|Locals|Residents|Some|Many|Most|Others|So|Then|Now)\b)[^\W\d_a-z]\w+"
    r"|\b(?:an?|the|each|every|one|no|my|our|your|any|another|some(?:one|body)|every(?:one|body)|any(?:one|body)|who|whoever)\s"
)
_QUOTED: Final = late_pattern(r"[\"“„«»”][^\"“”„«»]*[\"“”«»]")


def points_back(sentence: str, language: str = "") -> bool:
    """Return whether the sentence's first words refer to another sentence.

    The patterns of the text's language are tried, or those of every language if it is unknown.
    """
    unquoted = sentence.lstrip(_OPENING_MARKS)
    if any(
        pattern.match(unquoted) for pattern in patterns_for(_SPACED, sentence, language) or (_SPACED_ANY,)
    ):
        return True
    return not unquoted.isascii() and _SPACELESS.match(unquoted) is not None


def patterns_for(
    patterns: Mapping[str, re.Pattern[str]], sentence: str, language: str
) -> tuple[re.Pattern[str], ...]:
    """Return the pattern of the text's language, and that of the sentence if it seems to be in another one.

    Return () if the text's language is unknown or has no pattern.
    """
    text_language = primary_language(language)
    if text_language not in patterns:
        return ()
    sentence_language = guess_language(sentence)
    if sentence_language == text_language or sentence_language not in patterns:
        return (patterns[text_language],)
    return patterns[text_language], patterns[sentence_language]


def lacks_antecedent(sentence: str) -> bool:
    """Return whether "there", a pronoun or a phrase such as "this step" has nothing to refer to in the sentence.

    Only the words before it count, and quotations don't.
    """
    unquoted = _QUOTED.sub("“”", sentence)
    if _STEP.match(unquoted) or _AFTER_TIME.match(unquoted):
        return True
    adverb = _THERE.search(unquoted)
    if adverb is not None and not _PLACE.search(unquoted, 0, adverb.start()):
        return True
    pronoun = _PRONOUN.search(unquoted)
    return pronoun is not None and not _POSSIBLE_ANTECEDENT.search(unquoted, 0, pronoun.start())


def leaves_speaker_open(sentence: str) -> bool:
    """Return whether the sentence quotes a speaker who is only a pronoun, or "his colleague" or the like."""
    return _SAID_BY_UNNAMED.search(sentence) is not None
