"""JUnit and Markdown of the same runs: what is said, and that nothing of it is more than text."""

from datetime import UTC, datetime
from uuid import UUID
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from backend.gates.junit import junit
from backend.gates.markdown import escaped, markdown
from backend.gates.report import Report
from backend.gates.schemas import BaselineFigure, GateEvaluationRead, GateRead, GateResult, RunGates

RUN = UUID("00000000-0000-4000-8000-000000000001")
OTHER = UUID("00000000-0000-4000-8000-000000000002")
START, END = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC), datetime(2030, 1, 1, 12, 1, 30, tzinfo=UTC)
EVIL = '</code><script>alert(1)</script> | [x](javascript:alert(1)) `a` **b** @all #1 https://evil <!-- ]]> &amp; "'

MARKS = "`*_[]()#+-.!|<>&~$@:/\\'\" \nwa1"


def result(verdict="passed", is_passed=True, **fields):
    base = {"name": "speed", "assertion": "reward >= 1", "reason": "0.9 is not >= 1.", "metric": "reward/train_mean"}
    return GateResult(verdict=verdict, is_passed=is_passed, aggregate="mean", operator=">=", **{**base, **fields})


MEASURED = {"estimate": 0.91234, "low": 0.9, "high": 0.93, "limit": 1.0, "first_step": 1, "last_step": 40}
BASELINE = BaselineFigure(
    run_id=OTHER, run_name="n", estimate=1.5, first_step=1, last_step=40, num_values=40, is_paired=True
)
RESULTS = [
    result(**MEASURED),
    result("failed", False, **MEASURED, baseline=BASELINE),
    result("undecided", True, **MEASURED),
    result("no_data", False),
    result("no_baseline", True, estimate=0.5),
]


def report(results=RESULTS, *, verdict="failed", name="nightly", status="succeeded", reason="All steps are done."):
    evaluation = None
    if results is not None:
        num_failed = sum(not each.is_passed for each in results)
        evaluation = GateEvaluationRead(
            id=OTHER, run_id=RUN, created_at=END, trigger="end", evaluated_by=None, run_status=status,
            verdict="failed" if num_failed else "passed", num_gates=len(results), num_failed=num_failed,
            results=results,
        )  # fmt: skip
    gate = GateRead(
        assertion="reward >= 1", name=None, baseline=None, confidence=0.95, on_undecided="pass", on_no_baseline="pass"
    )
    gates = RunGates(run_id=RUN, verdict=verdict, gates=[gate], evaluation=evaluation, evaluations=[])
    return Report(RUN, name, status, reason, START, END, gates, "https://foredeck.example")


def cases(document):
    suite = ElementTree.fromstring(document).find("testsuite")
    return suite, suite.findall("testcase")


def test_junit_has_a_case_for_the_run_and_one_for_each_gate():
    document = junit(report())
    _, (run, *gates) = cases(document)
    assert document.startswith(b"<?xml version='1.0' encoding='utf-8'?>")
    assert (run.get("name"), list(run)) == ("run succeeded", [])
    assert [[child.tag for child in case] for case in gates] == [
        ["system-out"], ["failure"], ["system-out"], ["failure"], ["system-out"],
    ]  # fmt: skip
    failure = gates[1].find("failure")
    assert (failure.get("type"), failure.get("message")) == ("failed", "0.9 is not >= 1.")
    assert "estimate: 0.9123, interval: 0.9 to 0.93" in failure.text
    assert f"baseline: 1.5, run {OTHER}" in failure.text


def test_junit_counts_are_those_of_its_cases_and_the_attributes_are_those_of_the_schema():
    """Of what Jenkins, GitLab and GitHub's reporters read: the xUnit plugin's junit-10.xsd."""
    root = ElementTree.fromstring(junit(report()))
    suite, found = cases(junit(report()))
    counts = {"tests": "6", "failures": "2", "errors": "0", "skipped": "0"}
    assert {name: suite.get(name) for name in counts} == counts
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("6", "2", "0")
    assert set(root.attrib) <= {"name", "time", "tests", "failures", "disabled", "errors"}
    assert set(suite.attrib) <= {*counts, "name", "time", "timestamp", "hostname", "id", "package"}
    assert suite.get("timestamp") == "2030-01-01T12:01:30"
    assert [child.tag for child in suite] == ["properties"] + ["testcase"] * 6
    for case in found:
        assert set(case.attrib) == {"classname", "name", "time"}
        assert {child.tag for child in case} <= {"failure", "skipped", "system-out"}
        assert float(case.get("time")) in (0, 90)


@pytest.mark.parametrize("status", ["failed", "stopped"])
def test_junit_of_a_run_that_did_not_succeed(status):
    _, (run, *_) = cases(junit(report(status=status, reason="Out of memory.")))
    assert (run.find("failure").get("type"), run.find("failure").get("message")) == (status, "Out of memory.")


def test_junit_of_a_run_that_goes_on():
    _, found = cases(junit(report(None, verdict="pending", status="running", reason="Running.")))
    assert [[child.tag for child in case] for case in found] == [["skipped"], ["skipped"]]
    assert found[1].get("name") == "reward >= 1"


def test_markdown_says_the_verdict_and_has_a_row_for_each_gate():
    lines = markdown(report()).splitlines()
    assert lines[0] == "## ❌ Gates failed: <code>nightly</code>"
    assert f"(https://foredeck.example/runs/{RUN})" in lines[2]
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 2 + len(RESULTS)
    assert all(row.count("|") == 7 for row in rows)
    assert f"(https://foredeck.example/runs/{OTHER})" in rows[3]
    assert "⚠️ undecided, passes" in rows[4]


@pytest.mark.parametrize(
    ("verdict", "heading"),
    [("pending", "## ⏳ Gates pending"), (None, "## No gates"), ("passed", "## ✅ Gates passed")],
)
def test_markdown_of_runs_without_an_evaluation(verdict, heading):
    assert markdown(report(None, verdict=verdict)).startswith(heading)


PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def inline(page):
    """Of what a Markdown parser makes of a page: everything within its lines."""
    return [token for block in PARSER.parse(page) for token in block.children or []]


@given(st.one_of(st.just(EVIL), st.text(min_size=1, max_size=200), st.text(alphabet=MARKS, min_size=1, max_size=60)))
def test_what_people_wrote_is_text_in_both_reports(text):
    results = [result("failed", False, name=text, assertion=text, reason=text, **MEASURED)]
    found = report(results, name=text, status="failed", reason=text)
    _, gates = cases(junit(found))
    assert len(gates) == 2
    assert [child.tag for child in gates[1]] == ["failure"]
    page = markdown(found)
    tokens = inline(page)
    assert {token.type for token in tokens} <= {"text", "html_inline", "link_open", "link_close", "text_special"}
    assert {token.content for token in tokens if token.type == "html_inline"} == {"<code>", "</code>"}
    assert [token.attrs["href"] for token in tokens if token.type == "link_open"] == [found.run_url]
    assert page.count("\n") == 9
    assert all(line.count("|") == 7 for line in page.splitlines()[4:7])
    rest = page.replace(found.run_url, "").lower()
    assert not set("`*\\@\"'{}[~$!") & set(rest.replace(f"[{str(RUN)[:8]}]()", ""))
    assert "://" not in rest
    assert "www." not in rest


@pytest.mark.parametrize(
    "text", [EVIL, "_a_ b_c __d__", "1. x", "www.evil.example", "http://a", "a: b", "- [ ] x", "&amp;"]
)
def test_escaped_text_reads_as_it_was_written(text):
    tokens = inline(f"- it {escaped(text)}")
    assert {token.type for token in tokens} <= {"text", "text_special"}
    assert "".join(token.content for token in tokens) == f"it {text}"


def test_the_source_can_be_read():
    shown = "acceptance_length >= 2.8 (95 % interval 2.55 to 2.67); no worse"
    assert escaped(shown) == shown
    assert (escaped("a\n\nb"), escaped("\x1b[31m")) == ("a b", "\ufffd&#91;31m")


def test_xml_leaves_out_what_it_cannot_hold():
    suite, _ = cases(junit(report(name="a\x00\x1b[31m\ud800b")))
    assert suite.get("name") == "foredeck: a��[31m�b"
