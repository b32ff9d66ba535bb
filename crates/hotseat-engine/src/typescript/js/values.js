// Values: formatting, comparison, their placeholders, and what comparisons report.

const { hidden, decide, decidedCheck, isMapping, isObject, isPromise, isSame, judging, misuse, placeholders, refusePlaceholder, thrownWords, AssertionError, Misuse } = core;

const LONGEST = 1000;
const DEEPEST = 100;
/** Formats a value for people. */
function show(value, above = []) {
  if (value instanceof Matcher) return value.words;
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return placeholders.has(value) ? value.name : `[function ${value.name || "without a name"}]`;
  if (typeof value === "bigint") return `${value}n`;
  if (isSame(value, -0)) return "-0";
  if (!isObject(value)) return String(value);
  if (value instanceof RegExp) return String(value);
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
  if (above.includes(value)) return "[circular]";
  if (above.length >= DEEPEST) return "…";
  const inner = (one) => show(one, [...above, value]);
  if (Array.isArray(value)) return `[${value.map(inner).join(", ")}]`;
  if (value instanceof Map) return `Map {${[...value].map(([k, v]) => `${inner(k)} => ${inner(v)}`).join(", ")}}`;
  if (value instanceof Set) return `Set {${[...value].map(inner).join(", ")}}`;
  const members = Object.keys(value).map((key) => `${/^[\w$]+$/.test(key) ? key : JSON.stringify(key)}: ${inner(value[key])}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}

/** Truncates between characters, so the result is valid text. */
const short = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST).replace(/[\uD800-\uDBFF]$/, "")}…` : text);
const shown = (value) => short(show(value));

/** Placeholder for the values that it accepts. */
class Matcher {
  /** `condition` is the case file form of the matcher, or undefined if there is none. */
  constructor(words, fits, condition) {
    Object.assign(this, { words, fits, condition });
  }
}

const isNumber = (value) => typeof value === "number" && !Number.isNaN(value);

/** Returns true for numbers and false for undefined; throws for other values. */
function comparable(value, words) {
  if (value === undefined || isNumber(value)) return value !== undefined;
  throw new TypeError(`${shown(value)} is not a number, so it cannot be ${words}`);
}

const number = (words, key, holds) => (limit) => {
  if (!isNumber(limit)) throw misuse(`${words} needs a number, got ${shown(limit)}`);
  return new Matcher(`${words} ${limit}`, (value) => comparable(value, `${words} ${limit}`) && holds(value, limit), { [key]: limit });
};
const gt = number(">", "more_than", (value, limit) => value > limit);
const gte = number(">=", "at_least", (value, limit) => value >= limit);
const lt = number("<", "less_than", (value, limit) => value < limit);
const lte = number("<=", "at_most", (value, limit) => value <= limit);
const between = (least, most) => {
  for (const one of [least, most]) if (!isNumber(one)) throw misuse(`between needs two numbers, got ${shown(one)}`);
  if (least > most) throw misuse(`between(${least}, ${most}) matches nothing: the smaller number comes first`);
  const words = `from ${least} to ${most}`;
  return new Matcher(words, (value) => comparable(value, words) && value >= least && value <= most, { at_least: least, at_most: most });
};
const oneOf = (...values) => {
  if (values.length === 0 || values.includes(undefined) || values.some(Number.isNaN)) throw misuse("oneOf needs at least one value, and none may be undefined or NaN");
  if (values.length === 1 && Array.isArray(values[0])) throw misuse("oneOf takes the values as arguments, and got one list: write `oneOf(...list)`; to expect a whole list, write the list alone");
  return new Matcher(`one of ${values.map((one) => show(one)).join(", ")}`, (value) => values.some((one) => equal(value, one)), values.every(isPlain) ? { one_of: values } : undefined);
};
const anything = () => new Matcher("anything", (value) => value !== undefined && value !== null, { given: true });

/** Types of values that are no objects, by their classes. */
const PRIMITIVES = new Map([[String, "string"], [Number, "number"], [Boolean, "boolean"], [BigInt, "bigint"], [Symbol, "symbol"], [Function, "function"], [Object, "object"]]);
const any = (type) => {
  if (typeof type !== "function") throw misuse(`expect.any needs a class such as Number, got ${shown(type)}`);
  return new Matcher(`any ${type.name}`, (value) => value !== null && (typeof value === PRIMITIVES.get(type) || value instanceof type));
};
const objectContaining = (expected) => {
  if (!isMapping(expected) || Object.keys(expected).length === 0) throw misuse(`expect.objectContaining needs an object with members, got ${shown(expected)}`);
  return new Matcher(`an object with ${show(expected)}`, (value) => Object.keys(expected).every((key) => hasMember(value, key) && equal(value[key], expected[key])));
};
const arrayContaining = (expected) => {
  if (!Array.isArray(expected) || expected.length === 0) throw misuse(`expect.arrayContaining needs a list with entries, got ${shown(expected)}`);
  return new Matcher(`a list with ${show(expected)}`, (value) => Array.isArray(value) && expected.every((one) => value.some((entry) => equal(entry, one))));
};
const stringContaining = (text) => {
  if (typeof text !== "string" || text === "") throw misuse(`expect.stringContaining needs a text, got ${shown(text)}`);
  return new Matcher(`a text with ${show(text)}`, (value) => typeof value === "string" && value.includes(text));
};
const stringMatching = (pattern) => {
  if (typeof pattern === "string") return stringContaining(pattern);
  inline(pattern);
  return new Matcher(`a text that matches ${show(pattern)}`, (value) => typeof value === "string" && fits(pattern, value));
};

/** Returns the case file condition of an expected argument, or undefined if a function decides. */
function conditionOf(expected) {
  if (expected instanceof RegExp) return { regex: inline(expected) };
  if (expected instanceof Matcher) return expected.condition;
  if (!isObject(expected)) return isPlain(expected) ? { equals: expected } : undefined;
  const within = Object.entries(expected).map(([key, one]) => [key, conditionOf(one)]);
  if (within.some(([, one]) => one === undefined)) return undefined;
  if (Array.isArray(expected)) return { entries: within.map(([, one]) => one) };
  return isMapping(expected) ? { members: Object.fromEntries(within) } : undefined;
}

/** True for identical values. Throws if one of them is NaN, which would differ from every other value. */
function identical(actual, expected) {
  refusePlaceholder(expected);
  if (Number.isNaN(actual) !== Number.isNaN(expected)) throw new TypeError(`NaN cannot be compared with ${shown(Number.isNaN(actual) ? expected : actual)}`);
  return isSame(actual, expected);
}

/** Returns why no entry of a list is an expected text, if all are objects, such as tool calls in place of their names. */
function objectsInPlaceOfTexts(list, expected) {
  const text = Array.isArray(expected) ? expected[0] : expected;
  if (typeof text !== "string" || !Array.isArray(list) || list.length === 0 || !list.every(isObject)) return undefined;
  return `no entry of the list is a text: for tool calls write \`expect(agent).not.toCallTool(${JSON.stringify(text)})\`, or compare their names: \`agent.toolCalls.map((call) => call.name)\``;
}

/** Classes whose objects are compared by their values. */
const BOXED = [Number, String, Boolean, BigInt, Symbol];

/** Classes whose objects have a content that cannot be read. */
const OPAQUE = [Promise, WeakMap, WeakSet, WeakRef];

/** Returns the bytes of an object whose members do not show them. */
const bytesOf = (value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : new Uint8Array(value.buffer, value.byteOffset, value.byteLength));

/** Deep equality, with matchers. Strict equality also tells classes, undefined members and holes of lists apart. */
function equal(actual, expected, membersOf = members, compared = []) {
  const isStrict = membersOf === allMembers;
  if (expected instanceof Matcher) return Boolean(expected.fits(actual));
  if (identical(actual, expected)) return true;
  if (!isObject(actual) || !isObject(expected)) return false;
  if (compared.some(([a, b]) => a === actual && b === expected)) return true;
  const below = [...compared, [actual, expected]];
  const same = (a, b) => equal(a, b, membersOf, below);
  const isOf = (type) => actual instanceof type || expected instanceof type;
  const opaque = OPAQUE.find(isOf);
  if (opaque !== undefined) throw new TypeError(`the content of a ${opaque.name} cannot be compared`);
  if (isStrict && actual.constructor !== expected.constructor) return false;
  const boxed = BOXED.find(isOf);
  if (boxed !== undefined) return actual instanceof boxed && expected instanceof boxed && same(actual.valueOf(), expected.valueOf());
  if ([actual, expected].some((one) => one instanceof ArrayBuffer || ArrayBuffer.isView(one))) {
    if (Object.getPrototypeOf(actual) !== Object.getPrototypeOf(expected)) return false;
    if (isOf(ArrayBuffer) || isOf(DataView)) return same([...bytesOf(actual)], [...bytesOf(expected)]);
  }
  if (Array.isArray(actual) !== Array.isArray(expected)) return false;
  if (Array.isArray(actual)) {
    if (actual.length !== expected.length) return false;
    if (isStrict) return sameMembers(actual, expected, same, allMembers);
    return expected.every((one, at) => same(actual[at], one)) && sameMembers(actual, expected, same, furtherMembers);
  }
  if (actual instanceof Date || expected instanceof Date)
    return actual instanceof Date && expected instanceof Date && isSame(actual.getTime(), expected.getTime());
  if (actual instanceof RegExp || expected instanceof RegExp)
    return actual instanceof RegExp && expected instanceof RegExp && String(actual) === String(expected);
  if (isOf(Error)) {
    const facts = ({ name, message, cause, errors }) => [name, message, cause, errors];
    return actual instanceof Error && expected instanceof Error && same(facts(actual), facts(expected)) && sameMembers(actual, expected, same, membersOf);
  }
  const keyed = [Map, Set].find(isOf);
  if (keyed !== undefined) return actual instanceof keyed && expected instanceof keyed && sameEntries(actual, expected, same) && sameMembers(actual, expected, same, membersOf);
  // An iterator or an object with private fields shows no members.
  const hidesContent = (value) => !isMapping(value) && members(value).length === 0;
  if (hidesContent(actual) && hidesContent(expected)) throw new TypeError(`the content of ${shown(actual)}, of the class ${actual.constructor?.name ?? "unknown"}, cannot be compared`);
  return sameMembers(actual, expected, same, membersOf);
}

/** Returns the keys of the members of an object. */
const allMembers = (value) => Reflect.ownKeys(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key));

/** The same without undefined members, which count as missing. */
const members = (value) => allMembers(value).filter((key) => value[key] !== undefined);

/** Returns the keys of the members of a list that are no entries, such as `index` of a match. */
const furtherMembers = (list) => members(list).filter((key) => !isEntry(key));

/** Returns true if a key is that of an entry of a list. */
const isEntry = (key) => typeof key === "string" && String(key >>> 0) === key && key >>> 0 < 2 ** 32 - 1;

function sameMembers(actual, expected, same, keysOf) {
  const keys = keysOf(expected);
  return keysOf(actual).length === keys.length && keys.every((key) => Object.hasOwn(actual, key) && same(actual[key], expected[key]));
}

/** Compares maps, or sets, in any order. Keys that are objects are equal if their content is. */
function sameEntries(actual, expected, same) {
  const mapOf = (all) => (all instanceof Map ? all : new Map([...all].map((key) => [key])));
  const [ours, theirs] = [mapOf(actual), mapOf(expected)];
  const isLike = (a, b) => (b instanceof Matcher || (isObject(a) && isObject(b))) && same(a, b);
  const has = (all, key, isFound) => (all.has(key) && isFound(key, all.get(key), true)) || [...all].some(([one, value]) => isFound(one, value, false));
  return (
    ours.size === theirs.size &&
    [...theirs].every(([key, value]) => has(ours, key, (one, found, isKey) => (isKey || isLike(one, key)) && same(found, value))) &&
    [...ours].every(([key, value]) => has(theirs, key, (one, found, isKey) => (isKey || isLike(key, one)) && same(value, found)))
  );
}

/** Returns true if an object has at least the expected members. */
function holds(actual, expected) {
  if (expected instanceof RegExp) return fits(expected, textOf(actual));
  refusePlaceholder(expected);
  if (typeof expected === "function") return decidedCheck(judging(() => expected(actual)));
  if (!isMapping(expected)) return deepEqual(actual, expected);
  return isObject(actual) && !Array.isArray(actual) && allHold(Object.keys(expected), (key) => hasMember(actual, key) && holds(actual[key], expected[key]));
}

/** JSON does not tell -0 from 0. */
const withoutNegativeZero = (value) => {
  if (Array.isArray(value)) return value.map(withoutNegativeZero);
  if (isMapping(value)) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withoutNegativeZero(one)]));
  return isSame(value, -0) ? 0 : value;
};

/** Returns true if a call has at least the expected arguments. */
const argumentsHold = (call, expected) => holds(withoutNegativeZero(call.arguments), withoutNegativeZero(expected));

/** Returns true if all parts hold. One that does not takes precedence over one that cannot be decided. */
function allHold(parts, holdsOf) {
  const undecided = [];
  for (const part of parts) {
    try {
      if (!holdsOf(part)) return false;
    } catch (error) {
      if (error instanceof Misuse || error instanceof AssertionError) throw error;
      undecided.push(error);
    }
  }
  if (undecided.length > 0) throw undecided[0];
  return true;
}

/** Returns true if an object or its class has a member. */
const hasMember = (value, key) => isObject(value) && value !== Object.prototype && (Object.hasOwn(value, key) || hasMember(Object.getPrototypeOf(value), key));

/** Compares lists entry by entry, with matchers. */
function deepEqual(actual, expected) {
  if (!Array.isArray(expected)) return equal(actual, expected);
  return Array.isArray(actual) && actual.length === expected.length && allHold(expected.keys(), (at) => holds(actual[at], expected[at]));
}

const textOf = (value) => (typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value));

/** Asks the host to translate or match a regular expression, with the engine used for case files. */
function ofPattern(pattern, ask) {
  if (!(pattern instanceof RegExp)) throw misuse(`${shown(pattern)} is not a regular expression`);
  const { value, error } = ask(pattern.source, pattern.flags);
  if (error !== undefined) throw misuse(`the regular expression ${shown(pattern)}: ${error}`);
  return value;
}

/** Returns true if a regular expression matches somewhere in a text. */
const fits = (pattern, text) => ofPattern(pattern, (source, flags) => hidden.fits(source, flags, text));

/** Returns a regular expression as a case file pattern. */
const inline = (pattern) => ofPattern(pattern, (source, flags) => hidden.pattern(source, flags));

/** Returns a case file pattern that matches a text literally. */
const literally = (text) => text.replace(/[\\^$.*+?()[\]{}|\/#&~-]/g, "\\$&");

/** Returns the path of an undefined member, such as a misspelt one, which would assert nothing. */
function undefinedIn(value, path = "") {
  if (value === undefined) return path;
  const members = Array.isArray(value) ? [...value.entries()] : isMapping(value) ? Object.entries(value) : [];
  for (const [key, one] of members) {
    const found = undefinedIn(one, path === "" ? `${key}` : `${path}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns true if a value survives a JSON round trip. */
const isPlain = (value) =>
  value === null ||
  ["string", "boolean"].includes(typeof value) ||
  (typeof value === "number" && Number.isFinite(value)) ||
  (Array.isArray(value) && value.every(isPlain)) ||
  (isMapping(value) && Object.values(value).every(isPlain));

/** Returns the first value that no argument can have, with its path: neither plain, nor a pattern, a function or a matcher. */
function unrepresentable(value, path = "") {
  if (isPlain(value) || typeof value === "function" || value instanceof RegExp || value instanceof Matcher) return undefined;
  if (!Array.isArray(value) && !isMapping(value)) return { path, value };
  for (const [key, one] of Object.entries(value)) {
    const found = unrepresentable(one, path === "" ? key : `${path}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Validates the expected arguments of a call: none may be undefined. */
function definite(expected) {
  if (!isObject(expected) || Array.isArray(expected)) throw misuse(`the arguments of a call must be an object, got ${shown(expected)}`);
  const missing = undefinedIn(expected);
  if (missing !== undefined) throw misuse(`\`${missing}\` of the arguments is undefined, which would assert nothing`);
  const none = unrepresentable(expected);
  if (none !== undefined) throw misuse(`${none.path === "" ? "the value" : `\`${none.path}\``} of the arguments is ${shown(none.value)}, which JSON cannot represent`);
  return expected;
}

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
    const returned = judging(work);
    return { holds: decidedCheck(returned), actual: `the function returned ${shown(returned)}` };
  });
  return { expected, ...found };
}

return {
  Matcher, allHold, allMembers, any, anything, argumentsHold, arrayContaining, asCompared, between, compare, conditionOf, definite, equal, fits, gt, gte, holds, identical, inline, isNumber, isPlain, judged, literally, lt, lte, objectContaining, objectsInPlaceOfTexts, oneOf,
  show, shown, stringContaining, stringMatching, textOf, tried, undefinedIn,
};
