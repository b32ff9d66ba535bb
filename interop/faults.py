"""Breaks the tool calls of agents of four frameworks, and compares what each does with `faults/expected.txt`.

usage: faults.py HOTSEAT NAME=PYTHON... [--write]

Each agent is driven by `hotseat test --faults sweep` with a scripted model, against a mock and against a proxy of a
real server over HTTP; without a fault also against a proxy of a real server on standard input and output. The last line is `PASSED FAILED`, two numbers: combinations that ended as expected, and others.
`--write` replaces the table by what the agents do now.
"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE / "faults" / "expected.txt"
SERVERS = ["mock", "proxy"]
# `stale` needs an earlier call, so it is swept with two orders.
SUITES = {"pays.test.yaml": None, "pays_two.test.yaml": "stale"}
KINDS = [
    "delay", "slow_stream", "timeout", "http", "rpc_error", "is_error", "disconnect", "lost_answer",
    "empty", "garbage", "truncate", "schema_violation", "huge", "duplicate_answer", "stale",
]


def project_file(server):
    """The project file; `server` replaces the mock."""
    text = (HERE / "faults" / "hotseat.yaml").read_text(encoding="utf-8")
    return text if server is None else text[: text.index("\nmcp:")] + f"\nmcp: {{ bank: {server} }}\n"


def started_server(python):
    """Starts the real server over HTTP, and returns the process and its URL."""
    port = free_port()
    process = subprocess.Popen(
        [python, str(HERE / "faults" / "server.py"), port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(300):
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", int(port))) == 0:
                return process, f"http://127.0.0.1:{port}/mcp"
        time.sleep(0.1)
    raise SystemExit("the real server does not listen")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def run(agent, server, arguments):
    """Runs `hotseat test` with an agent and a server. Returns its report and its output."""
    variables = {f"{name.upper().replace('-', '_')}_PYTHON": path for name, path in pythons.items()}
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        shutil.copytree(HERE / "faults", project, dirs_exist_ok=True)
        (project / "hotseat.yaml").write_text(project_file(server), encoding="utf-8")
        command = [hotseat, "test", "-n", agent, *arguments, "-o", "report.json", "--no-store", "--parallel", "4"]
        environment = {**os.environ, **variables, "PORT": free_port(), "PYTHONDONTWRITEBYTECODE": "1"}
        ended = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=600)
        try:
            report = json.loads((project / "report.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            report = {}
        return report, ended.stdout + ended.stderr


def sweep(agent, server):
    """Returns what an agent does after each fault: the outcome, and the number of further calls."""
    found = {}
    for suite, only in SUITES.items():
        kinds = [only] if only else [kind for kind in KINDS if kind not in SUITES.values()]
        report, output = run(agent, server, [suite, "--faults", "sweep", "--fault-kinds", ",".join(kinds)])
        rows = report.get("fault_sweep", {}).get("rows", [])
        if sorted(row["fault"] for row in rows) != sorted(kinds):
            print(output)
            raise SystemExit(f"{agent}: {len(rows)} conversations with a fault, not {len(kinds)}")
        for row in rows:
            again = f"+{row['calls_again']}" if row["calls_again"] else ""
            found[row["fault"]] = row["outcome"] + again
    return found


def read_table():
    """Expected outcomes by server, agent and fault."""
    lines = [line.split() for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    agents = lines[0][2:]
    return {(row[0], agent, row[1]): outcome for row in lines[1:] if row for agent, outcome in zip(agents, row[2:])}


def write_table(found, agents):
    head = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    rows = [["server", "fault", *agents]]
    rows += [[server, kind, *(found[server, agent, kind] for agent in agents)] for server in SERVERS for kind in KINDS]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    TABLE.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")


def main():
    process, url = started_server(pythons["openai-agents"])
    servers = {"mock": None, "proxy": f"{{ type: proxy, url: '{url}' }}"}
    program = f"{{ type: proxy, command: [{json.dumps(pythons['openai-agents'])}, {json.dumps(str(HERE / 'faults' / 'server.py'))}] }}"
    found, passed, failed = {}, 0, 0
    try:
        for agent in pythons:
            for name, server in servers.items():
                for kind, outcome in sweep(agent, server).items():
                    found[name, agent, kind] = outcome
            report, output = run(agent, program, ["pays_two.test.yaml"])
            is_passed = report.get("summary", {}).get("passed") == 1
            print(f"  {'ok  ' if is_passed else 'FAIL'} {agent} with a proxy of a program" + ("" if is_passed else "\n" + output))
            passed, failed = passed + is_passed, failed + (not is_passed)
    finally:
        process.terminate()
        process.wait(20)
    if "--write" in sys.argv:
        write_table(found, list(pythons))
    expected = read_table()
    for agent in pythons:
        for server in SERVERS:
            wrong = [
                f"       {kind}: {found[server, agent, kind]}, expected {expected.get((server, agent, kind))}"
                for kind in KINDS
                if found[server, agent, kind] != expected.get((server, agent, kind))
            ]
            passed += len(KINDS) - len(wrong)
            failed += len(wrong)
            print("\n".join([f"  {'FAIL' if wrong else 'ok  '} {agent} with a {server} ({len(KINDS)} faults)", *wrong]))
    print(passed, failed)


hotseat = sys.argv[1]
pythons = dict(word.split("=", 1) for word in sys.argv[2:] if re.match(r"[\w-]+=", word))
main()
