// Entry points for the host: list the declarations of a file, and run one test.

/** Runs a test. The host knows its result; returns whether it was stopped. */
async function run(namespace, { kind, name, ctx, unseen }) {
  current.unseen = unseen;
  // Only the test that runs was kept.
  const test = kind === "test" ? { group: file } : tests[0];
  if (kind === "it" && (test === undefined || fullName(test) !== name)) throw new Error(`\`${name}\` was declared when the run was planned, but is no longer declared`);
  const chain = test.group.chain;
  const body = () => (kind === "test" ? namespace[name](part("testing").testing(name, { above: [], failed: false }), ctx) : test.body({ user, agent, conversation, scenario: test.scenario, ctx }));
  current.running = { criteria: over(chain, "criteria"), topics: over(chain, "topics"), simulators: chain.flatMap((one) => one.simulators) };
  let stopped = false;
  try {
    await around(chain, body).finally(() => ask({ do: "end" }));
    for (const { at: where, soft } of unfinished) {
      const error = new Error(`\`${soft ? "evaluate" : "expect"}(…)\` asserts nothing: call a matcher on it, for example \`.toBe(…)\``);
      error.stack = where;
      throw error;
    }
  } catch (error) {
    // The host has recorded the reason.
    if (!(error instanceof AssertionError)) throw error;
    stopped = true;
  }
  // The subtest has failed, also if the test caught its error.
  if (current.broken !== undefined) throw current.broken.error;
  return { stopped };
}

/** Runs a function with the hooks of its groups: `before` from outer to inner, `after` in reverse, always. */
async function around(chain, work) {
  let failed;
  try {
    for (const one of chain) for (const hook of one.before) await ran(hook());
    await ran(work());
    for (const one of current.unsettled) await one;
  } catch (error) {
    failed = { error };
  }
  for (const one of chain.toReversed()) {
    for (const hook of one.after.toReversed()) {
      try {
        await ran(hook());
      } catch (error) {
        if (failed === undefined || failed.error instanceof AssertionError) failed = { error: failed?.error ?? error };
      }
    }
  }
  if (failed !== undefined) throw failed.error;
}

/** What the parts use. */
const core = {
  areUnreadable, asWritten, ask, at, callsOf, caseKey, conversation, current, decide, decided, decidedCheck, declaringAtOnce, exact, exactMembers, exactMethods, file, fullName, functions, groups, hasCallOf, hidden, hooks, isGenerator, isMapping, isNamed, isObject, isPromise, isSame, isUndefinedWithin, judging, misuse,
  outside, needsTurn, only, over, part, placeholders, ran, reference, refusePlaceholder, shown, sourceOf, stated, structured, tests, thrownWords, turns, withSources, within, AssertionError, Misuse, OF_AGENT, RAN_NOTHING,
};

/** Returns a function of a part, which takes `most` arguments if that is not the number of its parameters. */
const later = (from, name, most) => {
  const call = (...args) => exact(name, part(from)[name], most)(...args);
  return Object.defineProperty(call, "name", { value: name });
};
const declares = (name, most) => later("declarations", name, most);
const matching = (name, most) => {
  const made = later("values", name, most);
  placeholders.add(made);
  return made;
};

// As in other test tools.
Object.assign(expect, {
  soft: () => {
    throw misuse("there is no expect.soft: `evaluate(…)` records a result that does not decide, and `t.assert` of a test function continues after a failure");
  },
  anything: matching("anything"), any: matching("any"), objectContaining: matching("objectContaining"), arrayContaining: matching("arrayContaining"),
  stringContaining: matching("stringContaining"), stringMatching: matching("stringMatching"),
});

return {
  exports: {
    describe, context: describe, it, test: it, before, beforeEach: before, after, afterEach: after,
    criterion: declares("criterion", 3), topic: declares("topic"), simulator: declares("simulator"), scenarioSet: declares("scenarioSet"),
    expectConversationTo: later("simulating", "expectConversationTo"), user, agent, conversation, expect, evaluate,
    gt: matching("gt"), gte: matching("gte"), lt: matching("lt"), lte: matching("lte"), between: matching("between"), oneOf: matching("oneOf", Infinity), anything: matching("anything"),
  },
  entries: { declared: declares("declared"), run },
};
