"""The program in the package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hotseat

REPOSITORY = Path(__file__).resolve().parents[3]


def cargo_version() -> str:
    found = re.search(r'^version = "(.+)"$', (REPOSITORY / "Cargo.toml").read_text(encoding="utf-8"), re.M)
    assert found
    return found.group(1)


def test_the_module_runs_the_program() -> None:
    for command in ([str(hotseat.find_binary())], [sys.executable, "-m", "hotseat"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, f"hotseat {cargo_version()}\n")
        assert subprocess.run([*command, "--nonsense"], capture_output=True).returncode == 2


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTSEAT_BINARY", "/nowhere/hotseat")
    with pytest.raises(FileNotFoundError, match="HOTSEAT_BINARY=/nowhere/hotseat: no such file"):
        hotseat.find_binary()
