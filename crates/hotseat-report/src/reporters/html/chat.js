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
  if (!parts.length) parts.push(h('p.empty', {}, 'No messages.'));
  return h('div.chat', {}, parts);
}

function chatTurn(turn, record, label, marks, folded, origin) {
  const status = record && MARKS[record.status] ? mark(record.status, record.status === 'failed' ? label : record.status, label) : null;
  const tokens = record?.spent ? spent(record.spent) : null;
  const facts = [record ? duration(record.duration_ms) : duration((turn.over - turn.start) / 1000), tokens];
  const id = marks ? `turn-${turn.number}` : null;
  const asked = turn.items.find((item) => item.kind === 'user');
  const head = turnHead(turn.number, status, facts.filter(Boolean).join(' · '), record?.topic, line(asked?.text || '', 120));
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
  const more = h('button', { type: 'button', onclick: () => show() }, '');
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
  switch (item.kind) {
    case 'user':
      return bubble('user', WHO[item.who] || 'User', item,
        (item.attachments || []).map((name) => h('p.attached', {}, `📎 ${name}`)));
    case 'agent':
      return bubble('agent', item.agent || 'Agent', item);
    case 'thought':
      return fold({ class: 'thought' }, ['Reasoning', h('span.preview', {}, line(item.text))], () => words(item.text));
    case 'call':
      return call(item);
    case 'interrupt':
      return fold({ class: 'call' }, ['Waits for an answer', h('span.preview', {}, line(item.text))], () => [
        value(item.value),
        item.answer && h('p', {}, `Answered: ${item.answer.status}`),
        item.answer?.payload !== undefined && value(item.answer?.payload),
      ].filter(Boolean));
    case 'role':
      return role(item);
    case 'state':
      return fold({ class: 'thought' }, ['State', h('span.preview', {}, short(item.state))], () => value(item.state));
    case 'custom':
      return fold({ class: 'thought' }, [item.name, h('span.preview', {}, short(item.value))], () => value(item.value));
    case 'error':
      return h('p.trouble', {}, h('strong', {}, item.error.code ? `${item.error.code}: ` : ''), words(item.error.message, 'span.words'));
    default:
      return note(item.text);
  }
}

const WHO = {
  simulator: 'User, simulated', simulated: 'User, simulated',
  person: 'User, human', interactive: 'User, human',
};

function bubble(side, who, item, more) {
  return h(`div.said.${side}`, {},
    h('div.who', {}, who, item.at !== undefined && h('span.at', {}, clock(item.at))),
    side === 'agent' ? agentText(item.text) : words(item.text, 'div.words.bubble'), more);
}

function note(text) {
  return h('p.note', {}, words(text, 'span.words'));
}

function call(item) {
  const took = item.end === undefined ? null : duration((item.end - item.start) / 1000);
  const summary = [
    h('span.tool', {}, item.name),
    h('span.preview', {}, short(item.input)),
    item.agent && h('span.tag', {}, item.agent),
    item.server && h('span.tag', { title: 'MCP server of the test' }, item.server),
    (item.faults || []).map((fault) => h('span.tag.bad', { title: 'fault that the test injected' }, fault)),
    h('span.facts', {}, item.failed ? h('span.bad', {}, '✗ failed ') : !item.answered && h('span.warn', {}, 'no result '), took),
  ];
  const inner = item.inner && h('div.inner', {}, h('p.who', {}, `Conversation with ${item.inner.agent}`),
    item.inner.turns.map((turn) => said(turn.items)));
  return fold({ class: item.failed ? 'call failed' : 'call' }, summary, () => h('div', {},
    item.origin && item.origin !== 'stream' && h('p.label', {}, `first seen in ${item.origin}`),
    h('p.label', {}, item.broken ? 'Arguments (not JSON)' : 'Arguments'),
    value(item.input === undefined ? 'none' : item.input),
    item.answered && [h('p.label', {}, item.failed ? 'Error' : 'Result'),
      value(item.failed && item.output?.message ? item.output.message : item.output)],
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
