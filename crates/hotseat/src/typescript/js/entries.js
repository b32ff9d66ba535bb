// What the host enters: what a file declares, and one of its tests.

const isTest = (name, value) => /^Test/.test(name) && typeof value === "function";

/** What a file declares, as data. */
function declared(namespace) {
  const focused = tests.some((test) => test.only || test.group.chain.some((one) => one.only));
  const cases = tests.map((test) => {
    const chosen = test.only || test.group.chain.some((one) => one.only);
    const skip = skipped(test) ?? (focused && !chosen ? "another test of this file is marked `only`" : undefined);
    const written = asCase(test);
    return { kind: "it", at: test.at, case: withSources(skip === undefined ? written : { ...written, skip }) };
  });
  const functions = Object.keys(namespace)
    .filter((name) => isTest(name, namespace[name]))
    .map((name) => ({ kind: "test", name, source: Function.prototype.toString.call(namespace[name]) }));
  return [...functions, ...cases];
}

/** Runs a test. What it comes to is known to the host. */
async function run(namespace, { kind, name, ctx }) {
  const test = tests.find((one) => fullName(one) === name);
  try {
    if (kind === "test") {
      running = { criteria: over([file], "criteria"), topics: over([file], "topics"), simulators: file.simulators };
      await namespace[name](testing(name, { above: [], failed: false }), ctx);
    } else {
      if (test === undefined) throw new Error(`\`${name}\` was declared when the run was planned, and is not declared now`);
      const chain = test.group.chain;
      running = { criteria: over(chain, "criteria"), topics: over(chain, "topics"), simulators: chain.flatMap((one) => one.simulators) };
      await around(chain, () => test.body({ user, agent, conversation, scenario: test.scenario, ctx }));
    }
    for (const { at: where, soft } of unfinished) {
      const error = new Error(`\`${soft ? "evaluate" : "expect"}(…)\` asserts nothing: a matcher follows it, for example \`.toBe(…)\``);
      error.stack = where;
      throw error;
    }
  } catch (error) {
    // The host has recorded why a test was stopped.
    if (!(error instanceof AssertionError)) throw error;
  }
}

/** Runs something within the hooks of its groups: those before it from the outside in, those after it back, always. */
async function around(chain, work) {
  let failed;
  try {
    for (const one of chain) for (const hook of one.before) await hook();
    await work();
  } catch (error) {
    failed = { error };
  }
  for (const one of chain.toReversed()) {
    for (const hook of one.after.toReversed()) {
      try {
        await hook();
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
