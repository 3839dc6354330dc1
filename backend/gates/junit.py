"""What came of a run's gates in the XML of JUnit, as CI services read it."""

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from backend.gates.report import Report
from backend.gates.schemas import GateRead, GateResult
from backend.gates.words import interval, number

_CLASS = "foredeck.gates"
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BAD_ENDS = frozenset({"failed", "stopped"})


def junit(report: Report) -> bytes:
    """One suite: a case for the run's own end and one for each gate. A gate that is still to be judged is skipped."""
    root = Element("testsuites")
    suite = SubElement(root, "testsuite", name=_plain(f"foredeck: {report.run_name}"))
    properties = SubElement(suite, "properties")
    for name, value in (("run_id", str(report.run_id)), ("url", report.run_url), ("status", report.status)):
        SubElement(properties, "property", name=name, value=_plain(value))
    _run_case(suite, report)
    if report.gates.evaluation:
        for result in report.gates.evaluation.results:
            _result_case(suite, result)
        suite.set("timestamp", report.gates.evaluation.created_at.strftime("%Y-%m-%dT%H:%M:%S"))
    else:
        for gate in report.gates.gates:
            _pending_case(suite, gate)
    _count(root, suite, report)
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _run_case(suite: Element, report: Report) -> None:
    case = _case(suite, "run succeeded", report.duration_s)
    if report.status in _BAD_ENDS:
        failure = SubElement(case, "failure", message=_plain(report.status_reason), type=report.status)
        failure.text = _plain(f"{report.status}: {report.status_reason}\n{report.run_url}")
    elif report.status != "succeeded":
        SubElement(case, "skipped", message=_plain(f"The run is {report.status}."))


def _result_case(suite: Element, result: GateResult) -> None:
    case = _case(suite, result.name)
    if not result.is_passed:
        failure = SubElement(case, "failure", message=_plain(result.reason), type=result.verdict)
        failure.text = _plain(_evidence(result))
    else:
        SubElement(case, "system-out").text = _plain(_evidence(result))


def _pending_case(suite: Element, gate: GateRead) -> None:
    case = _case(suite, gate.name or gate.assertion)
    SubElement(case, "skipped", message="The run has not been judged yet.")


def _case(suite: Element, name: str, duration_s: float = 0) -> Element:
    return SubElement(suite, "testcase", classname=_CLASS, name=_plain(name), time=f"{duration_s:.3f}")


def _evidence(result: GateResult) -> str:
    lines = [f"assertion: {result.assertion}", f"verdict: {result.verdict}", result.reason]
    if result.metric:
        lines.append(f"metric: {result.aggregate} of {result.metric}")
    if result.estimate is not None:
        lines.append(f"estimate: {number(result.estimate)}, interval: {interval(result.low, result.high)}")
    if result.first_step is not None:
        lines.append(f"steps: {result.first_step} to {result.last_step}, {result.num_values} values")
    if result.baseline and result.baseline.estimate is not None:
        lines.append(f"baseline: {number(result.baseline.estimate)}, run {result.baseline.run_id}")
    return "\n".join(lines)


def _count(root: Element, suite: Element, report: Report) -> None:
    counts = {
        "tests": len(suite.findall("testcase")),
        "failures": len(suite.findall("testcase/failure")),
        "errors": 0,
        "skipped": len(suite.findall("testcase/skipped")),
    }
    for element in (root, suite):
        for name, count in counts.items():
            if element is suite or name != "skipped":
                element.set(name, str(count))
        element.set("time", f"{report.duration_s:.3f}")


def _plain(text: str) -> str:
    """Without the characters that XML cannot hold in any form."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
