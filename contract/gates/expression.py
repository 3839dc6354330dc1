"""The language of gates.

    assertion  = comparison | alarm-free
    comparison = (metric | aggregate "(" metric ")") (">=" | "<=" | ">" | "<") sum [window]
    alarm-free = "no" ("alarms" | name of an alarm) [window]
    sum        = product (("+" | "-") product)*
    product    = factor ("*" factor)*
    factor     = number | "baseline" | "-" factor | "(" sum ")"
    window     = "over" ("last" number ("steps" | "step") | "steps" number ".." number)

The right side is worked out while it is read, as constant + slope * baseline: nothing is left to be evaluated.
"""

from difflib import get_close_matches

from contract.gates.assertion import AlarmFree, Assertion, Comparison, Limit, Window
from contract.gates.metrics import AGGREGATES, Aggregate, default_aggregate, near, resolve
from contract.gates.tokens import GateSyntaxError, Token, tokens
from contract.telemetry.alarms import AlarmName

MAX_NESTING = 20
MAX_STEP = 2**31 - 1
MAX_LIMIT = 1e30
"""Of the numbers on the right side, so that no arithmetic with them overflows."""


def parse(text: str) -> Assertion:
    """Raises GateSyntaxError, and nothing else, for what is no assertion."""
    return _Parser(text).assertion()


class _Parser:
    """Recursive descent, one token ahead."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._next = next(self._tokens)
        self._depth = 0

    def assertion(self) -> Assertion:
        parsed = self._alarm_free() if self._next.text == "no" else self._comparison()
        if self._next.kind != "end":
            raise self._error("`over last N steps`, `over steps A..B` or the end")
        return parsed

    def _comparison(self) -> Comparison:
        metric, aggregate = self._figure()
        operator = self._take("operator", "one of >= <= > <").text
        start = self._next.position
        limit = self._sum()
        if not (abs(limit.constant) <= MAX_LIMIT and abs(limit.slope) <= MAX_LIMIT):
            raise GateSyntaxError(start, "a limit beyond all bounds", f"numbers up to {MAX_LIMIT:g}")
        if self._next.kind == "operator":
            raise self._error("the end: an assertion compares once; write a second gate for the other limit")
        return Comparison(metric, aggregate, operator, limit, self._window("one of + - *, "))  # type: ignore[arg-type]

    def _figure(self) -> tuple[str, Aggregate]:
        first = self._take("name", "a metric, an aggregate such as median(reward), or `no alarms`")
        if self._next.text != "(":
            return self._metric(first)
        if first.text not in AGGREGATES:
            raise GateSyntaxError(first.position, first.shown(), f"one of {', '.join(AGGREGATES)} before (")
        self._advance()
        metric, _ = self._metric(self._take("name", "a metric"))
        self._take_text(")")
        return metric, first.text

    def _metric(self, token: Token) -> tuple[str, Aggregate]:
        metric = resolve(token.text)
        if metric is None:
            raise GateSyntaxError(token.position, token.shown(), f"a metric{_perhaps(near(token.text))}")
        return token.text, default_aggregate(metric)

    def _alarm_free(self) -> AlarmFree:
        self._advance()
        token = self._take("name", "`alarms` or the name of one")
        names = [name.value for name in AlarmName]
        if token.text not in ("alarms", *names):
            perhaps = _perhaps(get_close_matches(token.text, names, n=1)) or f": {', '.join(names)}"
            raise GateSyntaxError(token.position, token.shown(), f"`alarms` or the name of one{perhaps}")
        return AlarmFree(None if token.text == "alarms" else AlarmName(token.text), self._window(""))

    def _sum(self) -> Limit:
        total = self._product()
        while self._next.text in ("+", "-"):
            sign = 1.0 if self._advance().text == "+" else -1.0
            other = self._product()
            total = Limit(total.constant + sign * other.constant, total.slope + sign * other.slope)
        return total

    def _product(self) -> Limit:
        product = self._factor()
        while self._next.text == "*":
            times = self._advance()
            other = self._factor()
            if product.slope and other.slope:
                raise GateSyntaxError(times.position, "baseline times baseline", "baseline times a number")
            product = Limit(
                product.constant * other.constant,
                product.slope * other.constant + product.constant * other.slope,
            )
        return product

    def _factor(self) -> Limit:
        token = self._next
        if token.kind == "number":
            return Limit(float(self._advance().text))
        if token.text == "baseline":
            self._advance()
            return Limit(0.0, 1.0)
        if token.text in ("-", "("):
            return self._nested()
        raise self._error("a number, `baseline`, - or (")

    def _nested(self) -> Limit:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._error(f"at most {MAX_NESTING} levels of - and (")
        if self._advance().text == "-":
            inner = self._factor()
            inner = Limit(-inner.constant, -inner.slope)
        else:
            inner = self._sum()
            self._take_text(")")
        self._depth -= 1
        return inner

    def _window(self, alternatives: str) -> Window:
        if self._next.kind == "end":
            return Window()
        if self._next.text != "over":
            raise self._error(f"{alternatives}`over last N steps`, `over steps A..B` or the end")
        self._advance()
        word = self._advance()
        if word.text == "last":
            num_last = self._integer(1)
            if self._advance_if("steps") or self._advance_if("step"):
                return Window(num_last=num_last)
            raise self._error("`steps`")
        if word.text == "steps":
            first = self._integer(0)
            self._take("dots", "`..` and the last step, as in steps 10..60")
            return Window(first=first, last=self._integer(first))
        raise GateSyntaxError(word.position, word.shown(), "`last N steps` or `steps A..B`")

    def _integer(self, at_least: int) -> int:
        token = self._take("number", f"a whole number of {at_least} or more")
        value = int(token.text) if token.text.isdigit() else -1
        if not at_least <= value <= MAX_STEP:
            raise GateSyntaxError(token.position, token.shown(), f"a whole number from {at_least} to {MAX_STEP}")
        return value

    def _take(self, kind: str, expected: str) -> Token:
        if self._next.kind != kind:
            raise self._error(expected)
        return self._advance()

    def _take_text(self, text: str) -> None:
        if not self._advance_if(text):
            raise self._error(text)

    def _advance_if(self, text: str) -> bool:
        if self._next.text != text:
            return False
        self._advance()
        return True

    def _advance(self) -> Token:
        token = self._next
        if token.kind != "end":
            self._next = next(self._tokens)
        return token

    def _error(self, expected: str) -> GateSyntaxError:
        return GateSyntaxError(self._next.position, self._next.shown(), expected)


def _perhaps(names: list[str]) -> str:
    return f"; perhaps {' or '.join(names)}" if names else ""
