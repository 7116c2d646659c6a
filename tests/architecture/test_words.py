"""Pages, forms, mails and every other message speak plainly, and every visible string is in gettext's hands."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.architecture.code import modules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.architecture.code import Module

TEMPLATES: Final = Path(__file__).parents[2] / "templates"
DOORS: Final = re.compile(
    r"(^|/)(pages|admin|admin_site|notices|templatetags|mailing|dashboard|models|reports)(/|\.py$)|^pipeline/labels\.py$"
)
"""Modules whose strings only people read; those of the API's refusals are the contract's."""
GETTEXT: Final = frozenset({"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy"})
NOT_MESSAGES: Final = {
    "config/demo/stories.py": "the demo's stories",
    "pipeline/text/ai_address.py": "patterns of orders to a machine",
    "pipeline/text/prose/hearsay.py": "patterns of hearsay",
    "pipeline/writers/claude/persona_draft.py": "a prompt",
    "pipeline/writers/claude/prompts.py": "prompts",
}
"""Modules that hold what no person is told, each with what they hold."""
PROMPTS: Final = frozenset({"_RULES", "SUBJECT_RULES", "HOW_TO_TELL"})
"""Constants of engines that are part of a prompt; another wording is another version of it."""
HABITS: Final = re.compile(
    r"\b(by itself|by themselves|somebody|nobody|whoever|goes out|go out|(un)?tick(ed)?|let go|lets go|letting go"
    r"|goes on|go on|held back|comes? back|anew|sealed)\b",
    re.IGNORECASE,
)
SECOND_WORDS: Final = re.compile(
    r"\b(simulated outlets?|own feed|your feed|engines?|sign(ed)? (in|out)|sign-(in|out)|e-mails?)\b",
    re.IGNORECASE,
)
"""Another word for what pages and mails call test channel, workspace feed, format, log in and out, mail."""
QUESTIONS: Final = re.compile(r"^(What|How|Who|Whose|Where|Whether)\b[^?]*$")
"""A title that begins so hides its noun; a question may."""
TITLES: Final = re.compile(r"<(h[1-6]|th|dt|summary|label|legend|title)\b[^>]*>(.*?)</\1>", re.DOTALL)
TRANSLATED: Final = re.compile(
    r"""\{%\s*translate\s+"([^"]*)"|\{%\s*blocktranslate[^%]*%\}(.*?)\{%\s*endblocktranslate|_\("([^"]*)"\)""",
    re.DOTALL,
)
NOT_VISIBLE: Final = re.compile(
    r"\{%\s*blocktranslate.*?\{%\s*endblocktranslate\s*%\}|\{%\s*comment.*?\{%\s*endcomment\s*%\}"
    r"|\{%\s*block (?:width|coltype|bodyclass)\s*%\}.*?\{%\s*endblock\s*%\}"
    r"|<(script|style|code|pre)\b.*?</\1>|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<!--.*?-->|&\w+;",
    re.DOTALL,
)
NAMES: Final = frozenset({"HTML", "openapi", "json"})
"""Words that are the same in every language."""
TAGS: Final = re.compile(r"<[^>]*>", re.DOTALL)


def test_no_string_falls_back_into_the_old_habits():
    assert [f"{place}: {text}" for place, text in _strings() if HABITS.search(text)] == []


def test_no_message_falls_back_into_the_old_habits():
    assert [f"{place}: {text}" for place, text in _messages() if HABITS.search(text)] == []


def test_what_holds_no_messages_is_still_there():
    paths = {module.path for module in modules()}
    assert sorted(NOT_MESSAGES.keys() - paths) == []


def test_a_thing_has_one_word():
    assert [f"{place}: {text}" for place, text in _strings() if SECOND_WORDS.search(text)] == []


def test_no_title_is_half_a_sentence():
    found = [
        f"{path.relative_to(TEMPLATES)}: {text}"
        for path in _templates()
        for _, title in TITLES.findall(path.read_text(encoding="utf-8"))
        for text in _of_template(title)
        if QUESTIONS.match(text)
    ]
    labels = [f"{place}: {text}" for place, text in _of_modules() if QUESTIONS.match(text) and len(text) < 40]
    assert found + labels == []


def test_visible_text_is_in_gettext():
    found = [
        f"{path.relative_to(TEMPLATES)}: {text}"
        for path in _templates()
        if path.suffix == ".html"
        for text in re.findall(
            r"[^\W\d_]{2,}(?: [^\W\d_]+)*",
            TAGS.sub("\n", NOT_VISIBLE.sub("", path.read_text(encoding="utf-8"))),
        )
        if text not in NAMES
    ]
    assert found == []


def _templates() -> Iterator[Path]:
    """Those of pages and mails; a receiver's code is code."""
    for path in sorted(TEMPLATES.rglob("*")):
        if path.suffix in {".html", ".txt"} and "receiver." not in path.name:
            yield path


def _strings() -> Iterator[tuple[str, str]]:
    for path in _templates():
        for text in _of_template(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(TEMPLATES)), text
    yield from _of_modules()


def _messages() -> Iterator[tuple[str, str]]:
    """Every text of more than one word outside docstrings: refusals, reasons, descriptions, answers of commands."""
    for module in modules():
        if module.path in NOT_MESSAGES:
            continue
        ignored = _documentation(module.tree) | _prompts(module)
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in ignored:
                continue
            if " " in node.value:
                yield module.at(node), node.value


def _documentation(tree: ast.Module) -> set[int]:
    """Docstrings, those of constants included."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _prompts(module: Module) -> set[int]:
    if not module.path.startswith("pipeline/engines/"):
        return set()
    return {
        id(part)
        for node in module.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id in PROMPTS
        for part in ast.walk(node.value)
    }


def _of_template(source: str) -> Iterator[str]:
    for groups in TRANSLATED.findall(source):
        yield "".join(groups).strip()


def _of_modules() -> Iterator[tuple[str, str]]:
    for module in modules():
        if not DOORS.search(module.path):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in GETTEXT:
                for text in node.args:
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        yield module.at(node), text.value
