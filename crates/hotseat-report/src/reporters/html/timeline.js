// Waterfall diagram of the durations in each turn, from the times of the events.

const KINDS = {
  model: 'model step', message: 'message', tool: 'tool', agent: 'other agent', task: 'task', work: 'internal work',
  helper: 'role', wait: 'waits for an answer', step: 'step', idle: 'idle',
};

// Maximum number of bars that are open at first.
const OPEN_AT_FIRST = 60;

// Each bar links to its part of the conversation.
function timeline(turns, link) {
  if (!turns.some((turn) => turn.end > turn.start)) return null;
  const all = turns.map((turn) => [...turn.spans, ...gaps(turn)].sort((a, b) => a.start - b.start || a.depth - b.depth));
  const whole = { start: turns[0].start, end: Math.max(...turns.map((turn) => turn.end)) };
  const shown = new Set(all.flat().map((span) => span.kind));
  const body = h('div.bars', {});
  const bars = all.flat().length;
  const draw = (alone) => fill(body, !alone && axis(whole), turns.map((turn, at) => {
    const scale = alone ? { start: turn.start, end: turn.end } : whole;
    const own = { kind: 'whole', label: `Turn ${turn.number}`, start: turn.start, end: turn.end, depth: 0 };
    const shown = new Set(turn.items.map((item) => item.sequence));
    const place = (span) => link({ to: shown.has(span.sequence) ? `turn-${turn.number}-event-${span.sequence}` : `turn-${turn.number}` });
    return fold({ open: bars <= OPEN_AT_FIRST, class: 'bar-turn' }, bar(own, scale, whole, place(own)), () => [
      alone ? axis(scale) : null,
      all[at].map((span) => bar({ ...span, depth: span.depth + 1 }, scale, whole, span.kind === 'idle' ? null : place(span))),
    ].flat().filter(Boolean));
  }));
  draw(false);
  const alone = turns.length > 1 && h('label.switch', {},
    h('input', { type: 'checkbox', onchange: (event) => draw(event.target.checked) }), 'each turn on its own scale');
  return h('section.timeline', { 'aria-label': 'Timeline' },
    h('header.section-head', {}, h('h2', {}, 'Timeline'),
      h('span.legend', {}, Object.entries(KINDS).filter(([kind]) => shown.has(kind)).map(([kind, words]) =>
        h('span', {}, h(`i.key.${kind}`), words))), alone),
    body);
}

// Finds idle times of at least one millisecond and a fiftieth of the turn.
function gaps(turn) {
  const least = Math.max(1000, (turn.end - turn.start) / 50);
  const found = [];
  let reached = turn.start;
  const busy = turn.spans.filter((span) => span.kind !== 'helper');
  for (const span of [...busy, { start: turn.end, end: turn.end }]) {
    if (span.start - reached >= least) {
      found.push({ kind: 'idle', label: 'idle', start: reached, end: Math.min(span.start, turn.end), depth: 0 });
    }
    reached = Math.max(reached, span.end);
  }
  return found;
}

function bar(span, scale, whole, to) {
  const length = Math.max(1, scale.end - scale.start);
  const left = (100 * (span.start - scale.start)) / length;
  const width = (100 * (span.end - span.start)) / length;
  const took = duration((span.end - span.start) / 1000);
  const kind = KINDS[span.kind] || 'turn';
  const state = `${span.failed ? ', failed' : ''}${span.unfinished ? ', unfinished' : ''}`;
  const title = `${kind === span.label ? '' : `${kind}: `}${span.label}, ${took} from ${duration((span.start - whole.start) / 1000)} on${state}`;
  return h(to ? 'a.bar-row' : 'div.bar-row', { title, href: to, 'data-kind': span.kind },
    h('span.bar-label', { style: { 'padding-left': `${span.depth * 12}px` } }, span.label),
    h('span.track', { role: 'img', 'aria-label': title }, h(`span.bar.${span.kind}${span.failed ? '.failed' : ''}`, {
      style: { left: `${left}%`, width: `${width}%` }, 'data-start': span.start, 'data-end': span.end,
    })),
    h('span.took', {}, took, span.failed && ' ✗'));
}

// Draws an axis with four or five round values.
function axis(scale) {
  const length = (scale.end - scale.start) / 1000;
  const rough = length / 5;
  const ten = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= rough) || 1;
  const ticks = [];
  for (let at = 0; at <= length; at += step) ticks.push(at);
  return h('div.bar-row.axis', { 'aria-hidden': 'true' }, h('span.bar-label'),
    h('span.track', {}, ticks.map((at) => h('span.tick', { style: { left: `${(100 * at) / length}%` } }, duration(at)))),
    h('span.took'));
}
