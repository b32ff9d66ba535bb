// Overview of the run: its results, the reasons of failures, and the list of cases.

const ROW = 58;
const ORDERS = {
  failed: ['failed first', (a, b) => RANK[a.status] - RANK[b.status] || a.index - b.index],
  order: ['as in the files', (a, b) => a.index - b.index],
  slow: ['slowest first', (a, b) => b.ms - a.ms],
  turns: ['most turns first', (a, b) => b.turns - a.turns],
  spent: ['most tokens first', (a, b) => tokensOf(b) - tokensOf(a)],
  name: ['by name', (a, b) => a.name.localeCompare(b.name)],
};
const RANK = { failed: 0, running: 1, unfinished: 2, skipped: 3, passed: 4 };

const KIND_WORDS = {
  assertion: 'Check failed', agent_error: 'Agent error', protocol_error: 'Protocol error',
  unreachable: 'Unreachable', timeout: 'Timeout', limit: 'Limit exceeded', inconclusive: 'Inconclusive', hook_error: 'Hook error', test_error: 'Test error',
  no_input: 'No input for the agent', missing_checkpoints: 'Checkpoints not reached', max_turns: 'Too many turns',
  simulator_error: 'Simulator error', judge_error: 'Judge error', script_error: 'Script error',
  usage_error: 'Usage unknown', not_kept: 'No saved conversation', cancelled: 'Cancelled',
};

function kindWords(kind) {
  return KIND_WORDS[kind] || kind.replaceAll('_', ' ');
}

function tokensOf(row) {
  return row.spent ? row.spent.total_tokens ?? (row.spent.input_tokens || 0) + (row.spent.output_tokens || 0) : 0;
}

// Returns the rows that match the filters, sorted.
function selected(rows, wanted) {
  const needle = (wanted.get('q') || '').toLowerCase();
  const fits = (row) =>
    (!wanted.get('status') || (wanted.get('status') === 'flaky' ? row.flaky : row.status === wanted.get('status'))) &&
    (!wanted.get('kind') || row.kind === wanted.get('kind')) &&
    (!wanted.get('label') || row.label === wanted.get('label')) &&
    (!wanted.get('suite') || row.file === wanted.get('suite')) &&
    (!wanted.get('agent') || row.agent === wanted.get('agent')) &&
    (!wanted.get('tag') || (row.tags || []).includes(wanted.get('tag'))) &&
    (!wanted.get('soft') || (row.soft || []).some((one) => one.criterion === wanted.get('soft') && !one.passed)) &&
    (!needle || wanted.said?.has(row.index) || text(row).includes(needle));
  const text = (row) => (row.text ??= [row.name, row.id, row.file, row.error, row.skip_reason, ...(row.tags || [])].join('\n').toLowerCase());
  return rows.filter(fits).sort(ORDERS[wanted.get('sort')]?.[1] || ORDERS.failed[1]);
}

function tally(rows) {
  const counts = { passed: 0, failed: 0, skipped: 0, running: 0, unfinished: 0, flaky: 0 };
  for (const row of rows) {
    counts[row.status] += 1;
    if (row.flaky) counts.flaky += 1;
  }
  return counts;
}

// Returns the labels of failed cases with their numbers.
function tallyLabels(rows) {
  const found = new Map();
  rows.forEach((row) => row.status === 'failed' && found.set(row.label, (found.get(row.label) || 0) + 1));
  return new Map(Object.keys(LABEL_COLORS).filter((label) => found.has(label)).map((label) => [label, found.get(label)]));
}

function runHead(source) {
  const { summary, metadata, start, kept } = source.run;
  const about = metadata || start || {};
  const agent = (summary || start)?.agent_id || 'Agent';
  const facts = [
    about.started_at && time(about.started_at),
    summary && `took ${duration(summary.duration_ms)}`,
    (about.input_files || []).length === 1 ? about.input_files[0] : about.input_files?.length && count(about.input_files.length, 'suite'),
    about.recheck_of && `recheck of run ${about.recheck_of}`,
    (summary || start)?.connector, about.hotseat && `Hotseat ${kept?.hotseat || about.hotseat}`,
    kept && commitOf(kept), kept && !about.recheck_of && madeOf(kept), kept && `run ${kept.id.slice(0, 8)}`,
  ];
  return h('header.run-head', {}, h('h1', { tabindex: '-1' }, agent), h('p.facts', {}, facts.filter(Boolean).join(' · ')),
    kept && howFar(kept));
}

// Describes the state of a saved run that is running or incomplete.
function howFar(kept) {
  const ended = `${number(kept.total - kept.unfinished)} of ${count(kept.total, 'case')}`;
  const resume = kept.unfinished > 0 && kept.origin === 'held' && h('span', {}, ' ', h('code', {}, `hotseat resume ${kept.id.slice(0, 8)}`), ' runs the remaining cases.');
  switch (kept.state) {
    case 'running':
      return h('p.how-far', {}, mark('running', 'running'), h('span', {}, `Running: ${ended} have ended.`));
    case 'killed':
      return h('p.how-far', {}, mark('unfinished', 'killed'), h('span', {}, `Killed: its process is gone; ${ended} had ended.`, resume));
    case 'interrupted':
      return h('p.how-far', {}, mark('unfinished', 'interrupted'), h('span', {}, `Interrupted: ${ended} had ended.`, resume));
    case 'incomplete':
      return h('p.how-far', {}, mark('unfinished', 'incomplete'), h('span', {}, `Incomplete: ${ended} have run.`, resume));
    default:
      return null;
  }
}

function overviewFigures(source, wanted, choose) {
  const { rows } = source;
  const counts = tally(rows);
  const ran = counts.passed + counts.failed;
  // Failed cases are divided by their label.
  const labels = [...tallyLabels(rows)].map(([label, n]) => h(`button.part.failed.${LABEL_COLORS[label]}`, {
    type: 'button', style: { 'flex-grow': n }, title: countOf(n, label),
    'aria-pressed': String(wanted.get('label') === label), 'aria-label': `Show ${countOf(n, label)}`, onclick: () => choose('label', wanted.get('label') === label ? null : label),
  }));
  const part = (status) => counts[status] > 0 && h(`button.part.${status}`, {
    type: 'button', style: { 'flex-grow': counts[status] }, title: `${counts[status]} ${status}`,
    'aria-pressed': String(wanted.get('status') === status), 'aria-label': `Show the ${counts[status]} ${status}`, onclick: () => choose('status', wanted.get('status') === status ? null : status),
  });
  const figure = (name, of, hint) => of !== null && h('div.figure', { title: hint }, h('dt', {}, name), h('dd', {}, of));
  const turns = rows.map((row) => row.turns).filter((n) => n > 0);
  const times = rows.filter((row) => row.turns > 0).map((row) => row.ms);
  // Cases that have not started have no row yet.
  const all = Math.max(rows.length, source.run.kept?.total || 0);
  const calls = rows.reduce((sum, row) => sum + (row.calls || 0), 0);
  const spentRows = rows.filter((row) => row.spent);
  const costs = spentRows.filter((row) => typeof row.spent.cost === 'number');
  const of = (some) => (some.length < rows.length ? `, of ${count(some.length, 'case')} with known values` : '');
  return h('section.figures', { 'aria-label': 'Figures' },
    h('div.parts', {}, part('passed'), labels, part('skipped'), part('running'), part('unfinished'),
      all > rows.length && h('span.part.to-come', { style: { 'flex-grow': all - rows.length }, title: `${number(all - rows.length)} not started` })),
    h('dl', {},
      figure('Passed', percent(counts.passed, ran), `${counts.passed} of the ${ran} cases that ran`),
      figure('Cases', all > rows.length ? [number(rows.length), h('small', {}, ` of ${number(all)}`)] : number(all)),
      turns.length > 0 ? figure('Turns per case', spread(turns, number), 'median, minimum to maximum') : null,
      times.length > 0 ? figure('Time per case', spread(times, duration), 'median, minimum to maximum') : null,
      calls > 0 ? figure('Tool calls', number(calls)) : null,
      spentRows.length > 0 ? figure('Tokens', number(spentRows.reduce((sum, row) => sum + tokensOf(row), 0)), `in and out${of(spentRows)}`) : null,
      costs.length > 0 ? figure('Cost', money(costs.reduce((sum, row) => sum + row.spent.cost, 0)), `by the prices of the project${currency ? '' : ', whose `currency` is not named'}${of(costs)}`) : null));
}

// Formats the median, with the range if the values differ.
function spread(of, words) {
  const sorted = [...of].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const median = sorted.length % 2 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
  const [least, most] = [sorted[0], sorted.at(-1)];
  return [words(median), least < most && h('small', {}, ` ${words(least)} – ${words(most)}`)];
}

function breakdown(rows, wanted, choose) {
  const kinds = new Map();
  rows.forEach((row) => row.kind && kinds.set(row.kind, { n: (kinds.get(row.kind)?.n || 0) + 1, label: row.label }));
  if (!kinds.size) return null;
  const most = Math.max(...[...kinds.values()].map(({ n }) => n));
  return h('section.panel', { 'aria-label': 'Why cases failed' }, h('h2', {}, 'Why cases failed'),
    h('ul.meters', {}, [...kinds].sort((a, b) => b[1].n - a[1].n).map(([kind, { n, label }]) => h('li', {}, h('button.meter', {
      type: 'button', 'aria-pressed': String(wanted.get('kind') === kind), onclick: () => choose('kind', wanted.get('kind') === kind ? null : kind),
    }, h('span', {}, kindWords(kind)), h('span.gauge', {}, h(`i.${LABEL_COLORS[label]}`, { style: { width: `${(100 * n) / most}%` } })), h('b', {}, number(n)))))));
}

const SWEEP_BAD = ['did_not_notice', 'acted_twice', 'failed', 'hung', 'error'];

// What the agent did after each fault of a sweep.
function faultSweep(sweep) {
  if (!sweep?.rows.length) return null;
  const head = h('tr', {}, ['Case', 'Call', 'Fault', 'Outcome'].map((name) => h('th', { scope: 'col' }, name)));
  const several = new Set(sweep.rows.map((one) => one.server)).size > 1;
  const row = (one, at) => {
    const above = sweep.rows[at - 1];
    const sameCase = above && above.suite === one.suite && above.case === one.case;
    const sameCall = sameCase && above.server === one.server && above.tool === one.tool && above.nth === one.nth;
    const bad = SWEEP_BAD.includes(one.outcome);
    const again = one.calls_again > 0 && h('small', {}, ` ${count(one.calls_again, 'call')} more`);
    return h('tr', {},
      h('td', {}, !sameCase && line(one.case, 60)), h('td', {}, !sameCall && `${line(several ? `${one.tool} at ${one.server}` : one.tool, 40)} #${one.nth}`), h('td', {}, one.fault),
      h('td', { title: one.message || '' }, h(bad ? 'span.tag.bad' : 'span.tag', {}, one.outcome.replaceAll('_', ' ')), again));
  };
  return h('section.panel', { 'aria-label': 'Faults' }, h('h2', {}, 'Faults', h('small', {}, ' what the agent did after each')),
    h('div.scroll', {}, h('table.figures-table', {}, h('thead', {}, head), h('tbody', {}, sweep.rows.map(row)))));
}

const CRITERIA_SHOWN = 12;

// Informational checks by criterion.
function criteria(rows, wanted, choose) {
  const all = new Map();
  for (const row of rows) {
    for (const one of row.soft || []) {
      const found = all.get(one.criterion) || { held: 0, all: 0, open: 0 };
      if (one.passed === null) found.open += 1;
      else found.all += 1;
      found.held += one.passed ? 1 : 0;
      all.set(one.criterion, found);
    }
  }
  if (!all.size) return null;
  // Criteria without any decided check come first.
  const rate = ({ held, all: n }) => (n ? held / n : -1);
  const sorted = [...all].sort((a, b) => rate(a[1]) - rate(b[1]));
  const meter = ([criterion, { held, all: n, open }]) => h('li', {}, h('button.meter', {
    type: 'button', title: criterion, 'aria-pressed': String(wanted.get('soft') === criterion),
    onclick: () => choose('soft', wanted.get('soft') === criterion ? null : criterion),
  }, h('span', {}, line(criterion, 120)),
  h('span.gauge', {}, n > 0 && h(`i.${held / n >= 0.8 ? 'good' : held / n >= 0.5 ? 'warn' : 'bad'}`, { style: { width: `${(100 * held) / n}%` } })),
  h('b', {}, n > 0 && `${percent(held, n)} `, h('small', {}, [n > 0 && `${held}/${n}`, open > 0 && `${open} errored`].filter(Boolean).join(', ')))));
  return h('section.panel', { 'aria-label': 'Soft checks' }, h('h2', {}, 'Soft checks', h('small', {}, ' informational')),
    h('ul.meters', {}, sorted.slice(0, CRITERIA_SHOWN).map(meter)),
    sorted.length > CRITERIA_SHOWN && fold({ class: 'thought' }, `${sorted.length - CRITERIA_SHOWN} more`,
      () => h('ul.meters', {}, sorted.slice(CRITERIA_SHOWN).map(meter))));
}

function toolbar(rows, wanted, choose) {
  const counts = tally(rows);
  const chip = (status, n) => (n > 0 || status === null || wanted.get('status') === status) && h('button.chip', {
    type: 'button', 'aria-pressed': String((wanted.get('status') || null) === status), onclick: () => choose('status', status),
  }, status && mark(status), status ? ` ${status} ` : 'all ', h('b', {}, number(n)));
  const values = (of) => [...new Set(rows.flatMap(of).filter(Boolean))].sort();
  const select = (key, label, all, shown = (one) => one, least = 1) => (all.length > least || wanted.get(key)) && h('select', {
    'aria-label': label, onchange: (event) => choose(key, event.target.value || null), 'data-key': key,
  }, h('option', { value: '' }, label), all.map((one) => h('option', { value: one, selected: wanted.get(key) === one }, shown(one))));
  return [
    h('div.chips', { role: 'group', 'aria-label': 'Status' }, chip(null, rows.length), chip('failed', counts.failed),
      chip('running', counts.running), chip('unfinished', counts.unfinished),
      chip('passed', counts.passed), chip('skipped', counts.skipped), chip('flaky', counts.flaky)),
    h('div.selects', {},
      select('suite', 'every suite', values((row) => row.file)),
      select('agent', 'every agent', values((row) => row.agent)),
      select('tag', 'every tag', values((row) => row.tags || []), undefined, 0),
      select('label', 'every result', [...tallyLabels(rows).keys()]),
      select('kind', 'every failure', values((row) => row.kind), kindWords),
      h('select', { 'aria-label': 'Order', 'data-key': 'sort', onchange: (event) => choose('sort', event.target.value === 'failed' ? null : event.target.value) },
        Object.entries(ORDERS).map(([key, [label]]) => h('option', { value: key, selected: (wanted.get('sort') || 'failed') === key }, label)))),
  ];
}

// A virtual list: only the visible rows are in the page.
function caseList(moves) {
  const list = h('div.list', { role: 'group', 'aria-label': 'Cases' });
  let rows = [];
  let shown = [-1, -1];
  const place = (all) => {
    if (!list.isConnected) return;
    const top = list.getBoundingClientRect().top;
    const first = all ? 0 : Math.max(0, Math.floor(-top / ROW) - 6);
    const last = all ? Math.min(rows.length, 2000) : Math.min(rows.length, Math.ceil((innerHeight - top) / ROW) + 6);
    if (first === shown[0] && last === shown[1]) return;
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.index : null;
    shown = [first, last];
    put(rows.slice(first, Math.max(first, last)).map((row, place) => caseRow(row, first + place, moves)));
    if (focused !== null) list.querySelector(`[data-index="${focused}"]`)?.focus({ preventScroll: true });
  };
  // Reuses the elements of rows that stay in the list, so clicks on them are not lost.
  const put = (fresh) => {
    const kept = new Map([...list.children].map((one) => [one.dataset.index, one]));
    const wanted = fresh.map((one) => {
      const old = kept.get(one.dataset.index);
      if (!old) return one;
      for (const name of one.getAttributeNames()) {
        if (name !== 'style' && old.getAttribute(name) !== one.getAttribute(name)) old.setAttribute(name, one.getAttribute(name));
      }
      old.style.top = one.style.top;
      kept.delete(one.dataset.index);
      return renew(old, [...one.childNodes]);
    });
    kept.forEach((one) => one.remove());
    let at = list.firstChild;
    for (const one of wanted) {
      if (one === at) at = at.nextSibling;
      else list.insertBefore(one, at);
    }
  };
  const topOf = (at) => list.getBoundingClientRect().top + at * ROW;
  addEventListener('scroll', () => place(false), { passive: true });
  addEventListener('resize', () => place(false));
  return {
    list,
    show(of) {
      rows = of;
      shown = [-1, -1];
      list.style.height = `${rows.length * ROW}px`;
      place(false);
    },
    // Printing needs all rows because paper does not scroll.
    print(on) {
      list.classList.toggle('flow', on);
      shown = [-1, -1];
      place(on);
    },
    focus(at) {
      const row = rows[at];
      if (!row) return;
      const top = list.getBoundingClientRect().top + scrollY + at * ROW;
      const bar = document.querySelector('.toolbar')?.offsetHeight || 0;
      if (top < scrollY + bar + 8) scrollTo(0, top - bar - 8);
      if (top + ROW > scrollY + innerHeight) scrollTo(0, top + ROW - innerHeight + 8);
      place(false);
      list.querySelector(`[data-index="${row.index}"]`)?.focus({ preventScroll: true });
    },
    // Returns the focused or the first visible row and its position.
    anchor() {
      if (!list.isConnected) return null;
      const focused = list.contains(document.activeElement) ? this.at(document.activeElement.dataset.index) : -1;
      const bar = document.querySelector('.toolbar')?.getBoundingClientRect().bottom || 0;
      if (focused < 0 && topOf(0) >= bar) return null;
      const at = focused >= 0 ? focused : Math.ceil((bar - topOf(0)) / ROW);
      return rows[at] ? { index: rows[at].index, top: topOf(at) } : null;
    },
    // Scrolls so that this row keeps its position.
    hold(anchor) {
      const at = anchor ? this.at(anchor.index) : -1;
      if (at >= 0 && topOf(at) !== anchor.top) scrollBy(0, topOf(at) - anchor.top);
    },
    at: (index) => rows.findIndex((row) => String(row.index) === String(index)),
    rows: () => rows,
  };
}

// Labels of cases that have not ended.
const BEGUN = { running: 'running', unfinished: 'interrupted' };

function caseRow(row, at, moves) {
  const begun = BEGUN[row.status] && `${BEGUN[row.status]}${row.attempts > 0 ? `, ${count(row.attempts, 'attempt')} ended` : ''}`;
  // A message that begins with the label needs no second one.
  const error = row.error?.startsWith(`${row.label}: `) ? row.error.slice(row.label.length + 2) : row.error;
  const under = error || (row.skip_reason && `skipped: ${row.skip_reason}`) || [`${row.file}:${row.line}`, begun].filter(Boolean).join(' · ');
  const soft = (row.soft || []).filter((one) => !one.passed).length;
  return h('a.row', {
    href: moves.link(row), 'data-index': row.index, style: { top: `${at * ROW}px` },
  },
  resultMark(row),
  h('span.main', {}, h('span.name', { dir: 'auto' }, row.name, (row.tags || []).map((tag) => h('span.tag', {}, tag))),
    h('span.under', { dir: 'auto' }, row.status === 'failed' && h(`b.${LABEL_COLORS[row.label]}`, {}, `${row.label}: `), line(under, 240))),
  h('span.num', { title: soft ? `${soft} informational checks failed` : null }, soft > 0 && `◇ ${soft}`),
  h('span.num.attempts', {}, !begun && row.attempts > 1 && `${row.passed_attempts}/${row.attempts}`),
  h('span.num.turns', {}, row.turns > 0 && count(row.turns, 'turn')),
  h('span.num.spent', {}, row.spent && `${number(tokensOf(row))} tok`),
  h('span.num', {}, row.turns > 0 || row.ms > 0 ? duration(row.ms) : ''));
}
