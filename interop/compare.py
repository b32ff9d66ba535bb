"""Tests `hotseat compare` on real conversations: a language model as the agent of an airline, 50 tasks, each
attempted twice (tau-bench; see transcripts.py for the location of the data).

The two trials become two runs of the same agent with the same checks, so:
- comparing them must report no significant difference and exit with code 0;
- attempts are randomly split between two runs many times: the rate of significant differences is shown next to
    the documented error rate and must not exceed it;
- a run that is deliberately degraded (every other conversation loses one argument of its first call with arguments)
    is detected, with the turn, call and argument of each change.

    compare.py HOTSEAT [SPLITS]

Prints a line for each question, then `PASSED FAILED`.
"""
import copy
import json
import random
import subprocess
import sys
import tempfile
from math import sqrt
from pathlib import Path

import airline

CONFIDENCE = 0.95
# Questions about the conversations, and the import options of their suites.
QUESTIONS = {
    "all expected calls": ["--expect", "calls"],
    "these, and no other that writes": ["--expect", "calls", "--writes", ",".join(airline.WRITES)],
}


class Compare:
    def __init__(self, hotseat, folder):
        self.hotseat, self.folder = hotseat, folder
        self.passed = self.failed = self.runs = 0

    def run(self, *arguments, fine=(0, 1)):
        run = subprocess.run([self.hotseat, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True)
        if run.returncode not in fine:
            sys.exit(f"hotseat {' '.join(map(str, arguments))} failed ({run.returncode})\n{run.stdout[-500:]}{run.stderr}")
        return run

    def report(self, conversations, flags):
        """Report of a run of these conversations."""
        self.runs += 1
        folder = self.folder / str(self.runs)
        data = self.folder / "airline.json"
        # Without the trial number both runs have the same cases.
        data.write_text(json.dumps([{k: v for k, v in one.items() if k != "trial"} for one in conversations]))
        self.run("import", "openai-transcripts", data, "-o", folder, *flags, fine=(0,))
        report = folder / "report.json"
        self.run("test", "-n", f"replay:{folder}/recordings", folder / "airline.test.jsonl", "-o", report)
        return json.loads(report.read_text())

    def compare(self, before, after):
        """Output of the comparison, and the exit code."""
        for name, report in (("before", before), ("after", after)):
            (self.folder / f"{name}.json").write_text(json.dumps(report))
        run = self.run("compare", "before.json", "after.json", "--json", "--other-inputs", "--confidence", CONFIDENCE)
        found = json.loads(run.stdout)
        if found["exit_code"] != run.returncode:
            sys.exit(f"the exit code is {run.returncode}, and the report says {found['exit_code']}")
        return found, run.returncode

    def says(self, question, wrong, more=""):
        print(f"  {'FAIL' if wrong else 'ok  '} {question}{more}")
        for line in wrong:
            print(f"    {line}")
        self.passed, self.failed = self.passed + (not wrong), self.failed + bool(wrong)


def claims(found):
    """All significant differences of a comparison."""
    rate = found["pass_rate"]["claim"]
    listed = found["cases"] + found["evaluations"] + found["figures"] + found["tools"]
    all_of_them = [("pass rate", rate)] + [(one.get("id") or one.get("name") or one.get("check"), one["claim"]) for one in listed]
    return [f"{name}: {claim}" for name, claim in all_of_them if claim != "nothing"]


def slim(report):
    """The report without texts; only calls are compared."""
    report = copy.deepcopy(report)
    for result in report["results"]:
        result["turns"] = [
            {
                "turn": turn["turn"],
                "duration_ms": turn["duration_ms"],
                "tool_calls": [{"name": call["name"]} for call in turn["tool_calls"]],
            }
            for turn in result["turns"]
        ]
        result.pop("assertions"), result.pop("input", None), result.pop("output", None)
    return report


def shared_out(chance, one, other):
    """Two runs with the two attempts of each case assigned at random."""
    one, other = ({**report, "results": list(report["results"])} for report in (one, other))
    for place in range(len(one["results"])):
        if chance.random() < 0.5:
            one["results"][place], other["results"][place] = other["results"][place], one["results"][place]
    return one, other


def drawn(chance, one, other, runs):
    """Two runs with this number of attempts per case, drawn from both trials, as if from the same agent."""
    def run():
        results = []
        for results_of_case in zip(one["results"], other["results"]):
            details = [
                {**{k: v for k, v in chance.choice(results_of_case).items() if k != "id"}, "run": number + 1}
                for number in range(runs)
            ]
            passed = all(detail["status"] == "passed" for detail in details)
            first = results_of_case[0]
            results.append(
                {**first, "status": "passed" if passed else "failed", "failure": None, "run_details": details}
            )
        return {**one, "results": results}

    return run(), run()


def worse(conversations):
    """Degrades every other conversation by removing an argument of its first expected call; returns the changes."""
    changed, places = copy.deepcopy(conversations), {}
    for conversation in changed[::2]:
        expected = {action["name"] for action in conversation["info"]["task"]["actions"]}
        turn = call_of_turn = 0
        for message in conversation["traj"]:
            if message["role"] == "user":
                turn, call_of_turn = turn + 1, 0
            for call in message.get("tool_calls") or []:
                call_of_turn += 1
                arguments = json.loads(call["function"]["arguments"])
                if call["function"]["name"] in expected and arguments and conversation["task_id"] not in places:
                    lost = list(arguments)[-1]
                    del arguments[lost]
                    call["function"]["arguments"] = json.dumps(arguments)
                    places[conversation["task_id"]] = (turn, call_of_turn, lost)
    return changed, places


def main():
    hotseat, splits = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 300
    data, wrong = airline.data_file()
    if wrong:
        sys.exit(wrong)
    if data is None:
        print("  skipped: no conversations found (HOTSEAT_TRANSCRIPTS names their file)")
        print("0 0")
        return
    held = json.loads(data.read_text(encoding="utf-8"))
    trials = [sorted((one for one in held if one["trial"] == trial), key=lambda one: one["task_id"]) for trial in (0, 1)]
    nominal = 1 - CONFIDENCE
    # Three standard deviations of the count.
    limit = lambda chance: chance + 3 * sqrt(chance * (1 - chance) / splits)
    with tempfile.TemporaryDirectory() as folder:
        run = Compare(hotseat, Path(folder))
        for question, flags in QUESTIONS.items():
            one, other = (run.report(trial, flags) for trial in trials)
            count = [sum(result["status"] == "passed" for result in report["results"]) for report in (one, other)]
            found, code = run.compare(one, other)
            changed = sum(case["change"] != "same" for case in found["cases"])
            wrong = claims(found) + ([f"the exit code is {code}"] if code else [])
            wrong += [] if found["cases_compared"] == 50 else [f"{found['cases_compared']} cases are compared"]
            wrong += [] if changed > 5 else ["the trials hardly differ, so this proves little"]
            more = f": {count[0]} and {count[1]} of 50 pass, {changed} cases differ, p = {found['pass_rate']['p']:.2f}"
            run.says(f"two trials, {question}, nothing is claimed", wrong, more)

            one, other = slim(one), slim(other)
            ways = {
                "shared out at random": lambda chance: shared_out(chance, one, other),
                "5 attempts a case, drawn at random": lambda chance: drawn(chance, one, other, 5),
            }
            for way, split in ways.items():
                chance = random.Random(2026)
                alarms = failures = 0
                for _ in range(splits):
                    found, code = run.compare(*split(chance))
                    alarms, failures = alarms + bool(claims(found)), failures + (code == 1)
                wrong = [] if alarms / splits <= limit(nominal) else ["more than promised"]
                wrong += [] if failures / splits <= limit(nominal / 2) else ["fails more often than promised"]
                more = (
                    f": anything is claimed in {alarms} of {splits} ({alarms / splits:.1%}, promised: at most {nominal:.1%}),"
                    f" exit code 1 in {failures} ({failures / splits:.1%}, at most {nominal / 2:.1%})"
                )
                run.says(f"{way}, {question}", wrong, more)

        flags = QUESTIONS["all expected calls"]
        broken, places = worse(trials[1])
        one, other = run.report(trials[1], flags), run.report(broken, flags)
        found, code = run.compare(one, other)
        wrong = [] if code == 1 and found["pass_rate"]["claim"] == "worse" else [f"the exit code is {code}"]
        for case in found["cases"]:
            if case["change"] != "newly_fails":
                continue
            turn, call, lost = places[int(case["id"].removeprefix("task-"))]
            parting = case["parting"]
            arguments = [parting[side]["does"].get("arguments", {}) for side in ("before", "after")]
            at = (parting["turn"], parting["call"], sorted(set(arguments[0]) - set(arguments[1])))
            if at != (turn, call, [lost]):
                wrong.append(f"{case['id']}: changed at {(turn, call, [lost])}, and they are said to part at {at}")
        more = f": {found['newly_failing']} cases newly fail, p = {found['pass_rate']['p']:.4f}"
        run.says("a run that is made worse is found, and where", wrong, more)
    print(run.passed, run.failed)


main()
