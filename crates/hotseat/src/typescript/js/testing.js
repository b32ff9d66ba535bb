// Tests that are functions with a `t`, as they are known from Go.

/** Stops a function of a test, which goes on elsewhere or not. */
class Stop extends AssertionError {}

function testing(name, state) {
  const told = (values) => values.map((value) => (typeof value === "string" ? value : shown(value))).join(" ");
  const prefix = state.above.length > 0 ? `${state.above.join(" > ")}: ` : "";
  /** Notes a comparison. The test goes on whatever it comes to. */
  const note = (kind, found, message) => {
    const { holds: held, expected, actual, error } = found;
    if (error !== undefined || !held) state.failed = true;
    compare(kind, { expected: `${prefix}${expected}`, actual, holds: held === true, error, message: typeof message === "string" ? `${prefix}${message}` : undefined }, { soft: false, negated: false, ends: false });
    return held === true;
  };
  const fail = (words) => note("fail", { holds: false, expected: words, actual: "the test says so" });

  const needs = (name, least, work, messageAt) =>
    function (...args) {
      if (args.length < least) return note(name, { holds: false, expected: `${name} is given ${least} argument${least === 1 ? "" : "s"}`, actual: `${args.length}` });
      return note(name, work(...args), args[messageAt ?? least]);
    };
  const contains = (value, part) => {
    if (typeof value === "string") return value.includes(String(part));
    if (Array.isArray(value)) return value.some((one) => equal(one, part));
    return show(value).includes(String(part)) || textOf(value).includes(String(part));
  };
  const length = (value) => (isObject(value) && !Array.isArray(value) && sized(value) === undefined ? Object.keys(value).length : sized(value));
  const pattern = (one) => (one instanceof RegExp ? one : new RegExp(String(one)));
  const asText = (value) => (typeof value === "string" ? value : textOf(value));
  const numbers = (words, holdsFor) => (a, b) => ({ holds: typeof a === "number" && typeof b === "number" && holdsFor(a, b), expected: `${words} ${shown(b)}`, actual: shown(a) });
  const thrown = (work, wanted) => {
    const expected = wanted ? "the function throws" : "the function does not throw";
    if (typeof work !== "function") return { holds: false, expected, actual: `${shown(work)} is no function` };
    const of = (error) => ({ holds: wanted, expected, actual: `it throws ${shown(error)}` });
    try {
      const returned = work();
      if (isObject(returned) && typeof returned.then === "function") return returned.then(() => ({ holds: !wanted, expected, actual: "it throws nothing" }), of);
      return { holds: !wanted, expected, actual: "it throws nothing" };
    } catch (error) {
      return of(error);
    }
  };
  const panics = (name, wanted) =>
    function (...args) {
      if (args.length < 1) return note(name, { holds: false, expected: `${name} is given a function`, actual: "nothing" });
      const found = thrown(args[0], wanted);
      return typeof found.then === "function" ? found.then((one) => note(name, one, args[1])) : note(name, found, args[1]);
    };

  const t = {
    name,
    get failed() {
      return state.failed;
    },
    log: (...values) => console.log(`${prefix}${told(values)}`),
    error: (...values) => void fail(told(values)),
    fail: (reason = "test failed") => void fail(String(reason)),
    fatal(reason = "test failed") {
      fail(String(reason));
      throw new Stop(String(reason));
    },
    skip(reason = "skipped by the test") {
      console.log(`SKIP: ${prefix}${reason}`);
      if (state.above.length === 0) ask({ do: "skip", reason: String(reason) });
      throw new Stop(String(reason));
    },
    run(inner, work) {
      if (typeof work !== "function") throw new TypeError(`t.run(${shown(inner)}) needs a function`);
      const within = { above: [...state.above, String(inner)], failed: false };
      const ended = () => {
        state.failed ||= within.failed;
        return !within.failed;
      };
      const broken = (error) => {
        if (!(error instanceof Stop)) throw error;
        return ended();
      };
      try {
        const returned = work(testing(String(inner), within));
        return isObject(returned) && typeof returned.then === "function" ? returned.then(ended, broken) : ended();
      } catch (error) {
        return broken(error);
      }
    },
    assert: {
      True: needs("True", 1, (value) => ({ holds: Boolean(value), expected: "true", actual: shown(value) })),
      False: needs("False", 1, (value) => ({ holds: !value, expected: "false", actual: shown(value) })),
      Equal: needs("Equal", 2, (actual, expected) => ({ holds: equal(actual, expected), expected: `equal to ${shown(expected)}`, actual: shown(actual) })),
      NotEqual: needs("NotEqual", 2, (actual, expected) => ({ holds: !equal(actual, expected), expected: `not equal to ${shown(expected)}`, actual: shown(actual) })),
      Nil: needs("Nil", 1, (value) => ({ holds: value === null || value === undefined, expected: "null or undefined", actual: shown(value) })),
      NotNil: needs("NotNil", 1, (value) => ({ holds: value !== null && value !== undefined, expected: "neither null nor undefined", actual: shown(value) })),
      Contains: needs("Contains", 2, (value, part) => ({ holds: contains(value, part), expected: `contains ${shown(part)}`, actual: shown(value) })),
      NotContains: needs("NotContains", 2, (value, part) => ({ holds: !contains(value, part), expected: `does not contain ${shown(part)}`, actual: shown(value) })),
      Len: needs("Len", 2, (value, count) => ({ holds: length(value) === count, expected: `of length ${shown(count)}`, actual: `${length(value) ?? "without a length"}: ${shown(value)}` })),
      Greater: needs("Greater", 2, numbers("greater than", (a, b) => a > b)),
      GreaterOrEqual: needs("GreaterOrEqual", 2, numbers("greater than or equal to", (a, b) => a >= b)),
      Less: needs("Less", 2, numbers("less than", (a, b) => a < b)),
      LessOrEqual: needs("LessOrEqual", 2, numbers("less than or equal to", (a, b) => a <= b)),
      Error: needs("Error", 1, (value) => ({ holds: value !== null && value !== undefined, expected: "an error", actual: shown(value) })),
      NoError: needs("NoError", 1, (value) => ({ holds: value === null || value === undefined, expected: "no error", actual: shown(value) })),
      Panic: panics("Panic", true),
      NoPanic: panics("NoPanic", false),
      Match: needs("Match", 2, (value, one) => ({ holds: fits(pattern(one), asText(value)), expected: `matches ${pattern(one)}`, actual: shown(value) })),
      NotMatch: needs("NotMatch", 2, (value, one) => ({ holds: !fits(pattern(one), asText(value)), expected: `does not match ${pattern(one)}`, actual: shown(value) })),
      Type: needs("Type", 2, (value, type) => ({ holds: typeName(value) === type, expected: `of type ${type}`, actual: `${typeName(value)}: ${shown(value)}` })),
      JSONPath: needs("JSONPath", 3, (value, path, expected) => {
        const { holds: found, actual, error } = ask({ do: "path", value: value === undefined ? null : value, path: String(path), expected: expected === undefined ? null : expected });
        return { holds: found, error, expected: `${path} is ${shown(expected)}`, actual };
      }),
      Agent(response, judge, options = {}) {
        if (arguments.length < 2) return note("Agent", { holds: false, expected: "Agent is given a response and a judge", actual: `${arguments.length}` });
        const answer = ask({ do: "judge", response: response === undefined ? null : response, judge: String(judge), options: withSources(options), at: at() });
        if (!answer.passed) state.failed = true;
        return answer;
      },
    },
  };
  return t;
}
