"""Imports and replays real conversations and compares the verdicts of Hotseat with facts computed from the data.

    interop/transcripts.py HOTSEAT

The data is from tau-bench: conversations of a language model with a simulated customer of an airline, 14 tools, and the
expected calls of each task (github.com/sierra-research/tau-bench, historical_trajectories). It is not part of
this repository: HOTSEAT_TRANSCRIPTS names the file; otherwise ../shared/data/tau-bench-airline/gpt-4o-trials-0-1.json,
relative to the checkout, is used if it exists; otherwise the check is skipped with a message.

This script computes facts directly from the data, without any code of Hotseat:
- conversations that made all expected calls with those arguments, in any order;
- those that made them in order, and in reverse order (in this data the first equals any order);
- those that called the writing tools exactly as expected;
- those with a message that contains both text and a tool call;
- those that called any writing tool.
Hotseat then imports the file and runs a suite for each question on the recordings. Every verdict on every
conversation must match the facts. Prints a line for each question, then `PASSED FAILED`.
"""
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import airline

# Facts computed from the data alone.


def key(name, arguments):
    """A hashable form of a call."""
    return name, json.dumps(arguments, sort_keys=True)


def expected(conversation):
    return [key(call["name"], call["kwargs"]) for call in conversation["info"]["task"]["actions"]]


def made(conversation):
    return [
        key(call["function"]["name"], json.loads(call["function"]["arguments"]))
        for message in conversation["traj"]
        if message["role"] == "assistant"
        for call in message.get("tool_calls") or []
    ]


def all_expected(conversation):
    return not Counter(expected(conversation)) - Counter(made(conversation))


def in_order(wanted, calls):
    calls = iter(calls)
    return all(any(one == call for call in calls) for one in wanted)


def all_in_order(conversation):
    return in_order(expected(conversation), made(conversation))


def all_backwards(conversation):
    return in_order(expected(conversation)[::-1], made(conversation))


def writes_as_expected(conversation):
    writes = lambda calls: Counter(call for call in calls if call[0] in airline.WRITES)
    return writes(made(conversation)) == writes(expected(conversation))


def silent_beside_calls(conversation):
    return not any(
        message.get("tool_calls") and (message.get("content") or "").strip()
        for message in conversation["traj"]
        if message["role"] == "assistant"
    )


def never_writes(conversation):
    return not any(name in airline.WRITES for name, _ in made(conversation))


def turns(conversation):
    """User texts with the answers of the agent."""
    roles = [message["role"] for message in conversation["traj"]]
    answered = len(roles) - 1 - roles[::-1].index("user") < len(roles) - 1
    said = [message["content"] for message in conversation["traj"] if message["role"] == "user"]
    return said if answered else said[:-1]


# Verdicts, from Hotseat.


class Runs:
    def __init__(self, hotseat, data, folder):
        self.hotseat, self.data, self.folder = hotseat, data, folder

    def imported(self, name, *flags):
        """Imports the data; returns the paths of the suite and the recordings."""
        folder = self.folder / name
        command = [self.hotseat, "import", "openai-transcripts", str(self.data), "-o", str(folder), *flags]
        run = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"import failed ({run.returncode})\n{run.stdout}{run.stderr}")
        return folder / f"{self.data.stem}.test.jsonl", folder / "recordings"

    def verdicts(self, suite, recordings):
        """Verdict of each case: True, False, or another status as text."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        command = [self.hotseat, "test", "-n", f"replay:{recordings}", str(suite), "-o", str(report)]
        run = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if run.returncode not in (0, 1) or not report.is_file():
            sys.exit(f"the run failed ({run.returncode})\n{run.stdout}{run.stderr}")
        verdicts, inputs = {}, {}
        for result in json.loads(report.read_text(encoding="utf-8"))["results"]:
            kind = (result.get("failure") or {}).get("kind")
            known = {("passed", None): True, ("failed", "assertion"): False}
            verdicts[result["id"]] = known.get((result["status"], kind), f"{result['status']}: {kind}")
            inputs[result["id"]] = [turn["input"] for turn in result["turns"]]
        return verdicts, inputs

    def changed(self, name, suite, change):
        """The suite with its assertions replaced by `change`."""
        path = self.folder / f"{name}.test.jsonl"
        with path.open("w", encoding="utf-8") as out:
            for line in suite.read_text(encoding="utf-8").splitlines():
                case = json.loads(line)
                assertions = change(case.pop("assert", []))
                print(json.dumps({**case, **({"assert": assertions} if assertions else {})}), file=out)
        return path


def backwards(assertions):
    return [{**one, "calls": one["calls"][::-1]} for one in assertions]


def main():
    hotseat = sys.argv[1]
    data, wrong = airline.data_file()
    if wrong:
        sys.exit(wrong)
    if data is None:
        print("  skipped: no conversations found (HOTSEAT_TRANSCRIPTS names their file)")
        print("0 0")
        return
    conversations = {
        f"task-{one['task_id']}-trial-{one['trial']}": one for one in json.loads(data.read_text(encoding="utf-8"))
    }
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(hotseat, data, Path(folder))
        calls, recordings = runs.imported("calls", "--expect", "calls")
        order, _ = runs.imported("order", "--expect", "order", "--cases-only")
        writes, _ = runs.imported("writes", "--writes", ",".join(airline.WRITES), "--cases-only")
        contrary = runs.changed("contrary", order, backwards)
        beside = runs.changed("beside", calls, lambda _: [{"text": {"with_tool_calls": "forbid"}}])
        never = runs.changed("never", calls, lambda _: [{"tools": {"forbid": airline.WRITES}}])
        both = lambda one: all_expected(one) and writes_as_expected(one)
        questions = [
            ("all expected calls", calls, all_expected),
            ("all expected calls in order", order, all_in_order),
            ("all expected calls in the contrary order", contrary, all_backwards),
            ("all expected calls, and no other that writes", writes, both),
            ("no text beside calls", beside, silent_beside_calls),
            ("no tool that writes", never, never_writes),
        ]
        passed = failed = 0
        for name, suite, fact in questions:
            facts = {id: fact(one) for id, one in conversations.items()}
            verdicts, inputs = runs.verdicts(suite, recordings)
            wrong = [
                f"{id}: the data says {facts.get(id)}, Hotseat {verdicts.get(id)}"
                for id in {**facts, **verdicts}
                if facts.get(id) is not verdicts.get(id)
            ]
            wrong += [
                f"{id}: Hotseat held another conversation"
                for id, one in conversations.items()
                if inputs.get(id) != turns(one)
            ]
            # A question with the same answer for all conversations would prove little.
            if len(set(facts.values())) < 2:
                wrong.append("all conversations answer this alike")
            print(f"  {'FAIL' if wrong else 'ok  '} {name}: {sum(facts.values())} of {len(facts)} conversations")
            for line in wrong:
                print(f"    {line}")
            passed, failed = passed + (not wrong), failed + bool(wrong)
    print(passed, failed)


main()
