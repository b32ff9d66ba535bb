// Matchers for plain values.

const { hidden, isMapping, isObject, isPromise, misuse, part, ran, OF_AGENT, AssertionError, Misuse } = core;
const { Matcher, allMembers, compare, equal, fits, holds, identical, isNumber, judged, show, shown, tried } = part("values");

const is = (holds) => ({ holds });
/** A function in place of its result would decide the comparison by itself. */
const uncalled = (actual, expected) => (typeof actual === "function" && typeof expected !== "function" && !(expected instanceof Matcher) ? { error: "the value is a function: call it" } : undefined);
const sized = (value) => (Array.isArray(value) || ArrayBuffer.isView(value) ? value.length : value instanceof Map || value instanceof Set ? value.size : typeof value?.length === "number" && typeof value !== "function" ? value.length : undefined);
/** Descriptions of matchers whose names do not describe them well. */
const WORDS = {
  toEqual: "to be",
  toStrictEqual: "to be",
  toBeGreaterThan: "to be more than",
  toBeGreaterThanOrEqual: "to be at least",
  toBeLessThan: "to be less than",
  toBeLessThanOrEqual: "to be at most",
  toHaveLength: "to have a length of",
};
const inWords = (words) => words.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** Looks up a path in a value: `a.b[0]`, or a list of keys. A member with the whole path as its key takes precedence. */
function valueAt(value, path) {
  const keys = Array.isArray(path) ? path : isObject(value) && Object.hasOwn(value, path) ? [path] : path.replace(/\[(\w+)\]/g, ".$1").split(".").filter((key) => key !== "");
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

/** Returns why a negated comparison would pass although the content is the expected one. */
function unequalAnyway(name, value, expected) {
  if (!isObject(expected) || expected instanceof Matcher) return undefined;
  const isOfEntries = name.startsWith("toContain");
  const entries = Array.isArray(value) || value instanceof Set ? [...value] : [];
  const found = isOfEntries ? entries : [value];
  if (expected instanceof RegExp && found.some((one) => typeof one === "string")) return `no text equals a regular expression: use ${isOfEntries ? `not.toContainEqual(expect.stringMatching(${show(expected)}))` : "not.toMatch"}`;
  if (!["toBe", "toContain"].includes(name) || found.includes(expected)) return undefined;
  const isLike = isOfEntries ? holds : equal;
  if (!found.some((one) => tried(() => isLike(one, expected)) === true)) return undefined;
  return `it looks for the same object, and ${shown(expected)} is another one with this content: use ${isOfEntries ? "not.toContainEqual, with expect.objectContaining for some members" : "not.toEqual"}`;
}

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
  toBe: (actual, expected) => uncalled(actual, expected) ?? is(expected instanceof Matcher ? equal(actual, expected) : identical(actual, expected)),
  toEqual: (actual, expected) => uncalled(actual, expected) ?? is(equal(actual, expected)),
  toStrictEqual: (actual, expected) => uncalled(actual, expected) ?? is(equal(actual, expected, allMembers)),
  toMatchObject(actual, expected) {
    if (!isObject(expected)) throw misuse(`toMatchObject needs an object, got ${shown(expected)}`);
    if (isMapping(expected) && Object.keys(expected).length === 0) throw misuse("toMatchObject({}) accepts every object; name members, or use toEqual({})");
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
    return is(all.every((one) => entries.some((entry) => (one instanceof Matcher ? equal(entry, one) : identical(entry, one)))));
  },
  toContainEqual(actual, ...all) {
    if (all.includes(undefined)) throw misuse("toContainEqual needs a value, got undefined");
    const entries = typeof actual === "string" ? undefined : entriesOf(actual);
    if (entries === undefined) return { error: `${shown(actual)} is not a list` };
    return is(all.every((one) => entries.some((entry) => equal(entry, one))));
  },
  toMatch(actual, pattern) {
    if (!(pattern instanceof RegExp) && (typeof pattern !== "string" || pattern === "")) throw misuse(`toMatch needs a regular expression or a non-empty string, got ${shown(pattern)}`);
    if (typeof actual !== "string") return { error: `${shown(actual)} is not a string${typeof actual?.text === "string" ? ": match its `text`" : ""}` };
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
  toBeTruthy: (actual) => uncalled(actual) ?? is(Boolean(actual)),
  toBeFalsy: (actual) => uncalled(actual) ?? is(!actual),
  toBeNull: (actual) => uncalled(actual) ?? is(actual === null),
  toBeUndefined: (actual) => uncalled(actual) ?? is(actual === undefined),
  toBeDefined: (actual) => uncalled(actual) ?? is(actual !== undefined),
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
    if (wanted.length > 0 && (expected === undefined || expected === "")) throw misuse(`toThrow needs a non-empty string, a pattern, a class or a value, got ${shown(expected)}`);
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

/** Compares a value. The place of the call is part of `way`. */
function compareValue(name, value, args, way) {
  const { holds: found, actual, error } = tried(() => ofValues[name](value, ...args));
  const expected = `${WORDS[name] ?? inWords(name)}${args.length > 0 ? ` ${args.map((one) => show(one)).join(", ")}` : ""}`;
  compare("value", { expected, holds: found, actual: actual ?? show(value), error }, way);
}

/** Names that languages and consoles look up in any object. */
const LOOKED_UP = ["then", "toJSON", "inspect"];

/** Matchers of other tools for calls. */
const CALL_MATCHERS = ["toHaveBeenCalled", "toHaveBeenCalledWith", "toBeCalled", "toBeCalledWith", "toHaveBeenCalledTimes"];

/** Refuses an unknown matcher, with the most similar one. */
function unknown(written, subject, negated) {
  if (LOOKED_UP.includes(written)) return [];
  const [own, other] = subject === "value" ? [ofValues, OF_AGENT] : [OF_AGENT, ofValues];
  const isOther = (name) => !Object.hasOwn(own, name);
  const [first, second] = subject === "value" ? [Object.keys(own), Object.keys(other).filter(isOther)] : [Object.keys(other).filter(isOther), Object.keys(own)];
  const near = CALL_MATCHERS.includes(written) ? "toCallTool" : hidden.nearest(written, [...first, ...second, ...(negated ? [] : ["not"])]);
  throw misuse(`unknown matcher \`${written}\`${near === null ? "" : `: did you mean \`${near}\`?`}`);
}

return { GIVEN_OF_VALUES, LOOKED_UP, TYPES, compareValue, ofValues, sized, typeName, unequalAnyway, unknown, valueAt };
