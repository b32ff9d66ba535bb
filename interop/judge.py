"""Verifies a run of hotseat by its exit code and its JSON report.

    judge.py pass EXIT REPORT SUITE...   every case of the suites must be present and passed
    judge.py fail EXIT REPORT SUITE      the only case of the suite must fail as stated in the head of the suite

The head of a failing suite has two comments: `# kind: K`, the kind of the failure, and `# names: A, B`, words that
the failure must contain. Prints one line per incorrect case, then `PASSED FAILED`, two numbers.
"""
import json
import re
import sys
from pathlib import Path


def main():
    expectation, exit_code, report_path, *suites = sys.argv[1:]
    texts = [Path(suite).read_text(encoding="utf-8") for suite in suites]
    try:
        report = json.loads(Path(report_path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        report = {"results": [], "summary": {}}
        print(f"    no usable report (exit code {exit_code}): {error}")
    if expectation == "pass":
        wrong, total = not_passed(int(exit_code), report, texts)
    else:
        wrong, total = not_failed(int(exit_code), report, texts[0])
    for line in wrong:
        print(f"    {line}")
    failed = min(len(wrong), total)
    print(f"{total - failed} {failed}")


def not_passed(exit_code, report, texts):
    """Errors of a run that must pass, and its number of cases."""
    # Every case has exactly one name at the start of a line.
    names = [unquoted(name) for text in texts for name in re.findall(r"^name:\s*(.+?)\s*$", text, re.MULTILINE)]
    results = list(report["results"])
    wrong = []
    for name in names:
        result = next((result for result in results if result["name"] == name), None)
        if result is None:
            wrong.append(f"{name}: not in the report")
            continue
        results.remove(result)
        if result["status"] != "passed":
            wrong.append(f"{name}: {result['status']}: {words_of(result)}")
    wrong += [f"{result['name']}: in the report, but in no suite" for result in results]
    if not wrong:
        summary = report["summary"]
        counts = {key: summary.get(key) for key in ("total", "passed", "failed", "skipped", "errors")}
        if counts != {"total": len(names), "passed": len(names), "failed": 0, "skipped": 0, "errors": 0}:
            wrong.append(f"all passed, but the summary is {counts}")
        if exit_code != 0:
            wrong.append(f"all passed, but the exit code is {exit_code}")
    return wrong, len(names)


def not_failed(exit_code, report, text):
    """Errors of a run whose only case must fail, and 1."""
    kind = head(text, "kind")
    names = [name.strip() for name in head(text, "names").split(",")]
    results = report["results"]
    if len(results) != 1:
        return [f"{len(results)} results instead of one (exit code {exit_code})"], 1
    result = results[0]
    wrong = []
    if result["status"] != "failed":
        wrong.append(f"{result['status']}, but has to fail")
    else:
        if result["failure"]["kind"] != kind:
            wrong.append(f"kind {result['failure']['kind']} instead of {kind}: {words_of(result)}")
        missing = [name for name in names if name not in json.dumps(result["failure"], ensure_ascii=False)]
        if missing:
            wrong.append(f"the failure does not name {', '.join(missing)}: {words_of(result)}")
    if exit_code != 1:
        wrong.append(f"exit code {exit_code} instead of 1")
    return ["; ".join(wrong)] if wrong else [], 1


def head(text, key):
    return re.search(rf"^# {key}: (.+)$", text, re.MULTILINE).group(1)


def unquoted(name):
    return name[1:-1] if name[0] == name[-1] and name[0] in "'\"" else name


def words_of(result):
    failure = result.get("failure") or {}
    return f"{failure.get('kind')}: {failure.get('message')}"


main()
