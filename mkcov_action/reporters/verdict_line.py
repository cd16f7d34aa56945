"""The last line of the text report: the verdict, and what it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mkcov_action.finding import Finding, Severity
from mkcov_action.report import Report, Verdict
from mkcov_action.reporters.clean import clean, name
from mkcov_action.reporters.styled import Line, Segment, line
from mkcov_action.reporters.tensor_lines import is_wired
from mkcov_action.reporters.wording import count, some

_RULES = 8
_REASON_LIMIT = 300

_STYLES = {Verdict.PASS: "good", Verdict.FAIL: "error", Verdict.ERROR: "error"}


def verdict_line(report: Report) -> Line:
    """`VERDICT: FAIL (exit 1): 2 errors, 3 notes; MK101 missing-wiring (2)`."""
    say = {Verdict.PASS: _passed, Verdict.FAIL: _failed, Verdict.ERROR: _broken}[report.verdict]
    return line(
        Segment("VERDICT: ", "strong"),
        Segment(report.verdict.upper(), _STYLES[report.verdict]),
        f" (exit {report.exit_code}): {'; '.join(say(report))}",
    )


def failing_rules(report: Report) -> tuple[str, ...]:
    """The rules whose findings fail the gate, with the number of these; worst first."""
    if report.fail_on == "never":
        return ()
    threshold = Severity[report.fail_on.upper()]
    return _rules(finding for finding in report.findings if finding.severity >= threshold)


def _passed(report: Report) -> list[str]:
    """What a pass proves, and what it does not."""
    parts = [_counts(report)]
    if report.fail_on == "never":
        parts.append(_gate_off(report))
    if not report.audited:
        return [*parts, "nothing was audited, so nothing is proven"]
    parts.append(_critical(report))
    if report.not_checked:
        parts.append(f"{count(len(report.not_checked), 'check')} not made")
    return [*parts, "structure only, it proves nothing about numerics"]


def _gate_off(report: Report) -> str:
    errors = _rules(finding for finding in report.findings if finding.severity is Severity.ERROR)
    return (
        f"--fail-on never lets pass: {some(errors, _RULES)}"
        if errors
        else "the gate is off (--fail-on never)"
    )


def _critical(report: Report) -> str:
    """How many of the critical tensors tasks read: the question that mkcov began with."""
    critical = [tensor for tensor in report.tensors if tensor.critical]
    wired = sum(map(is_wired, critical))
    if not critical:
        return "no critical tensor to check"
    of = "" if wired == len(critical) else f"{wired:,} of "
    return f"{of}{count(len(critical), 'critical tensor')} wired"


def _failed(report: Report) -> list[str]:
    rules = failing_rules(report)
    return [_counts(report), some(rules, _RULES)] if rules else [_counts(report)]


def _broken(report: Report) -> list[str]:
    """Why there is no verdict: an internal error before a usage error, as the exit code has it."""
    failures = sorted(report.failures, key=lambda failure: not failure.internal)
    parts = []
    if failures:
        first = failures[0]
        kind = "internal error: " if first.internal else ""
        where = f"{name(first.graph)}: " if first.graph else ""
        parts.append(f"{kind}{where}{clean(first.message, _REASON_LIMIT)}")
    if len(failures) > 1:
        parts.append(f"{count(len(failures) - 1, 'more failure')}")
    if report.findings:
        parts.append(_counts(report))
        rules = failing_rules(report)
        if rules:
            parts.append(some(rules, _RULES))
    return parts or ["no rank could be audited"]


def _counts(report: Report) -> str:
    found = [count(number, label) for label, number in report.counts().items() if number]
    return ", ".join(found) or "no findings"


def _rules(findings: Iterable[Finding]) -> tuple[str, ...]:
    counted = Counter((finding.rule, finding.name) for finding in findings)
    return tuple(f"{name(rule)} {name(title)} ({number:,})" for (rule, title), number in counted.items())
