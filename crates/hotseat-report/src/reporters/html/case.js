// Page of one case: its failure, its attempts, and all recorded data.

async function casePage(row, source, route, moves) {
  if (BEGUN[row.status]) return begunPage(row, moves);
  const { result, attempts, sources, rerun } = await source.caseOf(row.index);
  const origin = (place) => definedAt(place, source, sources);
  const held = result.run_details || result.attempts || [result];
  const number = (one) => one.run || one.attempt || 1;
  const traceOf = (one) => attempts.find((known) => known.number === number(one)) || attempts[0];
  const told = attempts.find((known) => known.telling)?.number || number(held[0]);
  const chosen = held.find((one) => number(one) === Number(route.get('attempt'))) || held.find((one) => number(one) === told) || held[0];
  const beside = route.get('attempt') === 'all' && held.length > 1;
  const link = (more) => moves.link(row, { ...(held.length > 1 ? { attempt: number(chosen) } : {}), ...more });
  const shownFailure = held.length > 1 ? chosen.failure : result.failure;

  const tabs = held.length > 1 && h('nav.tabs', { 'aria-label': 'Attempts' },
    held.map((one) => h('a.tab', {
      href: moves.link(row, { attempt: number(one) }), 'aria-current': !beside && one === chosen ? 'true' : null,
    }, resultMark(one), ` ${result.run_details ? 'Run' : 'Attempt'} ${number(one)}`, h('span.facts', {}, duration(one.duration_ms)))),
    h('a.tab', { href: moves.link(row, { attempt: 'all' }), 'aria-current': beside ? 'true' : null }, 'Side by side'));

  const body = beside
    ? attemptsBeside(held.map((one) => ({ one, turns: turnsOf(one, traceOf(one)), name: `${result.run_details ? 'Run' : 'Attempt'} ${number(one)}` })), origin)
    : singleAttempt(chosen, turnsOf(chosen, traceOf(chosen)), traceOf(chosen), link, origin);

  return h('article.case', {},
    caseBar(row, result, moves, beside ? [] : failurePlaces(chosen).map((to) => link({ to }))),
    caseHead(row, result, [
      copier('Copy link', () => location.href),
      rerun && copier('Copy command', () => rerun, 'Copies the command that runs this case again'),
      (chosen.turns || []).length > 0 && copier('Copy as test', () => asTestCase(result, chosen), 'Copies a test case in YAML with what was said and called'),
      copier('Copy JSON', () => JSON.stringify(result, null, 2))]),
    held.length > 1 && result.failure && h('p.overall', {}, words(result.error || result.failure.message, 'span.words')),
    tabs,
    !beside && shownFailure && failure(chosen, shownFailure, chosen === result || held.length === 1 ? result.label : chosen.label, link),
    !beside && chosen.skip_reason && h('p.skip-reason', {}, mark('skipped'), ` Skipped: ${chosen.skip_reason}`),
    !beside && assertsNothing(chosen) && h('p.skip-reason', {}, 'Nothing was asserted: the case passes if the agent answers without an error.'),
    !beside && caseFacts(row, result, origin),
    body);
}

// One attempt: its outline, its timeline, its conversation and its events.
function singleAttempt(one, turns, trace, link, origin) {
  const parts = [timeline(turns, link), attempt(one, turns, true, trace?.topics, origin), rawEvents(trace?.events || [], trace?.left_out)];
  const beside = outline(one, turns, link);
  return beside ? h('div.with-outline', {}, beside, h('div.body', {}, parts)) : parts;
}

// Page of a case that has not ended. While it is running, its conversation so far is drawn into `.transcript`.
function begunPage(row, moves) {
  const over = row.attempts > 0 && ` ${count(row.attempts, 'attempt')} ${row.attempts === 1 ? 'has' : 'have'} ended.`;
  const facts = [['Defined at', `${row.file}:${row.line}`], row.agent && ['Agent', row.agent]].filter(Boolean);
  return h('article.case', {},
    caseBar(row, row, moves, []),
    h('header.case-head', {},
      h('h1', { tabindex: '-1' }, mark(row.status), h('span', { dir: 'auto' }, row.name)),
      h('p.ids', {}, row.name !== row.id && h('code.id', {}, row.id), (row.tags || []).map((tag) => h('span.tag', {}, tag))),
      h('dl.facts-list', {}, facts.map(([name, of]) => h('div', {}, h('dt', {}, name), h('dd', {}, of))))),
    h('p.begun', { role: 'status' }, row.status === 'running'
      ? ['This case is running.', over, ' Its checks are shown when it has ended.']
      : ['This case was interrupted with its run.', over, ' Its conversation was not saved.']),
    h('div.transcript', {}));
}

// The bar at the top, which stays in view: the case, its failures and its neighbours.
function caseBar(row, result, moves, failures) {
  let next = 0;
  return h('nav.case-nav', { 'aria-label': 'Cases' },
    h('a.back', { href: moves.overview(), title: 'All cases (esc)' }, '← ', h('span', {}, 'All cases')),
    h('span.bar-name', { dir: 'auto', 'aria-hidden': 'true' }, resultMark(row), h('span', {}, result.name)),
    failures.length > 0 && h('button.to-failure', {
      type: 'button', title: 'Next failure (n)',
      onclick: () => { follow(failures[next % failures.length]); next += 1; },
    }, failures.length > 1 ? `✗ ${number(failures.length)} failures` : '✗ Failure'),
    h('button', { type: 'button', onclick: () => moves.step(-1), title: 'Previous case (k)', 'aria-label': 'Previous case' }, '↑'),
    h('button', { type: 'button', onclick: () => moves.step(1), title: 'Next case (j)', 'aria-label': 'Next case' }, '↓'));
}

function caseHead(row, result, actions) {
  const said = result.name === row.id ? null : h('code.id', {}, row.id);
  return h('header.case-head', {},
    h('h1', { tabindex: '-1' }, resultMark(row), h('span', { dir: 'auto' }, result.name)),
    h('p.ids', {}, said, (result.tags || []).map((tag) => h('span.tag', {}, tag))),
    h('p.actions', {}, actions));
}

function caseFacts(row, result, origin) {
  const facts = [
    ['Defined at', origin({ file: result.file, line: result.line })[0]],
    result.agent && ['Agent', result.agent],
    ['Duration', duration(row.ms)],
    ['Started', time(result.started_at)],
    ['Turns', number(result.total_turns)],
    row.spent && ['Usage', spent(row.spent)],
    result.run_details && ['Runs', `${result.passed} of ${result.runs} passed${result.stability_class ? `, ${result.stability_class.replaceAll('_', ' ')}` : ''}`],
    result.consistency !== undefined && result.consistency !== null && ['Same answers', percent(result.consistency, 1)],
  ].filter(Boolean);
  return [h('dl.facts-list', {}, facts.map(([name, of]) => h('div', {}, h('dt', {}, name), h('dd', {}, of)))),
    result.metadata && fold({ class: 'thought' }, 'Metadata', () => value(result.metadata))];
}

// Failed checks that are listed at first.
const FAILED_CHECKS_SHOWN = 8;

// The failure of an attempt. Each failed check links to its place.
function failure(one, of, label, link) {
  const failed = of.kind === 'assertion' ? failedChecks(one) : [];
  const entry = ({ check, to, label }) => h('li', {},
    link ? h('a.to-check', { href: link({ to }) }, label) : h('b', {}, label), ' ',
    h('span', {}, line(check.message || `expected ${check.expected}`, 300)),
    check.comparison && !check.error
      // The calls that were made are at the check.
      ? h('div.got', {}, callComparison({ ...check.comparison, lines: [] }))
      : h('span.got', {}, h('b', {}, check.error ? 'error ' : 'got '), line(check.error || check.actual, 300)));
  const places = failed.length ? [] : failurePlaces(one);
  return h(`section.failure.${LABEL_COLORS[label]}`, { 'aria-label': 'Failure' },
    h('h2', {}, kindWords(of.kind), labelTag(label),
      link && places.map((to) => h('a.to-check', { href: link({ to }) }, placeWords(to)))),
    failed.length
      ? [h('ul', {}, failed.slice(0, FAILED_CHECKS_SHOWN).map(entry)),
        failed.length > FAILED_CHECKS_SHOWN && fold({}, `${failed.length - FAILED_CHECKS_SHOWN} more failed checks`,
          () => h('ul', {}, failed.slice(FAILED_CHECKS_SHOWN).map(entry))),
        of.detail && fold({}, 'Details', () => words(of.detail, 'pre.value'))]
      : [words(of.message), of.detail && words(of.detail, 'pre.value')]);
}

function placeWords(to) {
  return to.startsWith('turn-') ? `Turn ${to.slice(5)}` : to === 'checkpoints' ? 'Checkpoints' : 'Conversation';
}

function attempt(one, turns, marks, picture, origin) {
  const whole = wholeChecks(one);
  return h('div.attempt', {},
    h('section', { 'aria-label': 'Conversation' }, h('header.section-head', {}, h('h2', {}, 'Conversation'),
      marks && h('span.facts', {}, plainSwitch(), ' ', h('button.link', { type: 'button', onclick: (event) => openAll(event.target.closest('section'), true) }, 'Unfold all'))),
    chat(one, turns, marks, origin)),
    topics(one, picture, marks, origin),
    simulations(one.simulations),
    checkpoints(one.checkpoints, marks),
    whole.length > 0 && h('section', { id: marks ? 'whole' : null, 'aria-label': 'Checks of the whole conversation' },
      h('header.section-head', {}, h('h2', {}, 'The whole conversation')), checks(whole, origin, marks && 'whole', (one.turns || []).findLast((turn) => turn.output)?.output)),
    listOf('Warnings', one.warnings), listOf('Console of scripts', one.logs));
}

function listOf(title, lines) {
  return lines?.length && h('section', {}, h('header.section-head', {}, h('h2', {}, title)), lines.map((one) => note(one)));
}

// The visited topics in order with the checks of each visit, and the graph as an image, which cannot run
// scripts.
function topics(one, picture, marks, origin) {
  const visits = one.topic_visits;
  if (!visits) return null;
  const told = visits.map((visit) => `${visit.topic} (${visit.turns.join(', ')})`).join(', then ');
  return h('section', { id: marks ? 'topics' : null, 'aria-label': 'Topics' }, h('header.section-head', {}, h('h2', {}, 'Topics')),
    picture && h('img.topics', { src: `data:image/svg+xml,${encodeURIComponent(picture)}`, alt: `Topics: ${told}` }),
    h('ol.path', {}, visits.map((visit) => h('li', {}, visit.topic,
      h('span.facts', {}, ` ${visit.turns.length > 1 ? 'turns' : 'turn'} ${visit.turns.join(', ')}`)))),
    visits.filter((visit) => visit.assertions).map((visit) => h('section', { 'aria-label': `Checks of ${visit.topic}` },
      h('h3', {}, visit.topic, visit.visit > 1 && h('span.facts', {}, ` visit ${visit.visit}`)), checks(visit.assertions, origin))));
}

// Reasons why the simulated users stopped.
function simulations(all) {
  if (!all?.length) return null;
  return h('section', { 'aria-label': 'Simulated user' }, h('header.section-head', {}, h('h2', {}, 'Simulated user')),
    all.map((one) => h('p', {}, one.goal && words(one.goal, 'span.words'),
      h('span.facts', {}, ` ${(one.termination || 'unfinished').replaceAll('_', ' ')} after ${one.turns ?? 0} of ${one.max_turns} inputs`),
      one.goal_progress && h('span.tag', {}, `goal: ${one.goal_progress}`), one.detail && h('span.facts', {}, one.detail))));
}

function checkpoints(all, marks) {
  if (!all?.length) return null;
  return h('section', { id: marks ? 'checkpoints' : null, 'aria-label': 'Checkpoints' }, h('header.section-head', {}, h('h2', {}, 'Checkpoints')),
    h('ul.checks', {}, all.map((point) => {
      const status = point.passed ? 'passed' : point.required ? 'failed' : 'skipped';
      return h('li', { class: `check ${status}` }, h('div.point', {},
        mark(status, point.passed ? 'reached' : 'not reached'),
        h('span.expected', {}, point.id, point.description && h('span.preview', {}, point.description)),
        h('span.facts', {}, point.passed
          ? h('button.link', { type: 'button', onclick: () => jump(`turn-${point.reached_at_turn}`) }, `turn ${point.reached_at_turn}`)
          : point.required ? 'not reached' : 'not reached, not required')),
      point.message && !point.passed && h('p.note', {}, point.message));
    })));
}

const EVENTS_AT_ONCE = 200;

// The recorded events, some at a time.
function rawEvents(events, leftOut) {
  if (!events.length) return null;
  const rest = leftOut > 0 && h('span.preview', {}, `${count(leftOut, 'step')} internal to the agent left out; --trace writes them`);
  return fold({ class: 'events' }, [`Events (${number(events.length)})`, rest], () => {
    const body = h('div', {});
    let shown = 0;
    const more = h('button', { type: 'button', onclick: () => show() }, 'More');
    const show = () => {
      const part = events.slice(shown, shown + EVENTS_AT_ONCE);
      shown += part.length;
      part.forEach((event) => body.append(fold({ class: 'event' }, [
        h('span.at', {}, event.sequence), h('span.at', {}, duration(event.offsetUs / 1000)), h('code', {}, event.type),
        h('span.preview', {}, short(event.payload, 120)),
      ], () => value(event))));
      if (shown >= events.length) more.remove();
    };
    show();
    return h('div', {}, body, more);
  });
}
