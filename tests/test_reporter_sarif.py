from __future__ import annotations

import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from mkcov_action import __version__
from mkcov_action.audit import audit
from mkcov_action.config import DEFAULT_CRITICAL, Config
from mkcov_action.finding import Confidence, Failure, Location, NotChecked, Operator, Severity
from mkcov_action.report import Report, Verdict
from mkcov_action.reporters import sarif
from mkcov_action.reporters.clean import NAME_LIMIT
from mkcov_action.reporters.sarif_json import dumps
from mkcov_action.rules import RULES
from tests.conftest import REPOSITORY
from tests.reports import finding, graph, rank, report, reports
from tests.sarif_tools import (
    complaints,
    links,
    rendered,
    run_of,
    schema,
    simple_targets,
    strings,
    structure,
    summary,
    unescaped,
)
from tools.builder.graph import Graph
from tools.rule_cases.case import Small

ALLOWED = {
    "SARIF2002": "messages are written out: code scanning reads message.text and no message ids",
    "SARIF2003": "versionControlProvenance would need git; the upload says which commit it belongs to",
    "SARIF2005": "no informationUri until the project has a public address",
    "SARIF2006": "$schema is not reachable where tests run without a network",
    "SARIF2010": "no snippets: a report holds no text of the artifacts, which can have 240 MB",
    "SARIF2011": "no context regions, for the same reason",
    "SARIF2012": "no helpUri (the help is whole in itself), and names as `--ignore missing-wiring` takes them",
}
"""What the multitool may have against our files, and why we leave it so."""

LEVELS = ("error", "warning", "note")


def many(number: int) -> Report:
    """A failing run with so many findings, of all severities in turn."""
    severities = tuple(Severity)
    return report(
        Verdict.FAIL,
        findings=tuple(
            finding(
                severity=severities[index % 3],
                message=f"layer_{index}_proj is declared and no task reads it",
                tensor_name=f"layer_{index}_proj",
                kind=str(index),
                location=Location(uri=f"gen/kernel_{index % 8}.cu", line=index + 1),
            )
            for index in range(number)
        ),
    )


def fixtures_report(root: Path) -> Report:
    """The unwired demo and every bad case of every rule, audited in one run."""
    vacuous = "no_such_tensor*"
    paths = [root / "fixtures" / "demo" / "unwired", *sorted(root.glob("fixtures/rules/*/bad/*"))]
    return audit(
        Config(
            paths=tuple(map(str, paths)),
            root=root,
            critical=(*DEFAULT_CRITICAL, vacuous),
            critical_given=(vacuous,),
        )
    )


@pytest.fixture(scope="module")
def failing() -> Report:
    found = fixtures_report(REPOSITORY)
    assert found.exit_code == 1
    assert len({each.rule for each in found.findings}) > 12
    return found


EMPTY = report()
CUT = many(6_000)

each_run = pytest.mark.parametrize("name", ["failing", "empty", "cut"])


@pytest.fixture
def shown(name: str, failing: Report) -> Report:
    return {"failing": failing, "empty": EMPTY, "cut": CUT}[name]


def only(**changes: Any) -> dict[str, Any]:
    """The one result of a report with one finding."""
    (result,) = run_of(report(Verdict.FAIL, findings=(finding(**changes),)))["results"]
    return dict(result)


def text_of(result: dict[str, Any]) -> str:
    return str(result["message"]["text"])


# --- what others say of it ------------------------------------------------------------------------


@each_run
def test_a_run_obeys_the_schema(shown: Report) -> None:
    log = rendered(shown)
    del log["runs"][0]["results"][200:]  # the schema's judge takes its time, and all are made alike
    assert list(schema().iter_errors(log)) == []


@given(reports)
@settings(max_examples=20)
def test_every_report_obeys_the_schema(any_report: Report) -> None:
    schema().validate(rendered(any_report, category="mkcov/any"))


@each_run
def test_code_scanning_and_the_specification_have_nothing_against_a_run(
    shown: Report, tmp_path: Path
) -> None:
    found = complaints(sarif.render(shown), tmp_path)
    assert [each for each in found if each.level == "error" or each.rule.startswith("GH")] == []
    assert {each.rule for each in found} <= set(ALLOWED)


def test_every_allowed_complaint_is_one_that_occurs(failing: Report, tmp_path: Path) -> None:
    found = {each.rule for each in complaints(sarif.render(failing), tmp_path)}
    assert found | {"SARIF2006"} == set(ALLOWED)


@pytest.mark.parametrize(
    ("written", "broken", "rule"),
    [
        ('"uri": "gen/kernel_0.cu", ', "", "GH1017"),
        ('"locations": [{', '"relatedLocations": [{', "GH1015"),
        ('"region": {"startLine": 110}', '"region": {"startLine": 0}', "JSON1008"),
        ('"message": {"text": "rope_cos is', '"message": {"id": "rope_cos is', "SARIF1012"),
    ],
)
def test_the_judge_sees_what_code_scanning_would_refuse(
    written: str, broken: str, rule: str, tmp_path: Path
) -> None:
    text = sarif.render(report(Verdict.FAIL, findings=(finding(),)))
    assert text.count(written) == 1
    found = complaints(text.replace(written, broken), tmp_path)
    assert (rule, "error") in {(each.rule, each.level) for each in found}


def test_the_judge_does_not_pass_what_it_cannot_read(tmp_path: Path) -> None:
    text = sarif.render(report(Verdict.FAIL, findings=(finding(),)))
    with pytest.raises(AssertionError, match="cannot read"):
        complaints(text.replace('"level": "error"', '"level": "fatal"'), tmp_path)


@each_run
def test_sarif_tools_counts_what_is_written(shown: Report, tmp_path: Path) -> None:
    text = sarif.render(shown)
    file = tmp_path / "mkcov.sarif"
    file.write_text(text, encoding="utf-8")
    levels = Counter(result["level"] for result in rendered(shown)["runs"][0]["results"])
    assert summary(file) == {level: levels[level] for level in LEVELS}


# --- a good alert ---------------------------------------------------------------------------------


def test_an_alert_says_in_its_first_sentence_what_is_wrong_and_what_that_does(failing: Report) -> None:
    for result in run_of(failing)["results"]:
        if result["ruleId"] == "MK101" and result["properties"]["graph"] == "fixtures/demo/unwired":
            title, *rest = text_of(result).split("\n")
            tensor = result["properties"]["tensor"]
            assert title.startswith(
                f"{tensor} is declared and no task reads it; attention runs position-blind"
            )
            assert [line.partition(":")[0] for line in rest] == ["Fix", "Found on all 2 ranks given."]


def test_a_whole_alert() -> None:
    alert = only(
        operator=Operator("TASK_LINEAR", 2),
        confidence=Confidence.POSSIBLE,
        severity=Severity.WARNING,
        ranks=(0, 1),
        members=("layer_0_k", "layer_1_k"),
        location=Location(uri="gen/kernel_0.cu", line=110, column=5),
        related=(Location(uri="gen/kernel_1.cu", line=7, text="layer_1_k"), Location(uri="b%20c.cu", line=8)),
    )
    fingerprint = finding(operator=Operator("TASK_LINEAR", 2)).fingerprint
    base = {"uriBaseId": "%SRCROOT%"}
    assert alert == {
        "ruleId": "MK101",
        "ruleIndex": [rule.id for rule in RULES].index("MK101"),
        "level": "warning",
        "message": {
            "text": "Possible: rope_cos is attached to the model, and no task reads it; attention runs"
            " position-blind: fluent text that repeats and makes no sense.\n"
            "Fix: pass rope_cos to the layer that applies rotary embedding, then generate again.\n"
            "2 members: layer_0_k, layer_1_k.\n"
            'See [layer_1_k](1), ["b%20c.cu":8](2).'
        },
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "gen/kernel_0.cu", **base},
                    "region": {"startLine": 110, "startColumn": 5},
                }
            }
        ],
        "relatedLocations": [
            {
                "id": 1,
                "message": {"text": "layer_1_k"},
                "physicalLocation": {
                    "artifactLocation": {"uri": "gen/kernel_1.cu", **base},
                    "region": {"startLine": 7},
                },
            },
            {
                "id": 2,
                "message": {"text": '"b%20c.cu":8'},
                "physicalLocation": {
                    "artifactLocation": {"uri": "b%20c.cu", **base},
                    "region": {"startLine": 8},
                },
            },
        ],
        "partialFingerprints": {"primaryLocationLineHash": f"{fingerprint}:1"},
        "properties": {
            "confidence": "possible",
            "graph": "gen",
            "ranks": [0, 1],
            "tensor": "rope_cos",
            "operator": "TASK_LINEAR variant 2",
            "members": ["layer_0_k", "layer_1_k"],
        },
    }


@pytest.mark.parametrize("severity", Severity)
def test_the_level_is_the_findings_own_and_always_written(severity: Severity) -> None:
    assert only(severity=severity)["level"] == severity.label


def test_the_level_of_every_rule_is_written() -> None:
    for descriptor in run_of(EMPTY)["tool"]["driver"]["rules"]:
        assert descriptor["defaultConfiguration"]["level"] in LEVELS


def test_ranks_are_said_where_there_are_several() -> None:
    four = (graph(*map(rank, range(4))),)

    def last_line(*ranks: int) -> str:
        shown = report(graphs=four, findings=(finding(ranks=ranks),))
        return text_of(run_of(shown)["results"][0]).split("\n")[-1]

    assert last_line(0, 1, 2, 3) == "Found on all 4 ranks given."
    assert last_line(0, 1, 3) == "Found on ranks 0-1, 3 of the 4 ranks given."
    assert "ranks" not in text_of(only())


def test_every_related_location_is_linked_and_the_rest_counted() -> None:
    related = tuple(Location(uri=f"gen/kernel_{index}.cu", line=1, text="there") for index in range(150))
    alert = only(related=related)
    assert [target for _, target in links(text_of(alert))] == [
        str(each["id"]) for each in alert["relatedLocations"]
    ]
    assert 2 <= len(alert["relatedLocations"]) <= 100
    assert f"and {150 - len(alert['relatedLocations'])} more places." in text_of(alert)


def test_members_are_bounded_and_the_rest_counted() -> None:
    alert = only(members=tuple(f"layer_{index}_k" for index in range(61)))
    assert (
        "61 members: layer_0_k, layer_1_k, layer_2_k, layer_3_k, layer_4_k, layer_5_k and 55 more."
        in text_of(alert)
    )
    assert len(alert["properties"]["members"]) + alert["properties"]["membersLeftOut"] == 61


def test_members_that_the_message_names_are_not_repeated() -> None:
    alert = only(message="a_0 is unread; so is a_1", members=("a_0", "a_1"))
    assert "members" not in text_of(alert)
    assert alert["properties"]["members"] == ["a_0", "a_1"]


def test_every_alert_has_a_place_even_if_the_finding_has_none() -> None:
    (location,) = only(location=None, graph="gen: 1")["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "gen%3A%201"
    assert location["physicalLocation"]["region"] == {"startLine": 1}


def test_places_are_relative_to_the_root_and_percent_encoded(failing: Report) -> None:
    for result in run_of(failing)["results"]:
        for location in (*result["locations"], *result.get("relatedLocations", ())):
            physical = location["physicalLocation"]
            assert physical["region"]["startLine"] >= 1
            assert re.fullmatch(
                r"fixtures/([\w.-]|%[0-9A-F]{2})+(/([\w.-]|%[0-9A-F]{2})+)*",
                physical["artifactLocation"]["uri"],
            )


# --- the rules ------------------------------------------------------------------------------------


def test_every_rule_is_listed_whether_it_found_anything_or_not() -> None:
    for shown in (EMPTY, report(findings=(finding(),))):
        listed = run_of(shown)["tool"]["driver"]["rules"]
        assert [each["id"] for each in listed] == sorted(rule.id for rule in RULES)
        assert [each["name"] for each in listed] == [
            rule.name for rule in sorted(RULES, key=lambda rule: rule.id)
        ]


def test_every_index_leads_to_the_results_rule(failing: Report) -> None:
    run = run_of(failing)
    listed = run["tool"]["driver"]["rules"]
    assert all(listed[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])


def test_a_rule_that_is_not_in_the_catalogue_has_no_index() -> None:
    assert "ruleIndex" not in only(rule="MK999")


def test_every_rule_carries_its_whole_page() -> None:
    pages = {rule.id: rule.doc for rule in RULES}
    for each in run_of(EMPTY)["tool"]["driver"]["rules"]:
        doc = pages[each["id"]]
        assert each["help"]["markdown"].endswith(f"\n\n{doc}\n")
        assert each["help"]["text"] == re.sub("^## (.+)$", r"\1:", doc, flags=re.MULTILINE)
        assert each["shortDescription"]["text"] == doc.partition("\n")[0]
        for description in (each["shortDescription"]["text"], each["fullDescription"]["text"]):
            assert 20 < len(description) <= 1024
            assert "\n" not in description


def test_every_rule_can_be_filtered_and_ordered() -> None:
    expected = {"error": "error", "warning": "warning", "note": "recommendation"}
    for each, rule in zip(
        run_of(EMPTY)["tool"]["driver"]["rules"], sorted(RULES, key=lambda rule: rule.id), strict=True
    ):
        properties = each["properties"]
        assert properties["problem.severity"] == expected[rule.severity.label]
        assert properties["precision"] in {"high", "very-high"}
        assert {"megakernel", "mirage", rule.stage.value} <= set(properties["tags"])
        assert len(properties["tags"]) <= 10


def test_no_page_holds_what_a_viewer_would_take_for_a_link_or_a_placeholder() -> None:
    for rule in RULES:
        assert not re.search(r"\]\(|\{\d+\}|https?:", rule.doc), rule.id


# --- identity -------------------------------------------------------------------------------------


def unwired(*, before: int = 0) -> Small:
    """A model with an unread table and two unread gates, behind so many further layers."""
    built = Small()
    source = built.x
    for index in range(before):
        result = built.scratch(f"warmed_{index}", (2, 16))
        built.linear(f"warmup_{index}", source, result)
        source = result
    built.model("rope_cos", (16, 8))
    for layer in range(2):
        built.model(f"layer_{layer}_gate", (16,))
    built.linear("layer_0_proj", source, built.y)
    return built.head()


def renumber(task_graph: Graph) -> None:
    """Reverses the tasks that one event starts and another awaits, and all events between first and last."""
    tasks, events = task_graph["all_tasks"], task_graph["all_events"]
    last = len(events) - 1
    moved = {event: last + 1 - event for event in range(2, last)}
    events[2:last] = reversed(events[2:last])
    for task in tasks:
        for key in ("dependent_event", "trigger_event"):
            task[key] = moved.get(task[key], task[key])
    start = 2
    while start < len(tasks):
        stop = start
        while stop < len(tasks) and _edge(tasks[stop]) == _edge(tasks[start]):
            stop += 1
        tasks[start:stop] = reversed(tasks[start:stop])
        start = stop


def _edge(task: dict[str, Any]) -> tuple[int, int]:
    return task["dependent_event"], task["trigger_event"]


def identities(built: Small, root: Path) -> dict[tuple[str, str | None], tuple[str, int]]:
    """Identity and line of every alert on a graph, by rule and tensor."""
    built.write(root / "gen")
    run = run_of(audit(Config(paths=(str(root / "gen"),), root=root)))
    assert run["results"]
    return {
        (result["ruleId"], result["properties"].get("tensor")): (
            result["partialFingerprints"]["primaryLocationLineHash"],
            result["locations"][0]["physicalLocation"]["region"]["startLine"],
        )
        for result in run["results"]
    }


def hashes(found: dict[tuple[str, str | None], tuple[str, int]]) -> dict[tuple[str, str | None], str]:
    return {key: identity for key, (identity, _) in found.items()}


def lines(found: dict[tuple[str, str | None], tuple[str, int]]) -> list[int]:
    return [line for _, line in found.values()]


def changed(change: Callable[[Small], None], *, before: int = 0) -> Small:
    built = unwired(before=before)
    change(built)
    return built


def test_alerts_stay_when_tasks_and_events_are_renumbered(tmp_path: Path) -> None:
    plain = identities(unwired(), tmp_path / "plain")
    moved = changed(lambda built: built.patch_graph(renumber))
    assert moved.task_graph() != unwired().task_graph()
    assert hashes(identities(moved, tmp_path / "moved")) == hashes(plain)


def test_alerts_stay_when_the_model_grows(tmp_path: Path) -> None:
    plain, grown = (
        identities(unwired(), tmp_path / "plain"),
        identities(unwired(before=3), tmp_path / "grown"),
    )
    assert hashes(grown) == hashes(plain)
    assert lines(grown) != lines(plain)


def test_alerts_stay_when_lines_move(tmp_path: Path) -> None:
    plain = identities(unwired(), tmp_path / "plain")
    moved = identities(
        changed(lambda built: built.patch_kernel(lambda text: "// moved\n" * 7 + text)), tmp_path / "moved"
    )
    assert hashes(moved) == hashes(plain)
    assert lines(moved) == [line + 7 for line in lines(plain)]


def test_nothing_depends_on_where_the_checkout_lies(failing: Report, tmp_path: Path) -> None:
    elsewhere = tmp_path / "a checkout" / "élsewhere"
    for part in ("demo/unwired", "rules"):
        shutil.copytree(REPOSITORY / "fixtures" / part, elsewhere / "fixtures" / part, symlinks=True)
    text = sarif.render(fixtures_report(elsewhere))
    assert text == sarif.render(failing)
    assert str(tmp_path) not in text
    assert str(REPOSITORY) not in text


def test_different_faults_have_different_identities(failing: Report) -> None:
    for shown in (failing, CUT):
        found = [
            result["partialFingerprints"]["primaryLocationLineHash"] for result in run_of(shown)["results"]
        ]
        assert len(set(found)) == len(found)
        assert all(re.fullmatch(r"[0-9a-f]{64}:[1-9][0-9]*", each) for each in found)


def test_findings_with_one_fingerprint_are_told_apart_by_what_lasts() -> None:
    worse = finding(severity=Severity.ERROR, location=Location(uri="gen/kernel_0.cu", line=9))
    lesser = finding(severity=Severity.NOTE, location=Location(uri="gen/kernel_0.cu", line=1))
    for findings in ((worse, lesser), (lesser, worse)):
        results = run_of(report(findings=findings))["results"]
        found = [(each["level"], each["partialFingerprints"]["primaryLocationLineHash"]) for each in results]
        assert found == [("error", f"{worse.fingerprint}:1"), ("note", f"{worse.fingerprint}:2")]


def test_the_order_of_the_findings_changes_nothing(failing: Report) -> None:
    findings = (*failing.findings[1::2], *reversed(failing.findings[::2]))
    assert sarif.render(replace(failing, findings=findings)) == sarif.render(failing)


# --- the bound ------------------------------------------------------------------------------------


def test_the_5000_most_severe_are_written_and_the_rest_counted() -> None:
    run = run_of(CUT)
    assert Counter(result["level"] for result in run["results"]) == {
        "error": 2_000,
        "warning": 2_000,
        "note": 1_000,
    }
    assert run["properties"] == {
        "mkcov/findings": {"error": 2_000, "warning": 2_000, "note": 2_000},
        "mkcov/resultsLeftOut": 1_000,
    }
    (said,) = run["invocations"][0]["toolExecutionNotifications"]
    assert said["level"] == "warning"
    assert "5,000 of 6,000 findings" in said["message"]["text"]


def test_5000_findings_are_all_written_and_nothing_is_said_of_it() -> None:
    run = run_of(many(5_000))
    assert len(run["results"]) == 5_000
    assert run["properties"]["mkcov/resultsLeftOut"] == 0
    assert "toolExecutionNotifications" not in run["invocations"][0]


def test_results_stand_worst_first_then_by_rule_and_place(failing: Report) -> None:
    order = [
        (
            LEVELS.index(result["level"]),
            result["ruleId"],
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            result["locations"][0]["physicalLocation"]["region"]["startLine"],
        )
        for result in run_of(failing)["results"]
    ]
    assert order == sorted(order)


# --- the run --------------------------------------------------------------------------------------


def test_a_clean_run_has_an_empty_list_of_results_so_that_old_alerts_close() -> None:
    log = rendered(EMPTY)
    assert list(log) == ["$schema", "version", "runs"]
    (run,) = log["runs"]
    assert run["results"] == []
    assert run["tool"]["driver"]["name"] == "mkcov"
    assert run["tool"]["driver"]["semanticVersion"] == __version__
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 0}]
    assert "automationDetails" not in run


@pytest.mark.parametrize("given", ["nightly/h100", "nightly/h100/"])
def test_a_category_is_written_on_request_and_ends_in_a_slash(given: str) -> None:
    assert run_of(EMPTY, category=given)["automationDetails"] == {"id": "nightly/h100/"}


def test_findings_are_no_failure_of_the_run() -> None:
    (invocation,) = run_of(report(Verdict.FAIL, findings=(finding(),)))["invocations"]
    assert invocation == {"executionSuccessful": True, "exitCode": 1}


def test_a_path_that_could_not_be_audited_is_no_failure_of_mkcov() -> None:
    shown = report(Verdict.ERROR, failures=(Failure(message="gone: no such directory"),))
    (invocation,) = run_of(shown)["invocations"]
    assert invocation == {
        "executionSuccessful": True,
        "exitCode": 2,
        "toolConfigurationNotifications": [
            {"level": "warning", "message": {"text": "gone: no such directory."}}
        ],
    }


def test_an_internal_error_is_a_failure_of_the_run_and_says_why() -> None:
    shown = report(
        Verdict.ERROR,
        exit_code=3,
        failures=(
            Failure(message="rule MK109 on rank 1: KeyError", internal=True, graph="gen", detail="/home/me"),
            Failure(message="gone: no such directory"),
        ),
        warnings=("gen lies outside the root",),
    )
    (invocation,) = run_of(shown)["invocations"]
    assert invocation == {
        "executionSuccessful": False,
        "exitCode": 3,
        "toolExecutionNotifications": [
            {"level": "error", "message": {"text": "gen: rule MK109 on rank 1: KeyError."}}
        ],
        "toolConfigurationNotifications": [
            {"level": "warning", "message": {"text": "gone: no such directory."}},
            {"level": "warning", "message": {"text": "gen lies outside the root."}},
        ],
    }


def test_what_was_not_checked_is_said_and_bounded() -> None:
    skipped = tuple(
        NotChecked(rule="MK101", reason=f"unknown type {index}", graph="gen") for index in range(130)
    )
    said = run_of(report(not_checked=skipped))["invocations"][0]["toolExecutionNotifications"]
    assert said[0] == {
        "level": "note",
        "message": {"text": "gen: not checked: unknown type 0."},
        "associatedRule": {"id": "MK101", "index": [rule.id for rule in RULES].index("MK101")},
    }
    assert len(said) == 101
    assert said[-1]["message"]["text"] == "30 more of these are left out here."


def test_what_code_scanning_misreads_is_never_written(failing: Report) -> None:
    keys = {text for text in strings(rendered(failing)) if text.isidentifier()}
    misread = {"kind", "baselineState", "suppressions", "fixes"}
    invented = {"informationUri", "helpUri"}
    telling = {"startTimeUtc", "endTimeUtc", "machine", "workingDirectory", "commandLine", "account"}
    assert not keys & (misread | invented | telling)


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps([float("nan")])


# --- untrusted text -------------------------------------------------------------------------------

HOSTILE = (
    "x](https://evil.example)[y",
    "[click](1)",
    "a\\](2) [b](javascript:x)",
    "{0} {1}",
    "```\n# heading\n<img src=x onerror=y>",
    "\x1b[31m\r\n::error::x",
    "##[error]x",
    "\u202ecos\u2066\u200b",
    "\ud800",
    "rope" * 2_500,
    '"}],"results":[{',
)


def spoilt(text: str) -> Report:
    """A report in which every text that could come from an artifact is `text`."""
    return report(
        Verdict.ERROR,
        exit_code=3,
        graphs=(graph(rank(0), rank(1), name=text),),
        findings=(
            finding(
                tensor_name=text,
                message=f"{text} is read by {text} and no task writes it",
                consequence=f"{text} holds anything",
                fix=f"write {text}",
                graph=text,
                operator=Operator(text, 0),
                members=(text, "a member that the message does not name"),
                location=Location(uri=text, line=3),
                related=(Location(uri=text, line=4, text=text),),
            ),
        ),
        not_checked=(NotChecked(rule="MK103", reason=text, graph=text),),
        failures=(Failure(message=text, internal=True, graph=text),),
        warnings=(text,),
    )


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_changes_nothing_but_text(hostile: str) -> None:
    log = rendered(spoilt(hostile))
    assert structure(log) == structure(rendered(spoilt("rope_cos")))
    assert_harmless(log)
    (result,) = log["runs"][0]["results"]
    assert len(text_of(result)) < 4_000
    assert (
        result["partialFingerprints"]["primaryLocationLineHash"]
        == f"{spoilt(hostile).findings[0].fingerprint}:1"
    )


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_is_no_link_and_no_placeholder(hostile: str) -> None:
    log = rendered(spoilt(hostile))
    text = text_of(log["runs"][0]["results"][0])
    assert [target for _, target in links(text)] == ["1"]
    assert set(simple_targets(text)) <= {"1"}
    assert not re.search(r"\{\d+\}", text)
    for notification in log["runs"][0]["invocations"][0]["toolExecutionNotifications"]:
        assert links(notification["message"]["text"]) == []
        assert simple_targets(notification["message"]["text"]) == []


@pytest.mark.parametrize("hostile", [each for each in HOSTILE if each.isascii()])
def test_a_hostile_name_in_an_artifact_changes_nothing_but_text(hostile: str, tmp_path: Path) -> None:
    def shown(name: str, root: Path) -> dict[str, Any]:
        built = Small()
        built.model(name, (16, 8))
        built.linear("layer_0_proj", built.x, built.y)
        built.head().write(root / "gen")
        return rendered(audit(Config(paths=(str(root / "gen"),), root=root)))

    log = shown(f"rope_cos{hostile}", tmp_path / "hostile")
    assert structure(log) == structure(shown("rope_cos", tmp_path / "harmless"))
    assert [links(text_of(result)) for result in log["runs"][0]["results"]] == [[], []]
    assert_harmless(log)


def test_brackets_are_shown_as_they_were() -> None:
    alert = only(
        message="consumer_task_types=[278, 296] of a[0]", related=(Location(uri="a", line=1, text="a[0]"),)
    )
    assert unescaped(text_of(alert)).startswith("consumer_task_types=[278, 296] of a[0]; ")
    assert links(text_of(alert)) == [("a[0]", "1")]


def test_a_long_name_leaves_the_rest_of_the_title_to_be_read() -> None:
    tensor = "rope" * 2_500
    title = text_of(only(message=f"{tensor} is declared and no task reads it", tensor_name=tensor)).split(
        "\n"
    )[0]
    assert "... (10,000 characters) is declared and no task reads it; attention runs position-blind" in title
    assert len(title) < 4 * NAME_LIMIT


def test_names_of_one_length_that_differ_at_their_end_stay_two_alerts() -> None:
    names = ("rope" * 2_500 + "_cos", "rope" * 2_500 + "_sin")
    findings = tuple(finding(tensor_name=name, message=f"{name} is unread") for name in names)
    results = run_of(report(findings=findings))["results"]
    assert len({result["partialFingerprints"]["primaryLocationLineHash"] for result in results}) == 2


@given(reports)
@settings(max_examples=50)
def test_no_text_of_the_artifacts_gets_out_of_a_string(any_report: Report) -> None:
    text = sarif.render(any_report)
    assert text.isascii()
    assert text.count("\n") == 1
    assert "##[" not in text
    assert_harmless(rendered(any_report))


def assert_harmless(log: dict[str, Any]) -> None:
    for text in strings(log):
        for line in text.split("\n"):  # our own line breaks; those of artifacts are escaped
            assert not line.lstrip().startswith("::")
            unsafe = [each for each in set(line) - {" "} if unicodedata.category(each)[0] in "CZ"]
            assert unsafe == [], text
