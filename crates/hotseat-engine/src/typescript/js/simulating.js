// Conversations of simulated users, and topic graphs.

const { ask, at, current, isMapping, isObject, misuse, only, part, reference, turns, withSources, within } = core;
const { asRegex } = part("textMatchers");
const { topicNamed } = part("agentMatchers");
const { definite, isPlain, show, shown } = part("values");

/** Returns a criterion in case file form: its name, or a definition if a function of the test decides. */
function asCriterion(name) {
  const criteria = current.running?.criteria ?? current.listed ?? {};
  const { said, match, matchMessages } = Object.hasOwn(criteria, name) ? criteria[name] : {};
  if (match === undefined && matchMessages === undefined) return name;
  if (current.running === null) throw misuse(`the criterion \`${name}\` is decided by a function, which options of tests and groups cannot call: write \`expect(agent).toSatisfy(${JSON.stringify(name)})\` in the test`);
  const decides = (_, conversation) => (match === undefined ? matchMessages(conversation.messages) : match(conversation));
  return { name, ...(said.description === undefined ? {} : { description: said.description }), function: reference(name, decides) };
}

/** Returns topic assertions in case file form. */
function invariants(said, of) {
  const whole = [];
  const each = [];
  for (const one of said === undefined ? [] : Array.isArray(said) ? said : [said]) {
    if (!isObject(one)) throw misuse(`assertions of the topic \`${of}\` must be objects, got ${shown(one)}`);
    if (one.type !== undefined) {
      whole.push(one);
      continue;
    }
    const missing = Object.keys(one).find((key) => one[key] === undefined);
    if (missing !== undefined) throw misuse(`\`${missing}\` of the topic \`${of}\` is undefined, which would assert nothing`);
    if (Object.keys(one).length === 0) throw misuse(`an assertion of the topic \`${of}\` is empty and would assert nothing`);
    const { satisfy, match, matchAny, notMatch, contain, grounded, fromTools, toolCall, forbidToolCall, forbidClaims, ...rest } = one;
    const list = (value) => (value === undefined ? [] : Array.isArray(value) ? value : [value]);
    if (list(satisfy).some((one) => typeof one === "function")) throw misuse(`\`satisfy\` of the topic \`${of}\` needs names or texts of criteria; give a function a name: { "its name": function }`);
    if (fromTools !== undefined && grounded === undefined) throw misuse(`\`fromTools\` of the topic \`${of}\` needs \`grounded\``);
    for (const one of list(satisfy)) whole.push({ type: "satisfy", criteria: isObject(one) ? one.name : one });
    if (match !== undefined) whole.push(asRegex("match", list(match), "all"));
    if (matchAny !== undefined) whole.push(asRegex("matchAny", list(matchAny), "any"));
    if (notMatch !== undefined) whole.push({ ...asRegex("notMatch", list(notMatch), "any"), negate: true });
    for (const value of list(contain)) whole.push({ type: "contains", value });
    if (grounded !== undefined) whole.push({ type: "grounded", types: list(grounded), ...(fromTools === undefined ? {} : { from_tools: fromTools }) });
    for (const name of list(toolCall)) whole.push({ type: "tool_called", name });
    for (const name of list(forbidToolCall)) whole.push({ type: "tool_called", name, negate: true });
    if (forbidClaims !== undefined) whole.push({ type: "claims", forbid: list(forbidClaims) });
    for (const [words, work] of Object.entries(rest)) {
      if (typeof work !== "function") throw misuse(`\`${words}\` is not an assertion of the topic \`${of}\``);
      each.push({ type: "script", use: reference(words, work) });
    }
  }
  return { whole, each };
}

/** Returns a topic in case file form. */
function asTopic(name, definition) {
  const { triggers, evaluate: soft, expect: hard, forbidClaims, forbidToolCalls, ...rest } = definition;
  const measured = invariants(soft, name);
  const list = (value) => (Array.isArray(value) ? value : [value]);
  const forbidden = [
    ...(forbidClaims === undefined ? [] : [{ forbidClaims }]),
    ...(forbidToolCalls === undefined ? [] : [{ forbidToolCall: forbidToolCalls }]),
  ];
  const asserted = invariants([...(hard === undefined ? [] : list(hard)), ...forbidden], name);
  const made = { ...rest };
  // Assertions in the form of case files stay.
  const own = (key) => (made[key] === undefined ? [] : list(made[key]));
  if (triggers !== undefined) made.triggers = list(triggers).flatMap((one) => asTrigger(name, one));
  for (const [key, { whole, each }] of [["assert", asserted], ["evaluate", measured]]) {
    if (whole.length > 0) made[key] = [...own(key), ...whole];
    if (each.length > 0) made[`turn_${key}`] = [...own(`turn_${key}`), ...each];
  }
  return made;
}

function asTrigger(name, one) {
  if (!isObject(one)) throw misuse(`a trigger of the topic \`${name}\` must be an object, got ${shown(one)}`);
  const { onToolCall, onCondition, afterTurnsIn, ...rest } = one;
  const kinds = Object.entries({ onToolCall, onCondition, afterTurnsIn }).filter(([, value]) => value !== undefined);
  if (kinds.length > 1) throw misuse(`a trigger of the topic \`${name}\` has ${kinds.map(([kind]) => `\`${kind}\``).join(" and ")}: write a trigger for each`);
  if (typeof onCondition === "function") return { ...rest, onCondition: reference("onCondition", onCondition) };
  if (isObject(afterTurnsIn)) return { ...rest, afterTurnsIn: topicNamed(afterTurnsIn.topic), count: afterTurnsIn.count };
  if (!isObject(onToolCall)) return one;
  only("`onToolCall`", onToolCall, ["name", "arguments"]);
  if ("arguments" in onToolCall && onToolCall.arguments === undefined) throw misuse(`\`arguments\` of \`onToolCall\` of the topic \`${name}\` is undefined, so every call would match`);
  const expected = onToolCall.arguments === undefined ? undefined : definite(onToolCall.arguments);
  if (expected === undefined || isPlain(expected)) return { ...rest, onToolCall: onToolCall.name, ...(expected === undefined ? {} : { withParams: expected }) };
  // Arguments that are not plain data are compared here.
  return { ...rest, onCondition: reference(`calls ${onToolCall.name} with ${show(expected)}`, (turn) => turn !== undefined && turn.hasToolCall(onToolCall.name, expected)) };
}

const WIRING = ["next", "from", "maxTurns"];

/** Returns the place of a topic in the graph. The last one has no topic after it. */
const wiringOf = (node) => Object.fromEntries(WIRING.filter((key) => key in node && (key !== "next" || node.next !== null)).map((key) => [key, node[key]]));

/** Returns what a graph says about a topic itself. */
const definitionIn = (node) => Object.fromEntries(Object.entries(node).filter(([key]) => !WIRING.includes(key)));

function expectConversationTo(graph) {
  within("expectConversationTo");
  if (!isObject(graph) || Array.isArray(graph)) throw misuse(`expectConversationTo needs an object whose keys are topics, got ${shown(graph)}`);
  const known = Object.fromEntries(Object.entries(current.running.topics).map(([name, one]) => [name, asTopic(name, withoutTurns(one))]));
  const nodes = Object.entries(graph).map(([name, node]) => {
    if (/^\d+$/.test(name)) throw misuse(`a topic cannot be named ${shown(name)}: objects do not keep the order of such keys`);
    if (!isObject(node) || Array.isArray(node)) {
      const most = current.running.topics[name]?.maxTurns;
      return [name, most === undefined ? node : { ...wiringOf({ next: node }), maxTurns: most }];
    }
    const [wiring, own] = [wiringOf(node), definitionIn(node)];
    return [name, Object.keys(own).length === 0 ? wiring : { ...asTopic(name, own), ...wiring }];
  });
  // A topic that the graph defines is not the declared one of its name.
  const isDeclared = ([name]) => !isMapping(graph[name]) || Object.keys(definitionIn(graph[name])).length === 0;
  const declared = Object.entries(current.running.topics).filter(isDeclared);
  const places = Object.fromEntries(declared.map(([name, one]) => [name, part("declarations").declaredAt.get(one)]));
  ask({ do: "graph", places, graph: withSources(Object.fromEntries(nodes)), topics: withSources(known), at: at() });
}

/** Removes the turn limit, which belongs to graphs. */
const withoutTurns = ({ maxTurns: _, ...rest }) => rest;

function asBrief(brief) {
  if (!isObject(brief)) throw misuse(`user.simulate needs an object, got ${shown(brief)}`);
  const { stopWhen, ...rest } = brief;
  // A user without a personality gets none in the prompt.
  if (rest.personality === null) delete rest.personality;
  if (stopWhen === undefined) return rest;
  return { ...rest, stopWhen: typeof stopWhen === "function" ? reference("stopWhen", stopWhen) : stopWhen };
}

function simulate(brief) {
  const own = asBrief(brief);
  if (typeof own.goal !== "string" || own.goal.trim() === "") throw misuse("user.simulate requires a `goal`");
  if (own.maxTurns === 0) throw misuse("`maxTurns` of user.simulate must be at least 1");
  return ask({ do: "simulate", brief: withSources(own), above: withSources(current.running.simulators.map(asBrief)), at: at() });
}

/** Converts a `satisfy` assertion whose criteria may be decided by functions of the test. */
function withOwnCriteria(assertion) {
  const known = (one) => (typeof one === "string" ? asCriterion(one) : Array.isArray(one) ? one.map(known) : one);
  return assertion.criteria === undefined ? assertion : { ...assertion, criteria: known(assertion.criteria) };
}

return { asBrief, asCriterion, asTopic, expectConversationTo, simulate, withOwnCriteria };
