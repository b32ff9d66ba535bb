// Declarations that few files have, and the declarations of a file as data.

const { at, caseKey, current, declaringAtOnce, exact, file, fullName, groups, hidden, hooks, isMapping, isObject, misuse, outside, over, part, shown, sourceOf, stated, structured, tests, withSources } = core;

const NAMES = /^[A-Za-z_][A-Za-z0-9_]*[?!]?$/;

/** Returns the handle of a named declaration. */
function named(what, name) {
  if (typeof name !== "string" || !NAMES.test(name)) throw misuse(`the name of a ${what} must be a word like \`friendly\`, got ${shown(name)}`);
  return Object.freeze({ name });
}

function criterion(name, ...args) {
  outside("criterion");
  const handle = named("criterion", name);
  const [description, details] = typeof args[0] === "string" ? args : [undefined, args[0]];
  if (details !== undefined && !isObject(details)) throw misuse(`the criterion \`${name}\` needs a description or an object, got ${shown(details)}`);
  const { match, matchMessages, ...said } = details ?? {};
  for (const [key, work] of Object.entries({ match, matchMessages })) {
    if (work !== undefined && typeof work !== "function") throw misuse(`\`${key}\` of the criterion \`${name}\` must be a function, got ${shown(work)}`);
  }
  if (match !== undefined && matchMessages !== undefined) throw misuse(`the criterion \`${name}\` has both \`match\` and \`matchMessages\`; use one of them`);
  if (description !== undefined && said.description !== undefined) throw misuse(`the criterion \`${name}\` is described twice`);
  for (const key of ["goodExamples", "badExamples", "edgeCases", "judge"]) {
    if ((match ?? matchMessages) !== undefined && said[key] !== undefined) throw misuse(`\`${key}\` of the criterion \`${name}\` is for a judge, but this criterion is decided by a function`);
  }
  if (Object.hasOwn(current.group.criteria, name)) throw misuse(`the criterion \`${name}\` is already declared here`);
  const whole = { ...said, ...(description === undefined ? {} : { description }) };
  if (match === undefined && matchMessages === undefined && typeof whole.description !== "string") throw misuse(`the criterion \`${name}\` needs a description, or a function that decides`);
  current.group.criteria[name] = { said: whole, match, matchMessages };
  return handle;
}

/** Declaration sites of topics. */
const declaredAt = new WeakMap();

function topic(name, definition) {
  outside("topic");
  if (definition === undefined) definition = {};
  const handle = named("topic", name);
  if (!isObject(definition)) throw misuse(`the definition of the topic \`${name}\` must be an object, got ${shown(definition)}`);
  if (Object.hasOwn(current.group.topics, name)) throw misuse(`the topic \`${name}\` is already declared here`);
  current.group.topics[name] = definition;
  const where = at();
  stated.push({ topic: name, said: withSources(part("simulating").asTopic(name, definition)), at: where, of: current.group });
  declaredAt.set(definition, where);
  return handle;
}

function simulator(brief) {
  outside("simulator");
  if (!isObject(brief)) throw misuse(`simulator needs an object, got ${shown(brief)}`);
  for (const key of ["goal", "template"]) {
    if (key in brief) throw misuse(`\`${key}\` belongs to a single test: pass it to \`user.simulate\``);
  }
  current.group.simulators.push(brief);
  stated.push({ said: withSources(part("simulating").asBrief(brief)), at: at() });
}

/** Declares tests for each scenario of a file or list. */
function scenarioSet(name, source, body) {
  outside("scenarioSet");
  if (typeof name !== "string" || name === "") throw misuse(`a set of scenarios needs a name, got ${shown(name)}`);
  if (typeof body !== "function") throw misuse(`scenarioSet(${shown(name)}) needs a function to call with each scenario`);
  const written = typeof source === "string" ? { from: source } : Array.isArray(source) ? { scenarios: source } : source;
  if (!isMapping(written)) throw misuse(`scenarioSet(${shown(name)}): expected a file or a list of scenarios, got ${shown(source)}`);
  const answer = hidden.scenarios({ ...written, name });
  if (answer.error !== undefined) throw misuse(`scenarioSet(${shown(name)}): ${answer.error}`);
  const outer = current.scenario;
  for (const known of answer.value) {
    current.scenario = { known, given: asGiven(known.data) };
    declaringAtOnce(`scenarioSet(${shown(name)})`, body(current.scenario.given));
  }
  current.scenario = outer;
}

/** Returns a scenario for tests, with `get`, which throws on missing keys. */
function asGiven(data) {
  const given = structured(data);
  if (given.get === undefined) Object.defineProperty(given, "get", { value: exact("scenario.get", (path) => required(given, path)) });
  return deepFrozen(given);
}

function required(given, path) {
  const { there, value } = part("valueMatchers").valueAt(given, path);
  if (!there || value === undefined || value === null) throw misuse(`scenario ${shown(given.name)} has no \`${path}\``);
  return value;
}

function deepFrozen(value) {
  if (isObject(value)) Object.values(value).forEach(deepFrozen);
  return Object.freeze(value);
}

/** Returns the judged criteria of groups in case file form. */
function criteriaOf(chain) {
  const judged = Object.entries(over(chain, "criteria")).filter(([, one]) => one.match === undefined && one.matchMessages === undefined);
  return judged.length === 0 ? {} : { criteria: Object.fromEntries(judged.map(([name, one]) => [name, one.said])) };
}

/** Merges judge settings; inner groups override outer ones. */
function judgeOf(said) {
  const judges = said.map((one) => one.judge).filter((one) => one !== undefined);
  if (judges.length < 2 || judges.some((one) => typeof one !== "string" && !isMapping(one))) return {};
  return { judge: Object.assign({}, ...judges.map((one) => (typeof one === "string" ? { use: one } : one))) };
}

const isBlock = (assertion) => isMapping(assertion) && assertion.type === undefined;

/** Removes what inner blocks of assertions replace: parts that they set to `false`, or set where the outer ones are `false`, and limits that they set. */
function withoutReplaced(block, inner) {
  const kept = Object.entries(block).map(([name, part]) => {
    const own = inner.filter((one) => Object.hasOwn(one, name)).map((one) => one[name]);
    if (own.includes(false) || (part === false && own.length > 0)) return [name, {}];
    if (!["timing", "budget"].includes(name) || !isMapping(part)) return [name, part];
    const limits = own.filter(isMapping).flatMap((one) => Object.keys(one).map(caseKey));
    return [name, Object.fromEntries(Object.entries(part).filter(([limit]) => !limits.includes(caseKey(limit))))];
  });
  return Object.fromEntries(kept.filter(([, part]) => !isMapping(part) || Object.keys(part).length > 0));
}

/** A block that discards all blocks above it. */
const NONE = { tools: false, timing: false, budget: false, text: false };

/** Adds assertions to those of the group above, as a case adds its own to those of its agent. */
function withInherited(above, own) {
  if (above === undefined || own === false) return own;
  const inner = [own].flat().filter(isBlock);
  const outer = above === false ? [NONE] : [above].flat();
  const kept = outer.map((one) => (isBlock(one) ? withoutReplaced(one, inner) : one));
  return [...kept.filter((one) => !isBlock(one) || Object.keys(one).length > 0), ...[own].flat()];
}

/** Adds assertions that replace none of those above. */
const joined = (above, own) => (above === undefined ? own : [...[above].flat(), ...[own].flat()]);

/** Combines lists and the members of objects; of other values the inner one applies. */
function combined(above, own) {
  if (Array.isArray(above) && Array.isArray(own)) return [...above, ...own];
  return isMapping(above) && isMapping(own) ? { ...above, ...own } : own;
}

/** Combines the tools of an MCP server: a tool replaces the one above with its name. */
function withTools(above, own) {
  if (!Array.isArray(above) || !Array.isArray(own)) return own;
  return [...above.filter((known) => !own.some((one) => one?.name === known?.name)), ...own];
}

/** Combines MCP servers or served models by name. An entry that defines none changes the one above. */
function withChanged(above, own) {
  if (!isMapping(above) || !isMapping(own)) return own;
  const defines = (one) => !isMapping(one) || ["type", "script", "rules"].some((key) => one[key] !== undefined);
  const changed = ([name, one]) => {
    const known = above[name];
    if (defines(one) || !isMapping(known)) return [name, one];
    const parts = Object.entries(one).map(([key, part]) => [key, (key === "tools" ? withTools : combined)(known[key], part)]);
    return [name, { ...known, ...Object.fromEntries(parts) }];
  };
  return { ...above, ...Object.fromEntries(Object.entries(own).map(changed)) };
}

const INHERITED = { assert: withInherited, turn_assert: withInherited, evaluate: joined, turn_evaluate: joined, final_assertions: joined, mcp: withChanged, models: withChanged };

/** Other spellings of options. */
const SPELLINGS = { assertions: "assert", timeout: "timeout_ms" };

/** Returns the name of an option, the same for all its spellings. */
const optionName = (key) => SPELLINGS[key] ?? caseKey(key);

/** Returns true if an option replaces one of the group above with another name: a case is either retried or has a declared reliability. */
const replacesOther = (name, value, other) => (name === "retries" && other === "reliability") || (name === "reliability" && value !== false && other === "retries");

/** Adds the options of a group or test to those of the group above. */
function inheriting(above, own) {
  // An option that a condition leaves out is none.
  const set = Object.entries(own).filter(([, value]) => value !== undefined);
  const isReplaced = (known) => set.some(([key, value]) => optionName(key) === optionName(known) || replacesOther(key, value, known));
  const kept = Object.entries(above).filter(([key]) => !isReplaced(key));
  const added = ([key, value]) => {
    const name = optionName(key);
    const known = Object.keys(above).find((other) => optionName(other) === name);
    return [key, (INHERITED[name] ?? combined)(above[known], value)];
  };
  return Object.fromEntries([...kept, ...set.map(added)]);
}

/** Returns a test as a case of a case file. */
function asCase(test) {
  const { options, group: own } = test;
  const chain = own.chain;
  const said = [...chain.map((one) => one.options), options];
  const { skip: _, ...all } = said.reduce(inheriting, {});
  const { criteria } = criteriaOf(chain);
  const declared = { ...all, ...judgeOf(said) };
  if (criteria !== undefined) declared.criteria = combined(all.criteria, criteria);
  if (Array.isArray(declared.tags)) declared.tags = [...new Set(declared.tags)];
  return { ...declared, name: fullName(test) };
}

/** Returns the reason if a test is skipped. */
function skipped({ skip, options, group: own }) {
  for (const one of [{ skip, options }, ...own.chain.toReversed()]) {
    const reason = one.options?.skip;
    if (typeof reason === "string") return reason;
    if (one.skip || reason === true) return true;
  }
  return undefined;
}

const isClass = (value) => typeof value === "function" && /^class\b/.test(sourceOf(value));

/** Returns true if an export or member is a test function, not a class. */
const isTest = (name, value) => /^Test/.test(name) && typeof value === "function" && !isClass(value);

/** Returns the name of a test function that a class, an object or a list holds, and that is not one of the exported ones. */
function testWithin(value, exported, seen = new Set()) {
  if ((!isObject(value) && !isClass(value)) || seen.has(value)) return undefined;
  seen.add(value);
  const own = [value, isClass(value) ? value.prototype : isMapping(value) ? null : Object.getPrototypeOf(value)];
  const members = own.filter((one) => one !== null).flatMap((one) => Object.entries(Object.getOwnPropertyDescriptors(one)));
  for (const [key, { value: member }] of members) {
    if (exported.includes(member)) continue;
    const name = [key, member?.name].find((one) => isTest(one, member));
    const inner = name ?? (isMapping(member) || Array.isArray(member) ? testWithin(member, exported, seen) : undefined);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

/** Refuses exports that look like tests but do not run. */
function refuseUnrun(namespace) {
  const exported = Object.entries(namespace);
  const tests = exported.filter(([name, value]) => isTest(name, value)).map(([, value]) => value);
  for (const [name, value] of exported) {
    if (tests.includes(value)) continue;
    const what = name === "default" ? "the default export" : `the export ${name}`;
    const inner = testWithin(value, tests);
    if (inner !== undefined) throw new TypeError(`${what} holds the test function ${inner}, which is not run: export each test as a function of its own`);
    if (/^Test/.test(name) && (isClass(value) || (isObject(value) && Object.values(value).some((one) => typeof one === "function"))))
      throw new TypeError(`${what} is no test function: export each test as a function of its own`);
    if (typeof value !== "function") continue;
    if (isTest(value.name, value)) throw new TypeError(`the test function ${value.name} is ${name === "default" ? "the default export" : `exported as ${name}`}, so it is not run: export it by its name${name === "default" ? ", without `default`" : ""}`);
    if (name === "default" && ["", "default"].includes(value.name)) throw new TypeError(`the default export is a ${isClass(value) ? "class" : "function"} without a name, which is not run: export each test by a name, such as \`export function TestBooking(t) { … }\``);
  }
}

const UNMARKED = "another test of this file is marked `only`";

/** Returns the declarations of a file as data. */
function declared(namespace) {
  const isChosen = (test) => test.only || test.group.chain.some((one) => one.only);
  const focused = tests.some(isChosen);
  const marked = (written, skip, where, chain) => {
    try {
      current.listed = over(chain, "criteria");
      return withSources(skip === undefined ? written : { ...written, skip });
    } catch (error) {
      // The mistake is in the declaration.
      if (where !== undefined) error.stack = where;
      throw error;
    } finally {
      current.listed = undefined;
    }
  };
  const cases = tests.map((test, place) => {
    const chosen = isChosen(test);
    const marks = skipped(test);
    const focus = chosen ? "marked" : focused && marks === undefined ? "leftOut" : "unmarked";
    const skip = focus === "leftOut" ? UNMARKED : marks;
    return { kind: "it", place, at: test.at, depth: test.group.chain.length - 1, source: sourceOf(test.body), focus, scenario: test.known, case: marked(asCase(test), skip, test.at, test.group.chain) };
  });
  refuseUnrun(namespace);
  const functions = Object.keys(namespace)
    .filter((name) => isTest(name, namespace[name]))
    // Failed assertions are recorded and the function continues, as in Go.
    .map((name) => ({ kind: "test", source: sourceOf(namespace[name]), focus: focused ? "leftOut" : "unmarked", case: marked({ name, continueOnFailure: true, ...criteriaOf([file]) }, focused ? UNMARKED : undefined, undefined, [file]) }));
  // Criteria that a group declares after a topic apply to the topic too.
  const known = ({ of, ...one }) => (of === undefined ? one : { ...one, criteria: Object.keys(over(of.chain, "criteria")) });
  return { tests: [...functions, ...cases], groups, hooks, stated: stated.map(known) };
}

return { criterion, declared, declaredAt, scenarioSet, simulator, topic };
