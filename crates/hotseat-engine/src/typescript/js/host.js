// Requests to the host, which performs all actions.

const at = () => new Error("").stack;

/** Ends a test whose case has ended or that is cancelled. The host knows the reason. */
class AssertionError extends Error {
  constructor(words) {
    super(words);
    this.name = "AssertionError";
  }
}

/** An error in the test code. */
class Misuse extends TypeError {
  constructor(words) {
    super(words);
    this.name = "TypeError";
  }
}

/** Reports an error to the host before throwing it, so that catching it does not hide it. */
function misuse(words) {
  if (judging) interrupted ??= words;
  else if (running !== null) hidden.ask({ do: "misuse", words, at: at(), known: turns.length });
  return new Misuse(words);
}

let running = null;

/** True while the host waits for a function of the test to judge. */
let judging = false;

/** Error message of a forbidden request by such a function. */
let interrupted;

/** Returns true if the test library has done the work and the host only records it: the script's clock keeps running. */
const isOwnWork = (command) => (command.do === "decide" ? command.asserted.every((one) => one.compared !== undefined) : ["path", "results"].includes(command.do));

/** Sends a command to the host, which may call a function before it replies. */
function ask(command) {
  if (judging) {
    throw misuse("a judging function cannot assert or send anything: it must only return true or false");
  }
  const asked = { ...command, known: turns.length };
  let reply = isOwnWork(command) ? hidden.tell(asked) : hidden.ask(asked);
  for (;;) {
    for (const turn of reply.turns ?? []) turns[turn.number - 1] = new Turn(turn);
    if (reply.topics !== undefined) follow(reply.topics);
    if (reply.call === undefined) break;
    reply = hidden.ask({ ...answer(reply), do: "answer", known: turns.length });
  }
  if (interrupted !== undefined) throw misuse(interrupted);
  if (reply.wrong !== undefined) throw new Misuse(reply.wrong);
  if (reply.ended !== undefined) throw new AssertionError(reply.ended);
  return reply.value;
}

/** Runs a judging function for the busy host. */
function answer({ call, first, turn }) {
  judging = true;
  try {
    const looked = turn === null || turn === undefined ? [] : turns.slice(first - 1, turn);
    const found = upTo(turn ?? 0, () => functions[call](looked.at(-1), conversation, looked));
    return { value: decided(found) };
  } catch (error) {
    return { error: thrownWords(error) };
  } finally {
    judging = false;
  }
}

const thrownWords = (error) => `${error?.name ?? "Error"}: ${error?.message ?? String(error)}`;

const functions = [];

/** Name by which the host calls a function. */
const reference = (name, work) => `${name} (function ${functions.push(work) - 1} of the test)`;

function within(what) {
  if (running === null) throw new Error(`${what} can only be used within \`it\``);
}

function outside(what) {
  if (running !== null) throw misuse(`${what} must be used outside of \`it\`, in the file or within \`describe\``);
}
