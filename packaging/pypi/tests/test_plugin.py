"""The pytest plugin, from outside: pytest runs in a process of its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import SUITE, Project, is_alive, say

# Outcomes


def test_each_case_is_an_item_with_its_outcome(project: Project) -> None:
    project.file("shop.test.yaml", SUITE)
    project.file("test_python.py", "def test_python(): pass\n")
    result = project.pytest("-v")
    result.stdout.fnmatch_lines_random(
        [
            "shop.test.yaml::passes PASSED*",
            "shop.test.yaml::fails FAILED*",
            "shop.test.yaml::left out SKIPPED*",
            "shop.test.yaml::recovers FLAKY*",
            "shop.test.yaml::crashes FAILED*",
            "test_python.py::test_python PASSED*",
            "*2 failed, 2 passed, 1 skipped, 1 flaky in*",
        ]
    )
    assert result.ret == 1
    assert len(project.runs()) == 1, "one process runs all cases"


def test_a_failure_shows_conversation_and_snippet(project: Project) -> None:
    project.file("shop.test.yaml", SUITE)
    result = project.pytest()
    result.stdout.fnmatch_lines(
        [
            "*Turn 1: \"hello\"*",
            "*Agent: \"You said: hello\"*",
            "*--> shop.test.yaml:11:*",
            "*must_match: goodbye*",
            "*^^^^^^^*",
            "*got: \"You said: hello\"*",
        ]
    )
    result.stdout.fnmatch_lines(["FAILED shop.test.yaml::fails - expected the agent to say*"])
    result.stdout.fnmatch_lines(["*agent_error: the agent failed: ValueError: the database is gone (conftest.py:*, in *"])
    result.stdout.fnmatch_lines(["FAILED shop.test.yaml::crashes - agent error: ValueError: the database is*"])


def test_control_characters_of_agents_are_replaced(project: Project) -> None:
    project.file("paint.test.yaml", "name: paint\nturns: [{ user: paint }]\n")
    result = project.pytest()
    result.stdout.fnmatch_lines(["FAILED paint.test.yaml::* - agent error: ValueError: red \N{REPLACEMENT CHARACTER}*"])
    assert "\x1b" not in result.stdout.str()


def test_failures_that_are_not_the_agents_are_errors(project: Project) -> None:
    project.file("boom_test.ts", 'import { it } from "hotseat";\nit("boom", () => { throw new Error("boo"); });\n')
    project.file("judged.test.yaml", say("fine"))
    result = project.pytest()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["ERROR boom_test.ts::boom - Error: boo (boom_test.ts:2:30)"])
    assert result.ret == 1


def test_json_lines_and_typescript_are_suites(project: Project) -> None:
    project.file("deep/a.test.jsonl", '{"id": "J-1", "input": "hello"}\n{"id": "J-2", "input": "hello"}\n')
    project.file(
        "b_test.ts",
        'import { agent, evaluate, it, user } from "hotseat";\nit("says", () => { user.says("hello"); });\n',
    )
    result = project.pytest("-v")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines_random(["deep/a.test.jsonl::J-2 PASSED*", "b_test.ts::says PASSED*"])


def test_names_and_answers_with_line_separators_are_collected(project: Project) -> None:
    case = {"id": "J-1", "name": "a\u2028b\u0085c", "input": "hello \u2028"}
    project.file("a.test.json", json.dumps(case, ensure_ascii=False))
    project.pytest("-v").assert_outcomes(passed=1)


def test_scripts_without_tests_are_no_suites_unless_they_are_named(project: Project) -> None:
    project.file("good.test.yaml", say("good"))
    project.file("hooks_test.ts", "export function Before() { return {}; }\n")
    project.pytest().assert_outcomes(passed=1)
    named = project.pytest("hooks_test.ts")
    named.assert_outcomes(errors=1)
    named.stdout.fnmatch_lines(["*no tests in hooks_test.ts*"])


def test_repeated_cases_report_their_rate(project: Project) -> None:
    project.file("a.test.yaml", say("steady"))
    project.pytest("--hotseat-arg=--runs=3", "--junitxml=junit.xml").assert_outcomes(passed=1)
    properties = ElementTree.parse(project.root / "junit.xml").findall(".//property")
    found = {entry.get("name"): entry.get("value") for entry in properties}
    assert found == {"hotseat_runs": "3", "hotseat_pass_rate": "100.0"}


# Errors are never passes


def test_configuration_errors_are_collection_errors(project: Project) -> None:
    project.file("good.test.yaml", say("good"))
    project.file("wrong.test.yaml", "name: wrong\nturns: [{ user: hello, asert: {} }]\n")
    result = project.pytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*unknown key `asert`*", "*--> wrong.test.yaml:2:24*", "*^^^^^*"])
    assert result.ret == pytest.ExitCode.INTERRUPTED and not project.runs()


def test_a_wrong_project_file_is_a_collection_error(project: Project) -> None:
    project.file("hotseat.yaml", "targte: {}\n")
    project.file("good.test.yaml", say("good"))
    result = project.pytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*unknown key `targte`*"])


def test_wrong_arguments_are_errors(project: Project) -> None:
    project.file("good.test.yaml", say("good"))
    result = project.pytest("--hotseat-arg=--nonsense")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no result: unexpected argument '--nonsense' found*"])
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR


def test_a_run_that_cannot_be_completed_is_an_error(project: Project) -> None:
    project.file("hotseat.yaml", (project.root / "hotseat.yaml").read_text() + "hooks: { up: { cmd: [sh, -c, 'exit 7'] } }\n")
    project.file("good.test.yaml", say("good"))
    result = project.pytest("--hotseat-arg=--before=up")
    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR


def test_a_report_that_cannot_be_written_fails_the_session(project: Project) -> None:
    project.file("good.test.yaml", say("good"))
    result = project.pytest("--hotseat-arg=-o", "--hotseat-arg=/dev/full/x.json")
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR


def test_a_program_that_crashes_leaves_no_passes(project: Project) -> None:
    project.file("a.test.yaml", SUITE)
    binary = project.binary
    project.set_binary(f'[ "$1" = test ] || exec {binary} "$@"\necho "out of memory" >&2\nkill -9 $$')
    result = project.pytest()
    result.assert_outcomes(errors=5)
    result.stdout.fnmatch_lines(["*no result: hotseat ended early with exit code -9*", "*out of memory*"])
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR


def test_a_missing_program_is_a_collection_error(project: Project) -> None:
    project.file("a.test.yaml", SUITE)
    (project.root / "program").unlink()
    result = project.pytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*HOTSEAT_BINARY=*: no such file*"])


def test_unmarked_skips_fail_the_session_on_request(project: Project) -> None:
    # The agent answers with a question, and the case has no further input.
    project.file("a.test.yaml", "name: waits\ntype: multi_turn\nturns: [{ user: 'hello?' }]\n")
    result = project.pytest()
    result.assert_outcomes(skipped=1)
    assert result.ret == 0
    result = project.pytest("--hotseat-arg=--fail-on-skip")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["1 skipped case is not marked `skip`"])
    assert result.ret != 0


SWEPT = """
import json
import urllib.request
import hotseat
import pytest


def agent(turn):
    prefix = "io.modelcontextprotocol/"
    meta = {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": {}}
    params = {"name": "charge", "arguments": {}, "_meta": meta}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "charge",
    }
    request = urllib.request.Request(turn.options["bank"], json.dumps(call).encode(), headers)
    urllib.request.urlopen(request, timeout=5).read()
    return "Paid."


@pytest.fixture(scope="session")
def hotseat_agent():
    return agent
"""


def test_a_failed_sweep_of_faults_is_named(project: Project) -> None:
    project.file("conftest.py", SWEPT)
    project.file(
        "a.test.yaml",
        "name: pays\nmcp: { bank: { type: mock, tools: [{ name: charge, answers: [{ content: ok }] }] } }\n"
        "forwardedProps: { bank: '${MCP.bank.url}' }\nturns: [{ user: pay, assert: { text: { must_match: Paid } } }]\n",
    )
    arguments = ["--hotseat-arg=--faults", "--hotseat-arg=sweep", "--hotseat-arg=--fault-kinds", "--hotseat-arg=is_error"]
    result = project.pytest(*arguments)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["the sweep of faults failed: 1 conversation with a fault"])
    assert result.ret != 0


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("arg = []", "unknown key arg; known keys are args, config, suites"),
        ("args = '--runs 3'", "expected a list of texts for `args`"),
        ("config = 'other.yaml'", "config = 'other.yaml': no such file"),
    ],
)
def test_wrong_settings_are_usage_errors(project: Project, table: str, message: str) -> None:
    project.file("pyproject.toml", f"[tool.hotseat]\n{table}\n")
    result = project.pytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str() + result.stdout.str()


# Selection


def test_suites_are_collected_only_on_request(project: Project) -> None:
    project.file("a.test.yaml", say("a"))
    project.file("pyproject.toml", "")
    assert project.pytest().ret == pytest.ExitCode.NO_TESTS_COLLECTED
    project.pytest("--hotseat").assert_outcomes(passed=1)
    project.file("pyproject.toml", "[tool.hotseat]\nsuites = ['agents/*']\n")
    project.file("agents/b.test.yaml", say("b"))
    project.pytest().assert_outcomes(passed=1)


def test_k_selects_by_name_file_and_tag(project: Project) -> None:
    project.file("shop.test.yaml", SUITE)
    project.file("other.test.yaml", say("passes"))
    project.pytest("-k", "smoke").assert_outcomes(passed=1, deselected=5)
    project.pytest("-k", "passes and not shop").assert_outcomes(passed=1, deselected=5)
    project.pytest("-m", "not hotseat").assert_outcomes(deselected=6)
    project.pytest("shop.test.yaml::passes").assert_outcomes(passed=1)
    assert len(project.runs()) == 3


def test_only_selected_cases_run(project: Project) -> None:
    # Both suites have a case of each name.
    for suite in ("a", "b"):
        marks = [say(f"case {n}").replace("hello", f"{suite} {n}") for n in (1, 2)]
        project.file(f"{suite}.test.yaml", "---\n".join(marks))
    project.record_inputs()
    project.pytest("a.test.yaml::case 1", "b.test.yaml::case 2").assert_outcomes(passed=2)
    assert sorted(project.inputs()) == ["a 1", "b 2"]
    assert len(project.runs()) == 1


def test_x_stops_after_the_first_failure(project: Project) -> None:
    cases = [say("one"), say("two", expected="no"), *(say(f"later {n}") for n in range(20))]
    project.file("a.test.yaml", "---\n".join(cases))
    result = project.pytest("-x", "--hotseat-arg=--parallel=1")
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == 1 and "--fail-fast" in project.runs()[0]


def test_maxfail_cancels_the_rest(project: Project) -> None:
    wrong = [say(f"wrong {n}", expected="no") for n in (1, 2)]
    slow = [say(f"slow {n}").replace("hello", "sleep 60") for n in range(3)]
    project.file("a.test.yaml", "---\n".join(wrong + slow))
    began = time.monotonic()
    project.pytest("--maxfail=2").assert_outcomes(failed=2)
    assert time.monotonic() - began < 30, "conversations do not run to their end"


def test_lf_reruns_what_failed(project: Project) -> None:
    project.file("shop.test.yaml", SUITE)
    project.pytest("cache").assert_outcomes(failed=2, passed=1, skipped=1)
    project.file("shop.test.yaml", SUITE.replace("goodbye", "hello"))
    project.pytest("--lf").assert_outcomes(failed=1, passed=1)
    project.pytest("--lf").assert_outcomes(failed=1)


def test_several_projects_have_a_process_each(project: Project) -> None:
    for name in ("one", "two"):
        project.file(f"{name}/hotseat.yaml", (project.root / "hotseat.yaml").read_text())
        project.file(f"{name}/a.test.yaml", say("a") + "---\n" + say("b"))
    project.pytest().assert_outcomes(passed=4)
    assert len(project.runs()) == 2


# Reports and other plugins


def test_junitxml(project: Project) -> None:
    project.file("shop.test.yaml", SUITE)
    project.pytest("--junitxml=junit.xml", "-o", "junit_family=xunit1")
    cases = {case.get("name"): case for case in ElementTree.parse(project.root / "junit.xml").iter("testcase")}
    assert list(cases) == ["passes", "fails", "left out", "recovers", "crashes"]
    failure = cases["fails"].find("failure")
    assert failure is not None and failure.get("message", "").startswith("expected the agent to say")
    assert "--> shop.test.yaml:11" in (failure.text or "")
    assert (cases["fails"].get("file"), cases["fails"].get("line")) == ("shop.test.yaml", "7")
    assert cases["left out"].find("skipped") is not None
    assert cases["recovers"].find("properties/property[@name='hotseat_flaky']") is not None


def test_durations_are_those_of_conversations(project: Project) -> None:
    quick, slow = say("quick"), say("slow", expected="awake").replace("hello", "sleep 1")
    project.file("a.test.yaml", f"{slow}---\n{quick}")
    project.pytest("--junitxml=junit.xml").assert_outcomes(passed=2)
    times = [float(case.get("time", 0)) for case in ElementTree.parse(project.root / "junit.xml").iter("testcase")]
    assert times[0] >= 1 and times[1] < 0.9


@pytest.mark.parametrize(("mode", "runs"), [("load", 2), ("loadfile", 3), ("worksteal", 6), ("each", 2)])
def test_xdist_distributes_cases(project: Project, mode: str, runs: int) -> None:
    for suite in ("a", "b", "c"):
        project.file(f"{suite}.test.yaml", say("one") + "---\n" + say("two"))
    project.file("test_python.py", "def test_python(): pass\n")
    project.record_inputs()
    result = project.pytest("-n", "2", "--dist", mode)
    workers = 2 if mode == "each" else 1
    result.assert_outcomes(passed=7 * workers)
    assert len(project.runs()) == runs
    assert len(project.inputs()) == 6 * workers, "each case runs once"


def test_xdist_reports_failures_and_problems(project: Project) -> None:
    project.file("shop.test.yaml", SUITE)
    result = project.pytest("-n", "2", "--junitxml=junit.xml")
    result.stdout.fnmatch_lines(["*--> shop.test.yaml:11:*", "*2 failed, 1 passed, 1 skipped, 1 flaky in*"])
    result.stdout.fnmatch_lines(["FAILED shop.test.yaml::fails - expected the agent to say*"])
    result = project.pytest("-n", "2", "--hotseat-arg=--nonsense")
    result.assert_outcomes(errors=5)
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR


def test_xdist_refuses_files_that_processes_would_overwrite(project: Project) -> None:
    project.file("shop.test.yaml", SUITE)
    result = project.pytest("-n", "2", "--hotseat-arg=-o", "--hotseat-arg=report.html")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "would overwrite each other's -o" in result.stderr.str() + result.stdout.str()


# Interruption


def test_ctrl_c_ends_the_conversations(project: Project) -> None:
    project.file("a.test.yaml", say("slow").replace("hello", "sleep 60"))
    project.set_binary(f'echo $$ > pid\nexec {project.binary} "$@"')
    project.record_inputs()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    with subprocess.Popen(command, cwd=project.root, stdout=subprocess.PIPE, text=True) as running:
        deadline = time.monotonic() + 30
        while not project.inputs() and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=40)
    assert running.returncode == pytest.ExitCode.INTERRUPTED, output
    assert re.search(r"KeyboardInterrupt", output)
    assert not is_alive(int((project.root / "pid").read_text()))

