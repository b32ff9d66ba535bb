// Tool calls that this library compares, because a function decides about an argument.

const { areUnreadable, hidden, isNamed, misuse, needsTurn, part, turns } = core;
const { argumentsHold, compare, show, tried } = part("values");

const lookedAt = (way) => (way.subject === "turn" ? turns.slice(-1) : turns);
const called = (way) => lookedAt(way).flatMap((turn) => turn.toolCalls);

const times = (number) => ["once", "twice"][number - 1] ?? `${number} times`;
const timesInWords = ({ exact, min, max }) => (exact !== undefined ? times(exact) : min === undefined ? `at most ${times(max)}` : max === undefined ? `at least ${times(min)}` : `${min} to ${max} times`);

/** Asserts calls of tools with arguments. `count` is their expected number. */
function compareCalls(names, expected, count, way) {
  const { exact, min, max } = count ?? {};
  if (min === 0 && max === undefined) throw misuse("`min: 0` allows any number of calls, so nothing is asserted");
  const least = exact ?? count?.min ?? (count === undefined ? 1 : 0);
  const most = exact ?? max ?? Infinity;
  const of = called(way).filter((call) => names.some((name) => isNamed(call, name)));
  const words = `${names.join(" or ")} with ${show(expected)} to be called${count === undefined ? "" : ` ${timesInWords(count)}`}`;
  const actual = of.length > 0 ? of.map((call) => `${call.name}(${show(call.arguments)})`).join("; ") : called(way).length > 0 ? `no call; tools called: ${called(way).map((call) => call.name).join(", ")}` : "no tool calls";
  const found = () => {
    const results = of.filter((call) => !areUnreadable(call)).map((call) => tried(() => ({ holds: argumentsHold(call, expected) })));
    const fitting = results.filter((one) => one.holds).length;
    const errors = results.flatMap(({ error }) => (error === undefined ? [] : [error]));
    const allows = (number) => number >= least && number <= most;
    // True if the result depends on calls that may match.
    const isOpen = (unknown) => Array.from({ length: unknown }, (_, at) => allows(fitting + at + 1)).includes(!allows(fitting));
    if (isOpen(errors.length)) return { error: errors[0] };
    // Neither the assertion nor its negation passes: the agent is at fault.
    if (isOpen(errors.length + of.filter(areUnreadable).length)) return { holds: way.negated, actual: `arguments that are ${hidden.unreadableArguments()}: ${actual}` };
    return { holds: allows(fitting), actual };
  };
  compare("tool_called", needsTurn(words) ?? { expected: words, ...tried(found) }, way);
}

return { compareCalls };
