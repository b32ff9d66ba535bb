"""What a release consists of: archive, sizes, versions, action, image, and the workflow.

`HOTSEAT_PACKAGES` names the folder of the packages, and `HOTSEAT_TARGET` the target of the program in them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = Path(os.environ["HOTSEAT_PACKAGES"])
TARGET = os.environ["HOTSEAT_TARGET"]
MAX_BYTES = float(os.environ.get("HOTSEAT_MAX_MEGABYTES", "15")) * 1e6
VERSION = re.findall(r'^version = "(.+)"$', (REPOSITORY / "Cargo.toml").read_text(), re.M)[0]
NAME = f"hotseat-{VERSION}-{TARGET}"
IS_STATIC = TARGET.endswith("-musl")
# The oldest C library of GNU that a program which is not static may need.
OLDEST_GLIBC = (2, 17)


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the archive."""
    folder = tmp_path_factory.mktemp("archive")
    with tarfile.open(PACKAGES / f"{NAME}.tar.gz") as file:
        file.extractall(folder)
    return folder / NAME


def load(path: str) -> Any:
    return yaml.safe_load((REPOSITORY / path).read_text(encoding="utf-8"))


# Packages


def test_versions_are_equal(archive: Path) -> None:
    package = json.loads((REPOSITORY / "packaging/npm/hotseat/package.json").read_text())
    assert {package["version"], *package["optionalDependencies"].values()} == {VERSION}
    printed = subprocess.run([archive / "hotseat", "--version"], capture_output=True, text=True).stdout
    assert printed == f"hotseat {VERSION}\n"
    names = {path.name for path in PACKAGES.iterdir()}
    assert f"hotseat-{VERSION}.tgz" in names
    assert [name for name in names if name.startswith(f"hotseat-{VERSION}-py3-none-") and name.endswith(".whl")]


def test_platforms_of_npm() -> None:
    package = json.loads((REPOSITORY / "packaging/npm/hotseat/package.json").read_text())
    platforms = json.loads((REPOSITORY / "packaging/npm/platforms.json").read_text())
    assert set(package["optionalDependencies"]) == {f"@hotseat/cli-{name}" for name in platforms}


def test_packages_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in PACKAGES.iterdir()}
    assert {name: size for name, size in sizes.items() if size >= MAX_BYTES} == {}


def test_the_wheel_has_the_program_and_the_plugin() -> None:
    (path,) = PACKAGES.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        entry_points = wheel.read(f"hotseat-{VERSION}.dist-info/entry_points.txt").decode()
    assert f"hotseat-{VERSION}.data/scripts/hotseat" in names
    assert {"hotseat/__init__.py", "hotseat/__main__.py", "hotseat/py.typed", "hotseat/pytest_plugin.py"} <= set(names)
    assert "[pytest11]" in entry_points and "hotseat=hotseat.pytest_plugin" in entry_points.replace(" ", "")
    if IS_STATIC:
        assert "manylinux_2_17" in path.name and "musllinux_1_1" in path.name


def test_the_program_needs_no_new_library(archive: Path) -> None:
    needed = re.findall(rb"GLIBC_(\d+)\.(\d+)", (archive / "hotseat").read_bytes())
    newest = max(((int(major), int(minor)) for major, minor in needed), default=(0, 0))
    if not IS_STATIC:
        pytest.skip(f"the program was built for this machine and needs glibc {newest}")
    # A static program has no interpreter and needs no library at all.
    headers = subprocess.run(["readelf", "-ld", archive / "hotseat"], capture_output=True, text=True, check=True).stdout
    assert newest <= OLDEST_GLIBC and "INTERP" not in headers and "NEEDED" not in headers


def test_the_archive_has_completions_and_manual_pages(archive: Path) -> None:
    assert {path.name for path in archive.iterdir()} == {
        "hotseat",
        "README.md",
        "CHANGELOG.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "completions",
        "man",
    }
    assert len(list((archive / "completions").iterdir())) == 5
    assert {"hotseat.1", "hotseat-test.1", "hotseat-view.1"} <= {path.name for path in (archive / "man").iterdir()}


def test_checksum() -> None:
    subprocess.run(["sha256sum", "--check", f"{NAME}.tar.gz.sha256"], cwd=PACKAGES, check=True)


def test_binstall_finds_the_archive(archive: Path) -> None:
    manifest = (REPOSITORY / "crates/hotseat-cli/Cargo.toml").read_text()
    values = {"version": VERSION, "target": TARGET, "repo": "REPO", "bin": "hotseat", "binary-ext": ""}

    def expanded(key: str) -> str:
        template = re.findall(rf'^{key} = "(.+)"$', manifest, re.M)[0]
        return re.sub(r"{ ([a-z-]+) }", lambda name: values[name.group(1)], template)

    assert expanded("pkg-url") == f"REPO/releases/download/v{VERSION}/{NAME}.tar.gz"
    assert archive.parent.joinpath(expanded("bin-dir")).is_file()


# The action


@pytest.fixture
def job(tmp_path: Path) -> dict[str, str]:
    """Variables of a job, whose releases are a folder."""
    release = tmp_path / "releases/download" / f"v{VERSION}"
    release.mkdir(parents=True)
    runner = {"x86_64-unknown-linux-musl": "X64", "aarch64-unknown-linux-musl": "ARM64"}
    machine = os.uname().machine.replace("arm64", "aarch64")
    system = "macOS" if TARGET.endswith("-darwin") else "Linux"
    expected = TARGET if system == "macOS" else f"{machine}-unknown-linux-musl"
    # A program for this machine stands in for the static one.
    for ending in ("tar.gz", "tar.gz.sha256"):
        shutil.copy(PACKAGES / f"{NAME}.{ending}", release / f"hotseat-{VERSION}-{expected}.{ending}")
    if expected != TARGET:
        folder = tmp_path / "renamed"
        with tarfile.open(PACKAGES / f"{NAME}.tar.gz") as file:
            file.extractall(folder)
        (folder / NAME).rename(folder / f"hotseat-{VERSION}-{expected}")
        path = release / f"hotseat-{VERSION}-{expected}.tar.gz"
        with tarfile.open(path, "w:gz") as file:
            file.add(folder / f"hotseat-{VERSION}-{expected}", f"hotseat-{VERSION}-{expected}")
        checksum = subprocess.run(["sha256sum", path.name], cwd=release, capture_output=True, text=True, check=True)
        (release / f"{path.name}.sha256").write_text(checksum.stdout)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "RUNNER_OS": system,
        "RUNNER_ARCH": runner.get(expected, "ARM64" if machine == "aarch64" else "X64"),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_PATH": str(tmp_path / "path"),
        "GITHUB_ACTION_PATH": str(REPOSITORY),
        "RELEASES": f"file://{tmp_path}/releases",
        "REPORTS": str(tmp_path / "reports"),
        "VERSION": "",
    }


def run_step(name: str, job: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a step of action.yml as the runner does, with the variables of the job."""
    (step,) = (step for step in load("action.yml")["runs"]["steps"] if step["name"] == name)
    assert set(step["env"]) <= {*job, "ARGUMENTS"}
    path = Path(job["GITHUB_PATH"])
    added = path.read_text().splitlines() if path.exists() else []
    env = {**job, "PATH": ":".join([*added, job["PATH"]])}
    return subprocess.run(["bash", "-e", "-c", step["run"]], cwd=folder, env=env, capture_output=True, text=True)


def test_the_action_installs_and_runs(job: dict[str, str], tmp_path: Path) -> None:
    done = run_step("Install Hotseat", job, tmp_path)
    assert (done.returncode, done.stdout) == (0, f"hotseat {VERSION}\n"), done.stderr
    project = tmp_path / "a project"
    shutil.copytree(REPOSITORY / "examples/expense", project)
    done = run_step("Run the cases", {**job, "ARGUMENTS": "--no-store --run 'is drafted'\n--forbid-only"}, project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"1 of \d+ test cases", done.stdout), done.stdout
    assert {path.name for path in Path(job["REPORTS"]).iterdir()} == {"report.html", "report.json", "junit.xml"}
    done = run_step("Run the cases", {**job, "ARGUMENTS": " "}, project)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run_step("Run the cases", {**job, "ARGUMENTS": "--config mistakes.yaml"}, project)
    assert done.returncode == 1, done.stdout + done.stderr


def test_the_action_refuses_a_changed_archive(job: dict[str, str], tmp_path: Path) -> None:
    (path,) = (tmp_path / "releases").rglob("*.tar.gz")
    path.write_bytes(path.read_bytes() + b"x")
    done = run_step("Install Hotseat", job, tmp_path)
    assert done.returncode != 0 and not Path(job["GITHUB_PATH"]).exists()


def test_the_action_refuses_an_unknown_version(job: dict[str, str], tmp_path: Path) -> None:
    assert run_step("Install Hotseat", {**job, "VERSION": "9.9.9"}, tmp_path).returncode != 0


def run_with(arguments: str, tmp_path: Path) -> tuple[int, list[str]]:
    """Runs the step of the action with a program that prints its arguments. Returns exit code and arguments."""
    program = tmp_path / "hotseat"
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ARGUMENTS": arguments, "REPORTS": str(tmp_path / "reports")}
    step = REPOSITORY / "packaging/action/run"
    done = subprocess.run([step], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0 or done.stderr
    return done.returncode, done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    "arguments",
    ["--exclude-tag 'slow' 'unclosed --fail-on-skip", '-k "a\nb" --fail-on-skip', "--run don't --forbid-only", "'"],
)
def test_the_action_runs_nothing_after_an_unmatched_quote(arguments: str, tmp_path: Path) -> None:
    code, ran_with = run_with(arguments, tmp_path)
    assert code != 0 and ran_with == []


def test_the_action_passes_every_argument(tmp_path: Path) -> None:
    code, ran_with = run_with("tests --run 'a b' \\'c \"it's\"\n--exclude-tag '' ''", tmp_path)
    assert (code, ran_with[0], ran_with[1:7:2]) == (0, "test", ["-o", "-o", "-o"])
    assert (code, ran_with[7:]) == (0, ["tests", "--run", "a b", "'c", "it's", "--exclude-tag", "", ""])


@pytest.mark.parametrize("path", ["action.yml", ".github/workflows/release.yml"])
def test_actions_are_pinned_by_digest(path: str) -> None:
    used = re.findall(r"uses: (\S+)( # v\S+)?", (REPOSITORY / path).read_text())
    assert used
    assert [name for name, comment in used if not re.search(r"@[0-9a-f]{40}$", name) or not comment] == []


def test_the_workflow_builds_what_the_action_and_npm_need() -> None:
    workflow = load(".github/workflows/release.yml")
    targets = {entry["target"] for entry in workflow["jobs"]["packages"]["strategy"]["matrix"]["include"]}
    assert set(re.findall(r"target=(\S+)", (REPOSITORY / "packaging/action/install").read_text())) == targets
    assert len(targets) == len(json.loads((REPOSITORY / "packaging/npm/platforms.json").read_text()))
    for command in re.findall(r"run: (packaging/\S+)", (REPOSITORY / ".github/workflows/release.yml").read_text()):
        assert os.access(REPOSITORY / command, os.X_OK)


def test_steps_are_valid_shell() -> None:
    workflow = load(".github/workflows/release.yml")
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]] + load("action.yml")["runs"]["steps"]
    scripts = [re.sub(r"\$\{\{.*?\}\}", "x", step["run"]) for step in steps if "run" in step]
    assert len(scripts) > 5
    for script in scripts:
        subprocess.run(["bash", "-n", "-c", script], check=True)


# The image


class Agent(BaseHTTPRequestHandler):
    """Answers every chat completion with one sentence."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "Good morning"}
        body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def image_root(folder: Path, program: Path, certificates: Path) -> Path:
    """The files of the image: what the last stage of the Dockerfile copies."""
    root = folder / "root"
    text = (REPOSITORY / "packaging/Dockerfile").read_text()
    assert "FROM scratch" in text
    sources = {"hotseat-${TARGETARCH}": program, "/etc/ssl/certs/ca-certificates.crt": certificates}
    for source, destination in re.findall(r"^COPY (?:--\S+ )?(\S+) (\S+)$", text.split("FROM scratch")[1], re.M):
        path = root / destination.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if source in sources:
            shutil.copy(sources[source], path)
        else:
            path.mkdir()
    assert f'ENTRYPOINT ["{PROGRAM_IN_IMAGE}"]' in text
    return root


PROGRAM_IN_IMAGE = "/usr/local/bin/hotseat"


@pytest.mark.skipif(not IS_STATIC, reason="the program is not static")
@pytest.mark.skipif(os.geteuid() != 0, reason="changing the root folder needs root")
def test_the_image_runs_and_trusts_its_certificates(archive: Path, tmp_path: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        + ["-addext", "basicConstraints=critical,CA:FALSE"]
        + ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server = HTTPServer(("127.0.0.1", 0), Agent)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    root = image_root(tmp_path, archive / "hotseat", tmp_path / "cert.pem")
    url = f"https://127.0.0.1:{server.server_address[1]}/v1"
    (root / "work/hotseat.yaml").write_text(f"target: {{ type: openai, base_url: '{url}', model: m, stream: false }}\n")
    (root / "work/a.test.yaml").write_text(
        "name: a\nturns: [{ user: hello, assert: { text: { must_match: Good } } }]\n"
    )

    # The environment is empty, and so is its PATH.
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
    assert chroot is not None

    def run() -> subprocess.CompletedProcess[str]:
        command = [chroot, str(root), PROGRAM_IN_IMAGE, "test", "--config", "/work/hotseat.yaml", "/work/a.test.yaml"]
        return subprocess.run([*command, "-o", "/work/junit.xml"], env={}, capture_output=True, text=True, timeout=60)

    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert (root / "work/junit.xml").is_file() and (root / "work/.hotseat/runs.db").is_file()
    (root / "etc/ssl/certs/ca-certificates.crt").unlink()
    done = run()
    assert done.returncode != 0, "without the certificate the agent is not trusted"
    server.shutdown()
