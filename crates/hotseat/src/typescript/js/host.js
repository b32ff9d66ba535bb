// The host: everything that happens is asked of it.

const at = () => new Error("").stack;

/** Ends a test whose case has ended, or that is to be given up. The host knows why. */
class AssertionError extends Error {
  constructor(words) {
    super(words);
    this.name = "AssertionError";
  }
}

let running = null;

/** Asks the host for something; it may call a function on the way. */
function ask(command) {
  let reply = hidden.ask({ ...command, known: turns.length });
  for (;;) {
    for (const turn of reply.turns ?? []) turns[turn.number - 1] = new Turn(turn);
    if (reply.topics !== undefined) follow(reply.topics);
    if (reply.call === undefined) break;
    reply = hidden.ask({ ...answer(reply), do: "answer", known: turns.length });
  }
  if (reply.wrong !== undefined) throw new TypeError(reply.wrong);
  if (reply.ended !== undefined) throw new AssertionError(reply.ended);
  return reply.value;
}

/** What a function says that is called while the host is busy. */
function answer({ call, first, turn }) {
  try {
    const looked = turn === null || turn === undefined ? [] : turns.slice(first - 1, turn);
    const found = functions[call](looked.at(-1), conversation, looked);
    if (isObject(found) && typeof found.then === "function") throw new TypeError("a function that judges cannot be async");
    return { value: Boolean(found) };
  } catch (error) {
    return { error: `${error?.name ?? "Error"}: ${error?.message ?? String(error)}` };
  }
}

const functions = [];

/** What the host calls a function by. */
const reference = (name, work) => `${name} (function ${functions.push(work) - 1} of the test)`;

function within(what) {
  if (running === null) throw new Error(`${what} is something that a test does: it stands within \`it\``);
}

function outside(what) {
  if (running !== null) throw new Error(`${what} declares something: it stands outside of \`it\`, in the file or within \`describe\``);
}
