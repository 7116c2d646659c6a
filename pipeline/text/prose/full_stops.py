"""Decides whether a mark ends a sentence, or belongs to a title, an abbreviation or a number."""

from __future__ import annotations

import re

from pipeline.text.prose.verbatim_edits import word_set

# The first of two days or hours, with the dash: "Tue.-", "11 a.m.-5".
_RANGE = re.compile(r"^.*(?:[.][-\u2013]|\d(?=[ap]\.m$))")
# Abbreviated titles before a name, in many languages.
_HONORIFICS = word_set(
    "mr mrs ms mx messrs dr dres prof profa st sr sra sres sras srta mme mmes mlle mlles gen col sgt cpl capt lt cmdr maj sen "
    "rep gov pres rev revd hon fr cllr coun supt dra doç dña excmo excma ilmo ilma mons gral cnel arq dott sig avv geom "
    "dipl ing bgm hr frl frk dhr mevr drs med phil jur habil hab rer inż mgr ks abp płk ppłk mjr kpt sierż "
    "mudr judr mvdr phdr rndr paeddr thdr plk ifj özv proff проф акад доц инж ген δρ καθ "
    "eng enga engª drª srª profª mª adv abg lic licda ssa dyr wicedyr prez wiceprez mec śp kpr podkom nadkom przew sekr "
    "kand cand uzm ordf joht d-na d-nul гн डॉ डा प्रो पं ডা"
)
# Titles only in this spelling; in lower case, or in capitals, these are other words.
_CAPITAL_HONORIFICS = word_set(
    "Det Insp Const Adm Brig Ald Pte Pvt Bro Atty MM Pr Lic Arch On Eng Exmo Exma Dir Ir Ds Bc Doc Av Sn Bp Red Mag Mw Rag"
)
# In lower case they are titles only after an article: "lo dijo el dir. Juan Ruiz", "l'ing. arch. Rossi".
_TITLES_AFTER_ARTICLE = word_set("dir ir ds arch doc av lic bc")
_BEFORE_TITLES = word_set(
    "el del al le du il dal o do da la l' de volgens aldus zegt disse diz dice ing. dipl."
)
HONORIFIC = rf"(?:(?i:{'|'.join(sorted(_HONORIFICS))})|{'|'.join(sorted(_CAPITAL_HONORIFICS))})(?:\.?-Ing)?\."
TITLE = rf"(?:[^\W\d_]\.|{HONORIFIC})"
"""A pattern for a title or an initial with its full stop: "Dr.", "Dr.-Ing.", "Cllr.", "J."."""
# After these a full stop never ends a sentence, because a name or a number follows.
_NEVER_FINAL = _HONORIFICS | word_set(
    "vs v no nos nr vol fig figs p pp sec art ed eds cf eg ie e.g i.e z.b d.h al approx ca dept "
    "univ vgl bspw inkl incl excl exkl zzgl bzgl ggf evtl sog tel geb ul św ул núm pág aprox bijv zgn dvs tzw tzn tzv tzj np zob por např resp popř "
    "m.in bl.a t.ex f.eks p.ej p.ex d.w.z o.a т.е "
    "woj nám tř mah bul av pça"
)
# Before a number a full stop after these doesn't end a sentence either: divisions of laws and books, months.
_BEFORE_NUMBERS = word_set(
    "ok cca kb yak tk max min appr abt ref est apt rm ext bldg rte hwy ste godz hod str cad sok bl para paras cl ch chap pt sch reg subs secs arts app ann tab abs abschn anl anh bd kap lit rn rdnr rz ziff abb unterabs "
    "buchst lfd jg al alin paragr par n num apdo apart cap inc párr co cpv lett artt comm hfst blz nrs lid rozdz ust poz ст п ч гл рис "
    "janv févr fév avr juil déc ene abr dic genn febbr mag giu lug sett ott fev okt dez mrt mrz mär sty lut kwi cze lip sie wrz paź gru"
)
_ORDINAL_AFTER = word_set("im vom zum zur beim der die das dem den des ins jeder jede jedes")
_VOWEL = re.compile(r"[aeiouyà-æè-ïò-öø-ýąęőűůěıăœāēīōū\u1ea0-\u1ef9аеёиоуыэюяієїα-ωά-ώ\d]")
# Abbreviated amounts, before a noun: "9,8 Mio. Euro".
AMOUNTS = word_set("mio mrd mill mil milj mld mlrd tsd tis tys mln тыс млн млрд хил")
# Whole words that may end a sentence before a number: "Nobody saw it. 212 people work there."
_WHOLE_WORDS = word_set(
    "it them him her us me you all out up on off in so too now then here there one two ago day days year years week weeks month time times "
    "away home old new work town city place road roads house night today life world long again area fire rain snow sea land food money "
    "cost costs plan plans vote team game match win park river lake hall club shop shops men women come jobs staff way well far not was is did "
    "fee fees tax deal deals bus train ship boat door hill farm bank pub mill school shift queue bed beds kind bread stage age "
    "said done gone sold open shut ein an ab auf aus zu war hat kann muss geht gibt sein statt año años día días an ans jour jours mois "
    "anno anni jaar ano anos dias lat dni år"
)
_MAX_ABBREVIATION = 5
"""The most letters of an unlisted abbreviation."""
# "£2.1 m.", "US$40", "EUR 40", "(555)", "~3"; "12:30" can open a sentence as a word does.
_AMOUNT = re.compile(
    r"\s*[\"'\u2018\u201c\u00ab(\[]*[~\u2248<>\u00b1+-]?\s?"
    r"(?:[A-Z]{0,3}[$\u00a3\u00a5\u20a0-\u20cf]|(?:[A-Z]{3}\s?|(?:kr|Rs)\.?\s?)?\d)(?!\d?:\d{2}(?!\d))"
)
# Four words at most to the next full stop, and no number of a list: "ref. 4471/B.", not "late. 212 people have signed it.".
_SHORT_REST = re.compile(r"\s+(?!\d{1,2}[.)]\s+[A-Z])(?:[^\s]+\s+){0,3}?[^\s]*[.!?](?=\s|$)")
FOOTNOTES = r"(?:\[[^\[\]\n]{1,30}\])+"
"""A pattern of note marks right after a full stop: "[1]", "[2][3]", "[citation needed]"."""
_FOOTNOTES = re.compile(f"(?:{FOOTNOTES})?")
_MAX_BRACKET = 200
"""The most characters between a mark and the bracket on each side of it."""
# After these a full stop ends a sentence only if the next word usually opens one.
_SHORT_FORMS = word_set(
    "inc corp ltd co llc plc bros jr etc esp est ave blvd rd mt ft a.m p.m u.s u.k u.n e.u d.c ph.d m.d "
    "b.a m.a jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat "
    "sun usw bzw"
)
_OPENERS = word_set(
    "the a an in on at it he she they we you i this that these those his her their its our my but and "
    "so yet for when while after before as if with by from there here what who how why where meanwhile "
    "however although since last next now then still both each every some many most all no one two"
)
_GERMAN_OPENERS = word_set(
    "der die das den dem ein eine einen er sie es wir ihr ich in im am an auf bei mit nach vor für von aus zu zum zur um "
    "als wenn weil doch aber auch so nun dann da dort hier alle viele jeder beide damit davon dafür dabei danach"
)
# German closes with the mark that opens in English; after a full stop it can only close.
CLOSERS = "\"'\u2018\u2019\u201c\u201d\u00ab\u00bb\u2039\u203a\u05f4)\\]\u300d\u300f\uff09\u3011"
_WORD_BEFORE = re.compile(r"[^\s(\[\"'\u2018\u201c\u00ab]+$")
_FIRST_CHARACTER = re.compile(r"\s*[\"'\u2018\u201c\u00ab\u05f4(\[]*(?P<word>\w*)")
SAYS_IN_CHINESE = r"说道?|說道?|表示|告诉|告訴|介绍|介紹|指出|强调|強調|坦言"
# The speaker, after speech that ends with a mark of its own: "« Il pleut. » – dit Anne", "“下雨了。”市长说".
_SAID_BY = re.compile(
    rf"\s*,?\s*[\u2013\u2014-]\s+[^\W\d_A-Z]|\s*,\s|[^\W\d_]{{2,14}}?(?:{SAYS_IN_CHINESE})[\u3002\uff0c,]"
)
# "until 8 p.m." ends a sentence; "the 8 p.m. Mass" and "At 8 p.m. Anna Berg reads" go on.
_A_TIME = (
    r"\s*(?:\d{1,2}(?:[:.]\d{2})?\s?(?:[ap]\.m\.)?\s?(?:to|and|or|[-\u2013])\s?)?\d{1,2}(?:[:.]\d{2})?\s?$"
)
_UNTIL_A_TIME = re.compile(
    r"\b(?:at|until|till|by|from|to|before|after|around|about|and|or|is|closes?|ends?|starts?|begins?|[Oo]pen|opens|[-\u2013])"
    + _A_TIME
)
_BEGINS_AT = re.compile(
    r"\b(?:begins?|starts?|opens?|closes?|ends?)\s(?:at|from|until|till|by|before|after|around|about|between)"
    + _A_TIME
)
_OPENS_WITH_WHEN = re.compile(
    r"(?:^|[.!?\u2026:]\s+|\n\s*)(?:On|At|From|By|Until|Till|Before|After|Around|About|Between|In|Every|This|Last|Next)\s"
    r"[^.!?\n]*$"
)
_TIME_WORDS = word_set(
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays "
    "january february march april may june july august september october november december eastern central mountain pacific "
    "atlantic greenwich european british irish indian japan australian local christmas easter thanksgiving today tomorrow"
)
_DAY_AND_MONTH = re.compile(r"\s*\d{1,2}\.(?!\d)")
_GERMAN_MONTHS = word_set(
    "januar februar m\u00e4rz april mai juni juli august september oktober november dezember"
)


def ends_sentence(text: str, match: re.Match[str], end: int) -> bool:
    """Return whether the marks in `match` end a sentence at `end`, by the words before and after them."""
    marks = match.group()
    if (
        text[end - 1] in CLOSERS
        and (said_by := _SAID_BY.match(text, end))
        and not said_by.group()[-1].isupper()
    ):
        return False
    if marks[0] in "\u3002\uff01\uff1f\uff61\u0964\u06d4\u061f":
        return True
    footnote = _FOOTNOTES.match(text, end)
    next_start = footnote.end() if footnote else end
    following = _FIRST_CHARACTER.match(text, next_start)
    word = following["word"] if following else ""
    if word[:1].islower() or _is_in_brackets(text, match):
        return False
    return marks != "." or _full_stop_ends_sentence(text, match, next_start, word)


def _is_in_brackets(text: str, match: re.Match[str]) -> bool:
    """Return whether the marks stand in brackets within a sentence: "Rovers 3 (Lund 55 pen.) United 2"."""
    before = text[max(0, match.start() - _MAX_BRACKET) : match.start()]
    opened = max(before.rfind("("), before.rfind("["))
    if opened == -1 or opened < max(before.rfind(")"), before.rfind("]"), before.rfind("\n\n")):
        return False
    before_bracket = before[:opened].rstrip(" \t\u00a0")
    closing = text[match.start() : match.start() + _MAX_BRACKET].partition("\n\n")[0]
    is_closed = {"(": ")", "[": "]"}[before[opened]] in closing
    return is_closed and (before_bracket[-1:].isalnum() or before_bracket[-1:] in {",", "%"})


def _full_stop_ends_sentence(text: str, match: re.Match[str], next_start: int, word: str) -> bool:
    """Return whether a single full stop ends a sentence, not just a number or abbreviation before `word`."""
    before = _WORD_BEFORE.search(text, max(0, match.start() - 20), match.start())
    # An elided article belongs to the abbreviation's word: "l’art. 12".
    last = before.group() if before else ""
    elided = last.rpartition("\u2019")[2]
    last = elided if len(elided) > 2 else last
    # Of a range only the second part counts: "Tue.-Sat.", "11 a.m.-5p.m.".
    last = _RANGE.sub("", last) or last
    is_amount = _AMOUNT.match(text, next_start) is not None
    if len(last) == 1 and last.isupper():
        # An initial, unless it is the pronoun "I" or ends a line of thought before a usual opener.
        return word.lower() in _OPENERS and (last == "I" or word.lower() not in {"a", "i"})
    if last.isdigit() and not _ends_with_number(text, match, last, word):
        return False
    name = last.lower()
    if is_amount and _abbreviates_counted(text, match, last):
        return False
    if len(last) == 1 and last.islower():
        # "z. B." and "г. Казань"; but a year ends with its "г.".
        has_number = text[max(0, match.start() - 3) : match.start() - 1].strip().isdigit()
        return has_number or not (word or is_amount)
    if name in AMOUNTS:
        return not (word or is_amount) or word.lower() in _OPENERS | _GERMAN_OPENERS
    if _is_title(text, match, last, word):
        return False
    if name in _NEVER_FINAL:
        # "No." is a short form only before a number.
        return name in {"no", "p", "v", "art"} and not word[:1].isdigit()
    if name in _SHORT_FORMS or re.fullmatch(r"(?:[a-z]\.)+[a-z]", name):
        # In a text of capitals no word can be recognised as an opener: "BEFORE 5 P.M. ON 12 DECEMBER".
        is_shouted = last.isupper() and len(word) > 1 and word.isupper()
        if (
            name in {"a.m", "p.m"}
            and not is_shouted
            and _ends_with_time(text, match.start() - len(last), word)
        ):
            return True
        is_opener = not is_shouted and word.lower() in _OPENERS | _GERMAN_OPENERS
        return is_opener or not (word or is_amount)
    return not (_is_indic_abbreviation(text, match, last) or _is_vowelless(text, match, last, word))


def _is_title(text: str, match: re.Match[str], last: str, word: str) -> bool:
    """Return whether the last word is a title before a name: "Dr.", "dott.ssa", "el dir."."""
    name = last.lower()
    if last in _CAPITAL_HONORIFICS or not _HONORIFICS.isdisjoint({name, re.split(r"[.-]", name)[-1]}):
        return True
    words_before = text[max(0, match.start() - len(last) - 12) : match.start() - len(last)].lower().split()
    return (
        last in _TITLES_AFTER_ARTICLE
        and word[:1].isupper()
        and bool(words_before)
        and words_before[-1] in _BEFORE_TITLES
    )


def _is_indic_abbreviation(text: str, match: re.Match[str], last: str) -> bool:
    """Return whether the word must be an abbreviation in an Indic script.

    It must if the text around ends sentences with a danda, not with full stops.
    """
    around = text[max(0, match.start() - 400) : match.start() + 400]
    return "\u0900" <= last[-1:] <= "\u0dff" and "\u0964" in around


def _is_vowelless(text: str, match: re.Match[str], last: str, word: str) -> bool:
    """Return whether the last word has no vowel, as abbreviations before a name: "pplk. Jan Lis"."""
    is_cut = (
        last.isalpha() and last.islower() and 2 <= len(last) <= _MAX_ABBREVIATION and not _VOWEL.search(last)
    )
    before = text[max(0, match.start() - len(last) - 4) : match.start() - len(last)].rstrip()
    return is_cut and word[:1].isupper() and word.lower() not in _OPENERS and not before[-1:].isdigit()


def _ends_with_time(text: str, position: int, word: str) -> bool:
    """Return whether a time before `position` ends the sentence: "until 8 p.m. Dogs may …".

    `position` is that of "p.m.", and `word` the next one.
    """
    if not word[:1].isupper() or word.isupper() or word.lower() in _TIME_WORDS:
        return False
    before = text[max(0, position - 200) : position]
    if _BEGINS_AT.search(before):
        return True
    return bool(_UNTIL_A_TIME.search(before)) and not _OPENS_WITH_WHEN.search(before.replace("p.m.", "pm"))


def _ends_with_number(text: str, match: re.Match[str], last: str, word: str) -> bool:
    """Return whether a full stop after a number ends a sentence, not just a day or an ordinal: "im 3. Quartal"."""
    if word.lower() in _GERMAN_MONTHS:
        return False
    if len(last) <= 2 and word.isdigit() and len(word) <= 2:
        return _DAY_AND_MONTH.match(text, match.end()) is None
    before = text[max(0, match.start() - len(last) - 12) : match.start() - len(last)].split()
    is_ordinal = len(last) <= 3 and bool(before) and before[-1].lower() in _ORDINAL_AFTER
    return not (is_ordinal and word[:1].isupper() and word.lower() not in _OPENERS | _GERMAN_OPENERS)


def _abbreviates_counted(text: str, match: re.Match[str], last: str) -> bool:
    """Return whether the last word before an amount is an abbreviation: "para. 3", "Bd. 2", "est. £2", "ok. 6".

    A short lower-case word that could be either counts as one if the text after it is too short for a sentence.
    """
    name = last.lower()
    if name in _BEFORE_NUMBERS or name.endswith("str"):
        return True
    before = text[max(0, match.start() - len(name) - 4) : match.start() - len(name)].rstrip()
    # "10 km. 40 people": a unit belongs to the number before it.
    if not name.isalpha() or not 2 <= len(name) <= _MAX_ABBREVIATION or before[-1:].isdigit():
        return False
    if not _VOWEL.search(name):
        return True
    return last.islower() and name not in _WHOLE_WORDS and _SHORT_REST.match(text, match.end()) is not None
