// List of the saved runs with their results.

const RUNS_AT_ONCE = 100;

const STATES = {
  running: ['running', 'running'],
  ended: ['passed', 'nothing failed'],
  incomplete: ['unfinished', 'incomplete'],
  interrupted: ['unfinished', 'interrupted'],
  killed: ['unfinished', 'killed'],
};

// Returns the mark and the label for the state of a run.
function stateOf(run) {
  if (run.state === 'ended' && run.failed > 0) return ['failed', 'cases failed'];
  return STATES[run.state] || ['unfinished', run.state];
}

function cameTo(run) {
  const parts = Object.entries(run.labels || { passed: run.passed, failed: run.failed, skipped: run.skipped })
    .filter(([, n]) => n > 0).map(([label, n]) => countOf(n, label));
  if (run.state !== 'ended') parts.push(`${number(run.total - run.unfinished)} of ${number(run.total)} ended`);
  return parts.join(', ') || 'nothing ran';
}

function suitesOf(run) {
  const [first, ...more] = run.inputs;
  if (first === undefined) return null;
  return more.length ? `${first} and ${more.length} more` : first;
}

function madeOf(run) {
  if (run.origin?.merged) return `${count(run.origin.merged.of.length, 'run')} merged`;
  if (run.origin?.rechecked) return `recheck of ${run.origin.rechecked.of.slice(0, 8)}`;
  return run.shard && `part ${run.shard}`;
}

function commitOf(run) {
  return run.commit && `${run.commit.slice(0, 7)}${run.dirty ? '+' : ''}`;
}

// Page with the list of runs and their course; the displayed run is marked. Two of them can be compared.
function runList(source) {
  const list = h('ul.runs', { 'aria-label': 'Runs' });
  const course = h('div', {});
  const all = h('button.more', { type: 'button', hidden: true, onclick: () => show(1e6) }, 'All runs');
  const picked = new Set();
  const choice = h('div.choice', { role: 'status' });
  const page = h('main.all-runs', {}, h('header.run-head', {}, h('h1', { tabindex: '-1' }, 'Runs')), course, choice, list, all);
  let most = RUNS_AT_ONCE;
  let known = [];
  const pick = (id, isPicked) => {
    if (isPicked) picked.add(id);
    else picked.delete(id);
    // Only two runs can be compared; a third choice replaces the oldest one.
    if (picked.size > 2) picked.delete(picked.values().next().value);
    draw();
  };
  // The earlier run comes first.
  const chosen = () => known.filter((run) => picked.has(run.id)).map((run) => run.id).reverse();
  const draw = () => {
    renew(course, trends(known, source.run?.kept));
    renew(choice, known.length > 1 && (picked.size === 2
      ? h('a.compare', { href: compareLink(...chosen(), false) }, 'Compare the two runs')
      : h('p.note', {}, picked.size === 1 ? 'Select another run to compare it with.' : 'Select two runs to compare them.')));
    renew(list, known.map((run) => runRow(run, source.run?.kept.id, pick)));
    list.querySelectorAll('input').forEach((box) => { box.checked = picked.has(box.name); });
  };
  async function show(of = most) {
    most = of;
    try {
      const { runs, more } = await source.runs(most);
      known = runs;
      all.hidden = !more;
      draw();
    } catch (error) {
      renew(list, h('li.empty', {}, `The runs cannot be shown: ${error.message}`));
    }
  }
  return {
    page,
    show,
    // Data of the displayed run is newer than the list.
    update() {
      known = known.map((run) => (run.id === source.run?.kept.id ? source.run.kept : run));
      draw();
    },
  };
}

function runRow(run, shown, pick) {
  const [status, words] = stateOf(run);
  const label = `Compare the run of ${time(run.started_at)}, ${run.id.slice(0, 8)}`;
  return h('li', {}, h('input', { type: 'checkbox', name: run.id, 'aria-label': label, title: 'Compare', onchange: (event) => pick(run.id, event.target.checked) }),
    h('a.run', { href: `/runs/${run.id}`, 'aria-current': run.id === shown ? 'true' : null },
      mark(status, words),
      h('span.main', {},
        h('span.name', {}, cameTo(run), madeOf(run) && h('span.tag', {}, madeOf(run))),
        h('span.under', {}, [run.agents.join(', '), suitesOf(run)].filter(Boolean).join(' · '))),
      h('code.num.commit', {}, commitOf(run)),
      h('span.num', {}, run.state === 'ended' ? duration(run.duration_ms) : words),
      h('span.num.when', {}, time(run.started_at)),
      h('code.num.id', {}, run.id.slice(0, 8))));
}
