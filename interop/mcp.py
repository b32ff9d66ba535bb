"""Runs the official conformance suite of MCP against a mock of Hotseat, and through its proxies.

usage: mcp.py HOTSEAT NODE SUITE [REVISION...]

The last line is `PASSED FAILED`, two numbers: scenarios that ended as expected, and others.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEFINITION = HERE / "mcp" / "everything.json"
REVISIONS = ["2026-07-28", "2025-11-25"]

# Scenarios that are expected to fail, each with its reason. None of them is scored by the suite.
EXTENSION = "the mock does not have the extension io.modelcontextprotocol/tasks, which is optional"
EXPECTED_FAILURES = {
    f"tasks-{name}": EXTENSION
    for name in [
        "lifecycle",
        "capability-negotiation",
        "wire-fields",
        "request-state-removal",
        "mrtr-input",
        "request-headers",
        "dispatch-and-envelope",
        "required-task-error",
        "mrtr-composition",
    ]
}


def started(*arguments, env=None):
    """Starts `hotseat mcp serve` and returns the process and its URL."""
    process = subprocess.Popen(
        [hotseat, "mcp", "serve", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=env or os.environ,
        start_new_session=True,
    )
    line = process.stdout.readline()
    url = re.search(r"http://\S+", line)
    if not url:
        raise SystemExit(f"hotseat mcp serve printed {line!r}")
    return process, url.group()


def run_suite(url, revision):
    """Returns the results of all scenarios of a requirement set: name to (passed, total, text)."""
    with tempfile.TemporaryDirectory() as folder:
        command = [node, suite, "server", "--url", url, "--requirements", revision, "-o", folder]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return ended.stdout + ended.stderr


def scenarios(output):
    """Reads the summary of the suite: a line `✓ NAME: N passed, M failed` for each scenario."""
    found = {}
    for line in output.splitlines():
        match = re.match(r"\s*([✓✗~⚠]|\S)\s+([\w/-]+): (\d+) passed, (\d+) failed", line)
        if match:
            found[match.group(2)] = (int(match.group(3)), int(match.group(4)))
    return found


def check(endpoint, url, revision):
    output = run_suite(url, revision)
    results = scenarios(output)
    if not results:
        print(output)
        raise SystemExit("the suite printed no results")
    passed, failed = 0, 0
    for name, (_, broken) in results.items():
        reason = EXPECTED_FAILURES.get(name)
        if (broken > 0) == (reason is not None):
            passed += 1
            if reason:
                print(f"       expected failure {name}: {reason}")
        else:
            failed += 1
            print(f"  FAIL {endpoint} {revision} {name}: " + ("passes, but is listed as a failure" if reason else "failed"))
            at = output.find(name)
            print("\n".join("    | " + line for line in output[at : at + 3000].splitlines()[:25]))
    if not failed:
        print(f"  ok   {endpoint} {revision} ({passed} scenarios)")
    return passed, failed


hotseat, node, suite = sys.argv[1:4]
revisions = sys.argv[4:] or REVISIONS
servers = []
try:
    mock, mock_url = started(str(DEFINITION))
    servers.append(mock)
    over_http, over_http_url = started("--url", mock_url)
    servers.append(over_http)
    # The bridge is a server on standard input and output; its address has a place for the name of the server.
    address = mock_url.replace("/mcp/everything/", "/mcp/{server}/")
    over_stdio, over_stdio_url = started("--", hotseat, "mcp", "everything", env={**os.environ, "HOTSEAT_MCP": address})
    servers.append(over_stdio)
    total = [0, 0]
    for endpoint, url in [("mock", mock_url), ("proxy of a URL", over_http_url), ("proxy of a program", over_stdio_url)]:
        for revision in revisions:
            passed, failed = check(endpoint, url, revision)
            total[0] += passed
            total[1] += failed
    print(*total)
finally:
    for server in servers:
        server.terminate()
        server.wait(20)
