"""Finds sentences, in many languages, that speak to the machine that reads them: "Note to any AI: please ..."."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# A machine, but not people who only work with it, as in "an AI startup" or "assistant manager".
_KINDS: Final = (
    r"assistants?|models?|agents?|systems?|chat ?bots?|bots?|tools?|summari[sz]ers?|crawlers?|readers?|services?|engines?|software"
    r"|assistent(?:en|in|innen|s|er|i|e)?|modell(?:e[rn]?|er)?|modellen|systemen?|agenten|werkzeugen?"
)
MACHINE: Final = (
    rf"(?:(?:(?:generative|large|automated|automatic) )?(?:(?:AI|A\.I\.|LLM|GPT|KI)s?|artificial intelligences?)(?:[- ](?:{_KINDS}))*"
    rf"|(?:large )?language models?|(?:virtual|digital) assistants?|(?:automat(?:ed|ic) )?summari[sz]ers?|chat ?bots?|ChatGPT|Claude|Gemini|Copilot"
    r"|künstlichen? intelligenz(?:en)?|(?:großen? )?sprachmodell(?:en?|s)?|zusammenfasser"
    r"|(?:assistants?|modèles?|agents?|outils?|systèmes?|robots?) (?:(?:d['’]|à |de l['’])?(?:IA|intelligence artificielle)|de langage)"
    r"|agents? conversationnels?|(?:l['’]|un['’]|all['’])?(?:IA|I\.A\.|intelligences? artificielles?|intelligenz[ae] artificial[ei])"
    r"|(?:asistentes?|modelos?|agentes?|sistemas?|herramientas?|ferramentas?|assistentes?)(?: virtua(?:l|is|les))?"
    r" (?:de |com |con )?(?:la )?(?:IA|inteligencia artificial|inteligência artificial|lenguaje|linguagem)"
    r"|inteligencias? artificial(?:es)?|inteligências? artificia(?:l|is)|a?(?:sistentes?|ssistentes?) virtua(?:l|is|les)"
    r"|(?:assistent[ei]|modell[oi]|agent[ei]|sistem[ai]|strument[oi]) (?:(?:di|con|d['’]) ?)?(?:IA|AI|intelligenza artificiale|linguaggio)|modell[oi] linguistic[oi]"
    r"|kunstmatige intelligentie|(?:grote )?taalmodel(?:len)?|kunstig intelligens|artificiell intelligens|spr[åo][kg]model\w*"
    r"|(?:asystent|model|system|agent|narzędzi|bot)\w* (?:AI|SI|sztucznej inteligencji)|sztuczn\w+ inteligencj\w+|model\w* językow\w+|chatbot\w*"
    r"|uměl\w+ inteligenc\w+|jazykov\w+ model\w*|AI[- ]asistent\w*"
    r"|(?:ИИ|AI|ШІ)(?:[- ](?:ассистент|помощник|модел|агент|бот|систем|асистент|помічник)\w*)?|(?:искусственн|штучн)\w+ [иі]нтел+ект\w*"
    r"|нейросет\w+|(?:языков|мовн)\w+ модел\w+|чат-?бот\w*|(?:ассистент|помощник|модел|систем)\w* (?:на основе |с )?(?:ИИ|ШІ))(?![^\W\d_])"
)
# Not before a word that makes people of it: "AI researchers".
NO_PEOPLE: Final = (
    r"(?![- ](?:developer|user|researcher|engineer|scientist|expert|enthusiast|student|artist|fan|sceptic|skeptic|trainer|compan|start-?up|firm|founder|team"
    r"|lab|provider|vendor|manager|professor|coach|director|editor|teacher|referee|secretar|surgeon|nurse|chief|law|act\b|polic|entwickl|nutz|forsch|firm))"
)
# "An important note ", "Kurzer Hinweis ".
_NOTE: Final = (
    r"(?:(?:an?|the|one|our|important|quick|friendly|special|short|brief|final|hidden|wichtiger?|kurzer?|ein|ważna|важное) ){0,3}"
    r"(?:notes?|notices?|messages?|memo|reminder|requests?|hints?|warning|attention"
    r"|hinweise?|notiz|anmerkung|nachricht|botschaft|mitteilung|bitte|aufforderung|auftrag|befehl|vermerk|achtung"
    r"|avis|rappel|remarque|demande|à l['’](?:attention|intention)|notas?|avisos?|mensajes?|atención|recordatorio|mensage(?:m|ns)|atenção|lembrete"
    r"|messaggio|avviso|attenzione|promemoria|richiesta|opmerking|bericht|mededeling|notitie|boodschap|verzoek|let op|aandacht"
    r"|uwaga|notatka|wiadomość|komunikat|prośba|poznámka|zpráva|upozornění|vzkaz|meddelande|notis|besked|bemærkning|merknad|beskjed|melding"
    r"|примечание|заметка|сообщение|внимани[ею]|обращение|просьба|послание|примітка|повідомлення|увага)(?: importante?s?)?,? "
)
# "Instructions ", "Anweisungen ".
_PAPER: Final = (
    r"(?:instructions?|guidance|directions|commands?|advice|info(?:rmation)?|prompts?|anweisung(?:en)?|consignes?|indications?|instrucci(?:ón|ones)|indicaci(?:ón|ones)"
    r"|instruç(?:ão|ões)|istruzion[ei]|indicazion[ei]|instructies?|aanwijzing(?:en)?|informacja|instrukcj[ae]|polecenie|pokyny?|anvisning(?:ar)?|instruktion(?:er)?"
    r"|инструкци[яи]|указани[ея]|інструкці[яї]) "
)
# "Dear ", "Hallo, ".
_CALLS: Final = (
    r"(?:dear|hey|hello|hi|liebe[rs]?|hallo|sehr geehrte[rs]?|ch(?:er|ère)s?|bonjour|querid[oa]s?|estimad[oa]s?|hola|prezad[oa]s?|car[oaie]|gentil[ei]|ciao|beste|geachte"
    r"|drog[ia]e?|szanown[yaie]+|kära?|kjære|kære|hej|уважаем\w+|дорог\w+|привет|шановн\w+|sayın|sevgili),? "
)
# "addressed to ", "für ", "all'".
_TO: Final = (
    r"(?:(?:à l['’](?:attention|intention) d[eu]s?|to|for|(?:addressed|directed) to|meant for|an|für|à|aux?|d[eu]s?|pour|destinée?s? (?:à|aux?)|para|dirigid[oa]s? a|ao?s?|al?|per|ai|agli|all[ae]?|aan|voor|dla|do|pro|till?|för|для|к) "
    r"|all['’])"
)
# "every ", "alle ", "l'".
_EACH: Final = (
    r"(?:(?:the|any|all|every|each|our|your|an?|other|those|these|future|alle[nr]?|jede[ns]?|den|die|das|dem|der|eine?n?|la|les?|tou(?:te?s?|s)|une?"
    r"|los|las|el|cualquier|tod[oa]s?|as?|os?|qualquer|il|lo|gli|i|tutt[eio]|qualsiasi|elke?|de|het|een|wszystkich|każdego|alla|всех|любо\w+|всім|усіх) |l['’]){0,2}"
)
# " and chatbots that summarise this page".
_WHO_READS: Final = (
    rf"(?:(?:,| and| und| et| y| e| en| i| och| og| и) {_EACH}{MACHINE}){{0,2}}(?: only| nur| seulement| solamente)?"
    r"(?:,? (?:that|which|who|when|while|in|on|out there|with|\w+ing|die|der|das|welche[rs]?|beim|qui|chargée?s?|lors|que|encargad[oa]s?|al|che|incaricat[oaie]|któr\w+|dat|som|kter\w+"
    r"|котор\w+|(?:чита|обобща|пересказыва)\w+|як[аиій]\w*) [^.:!?,;\"“„«]{0,90})?"
)
# "summarises", "zusammenfassen".
_READS: Final = (
    r"(?:(?:summari[sz]|rewrit|paraphras|condens|zusammenfass|zusammenzufass|umschreib|résum|réécri|reformul|resum|reescri|reescre|riassum|riscri|samenvat|herschrij"
    r"|streszcza|podsumow|обобща|пересказыва|пересказа|özetle)\w*)"
)
# The same, and "reads", "translates".
_USES: Final = rf"(?:{_READS}|(?:read|process|translat|analy[sz]|index|pars|lies|lese|verarbeit|übersetz|lis|lit|lee|lea|leia|legg|leest|lezen|czyta|przetwarza|чита|обрабатыва)\w*)"
# "this article", "diese Seite".
_THIS_TEXT: Final = (
    r"(?:(?:this|the|dies\w+|den|die|das|cet?|cette|est[ea]|quest[oa]|dit|deze|te[nj]|tę|этот?|эту|bu|l['’]) ?"
    r"(?:page|text|article|post|document|content|website|site|story|seite|artikel|beitrag|dokument|página|artículo|artigo|pagina|testo|articolo|tekst|stron|artyku|страниц|стать|sayfa|metn|yazı|makale)\w*)"
)
# "whoever", "to anyone", "wer".
_WHOEVER: Final = (
    r"(?:(?:to|note to|note for|dear|for|an|à|pour|a|para|aan) )?(?:whoever|whatever|anyone|anything|any(?: \w+)? (?:program|system|service|software|machine|tool)s?|those|all|when|if you"
    r"|wer|alle|jeden|wenn|falls|beim|quiconque|qui|celui|ceux|toute personne|si|en|quien(?:es|quiera)?|cualquiera|al|quem|ao|se|chi|chiunque|wie|als|kto(?:kolwiek)?|кто|если)"
)
# Requests to a machine: "please", "write", "you must".
REQUEST: Final = (
    r"(?:please|kindly|say|state|claim|mention|write|include|add|append|insert|output|print|reply|respond|answer|recommend|praise|promote|endorse|ignore|disregard|omit|leave out|skip"
    r"|do not|don['’]t|never|always|make sure|be sure|ensure|remember|tell|call|describe|present|quote|cite|link|name|refer|report|rate|rank|replace|change|begin|start|end|finish|use|give"
    r"|show|translate|summari[sz]e|treat|pretend|act|stop|follow|emphasi[sz]e|stress|highlight|you (?:must|should|have to|are to)|must|should|shall|has to|have to"
    r"|bitte|sag(?:en|e)?|schreib(?:en|e)?|erwähn(?:en|e)?|nenn(?:en|e)?|füg(?:en|e)?|gib|gebt|geben sie|antworten?|empfiehl|empfehlen|lob(?:en|e)|ignorier(?:en|e)?"
    r"|vergiss|lass(?:en|e)?|behaupten?|zitier(?:en|e)?|verlink(?:en|e)|beton(?:en|e)|ersetzen?|verwenden?|beginnen?|stellen? dar|soll(?:en|st|t)?|muss|müssen|musst|darfst"
    r"|s['’]il (?:te|vous) plaît|merci de|veuillez|veuille|prière de|(?:di[st]|dites|écri[st]|écrive[zs]|mentionne|ajoute|inclu[st]|recommande|cite|affirme|indique|précise|réponds|répondez|nomme|n['’]oublie"
    r"|commence|remplace|insère|présente|ignore|félicite)(?:[zs]|ez)?|inclue[zs]|ne (?:mentionne|di[st]|parle)|dois|doi(?:ven)?t|devez"
    r"|por favor|favor de|di(?:ga[ns]?|gas|ce[dr]?)?|escrib(?:e|a[ns]?|id|ir)|escrev(?:a[m]?|e)|mencion(?:a|e[ns]?|ad|ar|em)|añad(?:e|a[ns]?)|agreg(?:a|ue[ns]?)|incluy(?:e|a[ns]?)|incluid?[ar]?|inclua[m]?"
    r"|recomiend(?:a|e[ns]?)|recomend(?:e|a)m?|afirm(?:a|e[ns]?)|asegúra(?:te|se)|responde?a?|cit(?:a|e[ns]?|em)|ignor(?:a|e[ns]?|em)|nombr(?:a|e[ns]?)|acrescente[m]?|adicione[m]?|di(?:ga|gam|z)|debe[ns]?|deve[m]?"
    r"|no (?:digas?|menciones?|olvides?)|não (?:diga|mencione)"
    r"|per favore|si prega|(?:scriv|dic|aggiung|includ|rispond)(?:i|a|ete|ano|ono)|di['’]|dite|menzion(?:a|i|ate|are)|cita(?:te)?|consigli(?:a|ate)|raccomand(?:a|ate)|ignorate|devi|devono|dovete|non (?:dire|menzionare)"
    r"|alstublieft|alsjeblieft|a\.?u\.?b\.?|gelieve|vermeld|schrijf|noem|zeg|voeg|negeer|beveel|antwoord|citeer|moet(?:en)?"
    r"|proszę|prosimy|napisz(?:cie)?|wspomni(?:j|eć|jcie)|powiedz|dodaj(?:cie)?|podaj|poleć|polecaj|zignoruj|wymień|uwzględnij|należy|musi(?:sz|cie)?|pisz"
    r"|prosím|napiš(?:te)?|zmiň(?:te)?|uveď(?:te)?|řekni|přidej|doporuč"
    r"|vänligen|nämn|skriv|säg|lägg till|rekommendera|nævn|tilføj|nevn|legg til|anbefal|si at|sig at|venligst|vennligst|skal|ska|må"
    r"|пожалуйста|просьба|(?:упомян|напиш|скаж|добав|укаж|рекоменд|отметь|игнориру|ответь|назов|включ)\w*|не упоминай\w*|не забудь\w*|должн\w+|следует|нужно|будь ласка|згада\w+|напиши\w*|додай\w*|вкажи\w*"
    r"|lütfen|\w+(?:in|ın|un|ün)iz|belirt\w*|yaz(?:ın)?|söyle(?:yin)?|ekle(?:yin)?|bahset\w*|öner(?:in)?)(?![^\W_])"
)
# "your", "du", or a request in the plural: "schreibt".
_YOU: Final = r"(?:you|yours?|du|dein\w*|dich|ihr|euch|sie|ihren?|tu|ton|ta|vous|vot?re|vos|tus?|tú|usted(?:es)?|você|seu|sua|voi|tuo|vostr\w+|schreibt|sagt|nennt|erwähnt|fügt|empfehlt|lobt|je|jij|jouw|uw|ty|twoj\w+|twój|ты|вы|тво\w+|ваш\w*|sen|siz)(?![^\W_])"


def _compile_spaced(pattern: str) -> re.Pattern[str]:
    """Compile the pattern so that its spaces match any white space, as in a wrapped text.

    A match begins with a sentence or line, and not in a quotation.
    """
    begins = r"(?:^[^\w\n]{0,12}|[.!?:;…)\]–—|][^\w\n\"“„«‘']{0,6})"
    return re.compile(begins + pattern.replace(" ", r"\s{1,3}"), re.IGNORECASE | re.MULTILINE)


_MUST: Final = r"(?:must|should|shall|ha(?:s|ve) to|sollen|müssen|doivent|deben|deve[mn]?|devono|moeten|muszą|powinny|должны|please)(?![^\W_])"
# The marks between an address and the punctuation after it, those before a request, and a request soon after.
_BEHIND: Final = r"[^\w.!?:;,\n–—]{0,4}"
_NEXT: Final = rf"[^\w.!?]{{0,6}}(?:{REQUEST}|(?:schreibt|sagt|nennt|erwähnt|empfehlt|lobt)(?![^\W_]))"
_SOON: Final = rf"(?:[^.!?]{{0,240}}[.!?])?[^.!?]{{0,200}}?(?<![^\W_])(?:{REQUEST}|{_YOU})"
# Stems of the words for a machine.
_NAMED: Final = re.compile(
    r"[akiиш](?:[iaиі]|\.i)(?![^\W\d_])(?<![^\W\d_][^\W\d_]{2})|[aki][ia](?=[^\x00-\u02ff])"
    r"|llm|gpt|intel|model|modèl|chat|claude|gemini|copilot|assist|asist|асист|ассист|помічн|помощн|zusammen|summar|rewrit|paraphr|condens|umschr|résum"
    r"|réécr|reform|resum|reescr|riassum|riscr|samenv|herschr|інтел|интел|нейро|модел|чат|обобща|переска|yapay|dil mod|sohbet|özetl|streszc|podsum"
    r"|人工|模型|机器|機器|助手|モデル|ボット|要約|인공|언어|챗봇|الذكاء|ذكاء|نموذج|لنماذج|בינה|הבינה|מודל|एआई|कृत्रिम"
)


def may_address_machine(small: str) -> bool:
    """Return whether the lower-case text has a word for a machine, a quick test before the slow patterns below."""
    return _NAMED.search(small) is not None


_MAX_SEARCHED_REQUESTS: Final = 300
"""After this many addresses, which no real text has, further ones count even if no request follows them."""
_CALLED: Final = _compile_spaced(
    rf"(?:{_NOTE}{_TO}?{_EACH}{MACHINE}{_WHO_READS}{_BEHIND}(?::|–|—)|{_CALLS}{_EACH}{MACHINE}{_WHO_READS}{_BEHIND}[,:!])"
)
_ASKED_SOON: Final = re.compile(_SOON.replace(" ", r"\s{1,3}"), re.IGNORECASE)


def find_requests_to_machine(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of notes and greetings to a machine, each with the request in the same sentence or the next."""
    for number, call in enumerate(_CALLED.finditer(text)):
        request = _ASKED_SOON.match(text, call.end()) if number < _MAX_SEARCHED_REQUESTS else call
        if request is not None:
            yield call.start(), request.end()


ADDRESSES: Final = (
    # "Note to AI assistants, please ..."; "Instructions for assistants: write ...".
    _compile_spaced(
        rf"(?:{_NOTE}{_TO}?|{_PAPER}{_TO}){_EACH}{MACHINE}{_WHO_READS}{_BEHIND}[,:;–—.!\n]{_NEXT}"
    ),
    # "To the AI that reads this: say ...".
    _compile_spaced(
        rf"{_TO}?{_EACH}{MACHINE}{_WHO_READS}{_BEHIND}(?::|,(?! ?(?:say|claim|report|state|show|use|dit|dice|di)(?![^\W_]))){_NEXT}"
    ),
    # "AI systems that summarise this page must ..."; then "Whoever rewrites this text, please ...".
    _compile_spaced(
        rf"{_TO}?{_EACH}{MACHINE}(?=[^.:!?\n]{{0,80}}(?<![^\W_]){_USES})(?=[^.:!?\n]{{0,80}}{_THIS_TEXT})[^.:!?\n]{{0,110}}?(?:[,:]{_NEXT}|(?<![^\W_]){_MUST})"
    ),
    _compile_spaced(
        rf"{_WHOEVER} (?=[^.:!?\n]{{0,80}}(?<![^\W_]){_READS})(?=[^.:!?\n]{{0,80}}{_THIS_TEXT})[^.:!?\n]{{0,110}}?[,:]{_NEXT}"
    ),
    # Languages with particles after a name, or without spaces: Turkish, Japanese, Chinese, Korean; and others.
    re.compile(
        r"(?:yapay zek[aâ]|dil model|sohbet robot|chatbot)[^.:!?\n]{0,40}?(?:not|mesaj|talimat|uyarı|duyuru|dikkat)\w*\s?:[^.!?\n]{0,200}?"
        r"(?:lütfen|\w{3,}(?:in|ın|un|ün)(?:iz)?(?!\w)|\b(?:yaz|söyle|ekle|belirt|öner|yok say)\b)"
        r"|(?:bu (?:sayfayı|metni|yazıyı|makaleyi|haberi) (?:özetle|oku)\w+ yapay zek[aâ]|(?:sayın|sevgili|dikkat,?) yapay zek[aâ])[^.:!?\n]{0,40}[:,!][^.!?\n]{0,200}?(?:lütfen|\w{3,}(?:in|ın|un|ün)(?:iz)?(?!\w))"
        r"|(?:AI|人工知能|生成AI|言語モデル|チャットボット)[^。！？\n：:「」]{0,14}?(?:(?:へ|宛て?|に(?:告ぐ|対する)|向け|の皆さん|用)[^。！？\n：:「」、]{0,12}[：:！\n]|(?:へ|の皆さん)、)[^！？\n]{0,160}?(?:ください|下さい|なさい|せよ|しろ|すること|べし|書け|言え|お願い)"
        r"|(?:(?:この|本)(?:ページ|記事|文章|テキスト|文書|サイト|文)を(?:要約|読|処理|書き直|翻訳)[^。！？\n「」]{0,12}(?:AI|人工知能|モデル|ボット|アシスタント|者|方|人)[^。！？\n「」]{0,12}[はへ、：:][^！？\n]{0,120}?(?:ください|下さい|なさい|せよ|すること|べし|お願い))"
        r"|(?:(?:致|给|給|对|對)[^。！？\n：:，,「」“”]{0,16}(?:AI|人工智能|人工智慧|语言模型|語言模型|大模型|聊天机器人|聊天機器人|智能助手)(?:助手|模型|系统|系統|机器人|機器人|们|們|工具)?"
        r"(?:的?(?:提示|说明|說明|备注|備註|注释|指示|指令|话|話|留言|消息|信息|通知|注意事项|请求))?[：:！]|(?:尊敬的|亲爱的|親愛的|[请請]?注意[，,：:]?)(?:各位|所有)?(?:AI|人工智能|人工智慧)[^。！？\n：:，,「」]{0,6}[：:，,！]"
        r"|(?:AI|人工智能|人工智慧|语言模型|語言模型|大模型|聊天机器人|聊天機器人)[^。！？\n：:，,「」]{0,6}[请請]注意[：:，,！])"
        r"[^！？\n]{0,120}?(?:请|請|务必|務必|必须|必須|应当|應當|不要|忽略|写|寫|提到|提及|推荐|推薦|加上|输出|輸出|你|您)"
        r"|(?:总结|總結|概括|摘要|改写|改寫|处理|處理|阅读|閱讀)(?:本|这|這|此|该|該)[^。！？\n：:，,「」]{0,6}的[^。！？\n：:，,「」]{0,6}(?:AI|人工智能|人工智慧|模型|机器人|機器人|助手|人)[^。！？\n「」]{0,8}?(?:请|請|务必|務必|必须|必須|[：:，,][^。！？\n]{0,60}?(?:请|請|写|寫|提到|提及|推荐|你|您))"
        r"|(?:AI|인공지능|언어 모델|챗봇)[^.!?\n:]{0,14}?(?:(?:에게|께|여러분|을 위한|를 위한)[^.!?\n:,]{0,12}[:\n]|(?:께|여러분),)[^!?\n]{0,160}?(?:세요|십시오|시오|하라|해라|주기 바랍니다|부탁)"
        r"|(?:ملاحظة|رسالة|تنبيه|تعليمات|إلى)[^.:!؟\n]{0,20}(?:الذكاء الاصطناعي|ذكاء اصطناعي|نموذج لغوي|لنماذج اللغ)[^.:!؟\n]{0,60}[:،][^!؟\n]{0,160}?(?:يرجى|من فضلك|اذكر|قل |اكتب|تجاهل|أضف|يجب)"
        r"|(?:הערה|הודעה|הנחיה|הנחיות|לתשומת לב)[^.:!?\n]{0,20}(?:בינה מלאכותית|הבינה המלאכותית|מודל\w* שפה|AI)[^.:!?\n]{0,60}:[^!?\n]{0,160}?(?:נא |אנא|ציינ|כתב|כתוב|אמר|הוסיפ|הוסף|התעלמ)"
        r"|(?:AI|एआई|कृत्रिम बुद्धिमत्ता)[^।\n:]{0,30}(?:के लिए|को)[^।\n:]{0,24}:[^\n]{0,160}?(?:कृपया|लिखें|बताएं|कहें|करें)",
        re.IGNORECASE,
    ),
)
