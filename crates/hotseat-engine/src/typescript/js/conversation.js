// The turns of the conversation as scripts see them, and the user's input.

class ToolCall {
  constructor({ names, server, serverTool, ...call }, turn) {
    Object.assign(this, call);
    this.turn = turn;
    // Not compared when a test compares calls.
    for (const [key, value] of Object.entries({ names, server, serverTool })) Object.defineProperty(this, key, { value, enumerable: false });
    // Later checks read it, too.
    Object.freeze(this);
  }
  argument(key) {
    return isObject(this.arguments) ? this.arguments[key] : undefined;
  }
}

/** Guards the list of an object against being read while calls are not visible: an empty list would say that there were none. */
function guardCalls(object) {
  if (current.unseen === null) return;
  const calls = object.toolCalls;
  const get = () => {
    if (current.unseen !== null) throw misuse(current.unseen);
    return calls;
  };
  Object.defineProperty(object, "toolCalls", { get, enumerable: false });
}

/** True if the agent reports the tool by this name, or an MCP server of the test has it. */
const isNamed = (call, name) => call.name === name || call.names?.includes(name) === true;

/** True for arguments that are not valid JSON, which are a string, or no object: they are unknown. */
const areUnreadable = (call) => call.arguments !== undefined && call.arguments !== null && !isMapping(call.arguments);

/** Returns the calls of a tool whose arguments can be compared. */
function comparableCalls(calls, name, expected) {
  part("values").definite(expected);
  return calls.filter((call) => isNamed(call, name) && !areUnreadable(call));
}

function refuseUnreadable(calls, name) {
  if (calls.some((call) => isNamed(call, name) && areUnreadable(call))) throw misuse(`the arguments of a call of ${name} are ${hidden.unreadableArguments()}`);
}

function callsOf(calls, name, expected) {
  if (expected === undefined) return calls.filter((call) => isNamed(call, name));
  const own = comparableCalls(calls, name, expected);
  refuseUnreadable(calls, name);
  return own.filter((call) => part("values").argumentsHold(call, expected));
}

/** A matching call decides, also if others cannot be compared. */
function hasCallOf(calls, name, expected) {
  if (expected === undefined) return calls.some((call) => isNamed(call, name));
  const { allHold, argumentsHold } = part("values");
  const none = allHold(comparableCalls(calls, name, expected), (call) => !argumentsHold(call, expected));
  if (none) refuseUnreadable(calls, name);
  return !none;
}

class Message {
  constructor(message) {
    Object.assign(this, message);
    if (this.isAgent) guardCalls(this);
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
    guardCalls(this);
  }
  get length() {
    return [...this.text].length;
  }
  get isEmpty() {
    return hidden.isBlank(this.text);
  }
  matches(pattern) {
    return part("values").fits(pattern, this.text);
  }
  includes(text) {
    return this.text.includes(text);
  }
  hasToolCall(name, expected) {
    return hasCallOf(this.toolCalls, name, expected);
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
    const toolCalls = Object.freeze(calls.map((call) => new ToolCall(call, number)));
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
    const messages = contents.map((content, at) => said(content, at === contents.length - 1 ? toolCalls : Object.freeze([])));
    this.messages = spoken ? [this.userMessage, ...messages] : messages;
    guardCalls(this);
  }
  hasToolCall(name, expected) {
    return hasCallOf(this.toolCalls, name, expected);
  }
  findToolCalls(name, expected) {
    return callsOf(this.toolCalls, name, expected);
  }
  toolCall(name) {
    return this.toolCalls.find((call) => isNamed(call, name));
  }
}

/** Refuses to read members that an object does not have, which would be undefined: a misspelt one decides nothing. */
function exactMembers(of, object, optional = []) {
  const strangers = {
    get(known, key, receiver) {
      // Promises and JSON ask every object for these two.
      if (typeof key === "symbol" || key in known || ["then", "toJSON", ...optional].includes(key)) return known[key];
      const names = new Set([...Object.keys(receiver), ...Object.getOwnPropertyNames(object), ...optional].sort());
      names.delete("constructor");
      const near = hidden.nearest(key, [...names]);
      throw misuse(`${of} has no member \`${key}\`${near === null ? `; it has ${[...names].join(", ")}` : `: did you mean \`${near}\`?`}`);
    },
  };
  return Object.setPrototypeOf(exactMethods(of, object), new Proxy({}, strangers));
}

exactMembers("call", ToolCall.prototype, ["result", "error"]);
exactMembers("message", Message.prototype, ["timestamp"]);
exactMembers("response", AgentResponse.prototype);
exactMembers("turn", Turn.prototype);

const turns = [];
/** Returns an object of a part, which is loaded when a test looks at the object. */
function lazily(from, name) {
  const handler = {};
  const traps = ["get", "has", "set", "ownKeys", "getOwnPropertyDescriptor", "defineProperty", "deleteProperty", "isExtensible"];
  for (const trap of traps) {
    handler[trap] = (object, ...rest) => {
      const members = Object.getOwnPropertyDescriptors(part(from)[name]);
      for (const one of traps) delete handler[one];
      Object.setPrototypeOf(object, Object.getPrototypeOf(part(from)[name]));
      Object.freeze(Object.defineProperties(object, members));
      return Reflect[trap](object, ...rest);
    };
  }
  return new Proxy({}, handler);
}

const conversation = lazily("conversation", "conversation");
const agent = lazily("conversation", "agent");

const user = Object.freeze(exactMembers("user", {
  says(input, options) {
    within("user.says");
    if (typeof input !== "string" && !isObject(input)) throw misuse(`user.says needs a message, got ${shown(input)}`);
    const isMessage = typeof input === "string" || Array.isArray(input) || input.content !== undefined || input.role !== undefined;
    if (!isMessage && input.user === undefined && input.input === undefined) throw misuse(`user.says needs the user's text under \`user\`, got ${shown(input)}`);
    const turn = isMessage ? { user: input } : input;
    const twice = Object.keys(options ?? {}).find((key) => Object.hasOwn(turn, key));
    if (twice !== undefined) throw misuse(`user.says got \`${twice}\` twice: in the message and in the options`);
    const whole = { ...turn, ...options };
    ask({ do: "say", turn: withSources(whole), at: at() });
    if (isObject(whole.options)) turns.at(-1).userMessage.metadata = structured(whole.options);
    return turns.at(-1).agentResponse;
  },
  simulate(brief) {
    within("user.simulate");
    return part("simulating").simulate(brief === undefined ? {} : brief);
  },
}));

/** Keys whose values are assertions: an undefined member would assert nothing. */
const ASSERTIONS = ["assert", "turnAssert", "turn_assert", "evaluate", "turn_evaluate", "finalAssertions", "final_assertions"];

/** Keys of case files under which a regular expression is a pattern. */
const PATTERNS = [
  "code", "expect_error", "matches", "message", "must_match", "must_not_match", "never_says", "notice", "on_response_match", "on_user_match", "pattern", "reason", "regex",
  "regex_any", "result_match", "result_not_match", "system", "tool_result", "user",
];

/** Keys of case files with patterns by name. */
const PATTERN_MAPS = ["args_match", "args_not_match"];

/** Returns the spelling of a key in case files. */
const caseKey = (key) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Returns what the value of a member is: compared with a value (also all within it), a pattern, patterns by name, or none of these. */
function roleOf(key, of, role) {
  const name = caseKey(key);
  const isTyped = typeof of.type === "string" && ["value", "result"].includes(name);
  if (role === "value" || name === "arguments" || (isTyped && of.type !== "regex")) return "value";
  if (role === "patterns" || PATTERNS.includes(name) || (isTyped && name === "value")) return "pattern";
  return PATTERN_MAPS.includes(name) ? "patterns" : "other";
}

/**
 * Converts a value to case file form: regular expressions become patterns, criteria with functions become references to them. Other values
 * that JSON cannot hold would be left out, so they are errors, and so are regular expressions that would be taken for texts.
 */
function withSources(value, path = "", role = "other", isAsserted = false) {
  const unwritable = (words) => misuse(`\`${path}\` is ${shown(value)}, which ${words}`);
  if (value instanceof RegExp) {
    if (role !== "pattern") throw unwritable("is compared as a text here: use `where` with `regex`, an assertion with a pattern, or `toCallTool`");
    return part("values").inline(value);
  }
  if (value === undefined && isAsserted) throw misuse(`\`${path}\` is undefined, which would assert nothing`);
  const below = (key) => (path === "" ? `${key}` : `${path}.${key}`);
  if (Array.isArray(value)) return value.map((one, at) => withSources(one, below(at), role, isAsserted));
  const isScalar = value === null || ["string", "boolean", "undefined"].includes(typeof value) || Number.isFinite(value);
  if (isScalar) return value;
  if (!isMapping(value)) throw unwritable("a case file cannot hold");
  const own = value.type === "satisfy" ? part("simulating").withOwnCriteria(value) : value;
  const isAssertion = (key, one) => isAsserted || (ASSERTIONS.includes(key) && one !== undefined);
  return Object.fromEntries(Object.entries(own).map(([key, one]) => [key, withSources(one, below(key), roleOf(key, own, role), isAssertion(key, one))]));
}
