// Matchers for tool calls.

const { asWritten, decide, isMapping, misuse, only, part, shown } = core;

/** Returns the expected number of calls in case file form. */
function counted(matcher, options) {
  if (options === undefined) return undefined;
  const { times } = only(matcher, options, ["times"]);
  const said = typeof times === "number" ? { exact: times } : times;
  const needs = (words) => misuse(`\`times\` of ${matcher} ${words}, got ${shown(times)}`);
  if (!isMapping(said) || Object.keys(said).length === 0) throw needs("must be a number or an object with `min`, `max` or both");
  only(`\`times\` of ${matcher}`, said, ["exact", "min", "max"]);
  for (const one of Object.values(said)) if (!Number.isInteger(one) || one < 0) throw needs("must be a whole number of calls");
  if (said.exact !== undefined && Object.keys(said).length > 1) throw needs("must not combine `exact` with `min` or `max`");
  if (said.min > said.max) throw needs("must have a `min` that is not greater than `max`");
  return said;
}

/** Returns the expected arguments, if they are given. */
function expectedIn(matcher, args) {
  if (args.length > 0 && args[0] === undefined && args.length < 2) throw misuse(`the arguments of ${matcher} are undefined, so every call would match: leave them out, or correct their name`);
  return args[0];
}

/** Asserts a tool call. If a function decides about an argument, this library compares the calls. */
function tool(matcher, way, name, expected, options) {
  const names = Array.isArray(name) ? name : [name];
  if (names.length === 0 || names.some((one) => typeof one !== "string" || one === "")) throw misuse(`${matcher} needs the name of a tool, got ${shown(name)}`);
  const count = counted(matcher, options);
  const all = Object.entries(expected === undefined ? {} : part("values").definite(expected));
  const [plain, others] = [all.filter(([, one]) => part("values").isPlain(one)), all.filter(([, one]) => !part("values").isPlain(one))];
  const conditions = others.map(([key, one]) => [key, part("values").conditionOf(one)]);
  if (conditions.every(([, one]) => one !== undefined)) {
    const which = names.length === 1 ? { name: names[0] } : { value: names };
    const written = (members) => (members.length === 0 ? undefined : Object.fromEntries(members));
    return decide([asWritten({ type: "tool_called", ...which, arguments: written(plain), where: written(conditions), count })], way);
  }
  part("callComparison").compareCalls(names, expected, count, way);
}

const matchers = {
  toCallTool(way, name, ...args) {
    tool("toCallTool", way, name, expectedIn("toCallTool", args), args[1]);
  },
  toHaveToolCall(way, name, ...args) {
    tool("toHaveToolCall", way, name, expectedIn("toHaveToolCall", args), args[1]);
  },
};

return { matchers };
