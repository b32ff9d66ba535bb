// Assertions. Every comparison is reported to the host, which decides the outcome of the case.

const NAMES = /^[A-Za-z_][A-Za-z0-9_]*[?!]?$/;

/** Assertions without a matcher call. */
const unfinished = new Set();

/** Evaluates assertions in order; the host then decides the outcome of the case. */
function decide(asserted, way) {
  const { soft, negated, message, subject } = way;
  const passed = ask({ do: "decide", asserted, soft, negated, message, subject, at: way.at ?? at() });
  if (!soft && way.ends && !passed) throw new AssertionError("the assertion failed");
}

/** Wraps an assertion in case file form. */
const asWritten = (assertion) => ({ assertion: withSources(assertion) });

/** Wraps the result of a comparison made by this library. */
const asCompared = (kind, { holds: found, expected, actual, said, error, written, criterion }) => ({
  compared: { kind, holds: found === true, expected: short(expected), actual: short(actual ?? ""), said, error, written, criterion },
});

const compare = (kind, found, way) => decide([asCompared(kind, found)], way);

/** Runs a function of the test. An exception is an error, not a verdict. */
function tried(work) {
  try {
    return work();
  } catch (error) {
    if (error instanceof Misuse || error instanceof AssertionError) throw error;
    return { error: thrownWords(error) };
  }
}

/** Evaluates a criterion with a function of the test. */
function judged(name, work) {
  const expected = `the agent to satisfy ${name}`;
  const found = tried(() => {
    const returned = work();
    return { holds: decidedCheck(returned), actual: `the function returned ${shown(returned)}` };
  });
  return { expected, ...found };
}

const lookedAt = (way) => (way.subject === "turn" ? turns.slice(-1) : turns);
const called = (way) => lookedAt(way).flatMap((turn) => turn.toolCalls);

const NO_TURN = "there is no turn yet";
const needsTurn = (words) => (turns.length === 0 ? { expected: words, error: NO_TURN } : undefined);

/** Converts regular expressions and literal strings to case file patterns. */
function asPatterns(name, all) {
  return all.map((one) => {
    if (one instanceof RegExp) return inline(one);
    if (typeof one !== "string" || one === "") throw misuse(`${name} needs regular expressions or strings, got ${shown(one)}`);
    return literally(one);
  });
}

/** Returns an assertion in case file form that the agent's text matches patterns. */
function asRegex(name, all, match) {
  const patterns = asPatterns(name, all);
  return patterns.length === 1 ? { type: "regex", pattern: patterns[0] } : { type: "regex", pattern: patterns, match };
}

/** Returns the turns that a text assertion reads, in case file form. */
const turnsOf = (way) => (way.subject === "conversation" ? { turns: "all" } : {});

/** Validates an options object: no keys other than these. Returns it. */
function only(what, options, keys) {
  if (!isMapping(options)) throw misuse(`the options of ${what} must be an object, got ${shown(options)}`);
  const unknown = Object.keys(options).find((key) => !keys.includes(key));
  if (unknown !== undefined) throw misuse(`${what} has no option \`${unknown}\`; expected ${keys.map((key) => `\`${key}\``).join(", ")}`);
  return options;
}

/** Minimum and maximum number of arguments of matchers for `agent` and `conversation`. */
const GIVEN_OF_AGENT = {
  toSatisfy: [1, Infinity],
  toMatch: [1, Infinity],
  toMatchAny: [1, Infinity],
  toContain: [1, Infinity],
  toCallTool: [1, 3],
  toHaveToolCall: [1, 3],
  toBeGroundedIn: [1, Infinity],
  toClaim: [1, Infinity],
  toHaveIntent: [1, 2],
  toBeInTopic: [1, 1],
  toHaveReachedTopic: [1, 1],
  toHaveAchievedStatedGoal: [0, 0],
  toHaveAchievedGoal: [1, 1],
  toHold: [1, 1],
};

/** Matchers for the agent's last turn or the whole conversation. */
const ofAgent = {
  toSatisfy(way, ...criteria) {
    const all = criteria.flat(1).length === 2 && typeof criteria[0] === "string" && typeof criteria[1] === "function" ? [criteria] : criteria.flatMap((one) => (isPair(one) ? [one] : Array.isArray(one) ? one : [one]));
    if (all.length === 0) throw misuse("toSatisfy needs a criterion");
    if (way.negated && all.length > 1) throw misuse("not.toSatisfy needs one criterion: negating several is ambiguous");
    decide(all.map((one) => satisfies(one, way)), way);
  },
  toMatch(way, ...all) {
    if (way.negated && all.length > 1) throw misuse("not.toMatch needs one pattern: negating several is ambiguous");
    decide([asWritten({ ...asRegex("toMatch", all, "all"), ...turnsOf(way) })], way);
  },
  toMatchAny(way, ...all) {
    decide([asWritten({ ...asRegex("toMatchAny", all, "any"), ...turnsOf(way) })], way);
  },
  toContain(way, ...texts) {
    const wrong = texts.find((text) => typeof text !== "string" || text === "");
    if (wrong !== undefined || texts.includes(undefined)) throw misuse(`toContain needs a non-empty string, got ${shown(wrong)}`);
    if (way.negated && texts.length > 1) throw misuse("not.toContain needs one text: negating several is ambiguous");
    decide(texts.map((value) => asWritten({ type: "contains", value, ...turnsOf(way) })), way);
  },
  toCallTool(way, name, expected, options) {
    tool("toCallTool", way, name, expected, options);
  },
  toHaveToolCall(way, name, expected, options) {
    tool("toHaveToolCall", way, name, expected, options);
  },
  toBeGroundedIn(way, ...args) {
    const { names, options } = typesOf("toBeGroundedIn", args, ["fromTools", "judge"]);
    decide([asWritten({ type: "grounded", types: names, ...options })], way);
  },
  toClaim(way, ...args) {
    const { names, options } = typesOf("toClaim", args, ["absolute", "fromTools", "judge"]);
    // The check asserts the absence of the claim, so the matcher is its negation.
    decide([asWritten({ type: "claims", forbid: names, ...options, negate: true })], way);
  },
  toHaveIntent(way, name, options = {}) {
    if (typeof name !== "string") throw misuse(`toHaveIntent needs the name of an intent, got ${shown(name)}`);
    decide([asWritten({ type: "intent", intent: name, ...only("toHaveIntent", options, ["describedAs", "judge"]) })], way);
  },
  toBeInTopic(way, name) {
    decide([asWritten({ type: "topic", name: topicNamed(name) })], way);
  },
  toHaveReachedTopic(way, name) {
    decide([asWritten({ type: "reached_topic", name: topicNamed(name) })], way);
  },
  toHaveAchievedStatedGoal(way) {
    decide([asWritten({ type: "goal" })], way);
  },
  toHaveAchievedGoal(way, goal) {
    if (typeof goal !== "string" || goal.trim() === "") throw misuse(`toHaveAchievedGoal needs the goal as a non-empty string, got ${shown(goal)}`);
    decide([asWritten({ type: "goal", goal })], way);
  },
  toHold(way, assertion) {
    const all = Array.isArray(assertion) ? assertion : [assertion];
    for (const one of all) {
      if (!isMapping(one)) throw misuse(`toHold needs an assertion in case file form, got ${shown(one)}`);
      const missing = undefinedIn(one);
      if (missing !== undefined) throw misuse(`\`${missing}\` of the assertion is undefined, which would assert nothing`);
    }
    if (all.length === 0) throw misuse("toHold needs at least one assertion");
    if (way.negated && all.length > 1) throw misuse("not.toHold needs one assertion: negating several is ambiguous");
    decide(all.map(asWritten), way);
  },
};

const isPair = (value) => Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && typeof value[1] === "function";

function topicNamed(name) {
  const named = isObject(name) ? name.name : name;
  if (typeof named !== "string") throw misuse(`expected the name of a topic, got ${shown(name)}`);
  return named;
}

/** Splits arguments into names of kinds of facts and options. */
function typesOf(matcher, args, keys) {
  const last = args.at(-1);
  const options = isObject(last) && !Array.isArray(last) ? only(matcher, args.pop(), keys) : {};
  const names = args.flat();
  if (names.length === 0 || names.some((name) => typeof name !== "string")) throw misuse(`${matcher} needs the names of kinds of facts, for example "prices", got ${args.map((one) => shown(one)).join(", ") || "nothing"}`);
  return { names, options };
}

/** Returns the assertion for one criterion: a name, a description, a function, or a named function. */
function satisfies(one, way) {
  const code = (name, work, described = name) => asCompared("satisfy", { ...(needsTurn(`the agent to satisfy ${described}`) ?? judged(described, work)), criterion: name, written: { type: "satisfy", criteria: name } });
  if (isPair(one) || typeof one === "function") {
    const [name, work] = isPair(one) ? one : [one.name || "a function", one];
    return code(name, () => work(way.subject === "turn" ? turns.at(-1) : conversation, conversation));
  }
  const name = isObject(one) && typeof one.name === "string" ? one.name : one;
  if (typeof name !== "string" || name.trim() === "") throw misuse(`toSatisfy needs names of criteria, descriptions or functions, got ${shown(one)}`);
  const known = Object.hasOwn(running.criteria, name) ? running.criteria[name] : undefined;
  const described = known?.said.description === undefined ? name : `${name}: ${known.said.description}`;
  if (known?.match !== undefined) return code(name, () => known.match(conversation), described);
  if (known?.matchMessages !== undefined) return code(name, () => known.matchMessages(conversation.messages), described);
  return asWritten({ type: "satisfy", criteria: name });
}

/** Returns the expected number of calls in case file form. */
function counted(matcher, options) {
  if (options === undefined) return undefined;
  const { times } = only(matcher, options, ["times"]);
  const said = typeof times === "number" ? { exact: times } : times;
  const needs = (words) => misuse(`\`times\` of ${matcher} ${words}, got ${shown(times)}`);
  if (!isMapping(said) || Object.keys(said).length === 0) throw needs("must be a number or an object with `min`, `max` or both");
  only(`\`times\` of ${matcher}`, said, ["exact", "min", "max"]);
  for (const one of Object.values(said)) if (!Number.isInteger(one) || one < 0) throw needs("must be a whole number of calls");
  if (said.exact !== undefined && Object.keys(said).length > 1) throw needs("must not combine `exact` with `min` or `max`");
  if (said.min > said.max) throw needs("must have a `min` that is not greater than `max`");
  return said;
}

const timesInWords = ({ exact, min, max }) => (exact !== undefined ? `${exact} times` : min === undefined ? `at most ${max} times` : max === undefined ? `at least ${min} times` : `${min} to ${max} times`);

/** Asserts a tool call. If a function decides about an argument, this library compares the calls. */
function tool(matcher, way, name, expected, options) {
  const names = Array.isArray(name) ? name : [name];
  if (names.length === 0 || names.some((one) => typeof one !== "string" || one === "")) throw misuse(`${matcher} needs the name of a tool, got ${shown(name)}`);
  const count = counted(matcher, options);
  const all = Object.entries(expected === undefined ? {} : definite(expected));
  const [values, others] = [all.filter(([, one]) => isPlain(one)), all.filter(([, one]) => !isPlain(one))];
  const conditions = others.map(([key, one]) => [key, conditionOf(one)]);
  if (conditions.every(([, one]) => one !== undefined)) {
    const which = names.length === 1 ? { name: names[0] } : { value: names };
    const written = (members) => (members.length === 0 ? undefined : Object.fromEntries(members));
    return decide([asWritten({ type: "tool_called", ...which, arguments: written(values), where: written(conditions), count })], way);
  }
  const { exact, max } = count ?? {};
  const least = exact ?? count?.min ?? (count === undefined ? 1 : 0);
  const most = exact ?? max ?? Infinity;
  const of = called(way).filter((call) => names.includes(call.name));
  const words = `${names.join(" or ")} with ${show(expected)} to be called${count === undefined ? "" : ` ${timesInWords(count)}`}`;
  const actual = of.length > 0 ? of.map((call) => `${call.name}(${show(call.arguments)})`).join("; ") : called(way).length > 0 ? `no call; tools called: ${called(way).map((call) => call.name).join(", ")}` : "no tool calls";
  const found = () => {
    const fitting = of.filter((call) => holds(call.arguments, expected)).length;
    const allows = (number) => number >= least && number <= most;
    // Arguments that are a string are not valid JSON, so they are unknown.
    const unknown = of.filter((call) => typeof call.arguments === "string").length;
    for (let number = fitting; number <= fitting + unknown; number += 1) if (allows(number) !== allows(fitting)) return { error: `the arguments of a call are not valid JSON: ${actual}` };
    return { holds: allows(fitting), actual };
  };
  compare("tool_called", needsTurn(words) ?? { expected: words, ...tried(found) }, way);
}

const is = (holds) => ({ holds });
const sized = (value) => (typeof value === "string" ? [...value].length : Array.isArray(value) || ArrayBuffer.isView(value) ? value.length : value instanceof Map || value instanceof Set ? value.size : typeof value?.length === "number" && typeof value !== "function" ? value.length : undefined);
/** Descriptions of matchers whose names do not describe them well. */
const WORDS = {
  toEqual: "to be",
  toBeGreaterThan: "to be more than",
  toBeGreaterThanOrEqual: "to be at least",
  toBeLessThan: "to be less than",
  toBeLessThanOrEqual: "to be at most",
  toHaveLength: "to have a length of",
};
const inWords = (words) => words.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** Looks up a path in a value: `a.b[0]`, or a list of keys. */
function valueAt(value, path) {
  const keys = Array.isArray(path) ? path : path.replace(/\[(\w+)\]/g, ".$1").split(".").filter((key) => key !== "");
  if (keys.length === 0 || keys.some((key) => typeof key !== "string" && !Number.isInteger(key))) throw misuse(`toHaveProperty needs a path like "a.b[0]", or a list of keys, got ${shown(path)}`);
  let here = value;
  for (const key of keys) {
    if (here === undefined || here === null || !(key in Object(here))) return { there: false };
    here = here[key];
  }
  return { there: true, value: here };
}

const kindOfOrder = (value) => (isNumber(value) || typeof value === "bigint" ? "number" : typeof value === "string" ? "text" : undefined);

const compared = (holds) => (actual, limit) => {
  const order = kindOfOrder(limit);
  if (order === undefined) throw misuse(`${shown(limit)} cannot be ordered`);
  if (kindOfOrder(actual) !== order) return { error: `${shown(actual)} is not a ${order} that can be compared with ${shown(limit)}` };
  return is(holds(actual, limit));
};

const TYPES = ["array", "bigint", "boolean", "function", "null", "number", "object", "string", "symbol", "undefined"];

/** Validates the name of a type and returns it. */
function typeNamed(matcher, name) {
  if (!TYPES.includes(name)) throw misuse(`${matcher} needs one of ${TYPES.join(", ")}, got ${shown(name)}`);
  return name;
}

/** Returns the entries of an iterable, or undefined. */
const entriesOf = (value) => (typeof value?.[Symbol.iterator] === "function" ? [...value] : undefined);

/** Minimum and maximum number of arguments of matchers for values; `[1, 1]` if not listed. */
const GIVEN_OF_VALUES = {
  toContain: [1, Infinity],
  toContainEqual: [1, Infinity],
  toHaveProperty: [1, 2],
  toBeCloseTo: [1, 2],
  toBeTruthy: [0, 0],
  toBeFalsy: [0, 0],
  toBeNull: [0, 0],
  toBeUndefined: [0, 0],
  toBeDefined: [0, 0],
  toBeNaN: [0, 0],
  toThrow: [0, 1],
};

/** Matchers for plain values. Each returns whether it passed, and optionally the actual value or an error. */
const ofValues = {
  toBe: (actual, expected) => is(expected instanceof Matcher ? equal(actual, expected) : Object.is(actual, expected)),
  toEqual: (actual, expected) => is(equal(actual, expected)),
  toMatchObject(actual, expected) {
    if (!isObject(expected)) throw misuse(`toMatchObject needs an object, got ${shown(expected)}`);
    return isObject(actual) ? is(holds(actual, expected)) : { error: `${shown(actual)} is not an object` };
  },
  toContain(actual, ...all) {
    if (all.includes(undefined)) throw misuse("toContain needs a value, got undefined");
    if (typeof actual === "string") {
      if (all.some((one) => typeof one !== "string" || one === "")) throw misuse(`toContain of a string needs non-empty strings, got ${shown(all.find((one) => typeof one !== "string" || one === ""))}`);
      return is(all.every((one) => actual.includes(one)));
    }
    const entries = entriesOf(actual);
    if (entries === undefined) return { error: `${shown(actual)} is neither a string nor a list` };
    return is(all.every((one) => entries.some((entry) => (one instanceof Matcher ? equal(entry, one) : Object.is(entry, one)))));
  },
  toContainEqual(actual, ...all) {
    if (all.includes(undefined)) throw misuse("toContainEqual needs a value, got undefined");
    const entries = typeof actual === "string" ? undefined : entriesOf(actual);
    if (entries === undefined) return { error: `${shown(actual)} is not a list` };
    return is(all.every((one) => entries.some((entry) => equal(entry, one))));
  },
  toMatch(actual, pattern) {
    if (!(pattern instanceof RegExp) && (typeof pattern !== "string" || pattern === "")) throw misuse(`toMatch needs a regular expression or a non-empty string, got ${shown(pattern)}`);
    if (typeof actual !== "string") return { error: `${shown(actual)} is not a string` };
    return is(typeof pattern === "string" ? actual.includes(pattern) : fits(pattern, actual));
  },
  toHaveLength(actual, length) {
    if (!Number.isInteger(length) || length < 0) throw misuse(`toHaveLength needs a whole number, got ${shown(length)}`);
    const found = sized(actual);
    return found === undefined ? { error: `${shown(actual)} has no length` } : { holds: found === length, actual: `${found}: ${shown(actual)}` };
  },
  toHaveProperty(actual, path, ...value) {
    if (typeof path !== "string" && !Array.isArray(path)) throw misuse(`toHaveProperty needs a path like "a.b[0]", or a list of keys, got ${shown(path)}`);
    const found = valueAt(actual, path);
    if (!isObject(actual) && typeof actual !== "function") return { error: `${shown(actual)} has no properties` };
    return is(found.there && (value.length === 0 || equal(found.value, value[0])));
  },
  toBeGreaterThan: compared((a, b) => a > b),
  toBeGreaterThanOrEqual: compared((a, b) => a >= b),
  toBeLessThan: compared((a, b) => a < b),
  toBeLessThanOrEqual: compared((a, b) => a <= b),
  toBeCloseTo(actual, expected, digits = 2) {
    for (const one of [expected, digits]) if (!isNumber(one)) throw misuse(`toBeCloseTo needs a number, got ${shown(one)}`);
    if (!isNumber(actual)) return { error: `${shown(actual)} is not a number` };
    return is(actual === expected || Math.abs(actual - expected) < 10 ** -digits / 2);
  },
  toBeTruthy: (actual) => is(Boolean(actual)),
  toBeFalsy: (actual) => is(!actual),
  toBeNull: (actual) => is(actual === null),
  toBeUndefined: (actual) => is(actual === undefined),
  toBeDefined: (actual) => is(actual !== undefined),
  toBeNaN: (actual) => (typeof actual === "number" ? is(Number.isNaN(actual)) : { error: `${shown(actual)} is not a number` }),
  toBeTypeOf(actual, name) {
    return is(typeName(actual) === typeNamed("toBeTypeOf", name) || typeof actual === name);
  },
  toBeInstanceOf(actual, type) {
    if (typeof type !== "function") throw misuse(`${shown(type)} is not a class`);
    return is(actual instanceof type);
  },
  toSatisfy(actual, work) {
    if (typeof work !== "function") throw misuse("toSatisfy of a value needs a function; criteria apply to `agent` or `conversation`");
    const { holds: found, error } = judged("", () => work(actual));
    return { holds: found, error };
  },
  toThrow(actual, ...wanted) {
    const [expected] = wanted;
    if (wanted.length > 0 && expected === undefined) throw misuse("toThrow needs a string, a pattern, a class or a value, got undefined");
    if (typeof actual !== "function") return { error: `${shown(actual)} is not a function` };
    let thrown;
    try {
      const returned = ran(actual());
      if (isPromise(returned)) return { error: "the function is async: await it, and check the caught error" };
      return { holds: false, actual: "it throws nothing" };
    } catch (error) {
      if (error instanceof AssertionError || error instanceof Misuse) throw error;
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

/** Validates the number of arguments of a matcher, which would ignore surplus ones. */
function taken(name, args, [least, most]) {
  if (args.length >= least && args.length <= most) return;
  const many = (count) => (count === 0 ? "no argument" : count === 1 ? "1 argument" : `${count} arguments`);
  const expected = least === most ? many(most) : args.length < least ? `at least ${many(least)}` : `at most ${many(most)}`;
  throw misuse(`${name} expects ${expected}, got ${args.length}`);
}

/** Returns the object with matchers for `expect` and `evaluate`. */
function assertion(value, soft, message) {
  within(soft ? "evaluate" : "expect");
  if (message !== undefined && typeof message !== "string") throw misuse(`the failure message must be a string, got ${shown(message)}`);
  const subject = value === agent ? "turn" : value === conversation ? "conversation" : "value";
  if (subject === "value" && isPromise(value)) throw misuse(`${soft ? "evaluate" : "expect"} got a promise: await the value first`);
  const open = { at: at(), soft };
  unfinished.add(open);
  const way = (negated) => ({ soft, negated, message, subject, ends: true, at: at() });
  const matchers = (negated) => {
    const made = {};
    const add = (name, given, work) => {
      made[name] = (...args) => {
        unfinished.delete(open);
        taken(name, args, given);
        work(...args);
      };
    };
    for (const [name, matcher] of Object.entries(ofValues)) {
      if (subject !== "value" && name in ofAgent) continue;
      add(name, GIVEN_OF_VALUES[name] ?? [1, 1], (...args) => {
        if (subject !== "value") throw misuse(`${name} compares values, and \`${subject === "turn" ? "agent" : "conversation"}\` is not a value: use one of its members, for example \`agent.response.text\``);
        const { holds: found, actual, error } = tried(() => matcher(value, ...args));
        const expected = `${WORDS[name] ?? inWords(name)}${args.length > 0 ? ` ${args.map((one) => show(one)).join(", ")}` : ""}`;
        compare("value", { expected, holds: found, actual: actual ?? show(value), error }, way(negated));
      });
    }
    for (const [name, matcher] of Object.entries(ofAgent)) {
      if (subject === "value" && name in ofValues) continue;
      add(name, GIVEN_OF_AGENT[name], (...args) => {
        if (subject === "value") throw misuse(`${name} needs \`agent\` or \`conversation\`, got ${shown(value)}`);
        matcher(way(negated), ...args);
      });
    }
    return made;
  };
  const positive = matchers(false);
  Object.defineProperty(positive, "not", { get: () => checked(matchers(true)), enumerable: true });
  return checked(positive);
}

/** Names that languages and consoles look up in any object. */
const LOOKED_UP = new Set(["then", "toJSON", "toString", "valueOf", "constructor", "inspect"]);

/** The matchers, where an unknown name is an error with the most similar one. */
const checked = (matchers) => new Proxy(matchers, {
  get(made, name) {
    if (typeof name !== "string" || name in made || LOOKED_UP.has(name)) return made[name];
    const near = nearestName(name, Object.keys(made));
    throw misuse(`unknown matcher \`${name}\`${near === undefined ? "" : `: did you mean \`${near}\`?`}`);
  },
});

/** The most similar name, if at most a third of the letters differ. */
function nearestName(written, names) {
  if (written.length > 64) return undefined;
  const letters = written.toLowerCase();
  let best;
  for (const name of names) {
    const distance = editDistance(letters, name.toLowerCase());
    if (distance <= Math.max(1, written.length / 3) && (best === undefined || distance < best.distance)) best = { name, distance };
  }
  return best?.name;
}

/** Number of letters to insert, remove, replace or exchange with their neighbour. */
function editDistance(one, other) {
  let rows = [[], Array.from({ length: other.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const replaced = rows[1][j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1);
      row[j] = Math.min(rows[1][j] + 1, row[j - 1] + 1, replaced);
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) row[j] = Math.min(row[j], rows[0][j - 2] + 1);
    }
    rows = [rows[1], row];
  }
  return rows[1][other.length];
}

const expect = (value, message) => assertion(value, false, message);
const evaluate = (value, message) => assertion(value, true, message);
