// Converts events to a conversation with the time spans of its parts.

// True if an item is the agent's report of a call at a server: frameworks add the name of the server to the tool.
function isReported(item, call) {
  if (item.kind !== 'call' || item.server || item.input === undefined) return false;
  const named = item.name === call.name || (item.name.endsWith(call.name) && item.name.includes(call.server));
  return named && sameJson(item.input, call.input);
}

function sameJson(a, b) {
  const sorted = (value) => value && typeof value === 'object' && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)).map(([key, inner]) => [key, sorted(inner)]))
    : Array.isArray(value) ? value.map(sorted) : value;
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

// Returns the turns with their messages, events and spans in order. Conversations between agents are attached
// to the call that opened them.
function read(events) {
  const conversations = new Map([['', { turns: [], call: null }]]);
  const turns = new Map();
  const calls = new Map();
  const open = new Map();
  const nested = new Map();
  // Calls by their id at an MCP server of the test.
  const atServer = new Map();

  // A call that the agent reports later than the server that received it: both are one item.
  const takeServer = (turn, call) => {
    const place = turn.items.findIndex((item) => item.server && item !== call && !item.reported && isReported(call, item));
    if (place < 0) return;
    const [seen] = turn.items.splice(place, 1);
    Object.assign(call, { server: seen.server, faults: seen.faults, reported: true });
    atServer.set(seen.id, call);
  };

  const conversation = (id) => {
    if (!conversations.has(id)) conversations.set(id, { turns: [], call: null });
    return conversations.get(id);
  };
  const begin = (key, turn, span) => {
    span.end = null;
    open.set(key, span);
    if (turn) turn.spans.push(span);
  };
  const finish = (key, at, failed) => {
    const span = open.get(key);
    if (!span) return;
    span.end = at;
    span.failed = failed;
    open.delete(key);
  };
  const owner = (id) => nested.get(id) || '';

  for (const event of events) {
    const { type, payload: p, offsetUs: at } = event;
    const within = event.executionId || '';
    if (event.executionType === 'workflow' && !nested.has(event.executionId)) {
      const above = event.parentExecutionId || '';
      nested.set(event.executionId, conversations.has(above) ? above : owner(above));
    }
    const own = event.executionType === 'conversation' ? event.executionId : owner(event.executionId);
    const depth = (own ? 1 : 0) + (event.executionType === 'workflow' ? 1 : 0);
    const found = p.turnId === undefined ? undefined : turns.get(p.turnId);
    const turn = found?.turn;
    const agent = p.subagent || found?.agent;
    const add = (item) => turn?.items.push({ at, sequence: event.sequence, agent, ...item });
    const span = (kind, label, start = at) => ({ kind, label, start, depth, sequence: event.sequence });

    switch (type) {
      case 'conversation.created':
        if (p.parent) {
          conversation(p.conversationId).call = p.parent.callId;
          conversation(p.conversationId).agent = p.agentId;
        }
        break;
      case 'turn.started': {
        const caller = p.callerTurnId && turns.get(p.callerTurnId);
        if (caller && !event.executionId) {
          turns.set(p.turnId, { turn: caller.turn, agent: p.agentId });
          break;
        }
        const all = conversation(own).turns;
        const begun = { id: p.turnId, number: all.length + 1, start: at, end: null, items: [], spans: [], who: p.callerId };
        // The time of a called agent is part of the turn that called it.
        if (caller) begun.spans = caller.turn.spans;
        all.push(begun);
        turns.set(p.turnId, { turn: begun, agent: own ? p.agentId : undefined });
        break;
      }
      case 'turn.completed':
      case 'turn.failed':
        if (!turn || turn.id !== p.turnId) break;
        turn.end = at;
        if (type === 'turn.failed') {
          turn.failed = true;
          add({ kind: 'error', error: p.error });
        }
        break;
      case 'message.user':
        if (turn && turn.id === p.turnId) add({ kind: 'user', text: p.content, attachments: p.attachments, who: turn.who });
        break;
      case 'message.assistant':
        if (p.content !== '') add({ kind: 'agent', text: p.content, start: p.startedUs });
        if (turn && p.startedUs !== undefined) turn.spans.push({ ...span('message', 'message', p.startedUs), end: at });
        break;
      case 'message.reasoning':
        add({ kind: 'thought', text: p.content });
        break;
      case 'tool.invoked': {
        const start = p.startedUs === undefined ? at : p.startedUs;
        const call = { kind: 'call', name: p.toolName, input: p.input, id: p.toolCallId, start, origin: p.origin, server: p.server };
        const known = p.server && turn && turn.items.find((item) => isReported(item, call));
        if (known) {
          // The agent has reported this call already.
          known.server = p.server;
          atServer.set(p.toolCallId, known);
          break;
        }
        add(call);
        if (p.server && turn) atServer.set(p.toolCallId, turn.items.at(-1));
        if (!p.server && p.input !== undefined && turn) takeServer(turn, turn.items.at(-1));
        if (turn) calls.set(p.toolCallId, turn.items.at(-1));
        begin(`tool ${p.toolCallId}`, turn, span('tool', p.toolName, start));
        break;
      }
      case 'tool.arguments': {
        const call = calls.get(p.toolCallId);
        if (call) {
          call.input = p.input === undefined ? p.text : p.input;
          if (turn && call.server === undefined) takeServer(turn, call);
          call.broken = p.input === undefined && p.text !== undefined;
        }
        break;
      }
      case 'mcp.fault_injected': {
        const call = atServer.get(p.toolCallId);
        if (call) call.faults = [...(call.faults || []), p.fault];
        break;
      }
      case 'tool.completed':
      case 'tool.failed': {
        const call = calls.get(p.toolCallId);
        if (call) {
          call.end = at;
          call.answered = true;
          call.failed = type === 'tool.failed';
          call.output = call.failed ? p.error : p.output;
        }
        finish(`tool ${p.toolCallId}`, at, type === 'tool.failed');
        break;
      }
      case 'llm.call.started':
        begin(`model ${within} ${p.turnId} ${p.callNo}`, turn, span('model', p.modelProfileId));
        break;
      case 'llm.call.completed':
      case 'llm.call.failed':
        finish(`model ${within} ${p.turnId} ${p.callNo}`, at, type === 'llm.call.failed');
        if (type === 'llm.call.failed') add({ kind: 'note', text: `The model failed: ${p.error.message}` });
        break;
      case 'llm.fault_injected':
        add({ kind: 'note', text: `Fault \`${p.fault}\` in call ${p.callNo} of the model ${p.model}` });
        break;
      case 'agent.call.started':
        begin(`agent ${p.callId}`, turn, span('agent', p.agentId));
        break;
      case 'agent.call.completed':
      case 'agent.call.failed':
        finish(`agent ${p.callId}`, at, type === 'agent.call.failed');
        break;
      case 'subagent.started':
        add({ kind: 'agents', text: `${p.name || p.subagent} takes over`, agent: undefined });
        begin(`subagent ${p.subagent}`, turn, span('agent', p.name || p.subagent));
        break;
      case 'subagent.finished':
      case 'subagent.failed':
        add({ kind: 'agents', text: `${p.name || p.subagent} ${p.error ? `failed: ${p.error.message}` : 'is done'}`, agent: undefined });
        finish(`subagent ${p.subagent}`, at, type === 'subagent.failed');
        break;
      case 'executor.task.started':
        if (p.origin === 'context_assembly' || p.origin === 'memory_extraction') break;
        begin(`task ${p.runId}`, turn, span('task', p.taskId));
        break;
      case 'executor.task.completed':
      case 'executor.task.failed':
        finish(`task ${p.runId}`, at, type === 'executor.task.failed');
        break;
      case 'context_assembly.started':
      case 'memory_extraction.started':
        begin(`work ${p.runId}`, turn, span('work', type === 'context_assembly.started' ? 'builds the request' : 'extracts memory'));
        break;
      case 'context_assembly.completed':
      case 'context_assembly.failed':
      case 'memory_extraction.completed':
      case 'memory_extraction.failed':
        finish(`work ${p.runId}`, at, type.endsWith('.failed'));
        break;
      case 'interrupt.raised':
        add({ kind: 'interrupt', text: p.message || p.reason || p.interruptId, id: p.interruptId, value: p.value });
        begin(`interrupt ${p.interruptId}`, turn, span('wait', p.reason || 'waits for an answer'));
        break;
      case 'interrupt.answered': {
        const asked = turn?.items.findLast((item) => item.kind === 'interrupt' && item.id === p.interruptId);
        if (asked) asked.answer = { status: p.status, payload: p.payload };
        finish(`interrupt ${p.interruptId}`, at, false);
        break;
      }
      case 'step.started':
        begin(`step ${p.turnId} ${p.name}`, turn, span('step', p.name));
        break;
      case 'step.finished':
        finish(`step ${p.turnId} ${p.name}`, at, false);
        break;
      case 'state.snapshot':
      case 'state.delta':
        add({ kind: 'state', state: p.state === undefined ? p.patch : p.state });
        break;
      case 'agent.awaiting_input':
        if (p.awaiting) add({ kind: 'note', text: `The agent waits for the user${p.hint ? `: ${p.hint}` : ''}` });
        break;
      case 'agent.run.failed':
        add({ kind: 'error', error: p.error });
        break;
      case 'custom':
        add({ kind: 'custom', name: p.name, value: p.value });
        break;
      case 'protocol.note':
        add({ kind: 'note', text: p.message });
        break;
      case 'role.answered': {
        add({ kind: 'role', ...p });
        const start = Math.max(0, at - p.durationUs);
        if (turn) turn.spans.push({ ...span('helper', `${p.role}: ${p.agent}`, start), end: at });
        break;
      }
      default:
        break;
    }
  }

  for (const [id, { call, agent, turns: held }] of conversations) {
    if (id === '' || !calls.has(call)) continue;
    calls.get(call).inner = { agent, turns: held };
  }
  const held = conversations.get('').turns;
  const last = events.length ? events.at(-1).offsetUs : 0;
  held.forEach((turn) => complete(turn, last));
  return held;
}

// Removes duplicate errors, ends open spans with their turn, and finds gaps.
function complete(turn, last) {
  const errors = turn.items.filter((item) => item.kind === 'error');
  if (errors.length > 1 && errors.every((one) => one.error.message === errors[0].error.message)) {
    turn.items = turn.items.filter((item) => item.kind !== 'error' || item === errors[0]);
  }
  turn.over = turn.end === null ? last : turn.end;
  for (const span of turn.spans) {
    span.unfinished = span.end === null;
    span.end = span.end === null ? Math.max(turn.over, span.start) : span.end;
  }
  const models = turn.spans.filter((span) => span.kind === 'model');
  turn.spans = turn.spans.filter(
    (span) => span.kind !== 'message' || !models.some((model) => model.start <= span.start && span.start <= model.end),
  );
  turn.spans.sort((a, b) => a.start - b.start || a.depth - b.depth || b.end - a.end);
  turn.gaps = gaps(turn);
}

// Finds idle times of at least one millisecond and a fiftieth of the turn.
function gaps(turn) {
  const least = Math.max(1000, (turn.over - turn.start) / 50);
  const found = [];
  let reached = turn.start;
  const busy = turn.spans.filter((span) => span.kind !== 'helper');
  for (const span of [...busy, { start: turn.over, end: turn.over }]) {
    if (span.start - reached >= least) {
      found.push({ kind: 'idle', label: 'idle', start: reached, end: Math.min(span.start, turn.over), depth: 0 });
    }
    reached = Math.max(reached, span.end);
  }
  return found;
}

// Without events: builds the conversation from the result, in the order of its members.
function fromResult(result) {
  return (result.turns || []).filter((turn) => turn.start_ts !== undefined).map((turn) => {
    const items = [{ kind: 'user', text: turn.input ?? '', who: turn.input_source }];
    for (const text of turn.reasoning || []) items.push({ kind: 'thought', text });
    for (const call of turn.tool_calls) {
      const failed = call.error !== undefined;
      const start = call.started_ms * 1000;
      items.push({
        kind: 'call', name: call.name, input: call.args, id: call.id, server: call.server, faults: call.faults, start, end: start + call.duration_ms * 1000,
        failed, answered: failed || call.result !== undefined, output: failed ? call.error : call.result,
      });
    }
    for (const text of turn.messages) items.push({ kind: 'agent', text });
    const role = (said) => ({ kind: 'role', ...said, durationUs: said.duration_ms * 1000 });
    items.push(...(turn.roles || []).map(role));
    return { number: turn.turn, items, spans: [], gaps: [], start: 0, over: turn.duration_ms * 1000 };
  });
}
