// Comparison of two saved runs, as `hotseat compare` computes it.

const CHANGES = {
  newly_fails: ['failed', 'newly fails'], passes_less: ['failed', 'passes less often'],
  newly_passes: ['passed', 'newly passes'], passes_more: ['passed', 'passes more often'], same: ['skipped', 'the same result'],
};
const CLAIMS = { worse: ['bad', 'significantly worse'], better: ['good', 'significantly better'], less: ['', 'significantly less'], more: ['', 'significantly more'], nothing: ['', 'not significant'] };
const COMPARED_SHOWN = 200;

// Page with the comparison of two runs.
function comparisonPage(source) {
  const page = h('main.comparison', {});
  let shown = 0;
  async function show(before, after, otherInputs) {
    const mine = ++shown;
    fill(page, h('header.run-head', {}, h('h1', { tabindex: '-1' }, 'Two runs compared')), h('p.note', { role: 'status' }, 'Comparing …'));
    let body;
    try {
      body = comparison(await source.compare(before, after, otherInputs), before, after, otherInputs);
    } catch (error) {
      body = h('p.empty', { role: 'alert' }, `The runs cannot be compared: ${error.message}`);
    }
    if (mine === shown) fill(page, h('header.run-head', {}, h('h1', { tabindex: '-1' }, 'Two runs compared')), body);
  }
  return { page, show };
}

function comparison(found, before, after, otherInputs) {
  const side = (name, run, id) => h('p', {}, h('b', {}, name), ' ', h('a', { href: `/runs/${encodeURIComponent(id)}` }, h('code', {}, id.slice(0, 8))),
    h('span.facts', {}, [run.started_at && time(run.started_at), run.agent, count(run.cases, 'case'), run.cut_short && 'incomplete'].filter(Boolean).map((one) => ` · ${one}`)));
  const changed = found.cases.filter((one) => one.change !== 'same');
  const diverged = found.cases.filter((one) => one.change === 'same' && one.parting);
  const limits = [
    ...found.notes, found.cases_removed.length && `${count(found.cases_removed.length, 'case')} only in the first run`,
    found.cases_added.length && `${count(found.cases_added.length, 'case')} only in the second run`,
  ].filter(Boolean);
  return [
    h('div.sides', {}, side('Before', found.before, before), side('After', found.after, after),
      h('a.swap', { href: compareLink(after, before, otherInputs) }, 'Swap')),
    rateChange(found),
    limits.length > 0 && h('ul.notes', {}, limits.map((one) => h('li.note', {}, one))),
    h('label.switch', {}, h('input', { type: 'checkbox', checked: otherInputs, onchange: (event) => { location.hash = compareLink(before, after, event.target.checked); } }),
      'also compare cases with other inputs'),
    comparedCases('Changed results', changed, before, after, 'No case has another result.'),
    comparedCases('Same result, another conversation', diverged, before, after, null),
    comparedFigures(found),
    found.not_compared.length > 0 && fold({ class: 'thought' }, `${count(found.not_compared.length, 'case')} not compared`,
      () => h('ul', {}, found.not_compared.map((one) => h('li', {}, one.name || one.id, h('span.facts', {}, ` ${one.why}`))))),
  ];
}

function compareLink(before, after, otherInputs) {
  return `#${new URLSearchParams({ compare: `${before}..${after}`, ...(otherInputs ? { other_inputs: '1' } : {}) })}`;
}

// The overall pass rates with their confidence intervals.
function rateChange({ pass_rate: rate, confidence, cases_compared: cases }) {
  const [tone, claim] = CLAIMS[rate.claim];
  const bar = (name, of) => h('div.rate', {}, h('span', {}, name),
    h('span.interval', { role: 'img', 'aria-label': `${name}: ${percent(of.passed, of.attempts)}, between ${percent(of.low, 1)} and ${percent(of.high, 1)}` },
      h('i', { style: { left: `${100 * of.low}%`, width: `${100 * (of.high - of.low)}%` } }),
      of.attempts > 0 && h('b', { style: { left: `${(100 * of.passed) / of.attempts}%` } })),
    h('span', {}, `${percent(of.passed, of.attempts)} `, h('small', {}, `${number(of.passed)} of ${number(of.attempts)}`)));
  return h('section.panel', { 'aria-label': 'Pass rate' },
    h('h2', {}, 'Pass rate ', h(`span.tag${tone ? `.${tone}` : ''}`, {}, cases ? claim : 'no comparable case')),
    bar('Before', rate.before), bar('After', rate.after),
    h('p.note', {}, `${count(cases, 'case')} compared · p = ${rate.p} · intervals of ${percent(confidence, 1)}`,
      !rate.can_tell && ' · too few attempts for any significant result'));
}

function comparedCases(title, all, before, after, none) {
  if (!all.length && !none) return null;
  return h('section', { 'aria-label': title }, h('header.section-head', {}, h('h2', {}, title, h('small', {}, ` ${number(all.length)}`))),
    all.length === 0 && h('p.note', {}, none),
    h('ul.compared', {}, all.slice(0, COMPARED_SHOWN).map((one) => comparedCase(one, before, after))),
    all.length > COMPARED_SHOWN && h('p.note', {}, `and ${number(all.length - COMPARED_SHOWN)} more; hotseat compare prints all`));
}

function comparedCase(one, before, after) {
  const [status, words] = CHANGES[one.change] || ['skipped', one.change];
  const to = (run, side, place) => h('a', { href: `/runs/${encodeURIComponent(run)}#${new URLSearchParams({ case: one.id, ...place })}` }, `${side.passed}/${side.attempts}`);
  const place = one.parting ? { to: `turn-${one.parting.turn}` } : {};
  return h('li', {}, h('p', {}, mark(status, words), ' ', h('b', {}, one.name || one.id), h('span.tag', {}, words),
    one.claim !== 'nothing' && h('span.tag', {}, CLAIMS[one.claim][1]),
    h('span.facts', {}, ' passed ', to(before, one.before, place), ' before, ', to(after, one.after, place), ' after', one.p < 1 && ` · p = ${one.p}`)),
  one.parting && divergence(one.parting));
}

// The first step in which two conversations differ.
function divergence({ turn, call: place, before, after }) {
  const [one, other] = [before.does, after.does];
  const at = `First divergence: turn ${turn}${place ? `, call ${place}` : ''}`;
  const step = (of) => {
    if (of.user !== undefined) return ['the user said ', words(of.user, 'span.words')];
    if (of.tool !== undefined) return [h('span.tool', {}, of.tool), ' ', words(short(of.arguments, 400), 'span.words')];
    if (of.answer !== undefined) return of.answer ? ['answered ', words(line(of.answer, 600), 'span.words')] : 'did not answer';
    return of.error !== undefined ? ['failed: ', words(of.error, 'span.words')] : 'the conversation is over';
  };
  const difference = one.tool !== undefined && one.tool === other.tool
    ? differenceTable(valueDiff(one.arguments, other.arguments).map(({ path, expected, got }) => ({ path, expected: asText(expected), got: asText(got) })), 0, [['Before', 'missing'], ['After', 'missing']])
    : one.answer && other.answer && textDifference(one.answer, other.answer);
  return h('div.divergence', {}, h('p.label', {}, at), one.tool && one.tool === other.tool ? [h('span.tool', {}, one.tool), difference]
    : difference || h('dl', {}, h('dt', {}, 'Before'), h('dd', {}, step(one)), h('dt', {}, 'After'), h('dd', {}, step(other))));
}

function comparedFigures({ figures, tools, evaluations }) {
  const shown = (unit, n) => (unit === 'seconds' ? duration(n * 1000) : unit === 'cost' ? money(n) : number(n));
  const row = (figure) => h('tr', {}, h('th', { scope: 'row' }, figure.name), h('td', {}, shown(figure.unit, figure.before)), h('td', {}, shown(figure.unit, figure.after)),
    h('td', {}, figure.p), h('td', {}, CLAIMS[figure.claim]?.[1]));
  const rate = ({ holds, attempts }) => `${percent(holds, attempts)} (${holds}/${attempts})`;
  const table = (title, rows) => rows.length > 0 && h('section', { 'aria-label': title }, h('header.section-head', {}, h('h2', {}, title)),
    h('div.scrolls', {}, h('table.figures-table', {}, h('thead', {}, h('tr', {}, ['', 'Before', 'After', 'p', ''].map((name) => h('th', { scope: 'col' }, name)))), h('tbody', {}, rows))));
  return [table('Figures per attempt', figures.map(row)), table('Calls per attempt', tools.map(row)),
    table('Informational checks', evaluations.map((check) => h('tr', {}, h('th', { scope: 'row' }, line(check.check, 160)), h('td', {}, rate(check.before)), h('td', {}, rate(check.after)),
      h('td', {}, check.p), h('td', {}, CLAIMS[check.claim]?.[1]))))];
}
