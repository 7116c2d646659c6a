"""Finds sentences of a text that aren't asserted: hearsay, earlier versions, and those that the next one denies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.text.late_pattern import late_pattern
from pipeline.text.prose.verbatim_edits import takes_back, word_set

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPENING: Final = r"^[\s\"'‘“„«»(]*(?:(?:but|and|yet|however|aber|doch|mais|or|pero|ma|mas|maar|но)[\s,]+)?"
_FEW_WORDS: Final = r"(?:[\s,]+[^\s,.;:!?]+){0,4}?[\s,]+"
_END: Final = r"(?=\s*(?:[.!?,;:…–—)\"”»]|$|(?:and|but|as|because|und|denn|aber|et|mais|car|y|e|pero|porque|perché|en|want)\b))"

# By language, how a sentence points at the one before it, and the words with which it denies or confirms that:
# "That claim is", "false".
_DENIALS: Final = (
    (
        (
            r"(?:this|that|it|both|all|(?:(?:none|all|much) of )?(?:this|that|it|them|these|those)"
            r"|(?:the|this|that|these|those|such) (?:claim|statement|report|rumou?r|story|news|figure|message|information)s?)"
            r"(?:['’]s| is| was| are| were| has been| have been| turned out to be| proved| isn['’]t| wasn['’]t| aren['’]t| weren['’]t)"
        ),
        (
            r"(?:wrong|false|untrue|incorrect|inaccurate|true|correct|the case|an? (?:lie|hoax|myth|fake)|lies|nonsense"
            r"|made up|invented|unfounded|baseless|without foundation)"
        ),
    ),
    (
        (
            r"(?:das|dies|es|sie|beides|alles|nichts davon|(?:das|dieses) gerücht|die(?:se)? (?:gerüchte|behauptung|meldung|aussage"
            r"|angabe|nachricht|darstellung|information|zahl)(?:en)?) (?:ist|war|sind|waren)"
        ),
        (
            r"(?:falsch|unwahr|unzutreffend|(?:frei )?erfunden|unrichtig|gelogen|wahr|richtig|korrekt|der fall"
            r"|ein (?:irrtum|gerücht)|eine (?:lüge|falschmeldung|erfindung)|unsinn|quatsch)"
        ),
    ),
    (
        (
            r"(?:c['’](?:est|était)|(?:ce|cela|ceci|ça) (?:n['’])?(?:est|était)|(?:cette|l['’]|la|ces|les) ?(?:affirmation|information|rumeur|nouvelle)s? "
            r"(?:n['’])?(?:est|était|sont)|ce n['’]est)"
        ),
        r"(?:faux|fausses?|inexacte?s?|erronée?s?|infondée?s?|vraie?|exact|le cas|une? (?:mensonge|invention|infox))",
    ),
    (
        (
            r"(?:(?:(?:eso|esto|ello|todo eso|la (?:noticia|información|afirmación)|el rumor|los rumores) )?(?:no )?(?:es|era|son|fue)"
            r"|(?:(?:questo|ciò|la (?:notizia|voce)|tutto questo) )?(?:non )?(?:è|era)"
            r"|(?:(?:isso|isto|a (?:notícia|informação)|o boato) )?(?:não )?(?:é|era))"
        ),
        (
            r"(?:fals[oa]s?|mentira|incorrect[oa]|erróne[oa]|ciert[oa]|verdad|as[ií]|sbagliat[oa]|incorrett[oa]|ver[oa]|verdade"
            r"|errad[oa]|un bulo|una (?:invención|bufala|bugia)|um boato)"
        ),
    ),
    (
        r"(?:dat|dit|het|die bewering|dit bericht|het gerucht) (?:is|was)",
        r"(?:onjuist|onwaar|waar|juist|onzin|verzonnen)",
    ),
    (
        r"(?:det|dette|detta|ryktet) (?:er|är|var)",
        r"(?:feil|falskt?|usant|fel|forkert|osant|sant|sandt|riktig(?:t)?|rigtigt)",
    ),
)
# The words of `_DENIALS` that deny only with a negation: "not true".
_CONFIRMS: Final = late_pattern(
    r"(?:true|correct|the case|wahr|richtig|korrekt|der fall|vraie?|exact|le cas|ciert[oa]|verdad|as[ií]|ver[oa]|verdade|waar|juist"
    r"|sant|sandt|riktigt?|rigtigt)",
    re.IGNORECASE,
)
_NOT: Final = late_pattern(
    r"\b(?:not|none|no|never|nicht|nichts|nie|pas|non|não|niet|ikke|inte|far from|hardly)\b|n['’]t\b",
    re.IGNORECASE,
)
_DENIAL_PATTERNS: Final = tuple(
    late_pattern(rf"{_OPENING}{points}{_FEW_WORDS}(?P<word>{word}){_END}", re.IGNORECASE)
    for points, word in _DENIALS
)
# "Nothing of the sort", "Das stimmt nicht".
_DENYING_PHRASE: Final = late_pattern(
    _OPENING + r"(?:nothing of the (?:sort|kind)\b|(?:none|nothing) of (?:this|that|it) (?:ever )?happened"
    r"|(?:that|this|it|they) (?:never|did not|didn['’]t) (?:ever )?happen|(?:that|this) is not what happened"
    r"|there (?:is|was) (?:no|not a word of) truth (?:in|to)\b|the (?:opposite|contrary|reverse) is (?:true|the case)"
    r"|quite the (?:opposite|contrary)|far from it"
    r"|nichts (?:dergleichen\b|(?:davon|von alledem) (?:stimmt|ist (?:passiert|geschehen)|geschah|trifft zu))|davon (?:ist|war) (?:nichts|kein wort) wahr|das gegenteil ist (?:der fall|wahr|richtig)"
    r"|(?:das|dies|es) (?:stimmt|stimmte|trifft|traf) (?:\S+ )?nicht\b|(?:das|dies) ist nie (?:passiert|geschehen)"
    r"|rien de (?:tel|tout cela|semblable)\b|il n['’]en est rien|c['’]est le contraire|rien n['’]est (?:plus faux|moins vrai)"
    r"|nada de (?:eso|esto|ello)(?:[.,!]| (?:es|ocurrió|pasó|sucedió|ha))|no (?:ocurrió|pasó|sucedió) nada (?:de eso|semejante|parecido)|(?:eso|esto) no (?:ocurrió|pasó|sucedió)"
    r"|niente di (?:tutto ciò|simile|tutto questo|vero)|nada disso\b|dat klopt niet|dat is niet zo|niets van dat alles|daar is niets van waar"
    r"|to (?:nieprawda|fałsz|kłamstwo|nie jest prawda)\b|nic takiego\b"
    r"|это (?:неправда|ложь|не так|неверно|выдумка)\b|ничего подобного|це неправда"
    r"|这不是真的|这不是事实|这是谣言|这是假的|事实并非如此|并非如此|这不属实|それは(?:誤り|間違い|事実ではな|うそ|嘘)|これは(?:誤り|間違い|事実ではな)|사실이 아니"
    r"|(?:wrong|false|untrue|not true|not so|nonsense|falsch|unsinn|stimmt nicht|von wegen|faux|falso|mentira)[.!]?$)",
    re.IGNORECASE,
)
# "The mayor denied the claim."
_REJECTED: Final = late_pattern(
    r"\b(?:den(?:y|ies|ied)|refut(?:es|ed)) (?:it|this|that|them|both|these|the (?:claim|allegation|report|rumou?r|accusation|charge|stor)(?:s|y|ies)?)\b"
    r"|\b(?:reject(?:s|ed)?|dismiss(?:es|ed)?) (?:the|this|that|these) (?:claim|allegation|rumou?r|accusation)s?\b"
    r"|\b(?:this|that|it|the (?:claim|report|rumou?r|allegation)s?) (?:was|were|is|has been|have been) (?:denied|refuted|debunked)\b"
    r"|\b(?:das|dies|es|die (?:behauptung|meldung|vorwürfe|gerüchte)|den (?:bericht|vorwurf)|das gerücht)\b.{0,60}"
    r"\b(?:dementiert|zurückgewiesen|widerlegt|bestreite[tn]|bestritt)|\b(?:dementiert[e]?|bestreitet|bestritt|widersprach) (?:das|dies|dem)\b"
    r"|\b(?:dément(?:i|ent)?|a démenti|nie|réfute) (?:cela|cette|ces|l['’]information|la rumeur)|\bl['’](?:a|ont) (?:formellement )?démentie?\b"
    r"|\b(?:desmintió|desmiente|negó|niega) (?:esto|eso|el rumor|la (?:noticia|información|acusación))|\blo (?:negó|niega|desmintió|desmiente)\b"
    r"|\b(?:ha smentito|smentisce|desmentiu|nega isso)\b",
    re.IGNORECASE,
)
# "Inspectors found no trace."
_FOUND_NOTHING: Final = late_pattern(
    r"\b(?:found|saw|finds?) (?:no|none|nothing|neither)\b|\bthere (?:is|was) no (?:evidence|proof|trace|sign)\b|\bcould not (?:find|confirm)\b"
    r"|\b(?:fand(?:en)?|findet|entdeckte[n]?) (?:\S+ ){0,2}?(?:kein(?:e|en|er|erlei)?|nichts)\b|\bdafür (?:gibt|gab) es kein"
    r"|\bn['’](?:a|ont) (?:trouvé|constaté|relevé) (?:aucune?|rien|pas)\b|\bn['’](?:a|ont) rien (?:trouvé|constaté|relevé)\b"
    r"|\bno (?:encontr|hall|constat)\S+ (?:ning\S+|nada|rastro)|\bnon ha(?:nno)? trovato (?:alcun|ness)"
    r"|\bnão encontr\S+ (?:nenhum|nada)|\b(?:vond|vonden) (?:geen|niets)\b|\bне (?:нашл|обнаруж)\w+",
    re.IGNORECASE,
)
# Only a statement that is told as somebody's claim is refuted if nothing was found: "They claim that …".
_CLAIMED: Final = late_pattern(
    r"\b(?:claim(?:s|ed)?|alleg(?:es?|ed)|accus(?:es?|ed)|behaupte(?:t|te|n|ten)|prétend\w*|affirm(?:e|ait|ent|é|a)|accus(?:ait|é)"
    r"|afirm(?:a|ó|aba|an|aron)|asegur(?:a|ó)|acus(?:a|ó)|sost[ei]\w+|afferm(?:a|ava)|beweer(?:t|de|den)|утвержда\w+)\b",
    re.IGNORECASE,
)

# Rumours and doubtful statements ("allegedly"), then earlier versions of the text ("An earlier version said …").
_HEARSAY: Final = late_pattern(
    r"\brumou?rs?\b.{0,40}\b(?:says?|said|claim(?:s|ed)?|ha(?:s|ve|d) it|that|about|spread|suggest(?:s|ed)?|circulat\w+|goes|went)\b"
    r"|\b(?:is|are|was|were) rumou?red\b|^rumou?r:|\b(?:allegedly|supposedly)\b"
    r"|\bgerüchte?n?\b.{0,60}\b(?:dass|zufolge|über|soll(?:en)?|kursier\w+|heißt|besag\w+)\b|\bangeblich\b|\bman munkelt\b"
    r"|\brumeurs?\b.{0,40}\b(?:que|selon|dit|disent|court|courent|circul\w+)\b|\bselon (?:la|une|des|les|certaines) rumeurs?\b"
    r"|\bprétendument\b|\ble bruit court\b"
    r"|\brumor(?:es)?\b.{0,40}\b(?:que|dicen?|asegura\w*|circula\w*|corre\w*)\b|\bsegún (?:un|el|los|unos|algunos) rumor(?:es)?\b"
    r"|\b(?:supuestamente|presuntamente)\b|\b(?:voci|indiscrezioni)\b.{0,30}\b(?:che|secondo|dicono|circolano)\b"
    r"|\bboatos?\b.{0,30}\b(?:que|dizem|diz|corre\w*)\b|\bgeruchten?\b.{0,40}\b(?:dat|gaat|gaan|zouden)\b"
    r"|\bplotk\w+\b.{0,40}\bże\b|\bслух\w*\b.{0,30}\bчто\b|\bякобы\b"
    r"|\b(?:earlier|previous) version\b.{0,60}\b(?:wrote|written|said|stated|reported|misstated)\b|^(?:an|the) (?:earlier|previous) version of this \w+"
    r"|\bwe (?:had )?(?:previously|earlier|originally|mistakenly|wrongly) (?:wrote|written|reported|said|stated)\b"
    r"|\b(?:früheren?|vorherigen?|ersten|ursprünglichen) (?:fassung|version)\b.{0,80}\b(?:schrieben|geschrieben|hieß|stand|berichte\w+|genannt)\b"
    r"|\b(?:hatten|haben) wir (?:\S+ ){0,4}?(?:zunächst|zuerst|ursprünglich|früher|irrtümlich|fälschlich) (?:\S+ ){0,8}?(?:geschrieben|berichtet|gemeldet)\b"
    r"|\bversion (?:précédente|antérieure|initiale)\b.{0,60}\b(?:écri\w+|indiqu\w+|affirm\w+|de cet? \w+|disait|disions)\b"
    r"|\bversión anterior\b.{0,60}\b(?:escrib\w+|dij\w+|decía\w*|afirm\w+|indic\w+|public\w+|de est[ea])\b"
    r"|\bversione precedente\b.{0,60}\b(?:scri\w+|dett\w+|diceva\w*|di quest\w+)\b|\bversão anterior\b.{0,60}\b(?:escrev\w+|dissemos|dizia\w*|dest[ea])\b"
    r"|\b(?:eerdere|vorige) versie\b.{0,60}\b(?:schre\w+|stond|meldden|van dit)\b",
    re.IGNORECASE | re.DOTALL,
)
_HEARSAY_CJK: Final = late_pattern(r"据传|有传言|传言|谣传|噂によ|소문에")
# Labels of claims that are corrected next ("Myth:"), and unnamed speakers ("Some people say …").
_UNNAMED_SOURCE: Final = late_pattern(
    r"^(?:myth|mythos|mythe|mito|irrtum|claim|behauptung|idée reçue|bulo)\s*(?:no\.? ?|nr\.? ?|n° ?)?\d*\s*:"
    r"|^(?:yesterday |recently |last \w+,? )?(?:a|an|one|some|several|two|three|many) (?:(?-i:[a-z])\S* ){1,4}?"
    r"(?:claim(?:s|ed)?|alleg(?:es?|ed))(?: \S+){0,3}? (?:that|to (?:have|be)|he|she|they|it|there)\b"
    r"|^(?:(?:some |many )?(?:people|users|residents|neighbours|neighbors|readers)|someone|somebody|some|many|anonymous \w+|posts? on \w+) (?:\w+ly )?"
    r"(?:(?:said|say(?! (?:hello|goodbye|yes|no|thank))|claim(?:ed)?|think|thought|believed?)\b|(?:have )?(?:wrote|written|write|posted|post|shared|share)\b.{0,60}\bthat\b)"
    r"|^(?:leute|jemand|manche|viele|einige|nutzer|anonyme \w+|ein(?:e)? (?:nachbar|anwohner|nutzer|leser|zeuge|zeugin|augenzeuge)(?:in)?|ein unbekannter"
    r"|(?:einige|manche|viele|mehrere) \w+) (?:behaupte\w+|schrieb(?:en)?|schreiben|sagen|sagten?|meinen|meinten|glauben|glaubten|verbreite\w+)\b[^,:]{0,60}[,:]"
    r"|^(?:des gens|certains|quelqu['’]un|plusieurs \w+|une? (?:voisine?|habitante?|internaute|lecteur|lectrice|témoin)|(?:des|certains) (?:internautes|habitants|voisins)) "
    r"(?:\w+ ){0,2}?(?:prétend\w*|écri\w+|affirm\w+|dit|disent|croi\w+)\b.{0,60}\bqu[e'’]"
    r"|^(?:la gente|alguien|algunos|muchos|una? (?:vecin[oa]|usuari[oa]|lectora?|testigo)|(?:algunos|muchos|varios|unos) \w+) "
    r"(?:\w+ )?(?:dicen?|dijo|dijeron|escribi\w+|escrito|afirm\w+|asegur\w+|creen?)\b.{0,60}\bque\b"
    r"|^(?:qualcuno|alcuni|una? (?:vicin[oa]|utente|residente)) (?:\w+ )?(?:sost\w+|scri\w+|dic\w+|detto|afferm\w+)\b.{0,60}\bche\b"
    r"|^(?:alguém|alguns|uma? vizinh[oa]) (?:\w+ )?(?:afirm\w+|diss\w+|diz\w*|escrev\w+|aleg\w+)\b.{0,60}\bque\b"
    r"|^(?:iemand|sommigen|een (?:buurman|buurvrouw|bewoner)) (?:\w+ )?(?:beweer\w+|schre\w+|zeg\w+|zei\w*)\b.{0,60}\bdat\b"
    r"|^(?:один|одна|некоторые|многие|люди|кто-то|сосед\w*|пользовател\w+) .{0,30}?(?:утвержда|пис|напис|говор|сказал)\w*.{0,60}\bчто\b"
    r"|^(?:es heißt,|on (?:dit|raconte|murmure) que\b|(?:se dice|se rumorea|dicen|cuentan) que\b|si dice che\b|(?:diz-se|dizem) que\b|говорят, что\b)",
    re.IGNORECASE | re.DOTALL,
)
_HEARSAY_STEMS: Final = word_set(
    "rumo alle supp gerü ange munk rume prét brui supu pres voci indi boat geru plot слух якоб vers fass prev earl orig mist wron "
    "zunä zuer ursp früh irrt fäls"
)
_ANSWER_STEMS: Final = word_set(
    "deni deny debu refu reje dism deme zurü wide best déme nie réfu desm negó nieg smen nega foun saw find evid proo trac sign coul fand "
    "entd dafü trou cons rele enco hall trov vond нашл обна"
)
"""The first letters of words without which a sentence isn't searched, because a book has fifty thousand."""
_WORD: Final = late_pattern(r"[^\W\d_]+")
# "The rumour that … is false."
_CORRECTS: Final = late_pattern(
    r"\b(?:false|wrong|untrue|not true|isn['’]t true|unfounded|baseless|den(?:y|ies|ied)|debunked|no truth|falsch|unwahr|nicht wahr|stimmt nicht"
    r"|stimmen nicht|unbegründet|dementier\w+|zurückgewiesen|widerleg\w+|fauss?e?s?|infondée?s?|démenti\w*|démentent|fals[oa]s?|desmint\w+"
    r"|desmient\w+|infundad\w+|smenti\w+|infondat\w+|desment\w+|onjuist|onwaar|неправда|ложь|опроверг\w+)\b",
    re.IGNORECASE,
)
# "Both are false."
_DENIES_SEVERAL: Final = late_pattern(
    _OPENING
    + r"(?:both|neither|none|all|beides|alles|nichts|tout|rien|les deux|ninguna?|nada|todo|niente|tutto|nada|tudo)\b",
    re.IGNORECASE,
)
# A sentence that continues the one before it ("He also …"), or a question.
_ELABORATES: Final = late_pattern(
    r"^(?:(?:he|she|it|they|this|that|these|those|also|er|sie|es|das|dies|auch|il|elle|ils|elles|cela|también|ella|ello|eso)\b|.*\?\W*$)",
    re.IGNORECASE,
)


def denies(sentence: str) -> bool:
    """Return whether the sentence says that the one before it isn't true."""
    if _DENYING_PHRASE.match(sentence):
        return True
    for pattern in _DENIAL_PATTERNS:
        match = pattern.match(sentence)
        # "That is true" denies nothing, and neither does "that is not wrong".
        if match and bool(_CONFIRMS.fullmatch(match["word"])) == bool(_NOT.search(match.group())):
            return True
    return False


def find_unasserted(sentences: Sequence[str]) -> frozenset[int]:
    """Return the indexes of sentences that can't stand as a fact alone.

    They are hearsay by an unnamed source and reports of an earlier version, unless the same sentence corrects it; a
    denial or a cancellation, with the one or two sentences before it that it concerns; and sentences that one of the
    next two rejects, or claims of which it says that nothing was found.
    """
    unasserted: set[int] = set()
    for index, sentence in enumerate(sentences):
        stems = {word[:4] for word in _WORD.findall(sentence.lower())}
        if _is_hearsay(sentence, stems) and not _CORRECTS.search(sentence):
            unasserted.add(index)
        if denies(sentence) or (index and takes_back(sentence)):
            unasserted.update((index, *_denied_before(sentences, index)))
        elif stems.isdisjoint(_ANSWER_STEMS):
            continue
        elif _REJECTED.search(sentence):
            unasserted.update(_denied_before(sentences, index))
        elif _FOUND_NOTHING.search(sentence):
            unasserted.update(
                earlier
                for earlier in (index - 1, index - 2)
                if earlier >= 0 and _CLAIMED.search(sentences[earlier])
            )
    return frozenset(unasserted)


def _is_hearsay(sentence: str, stems: set[str]) -> bool:
    """Return whether the sentence reports a rumour or an unnamed source."""
    if _UNNAMED_SOURCE.match(sentence) or (
        not stems.isdisjoint(_HEARSAY_STEMS) and _HEARSAY.search(sentence)
    ):
        return True
    return not sentence.isascii() and _HEARSAY_CJK.search(sentence) is not None


def _denied_before(sentences: Sequence[str], index: int) -> tuple[int, ...]:
    """Return the index of the sentence before, and of the one before that if it is denied too.

    It is if the denial covers several, or if the sentence between only elaborates.
    """
    if index == 0:
        return ()
    is_further = _DENIES_SEVERAL.match(sentences[index]) or _ELABORATES.match(sentences[index - 1])
    return (index - 1, index - 2) if is_further and index > 1 else (index - 1,)
