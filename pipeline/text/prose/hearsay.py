"""Which sentences of a text don't stand for what they say: hearsay, earlier versions, and what the next one denies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.text.prose.verbatim_edits import takes_back, word_set

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPENING: Final = r"^[\s\"'‘“„«»(]*(?:(?:but|and|yet|however|aber|doch|mais|or|pero|ma|mas|maar|но)[\s,]+)?"
_FEW_WORDS: Final = r"(?:[\s,]+[^\s,.;:!?]+){0,4}?[\s,]+"
_END: Final = r"(?=\s*(?:[.!?,;:…–—)\"”»]|$|(?:and|but|as|because|und|denn|aber|et|mais|car|y|e|pero|porque|perché|en|want)\b))"

# How a language points at the sentence before, and what it then says of it.
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
_SAYS_SO: Final = re.compile(
    r"(?:true|correct|the case|wahr|richtig|korrekt|der fall|vraie?|exact|le cas|ciert[oa]|verdad|as[ií]|ver[oa]|verdade|waar|juist"
    r"|sant|sandt|riktigt?|rigtigt)",
    re.IGNORECASE,
)
_NOT: Final = re.compile(
    r"\b(?:not|none|no|never|nicht|nichts|nie|pas|non|não|niet|ikke|inte|far from|hardly)\b|n['’]t\b",
    re.IGNORECASE,
)
_POINTING: Final = tuple(
    re.compile(rf"{_OPENING}{points}{_FEW_WORDS}(?P<word>{word}){_END}", re.IGNORECASE)
    for points, word in _DENIALS
)
_SET_PHRASE: Final = re.compile(
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
_REJECTED: Final = re.compile(
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
_FOUND_NOTHING: Final = re.compile(
    r"\b(?:found|saw|finds?) (?:no|none|nothing|neither)\b|\bthere (?:is|was) no (?:evidence|proof|trace|sign)\b|\bcould not (?:find|confirm)\b"
    r"|\b(?:fand(?:en)?|findet|entdeckte[n]?) (?:\S+ ){0,2}?(?:kein(?:e|en|er|erlei)?|nichts)\b|\bdafür (?:gibt|gab) es kein"
    r"|\bn['’](?:a|ont) (?:trouvé|constaté|relevé) (?:aucune?|rien|pas)\b|\bn['’](?:a|ont) rien (?:trouvé|constaté|relevé)\b"
    r"|\bno (?:encontr|hall|constat)\S+ (?:ning\S+|nada|rastro)|\bnon ha(?:nno)? trovato (?:alcun|ness)"
    r"|\bnão encontr\S+ (?:nenhum|nada)|\b(?:vond|vonden) (?:geen|niets)\b|\bне (?:нашл|обнаруж)\w+",
    re.IGNORECASE,
)
# What is told as somebody's claim can be denied by what was then found; a plain statement can't.
_CLAIMED: Final = re.compile(
    r"\b(?:claim(?:s|ed)?|alleg(?:es?|ed)|accus(?:es?|ed)|behaupte(?:t|te|n|ten)|prétend\w*|affirm(?:e|ait|ent|é|a)|accus(?:ait|é)"
    r"|afirm(?:a|ó|aba|an|aron)|asegur(?:a|ó)|acus(?:a|ó)|sost[ei]\w+|afferm(?:a|ava)|beweer(?:t|de|den)|утвержда\w+)\b",
    re.IGNORECASE,
)

# Rumours, and what is told with a doubt; then earlier versions of the same text.
_TOLD: Final = re.compile(
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
_TOLD_ELSEWHERE: Final = re.compile(r"据传|有传言|传言|谣传|噂によ|소문에")
# Labels of what is set right below, and those who aren't named.
_UNNAMED: Final = re.compile(
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
_TELLS: Final = word_set(
    "rumo alle supp gerü ange munk rume prét brui supu pres voci indi boat geru plot слух якоб vers fass prev earl orig mist wron "
    "zunä zuer ursp früh irrt fäls"
)
_ANSWERS: Final = word_set(
    "deni deny debu refu reje dism deme zurü wide best déme nie réfu desm negó nieg smen nega foun saw find evid proo trac coul fand "
    "entd dafü trou cons rele enco hall trov vond нашл обна"
)
"""How the words begin without which a sentence isn't looked through: a book has fifty thousand."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_SETS_RIGHT: Final = re.compile(
    r"\b(?:false|wrong|untrue|not true|isn['’]t true|unfounded|baseless|den(?:y|ies|ied)|debunked|no truth|falsch|unwahr|nicht wahr|stimmt nicht"
    r"|stimmen nicht|unbegründet|dementier\w+|zurückgewiesen|widerleg\w+|fauss?e?s?|infondée?s?|démenti\w*|démentent|fals[oa]s?|desmint\w+"
    r"|desmient\w+|infundad\w+|smenti\w+|infondat\w+|desment\w+|onjuist|onwaar|неправда|ложь|опроверг\w+)\b",
    re.IGNORECASE,
)
_OF_SEVERAL: Final = re.compile(
    _OPENING
    + r"(?:both|neither|none|all|beides|alles|nichts|tout|rien|les deux|ninguna?|nada|todo|niente|tutto|nada|tudo)\b",
    re.IGNORECASE,
)
_GOES_ON: Final = re.compile(
    r"^(?:(?:he|she|it|they|this|that|these|those|also|er|sie|es|das|dies|auch|il|elle|ils|elles|cela|también|ella|ello|eso)\b|.*\?\W*$)",
    re.IGNORECASE,
)


def denies(sentence: str) -> bool:
    """Whether it says of the sentence before it that it isn't so."""
    if _SET_PHRASE.match(sentence):
        return True
    for pattern in _POINTING:
        match = pattern.match(sentence)
        # "That is true" denies nothing; "that is not wrong" doesn't either.
        if match and bool(_SAYS_SO.fullmatch(match["word"])) == bool(_NOT.search(match.group())):
            return True
    return False


def unasserted(sentences: Sequence[str]) -> frozenset[int]:
    """The places of those that can't stand as a fact, each for itself.

    Hearsay of nobody who is named and what an earlier version said, unless the same sentence sets it right; what one
    of the next two sentences denies; and a denial that says nothing without what it denies. What is cancelled or sold out
    by a sentence that doesn't stand right behind it.
    """
    found: set[int] = set()
    for place, one in enumerate(sentences):
        begun = {word[:4] for word in _WORD.findall(one.lower())}
        if _is_hearsay(one, begun) and not _SETS_RIGHT.search(one):
            found.add(place)
        if denies(one) or (place and takes_back(one)):
            found.update((place, *_denied_before(sentences, place)))
        elif begun.isdisjoint(_ANSWERS):
            continue
        elif _REJECTED.search(one):
            found.update(_denied_before(sentences, place))
        elif _FOUND_NOTHING.search(one):
            found.update(
                before
                for before in (place - 1, place - 2)
                if before >= 0 and _CLAIMED.search(sentences[before])
            )
    return frozenset(found)


def _is_hearsay(sentence: str, begun: set[str]) -> bool:
    if _UNNAMED.match(sentence) or (not begun.isdisjoint(_TELLS) and _TOLD.search(sentence)):
        return True
    return not sentence.isascii() and _TOLD_ELSEWHERE.search(sentence) is not None


def _denied_before(sentences: Sequence[str], place: int) -> tuple[int, ...]:
    """The sentence before; the one before that too where the denial is of several, or the one between only goes on."""
    if place == 0:
        return ()
    is_further = _OF_SEVERAL.match(sentences[place]) or _GOES_ON.match(sentences[place - 1])
    return (place - 1, place - 2) if is_further and place > 1 else (place - 1,)
