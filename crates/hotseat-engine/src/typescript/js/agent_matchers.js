// Matchers for the agent's last turn or the whole conversation: what a judge decides, topics, and assertions in case file form.

const { asWritten, conversation, current, decide, isMapping, isObject, misuse, needsTurn, only, part, shown, turns } = core;
const values = () => part("values");

const matchers = {
  toSatisfy(way, ...criteria) {
    const all = criteria.flat(1).length === 2 && typeof criteria[0] === "string" && typeof criteria[1] === "function" ? [criteria] : criteria.flatMap((one) => (isPair(one) ? [one] : Array.isArray(one) ? one : [one]));
    if (all.length === 0) throw misuse("toSatisfy needs a criterion");
    if (way.negated && all.length > 1) throw misuse("not.toSatisfy needs one criterion: negating several is ambiguous");
    decide(all.map((one) => satisfies(one, way)), way);
  },
  toBeGroundedIn(way, ...args) {
    const { names, options } = typesOf("toBeGroundedIn", args, ["fromTools", "judge"]);
    decide([asWritten({ type: "grounded", types: names, ...options })], way);
  },
  toClaim(way, ...args) {
    const { names, options } = typesOf("toClaim", args, ["absolute", "fromTools", "judge"]);
    // The check asserts the absence of the claim, so the matcher is its negation.
    decide([asWritten({ type: "claims", forbid: names, ...options, negate: true })], way);
  },
  toHaveIntent(way, name, options = {}) {
    if (typeof name !== "string") throw misuse(`toHaveIntent needs the name of an intent, got ${shown(name)}`);
    decide([asWritten({ type: "intent", intent: name, ...only("toHaveIntent", options, ["describedAs", "judge"]) })], way);
  },
  toBeInTopic(way, name) {
    decide([asWritten({ type: "topic", name: topicNamed(name) })], way);
  },
  toHaveReachedTopic(way, name) {
    decide([asWritten({ type: "reached_topic", name: topicNamed(name) })], way);
  },
  toHaveAchievedStatedGoal(way) {
    decide([asWritten({ type: "goal" })], way);
  },
  toHaveAchievedGoal(way, goal) {
    if (typeof goal !== "string" || goal.trim() === "") throw misuse(`toHaveAchievedGoal needs the goal as a non-empty string, got ${shown(goal)}`);
    decide([asWritten({ type: "goal", goal })], way);
  },
  toHold(way, assertion) {
    const all = Array.isArray(assertion) ? assertion : [assertion];
    for (const one of all) {
      if (!isMapping(one)) throw misuse(`toHold needs an assertion in case file form, got ${shown(one)}`);
      const missing = values().undefinedIn(one);
      if (missing !== undefined) throw misuse(`\`${missing}\` of the assertion is undefined, which would assert nothing`);
    }
    if (all.length === 0) throw misuse("toHold needs at least one assertion");
    if (way.negated && all.length > 1) throw misuse("not.toHold needs one assertion: negating several is ambiguous");
    decide(all.map(asWritten), way);
  },
};

const isPair = (value) => Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && typeof value[1] === "function";

function topicNamed(name) {
  const named = isObject(name) ? name.name : name;
  if (typeof named !== "string") throw misuse(`expected the name of a topic, got ${shown(name)}`);
  return named;
}

/** Splits arguments into names of kinds of facts and options. */
function typesOf(matcher, args, keys) {
  const last = args.at(-1);
  const options = isObject(last) && !Array.isArray(last) ? only(matcher, args.pop(), keys) : {};
  const names = args.flat();
  if (names.length === 0 || names.some((name) => typeof name !== "string")) throw misuse(`${matcher} needs the names of kinds of facts, for example "prices", got ${args.map((one) => shown(one)).join(", ") || "nothing"}`);
  return { names, options };
}

/** Returns the assertion for one criterion: a name, a description, a function, or a named function. */
function satisfies(one, way) {
  const code = (name, work, described = name) => values().asCompared("satisfy", { ...(needsTurn(`the agent to satisfy ${described}`) ?? values().judged(described, work)), criterion: name, written: { type: "satisfy", criteria: name } });
  if (isPair(one) || typeof one === "function") {
    const [name, work] = isPair(one) ? one : [one.name || "a function", one];
    return code(name, () => work(way.subject === "turn" ? turns.at(-1) : conversation, conversation));
  }
  const name = isObject(one) && typeof one.name === "string" ? one.name : one;
  if (typeof name !== "string" || name.trim() === "") throw misuse(`toSatisfy needs names of criteria, descriptions or functions, got ${shown(one)}`);
  const known = Object.hasOwn(current.running.criteria, name) ? current.running.criteria[name] : undefined;
  const described = known?.said.description === undefined ? name : `${name}: ${known.said.description}`;
  if (known?.match !== undefined) return code(name, () => known.match(conversation), described);
  if (known?.matchMessages !== undefined) return code(name, () => known.matchMessages(conversation.messages), described);
  return asWritten({ type: "satisfy", criteria: name });
}


return { matchers, topicNamed };

