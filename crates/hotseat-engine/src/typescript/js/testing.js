// Test functions with a `t` argument, as in Go.

const { ask, at, current, exact, exactMethods, hidden, isGenerator, isObject, isPromise, isUndefinedWithin, misuse, part, ran, withSources, AssertionError, RAN_NOTHING } = core;
const { compare, equal, fits, isNumber, isPlain, objectsInPlaceOfTexts, show, shown, textOf, tried } = part("values");
const { LOOKED_UP, TYPES, sized, typeName } = part("valueMatchers");

/** True if JSON would hold null or an empty object in place of a part of a value. */
const isLossy = (value) => (typeof value === "number" && !Number.isFinite(value)) || value instanceof Map || value instanceof Set || (isObject(value) && Object.values(value).some(isLossy));

/** Stops a test function or subtest. */
class Stop extends AssertionError {}

const nothing = () => {};

/** Returns the assertions, which answer an unknown name with the most similar one. */
const refusingUnknown = (assertions) => new Proxy(assertions, {
  get(known, name) {
    if (typeof name !== "string" || name in known || LOOKED_UP.includes(name)) return known[name];
    const near = hidden.nearest(name, Object.keys(known));
    throw misuse(`unknown assertion \`t.assert.${name}\`${near === null ? `: there are ${Object.keys(known).join(", ")}` : `: did you mean \`t.assert.${near}\`?`}`);
  },
});

function testing(name, state) {
  const told = (values) => values.map((value) => (typeof value === "string" ? value : shown(value))).join(" ");
  const prefix = state.above.length > 0 ? `${state.above.join(" > ")}: ` : "";
  /** Records a comparison. The test continues after a failure. */
  const note = (kind, found, message) => {
    const { holds: held, expected, actual, error } = found;
    if (error !== undefined || !held) state.failed = true;
    const way = { soft: false, negated: false, ends: false, subject: "value", message: message === undefined ? undefined : `${prefix}${message}` };
    compare(kind, { expected: `${prefix}${expected}`, actual, holds: held, error }, way);
    return held === true;
  };
  const fail = (words) => note("fail", { holds: false, expected: "the test not to report a failure", actual: words }, words);

  /** Validates the arguments of an assertion: `count` values and an optional message. Returns an undecided check or undefined. */
  const given = (name, count, args) => {
    const expected = `${name} expects ${count} argument${count === 1 ? "" : "s"} and an optional message`;
    if (args.length < count || args.length > count + 1) return { expected, error: `${expected}, got ${args.length}` };
    if (args.slice(0, count).some(isPromise)) return { expected, error: "a promise was passed: await the value first" };
    if (args.length > count && args[count] !== undefined && typeof args[count] !== "string") return { expected, error: `${shown(args[count])} is not a message` };
    return undefined;
  };
  const needs = (name, count, work) =>
    function (...args) {
      const wrong = given(name, count, args);
      return wrong === undefined ? note(name, work(...args), args[count]) : note(name, wrong);
    };
  const is = (expected, value, holds) => ({ expected, actual: shown(value), holds });
  const undecided = (expected, words) => ({ expected, error: words });
  const equals = (words, wanted) => (value, one) => {
    const expected = `${words} ${shown(one)}`;
    const objects = wanted ? undefined : objectsInPlaceOfTexts(value, one);
    if (objects !== undefined) return undecided(expected, objects);
    if (!wanted && one !== undefined && isUndefinedWithin(value, one)) return undecided(expected, `${shown(value)} is undefined or has an undefined member: is a name misspelt?`);
    return { expected, ...tried(() => ({ actual: shown(value), holds: equal(value, one) === wanted })) };
  };
  const contains = (words, wanted) => (value, part) => {
    const expected = `${words} ${shown(part)}`;
    const found = (holds) => is(expected, value, holds === wanted);
    const objects = wanted ? undefined : objectsInPlaceOfTexts(value, part);
    if (objects !== undefined) return undecided(expected, objects);
    if (Array.isArray(value) && part !== undefined) return { expected, ...tried(() => found(value.some((one) => equal(one, part)))) };
    const text = typeof part === "number" ? String(part) : part;
    if (typeof text !== "string" || text === "") return undecided(expected, `${shown(part)} cannot be searched for`);
    if (typeof value === "string") return found(value.includes(text));
    if (!isObject(value)) return undecided(expected, `${shown(value)} cannot contain anything`);
    return found(show(value).includes(text) || textOf(value).includes(text) || hasText(value, text));
  };
  /** True if a string in an object contains a text, which `show` would show with escapes. */
  const hasText = (value, text, above = []) => {
    if (typeof value === "string") return value.includes(text);
    if (!isObject(value) || above.includes(value)) return false;
    const within = value instanceof Map || value instanceof Set ? [...value].flat() : Object.entries(value).flat();
    return within.some((one) => hasText(one, text, [...above, value]));
  };
  // Other values would hide a misspelt property, whose value is undefined.
  const boolean = (wanted) => (value) => (typeof value === "boolean" ? is(String(wanted), value, value === wanted) : undecided(String(wanted), `${shown(value)} is neither true nor false`));
  const length = (value) => sized(value) ?? (isObject(value) ? Object.keys(value).length : undefined);
  const matches = (words, wanted) => (value, one) => {
    const expected = `${words} ${shown(one)}`;
    if (!(one instanceof RegExp) && (typeof one !== "string" || one === "")) return undecided(expected, `${shown(one)} is not a pattern`);
    if (typeof value !== "string" && !isObject(value)) return undecided(expected, `${shown(value)} is not a string`);
    const pattern = one instanceof RegExp ? one : new RegExp(one);
    return is(`${words} ${pattern}`, value, fits(pattern, textOf(value)) === wanted);
  };
  const numbers = (words, holdsFor) => (a, b) => {
    const expected = `${words} ${shown(b)}`;
    const other = [a, b].find((one) => !isNumber(one));
    return isNumber(a) && isNumber(b) ? is(expected, a, holdsFor(a, b)) : undecided(expected, `${shown(other)} is not a number`);
  };
  const thrown = (work, wanted) => {
    const expected = wanted ? "the function to throw" : "the function not to throw";
    if (typeof work !== "function") return { holds: false, expected, actual: `${shown(work)} is not a function` };
    const of = (error) => ({ holds: wanted, expected, actual: `it throws ${shown(error)}` });
    try {
      const returned = work();
      if (isGenerator(returned)) return { expected, error: RAN_NOTHING };
      if (isPromise(returned)) return returned.then(() => ({ holds: !wanted, expected, actual: "it throws nothing" }), of);
      return { holds: !wanted, expected, actual: "it throws nothing" };
    } catch (error) {
      return of(error);
    }
  };
  const panics = (name, wanted) =>
    function (...args) {
      const wrong = given(name, 1, args);
      if (wrong !== undefined) return note(name, wrong);
      const found = thrown(args[0], wanted);
      if (typeof found.then !== "function") return note(name, found, args[1]);
      const noted = found.then((one) => note(name, one, args[1]));
      current.unsettled.push(noted);
      return noted;
    };

  const t = exactMethods("t", {
    name,
    get failed() {
      return state.failed;
    },
    log: (...values) => console.log(`${prefix}${told(values)}`),
    error: (...values) => void fail(told(values)),
    fail: (reason) => void fail(String(reason ?? "test failed")),
    fatal(reason) {
      const words = String(reason ?? "test failed");
      fail(words);
      throw new Stop(words);
    },
    skip(reason) {
      reason ??= "skipped by the test";
      console.log(`SKIP: ${prefix}${reason}`);
      if (state.above.length === 0 && current.broken === undefined) ask({ do: "skip", reason: String(reason) });
      throw new Stop(String(reason));
    },
    run(inner, work) {
      if (typeof work !== "function") throw misuse(`t.run(${shown(inner)}) needs a function`);
      const within = { above: [...state.above, String(inner)], failed: false };
      const ended = () => {
        state.failed ||= within.failed;
        return !within.failed;
      };
      const broken = (error) => {
        if (error instanceof Stop) return ended();
        state.failed = true;
        if (!(error instanceof AssertionError)) current.broken ??= { error };
        throw error;
      };
      try {
        const returned = ran(work(testing(String(inner), within)));
        if (!isPromise(returned)) return ended();
        const settled = returned.then(ended, broken);
        // An error of a subtest that is not awaited stays unhandled.
        current.unsettled.push(returned.then(nothing, nothing));
        return settled;
      } catch (error) {
        return broken(error);
      }
    },
    assert: refusingUnknown({
      True: needs("True", 1, boolean(true)),
      False: needs("False", 1, boolean(false)),
      Equal: needs("Equal", 2, equals("the value to equal", true)),
      NotEqual: needs("NotEqual", 2, equals("the value not to equal", false)),
      Nil: needs("Nil", 1, (value) => ({ holds: value === null || value === undefined, expected: "null or undefined", actual: shown(value) })),
      NotNil: needs("NotNil", 1, (value) => ({ holds: value !== null && value !== undefined, expected: "neither null nor undefined", actual: shown(value) })),
      Contains: needs("Contains", 2, contains("the value to contain", true)),
      NotContains: needs("NotContains", 2, contains("the value not to contain", false)),
      Len: needs("Len", 2, (value, count) => {
        const [expected, found] = [`a length of ${shown(count)}`, length(value)];
        if (!Number.isInteger(count) || count < 0) return undecided(expected, `${shown(count)} is not a length`);
        if (found === undefined) return undecided(expected, `${shown(value)} has no length`);
        return { expected, actual: `${found}: ${shown(value)}`, holds: found === count };
      }),
      Greater: needs("Greater", 2, numbers("a number greater than", (a, b) => a > b)),
      GreaterOrEqual: needs("GreaterOrEqual", 2, numbers("a number greater than or equal to", (a, b) => a >= b)),
      Less: needs("Less", 2, numbers("a number less than", (a, b) => a < b)),
      LessOrEqual: needs("LessOrEqual", 2, numbers("a number less than or equal to", (a, b) => a <= b)),
      Error: needs("Error", 1, (value) => {
        const isMissing = value === null || value === undefined;
        return isMissing || value instanceof Error ? is("an error", value, !isMissing) : undecided("an error", `${shown(value)} is not an error`);
      }),
      NoError: needs("NoError", 1, (value) => ({ holds: value === null || value === undefined, expected: "no error", actual: shown(value) })),
      Panic: panics("Panic", true),
      NoPanic: panics("NoPanic", false),
      Match: needs("Match", 2, matches("the value to match", true)),
      NotMatch: needs("NotMatch", 2, matches("the value not to match", false)),
      Type: needs("Type", 2, (value, type) => {
        const expected = `a value of type ${shown(type)}`;
        if (!TYPES.includes(type)) return undecided(expected, `${shown(type)} is not a type: there are ${TYPES.join(", ")}`);
        return { expected, actual: `${typeName(value)}: ${shown(value)}`, holds: typeName(value) === type };
      }),
      JSONPath: needs("JSONPath", 3, (value, path, expected) => {
        for (const one of [value, path, expected]) if (one === undefined) return undecided(`${shown(path)} to be ${shown(expected)}`, "one of the values that are compared is undefined");
        // JSON would make it null.
        if (!isPlain(expected)) return undecided(`${shown(path)} to be ${shown(expected)}`, "JSON cannot represent the expected value");
        if (isLossy(value)) return undecided(`${shown(path)} to be ${shown(expected)}`, `JSON cannot represent ${shown(value)}`);
        const { holds: found, actual, error } = ask({ do: "path", value, path: String(path), expected });
        return { holds: found, error, expected: `${path} to be ${shown(expected)}`, actual };
      }),
      Agent: exact("t.assert.Agent", function (response, judge, options) {
        if (arguments.length < 2) return note("Agent", { holds: false, expected: "Agent to be given a response and a judge", actual: `${arguments.length}` });
        const answer = ask({ do: "judge", response: response === undefined ? null : response, judge: String(judge), options: withSources(options ?? {}), at: at() });
        if (!answer.passed) state.failed = true;
        return answer;
      }),
    }),
  }, ["log", "error"]);
  return t;
}

return { testing };
