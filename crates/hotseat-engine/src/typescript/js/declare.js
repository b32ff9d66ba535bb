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
current.group = file;
const tests = [];

/** The number of the only test that will run; null while declarations are listed. */
const wanted = hidden.wanted();

/** How many tests were declared. */
let declaredTests = 0;

/** Where groups and hooks were declared, and their functions. Only listed declarations need it. */
const groups = [];
const hooks = [];

const sourceOf = (value) => Function.prototype.toString.call(value);

/** Records where a function was declared, and within how many groups. */
function record(all, body) {
  if (wanted === null) all.push({ at: at(), depth: current.group.chain.length - 1, source: sourceOf(body) });
}

/** `(name, body)` or `(name, options, body)`. */
function parts(what, name, args) {
  const [options, body] = args.length > 1 ? args : [{}, args[0]];
  if (typeof name !== "string") throw misuse(`${what} needs a name, got ${shown(name)}`);
  if (typeof options === "function") throw misuse(`the options of ${what} must be an object before its function: write \`${what}(${shown(name)}, { timeout: "5s" }, () => { … })\``);
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
  return exact("describe", (name, ...args) => {
    outside("describe");
    const { title, options, body } = parts("describe", name, args);
    record(groups, body);
    const keys = Object.keys(options).filter((key) => options[key] !== undefined);
    // The values are checked with those of each test.
    if (wanted === null && keys.length > 0) stated.push({ group: Object.fromEntries(keys.map((key) => [key, null])), at: at() });
    const inner = Object.assign(new Group(current.group, title, options), marks);
    const outer = current.group;
    current.group = inner;
    try {
      declaringAtOnce(`describe(${shown(name)})`, body());
    } finally {
      current.group = outer;
    }
  }, 3);
}

function declaring(marks) {
  return exact("it", (name, ...args) => {
    outside("it");
    // The others were checked when they were listed.
    if (wanted !== null && declaredTests++ !== wanted) return;
    const { title, options, body } = parts("it", name, args);
    tests.push({ title, options, body, group: current.group, at: wanted === null ? at() : "", scenario: current.scenario?.given, known: current.scenario?.known, ...marks });
  }, 3);
}

/** Adds `each`, which declares one for each row of a list. */
const withEach = (what, declare) => {
  const each = exact(`${what}.each`, (rows) => part("rows").each(what, declare, rows));
  // The values in a template come after its texts.
  return Object.assign(declare, { each: (rows, ...more) => (rows?.raw === undefined ? each(rows, ...more) : each(rows)) });
};
const missing = (what, advice) => () => {
  throw misuse(`there is no ${what}${advice}`);
};
const missingMarks = (what) => ({
  todo: missing(what, `.todo: write \`${what}.skip("name", () => {})\`, or give the reason: \`${what}("name", { skip: "not written yet" }, () => {})\``),
  skipIf: missing(what, `.skipIf: write \`${what}("name", { skip: condition }, () => { … })\``),
  runIf: missing(what, `.runIf: write \`${what}("name", { skip: !condition }, () => { … })\``),
});
const withMarks = (what, declaring) => Object.assign(withEach(what, declaring({})), { ...missingMarks(what), only: withEach(`${what}.only`, declaring({ only: true })), skip: withEach(`${what}.skip`, declaring({ skip: true })) });

const describe = withMarks("describe", describing);
const it = withMarks("it", declaring);

function hook(when) {
  return exact(when, (work) => {
    outside(when);
    if (typeof work !== "function") throw misuse(`${when} needs a function`);
    record(hooks, work);
    current.group[when].push(work);
  });
}
const before = hook("before");
const after = hook("after");

const structured = (value) => JSON.parse(JSON.stringify(value));

/** Merges a setting of nested groups, innermost last. */
const over = (chain, key) => Object.assign({}, ...chain.map((one) => one[key]));

/** Returns the full name of a test with its groups. */
function fullName({ title, group: own }) {
  return [...own.path, title].join(" > ");
}
