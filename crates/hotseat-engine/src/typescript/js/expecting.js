// Assertions. Every comparison is reported to the host, which decides the outcome of the case.

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

/** Returns the object with matchers for `expect` and `evaluate`. */
function assertion(value, soft, message) {
  within(soft ? "evaluate" : "expect");
  if (message !== undefined && typeof message !== "string") throw misuse(`the failure message must be a string, got ${shown(message)}`);
  const subject = value === agent ? "turn" : value === conversation ? "conversation" : "value";
  if (subject === "value" && isPromise(value)) throw misuse(`${soft ? "evaluate" : "expect"} got a promise: await the value first`);
  const open = { at: at(), soft };
  unfinished.add(open);
  const way = (negated) => ({ soft, negated, message, subject, ends: true, at: at() });
  return matchers({ value, subject, open, way }, false);
}

/** The matchers of an assertion. One is made when it is called for. */
const matchers = (asserted, negated) => new Proxy({}, {
  get(made, name) {
    if (name === "not" && !negated) return matchers(asserted, true);
    if (typeof name !== "string" || name in made) return made[name];
    const [given, work] = (asserted.subject === "value" ? ofValue(name) ?? ofAgent(name) : ofAgent(name) ?? ofValue(name)) ?? part("valueMatchers").unknown(name, asserted.subject, negated);
    if (given === undefined) return undefined;
    return (...args) => {
      unfinished.delete(asserted.open);
      taken(name, args, given);
      work(asserted, negated, args);
    };
  },
});

/** Matchers for `agent` and `conversation`: their parts, and their minimum and maximum number of arguments. */
const OF_AGENT = {
  toSatisfy: ["agentMatchers", [1, Infinity]],
  toMatch: ["textMatchers", [1, Infinity]],
  toMatchAny: ["textMatchers", [1, Infinity]],
  toContain: ["textMatchers", [1, Infinity]],
  toCallTool: ["toolMatchers", [1, 3]],
  toHaveToolCall: ["toolMatchers", [1, 3]],
  toBeGroundedIn: ["agentMatchers", [1, Infinity]],
  toClaim: ["agentMatchers", [1, Infinity]],
  toHaveIntent: ["agentMatchers", [1, 2]],
  toBeInTopic: ["agentMatchers", [1, 1]],
  toHaveReachedTopic: ["agentMatchers", [1, 1]],
  toHaveAchievedStatedGoal: ["agentMatchers", [0, 0]],
  toHaveAchievedGoal: ["agentMatchers", [1, 1]],
  toHold: ["agentMatchers", [1, 1]],
};

const NO_TURN = "there is no turn yet";
const needsTurn = (words) => (turns.length === 0 ? { expected: words, error: NO_TURN } : undefined);

/** Validates an options object: no keys other than these. Returns it. */
function only(what, options, keys) {
  if (!isMapping(options)) throw misuse(`the options of ${what} must be an object, got ${shown(options)}`);
  const unknown = Object.keys(options).find((key) => !keys.includes(key));
  if (unknown !== undefined) throw misuse(`${what} has no option \`${unknown}\`; expected ${keys.map((key) => `\`${key}\``).join(", ")}`);
  return options;
}

/** Returns the number of arguments of a matcher for `agent` and `conversation`, and what it does. */
function ofAgent(name) {
  if (!Object.hasOwn(OF_AGENT, name)) return undefined;
  const [from, given] = OF_AGENT[name];
  return [given, ({ value, subject, way }, negated, args) => {
    if (subject === "value") throw misuse(`${name} needs \`agent\` or \`conversation\`, got ${shown(value)}`);
    part(from).matchers[name](way(negated), ...args);
  }];
}

/** Matchers whose negation says something about an undefined value. */
const TELL_UNDEFINED = ["toBeUndefined", "toBeDefined", "toBeNull", "toBeTruthy", "toBeFalsy", "toBeTypeOf", "toSatisfy", "toThrow"];

/** True for undefined, for lists and sets that contain it, and for objects in which an expected member is: what another name gives. */
function isUndefinedWithin(value, expected) {
  if (Array.isArray(value)) return value.includes(undefined);
  if (value instanceof Set) return value.has(undefined);
  if (isMapping(value) && isMapping(expected)) return Object.keys(value).some((key) => value[key] === undefined && expected[key] !== undefined);
  return value === undefined;
}

/** Matchers that compare a value or its entries with their argument. */
const COMPARE_ENTRIES = ["toBe", "toEqual", "toStrictEqual", "toMatchObject", "toContain", "toContainEqual"];

/** The same of a matcher for values. */
function ofValue(name) {
  const { GIVEN_OF_VALUES, compareValue, ofValues, unequalAnyway } = part("valueMatchers");
  if (!Object.hasOwn(ofValues, name)) return undefined;
  return [GIVEN_OF_VALUES[name] ?? [1, 1], ({ value, subject, way }, negated, args) => {
    if (negated && args.length > 1 && name.startsWith("toContain")) throw misuse(`not.${name} needs one value: negating several is ambiguous`);
    if (negated && !TELL_UNDEFINED.includes(name) && args[0] !== undefined && isUndefinedWithin(value, args[0])) throw misuse(`not.${name} would pass because ${value === undefined ? "the value" : "a member of the value"} is undefined: is a name misspelt? Assert toBeDefined or toBeUndefined instead`);
    if (negated && ["toBe", "toEqual", "toStrictEqual"].includes(name) && typeof args[0] === "string" && value instanceof AgentResponse) throw misuse(`not.${name} would pass because the response is an object, not a text: use its \`text\``);
    const objects = negated && COMPARE_ENTRIES.includes(name) ? part("values").objectsInPlaceOfTexts(value, args[0]) : undefined;
    if (objects !== undefined) throw misuse(`not.${name} would pass because ${objects}`);
    if (subject !== "value") throw misuse(`${name} compares values, and \`${subject === "turn" ? "agent" : "conversation"}\` is not a value: use one of its members, for example \`agent.response.text\``);
    const unequal = negated && COMPARE_ENTRIES.includes(name) ? unequalAnyway(name, value, args[0]) : undefined;
    if (unequal !== undefined) throw misuse(`not.${name} would pass because ${unequal}`);
    compareValue(name, value, args, way(negated));
  }];
}

const expect = exact("expect", (value, message) => assertion(value, false, message));
const evaluate = exact("evaluate", (value, message) => assertion(value, true, message));
