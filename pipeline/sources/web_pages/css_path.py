"""CSS selectors as XPath 1.0: the part of Selectors Level 3 by which people point at the items of a page."""

from __future__ import annotations

import re
from typing import Final

from pipeline.plugins import Refused

_NAME: Final = r"-?[A-Za-z_\u0080-\U0010ffff][\w\u0080-\U0010ffff-]*"
_TOKEN: Final = re.compile(
    rf"""(?P<combinator>\s*[>+~,]\s*|\s+)
    |\#(?P<id>{_NAME})
    |\.(?P<class>{_NAME})
    |\[\s*(?P<attribute>{_NAME})\s*(?:(?P<operator>[~|^$*]?=)\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[\w-]+))\s*)?\]
    |:(?P<pseudo>first-child|last-child|only-child)(?![\w-])
    |:(?P<nth>nth-child)\(\s*(?P<number>[0-9]{{1,4}})\s*\)
    |:not\(\s*(?P<not>[^()]+?)\s*\)
    |(?P<type>{_NAME}|\*)""",
    re.VERBOSE,
)
_AXES: Final = {
    " ": "/descendant::",
    ">": "/child::",
    "+": "/following-sibling::*[1]/self::",
    "~": "/following-sibling::",
}


def xpath_of(selector: str) -> str:
    """XPath of what the selector matches, anywhere in a document; raises `Refused` with the place of the fault."""
    paths, path, compound = [], "", _Compound()
    axis = "//"
    at = 0
    while at < len(selector):
        token = _TOKEN.match(selector, at)
        if token is None:
            raise _refusal(selector, at)
        if token["combinator"] is not None:
            if compound.is_empty:
                raise _refusal(selector, at)
            path += axis + compound.as_step()
            compound = _Compound()
            mark = token["combinator"].strip() or " "
            if mark == ",":
                paths.append(path)
                path, axis = "", "//"
            else:
                axis = _AXES[mark]
        elif not compound.take(token):
            raise _refusal(selector, at)
        at = token.end()
    if compound.is_empty:
        raise _refusal(selector, at)
    return " | ".join([*paths, path + axis + compound.as_step()])


class _Compound:
    """What stands between two combinators: `article.post[data-id]`."""

    def __init__(self) -> None:
        self.is_empty = True
        self._name = "*"
        self._tests: list[str] = []

    def take(self, token: re.Match[str]) -> bool:
        if token["type"] is not None:
            if not self.is_empty:
                return False
            # The parser of pages writes the names of elements in lower case.
            self._name = token["type"].lower()
        else:
            test = _test_of(token)
            if test is None:
                return False
            self._tests.append(test)
        self.is_empty = False
        return True

    def as_step(self) -> str:
        return self._name + "".join(f"[{test}]" for test in self._tests)


def _test_of(token: re.Match[str]) -> str | None:
    if token["id"] is not None:
        return f"@id={_literal(token['id'])}"
    if token["class"] is not None:
        return _holds_word("@class", token["class"])
    if token["attribute"] is not None:
        return _attribute_test(token)
    if token["not"] is not None:
        inner = _TOKEN.fullmatch(token["not"])
        if inner is None or inner["combinator"] is not None or inner["not"] is not None:
            return None
        test = f"self::{inner['type'].lower()}" if inner["type"] is not None else _test_of(inner)
        return f"not({test})"
    return _place_test(token)


def _place_test(token: re.Match[str]) -> str:
    if token["nth"] is not None:
        return f"count(preceding-sibling::*)={int(token['number']) - 1}"
    return {
        "first-child": "not(preceding-sibling::*)",
        "last-child": "not(following-sibling::*)",
        "only-child": "not(preceding-sibling::*) and not(following-sibling::*)",
    }[token["pseudo"]]


def _attribute_test(token: re.Match[str]) -> str:
    name = f"@{token['attribute'].lower()}"
    if token["operator"] is None:
        return name
    value = next(token[group] for group in ("double", "single", "bare") if token[group] is not None)
    literal = _literal(value)
    if token["operator"] == "=":
        return f"{name}={literal}"
    if token["operator"] == "|=":
        return f"{name}={literal} or starts-with({name}, {_literal(value + '-')})"
    # By the standard, an empty text is part of nothing.
    if not value:
        return "false()"
    return {
        "~=": _holds_word(name, value),
        "^=": f"starts-with({name}, {literal})",
        "$=": f"substring({name}, string-length({name}) - {len(value) - 1})={literal}",
        "*=": f"contains({name}, {literal})",
    }[token["operator"]]


def _holds_word(name: str, word: str) -> str:
    return f"contains(concat(' ', normalize-space({name}), ' '), {_literal(f' {word} ')})"


def _literal(text: str) -> str:
    """XPath 1.0 has no way to write a quotation mark inside its own kind."""
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    return "concat(" + ', "\'", '.join(f"'{part}'" for part in text.split("'")) + ")"


def _refusal(selector: str, at: int) -> Refused:
    rest = selector[at : at + 40]
    place = f"at “{rest}”" if rest else "at its end"
    message = (
        f"The item selector can't be read {place}. Give a CSS selector of names, .classes, #ids, [attributes] and "
        "the combinators “ ”, >, +, ~ and the comma, such as: article.post h2 > a."
    )
    return Refused(message, code="selector_unreadable", field="config.item_selector")
