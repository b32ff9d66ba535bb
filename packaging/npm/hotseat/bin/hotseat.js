#!/usr/bin/env node
// Runs the program of this platform. Arguments, streams, signals and the exit code pass through.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { findBinary } from "../binary.js";

// A terminal and npm may both deliver one Ctrl-C. The program counts them: the second cancels conversations.
const REPEAT_MS = 100;

let command;
try {
  command = findBinary();
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(3);
}

// In a process group of its own, the program receives signals only from here.
const child = spawn(command, process.argv.slice(2), {
  stdio: "inherit",
  detached: process.platform !== "win32",
});

const received = {};
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => {
    const repeated = Date.now() - (received[signal] ?? -Infinity) < REPEAT_MS;
    received[signal] = Date.now();
    if (!repeated) {
      child.kill(signal);
    }
  });
}
process.on("SIGTSTP", () => {
  child.kill("SIGSTOP");
  process.kill(process.pid, "SIGSTOP");
});
process.on("SIGCONT", () => child.kill("SIGCONT"));

child.on("error", (error) => {
  console.error(`error: cannot run ${command}: ${error.message}`);
  process.exit(3);
});
child.on("exit", (code, signal) => {
  // Like a shell, for a program that a signal ended.
  process.exit(code ?? 128 + constants.signals[signal]);
});
