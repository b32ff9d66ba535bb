"""The examples of docs/install.md, written into one folder and run.

A block whose first line is a comment with a path is that file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs/install.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for _, text in BLOCKS:
        named = re.match(r"(?:#|//) (\S+)\n", text)
        if named:
            path = tmp_path / named.group(1)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return tmp_path


def test_pytest(project: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert done.returncode == 0 and "tests/shop.test.yaml::finds an order PASSED" in done.stdout, done.stdout


def test_vitest(project: Path) -> None:
    (project / "hotseat.yaml").write_text("target: { type: embedded, agent: . }\nstore: false\n")
    (project / "agent.yaml").write_text("name: Shop\n")
    (project / "script.yaml").write_text("use: always\nrules: [{ reply: hello }]\n")
    (project / "tests/shop.test.yaml").write_text("name: greets\nturns: [{ user: hello }]\n")
    (project / "node_modules").symlink_to(Path(os.environ["HOTSEAT_NPM_FOLDER"]) / "node_modules")
    done = subprocess.run(["npx", "--no-install", "vitest", "run"], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_workflow_uses_the_inputs_of_the_action(project: Path) -> None:
    action = yaml.safe_load((REPOSITORY / "action.yml").read_text())
    workflow = yaml.safe_load((project / ".github/workflows/agents.yml").read_text())
    (step,) = (step for step in workflow["jobs"]["agents"]["steps"] if "hotseat" in step["uses"])
    assert set(step["with"]) <= set(action["inputs"])
    table = PAGE.split("## GitHub Actions")[1].split("## ")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.M)) == set(action["inputs"])


def test_completions_and_manual_pages(tmp_path: Path) -> None:
    (commands,) = (text for language, text in BLOCKS if language == "bash" and "completions" in text)
    for folder in (".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"):
        (tmp_path / folder).mkdir(parents=True)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(["bash", "-e", "-c", commands], env={"HOME": str(tmp_path), "PATH": path}, check=True)
    assert (tmp_path / ".local/share/man/man1/hotseat-test.1").is_file()
    script = tmp_path / ".local/share/bash-completion/completions/hotseat"
    complete = f"source {script}; COMP_WORDS=(hotseat te); COMP_CWORD=1; _hotseat hotseat te hotseat; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", complete], capture_output=True, text=True)
    assert done.stdout.split() == ["test"], done.stderr
