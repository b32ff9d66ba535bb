"""The npm packages, installed offline: the program, its signals and exit codes, the types, and the entry for vitest.

`HOTSEAT_NPM_FOLDER` names the folder in which they are installed, beside vitest and typescript.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Optional

import pytest

INSTALLED = Path(os.environ["HOTSEAT_NPM_FOLDER"])

AGENT = "name: Echo\n"
SCRIPT = 'use: always\nrules:\n  - { when: { user: "(?<said>.*)" }, reply: "You said: {{ said }}" }\n'
PROJECT = "target: { type: embedded, agent: . }\nstore: false\n"
SUITE = """
name: passes
turns: [{ user: hello, assert: { text: { must_match: "^You said: hello$" } } }]
---
name: fails
turns: [{ user: hello, assert: { text: { must_match: goodbye } } }]
---
name: left out
skip: true
turns: [{ user: hello }]
"""
SLOW = """
name: slow
hooks: [{ cmd: [sleep, "2"] }]
turns: [{ user: hello, assert: { text: { must_match: hello } } }]
---
name: next
turns: [{ user: hello, assert: { text: { must_match: hello } } }]
"""


class Project:
    """A project in a folder of its own that uses the installed packages."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "node_modules").symlink_to(INSTALLED / "node_modules")
        shutil.copy(INSTALLED / "package.json", root)
        for name, text in {"agent.yaml": AGENT, "script.yaml": SCRIPT, "hotseat.yaml": PROJECT}.items():
            self.file(name, text)

    def file(self, name: str, text: str) -> None:
        (self.root / name).write_text(text, encoding="utf-8")

    def run(self, *command: str, stdin: Optional[str] = None, **env: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "NO_COLOR": "1", **env}
        return subprocess.run(
            command, cwd=self.root, input=stdin, capture_output=True, text=True, env=variables, timeout=120
        )

    def npx(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run("npx", "--no-install", *arguments, **env)

    def vitest(self, *arguments: str, **env: str) -> tuple[int, dict[str, str], str]:
        """Runs vitest: exit code, state of each test, and output."""
        report = self.root / "vitest.json"
        report.unlink(missing_ok=True)
        done = self.npx("vitest", "run", "--reporter=json", "--reporter=default", f"--outputFile={report}", *arguments, **env)
        tests: dict[str, str] = {}
        if report.exists():
            for file in json.loads(report.read_text())["testResults"]:
                tests.update((entry["title"], entry["status"]) for entry in file["assertionResults"])
        return done.returncode, tests, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


# The program


def test_npx_runs_the_program(project: Project) -> None:
    version = json.loads((INSTALLED / "node_modules/hotseat/package.json").read_text())["version"]
    done = project.npx("hotseat", "--version")
    assert (done.returncode, done.stdout) == (0, f"hotseat {version}\n")


def test_no_package_has_an_install_script() -> None:
    for name in ("hotseat", "@hotseat/cli-linux-x64"):
        described = json.loads((INSTALLED / "node_modules" / name / "package.json").read_text())
        assert "scripts" not in described


def test_exit_codes_pass_through(project: Project) -> None:
    project.file("a.test.yaml", SUITE)
    codes = {
        ("test", "--run", "passes"): 0,
        ("test",): 1,
        ("test", "--nonsense"): 2,
        ("test", "-o", "/dev/full/x.json"): 3,
        ("test", "--run", "none"): 4,
    }
    for arguments, code in codes.items():
        done = project.npx("hotseat", *arguments)
        assert done.returncode == code, done.stdout + done.stderr


def test_standard_input_passes_through(project: Project) -> None:
    done = project.run("npx", "--no-install", "hotseat", "test", "-v", "-i", "-", stdin="Good morning\n")
    assert "You said: Good morning" in done.stdout


def test_a_missing_platform_package_is_named(project: Project) -> None:
    # Without the packages of platforms.
    (project.root / "node_modules").unlink()
    shutil.copytree(INSTALLED / "node_modules/hotseat", project.root / "node_modules/hotseat")
    done = project.run("node", "node_modules/hotseat/bin/hotseat.js", "--version")
    assert done.returncode == 3
    assert "the package @hotseat/cli-linux-x64 is not installed" in done.stderr
    shim = str(project.root / "node_modules/hotseat/bin/hotseat.js")
    program = str(INSTALLED / "node_modules/@hotseat/cli-linux-x64/hotseat")
    assert project.run("node", shim, "--version", HOTSEAT_BINARY=program).returncode == 0
    done = project.run("node", shim, "--version", HOTSEAT_BINARY="/nowhere")
    assert (done.returncode, done.stderr) == (3, "error: HOTSEAT_BINARY=/nowhere: no such file\n")


# Signals


class Terminal:
    """A command in a terminal of its own, whose session it leads."""

    def __init__(self, project: Project, command: Sequence[str]) -> None:
        self.output = ""
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.chdir(project.root)
            os.execvpe(command[0], command, {**os.environ, "NO_COLOR": "1", "TERM": "dumb"})

    def read_until(self, text: str) -> None:
        deadline = time.monotonic() + 60
        while text not in self.output and time.monotonic() < deadline:
            self.output += self._read()
        assert text in self.output, self.output

    def type(self, text: str) -> None:
        os.write(self.file, text.encode())

    def wait(self) -> int:
        while True:
            read = self._read()
            if not read:
                break
            self.output += read
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> str:
        try:
            return os.read(self.file, 65536).decode(errors="replace")
        except OSError:
            return ""


@pytest.mark.parametrize("command", [["npx", "--no-install", "hotseat"], ["node", "node_modules/hotseat/bin/hotseat.js"]])
def test_one_ctrl_c_lets_running_cases_end(project: Project, command: list[str]) -> None:
    project.file("a.test.yaml", SLOW)
    terminal = Terminal(project, [*command, "test", "--parallel", "1"])
    terminal.read_until("Running Tests")
    time.sleep(0.5)
    terminal.type("\x03")
    code = terminal.wait()
    assert code in (130, -signal.SIGINT), terminal.output
    assert re.search(r"Passed: +1", terminal.output), terminal.output


def test_two_ctrl_c_cancel_running_cases(project: Project) -> None:
    project.file("a.test.yaml", SLOW.replace('"2"', '"60"'))
    terminal = Terminal(project, ["node", "node_modules/hotseat/bin/hotseat.js", "test", "--parallel", "1"])
    terminal.read_until("Running Tests")
    time.sleep(0.5)
    terminal.type("\x03")
    terminal.read_until("no new cases")
    time.sleep(0.2)
    terminal.type("\x03")
    began = time.monotonic()
    assert terminal.wait() == 130, terminal.output
    assert time.monotonic() - began < 20


@pytest.fixture
def running(project: Project) -> Iterator[subprocess.Popen[str]]:
    project.file("a.test.yaml", SLOW)
    command = ["node", "node_modules/hotseat/bin/hotseat.js", "test", "--parallel", "1"]
    with subprocess.Popen(command, cwd=project.root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Running Tests" in line:
                break
        time.sleep(0.5)
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_to_the_shim_reach_the_program(running: subprocess.Popen[str], number: signal.Signals) -> None:
    running.send_signal(number)
    output, _ = running.communicate(timeout=30)
    assert running.returncode == 130, output
    assert re.search(r"Passed: +1", output), output


def test_a_program_that_a_signal_ends(project: Project) -> None:
    project.file("crash", "#!/bin/sh\nkill -9 $$\n")
    (project.root / "crash").chmod(0o755)
    program = str(project.root / "crash")
    assert project.run("node", "node_modules/hotseat/bin/hotseat.js", HOTSEAT_BINARY=program).returncode == 137


# Types


def test_types_of_tests(project: Project) -> None:
    options = {
        "target": "ES2023",
        "lib": ["ES2023"],
        "module": "ESNext",
        "moduleResolution": "bundler",
        "strict": True,
        "noEmit": True,
        "types": [],
    }
    project.file("tsconfig.json", json.dumps({"compilerOptions": options, "include": ["*.ts"]}))
    project.file("a_test.ts", 'import { agent, expect, it, user } from "hotseat";\nit("a", () => { user.says("x"); expect(agent).not.toCallTool("y"); });\n')
    project.file("a.test.ts", 'import { suites } from "hotseat/vitest";\nsuites({ paths: ["tests"], args: ["--runs", "3"] });\n')
    done = project.npx("tsc")
    assert done.returncode == 0, done.stdout
    project.file("b_test.ts", 'import { agent } from "hotseat";\nagent.nope();\n')
    project.file("b.test.ts", 'import { suites } from "hotseat/vitest";\nsuites({ path: [] });\n')
    done = project.npx("tsc")
    assert re.findall(r"^(\w\S+)\(\d+", done.stdout, re.M) == ["b.test.ts", "b_test.ts"]


# vitest

DECLARED = 'import { suites } from "hotseat/vitest";\nsuites();\n'


def test_vitest_runs_cases_as_tests(project: Project) -> None:
    project.file("shop.test.yaml", SUITE)
    project.file("boom_test.ts", 'import { it } from "hotseat";\nit("boom", () => { throw new Error("boo"); });\n')
    project.file("a.test.ts", DECLARED)
    code, tests, output = project.vitest()
    assert tests == {"passes": "passed", "fails": "failed", "left out": "skipped", "boom": "failed"}, output
    assert code == 1
    for part in ("Agent: \"You said: hello\"", "--> shop.test.yaml:6:", "shop.test.yaml:5:1", "Error of the test", "Error: boo"):
        assert part in output, output


def test_vitest_runs_only_selected_cases(project: Project) -> None:
    cases = [f"name: {name}\nhooks: [{{ cmd: [sh, -c, 'echo {name} >> ran'] }}]\nturns: [{{ user: hello }}]\n" for name in "abc"]
    project.file("shop.test.yaml", "---\n".join(cases))
    project.file("a.test.ts", DECLARED)
    code, tests, output = project.vitest("-t", "b")
    assert (code, tests["b"], tests["a"]) == (0, "passed", "skipped"), output
    assert (project.root / "ran").read_text() == "b\n"


def test_vitest_reports_errors_of_configuration(project: Project) -> None:
    project.file("shop.test.yaml", "name: a\nturns: [{ user: hello, asert: {} }]\n")
    project.file("a.test.ts", DECLARED)
    code, tests, output = project.vitest()
    assert (code, tests) == (1, {})
    assert "unknown key `asert`" in output and "shop.test.yaml:2:" in output


def test_vitest_reports_runs_that_cannot_be_completed(project: Project) -> None:
    project.file("shop.test.yaml", SUITE)
    project.file("a.test.ts", DECLARED.replace("suites()", 'suites({ args: ["--nonsense"] })'))
    code, tests, output = project.vitest()
    assert (code, set(tests.values())) == (1, {"failed"})
    assert "unexpected argument '--nonsense' found" in output
    project.file("shop.test.yaml", SUITE.split("---")[0])
    project.file("a.test.ts", DECLARED.replace("suites()", 'suites({ args: ["-o", "/dev/full/x.json"] })'))
    code, tests, output = project.vitest()
    assert code == 1, output


def test_vitest_names_a_failed_sweep_of_faults(project: Project) -> None:
    case = {"id": "a", "name": "a", "suite": "a", "file": "a.test.yaml", "line": 1, "tags": []}
    events = [{"type": "result", "status": "passed", **case}, {"type": "summary", "failed": 0, "sweep_failures": 2}]
    printed = "\n".join(json.dumps(event) for event in events)
    project.file("swept", f"#!/bin/sh\n[ $1 = list ] && echo '{json.dumps(case)}' && exit 0\necho '{printed}'\nexit 1\n")
    (project.root / "swept").chmod(0o755)
    project.file("a.test.ts", DECLARED)
    code, tests, output = project.vitest(HOTSEAT_BINARY=str(project.root / "swept"))
    assert (code, tests) == (1, {"a": "passed"}), output
    assert "the sweep of faults failed: 2 conversations with a fault" in output


def test_vitest_reports_a_program_that_crashes(project: Project) -> None:
    project.file("shop.test.yaml", SUITE)
    project.file("a.test.ts", DECLARED)
    program = INSTALLED / "node_modules/@hotseat/cli-linux-x64/hotseat"
    project.file("crash", f'#!/bin/sh\n[ "$1" = test ] || exec {program} "$@"\necho "out of memory" >&2\nkill -9 $$\n')
    (project.root / "crash").chmod(0o755)
    code, tests, output = project.vitest(HOTSEAT_BINARY=str(project.root / "crash"))
    assert (code, set(tests.values())) == (1, {"failed"})
    assert "hotseat ended early: SIGKILL" in output and "out of memory" in output


def test_vitest_stops_the_run_when_it_bails_out(project: Project) -> None:
    slow = 'name: slow\nhooks: [{ cmd: [sleep, "60"] }]\nturns: [{ user: hello }]\n'
    project.file("shop.test.yaml", SUITE.split("---")[1] + "---\n" + slow)
    project.file("a.test.ts", DECLARED)
    began = time.monotonic()
    code, tests, output = project.vitest("--bail=1")
    assert (code, tests["fails"]) == (1, "failed"), output
    assert time.monotonic() - began < 40
