"""Finds direct speech in a sentence, with the speaker whom the same sentence names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.grounding import PAIRED_QUOTES
from pipeline.text.prose.full_stops import SAYS_IN_CHINESE, TITLE
from pipeline.text.prose.sentences import find_signature, is_title
from pipeline.text.prose.verbatim_edits import collapse, without_gershayim, word_set

if TYPE_CHECKING:
    from collections.abc import Iterator

SAYS: Final = (
    r"said|says|told|tells|added|adds|explained|explains|wrote|writes|warned|warns|argued|argues|noted|notes|recalled"
    r"|commented|stated|insisted|insists|replied|remarked|joked|concluded|declared"
    r"|sagte|sagt|erklärte|erklärt|meinte|meint|schrieb|schreibt|so|erzählte|erzählt|betonte|betont|ergänzte|ergänzt"
    r"|berichtete|berichtet|warnte|warnt|versicherte|versichert|kritisierte|kritisiert|lobte|lobt"
    r"|(?:a )?(?:dit|déclaré|affirmé|expliqué|raconté|assuré|souligné|estimé|précisé|confié|ajouté|résumé|indiqué|rappelé)"
    r"|déclare|affirme|explique|raconte|assure|souligne|estime|précise|confie|ajoute|résume|rappelle"
    r"|dijo|dice|afirmó|afirma|explicó|explica|cuenta|contó|asegura|aseguró|señala|señaló|añade|añadió|recuerda"
    r"|declaró|declara|comentó|subrayó|destacó|manifestó|apuntó|indicó|sostuvo|ha (?:dicho|explicado|afirmado|asegurado|declarado)"
    r"|disse|dichiara|racconta|spiega|afferma|aggiunge|sostiene|commenta|sottolinea"
    r"|ha (?:detto|spiegato|dichiarato|affermato|aggiunto|raccontato|commentato|sottolineato)"
    r"|diz|afirmou|explicou|conta|contou|declarou|acrescentou|destacou|comentou"
    r"|powiedział[ai]?|mówi|mówił[ai]?|dodaje|dodał[ai]?|wyjaśnia|wyjaśnił[ai]?|tłumaczy|opowiada|podkreśla|podkreślił[ai]?"
    r"|stwierdził[ai]?|zaznaczył[ai]?|zapowiada|zapowiedział[ai]?|przyznał[ai]?|poinformował[ai]?|ocenia"
    r"|řekl[ai]?|říká|uvedl[ai]?|dodal[ai]?|vysvětlil[ai]?|vysvětluje|popsal[ai]?|sdělil[ai]?|prohlásil[ai]?|doplnil[ai]?"
    r"|povedal[ai]?|hovorí|uviedol|uviedla|vysvetlil[ai]?|vysvetľuje"
    r"|zei|zegt|vertelt|vertelde|schreef|aldus|verklaart|verklaarde|benadrukt|säger|sade|berättar|berättade|förklarar|konstaterar"
    r"|siger|sagde|fortæller|fortalte|forklarer|sier|forteller|sanoo|sanoi|kertoo|kertoi|toteaa|totesi"
    r"|mondta|mondja|nyilatkozta|közölte|hangsúlyozta|magyarázta|jelentette ki|tette hozzá|emelte ki"
    r"|a (?:spus|declarat|explicat|adăugat|precizat|afirmat)|spune"
    r"|(?:rek(?:ao|la)|kaza(?:o|la)|izjavi(?:o|la)|istakn(?:uo|ula)|poruči(?:o|la)|doda(?:o|la)) je|kaže|ističe"
    r"|δήλωσε|δηλώνει|είπε|λέει|τόνισε|τονίζει|ανέφερε|αναφέρει|πρόσθεσε|εξήγησε|εξηγεί|σημείωσε|υπογράμμισε"
    r"|сказала?|говорит|рассказала?|рассказывает|объяснила?|объясняет|заявила?|отметила?|считает|пояснила?|добавила?"
    r"|сообщила?|подчеркнула?|уточнила?|каза|казва|заяви|обясни|добави|посочи|подчерта"
    r"|сказав|каже|розповіла?|розповів|пояснив|заявив|додала?|додав|зазначила?|зазначив|наголосила?|наголосив"
    r"|dedi|diyor|diye konuştu|nói|cho biết|kata|ujar|tutur"
)
# A day between verb and name, as in "powiedział w poniedziałek burmistrz" or "a déclaré lundi la maire"; then the
# article of a Greek name.
_WHEN: Final = (
    r"(?:(?:w|we|v|ve|в|во|у)\s(?:poniedziałek|wtorek|środę|czwartek|piątek|sobot[ęu]|niedzielę|pondělí|úterý|středu|čtvrtek|pátek|neděli"
    r"|понедельник|понеділок|вторник|вівторок|среду|середу|четверг|четвер|пятницу|п.ятницю|субботу|суботу|воскресенье|неділю)\s"
    r"|(?:on|am)\s\w+(?:day|tag|woch|abend)\s|(?:lun|mar|mercre|jeu|vendre|same)di\s"
    r"|(?:el|este)\s(?:lunes|martes|miércoles|jueves|viernes|sábado|domingo)\s|(?:today|yesterday|heute|gestern|dziś|wczoraj|dnes|včera|ayer|hoy|ieri|oggi)\s)?"
    r"(?:[οη]\s(?=[Α-ΩΆ-Ώ]))?"
)
_VERB_THEN_NAME: Final = re.compile(rf"[\s,\u2013\u2014-]*(?:{SAYS})\s+{_WHEN}(?P<name>\S.*)$", re.DOTALL)
_NAME_THEN_VERB: Final = re.compile(rf"[\s,\u2013\u2014-]*(?P<name>\S.*?)\s+(?:{SAYS})\b")
_BEFORE_SPEECH: Final = re.compile(
    rf"^(?P<name>\S.*?)\s+(?:{SAYS})\b[^\u201c\u201e\u00ab\"]{{0,40}}$", re.DOTALL
)
# In scripts without capital letters verbs and particles show where a name ends.
_AFTER_SPEECH_ELSEWHERE: Final = re.compile(
    rf"\s*[\uff0c,]?\s*(?P<zh>[^\W\d_]{{2,14}}?)(?:{SAYS_IN_CHINESE})"
    r"|と[、\s]*(?P<ja>[^\s、。「」]{2,24}?)(?:は|が)(?:話|語|述べ|言|説明|明か)"
    r"|(?:이?라)?고\s+(?P<ko>[^.,]{2,40}?)(?:이|가|은|는)\s*(?:말|밝|전|설명|강조|덧붙)"
    r"|[\s,]*(?:\u05d0\u05de\u05e8|\u05e1\u05d9\u05e4\u05e8|\u05d4\u05d5\u05e1\u05d9\u05e3|\u05d4\u05e1\u05d1\u05d9\u05e8)\u05d4?\s(?P<he>[\u05d0-\u05ea][^.,:]{2,50})"
    r"|\s+(?P<th>[\u0e00-\u0e7f]+(?: [\u0e00-\u0e7f]+){0,3}?)\s?(?:กล่าว|บอก|เล่า)"
)
_BEFORE_SPEECH_ELSEWHERE: Final = re.compile(
    rf"(?:.*[。！？])?(?P<zh>[^\W\d_]{{2,14}}?)(?:(?:告诉|告訴)[^，：:]{{1,6}}|{SAYS_IN_CHINESE})[\uff0c,\uff1a:]\s*$"
    r"|و?(?:قالت?|أضافت?|صر[ّ]?حت?|أكدت?|أوضحت?|يقول|تقول)\s+(?P<ar>[^:،.]{3,60}):\s*$"
    r"|(?:.*[.!?]\s+)?(?P<he>[\u05d0-\u05ea][^.,:]{2,50}?)\s(?:\u05d0\u05de\u05e8|\u05e1\u05d9\u05e4\u05e8|\u05d4\u05d5\u05e1\u05d9\u05e3|\u05d4\u05e1\u05d1\u05d9\u05e8)\u05d4?\s*[:,]\s*$",
    re.DOTALL,
)
# The name stands before the speech, and its verb after it.
_AROUND_SPEECH: Final = (
    (
        re.compile(
            r"(?:.*[\u3002\u3001])?(?P<name>[^\s\u3001\u3002\u300c\u300d]{3,24}?)(?:\u306f|\u304c)\u3001?$",
            re.DOTALL,
        ),
        re.compile(
            r"\u3068(?:\u8a71|\u8a9e|\u8ff0\u3079|\u8a00|\u8aac\u660e|\u30b3\u30e1\u30f3\u30c8|\u5f37\u8abf|\u632f\u308a\u8fd4)"
        ),
    ),
    (
        re.compile(
            r"(?P<name>[\uac00-\ud7af]+(?: [\uac00-\ud7af]+){0,3}?)(?:\uc740|\ub294|\uc774|\uac00)\s*$"
        ),
        re.compile(
            r"\s*(?:\uc774?\ub77c)?\uace0\s*(?:\ub9d0|\ubc1d|\uc804|\uc124\uba85|\uac15\uc870|\ub367\ubd99)"
        ),
    ),
    (
        re.compile(r"(?P<name>[^\W\d_a-z]\S*(?: \S+){0,5}),\s*$"),
        re.compile(r"\s*,?\s*(?:dedi|diyor|diye konu\u015ftu|diye a\u00e7\u0131klad\u0131)\b"),
    ),
    (
        re.compile(
            r"(?:.*[\u0964,])?\s*(?P<name>[\u0900-\u097f]+(?: [\u0900-\u097f]+){1,4}) \u0928\u0947 (?:\u0915\u0939\u093e|\u092c\u0924\u093e\u092f\u093e)(?: \u0915\u093f)?[,:\s]*$",
            re.DOTALL,
        ),
        re.compile(r""),
    ),
)
_UNNAMED_PERSON: Final = re.compile(
    r"\u4e00\u4eba$|\u4eba\u3005$|^[\u5f7c他她它我你您]|\u5ba2$|^\uadf8$|^\uadf8\ub140$|\u090f\u0915 "
)
# The speaker is named in the middle of the speech: "..., — сказала Анна Белова. — ...".
_SPEAKER_WITHIN: Final = re.compile(
    rf"^(?P<first>[^\u2014]+?),\s*\u2014\s*(?:{SAYS})\s+(?P<name>(?:\b{TITLE}|[^.,!?\u2014])+)[.,]\s*\u2014\s*(?P<rest>.+)$",
    re.DOTALL,
)
_MAX_SPEAKER_CHARACTERS: Final = 60
_NOT_BEFORE_NAME: Final = word_set(
    "he she it they we i you er sie es wir ich il elle ils elles on nous je ella él ellos yo lei lui noi io он она они мы я "
    "at on in to for with of about that this am im an auf zu zum zur bei vor nach mit dazu dass à en lors dans nel con para "
    "que che em no na w z we do в на о об при на что"
)
_PARTICLES: Final = word_set("van von de der den del della di da la le al bin ibn of y e")
_ABBREVIATED: Final = re.compile(rf"{TITLE}|Jr\.")
_UP_TO_MARK: Final = re.compile(rf"(?:\b{TITLE}|[^.,;:!?\u2026\u2013\u2014(\"])*")
_NOT_A_NAME: Final = word_set(
    "he she it they we i you this that the a an his her their our my one some many er sie es wir ich il elle ils elles "
    "on nous je ella \u00e9l ellos nosotros yo lei lui noi io"
)
# A role in lower case before a name: "the fire chief Mary O'Neil".
_TITLE_THEN_NAME: Final = re.compile(
    r"(?:the )?(?P<title>[^\W\d_A-Z][\w-]*(?: [^\W\d_A-Z][\w-]*){0,2})"
    rf"(?: (?:{TITLE}|[^\W\d_a-z](?:\.|[\w'\u2019-]*))(?: (?:van|von|de|der|den|del|di|da|la|le|al|bin|ibn))*){{1,4}}"
)
_CLOSES_SPEECH: Final = re.compile(r"[,.!?\u2026].$")
_NO_TITLES: Final = (
    _NOT_BEFORE_NAME
    | _NOT_A_NAME
    | word_set(
        "and or but nor not as so yet if than then later earlier soon once today yesterday tonight again also too even only just "
        "still now here there what which who whom whose when where while because since although though before until by like is was "
        "were are had has have says said reads read y e et und och og en pero mais aber maar но и а"
    )
)
_APPOSED: Final = re.compile(
    rf"[^\s,]+(?: [^\s,]+){{1,3}}, (?P<name>(?:{TITLE} )*"
    r"[^\W\d_a-z][^\s,.;:]+(?: [^\W\d_a-z][^\s,.;:]+| van| von| de| der| del| da| di){1,4})(?=[.,;]|$)"
)
_OFFICE: Final = (
    r"(?:[\w-]*(?i:mayor|leader|director|executive|chair(?:man|woman|person)?|president|founder|manager|spokes\w+|secretary|minister"
    r"|officer|editor|owner|boss|head|chief|coach|captain)|C[A-Z]O)"
)
_PERSON: Final = (
    rf"(?P<name>(?:{TITLE}\s)*(?!(?:\S+\s){{1,3}}{_OFFICE}(?:[.,;]|$))[^\W\d_a-z][^\s,.;:]*"
    r"(?:\s(?:[^\W\d_a-z][^\s,.;:]*|van|von|de|der|den|del|della|di|da|la|le|al|bin)){1,4})"
    r"(?<!['\u2019]s)(?<!s['\u2019])(?=[.,;\s]|$)"
)
# Owner and role before the name: "Wells' mayor, Dinah Cole", "Acme CEO Ruth Adeyemi", "le maire de Nantes,
# Jean Roy".
_WITH_OFFICE: Final = tuple(
    re.compile(pattern + _PERSON)
    for pattern in (
        r"[^,;:!?()]{1,60}?\w(?:['\u2019]s|(?<=s)['\u2019])\s(?:(?:[^\W\d_A-Z][\w-]*|[A-Z]{2,4})\s){0,4}",
        r"[^,;:!?()]{1,60}?\w(?:['\u2019]s|(?<=s)['\u2019])\s[^,;:!?()]{1,50},\s",
        rf"(?:[^\W\d_a-z][^\s,;:!?()]*\s){{1,4}}(?:[^\W\d_A-Z][\w-]*\s){{0,2}}(?=[a-z]|C[A-Z]O){_OFFICE},?\s",
        (
            r"(?:(?:the|der|die|le|la|el|il|lo|de|het|o|a)\s|l['\u2019])[^\W\d_][\w-]*(?:\s[^\W\d_A-Z][\w-]*){0,3}?"
            r"\s(?:(?:of|de|du|des|del|della|dello|di|van|von|vom|der|do|da)\s(?:la\s|le\s)?|(?:d|dell)['\u2019])[^,;:.!?()]{1,40},\s"
        ),
    )
)
_POSSESSIVE: Final = re.compile(r"(?:['\u2019]s|s['\u2019])$")
# "Ruth Calloway: ...": at least two words, since one may be a place or a heading.
LABEL: Final = re.compile(
    r"[^\w\n]*(?P<name>[^\W\d_a-z][^\s:,]*(?: (?:[^\W\d_a-z][^\s:,]*|van|von|de|der|den|del|di|da|la|le|al|bin)){1,4})(?:, [^:\n]{2,50})?\s?:\s"
)
ARTICLES: Final = word_set("the die der das la le el il lo o a les los de het den")
_MAX_NAME_WORDS: Final = 6
"""The maximum of a name with its titles, such as "Mayor Ellen van der Berg"."""


@dataclass(frozen=True)
class QuotedSpeech:
    """Direct speech; `words` are without its quotation marks and without a comma before the closing mark."""

    words: str
    speaker: str


def speech_in(sentence: str) -> Iterator[QuotedSpeech]:
    """Yield the quoted passages whose speaker the same sentence names, or the words before a signature."""
    signature = find_signature(sentence)
    if signature is not None:
        words = collapse(re.sub(r"\s*>?\s*[\u2014\u2013\u2015]\s*$", "", sentence[: signature.start("by")]))
        spoken = PAIRED_QUOTES.fullmatch(without_gershayim(words))
        yield QuotedSpeech(
            _words_between_marks(spoken, words) if spoken else words, collapse(signature["by"])
        )
        return
    for match in PAIRED_QUOTES.finditer(without_gershayim(sentence)):
        words = _words_between_marks(match, sentence).rstrip(",\uff0c").rstrip()
        interruption = _SPEAKER_WITHIN.match(words)
        if interruption is not None:
            # Only the words before the speaker's name: joined with the rest they would be another sentence.
            words, name = interruption["first"], interruption["name"]
            speaker = _leading_name(name, is_whole=True) or _name_after_role(name)
        else:
            before, after = sentence[: match.start()], sentence[match.end() :]
            label = LABEL.fullmatch(before) if not after.strip() else None
            speaker = _find_speaker(before, after) or (
                _name_after_title(after) if _CLOSES_SPEECH.search(match.group()) or after[:1] == "," else ""
            )
            speaker = speaker or (label["name"] if label else "")
        if words and speaker:
            yield QuotedSpeech(words, speaker)


def _words_between_marks(match: re.Match[str], text: str) -> str:
    """Return the words between the marks, without the spaces next to the marks, which are only typography."""
    start, end = match.span(match.lastindex or 0)
    return collapse(text[start:end].strip())


def _find_speaker(before: str, after: str) -> str:
    """Return the speaker whom the text before or after the speech names, or "" if neither does."""
    for pattern, text in ((_VERB_THEN_NAME, after), (_NAME_THEN_VERB, after), (_BEFORE_SPEECH, before)):
        match = pattern.match(text)
        if match and (name := _name_after_office(match["name"])):
            return name
        # The name is the last part, as in "Speaking on Monday, Cllr. Dan Rowe said".
        last = match["name"].rpartition(", ")[2] if match and pattern is _BEFORE_SPEECH else ""
        name = _leading_name(last, is_whole=True)
        if not name or name != last:
            name = _leading_name(match["name"], is_whole=pattern is not _VERB_THEN_NAME) if match else ""
        if not name and match and pattern is _VERB_THEN_NAME:
            name = _name_after_role(match["name"])
        if name:
            return name
    for pattern, text in ((_AFTER_SPEECH_ELSEWHERE, after), (_BEFORE_SPEECH_ELSEWHERE, before)):
        match = pattern.match(text)
        name = collapse(next(filter(None, match.groups()), "")) if match else ""
        if name and len(name) <= _MAX_SPEAKER_CHARACTERS and not _UNNAMED_PERSON.search(name):
            return name
    for named, verb in _AROUND_SPEECH:
        match = named.search(before)
        if match and verb.match(after) and not _UNNAMED_PERSON.search(match["name"]):
            return collapse(match["name"])
    return ""


def _name_after_office(words: str) -> str:
    """Return the name after its owner and role ("Wells' mayor, Dinah Cole"), or "" for anything else."""
    if words.split(maxsplit=1)[0].casefold() in _NOT_BEFORE_NAME - ARTICLES:
        return ""
    matches = (pattern.match(words) for pattern in _WITH_OFFICE)
    return next((match["name"] for match in matches if match), "")


def _name_after_role(words: str) -> str:
    """Return role and name up to the next mark ("the architect Vera Melnikova"), or a name after the mark, or ""."""
    match = _UP_TO_MARK.match(words)
    first = match.group() if match else ""
    phrase = first.split()
    # An apposed name, as in "the mayor, Ivo Prat."
    apposed = _APPOSED.match(words)
    if apposed and first.islower() and phrase[0].casefold() not in _NOT_BEFORE_NAME:
        return apposed["name"]
    is_named = any(word[:1].isupper() for word in phrase)
    if (
        not is_named
        or all(map(is_title, phrase))
        or len(phrase) > _MAX_NAME_WORDS
        or phrase[0].casefold() in _NOT_BEFORE_NAME
        or any(map(_POSSESSIVE.search, phrase))
    ):
        return ""
    return " ".join(phrase)


def _name_after_title(after: str) -> str:
    """Return a lower-case role with the name after it, both before the verb, or "" for anything else."""
    clause = _NAME_THEN_VERB.match(after)
    match = _TITLE_THEN_NAME.fullmatch(clause["name"]) if clause else None
    if match is None or any(
        word in _NO_TITLES or word.endswith(("ly", "ing")) for word in match["title"].split()
    ):
        return ""
    return match.group()


def _leading_name(words: str, *, is_whole: bool) -> str:
    """Return the name at the beginning of the words, or "" if they don't begin with one.

    With `is_whole`, it is "" too if many other words follow, or if the words begin with a pronoun or preposition.
    """
    name_words: list[str] = []
    tokens = words.split()
    for token in tokens:
        unmarked = token.rstrip(".,;:!?\u2026)")
        is_last = unmarked != token and not _ABBREVIATED.fullmatch(token)
        word = unmarked if is_last else token
        if not (word[:1].isupper() or (name_words and (word in _PARTICLES or _ABBREVIATED.fullmatch(token)))):
            break
        name_words.append(word)
        if is_last or len(name_words) == _MAX_NAME_WORDS:
            break
    while name_words and name_words[-1] in _PARTICLES:
        name_words.pop()
    owner_end = max(
        (number for number, word in enumerate(name_words, 1) if _POSSESSIVE.search(word)), default=0
    )
    if owner_end:
        # "Tarn Foods' director" isn't Tarn Foods.
        name_words = name_words[owner_end:]
        if len(name_words) < 2:
            return ""
    if all(map(is_title, name_words)) or (len(name_words) == 1 and name_words[0].casefold() in _NOT_A_NAME):
        return ""
    if is_whole and len(tokens) > 2 and name_words[0].casefold() in _NOT_BEFORE_NAME:
        # "In May coach Dan Wu said": May isn't the speaker.
        return ""
    return (
        ""
        if is_whole and len(name_words) < len(tokens) and len(tokens) - len(name_words) > _MAX_NAME_WORDS
        else " ".join(name_words)
    )
