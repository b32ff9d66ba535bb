"""A project of Hotseat in which the tests run pytest with the plugin."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

import hotseat

pytest_plugins = ["pytester"]

AGENT = '''
import os
import time
from collections import Counter

import hotseat
import pytest

attempts = Counter()


def agent(turn):
    command, _, rest = turn.text.partition(" ")
    if command == "crash":
        raise ValueError("the database is gone")
    if command == "paint":
        raise ValueError("red \\x1b[31m")
    if command == "unsteady":
        attempts[rest] += 1
        return "wrong" if attempts[rest] == 1 else "right"
    if command == "sleep":
        time.sleep(float(rest))
        return "awake"
    if command == "find":
        return [hotseat.ToolCall("find_order", {"id": rest}, result={"status": "delivered"}), "It is delivered."]
    return f"You said: {turn.text}"


@pytest.fixture(scope="session")
def hotseat_agent():
    return agent
'''

SUITE = """
name: passes
tags: [smoke]
turns:
  - user: find 1042
    assert: { tools: { require: [{ name: find_order, args_match: { id: "1042" } }] } }
---
name: fails
turns:
  - user: hello
    assert: { text: { must_match: goodbye } }
---
name: left out
skip: true
turns: [{ user: hello }]
---
name: recovers
retries: 1
turns:
  - user: unsteady a
    assert: { text: { must_match: right } }
---
name: crashes
turns: [{ user: crash }]
"""


class Project:
    """A folder with a project file, an agent and suites, and the log of all programs that ran."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pytester = pytester
        self.root: Path = pytester.path
        self.log = self.root / "programs.log"
        self.binary = hotseat.find_binary()
        self.set_binary(f'echo "$@" >> {shlex.quote(str(self.log))}\nexec {shlex.quote(str(self.binary))} "$@"')
        monkeypatch.setenv("HOTSEAT_BINARY", str(self.root / "program"))
        self.file("pyproject.toml", "[tool.hotseat]\nargs = ['--no-store']\n")
        self.file("hotseat.yaml", 'target: { endpoint: "${ENV.HOTSEAT_AGENT_URL}" }\n')
        self.file("conftest.py", AGENT)

    def set_binary(self, script: str) -> None:
        """Sets the program that the plugin runs in place of Hotseat."""
        program = self.file("program", f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def file(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def pytest(self, *arguments: str) -> pytest.RunResult:
        """Runs pytest in a process of its own."""
        options = ["-p", "no:cacheprovider"] if "--lf" not in arguments and "cache" not in arguments else []
        given = [argument for argument in arguments if argument != "cache"]
        return self.pytester.runpytest_subprocess(*options, *given, timeout=120)

    def record_inputs(self) -> None:
        """Lets the agent write down what it hears."""
        source = (self.root / "conftest.py").read_text(encoding="utf-8")
        line = "    command, _, rest"
        write = f"    open({str(self.root / 'inputs')!r}, 'a').write(turn.text + '\\n')\n"
        self.file("conftest.py", source.replace(line, write + line))

    def inputs(self) -> list[str]:
        """What the agent heard so far."""
        path = self.root / "inputs"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def runs(self) -> list[str]:
        """Arguments of each `hotseat test` so far."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith("test ")]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    # Nothing colours or annotates the output.
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "PYTEST_ADDOPTS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Project(pytester, monkeypatch)


def say(name: str, *, expected: str = "said", more: str = "") -> str:
    """A case that passes, unless it expects something else."""
    return f"name: {name}\n{more}turns: [{{ user: hello, assert: {{ text: {{ must_match: {expected} }} }} }}]\n"


def is_alive(pid: int) -> bool:
    """True if a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
