// What is asserted. Every comparison is told to the host, which decides what becomes of the case.

const NAMES = /^[A-Za-z_][A-Za-z0-9_]*[?!]?$/;

/** Whoever is asserted of something that a matcher never says. */
const unfinished = new Set();

/** Has the host record a comparison that was made here. */
function compare(kind, { holds: found, expected, actual, error, message, subject = "value" }, way) {
  const negated = way.negated;
  ask({
    do: "compare",
    kind,
    holds: found,
    expected: short(expected),
    actual: short(actual ?? ""),
    error,
    soft: way.soft,
    negated,
    message: message ?? way.message,
    subject,
    at: way.at ?? at(),
  });
  if (!way.soft && way.ends && (error !== undefined || found === negated)) throw new AssertionError(expected);
}

/** Has the host decide an assertion as case files have them. */
function decide(assertion, way) {
  const passed = ask({
    do: "check",
    assertion: withSources({ ...assertion, negate: undefined, message: undefined }),
    soft: way.soft,
    negated: way.negated !== Boolean(assertion.negate),
    message: way.message ?? assertion.message,
    subject: way.subject,
    at: way.at,
  });
  if (!way.soft && way.ends && !passed) throw new AssertionError("the assertion does not hold");
}

/** Runs something of the test's own that judges. What it throws is no judgement. */
function judged(name, work, way) {
  const expected = `satisfies ${name}`;
  try {
    const found = work();
    if (isObject(found) && typeof found.then === "function") throw new TypeError("a function that judges cannot be async");
    return { expected, holds: Boolean(found), actual: `it returned ${shown(found)}`, subject: way.subject };
  } catch (error) {
    return { expected, error: `${error?.name ?? "Error"}: ${error?.message ?? String(error)}`, subject: way.subject };
  }
}

const lookedAt = (way) => (way.subject === "turn" ? (turns.length === 0 ? [] : [turns.at(-1)]) : turns);
const spoken = (way) => lookedAt(way).map((turn) => turn.agentResponse.text).join("\n");
const called = (way) => lookedAt(way).flatMap((turn) => turn.toolCalls);

const NO_TURN = "there is no turn to look at: nothing was said yet";
const needsTurn = (way, words) => (way.subject === "turn" && turns.length === 0 ? { expected: words, error: NO_TURN } : undefined);

/** Patterns in the agent's text. */
function patterns(name, all, way) {
  if (all.length === 0) throw new TypeError(`${name} needs a pattern`);
  for (const one of all) {
    if (!(one instanceof RegExp) && typeof one !== "string") throw new TypeError(`${name} needs regular expressions or texts, and was given ${shown(one)}`);
  }
  return (text) => all.map((one) => (typeof one === "string" ? text.includes(one) : fits(one, text)));
}

/** What is asserted of the agent's last turn, or of the whole conversation. */
const ofAgent = {
  toSatisfy(way, ...criteria) {
    const all = criteria.flat(1).length === 2 && typeof criteria[0] === "string" && typeof criteria[1] === "function" ? [criteria] : criteria.flatMap((one) => (isPair(one) ? [one] : Array.isArray(one) ? one : [one]));
    if (all.length === 0) throw new TypeError("toSatisfy needs a criterion");
    if (way.negated && all.length > 1) throw new TypeError("not.toSatisfy needs one criterion: with several nobody can tell which of them must not hold");
    for (const one of all) satisfy(one, way);
  },
  toMatch(way, ...all) {
    if (way.negated && all.length > 1) throw new TypeError("not.toMatch needs one pattern: with several nobody can tell which of them must not fit");
    const found = patterns("toMatch", all, way);
    const expected = `the agent's words match ${all.map((one) => show(one)).join(" and ")}`;
    const text = spoken(way);
    compare("match", needsTurn(way, expected) ?? { expected, holds: found(text).every(Boolean), actual: show(text), subject: way.subject }, way);
  },
  toMatchAny(way, ...all) {
    const found = patterns("toMatchAny", all, way);
    const expected = `the agent's words match ${all.map((one) => show(one)).join(" or ")}`;
    const text = spoken(way);
    compare("match_any", needsTurn(way, expected) ?? { expected, holds: found(text).some(Boolean), actual: show(text), subject: way.subject }, way);
  },
  toContain(way, text) {
    if (typeof text !== "string") throw new TypeError(`toContain needs the text that the agent says, and was given ${shown(text)}`);
    decide({ type: "contains", value: text }, way);
  },
  toCallTool(way, name, expected, options) {
    tool("toCallTool", way, name, expected, options);
  },
  toHaveToolCall(way, name, expected, options) {
    tool("toHaveToolCall", way, name, expected, options);
  },
  toBeGroundedIn(way, ...args) {
    const { names, options } = typesOf("toBeGroundedIn", args);
    decide({ type: "grounded", types: names, ...options }, way);
  },
  toClaim(way, ...args) {
    const { names, options } = typesOf("toClaim", args);
    // What must not be claimed is the assertion; that something is claimed is its contrary.
    decide({ type: "claims", forbid: names, ...options, negate: true }, way);
  },
  toHaveIntent(way, name, options = {}) {
    if (typeof name !== "string") throw new TypeError(`toHaveIntent needs the name of an intent, and was given ${shown(name)}`);
    decide({ type: "intent", intent: name, ...options }, way);
  },
  toBeInTopic(way, name) {
    decide({ type: "topic", name: topicNamed(name) }, way);
  },
  toHaveReachedTopic(way, name) {
    decide({ type: "reached_topic", name: topicNamed(name) }, { ...way, subject: "conversation" });
  },
  toHaveAchievedStatedGoal(way) {
    decide({ type: "goal" }, { ...way, subject: "conversation" });
  },
  toHaveAchievedGoal(way, goal) {
    if (typeof goal !== "string") throw new TypeError(`toHaveAchievedGoal needs the goal in words, and was given ${shown(goal)}`);
    decide({ type: "goal", goal }, { ...way, subject: "conversation" });
  },
  toHold(way, assertion) {
    if (!isObject(assertion)) throw new TypeError(`toHold needs an assertion as case files have them, and was given ${shown(assertion)}`);
    for (const one of Array.isArray(assertion) ? assertion : [assertion]) decide(one, way);
  },
};

const isPair = (value) => Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && typeof value[1] === "function";

function topicNamed(name) {
  const named = isObject(name) ? name.name : name;
  if (typeof named !== "string") throw new TypeError(`a topic is called by its name, and not by ${shown(name)}`);
  return named;
}

/** Names of kinds of facts, and what else is said. */
function typesOf(matcher, args) {
  const last = args.at(-1);
  const options = isObject(last) && !Array.isArray(last) ? args.pop() : {};
  const names = args.flat();
  if (names.length === 0 || names.some((name) => typeof name !== "string")) throw new TypeError(`${matcher} needs the names of kinds of facts, for example "prices"`);
  return { names, options };
}

/** One criterion: a name, a text, a function, or both. */
function satisfy(one, way) {
  const subject = way.subject;
  if (isPair(one) || typeof one === "function") {
    const [name, work] = isPair(one) ? one : [one.name || "a function", one];
    const found = needsTurn(way, `satisfies ${name}`) ?? judged(name, () => work(subject === "turn" ? turns.at(-1) : conversation, conversation), way);
    return compare("satisfy", found, way);
  }
  const name = isObject(one) && typeof one.name === "string" ? one.name : one;
  if (typeof name !== "string" || name.trim() === "") throw new TypeError(`toSatisfy needs names of criteria, texts or functions, and was given ${shown(one)}`);
  const known = running.criteria[name];
  const described = known?.said.description === undefined ? name : `${name}: ${known.said.description}`;
  if (known?.match !== undefined) return compare("satisfy", judged(described, () => known.match(conversation), way), way);
  if (known?.matchMessages !== undefined) return compare("satisfy", judged(described, () => known.matchMessages(messagesOf(lookedAt(way))), way), way);
  decide({ type: "satisfy", criteria: name }, way);
}

/** A call of a tool. What is more than data is compared here. */
function tool(matcher, way, name, expected, options = {}) {
  const names = Array.isArray(name) ? name : [name];
  if (names.length === 0 || names.some((one) => typeof one !== "string" || one === "")) throw new TypeError(`${matcher} needs the name of a tool, and was given ${shown(name)}`);
  if (expected !== undefined && !isObject(expected)) throw new TypeError(`the arguments of a call are an object, and not ${shown(expected)}`);
  const times = typeof options.times === "number" ? { exact: options.times } : options.times;
  if (expected === undefined || isPlain(expected)) {
    const assertion = { type: "tool_called", value: names, arguments: expected, count: times };
    return decide(expected === undefined ? { ...assertion, arguments: undefined } : assertion, way);
  }
  const least = times?.exact ?? times?.min ?? 1;
  const most = times?.exact ?? times?.max ?? Infinity;
  const of = called(way).filter((call) => names.includes(call.name));
  const count = of.filter((call) => holds(call.arguments, expected)).length;
  const words = `${names.join(" or ")} with ${show(expected)} is called${times === undefined ? "" : ` ${least === most ? least : `${least} to ${most}`} times`}`;
  const actual = of.length > 0 ? of.map((call) => `${call.name}(${show(call.arguments)})`).join("; ") : called(way).length > 0 ? `called were ${called(way).map((call) => call.name).join(", ")}` : "no tool was called";
  compare("tool_called", needsTurn(way, words) ?? { expected: words, holds: count >= least && count <= most, actual, subject: way.subject }, way);
}

const is = (holds) => ({ holds });
const sized = (value) => (typeof value === "string" ? [...value].length : value?.length ?? value?.size);
const inWords = (words) => words.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** A path into a value: `a.b[0]`, or a list of keys. */
function valueAt(value, path) {
  const keys = Array.isArray(path) ? path : String(path).replace(/\[(\w+)\]/g, ".$1").split(".").filter((key) => key !== "");
  let here = value;
  for (const key of keys) {
    if (here === undefined || here === null || !(key in Object(here))) return { there: false };
    here = here[key];
  }
  return { there: true, value: here };
}

const compared = (holds) => (actual, limit) => {
  const ordered = ["number", "bigint", "string"].includes(typeof limit);
  if (!ordered) throw new TypeError(`${shown(limit)} is nothing that is greater or less than something`);
  return is(typeof actual === typeof limit && holds(actual, limit));
};

/** What is asserted of plain values: whether it holds, and other words for what was found. */
const ofValues = {
  toBe: (actual, expected) => is(expected instanceof Matcher ? equal(actual, expected) : Object.is(actual, expected)),
  toEqual: (actual, expected) => is(equal(actual, expected)),
  toMatchObject: (actual, expected) => is(holds(actual, expected)),
  toContain(actual, ...all) {
    if (all.length === 0) throw new TypeError("toContain needs something that is contained");
    if (typeof actual === "string") return is(all.every((one) => typeof one === "string" && actual.includes(one)));
    if (typeof actual?.[Symbol.iterator] !== "function") return { error: `${shown(actual)} contains nothing: it is no text and no list` };
    const entries = [...actual];
    return is(all.every((one) => entries.some((entry) => (one instanceof Matcher ? equal(entry, one) : Object.is(entry, one)))));
  },
  toContainEqual(actual, ...all) {
    if (typeof actual?.[Symbol.iterator] !== "function") return { error: `${shown(actual)} contains nothing: it is no list` };
    return is(all.every((one) => [...actual].some((entry) => equal(entry, one))));
  },
  toMatch(actual, pattern) {
    if (typeof actual !== "string") return { error: `${shown(actual)} is no text` };
    return is(typeof pattern === "string" ? actual.includes(pattern) : fits(pattern, actual));
  },
  toHaveLength(actual, length) {
    const found = sized(actual);
    return found === undefined ? { error: `${shown(actual)} has no length` } : { holds: found === length, actual: `${found}: ${shown(actual)}` };
  },
  toHaveProperty(actual, path, ...value) {
    const found = valueAt(actual, path);
    return is(found.there && (value.length === 0 || equal(found.value, value[0])));
  },
  toBeGreaterThan: compared((a, b) => a > b),
  toBeGreaterThanOrEqual: compared((a, b) => a >= b),
  toBeLessThan: compared((a, b) => a < b),
  toBeLessThanOrEqual: compared((a, b) => a <= b),
  toBeCloseTo: (actual, expected, digits = 2) => is(typeof actual === "number" && (actual === expected || Math.abs(actual - expected) < 10 ** -digits / 2)),
  toBeTruthy: (actual) => is(Boolean(actual)),
  toBeFalsy: (actual) => is(!actual),
  toBeNull: (actual) => is(actual === null),
  toBeUndefined: (actual) => is(actual === undefined),
  toBeDefined: (actual) => is(actual !== undefined),
  toBeNaN: (actual) => is(Number.isNaN(actual)),
  toBeTypeOf: (actual, name) => is(typeName(actual) === name || typeof actual === name),
  toBeInstanceOf(actual, type) {
    if (typeof type !== "function") throw new TypeError(`${shown(type)} is no class`);
    return is(actual instanceof type);
  },
  toSatisfy(actual, work) {
    if (typeof work !== "function") throw new TypeError("toSatisfy of a value needs a function; criteria are asserted of `agent` or `conversation`");
    const { holds: found, error } = judged("", () => work(actual), {});
    return { holds: found, error };
  },
  toThrow(actual, expected) {
    if (typeof actual !== "function") return { error: `${shown(actual)} is no function` };
    let thrown;
    try {
      const returned = actual();
      if (isObject(returned) && typeof returned.then === "function") return { error: "the function is async: await it, and assert of what was caught" };
      return { holds: false, actual: "it throws nothing" };
    } catch (error) {
      if (error instanceof AssertionError) throw error;
      thrown = error;
    }
    const text = thrown?.message ?? String(thrown);
    const found = `it throws ${shown(thrown)}`;
    if (expected === undefined) return { holds: true, actual: found };
    if (typeof expected === "string") return { holds: text.includes(expected), actual: found };
    if (expected instanceof RegExp) return { holds: fits(expected, text), actual: found };
    if (typeof expected === "function") return { holds: thrown instanceof expected, actual: found };
    return { holds: equal(thrown, expected), actual: found };
  },
};

const typeName = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

/** What `expect` and `evaluate` return. */
function assertion(value, soft, message) {
  within(soft ? "evaluate" : "expect");
  if (message !== undefined && typeof message !== "string") throw new TypeError(`what is said of a failure is a text, and not ${shown(message)}`);
  const subject = value === agent ? "turn" : value === conversation ? "conversation" : "value";
  const open = { at: at(), soft };
  unfinished.add(open);
  const way = (negated) => ({ soft, negated, message, subject, ends: true, at: at() });
  const matchers = (negated) => {
    const made = {};
    const add = (name, work) => {
      made[name] = (...args) => {
        unfinished.delete(open);
        work(...args);
      };
    };
    for (const [name, matcher] of Object.entries(ofValues)) {
      add(name, (...args) => {
        if (subject !== "value") throw new TypeError(`${name} compares values, and \`${subject === "turn" ? "agent" : "conversation"}\` is none: use what it has, for example \`agent.response.text\``);
        const { holds: found, actual, error } = matcher(value, ...args);
        const expected = `${inWords(name)}${args.length > 0 ? ` ${args.map((one) => show(one)).join(", ")}` : ""}`;
        compare("value", { expected, holds: found, actual: actual ?? show(value), error }, way(negated));
      });
    }
    for (const [name, matcher] of Object.entries(ofAgent)) {
      if (subject === "value" && name in ofValues) continue;
      add(name, (...args) => {
        if (subject === "value") throw new TypeError(`${name} is asserted of \`agent\` or \`conversation\`, and not of ${shown(value)}`);
        matcher(way(negated), ...args);
      });
    }
    return made;
  };
  const positive = matchers(false);
  Object.defineProperty(positive, "not", { get: () => matchers(true), enumerable: true });
  return positive;
}

const expect = (value, message) => assertion(value, false, message);
const evaluate = (value, message) => assertion(value, true, message);
