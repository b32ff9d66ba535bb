"""pytest plugin: the cases of Hotseat's suites are test items.

`[tool.hotseat]` in pyproject.toml or `--hotseat` enables it. The first item of a project starts one
`hotseat test --json` process for all its selected items; each item then waits for its own result. With
pytest-xdist each worker runs a shard of the items in a process of its own.
"""

from __future__ import annotations

import fnmatch
import re
import sys
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprEntryNative, ReprFileLocation, ReprTraceback

if TYPE_CHECKING:
    from ._agent import Agent
    from ._process import Case, Project, Run

SUITE_PATTERNS = (
    "*.test.yaml",
    "*.test.yml",
    "*.test.json",
    "*.test.jsonl",
    "*_test.ts",
    "*_test.mts",
    "*_test.js",
    "*_test.mjs",
)
# The endpoint of `hotseat_agent`, for the project file. At collection, when no agent is served, it is this one.
AGENT_VARIABLE = "HOTSEAT_AGENT_URL"
UNSERVED_AGENT = "http://127.0.0.1:9/"
# Arguments that write files, which several processes would overwrite.
OUTPUT_ARGUMENTS = ("-o", "--output", "--trace", "--record", "--save")
# Groups of other tests that pytest-xdist gives to a worker, one after the other.
GROUPS_PER_WORKER = 4
# Members of `workerinput` and `workeroutput` of pytest-xdist.
WORKER_DISTRIBUTION = "hotseat_distribution"
WORKER_PROBLEMS = "hotseat_problems"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hotseat", "conversations with agents (Hotseat)")
    group.addoption("--hotseat", action="store_true", help="collect the suites of Hotseat")
    group.addoption(
        "--hotseat-arg",
        action="append",
        default=[],
        metavar="ARG",
        help="pass an argument to `hotseat test`, such as --hotseat-arg=--runs=3; can be repeated",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "hotseat: a case of a suite of Hotseat")
    settings = Settings.read(config)
    if settings is not None:
        config.pluginmanager.register(HotseatPlugin(config, settings), "hotseat-session")


@pytest.fixture(scope="session")
def hotseat_agent() -> Optional[Agent]:
    """The agent under test: override this fixture with one that returns a function of a `hotseat.Turn`.

    The plugin serves it; the project file refers to it as `${ENV.HOTSEAT_AGENT_URL}`.
    """
    return None


class Settings:
    """The table `[tool.hotseat]` of pyproject.toml."""

    def __init__(self, table: dict[str, Any], root: Path) -> None:
        unknown = ", ".join(sorted(set(table) - {"args", "config", "suites"}))
        if unknown:
            raise pytest.UsageError(f"[tool.hotseat]: unknown key {unknown}; known keys are args, config, suites")
        self.args = _strings(table, "args")
        self.suites = _strings(table, "suites")
        config = table.get("config")
        if config is not None and not isinstance(config, str):
            raise pytest.UsageError("[tool.hotseat]: expected text for `config`")
        self.config = root / config if config else None
        if self.config and not self.config.is_file():
            raise pytest.UsageError(f"[tool.hotseat]: config = {config!r}: no such file")

    @staticmethod
    def read(config: pytest.Config) -> Optional[Settings]:
        """Reads the table. None if neither it nor `--hotseat` enables the plugin."""
        path = config.rootpath / "pyproject.toml"
        table: Any = None
        if path.is_file():
            tool = _read_toml(path).get("tool", {})
            table = tool.get("hotseat") if isinstance(tool, dict) else None
        if table is None:
            if not config.getoption("hotseat"):
                return None
            table = {}
        if not isinstance(table, dict):
            raise pytest.UsageError("[tool.hotseat]: expected a table")
        return Settings(table, config.rootpath)


class HotseatPlugin:
    """The plugin of one session that has it enabled."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self.args = [*settings.args, *config.getoption("hotseat_arg")]
        self.runs: dict[tuple[Project, object], Run] = {}
        self.agents: dict[Project, Optional[Agent]] = {}
        self.servers: list[Any] = []
        self.problems: list[str] = []
        self.own_shards: Optional[dict[str, str]] = None
        worker: Optional[dict[str, Any]] = getattr(config, "workerinput", None)
        # Without pytest-xdist, all items run in one process.
        self.workers: int = worker["workercount"] if worker else 1
        # The distribution of items among workers. In the controller the option of pytest-xdist says it.
        self.distribution: str = worker[WORKER_DISTRIBUTION] if worker else config.getoption("dist", "no")
        output = next((arg for arg in self.args if arg.startswith(OUTPUT_ARGUMENTS)), None)
        if output and self.distribution != "no":
            raise pytest.UsageError(
                f"hotseat: the processes of pytest-xdist would overwrite each other's {output}; "
                "run without -n, or write reports with `hotseat show`"
            )

    def is_suite(self, path: Path) -> bool:
        """True if a file is a suite."""
        if not any(fnmatch.fnmatch(path.name, pattern) for pattern in SUITE_PATTERNS):
            return False
        if not self.settings.suites:
            return True
        try:
            relative = path.relative_to(self.config.rootpath).as_posix()
        except ValueError:
            return False
        return any(fnmatch.fnmatch(relative, pattern) for pattern in self.settings.suites)

    def project_of(self, suite: Path) -> Project:
        """The project of a suite."""
        from ._process import Project

        if self.settings.config:
            return Project(self.settings.config.parent, self.settings.config)
        return Project.of_suite(suite, self.config.rootpath)

    def unit_of(self, item: CaseItem) -> object:
        """The items with the same unit run in one process: those of one worker, as far as that is known."""
        if self.distribution in ("no", "each"):
            return None
        if self.distribution == "load":
            if self.own_shards is None:
                self.own_shards = self.shards([other.nodeid for other in item.session.items], self.workers)
            return self.own_shards[item.nodeid]
        if self.distribution in ("loadfile", "loadscope"):
            return item.path
        return item.nodeid

    def shards(self, nodeids: Iterable[str], workers: int) -> dict[str, str]:
        """Distributes a collection among workers: a shard of the cases for each, and other tests in small groups."""
        cases: list[str] = []
        others: list[str] = []
        for nodeid in nodeids:
            file, separator, _ = nodeid.partition("::")
            is_case = separator and self.is_suite(self.config.rootpath / file)
            (cases if is_case else others).append(nodeid)
        found = {nodeid: f"cases {index * workers // len(cases)}" for index, nodeid in enumerate(cases)}
        groups = workers * GROUPS_PER_WORKER
        found.update((nodeid, f"tests {index * groups // len(others)}") for index, nodeid in enumerate(others))
        return found

    def run_of(self, item: CaseItem, agent: Optional[Agent]) -> Run:
        """The process that runs an item. The first item of a project and unit starts it."""
        from ._process import Run

        project = item.project
        if self.agents.setdefault(project, agent) is not agent:
            raise pytest.UsageError(f"hotseat_agent: the cases of {project.folder} have several agents")
        unit = self.unit_of(item)
        run = self.runs.get((project, unit))
        if run is None:
            own = (other for other in item.session.items if isinstance(other, CaseItem))
            cases = [other.case for other in own if other.project == project and self.unit_of(other) == unit]
            run = Run(project, cases, self.arguments(), self.variables(agent))
            self.runs[project, unit] = run
        return run

    def arguments(self) -> list[str]:
        """Arguments for `hotseat test`."""
        stops_at_first = self.config.getoption("maxfail", 0) == 1
        return [*self.args, *(["--fail-fast"] if stops_at_first else [])]

    def variables(self, agent: Optional[Agent]) -> dict[str, str]:
        """Environment variables of a process. Serves the agent if there is one."""
        from ._agent import serve

        if agent is None:
            return {}
        if not callable(agent):
            raise pytest.UsageError("hotseat_agent: expected a function of a hotseat.Turn")
        self.servers.append(serve(agent))
        return {AGENT_VARIABLE: self.servers[-1].url}

    # Hooks of pytest

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> Optional[SuiteFile]:
        if not self.is_suite(file_path):
            return None
        file: SuiteFile = SuiteFile.from_parent(parent, path=file_path)
        file.plugin = self
        return file

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, None]:
        outcome = yield
        if isinstance(item, CaseItem):
            item.complete_report(outcome.get_result(), call)

    def pytest_report_teststatus(
        self, report: Union[pytest.CollectReport, pytest.TestReport]
    ) -> Optional[tuple[str, str, tuple[str, dict[str, bool]]]]:
        if getattr(report, "hotseat_flaky", False) and report.passed:
            return "flaky", "~", ("FLAKY", {"yellow": True})
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        for run in self.runs.values():
            problem = run.finish().problem()
            if problem and problem not in self.problems:
                self.problems.append(problem)
        for server in self.servers:
            server.close()
        output: Optional[dict[str, Any]] = getattr(self.config, "workeroutput", None)
        if output is not None:
            output[WORKER_PROBLEMS] = self.problems
        elif self.problems:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.problems:
            terminalreporter.section("hotseat", red=True, bold=True)
            for problem in self.problems:
                terminalreporter.write_line(problem)

    # Hooks of pytest-xdist

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        # Workers do not have the option.
        node.workerinput[WORKER_DISTRIBUTION] = self.distribution

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        for problem in getattr(node, "workeroutput", {}).get(WORKER_PROBLEMS, []):
            if problem not in self.problems:
                self.problems.append(problem)

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        if config.getoption("dist") != "load":
            return None
        from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

        plugin = self

        class ShardScheduling(LoadScopeScheduling):  # type: ignore[misc]
            """Gives each shard to one worker."""

            def _split_scope(self, nodeid: str) -> str:
                if not hasattr(self, "_shards"):
                    self._shards = plugin.shards(self.collection, self.numnodes)
                return str(self._shards[nodeid])

        return ShardScheduling(config, log)


class SuiteFile(pytest.File):
    """A suite."""

    plugin: HotseatPlugin

    def collect(self) -> Iterator[CaseItem]:
        from ._process import ListError, list_cases

        project = self.plugin.project_of(self.path)
        try:
            cases = list_cases(project, self.path, _unserved_agent())
        except ListError as error:
            # Like `hotseat test`, pytest comes across scripts without tests. Only a script that is named is an error.
            if error.lacks_tests() and not self.session.isinitpath(self.path):
                return
            raise self.CollectError(str(error)) from error
        except FileNotFoundError as error:
            raise self.CollectError(str(error)) from error
        for case in cases:
            item: CaseItem = CaseItem.from_parent(self, name=case.id, callobj=_use_agent)
            item.bind(self.plugin, project, case)
            yield item


class CaseFault(Exception):
    """A case failed, or has no result. The text is the whole failure."""

    def __init__(self, text: str, message: str) -> None:
        super().__init__(text)
        self.message = message


class CaseItem(pytest.Function):
    """A case. As a test function it can use fixtures: `hotseat_agent`, and those with `autouse`."""

    plugin: HotseatPlugin
    project: Project
    case: Case
    result: Optional[dict[str, Any]]

    def bind(self, plugin: HotseatPlugin, project: Project, case: Case) -> None:
        """Sets what the item runs."""
        self.plugin, self.project, self.case, self.result = plugin, project, case, None
        self.add_marker("hotseat")
        self.extra_keyword_matches.update([case.name, *case.tags])

    def setup(self) -> None:
        super().setup()
        agent: Any = self.funcargs["hotseat_agent"]
        run = self.plugin.run_of(self, agent)
        self.result = run.result(self.case)
        if self.result is None:
            self.result = {}
            reason = run.wait().message()
            raise CaseFault(f"no result: {reason}", f"no result: {reason.splitlines()[0]}")
        self.user_properties.extend(_properties(self.result))
        # A failure of the agent is a failed test; every other failure is an error, as of a fixture.
        failure = self.result.get("failure")
        if failure and failure["fault"] != "agent":
            raise self.fault(failure)

    def runtest(self) -> None:
        result = self.result or {}
        if result["status"] == "skipped":
            pytest.skip(result.get("skip_reason") or "skipped")
        if result["status"] != "passed":
            raise self.fault(result.get("failure") or {})

    def fault(self, failure: dict[str, Any]) -> CaseFault:
        """The exception for a failed case."""
        result = self.result or {}
        message = result.get("error") or failure.get("message") or "the case failed"
        return CaseFault(str(result.get("text") or message), _printable(message))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.name

    def complete_report(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
        """Adds the data of the result to a report."""
        result = self.result or {}
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, CaseFault):
            report.longrepr = _representation(error, str(self.path), self.case.line)
        elif isinstance(error, pytest.skip.Exception) and report.skipped:
            report.longrepr = (str(self.path), self.case.line, f"Skipped: {error}")
        # The item waits while other cases run; the duration of its conversation is the one to report.
        decides = report.when == ("setup" if report.failed and report.when == "setup" else "call")
        if report.when in ("setup", "call") and "duration_ms" in result:
            report.duration = result["duration_ms"] / 1000 if decides else 0.0
        if decides:
            report.sections.extend(_sections(result))
            report.hotseat_flaky = result.get("flaky", False)  # type: ignore[attr-defined]


def _use_agent(hotseat_agent: Optional[Agent]) -> None:
    """Requests the fixtures of a case; `CaseItem.runtest` runs in place of it."""


def _unserved_agent() -> dict[str, str]:
    import os

    return {AGENT_VARIABLE: os.environ.get(AGENT_VARIABLE, UNSERVED_AGENT)}


def _properties(result: dict[str, Any]) -> list[tuple[str, object]]:
    """Properties for JUnit: the stability of a case that was repeated or retried."""
    found: list[tuple[str, object]] = [("hotseat_flaky", True)] if result.get("flaky") else []
    return found + [(f"hotseat_{name}", result[name]) for name in ("runs", "pass_rate") if name in result]


def _sections(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Output of scripts, warnings, and failures of earlier attempts."""
    found = []
    for title, member in (("console output", "logs"), ("warnings", "warnings")):
        if result.get(member):
            found.append((f"hotseat {title}", _printable("\n".join(result[member]))))
    if result.get("flaky"):
        failed = [attempt["error"] for attempt in result.get("attempts", []) if attempt.get("error")]
        found.append(("hotseat failed attempts", _printable("\n".join(failed))))
    return found


def _printable(text: str) -> str:
    """A text of an agent without control characters, which a terminal would obey."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "\N{REPLACEMENT CHARACTER}", text)


def _representation(fault: CaseFault, path: str, line: int) -> ExceptionChainRepr:
    """A failure as pytest prints it: the text, and a message for the short summary and JUnit."""
    lines = [f"{text}\n" for text in str(fault).splitlines()]
    place = ReprFileLocation(path, line, fault.message)
    traceback = ReprTraceback([ReprEntryNative(lines)], None, style="native")
    return ExceptionChainRepr([(traceback, place, None)])


def _strings(table: dict[str, Any], key: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise pytest.UsageError(f"[tool.hotseat]: expected a list of texts for `{key}`")
    return value


def _read_toml(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        # pytest depends on it.
        import tomli as tomllib
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise pytest.UsageError(f"{path}: {error}") from error
