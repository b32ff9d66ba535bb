// The conversation and the agent as scripts see them, and functions of the test that judge them.

const { ask, at, callsOf, current, decided, decidedCheck, functions, hasCallOf, part, thrownWords, turns, within } = core;

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

/** Runs a judging function for the busy host. */
function answer({ call, first, turn, condition }) {
  current.judging = true;
  try {
    const looked = turn === null || turn === undefined ? [] : turns.slice(first - 1, turn);
    const found = upTo(turn ?? 0, () => functions[call](looked.at(-1), core.conversation, looked));
    return { value: condition ? decided(found) : decidedCheck(found) };
  } catch (error) {
    return { error: thrownWords(error) };
  } finally {
    current.judging = false;
  }
}

const conversation = Object.freeze({
  get turns() {
    return [...turns];
  },
  get messages() {
    return turns.flatMap((turn) => turn.messages);
  },
  get allToolCalls() {
    return turns.flatMap((turn) => turn.toolCalls);
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
  hasToolCall: (name, expected) => hasCallOf(conversation.allToolCalls, name, expected),
  calledTool: (name, expected) => callsOf(conversation.allToolCalls, name, expected).length,
  toolCallsFor: (name, expected) => callsOf(conversation.allToolCalls, name, expected),
  inTopic: (name) => current.topics.current === name,
  turnsInTopic: (name) => turns.filter((turn) => turn.topic === name).length,
  turnsForTopic: (name) => turns.filter((turn) => turn.topic === name),
});

const agent = Object.freeze({
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
    return turns.at(-1)?.toolCalls ?? [];
  },
  calledTool: (name, expected) => callsOf(agent.toolCalls, name, expected).length,
  inTopic: (name) => current.topics.current === name,
  responseMatches: (pattern) => part("values").fits(pattern, turns.at(-1)?.agentResponse.text ?? ""),
  modelUrl: (name) => serviceUrl("model", name),
  mcpUrl: (name) => serviceUrl("server", name),
});

/** Returns the address of a service of the test. */
function serviceUrl(kind, name) {
  within(kind === "model" ? "agent.modelUrl" : "agent.mcpUrl");
  return ask({ do: "address", kind, name: String(name), at: at() });
}

return { agent, answer, conversation, follow };
