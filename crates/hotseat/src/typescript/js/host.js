// The host: everything that happens is asked of it.

const at = () => new Error("").stack;

/** Ends a test whose case has ended, or that is to be given up. The host knows why. */
class AssertionError extends Error {
  constructor(words) {
    super(words);
    this.name = "AssertionError";
  }
}

/** A mistake of whoever wrote the test. */
class Misuse extends TypeError {
  constructor(words) {
    super(words);
    this.name = "TypeError";
  }
}

/** Makes a mistake known to the host before it is thrown: whoever catches it hides nothing. */
function misuse(words) {
  if (judging) interrupted ??= words;
  else if (running !== null) hidden.ask({ do: "misuse", words, at: at(), known: turns.length });
  return new Misuse(words);
}

let running = null;

/** Whether a function of the test is called by the host, which waits for what it says. */
let judging = false;

/** What such a function has asked for all the same. */
let interrupted;

/** Whether the host only notes down what the test has found out itself: the clock of the test goes on meanwhile. */
const isOwnWork = (command) => (command.do === "decide" ? command.asserted.every((one) => one.compared !== undefined) : ["path", "results"].includes(command.do));

/** Asks the host for something; it may call a function on the way. */
function ask(command) {
  if (judging) {
    throw misuse("nothing can be asserted, said or asked for within a function that judges: it returns whether it holds");
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

/** What a function says that is called while the host is busy. */
function answer({ call, first, turn }) {
  judging = true;
  try {
    const looked = turn === null || turn === undefined ? [] : turns.slice(first - 1, turn);
    const found = upTo(turn ?? 0, () => functions[call](looked.at(-1), conversation, looked));
    if (isObject(found) && typeof found.then === "function") throw new TypeError(ASYNC);
    return { value: Boolean(found) };
  } catch (error) {
    return { error: thrownWords(error) };
  } finally {
    judging = false;
  }
}

const thrownWords = (error) => `${error?.name ?? "Error"}: ${error?.message ?? String(error)}`;

const ASYNC = "a function that judges cannot be async";

const functions = [];

/** What the host calls a function by. */
const reference = (name, work) => `${name} (function ${functions.push(work) - 1} of the test)`;

function within(what) {
  if (running === null) throw new Error(`${what} is something that a test does: it stands within \`it\``);
}

function outside(what) {
  if (running !== null) throw misuse(`${what} declares something: it stands outside of \`it\`, in the file or within \`describe\``);
}
