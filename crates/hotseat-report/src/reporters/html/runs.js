// List of the saved runs with their results.

const RUNS_AT_ONCE = 100;

const STATES = {
  running: ['running', 'running'],
  ended: ['passed', 'nothing failed'],
  interrupted: ['unfinished', 'interrupted'],
  killed: ['unfinished', 'killed'],
};

// Returns the mark and the label for the state of a run.
function stateOf(run) {
  if (run.state === 'ended' && run.failed > 0) return ['failed', 'cases failed'];
  return STATES[run.state] || ['unfinished', run.state];
}

function cameTo(run) {
  const parts = ['passed', 'failed', 'skipped'].filter((status) => run[status] > 0).map((status) => `${number(run[status])} ${status}`);
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

// Page with the list of runs; the displayed run is marked.
function runList(source) {
  const list = h('ul.runs', { 'aria-label': 'Runs' });
  const all = h('button.more', { type: 'button', hidden: true, onclick: () => show(1e6) }, 'All runs');
  const page = h('main.all-runs', {}, h('header.run-head', {}, h('h1', { tabindex: '-1' }, 'Runs')), list, all);
  let most = RUNS_AT_ONCE;
  let known = [];
  const draw = () => renew(list, known.map((run) => runRow(run, source.run?.kept.id)));
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

function runRow(run, shown) {
  const [status, words] = stateOf(run);
  return h('li', {}, h('a.run', { href: `/runs/${run.id}`, 'aria-current': run.id === shown ? 'true' : null },
    mark(status, words),
    h('span.main', {},
      h('span.name', {}, cameTo(run), madeOf(run) && h('span.tag', {}, madeOf(run))),
      h('span.under', {}, [run.agents.join(', '), suitesOf(run)].filter(Boolean).join(' · '))),
    h('code.num.commit', {}, commitOf(run)),
    h('span.num', {}, run.state === 'ended' ? duration(run.duration_ms) : words),
    h('span.num.when', {}, time(run.started_at)),
    h('code.num.id', {}, run.id.slice(0, 8))));
}
