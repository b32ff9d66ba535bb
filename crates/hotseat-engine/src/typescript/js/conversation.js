// The conversation as scripts see it, and the user's input.

class ToolCall {
  constructor(call, turn) {
    Object.assign(this, call);
    this.turn = turn;
  }
  argument(key) {
    return isObject(this.arguments) ? this.arguments[key] : undefined;
  }
}

/** Validates the expected arguments of a call: none may be undefined. */
function definite(expected) {
  if (!isObject(expected) || Array.isArray(expected)) throw misuse(`the arguments of a call must be an object, got ${shown(expected)}`);
  const missing = undefinedIn(expected);
  if (missing !== undefined) throw misuse(`\`${missing}\` of the arguments is undefined, which would assert nothing`);
  const none = Object.entries(expected).find(([, one]) => typeof one === "number" && !Number.isFinite(one));
  if (none !== undefined) throw misuse(`\`${none[0]}\` of the arguments is ${none[1]}, which JSON cannot represent`);
  return expected;
}

function callsOf(calls, name, expected) {
  if (expected !== undefined) definite(expected);
  return calls.filter((call) => call.name === name && (expected === undefined || holds(call.arguments, expected)));
}

class Message {
  constructor(message) {
    Object.assign(this, message);
  }
  get isUser() {
    return this.role === "user";
  }
  get isAgent() {
    return this.role === "agent";
  }
  hasToolCall(name) {
    return callsOf(this.toolCalls, name).length > 0;
  }
}

class AgentResponse {
  constructor(text, toolCalls, metadata) {
    Object.assign(this, { text, toolCalls, metadata });
  }
  get length() {
    return [...this.text].length;
  }
  get isEmpty() {
    return this.text.trim() === "";
  }
  matches(pattern) {
    return fits(pattern, this.text);
  }
  includes(text) {
    return this.text.includes(text);
  }
  hasToolCall(name, expected) {
    return callsOf(this.toolCalls, name, expected).length > 0;
  }
  findToolCalls(name, expected) {
    return callsOf(this.toolCalls, name, expected);
  }
  toString() {
    return this.text;
  }
}

class Turn {
  constructor({ number, user, spoken, text, calls, topic, caller, startedAt, endedAt, durationMs, metadata }) {
    const toolCalls = calls.map((call) => new ToolCall(call, number));
    const source = caller === "hotseat" ? "script" : caller;
    this.number = number;
    this.topic = topic;
    this.durationMs = durationMs;
    this.toolCalls = toolCalls;
    this.userMessage = new Message({ role: "user", content: user, timestamp: startedAt, toolCalls: [], source, metadata: {} });
    this.agentResponse = new AgentResponse(text, toolCalls, metadata);
    const said = (content, toolCalls) => new Message({ role: "agent", content, timestamp: endedAt, toolCalls, source: "agent", metadata });
    this.agentMessage = said(text, toolCalls);
    // Tool calls belong to the turn, because the message that made them is not always known.
    const contents = metadata.messages.length === 0 && toolCalls.length > 0 ? [""] : metadata.messages;
    const messages = contents.map((content, at) => said(content, at === contents.length - 1 ? toolCalls : []));
    this.messages = spoken ? [this.userMessage, ...messages] : messages;
  }
  hasToolCall(name, expected) {
    return callsOf(this.toolCalls, name, expected).length > 0;
  }
  findToolCalls(name, expected) {
    return callsOf(this.toolCalls, name, expected);
  }
  toolCall(name) {
    return this.toolCalls.find((call) => call.name === name);
  }
}

const turns = [];
let topics = { current: null, history: [], visits: [] };

/** Updates topics. A turn may be assigned to a topic after it took place. */
function follow(now) {
  topics = now;
  now.ofTurns.forEach((topic, at) => {
    if (turns[at] !== undefined) turns[at].topic = topic;
  });
}

/** Runs a function with the conversation truncated after a turn. */
function upTo(number, work) {
  const [later, now] = [turns.splice(number), topics];
  const visits = now.visits.map((visit) => ({ ...visit, turns: visit.turns.filter((one) => one <= number) })).filter((visit) => visit.turns.length > 0);
  topics = { ...now, current: turns.at(-1)?.topic ?? null, history: visits.map((visit) => visit.topic), visits };
  try {
    return work();
  } finally {
    turns.push(...later);
    topics = now;
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
    return topics.current;
  },
  get topicHistory() {
    return [...topics.history];
  },
  get topicVisits() {
    return topics.visits.map((visit) => ({ topic: visit.topic, visit: visit.visit, turns: visit.turns.map((number) => turns[number - 1]) }));
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
  hasToolCall: (name, expected) => callsOf(conversation.allToolCalls, name, expected).length > 0,
  calledTool: (name, expected) => callsOf(conversation.allToolCalls, name, expected).length,
  toolCallsFor: (name, expected) => callsOf(conversation.allToolCalls, name, expected),
  inTopic: (name) => topics.current === name,
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
    return topics.current;
  },
  get toolCalls() {
    return turns.at(-1)?.toolCalls ?? [];
  },
  calledTool: (name, expected) => callsOf(agent.toolCalls, name, expected).length,
  inTopic: (name) => topics.current === name,
  responseMatches: (pattern) => fits(pattern, turns.at(-1)?.agentResponse.text ?? ""),
  modelUrl: (name) => serviceUrl("model", name),
  mcpUrl: (name) => serviceUrl("server", name),
});

/** Returns the address of a service of the test. */
function serviceUrl(kind, name) {
  within(kind === "model" ? "agent.modelUrl" : "agent.mcpUrl");
  return ask({ do: "address", kind, name: String(name), at: at() });
}

const user = Object.freeze({
  says(input, options = {}) {
    within("user.says");
    if (typeof input !== "string" && !isObject(input)) throw misuse(`user.says needs a message, got ${shown(input)}`);
    const turn = typeof input === "string" || Array.isArray(input) || input.user === undefined ? { user: input } : input;
    const whole = { ...turn, ...options };
    ask({ do: "say", turn: withSources(whole), at: at() });
    if (isObject(whole.options)) turns.at(-1).userMessage.metadata = structured(whole.options);
    return turns.at(-1).agentResponse;
  },
  simulate(brief = {}) {
    within("user.simulate");
    return simulate(brief);
  },
});

/** Converts a value to case file form: regular expressions become patterns, criteria with functions become references to them. */
function withSources(value) {
  if (value instanceof RegExp) return inline(value);
  if (Array.isArray(value)) return value.map(withSources);
  if (!isObject(value)) return value;
  const own = value.type === "satisfy" && isMapping(value) ? withOwnCriteria(value) : value;
  return Object.fromEntries(Object.entries(own).map(([key, one]) => [key, withSources(one)]));
}

/** Converts a `satisfy` assertion whose criteria may be decided by functions of the test. */
function withOwnCriteria(assertion) {
  const known = (one) => (typeof one === "string" ? asCriterion(one) : Array.isArray(one) ? one.map(known) : one);
  return assertion.criteria === undefined ? assertion : { ...assertion, criteria: known(assertion.criteria) };
}
