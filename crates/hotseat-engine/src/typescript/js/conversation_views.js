// The conversation and the agent as scripts see them, and functions of the test that judge them.

const { ask, at, callsOf, current, decided, decidedCheck, exactMembers, functions, hasCallOf, isObject, misuse, part, shown, thrownWords, turns, within } = core;

/** Updates topics. A turn may be assigned to a topic after it took place. */
function follow(now) {
  current.topics = now;
  now.ofTurns.forEach((topic, at) => {
    if (turns[at] !== undefined) turns[at].topic = topic;
  });
}

/** Runs a function with the conversation truncated after a turn. */
function upTo(number, work) {
  const [later, now] = [turns.splice(number), current.topics];
  const visits = now.visits.map((visit) => ({ ...visit, turns: visit.turns.filter((one) => one <= number) })).filter((visit) => visit.turns.length > 0);
  current.topics = { ...now, current: turns.at(-1)?.topic ?? null, history: visits.map((visit) => visit.topic), visits };
  try {
    return work();
  } finally {
    turns.push(...later);
    current.topics = now;
  }
}

/** Returns the calls of a judging function that led to its error, without those of the waiting test. */
const callsWithin = (error) => (isObject(error) ? String(error.stack).split(/ at (?:upTo|answer) \(the engine:/)[0] : "");

/** Runs a judging function for the busy host. */
function answer({ call, first, turn, condition }) {
  current.judging = "host";
  try {
    const looked = turn === null || turn === undefined ? [] : turns.slice(first - 1, turn);
    const found = upTo(turn ?? 0, () => functions[call](looked.at(-1), core.conversation, looked));
    return { value: condition ? decided(found) : decidedCheck(found) };
  } catch (error) {
    return { error: thrownWords(error), at: callsWithin(error) };
  } finally {
    current.judging = null;
  }
}

/** Returns the turns whose calls are read. Before the first one, that there are no calls says nothing about the agent. */
function turnsWithCalls() {
  if (turns.length === 0 && current.judging === null) throw misuse("there is no turn to check yet; send one first");
  return turns;
}

/** Validates the name of a tool that a function looks for. */
function toolNamed(name, tool) {
  if (typeof tool !== "string") throw misuse(`${name} expects the name of a tool and optionally its arguments`);
  return tool;
}

/** Returns the name of a topic of the graph. No turn is in another one. */
function ofGraph(name) {
  const { names } = current.topics;
  // The host tells the names with its first reply.
  if (names?.includes(name) || (names === undefined && (turns.length === 0 || current.judging !== null))) return name;
  throw misuse(names === undefined ? `there is no topic ${shown(name)}: the test has no graph` : `there is no topic ${shown(name)}: the graph has ${names.join(", ")}`);
}

const conversation = Object.freeze(exactMembers("conversation", {
  get turns() {
    return [...turns];
  },
  get messages() {
    return turns.flatMap((turn) => turn.messages);
  },
  get allToolCalls() {
    return turnsWithCalls().flatMap((turn) => turn.toolCalls);
  },
  get currentTopic() {
    return current.topics.current;
  },
  get topicHistory() {
    return [...current.topics.history];
  },
  get topicVisits() {
    return current.topics.visits.map((visit) => ({ topic: visit.topic, visit: visit.visit, turns: visit.turns.map((number) => turns[number - 1]) }));
  },
  get evaluationResults() {
    within("conversation.evaluationResults");
    return ask({ do: "results" });
  },
  get softEvaluations() {
    return this.evaluationResults.filter((result) => result.mode === "soft");
  },
  get hardEvaluations() {
    return this.evaluationResults.filter((result) => result.mode === "hard");
  },
  get turnCount() {
    return turns.length;
  },
  get lastTurn() {
    return turns.at(-1);
  },
  get lastUserMessage() {
    return turns.at(-1)?.userMessage;
  },
  get lastAgentResponse() {
    return turns.at(-1)?.agentResponse;
  },
  get isEmpty() {
    return turns.length === 0;
  },
  hasToolCall: (name, expected) => hasCallOf(conversation.allToolCalls, toolNamed("hasToolCall", name), expected),
  calledTool: (name, expected) => callsOf(conversation.allToolCalls, toolNamed("calledTool", name), expected).length,
  toolCallsFor: (name, expected) => callsOf(conversation.allToolCalls, toolNamed("toolCallsFor", name), expected),
  inTopic: (name) => current.topics.current === ofGraph(name),
  turnsInTopic: (name) => conversation.turnsForTopic(name).length,
  turnsForTopic: (name) => turns.filter((turn) => turn.topic === ofGraph(name)),
}));

const agent = Object.freeze(exactMembers("agent", {
  get response() {
    return turns.at(-1)?.agentResponse;
  },
  get lastResponse() {
    return turns.at(-1)?.agentResponse;
  },
  get currentTurn() {
    return turns.at(-1);
  },
  get currentTopic() {
    return current.topics.current;
  },
  get toolCalls() {
    return turnsWithCalls().at(-1)?.toolCalls ?? [];
  },
  calledTool: (name, expected) => callsOf(agent.toolCalls, toolNamed("calledTool", name), expected).length,
  inTopic: (name) => current.topics.current === ofGraph(name),
  responseMatches: (pattern) => part("values").fits(pattern, turns.at(-1)?.agentResponse.text ?? ""),
  modelUrl: (name) => serviceUrl("model", name),
  mcpUrl: (name) => serviceUrl("server", name),
}));

/** Returns the address of a service of the test. */
function serviceUrl(kind, name) {
  within(kind === "model" ? "agent.modelUrl" : "agent.mcpUrl");
  return ask({ do: "address", kind, name: String(name), at: at() });
}

return { agent, answer, conversation, follow };
