// Declarations of a file: groups, tests and their settings.

/** Other declarations, validated before any test runs. */
const stated = [];

/** Settings of a group. */
class Group {
  constructor(above, title, options) {
    Object.assign(this, { above, title, options, before: [], after: [], criteria: {}, topics: {}, simulators: [], only: false, skip: undefined });
  }
  get chain() {
    return this.above === null ? [this] : [...this.above.chain, this];
  }
  get path() {
    return this.chain.map((group) => group.title).filter((title) => title !== null);
  }
}

const file = new Group(null, null, {});
let group = file;
const tests = [];

/** The number of the only test that will run; null while declarations are listed. */
const wanted = hidden.wanted();

/** How many tests were declared. */
let declaredTests = 0;

/** Where groups and hooks were declared, and their functions. Only listed declarations need it. */
const groups = [];
const hooks = [];

/** Records where a function was declared, and within how many groups. */
function record(all, body) {
  if (wanted === null) all.push({ at: at(), depth: group.chain.length - 1, source: sourceOf(body) });
}

/** `(name, body)` or `(name, options, body)`. */
function parts(what, name, args) {
  const [options, body] = args.length > 1 ? args : [{}, args[0]];
  if (typeof name !== "string") throw misuse(`${what} needs a name, got ${shown(name)}`);
  if (!isObject(options)) throw misuse(`the options of ${what} must be an object, got ${shown(options)}`);
  if (typeof body !== "function") throw misuse(`${what}(${shown(name)}) needs a function, got ${shown(body)}`);
  const { skip } = options;
  if (skip !== undefined && typeof skip !== "boolean" && (typeof skip !== "string" || skip.trim() === "")) throw misuse(`\`skip\` must be a boolean or a reason, got ${shown(skip)}`);
  return { title: name.trim() === "" ? "(anonymous)" : name.trim().replace(/\s+/g, " "), options, body };
}

/** Checks what a function returned that declares tests. */
function declaringAtOnce(what, returned) {
  if (isPromise(ran(returned))) throw misuse(`the function of ${what} must not be async: its declarations would come too late`);
}

function describing(marks) {
  return (name, ...args) => {
    outside("describe");
    const { title, options, body } = parts("describe", name, args);
    record(groups, body);
    const inner = Object.assign(new Group(group, title, options), marks);
    const outer = group;
    group = inner;
    try {
      declaringAtOnce(`describe(${shown(name)})`, body());
    } finally {
      group = outer;
    }
  };
}

function declaring(marks) {
  return (name, ...args) => {
    outside("it");
    // The others were checked when they were listed.
    if (wanted !== null && declaredTests++ !== wanted) return;
    const { title, options, body } = parts("it", name, args);
    tests.push({ title, options, body, group, at: wanted === null ? at() : "", scenario: scenario?.given, known: scenario?.known, ...marks });
  };
}

const describe = Object.assign(describing({}), { only: describing({ only: true }), skip: describing({ skip: true }) });
const it = Object.assign(declaring({}), { only: declaring({ only: true }), skip: declaring({ skip: true }) });

function hook(when) {
  return (work) => {
    outside(when);
    if (typeof work !== "function") throw misuse(`${when} needs a function`);
    record(hooks, work);
    group[when].push(work);
  };
}
const before = hook("before");
const after = hook("after");

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
  if (Object.hasOwn(group.criteria, name)) throw misuse(`the criterion \`${name}\` is already declared here`);
  const whole = { ...said, ...(description === undefined ? {} : { description }) };
  if (match === undefined && matchMessages === undefined && typeof whole.description !== "string") throw misuse(`the criterion \`${name}\` needs a description, or a function that decides`);
  group.criteria[name] = { said: whole, match, matchMessages };
  return handle;
}

/** Declaration sites of topics. */
const declaredAt = new WeakMap();

function topic(name, definition = {}) {
  outside("topic");
  const handle = named("topic", name);
  if (!isObject(definition)) throw misuse(`the definition of the topic \`${name}\` must be an object, got ${shown(definition)}`);
  if (Object.hasOwn(group.topics, name)) throw misuse(`the topic \`${name}\` is already declared here`);
  group.topics[name] = definition;
  const where = at();
  stated.push({ topic: name, said: withSources(asTopic(name, definition)), at: where, of: group });
  declaredAt.set(definition, where);
  return handle;
}

function simulator(brief) {
  outside("simulator");
  if (!isObject(brief)) throw misuse(`simulator needs an object, got ${shown(brief)}`);
  for (const key of ["goal", "template"]) {
    if (key in brief) throw misuse(`\`${key}\` belongs to a single test: pass it to \`user.simulate\``);
  }
  group.simulators.push(brief);
  stated.push({ said: withSources(asBrief(brief)), at: at() });
}

/** Scenario for which tests are being declared: plain and source form. */
let scenario;

/** Declares tests for each scenario of a file or list. */
function scenarioSet(name, source, body) {
  outside("scenarioSet");
  if (typeof name !== "string" || name === "") throw misuse(`a set of scenarios needs a name, got ${shown(name)}`);
  if (typeof body !== "function") throw misuse(`scenarioSet(${shown(name)}) needs a function to call with each scenario`);
  const written = typeof source === "string" ? { from: source } : Array.isArray(source) ? { scenarios: source } : source;
  if (!isMapping(written)) throw misuse(`scenarioSet(${shown(name)}): expected a file or a list of scenarios, got ${shown(source)}`);
  const answer = hidden.scenarios({ ...written, name });
  if (answer.error !== undefined) throw misuse(`scenarioSet(${shown(name)}): ${answer.error}`);
  const outer = scenario;
  for (const known of answer.value) {
    scenario = { known, given: asGiven(known.data) };
    declaringAtOnce(`scenarioSet(${shown(name)})`, body(scenario.given));
  }
  scenario = outer;
}

/** Returns a scenario for tests, with `get`, which throws on missing keys. */
function asGiven(data) {
  const given = structured(data);
  if (given.get === undefined) Object.defineProperty(given, "get", { value: (path) => required(given, path) });
  return deepFrozen(given);
}

function required(given, path) {
  const { there, value } = valueAt(given, path);
  if (!there || value === undefined || value === null) throw misuse(`scenario ${shown(given.name)} has no \`${path}\``);
  return value;
}

const structured = (value) => JSON.parse(JSON.stringify(value));

function deepFrozen(value) {
  if (isObject(value)) Object.values(value).forEach(deepFrozen);
  return Object.freeze(value);
}

/** Merges a setting of nested groups, innermost last. */
const over = (chain, key) => Object.assign({}, ...chain.map((one) => one[key]));

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

/** Returns a test as a case of a case file. */
function asCase(test) {
  const { options, group: own } = test;
  const chain = own.chain;
  const { skip: _, ...all } = Object.assign({}, ...chain.map((one) => one.options), options);
  const tags = [...chain.map((one) => one.options), options].flatMap((one) => one.tags ?? []);
  const declared = { ...all, ...criteriaOf(chain), ...judgeOf([...chain.map((one) => one.options), options]) };
  if (tags.length > 0) declared.tags = [...new Set(tags)];
  return { ...declared, name: fullName(test) };
}

/** Returns the full name of a test with its groups. */
function fullName({ title, group: own }) {
  return [...own.path, title].join(" > ");
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
