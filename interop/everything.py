"""Proxies the reference server of MCP (`@modelcontextprotocol/server-everything`) with `hotseat test`.

usage: everything.py HOTSEAT NODE PYTHON SERVER

The server runs as a program, then over HTTP, and then not at all: its recording answers. The agent uses the official Python SDK.
The last line is `PASSED FAILED`, two numbers: cases that passed, and others.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
hotseat, node, python, server = sys.argv[1:]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def started(port):
    """Starts the server over HTTP and waits until it listens."""
    command = [node, server, "streamableHttp"]
    environment = {**os.environ, "PORT": port}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", int(port))) == 0:
                return process
        time.sleep(0.1)
    process.kill()
    raise SystemExit("the server does not listen")


def check(project, name, definition):
    """Runs the suite with a definition of the server. Returns the numbers of passed and other cases."""
    target = {"type": "command", "command": [python, "agent.py"], "env": {"SERVER": "${MCP.everything.url}"}}
    config = {"target": target, "mcp": {"everything": definition}}
    (project / "hotseat.yaml").write_text(json.dumps(config), encoding="utf-8")
    report = project / "report.json"
    report.unlink(missing_ok=True)
    command = [hotseat, "test", "everything.test.yaml", "-o", "report.json", "--no-store", "--parallel", "4"]
    ended = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)
    results = json.loads(report.read_text(encoding="utf-8"))["results"] if report.exists() else []
    failed = [result for result in results if result["status"] != "passed"]
    if failed or not results:
        print(f"  FAIL {name}")
        print("\n".join("    | " + line[:300] for line in (ended.stdout + ended.stderr).splitlines()))
        return len(results) - len(failed), max(len(failed), 1)
    print(f"  ok   {name} ({len(results)})")
    return len(results), 0


def main():
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        shutil.copytree(HERE / "everything", project, dirs_exist_ok=True)
        counts = [check(project, "as a program", {"type": "proxy", "command": [node, server, "stdio"]})]
        port = free_port()
        process = started(port)
        try:
            proxy = {"type": "proxy", "url": f"http://127.0.0.1:{port}/mcp", "record": "everything.mcp.jsonl"}
            counts.append(check(project, "over HTTP", proxy))
        finally:
            process.kill()
            process.wait()
        counts.append(check(project, "from its recording", {"type": "replay", "from": "everything.mcp.jsonl"}))
    print(sum(passed for passed, _ in counts), sum(failed for _, failed in counts))


main()
