// Conversations that are running: in the overview how far they are, on the page of a case its turns as they come.

// Time between two requests in milliseconds, and until something is known.
const LIVE_EVERY = 1000;
const LIVE_AT_FIRST = 300;
const LIVE_SHOWN = 8;

// Formats a time to the second: `7 s`, `1 min 07 s`.
function elapsed(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
}

// Panel of the overview.
function runningPanel(found, rows, moves) {
  const known = new Map(rows.map((row) => [row.index, row]));
  const shown = (found?.conversations || []).filter((one) => known.get(one.index)?.status === 'running');
  if (!shown.length) return null;
  const entry = (one) => {
    const row = known.get(one.index);
    return h('li', {}, h('a.live-row', { href: moves.link(row) }, mark('running'),
      h('span.main', {}, h('span.name', { dir: 'auto' }, row.name), h('span.under', { dir: 'auto' }, line(one.last, 160))),
      h('span.num', {}, one.total_turns > 0 ? `turn ${number(one.total_turns)}` : ''), h('span.num.elapsed', {}, elapsed(one.elapsed_ms))));
  };
  const more = found.total - Math.min(shown.length, LIVE_SHOWN);
  return h('section.panel.running-now', { 'aria-label': 'Running now' }, h('h2', {}, 'Running now ', h('small', {}, number(found.total))),
    h('ul', {}, shown.slice(0, LIVE_SHOWN).map(entry)), more > 0 && h('p.note', {}, `and ${number(more)} more`));
}

// The transcript of a running case so far. Its texts are shortened; the whole conversation is shown at its end.
function runningTranscript(found, row) {
  const attempts = (found?.conversations || []).filter((one) => one.index === row.index);
  if (!attempts.length) return [];
  return attempts.map((one) => {
    const before = one.total_turns - one.turns.length;
    return h('section.live', { 'aria-label': 'Conversation' },
      h('header.section-head', {}, h('h2', {}, row.attempts > 0 || attempts.length > 1 ? `Attempt ${one.attempt}` : 'Conversation'),
        h('span.facts', {}, 'running for ', h('span.elapsed', {}, elapsed(one.elapsed_ms)))),
      before > 0 && h('p.note', {}, `${count(before, 'earlier turn')} not shown while the case is running`),
      h('div.chat', {}, one.turns.map(runningTurn)),
      one.turns.length === 0 && h('p.note', {}, 'No message yet.'));
  });
}

function runningTurn(turn) {
  const isInput = (item) => item.type === 'message.user';
  const facts = turn.open ? 'waiting for the agent' : duration((turn.end - turn.start) / 1000);
  return fold({ class: 'turn', open: true }, turnHead(turn.number, turn.open && mark('running'), facts, null, line(inputOf(turn), 120)), () => h('div', {},
    said(turn.items.filter(isInput)),
    turn.omitted > 0 && h('p.note', {}, `${count(turn.omitted, 'message')} not shown while the case is running`),
    said(turn.items.filter((item) => !isInput(item)))));
}

// Asks for running conversations as long as the page shows some, and draws them. `wanted` returns null, or the index of
// a case, or undefined for all.
async function followRunning(source, wanted, draw) {
  for (;;) {
    await looked();
    const index = wanted();
    let pause = LIVE_AT_FIRST;
    if (index !== null) {
      // An error of the connection is shown by the requests for finished cases.
      const found = await source.running(index).catch(() => null);
      if (wanted() === index) draw(found);
      if (found?.conversations.length) pause = LIVE_EVERY;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
