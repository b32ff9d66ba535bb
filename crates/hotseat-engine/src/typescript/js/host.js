// Requests to the host, which performs all actions.

const isObject = (value) => typeof value === "object" && value !== null;

// Tests can replace functions of the language, for example by a polyfill, before the parts of this library are loaded.
const isSame = Object.is;

const isPromise = (value) => isObject(value) && typeof value.then === "function";

const isGenerator = (value) => isObject(value) && typeof value.next === "function" && typeof value.throw === "function";
const RAN_NOTHING = "a generator function runs nothing when it is called: remove its `*`";

/** Runs a function of the test that decides a check, on behalf of the test. What it must not do is an error of the test, also if it catches it. */
function judging(work) {
  // The host reports the error of a function that it called itself.
  if (current.judging !== null) return work();
  current.judging = "test";
  try {
    return work();
  } finally {
    current.judging = null;
    const words = current.interrupted;
    current.interrupted = undefined;
    if (words !== undefined) throw misuse(words);
  }
}

/** Returns what a function of the test returned, if the function ran. */
function ran(returned) {
  if (isGenerator(returned)) throw misuse(RAN_NOTHING);
  return returned;
}

/** Returns what a judging function decided. A promise would count as true. */
function decided(returned) {
  if (isPromise(ran(returned))) throw new TypeError("a judging function must not be async");
  if (!isMapping(returned) || !("pass" in returned || "passed" in returned)) return Boolean(returned);
  // The form of script functions. As an object it would count as true.
  const { pass = returned.passed } = returned;
  if (typeof pass !== "boolean") throw new TypeError("`pass` of the result must be true or false");
  return pass;
}

/** Returns what a function decided about a check. Only true and false are decisions: an empty list would count as true. */
function decidedCheck(returned) {
  const isResult = isMapping(returned) && ("pass" in returned || "passed" in returned);
  if (typeof returned === "boolean" || isResult || isPromise(ran(returned))) return decided(returned);
  throw new TypeError(`the function returned ${shown(returned)}: return true or false`);
}

/** Returns true for plain objects, not for dates, maps and other classes. */
const isMapping = (value) => isObject(value) && [Object.prototype, null].includes(Object.getPrototypeOf(value));

const loaded = {};

/** Returns a part of this library, which is loaded once a test needs it. */
const part = (name) => (loaded[name] ??= hidden[name]()(core));

const shown = (value) => part("values").shown(value);

function at() {
  // The engine keeps ten calls, which may all be of this library: it visits nested values.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 64;
  const { stack } = new Error("");
  Error.stackTraceLimit = stackTraceLimit;
  return stack;
}

/** Validates the number of arguments of a call, which would ignore surplus ones. */
function taken(name, args, [least, most]) {
  if (args.length >= least && args.length <= most) return;
  const many = (count) => (count === 0 ? "no argument" : count === 1 ? "1 argument" : `${count} arguments`);
  const expected = least === most ? many(most) : args.length < least ? `at least ${many(least)}` : `at most ${many(most)}`;
  throw misuse(`${name} expects ${expected}, got ${args.length}`);
}

/** Returns a function that refuses more arguments than it takes. All functions that tests can call are made by it; without `most`, parameters with defaults do not count. */
const exact = (name, work, most = work.length) =>
  function (...args) {
    taken(name, args, [0, most]);
    return work.apply(this, args);
  };

/** Makes all methods of an object refuse surplus arguments. Those in `variadic` take any number. */
function exactMethods(of, object, variadic = []) {
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(object))) {
    if (typeof value !== "function" || name === "constructor") continue;
    Object.defineProperty(object, name, { value: exact(`${of}.${name}`, value, variadic.includes(name) ? Infinity : value.length) });
  }
  return object;
}

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
  if (current.judging !== null) current.interrupted ??= words;
  else if (current.running !== null) hidden.ask({ do: "misuse", words, at: at(), known: turns.length });
  return new Misuse(words);
}

/** What is going on: the settings of the test that runs, the group and the scenario that declare, and the topics. */
const current = {
  running: null,
  /** Criteria of the test whose options are converted. */
  listed: undefined,
  group: undefined,
  scenario: undefined,
  topics: { current: null, history: [], visits: [] },
  /** Why tool calls cannot be read at the moment. Null if they can. */
  unseen: null,
  /** Who waits for a function of the test that decides: `host`, `test`, or null. Such a function cannot assert or send anything. */
  judging: null,
  /** Error message of a forbidden request by such a function. */
  interrupted: undefined,
  /** The first error that a subtest threw. */
  broken: undefined,
  /** Subtests and assertions of the test that end later: it waits for them. */
  unsettled: [],
};

/** Sends a command to the host, which may call a function before it replies. */
function ask(command) {
  const mayAsk = current.judging === null || (current.judging === "test" && ["path", "results"].includes(command.do));
  if (!mayAsk) throw misuse("a judging function cannot assert or send anything: it must only return true or false");
  let reply = hidden.ask({ ...command, known: turns.length });
  for (;;) {
    if (reply.unseen !== undefined) current.unseen = reply.unseen;
    for (const turn of reply.turns ?? []) turns[turn.number - 1] = new Turn(turn);
    if (reply.topics !== undefined) part("conversation").follow(reply.topics);
    if (reply.call === undefined) break;
    reply = hidden.ask({ ...part("conversation").answer(reply), do: "answer", known: turns.length });
  }
  if (current.interrupted !== undefined) throw misuse(current.interrupted);
  if (reply.wrong !== undefined) throw new Misuse(reply.wrong);
  if (reply.ended !== undefined) throw new AssertionError(reply.ended);
  return reply.value;
}

const thrownWords = (error) => `${error?.name ?? "Error"}: ${error?.message ?? String(error)}`;

/** The functions that make placeholders of values. */
const placeholders = new Set();

/** Refuses such a function in place of its result. */
function refusePlaceholder(expected) {
  if (placeholders.has(expected)) throw misuse(`\`${expected.name}\` has no brackets: write \`${expected.name}(${expected.name === "anything" ? "" : "…"})\``);
}

const functions = [];

/** Name by which the host calls a function. */
const reference = (name, work) => `${name} (function ${functions.push(work) - 1} of the test)`;

function within(what) {
  if (current.running === null) throw new Error(`${what} can only be used within \`it\``);
}

function outside(what) {
  if (current.running !== null) throw misuse(`${what} must be used outside of \`it\`, in the file or within \`describe\``);
}
