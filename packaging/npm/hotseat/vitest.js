// Declares the cases of suites as vitest tests.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, describe, test } from "vitest";
import { findBinary } from "./binary.js";

// An interrupted run may execute `after` hooks for ten seconds.
const INTERRUPT_MS = 15_000;
// Pause between two interrupts, so that they count as two.
const INTERRUPT_PAUSE_MS = 200;

export function suites({ paths = [], cwd = process.cwd(), args = [], env = {} } = {}) {
  const folder = resolve(cwd);
  const environment = { ...process.env, ...env };
  const files = groupByFile(listCases(folder, paths, environment));
  describe("hotseat", () => {
    let run;
    afterAll(() => run?.finish(), 0);
    for (const [file, cases] of files) {
      describe(file, () => {
        for (const entry of cases) {
          test(title(entry), { timeout: 0 }, async (context) => {
            run ??= new Run(folder, selectedCases(context.task.suite.suite, files), args, environment);
            const result = await run.result(entry);
            if (result.status === "skipped") {
              context.skip(result.skip_reason ?? "skipped");
            } else if (result.status !== "passed") {
              throw caseError(result, folder);
            }
          });
        }
      });
    }
  });
}

// A process `hotseat test --json`, and the results that it has printed so far.
class Run {
  constructor(folder, cases, args, environment) {
    this.pending = new Map(cases.map((entry) => [key(entry), waiter()]));
    this.errors = [];
    this.stopped = false;
    this.directory = mkdtempSync(join(tmpdir(), "hotseat-"));
    const list = join(this.directory, "cases.jsonl");
    writeFileSync(list, cases.map((entry) => `${JSON.stringify({ suite: entry.suite, id: entry.id })}\n`).join(""));
    const files = [...new Set(cases.map((entry) => entry.file))];
    this.child = spawn(findBinary(), ["test", "--json", "--cases", list, ...args, "--", ...files], {
      cwd: folder,
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stderr = "";
    this.child.stderr.setEncoding("utf8").on("data", (text) => {
      stderr = (stderr + text).slice(-4000);
    });
    createInterface({ input: this.child.stdout }).on("line", (line) => this.read(line));
    this.ended = new Promise((resolve) => {
      this.child.on("error", (error) => {
        this.errors.push(`cannot run hotseat: ${error.message}`);
        resolve(this.end(null, null, ""));
      });
      this.child.on("close", (code, signal) => resolve(this.end(code, signal, stderr)));
    });
    this.exitListener = () => this.child.kill("SIGINT");
    process.on("exit", this.exitListener);
  }

  read(line) {
    let event;
    try {
      event = JSON.parse(line);
    } catch {
      this.errors.push(`hotseat printed a line that is no event: ${line}`);
      return;
    }
    if (event.type === "result") {
      this.pending.get(key(event))?.resolve(event);
    } else if (event.type === "error") {
      const place = [event.file, event.line, event.column].filter((part) => part !== undefined).join(":");
      this.errors.push(event.message + (place && `\n  --> ${place}`) + (event.help ? `\n  = help: ${event.help}` : ""));
    } else if (event.type === "summary") {
      this.summary = event;
    }
  }

  // Ends the run: cases that have no result fail.
  end(code, signal, stderr) {
    process.off("exit", this.exitListener);
    rmSync(this.directory, { recursive: true, force: true });
    if (!this.summary) {
      this.errors.push(`hotseat ended early: ${signal ?? `exit code ${code}`}\n${stderr}`.trim());
    }
    this.code = code;
    const message = this.errors.join("\n") || `hotseat ended with exit code ${code}`;
    for (const waiting of this.pending.values()) {
      waiting.reject(new Error(`no result: ${message}`));
    }
    return message;
  }

  // The result of a case.
  result(entry) {
    const waiting = this.pending.get(key(entry));
    return waiting ? waiting.promise : Promise.reject(new Error("the case was not selected when the run started"));
  }

  // Waits for the end of the process. Stops it if cases have no result, since nothing waits for them any more.
  async finish() {
    const complete = [...this.pending.values()].every((waiting) => waiting.settled);
    if (!complete) {
      this.stopped = true;
      this.child.kill("SIGINT");
      await Promise.race([this.ended, sleep(INTERRUPT_PAUSE_MS)]);
      this.child.kill("SIGINT");
      await Promise.race([this.ended, sleep(INTERRUPT_MS)]);
      this.child.kill("SIGKILL");
    }
    let message = await this.ended;
    const failures = this.code === 1 ? (this.summary?.sweep_failures ?? 0) : 0;
    if (failures > 0) {
      message = `the sweep of faults failed: ${failures} ${failures === 1 ? "conversation" : "conversations"} with a fault`;
    }
    const shown = this.code === 0 || (this.code === 1 && failures === 0 && this.summary?.failed > 0);
    if (!this.stopped && !shown) {
      throw new Error(message);
    }
  }
}

// Reads the cases. A file that cannot be read is an error of the test file.
function listCases(folder, paths, environment) {
  const done = spawnSync(findBinary(), ["list", "--json", "--", ...paths], {
    cwd: folder,
    env: environment,
    encoding: "utf8",
    maxBuffer: Infinity,
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (done.status !== 0) {
    throw done.error ?? new Error(done.stderr.trim() || `\`hotseat list\` ended with exit code ${done.status}`);
  }
  return done.stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

function groupByFile(cases) {
  const files = new Map();
  for (const entry of cases) {
    files.set(entry.file, [...(files.get(entry.file) ?? []), entry]);
  }
  return files;
}

// The cases whose tests no filter excludes.
function selectedCases(suite, files) {
  const found = [];
  for (const file of suite.tasks) {
    const cases = files.get(file.name) ?? [];
    file.tasks?.forEach((task, index) => {
      if (task.mode !== "skip") {
        found.push(cases[index]);
      }
    });
  }
  return found;
}

// The error of a failed case: its text, and its place for the code frame.
function caseError(result, folder) {
  const error = new Error(result.text ?? result.error ?? "the case failed");
  error.name = result.failure?.fault === "agent" ? "AssertionError" : `Error of the ${result.failure?.fault ?? "run"}`;
  error.stack = `${error.name}: ${error.message}\n    at ${join(folder, result.file)}:${result.line}:1`;
  return error;
}

function title(entry) {
  return entry.id === entry.name ? entry.id : `${entry.id} ${entry.name}`;
}

function key(entry) {
  return `${entry.file}\n${entry.id}`;
}

// A promise with its functions. A rejection that nothing awaits is no error.
function waiter() {
  const waiting = { settled: false };
  waiting.promise = new Promise((resolve, reject) => {
    waiting.resolve = (value) => {
      waiting.settled = true;
      resolve(value);
    };
    waiting.reject = (error) => {
      waiting.settled = true;
      reject(error);
    };
  });
  waiting.promise.catch(() => {});
  return waiting;
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
