// The conversation of an attempt: messages, tool calls and checks.

// Failed conversations with more turns show only the turns that did not pass.
const OPEN_TURNS = 3;

// One attempt, turn by turn. With `marks` it is the only one on the page, and its parts have addresses.
function chat(result, turns, marks, origin) {
  const held = new Map((result.turns || []).map((turn) => [turn.turn, turn]));
  const folds = marks && result.status === 'failed' && turns.length > OPEN_TURNS;
  const parts = turns.map((turn) => {
    const record = held.get(turn.number);
    return chatTurn(turn, record, result.label, marks, folds && record?.status === 'passed', origin);
  });
  for (const turn of held.values()) {
    if (turn.status === 'skipped') {
      parts.push(h('section.turn', {}, h('header.turn-head', {}, turnHead(turn.turn, mark('skipped'), null)), note(turn.skip_reason)));
    }
  }
  const rest = result.turns_not_run;
  if (rest) parts.push(note(rest.first === rest.last ? `Turn ${rest.last}: not run` : `Turns ${rest.first}-${rest.last}: not run`));
  if (!parts.length) parts.push(h('p.empty', {}, 'No messages.'));
  return h('div.chat', {}, parts);
}

function chatTurn(turn, record, label, marks, folded, origin) {
  const status = record && MARKS[record.status] ? mark(record.status, record.status === 'failed' ? label : record.status, label) : null;
  const tokens = record?.spent ? spent(record.spent) : null;
  const facts = [record ? duration(record.duration_ms) : duration((turn.end - turn.start) / 1000), tokens];
  const id = marks ? `turn-${turn.number}` : null;
  const head = turnHead(turn.number, status, facts.filter(Boolean).join(' · '), record?.topic, line(inputOf(turn), 120));
  return fold({ class: 'turn', id, open: !folded }, head, () => [
    portions(turn.items, id),
    record?.error && h('p.trouble', {}, record.error),
    checks(record?.assertions, origin, id, record?.output),
  ]);
}

function turnHead(n, status, facts, topic, preview) {
  return [h('h3', {}, `Turn ${n}`), status, topic && h('span.tag', {}, topic), h('span.preview', { dir: 'auto' }, preview), h('span.facts', {}, facts)];
}

const ITEMS_AT_ONCE = 1000;

// Messages and events of a turn, loaded in portions if there are many.
function portions(items, place) {
  if (items.length <= ITEMS_AT_ONCE) return said(items, place);
  const body = h('div', {});
  let shown = 0;
  const more = h('button.rest', { type: 'button', onclick: () => show() }, '');
  const show = () => {
    append(body, said(items.slice(shown, shown + ITEMS_AT_ONCE), place));
    shown = Math.min(shown + ITEMS_AT_ONCE, items.length);
    more.textContent = `More (${number(items.length - shown)})`;
    if (shown >= items.length) more.remove();
  };
  show();
  return h('div', {}, body, more);
}

// Messages and events in order. With a place each one has an address.
function said(items, place) {
  return items.map((item) => {
    const shown = saidItem(item);
    if (place && item.sequence !== undefined) shown.id = `${place}-event-${item.sequence}`;
    return shown;
  });
}

function saidItem(item) {
  const { type, payload: of } = item;
  const thought = (name, text, make) => fold({ class: 'thought' }, [name, h('span.preview', {}, text)], make);
  if (item.call) return call(item);
  switch (type) {
    case 'message.user':
      return bubble('user', WHO[item.from] || 'User', item, (of.attachments || []).map((name) => h('p.attached', {}, `📎 ${name}`)));
    case 'message.assistant':
      return bubble('agent', agentOf(item), item);
    case 'message.reasoning':
      return thought('Reasoning', line(of.content), () => words(of.content));
    case 'interrupt.raised':
      return fold({ class: 'call' }, ['Waits for an answer', h('span.preview', {}, line(of.message || of.reason || of.interruptId))], () => [
        value(of.value),
        item.answer?.status && h('p', {}, `Answered: ${item.answer.status}`),
        item.answer?.payload !== undefined && value(item.answer.payload),
      ].filter(Boolean));
    case 'role.answered':
      return role(of);
    case 'state.snapshot':
    case 'state.delta': {
      const state = of.state === undefined ? of.patch : of.state;
      return thought('State', short(state), () => value(state));
    }
    case 'custom':
      return thought(of.name, short(of.value), () => value(of.value));
    case 'turn.failed':
    case 'agent.run.failed':
      return h('p.trouble', {}, h('strong', {}, of.error.code ? `${of.error.code}: ` : ''), words(errorText(of.error), 'span.words'));
    default:
      return note(NOTES[type](of));
  }
}

const NOTES = {
  'llm.call.failed': (of) => `The model failed: ${errorText(of.error)}`,
  'llm.fault_injected': (of) => `Fault \`${of.fault}\` in call ${of.callNo} of the model ${of.model}`,
  'subagent.started': (of) => `${of.name || of.subagent} takes over`,
  'subagent.finished': (of) => `${of.name || of.subagent} is done`,
  'subagent.failed': (of) => `${of.name || of.subagent} ${of.error ? `failed: ${errorText(of.error)}` : 'is done'}`,
  'agent.awaiting_input': (of) => `The agent waits for the user${of.hint ? `: ${of.hint}` : ''}`,
  'protocol.note': (of) => of.message,
};

// The text of an error; while a case is running, a long error is a text.
function errorText(error) {
  return error.message ?? error;
}

function agentOf(item) {
  return item.payload.subagent || item.from || 'Agent';
}

const WHO = {
  simulator: 'User, simulated', simulated: 'User, simulated',
  person: 'User, human', interactive: 'User, human',
};

function bubble(side, who, item, more) {
  return h(`div.said.${side}`, {},
    h('div.who', {}, who, h('span.at', {}, clock(item.offsetUs))),
    side === 'agent' ? agentText(item.payload.content) : words(item.payload.content, 'div.words.bubble'), more);
}

function note(text) {
  return h('p.note', {}, words(text, 'span.words'));
}

function call(item) {
  const { name, args, args_broken: broken, result, error, subagent, server, faults } = item.call;
  const failed = error !== undefined;
  const answered = failed || result !== undefined;
  const agent = subagent || item.from;
  const origin = item.payload?.origin;
  const summary = [
    h('span.tool', {}, name),
    h('span.preview', {}, short(args ?? undefined)),
    agent && h('span.tag', {}, agent),
    server && h('span.tag', { title: 'MCP server of the test' }, server),
    (faults || []).map((fault) => h('span.tag.bad', { title: 'fault that the test injected' }, fault)),
    h('span.facts', {}, failed ? h('span.bad', {}, '✗ failed ') : !answered && h('span.warn', {}, 'no result '), answered && duration(item.call.duration_ms)),
  ];
  const inner = item.inner && h('div.inner', {}, h('p.who', {}, `Conversation with ${item.inner[0].callee[0]}`),
    item.inner.map((turn) => said(turn.items)));
  return fold({ class: failed ? 'call failed' : 'call' }, summary, () => h('div', {},
    origin && h('p.label', {}, `first seen in ${origin}`),
    h('p.label', {}, broken ? 'Arguments (not JSON)' : 'Arguments'),
    value(args ?? 'none'),
    answered && [h('p.label', {}, failed ? 'Error' : 'Result'), value(failed ? error : result)],
    inner,
  ));
}

// Request and answer of a role.
function role(item) {
  const reason = item.finding && (item.finding.reason || item.finding.reasoning);
  const preview = item.error || reason || item.answer;
  const name = item.role === 'judge' ? 'Judge' : item.role === 'simulator' ? 'Simulated user' : item.role;
  return fold({ class: 'thought role' }, [
    `${name} ${item.agent}`, h('span.preview', {}, line(preview || '')),
    h('span.facts', {}, item.error && h('span.bad', {}, '✗ '), duration((item.durationUs || 0) / 1000)),
  ], () => h('div', {},
    item.question !== undefined && [h('p.label', {}, 'Asked'), value(item.question)],
    h('p.label', {}, 'Answered'), value(item.answer),
    item.error && h('p.trouble', {}, item.error),
    item.finding !== undefined && [h('p.label', {}, 'Parsed answer'), value(item.finding)],
  ));
}

// Checks; failed ones are unfolded: expectation, actual value, difference and location. `answer` is the answer
// that they evaluate.
function checks(all, origin, place, answer) {
  if (!all?.length) return null;
  return h('ul.checks', { 'aria-label': 'Checks' }, all.map((check, at) => {
    const status = check.soft && !check.passed ? 'soft' : check.passed ? 'passed' : 'failed';
    const title = `${check.passed ? 'passed' : check.error ? 'errored' : 'failed'}${check.soft ? ', informational' : ''}`;
    const details = fold({ open: !check.passed }, [
      mark(status, title), h('span.expected', {}, line(`expected ${check.expected}`, 300)),
      check.soft && h('span.tag', {}, 'informational'), check.error && h('span.tag', {}, 'errored'),
    ], () => h('dl', {},
      line(check.expected, 290) !== check.expected && [h('dt', {}, 'Expected'), h('dd', {}, words(check.expected))],
      ...gotten(check, answer),
      check.reasoning && [h('dt', {}, 'Reasoning'), h('dd', {}, words(check.reasoning))],
      check.judgement && [h('dt', {}, 'Judged by'), h('dd', {}, judgement(check.judgement))],
      check.logs && [h('dt', {}, 'Console'), h('dd', {}, words(check.logs.join('\n')))],
      h('dt', {}, 'Defined at'), h('dd', {}, origin(check)),
      check.called_at && [h('dt', {}, 'Called at'), h('dd', {}, origin(check.called_at))],
    ));
    return h('li', { class: `check ${status}`, id: place ? `${place}-check-${at}` : null }, details);
  }));
}

// What a check got: the difference if there is one, otherwise the text.
function gotten(check, answer) {
  const difference = check.passed ? null : checkDifference(check, answer);
  if (!difference) return [h('dt', {}, check.error ? 'Error' : 'Got'), h('dd', {}, words(check.error || check.actual))];
  return [h('dt', {}, 'Difference'), h('dd', {}, difference)];
}

// The judge and its usage.
function judgement(of) {
  const votes = of.votes && `${of.votes.for} for, ${of.votes.against} against, ${of.votes.errored} without an answer`;
  const score = typeof of.score === 'number' && `score ${number(of.score)}`;
  return [of.judge, of.model, of.prompt, score, votes, judgeTokens(of), duration(of.duration_ms), of.left_out && `not shown: ${of.left_out.join('; ')}`].filter(Boolean).join(' · ');
}

function judgeTokens(of) {
  const isKnown = typeof of.input_tokens === 'number' && typeof of.output_tokens === 'number';
  return isKnown ? `${number(of.input_tokens)} in, ${number(of.output_tokens)} out` : 'tokens unknown';
}

function spent(of) {
  const tokens = [of.input_tokens, of.output_tokens].some((n) => n !== undefined && n !== null)
    ? `${number(of.input_tokens || 0)} in, ${number(of.output_tokens || 0)} out`
    : of.total_tokens !== undefined && `${number(of.total_tokens)} tokens`;
  const cost = typeof of.cost === 'number' && `cost ${money(of.cost)}`;
  return [tokens, cost, of.estimated && 'estimated'].filter(Boolean).join(' · ');
}
