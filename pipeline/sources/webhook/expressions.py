"""Evaluates JMESPath within a budget: a person wrote the expression, a stranger sent the body.

A short expression can ask for endless work: `[@,@]|[@,@]|…` doubles its value with each step, and
`to_string(@)` writes it out. So every step is counted, and so is the size of each value that is built,
compared or handed to a function; beyond the budget the evaluation ends with `TooCostly`.
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
"""Dotted names such as `data.content-type`, to which the quotes are added that JMESPath wants."""
_NAME: Final = re.compile(rf"(?:^|\.)({_PLAIN_STEP})")
_TYPE_CHECK_WEIGHT: Final = 8
"""The weight of checking the type of one member of a list."""
_MAX_DEPTH: Final = 60
"""The deepest level of an expression; each level costs the interpreter two frames of its stack."""


class ExpressionUnreadable(ValueError):
    """Raised if the expression can't be parsed; the message gives the position or the reason."""


class TooCostly(ValueError):
    """Raised if the expression asks for more work than one delivery may cost."""


class ExpressionFailed(ValueError):
    """Raised if the expression meets a value that it can't work with, such as a number for `join()`."""


class Budget:
    """The steps and sizes that one delivery may cost, over all expressions of its mapping."""

    def __init__(self, steps: int = limits.MAPPING_STEPS, weight: int = limits.MAPPING_WEIGHT) -> None:
        self._steps = steps
        self._weight = weight
        # The value is kept with its weight, because an id is only unique while its object lives.
        self._known: dict[int, tuple[object, int]] = {}

    def step(self) -> None:
        """Count one step. Raises `TooCostly` if it was one too many."""
        self._steps -= 1
        if self._steps < 0:
            raise TooCostly(_TOO_COSTLY)

    def charge(self, weight: int) -> None:
        """Count the size of a value. Raises `TooCostly` if the sum of the sizes is too large."""
        self._weight -= weight
        if self._weight < 0:
            raise TooCostly(_TOO_COSTLY)

    def weigh(self, value: object) -> int:
        """Return about the number of characters of the value's JSON; repeated members count each time."""
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


_TOO_COSTLY: Final = "The mapping takes too much work with this body. Make it simpler."


class Expression:
    """A compiled expression; `text` is its source."""

    def __init__(self, text: str, tree: dict[str, Any]) -> None:
        self.text = text
        self._tree = tree

    def evaluate(self, payload: Any, budget: Budget) -> Any:
        """Return the value that the expression finds in the payload, or `None` if it finds none.

        Raises `TooCostly` if it exceeds the budget, and `ExpressionFailed` if it can't work with a value.
        """
        try:
            return _BudgetedInterpreter(budget).visit(self._tree, payload)
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
def compile_expression(text: str) -> Expression:
    """Return the compiled expression; dotted names may be written without JMESPath's quotes.

    Raises `ExpressionUnreadable` if the text can't be parsed or calls a function that can't work.
    """
    try:
        return Expression(text, _parse(text))
    except ExpressionUnreadable:
        if _PLAIN_PATH.fullmatch(text):
            quoted = _NAME.sub(lambda match: match[0].replace(match[1], f'"{match[1]}"'), text)
            return Expression(text, _parse(quoted))
        raise


def _parse(text: str) -> dict[str, Any]:
    """Return the expression's tree. Raises `ExpressionUnreadable` if there is none or `_check_tree` does."""
    try:
        tree: dict[str, Any] = Parser().parse(text).parsed
    except exceptions.IncompleteExpressionError as error:
        message = "The expression ends too early: something is missing at its end."
        raise ExpressionUnreadable(message) from error
    except exceptions.LexerError as error:
        raise ExpressionUnreadable(_position_message(text, error.lexer_position)) from error
    except exceptions.ParseError as error:
        raise ExpressionUnreadable(_position_message(text, error.lex_position)) from error
    except RecursionError as error:
        raise ExpressionUnreadable(_TOO_DEEP) from error
    except ValueError as error:
        raise ExpressionUnreadable("The expression can't be read.") from error
    _check_tree(tree)
    return tree


_TOO_DEEP: Final = "The expression is nested too deeply; write a simpler one."


def _position_message(text: str, position: int) -> str:
    """Return the message that shows where an expression can't be read."""
    position = max(0, min(position, len(text) - 1))
    return (
        f"The expression can't be read from character {position + 1} on: `{text[position : position + 20]}`."
    )


def _check_tree(tree: dict[str, Any]) -> None:
    """Raise `ExpressionUnreadable` for unknown functions, wrong numbers of values and too deep nesting.

    The interpreter would notice them only when a body comes.
    """
    known = functions.Functions.FUNCTION_TABLE
    unchecked = [(tree, 0)]
    while unchecked:
        node, depth = unchecked.pop()
        if depth > _MAX_DEPTH:
            raise ExpressionUnreadable(_TOO_DEEP)
        if node["type"] == "function_expression":
            _check_call(known, node)
        unchecked += [(child, depth + 1) for child in node.get("children", ()) if isinstance(child, dict)]


def _check_call(known: dict[str, Any], node: dict[str, Any]) -> None:
    """Raise `ExpressionUnreadable` for an unknown function or a wrong number of values."""
    name, argument_count = node["value"], len(node["children"])
    if name not in known:
        names = ", ".join(sorted(known))
        message = f"There is no function {name[:40]}(). Known are: {names}."
        raise ExpressionUnreadable(message)
    signature = known[name]["signature"]
    is_open = bool(signature and signature[-1].get("variadic"))
    if argument_count < len(signature) or (argument_count > len(signature) and not is_open):
        message = f"{name}() takes {len(signature)} values, not {argument_count}."
        raise ExpressionUnreadable(message)


class _BudgetedInterpreter(TreeInterpreter):  # type: ignore[misc]  # the package ships no types
    """Evaluates an expression and charges each step and value to the budget."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget

    def visit(self, node: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        self._budget.step()
        return super().visit(node, *args, **kwargs)

    def visit_multi_select_list(self, node: dict[str, Any], value: Any) -> Any:
        return self._charge_value(super().visit_multi_select_list(node, value))

    def visit_multi_select_dict(self, node: dict[str, Any], value: Any) -> Any:
        return self._charge_value(super().visit_multi_select_dict(node, value))

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
        arguments = [self.visit(child, value) for child in node["children"]]
        for argument in arguments:
            self._budget.charge(self._budget.weigh(argument))
            # Functions check each member's type, which takes longer than reading it.
            self._budget.charge(_TYPE_CHECK_WEIGHT * len(argument) if isinstance(argument, list) else 0)
        if node["value"] == "join" and isinstance(arguments[0], str) and isinstance(arguments[1], list):
            self._budget.charge(len(arguments[0]) * len(arguments[1]))
        return self._charge_value(self._functions.call_function(node["value"], arguments))

    def _charge_value(self, value: Any) -> Any:
        """Charge the value to the budget and return it."""
        self._budget.charge(self._budget.weigh(value))
        return value
