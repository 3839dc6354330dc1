"""What came of a run's gates as a summary in Markdown, as for GITHUB_STEP_SUMMARY."""

from backend.gates.report import Report
from backend.gates.schemas import GateResult
from backend.gates.words import interval, number

_MARKS = {
    "passed": "✅ passed",
    "failed": "❌ failed",
    "undecided": "⚠️ undecided",
    "no_data": "❌ no data",
    "no_baseline": "⚠️ no baseline",
}
_PLAIN = " ,;%=>+-()"
_MAX_REASON = 300
_HEAD = ("Gate", "Verdict", "Measured", "Interval", "Limit", "Baseline")


def markdown(report: Report) -> str:
    """A heading with the verdict, and a row for each gate. What people wrote is text, and nothing else."""
    lines = [
        f"## {_verdict(report)}: {code(report.run_name)}",
        "",
        f"Run [{str(report.run_id)[:8]}]({report.run_url}) {report.status}: {escaped(_begin(report.status_reason))}",
        "",
    ]
    if report.gates.evaluation:
        lines += [_row(_HEAD), _row(["---"] * len(_HEAD))]
        lines += [_row(_cells(report, result)) for result in report.gates.evaluation.results]
        lines += [""]
        lines += [f"- {code(each.name)}: {escaped(each.reason)}" for each in report.gates.evaluation.results]
    elif report.gates.gates:
        lines += [f"- {code(gate.name or gate.assertion)}: not judged yet" for gate in report.gates.gates]
    return "\n".join(lines) + "\n"


def _verdict(report: Report) -> str:
    shown = {"passed": "✅ Gates passed", "failed": "❌ Gates failed", "pending": "⏳ Gates pending", None: "No gates"}
    return shown[report.verdict]


def _cells(report: Report, result: GateResult) -> list[str]:
    baseline = result.baseline
    mark = _MARKS[result.verdict]
    if result.verdict in ("undecided", "no_baseline"):
        mark += ", passes" if result.is_passed else ", fails"
    return [
        code(result.assertion),
        mark,
        "" if result.estimate is None else escaped(_with_unit(result.estimate, result.unit)),
        "" if result.estimate is None or result.low == result.high else escaped(interval(result.low, result.high)),
        "" if result.limit is None else escaped(f"{result.operator} {number(result.limit)}"),
        ""
        if baseline is None or baseline.estimate is None
        else f"[{escaped(number(baseline.estimate))}]({report.url_of(baseline.run_id)})",
    ]


def _with_unit(value: float, unit: str | None) -> str:
    return number(value) if unit in (None, "1") else f"{number(value)} {unit}"


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _begin(reason: str) -> str:
    """Its first line, of which there may be more: the end of a log."""
    return reason.strip().partition("\n")[0][:_MAX_REASON]


def code(text: str) -> str:
    """In an element in which nothing is a link or a mention, either."""
    return f"<code>{escaped(text)}</code>"


def escaped(text: str) -> str:
    """Every character that means something to Markdown or HTML within a line as an entity, which is text in both. The
    others stay, so that the source can be read, too. For the middle of a line: never for its beginning."""
    text = " ".join(text.split())
    return "".join(char if _is_plain(text, place, char) else _entity(char) for place, char in enumerate(text))


def _is_plain(text: str, place: int, char: str) -> bool:
    before, after = text[max(0, place - 3) : place], text[place + 1 : place + 2]
    if char == "_":  # emphasis begins and ends at words
        return before[-1:].isalnum() and after.isalnum()
    if char == ":":  # the colon of an address is followed by more of it
        return after == " "
    if char == ".":  # as that of www. is
        return before.lower() != "www"
    return char.isalnum() or char in _PLAIN


def _entity(char: str) -> str:
    return f"&#{ord(char)};" if char.isprintable() else "\N{REPLACEMENT CHARACTER}"
