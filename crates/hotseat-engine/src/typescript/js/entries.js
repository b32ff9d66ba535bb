// Entry points for the host: list the declarations of a file, and run one test.

/** Returns true if an export is a test function, not a class. */
const isTest = (name, value) => /^Test/.test(name) && typeof value === "function" && !/^class\b/.test(sourceOf(value));

const sourceOf = (value) => Function.prototype.toString.call(value);

const UNMARKED = "another test of this file is marked `only`";

/** Returns the declarations of a file as data. */
function declared(namespace) {
  const isChosen = (test) => test.only || test.group.chain.some((one) => one.only);
  const focused = tests.some(isChosen);
  const marked = (written, skip) => withSources(skip === undefined ? written : { ...written, skip });
  const cases = tests.map((test, place) => {
    const chosen = isChosen(test);
    const skip = skipped(test) ?? (focused && !chosen ? UNMARKED : undefined);
    return { kind: "it", place, at: test.at, depth: test.group.chain.length - 1, source: sourceOf(test.body), only: chosen, scenario: test.known, case: marked(asCase(test), skip) };
  });
  const functions = Object.keys(namespace)
    .filter((name) => isTest(name, namespace[name]))
    // Failed assertions are recorded and the function continues, as in Go.
    .map((name) => ({ kind: "test", source: sourceOf(namespace[name]), case: marked({ name, continueOnFailure: true, ...criteriaOf([file]) }, focused ? UNMARKED : undefined) }));
  // Criteria that a group declares after a topic apply to the topic too.
  const known = ({ of, ...one }) => (of === undefined ? one : { ...one, criteria: Object.keys(over(of.chain, "criteria")) });
  return { tests: [...functions, ...cases], groups, hooks, stated: stated.map(known) };
}

/** Runs a test. The host knows its result; returns whether it was stopped. */
async function run(namespace, { kind, name, ctx }) {
  // Only the test that runs was kept.
  const test = kind === "test" ? { group: file } : tests[0];
  if (kind === "it" && (test === undefined || fullName(test) !== name)) throw new Error(`\`${name}\` was declared when the run was planned, but is no longer declared`);
  const chain = test.group.chain;
  const body = () => (kind === "test" ? namespace[name](testing(name, { above: [], failed: false }), ctx) : test.body({ user, agent, conversation, scenario: test.scenario, ctx }));
  running = { criteria: over(chain, "criteria"), topics: over(chain, "topics"), simulators: chain.flatMap((one) => one.simulators) };
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
    return { stopped: true };
  }
  return { stopped: false };
}

/** Runs a function with the hooks of its groups: `before` from outer to inner, `after` in reverse, always. */
async function around(chain, work) {
  let failed;
  try {
    for (const one of chain) for (const hook of one.before) await ran(hook());
    await ran(work());
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

return {
  exports: {
    describe, context: describe, it, before, after, criterion, topic, simulator, scenarioSet, expectConversationTo,
    user, agent, conversation, expect, evaluate, gt, gte, lt, lte, between, oneOf, anything,
  },
  entries: { declared, run },
};
