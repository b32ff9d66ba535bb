"""Runs `hotseat list` and `hotseat test --json` for the pytest plugin."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from ._binary import find_binary

PROJECT_FILES = ("hotseat.yaml", "aguitest.config.yaml")
# An interrupted run may execute `after` hooks for ten seconds.
INTERRUPT_SECONDS = 15.0
# Pause between two interrupts, so that they count as two.
INTERRUPT_PAUSE_SECONDS = 0.2
# How often a waiting thread wakes up, so that Ctrl-C works on every platform.
WAKE_UP_SECONDS = 0.5

Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A case as `hotseat list --json` prints it."""

    id: str
    name: str
    suite: str
    file: str
    line: int
    tags: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the case in the results of a run."""
        return self.file, self.id


@dataclass(frozen=True)
class Project:
    """A project file, and the folder in which the program runs."""

    folder: Path
    config: Optional[Path] = None

    @staticmethod
    def of_suite(suite: Path, root: Path) -> Project:
        """The nearest project above a suite; without one, the folder `root`."""
        for folder in suite.parents:
            if any((folder / name).is_file() for name in PROJECT_FILES):
                return Project(folder)
        return Project(root)

    def path_of(self, suite: Path) -> str:
        """Path of a suite, relative to the folder of the project."""
        try:
            return suite.relative_to(self.folder).as_posix()
        except ValueError:
            return os.path.relpath(suite, self.folder)

    def arguments(self) -> list[str]:
        """Arguments that select the project file."""
        return ["--config", str(self.config)] if self.config else []


class ListError(Exception):
    """The cases of a suite cannot be read. The text is the message of the program."""

    def lacks_tests(self) -> bool:
        """True if the file is a script without tests, such as one with hooks."""
        return str(self).startswith("error: no tests in ")


def list_cases(project: Project, suite: Path, variables: dict[str, str]) -> list[Case]:
    """Returns the cases of a suite in order."""
    command = [str(find_binary()), "list", "--json", *project.arguments(), "--", project.path_of(suite)]
    done = subprocess.run(
        command,
        cwd=project.folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode != 0:
        raise ListError(done.stderr.strip() or f"`hotseat list` ended with exit code {done.returncode}")
    lines = (json.loads(line) for line in done.stdout.split("\n") if line)
    return [
        Case(line["id"], line["name"], line["suite"], line["file"], line["line"], tuple(line["tags"]))
        for line in lines
    ]


@dataclass
class RunEnd:
    """End of a process."""

    exit_code: int
    """Negative if a signal ended the process."""
    errors: list[str] = field(default_factory=list)
    """Messages of the program about the run as a whole."""
    summary: Optional[Json] = None
    interrupted: bool = False
    """True if this plugin ended the run."""

    def message(self) -> str:
        """The reason why the run ended as it did."""
        if self.errors:
            return "\n".join(self.errors)
        if self.exit_code < 0:
            return f"hotseat was ended by signal {-self.exit_code}"
        return f"hotseat ended with exit code {self.exit_code}"

    def problem(self) -> Optional[str]:
        """The problem of the run as a whole, if the results of its cases do not show it."""
        if self.interrupted or self.exit_code == 0:
            return None
        if self.exit_code == 1 and self.summary is not None:
            failures = self.summary.get("sweep_failures", 0)
            if failures:
                return f"the sweep of faults failed: {failures} {'conversation' if failures == 1 else 'conversations'} with a fault"
            if self.summary.get("failed"):
                return None
            skipped = self.summary.get("unasked_skips", 0)
            return f"{skipped} skipped {'case is' if skipped == 1 else 'cases are'} not marked `skip`"
        return self.message()


class Run:
    """A process `hotseat test --json`, and the results that it has printed so far."""

    def __init__(
        self,
        project: Project,
        cases: Sequence[Case],
        arguments: Iterable[str],
        variables: dict[str, str],
    ) -> None:
        self._cases = frozenset(case.key for case in cases)
        self._results: dict[tuple[str, str], Json] = {}
        self._changed = threading.Condition()
        self._end: Optional[RunEnd] = None
        self._interrupted = False
        self._stderr = tempfile.TemporaryFile()
        self._cases_file = _write_cases(cases)
        suites = dict.fromkeys(case.file for case in cases)
        command = [
            str(find_binary()),
            "test",
            "--json",
            "--cases",
            self._cases_file,
            *project.arguments(),
            *arguments,
            "--",
            *suites,
        ]
        self._process = subprocess.Popen(
            command,
            cwd=project.folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            # Ctrl-C in a terminal reaches only pytest, which then interrupts the run itself.
            start_new_session=os.name == "posix",
        )
        self._reader = threading.Thread(target=self._read, name="hotseat-events", daemon=True)
        self._reader.start()

    def result(self, case: Case) -> Optional[Json]:
        """Waits for the result of a case. None if the run ended without it."""
        with self._changed:
            while case.key not in self._results and self._end is None:
                self._changed.wait(WAKE_UP_SECONDS)
            return self._results.get(case.key)

    def finish(self) -> RunEnd:
        """Waits for the end of the process. Stops it if cases have no result, since nobody waits for them."""
        with self._changed:
            complete = self._cases <= self._results.keys()
        return self.wait() if complete else self.stop()

    def wait(self) -> RunEnd:
        """Waits for the end of the process."""
        with self._changed:
            while self._end is None:
                self._changed.wait(WAKE_UP_SECONDS)
            return self._end

    def stop(self) -> RunEnd:
        """Cancels running conversations, and ends the process after their `after` hooks."""
        if self._process.poll() is None:
            self._interrupted = True
            self._signal()
            time.sleep(INTERRUPT_PAUSE_SECONDS)
            self._signal()
        try:
            self._process.wait(INTERRUPT_SECONDS)
        except subprocess.TimeoutExpired:
            # The third interrupt ends the program with every process that it started.
            self._signal()
            try:
                self._process.wait(INTERRUPT_PAUSE_SECONDS * 10)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self.wait()

    def _signal(self) -> None:
        if self._process.poll() is None:
            if os.name == "posix":
                self._process.send_signal(signal.SIGINT)
            else:
                self._process.terminate()

    def _read(self) -> None:
        errors: list[str] = []
        summary: Optional[Json] = None
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                try:
                    event = json.loads(line)
                    kind = event["type"]
                except (ValueError, KeyError, TypeError):
                    errors.append(f"hotseat printed a line that is no event: {line!r}")
                    continue
                if kind == "result":
                    with self._changed:
                        self._results[event["file"], event["id"]] = event
                        self._changed.notify_all()
                elif kind == "error":
                    errors.append(_error_text(event))
                elif kind == "summary":
                    summary = event
        exit_code = self._process.wait()
        if summary is None:
            self._stderr.seek(0)
            errors.append(f"hotseat ended early with exit code {exit_code}")
            errors.extend(self._stderr.read().decode(errors="replace").strip().splitlines()[-20:])
        self._stderr.close()
        os.unlink(self._cases_file)
        with self._changed:
            self._end = RunEnd(exit_code, errors, summary, self._interrupted)
            self._changed.notify_all()


def _write_cases(cases: Sequence[Case]) -> str:
    """Writes the cases for `--cases` to a temporary file, and returns its path."""
    descriptor, path = tempfile.mkstemp(prefix="hotseat-cases-", suffix=".jsonl")
    with open(descriptor, "w", encoding="utf-8") as file:
        for case in cases:
            file.write(json.dumps({"suite": case.suite, "id": case.id}) + "\n")
    return path


def _error_text(event: Json) -> str:
    """An `error` event as text."""
    place = ":".join(str(event[part]) for part in ("file", "line", "column") if part in event)
    message = str(event["message"]) + (f"\n  --> {place}" if place else "")
    return message + (f"\n  = help: {event['help']}" if event.get("help") else "")
