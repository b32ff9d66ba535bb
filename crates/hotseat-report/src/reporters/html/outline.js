// Places of a case that have an address: turns, checks, events. The outline links to them, and `jump` goes there.

// `turn-3`, `turn-3-check-1`, `turn-3-event-57`, `whole-check-0`.
const PLACE = /^(turn-\d+|whole|topics|checkpoints)(?:-(?:check|event)-\d+)?$/;

// Conversations with fewer turns have no outline.
const OUTLINE_FROM = 4;

// Returns the place that an address names. `turn=3` is an older form of `to=turn-3`.
function placeOf(route) {
  return route.get('to') || (route.get('turn') && `turn-${route.get('turn')}`);
}

// Unfolds a place, scrolls to it and focuses it. Returns false if there is no such place.
function jump(to) {
  const part = PLACE.exec(to || '');
  if (!part) return false;
  unfold(document.getElementById(part[1]));
  const at = document.getElementById(to) || document.getElementById(part[1]);
  if (!at) return false;
  unfold(at);
  const target = at.querySelector(':scope > summary, :scope > details > summary') || at;
  if (target === at) at.tabIndex = -1;
  at.scrollIntoView({ block: 'start' });
  target.focus({ preventScroll: true });
  document.querySelectorAll('.reached').forEach((one) => one.classList.remove('reached'));
  at.classList.add('reached');
  readingAt(part[1]);
  jumpedAt = performance.now();
  return true;
}

function unfold(at) {
  for (let one = at; one; one = one.parentElement) if (one.make) one.make();
  if (at?.matches('.check')) at.querySelector(':scope > details')?.make();
}

// Failed hard checks of an attempt in the order of the page, each with its place.
function failedChecks(one) {
  const of = (checks, place, label) => (checks || []).map((check, at) => ({ check, to: `${place}-check-${at}`, label }))
    .filter(({ check }) => !check.passed && !check.soft);
  return [
    ...(one.turns || []).flatMap((turn) => of(turn.assertions, `turn-${turn.turn}`, `Turn ${turn.turn}`)),
    ...(one.topic_visits || []).flatMap((visit) => (visit.assertions || []).filter((check) => !check.passed && !check.soft)
      .map((check) => (check.turn ? { check, to: `turn-${check.turn}`, label: `Turn ${check.turn}` } : { check, to: 'topics', label: visit.topic }))),
    ...of(wholeChecks(one), 'whole', 'Conversation'),
  ];
}

function wholeChecks(one) {
  return [...(one.assertions || []), ...(one.final_assertions || [])];
}

// True if an attempt passed without a checkpoint and without a check that decides.
function assertsNothing(one) {
  const inner = [...(one.turns || []), ...(one.topic_visits || [])].flatMap((part) => part.assertions || []);
  const isErrorExpected = (one.turns || []).some((turn) => turn.error_info);
  return one.status === 'passed' && !isErrorExpected && !one.checkpoints?.length && [...inner, ...wholeChecks(one)].every((check) => check.soft);
}

// Places that explain a failure: its checks, or the turn that did not end well.
function failurePlaces(one) {
  const checks = failedChecks(one);
  if (checks.length || one.status !== 'failed') return [...new Set(checks.map(({ to }) => to))];
  if ((one.checkpoints || []).some((point) => !point.passed && point.required)) return ['checkpoints'];
  const turn = (one.turns || []).findLast((found) => found.status === 'failed' || found.status === 'unfinished' || found.error);
  return turn ? [`turn-${turn.turn}`] : [];
}

// List of the turns with their results, beside the conversation or above it on narrow screens.
function outline(one, turns, link) {
  if (turns.length < OUTLINE_FROM) return null;
  const records = new Map((one.turns || []).map((turn) => [turn.turn, turn]));
  const entry = (to, label, status, words) => h('li', {}, h('a', {
    href: link({ to }), 'data-to': to, 'aria-label': [label, status, words].filter(Boolean).join(', '), title: words,
  }, h('span', { 'aria-hidden': 'true' }, status && mark(status, status, one.label)), h('b', {}, label.replace('Turn ', '')), h('span.preview', {}, words)));
  const whole = wholeChecks(one);
  const failed = new Set(failedChecks(one).map(({ to }) => to.split('-check-')[0]));
  const list = h('nav.outline', { 'aria-label': 'Turns' }, h('ul', {},
    turns.map((turn) => {
      const place = `turn-${turn.number}`;
      const status = failed.has(place) ? 'failed' : records.get(turn.number)?.status;
      return entry(place, `Turn ${turn.number}`, MARKS[status] && status, line(inputOf(turn), 60));
    }),
    whole.length > 0 && entry('whole', 'Whole', failed.has('whole') ? 'failed' : 'passed', 'checks of the whole conversation')));
  return list;
}

// Time of the last jump. The end of a page does not reach the top of the window, so a jump decides what is read.
let jumpedAt = -Infinity;

// Marks a turn in the outline.
function readingAt(place) {
  const list = document.querySelector('.outline');
  const link = list?.querySelector(`[data-to="${place}"]`);
  if (!link) return;
  list.querySelectorAll('[aria-current]').forEach((one) => one.removeAttribute('aria-current'));
  link.setAttribute('aria-current', 'true');
  // `scrollIntoView` would also scroll the page.
  list.scrollTop = link.offsetTop - list.clientHeight / 2;
  list.scrollLeft = link.offsetLeft - list.clientWidth / 2;
}

// Marks the turn that is read, while the page is scrolled.
function followReading(root) {
  if (!root.querySelector('.outline')) return;
  const seen = new IntersectionObserver((entries) => {
    const at = entries.find((one) => one.isIntersecting);
    if (at && performance.now() - jumpedAt > 300) readingAt(at.target.id);
  }, { rootMargin: '-130px 0px -65% 0px' });
  root.querySelectorAll('.turn[id], #whole').forEach((turn) => seen.observe(turn));
}
