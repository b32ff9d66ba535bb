// Course of the saved runs: pass rate, duration and cost as small charts with the same runs.

// Runs with the same agents and suites as a run, oldest first.
function comparableRuns(all, run) {
  const key = (one) => JSON.stringify([one.agents, one.inputs]);
  const wanted = run ? key(run) : all.length ? key(all[0]) : null;
  return all.filter((one) => key(one) === wanted && one.state === 'ended' && one.passed + one.failed > 0).reverse();
}

const CHART = { width: 300, height: 84, edge: 6 };

// Charts of the runs; nothing if there are fewer than two of them.
function trends(all, run) {
  const runs = comparableRuns(all, run);
  if (runs.length < 2) return null;
  const known = runs.find((one) => one.currency)?.currency || null;
  const charts = [
    ['Pass rate', (one) => (100 * one.passed) / (one.passed + one.failed), (n) => percent(n, 100), [0, 100]],
    ['Duration', (one) => one.duration_ms, duration, null],
    ['Cost', (one) => one.cost, (n) => money(n, known), null],
  ];
  return h('section.trends', { 'aria-label': 'Trends' },
    h('p.note', {}, `The last ${number(runs.length)} complete runs of ${suitesOf(runs[0]) || 'these suites'}, oldest first.`),
    h('div.charts', {}, charts.map(([name, of, shown, bounds]) => chart(name, runs.filter((one) => typeof of(one) === 'number'), of, shown, bounds, run))));
}

function chart(name, runs, of, shown, bounds, current) {
  if (runs.length < 2) return null;
  const all = runs.map(of);
  const [least, most] = bounds || [0, Math.max(...all) || 1];
  const { width, height, edge } = CHART;
  const x = (at) => edge + ((width - 2 * edge) * at) / (runs.length - 1);
  const y = (n) => height - edge - ((height - 2 * edge) * (n - least)) / (most - least || 1);
  const points = all.map((n, at) => [x(at).toFixed(1), y(n).toFixed(1)]);
  return h('figure.chart', {}, h('figcaption', {}, h('b', {}, name), h('span', {}, shown(all.at(-1)))),
    h('svg:svg', { viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': `${name}: from ${shown(all[0])} to ${shown(all.at(-1))}` },
      h('svg:polyline', { points: points.map((point) => point.join(',')).join(' ') }),
      runs.map((run, at) => h('svg:a', { href: `/runs/${run.id}`, 'aria-label': `${name} ${shown(all[at])}, ${time(run.started_at)}` },
        h('svg:title', {}, `${shown(all[at])} · ${time(run.started_at)}${commitOf(run) ? ` · ${commitOf(run)}` : ''}`),
        h(`svg:circle${run.id === current?.id ? '.current' : ''}`, { cx: points[at][0], cy: points[at][1], r: runs.length > 40 ? 2.5 : 4 })))));
}
