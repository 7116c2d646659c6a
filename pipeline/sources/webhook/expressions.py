"""JMESPath with a bound: an expression that a person wrote, asked of a body that a stranger sent.

A short expression can ask for endless work: `[@,@]|[@,@]|…` doubles what it holds with each step, and `to_string(@)`
writes it out. So every step is counted, and so is the size of everything that is built, compared or handed to a
function; past the budget the evaluation ends with `TooCostly`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from jmespath import exceptions, functions
from jmespath.parser import Parser
from jmespath.visitor import TreeInterpreter

from pipeline import limits

_PLAIN_STEP: Final = r"[\w:@$#+/-]+"
_PLAIN_PATH: Final = re.compile(rf"{_PLAIN_STEP}(?:\[\d{{1,4}}\])*(?:\.{_PLAIN_STEP}(?:\[\d{{1,4}}\])*)*")
"""Dotted names such as `data.content-type`: what JMESPath wants in quotes is taken for the name that it is."""
_NAME: Final = re.compile(rf"(?:^|\.)({_PLAIN_STEP})")
_LOOKED_AT: Final = 8
_DEPTH_MOST: Final = 60
"""Levels of an expression. Each costs the interpreter two frames of its stack."""


class ExpressionUnreadable(ValueError):
    """The expression can't be read; the message says where and why."""


class TooCostly(ValueError):
    """The expression asks for more work than one delivery may cost."""


class ExpressionFailed(ValueError):
    """The expression meets something that it can't work with, such as `join()` a number."""


class Budget:
    """What one delivery may cost, over all the expressions of its mapping."""

    def __init__(self, steps: int = limits.MAPPING_STEPS, weight: int = limits.MAPPING_WEIGHT) -> None:
        self._steps = steps
        self._weight = weight
        # The value stays with its weight: an id means something only as long as its object is there.
        self._known: dict[int, tuple[object, int]] = {}

    def step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise TooCostly(_TOO_COSTLY)

    def charge(self, weight: int) -> None:
        self._weight -= weight
        if self._weight < 0:
            raise TooCostly(_TOO_COSTLY)

    def weigh(self, value: object) -> int:
        """About the characters of its JSON; what stands in it twice counts twice."""
        if isinstance(value, str):
            return 2 + len(value)
        if not isinstance(value, dict | list):
            return 1
        known = self._known.get(id(value))
        if known is None:
            if isinstance(value, dict):
                weight = 2 + sum(len(name) + 3 + self.weigh(member) for name, member in value.items())
            else:
                weight = 2 + sum(1 + self.weigh(member) for member in value)
            known = self._known[id(value)] = (value, weight)
        return known[1]


_TOO_COSTLY: Final = "The mapping asks for too much work with this body; make it simpler."


class Expression:
    """A compiled expression. `text` is as it was written."""

    def __init__(self, text: str, tree: dict[str, Any]) -> None:
        self.text = text
        self._tree = tree

    def of(self, payload: Any, budget: Budget) -> Any:
        """What stands at its place in the payload, None for nothing. Raises `TooCostly`, `ExpressionFailed`."""
        try:
            return _Bounded(budget).visit(self._tree, payload)
        except (TooCostly, ExpressionFailed):
            raise
        except exceptions.JMESPathTypeError as error:
            message = f"{error.function_name}() can't work with what it is given ({error.actual_type})."
            raise ExpressionFailed(message) from error
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            message = f"`{self.text[:60]}` can't work with what it is given."
            raise ExpressionFailed(message) from error
        except RecursionError as error:
            raise TooCostly(_TOO_COSTLY) from error


@lru_cache(maxsize=2048)
def compiled(text: str) -> Expression:
    """Raises `ExpressionUnreadable`. Dotted names are taken as they are, whatever characters a bridge put into them."""
    try:
        return Expression(text, _parsed(text))
    except ExpressionUnreadable:
        if _PLAIN_PATH.fullmatch(text):
            quoted = _NAME.sub(lambda found: found[0].replace(found[1], f'"{found[1]}"'), text)
            return Expression(text, _parsed(quoted))
        raise


def _parsed(text: str) -> dict[str, Any]:
    try:
        tree: dict[str, Any] = Parser().parse(text).parsed
    except exceptions.IncompleteExpressionError as error:
        message = "The expression ends too early: something is missing at its end."
        raise ExpressionUnreadable(message) from error
    except exceptions.LexerError as error:
        raise ExpressionUnreadable(_at(text, error.lexer_position)) from error
    except exceptions.ParseError as error:
        raise ExpressionUnreadable(_at(text, error.lex_position)) from error
    except RecursionError as error:
        raise ExpressionUnreadable(_TOO_DEEP) from error
    except ValueError as error:
        raise ExpressionUnreadable("The expression can't be read.") from error
    _check(tree)
    return tree


_TOO_DEEP: Final = "The expression is nested too deeply; write a simpler one."


def _at(text: str, position: int) -> str:
    position = max(0, min(position, len(text) - 1))
    return (
        f"The expression can't be read from character {position + 1} on: `{text[position : position + 20]}`."
    )


def _check(tree: dict[str, Any]) -> None:
    """What the interpreter would notice only when a body comes: functions that there are not, wrong numbers of values."""
    known = functions.Functions.FUNCTION_TABLE
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _DEPTH_MOST:
            raise ExpressionUnreadable(_TOO_DEEP)
        if node["type"] == "function_expression":
            _check_call(known, node)
        waiting += [(child, depth + 1) for child in node.get("children", ()) if isinstance(child, dict)]


def _check_call(known: dict[str, Any], node: dict[str, Any]) -> None:
    name, given = node["value"], len(node["children"])
    if name not in known:
        names = ", ".join(sorted(known))
        message = f"There is no function {name[:40]}(). Known are: {names}."
        raise ExpressionUnreadable(message)
    signature = known[name]["signature"]
    is_open = bool(signature and signature[-1].get("variadic"))
    if given < len(signature) or (given > len(signature) and not is_open):
        message = f"{name}() takes {len(signature)} values, not {given}."
        raise ExpressionUnreadable(message)


class _Bounded(TreeInterpreter):  # type: ignore[misc]  # the package ships no types
    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget

    def visit(self, node: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        self._budget.step()
        return super().visit(node, *args, **kwargs)

    def visit_multi_select_list(self, node: dict[str, Any], value: Any) -> Any:
        return self._built(super().visit_multi_select_list(node, value))

    def visit_multi_select_dict(self, node: dict[str, Any], value: Any) -> Any:
        return self._built(super().visit_multi_select_dict(node, value))

    def visit_flatten(self, node: dict[str, Any], value: Any) -> Any:
        merged = super().visit_flatten(node, value)
        self._budget.charge(len(merged or ()))
        return merged

    def visit_slice(self, node: dict[str, Any], value: Any) -> Any:
        self._budget.charge(len(value) if isinstance(value, list) else 0)
        return super().visit_slice(node, value)

    def visit_comparator(self, node: dict[str, Any], value: Any) -> Any:
        if node["value"] not in self._EQUALITY_OPS:
            return super().visit_comparator(node, value)
        left, right = (self.visit(child, value) for child in node["children"])
        if isinstance(left, dict | list) and isinstance(right, dict | list):
            self._budget.charge(min(self._budget.weigh(left), self._budget.weigh(right)))
        return self.COMPARATOR_FUNC[node["value"]](left, right)

    def visit_function_expression(self, node: dict[str, Any], value: Any) -> Any:
        given = [self.visit(child, value) for child in node["children"]]
        for one in given:
            self._budget.charge(self._budget.weigh(one))
            # Each member's type is looked at, which takes longer than reading it.
            self._budget.charge(_LOOKED_AT * len(one) if isinstance(one, list) else 0)
        if node["value"] == "join" and isinstance(given[0], str) and isinstance(given[1], list):
            self._budget.charge(len(given[0]) * len(given[1]))
        return self._built(self._functions.call_function(node["value"], given))

    def _built(self, value: Any) -> Any:
        self._budget.charge(self._budget.weigh(value))
        return value
