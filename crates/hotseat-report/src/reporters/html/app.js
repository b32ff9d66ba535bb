// Navigation and keyboard shortcuts. The part of the address after `#` selects the view.

const source = pageSource();
const app = document.getElementById('app');
// Only a served page can list other runs.
const runs = source.live ? runList(source) : null;
const compared = source.live ? comparisonPage(source) : null;

// `#status=failed&q=refund` is the overview, `#case=ID` a case, `#case=ID&to=turn-3` a place in it, `#runs` the
// list of saved runs, `#compare=ID..ID` the comparison of two runs.
let route = new URLSearchParams();
// Last state of the overview; its filters are kept while a case is shown.
let wanted = new URLSearchParams();
let turn = 0;
// Row and attempt of the displayed case at the time of drawing.
let shownRow = null;
let shownAttempt = null;

const moves = {
  link: links(),
  overview: () => `#${wanted}`,
  step(by) {
    const rows = selected(source.rows, wanted);
    const here = rows.indexOf(rowOf(route));
    const row = rows[here + by];
    if (row) location.hash = moves.link(row);
  },
};
// Links to cases by id, and also by index if the id is not unique.
function links() {
  let counted = null;
  return (row, more = {}) => {
    if (counted?.size !== source.rows.length) {
      counted = { size: source.rows.length, ids: new Map() };
      source.rows.forEach((one) => counted.ids.set(one.id, (counted.ids.get(one.id) || 0) + 1));
    }
    const to = new URLSearchParams({ case: row.id, ...(counted.ids.get(row.id) > 1 ? { at: row.index } : {}), ...more });
    return `#${to}`;
  };
}

function rowOf(to) {
  const at = to.get('at');
  return source.rows.find((row) => row.id === to.get('case') && (at === null || String(row.index) === at));
}

// ---- overview

const cases = caseList(moves);
const search = h('input', {
  type: 'search', placeholder: 'Search names, failures, conversations', 'aria-label': 'Search', autocomplete: 'off', spellcheck: 'false',
  oninput: () => later(() => choose('q', search.value || null)),
});
const head = h('div', {});
const figures = h('div', {});
const panels = h('div.panels', {});
const runningNow = h('div', {});
const tools = h('div.filters', {});
const found = h('p.found', { role: 'status' });
const overview = h('main.overview', {}, head, figures, runningNow, panels,
  h('div.toolbar', {}, h('div.search', {}, search, h('kbd', { 'aria-hidden': 'true' }, '/')), tools, found), cases.list);
const page = h('main.page', {});

let timer = null;
function later(act) {
  clearTimeout(timer);
  timer = setTimeout(act, 120);
}

function choose(key, value) {
  const next = new URLSearchParams(wanted);
  if (value === null || value === undefined || value === '') next.delete(key);
  else next.set(key, value);
  history.replaceState(null, '', `#${next}`);
  enter();
}

function showOverview() {
  wanted = route;
  if (search.value !== (wanted.get('q') || '')) search.value = wanted.get('q') || '';
  show(overview);
  drawOverview();
}

function drawOverview() {
  knowCurrency();
  overview.classList.toggle('awaited', !source.run);
  if (!source.run) {
    renew(head, h('header.run-head', {}, h('h1', { tabindex: '-1' }, 'Hotseat'), h('p.how-far', {}, mark('running', 'awaited'), h('span', {}, 'This run has not started yet.'))));
    return;
  }
  if (searched && searched.q === wanted.get('q')) wanted.said = searched.said;
  const rows = selected(source.rows, wanted);
  renew(head, runHead(source));
  renew(figures, overviewFigures(source, wanted, choose));
  if (source.live && runningShown() === null) renew(runningNow);
  renew(panels, breakdown(source.rows, wanted, choose), criteria(source.rows, wanted, choose), faultSweep(source.run.fault_sweep));
  renew(tools, toolbar(source.rows, wanted, choose));
  cases.show(rows);
  const { summary, start, kept } = source.run;
  const goesOn = kept?.state === 'running' || source.isLoading ? '… ' : '';
  const { failed, running } = tally(source.rows);
  document.title = `${goesOn}${(summary || start)?.agent_id || 'Hotseat'} · ${failed} failed of ${source.rows.length - running}`;
  searchConversations();
  drawFound(rows);
}

// Says how many cases match. The number grows until all cases are loaded and all conversations searched.
function drawFound(rows) {
  const all = source.rows.length;
  const isSearching = searched?.busy && searched.search.isBehind();
  const noMatch = rows.length === 0 && all > 0 && 'no case matches';
  const state = source.isLoading ? 'loading …' : isSearching ? 'searching the conversations …' : noMatch;
  renew(found, rows.length === all ? count(all, 'case') : `${number(rows.length)} of ${count(all, 'case')}`, state && ` – ${state}`);
}

// Searches the conversations after all other fields, and again when more cases have ended.
let searched = null;
async function searchConversations() {
  const q = wanted.get('q');
  if (searched?.q !== q) {
    searched?.given.abort();
    searched = q?.length >= 3 ? { q, said: new Set(), search: source.search(q), given: new AbortController(), busy: false } : null;
  }
  if (!searched || searched.busy) return;
  const mine = searched;
  mine.busy = true;
  // After an error, the search is repeated with the next update.
  const more = await mine.search.more(mine.given.signal).catch(() => []);
  mine.busy = false;
  if (searched !== mine) return;
  more.forEach((index) => mine.said.add(index));
  if (!app.contains(overview)) return;
  if (more.length) drawOverview();
  else drawFound(selected(source.rows, wanted));
}

// ---- case

// Draws the case. With `again` only the data has changed and the scroll position is kept.
async function showCase(again = false) {
  const mine = ++turn;
  const row = rowOf(route);
  shownRow = row;
  shownAttempt = route.get('attempt');
  show(page);
  page.dataset.index = row?.index ?? '';
  if (!row) {
    fill(page, h('p.empty', {}, `There is no case ${route.get('case')} here. `, h('a', { href: moves.overview() }, 'All cases')));
    return;
  }
  try {
    const shown = await casePage(row, source, route, moves);
    if (mine !== turn) return;
    fill(page, shown);
    followReading(page);
  } catch (error) {
    if (mine !== turn) return;
    fill(page, h('p.empty', {}, `This case cannot be shown: ${error.message}. `, h('a', { href: moves.overview() }, 'All cases')));
  }
  document.title = `${row.status === 'failed' ? '✗ ' : ''}${harmless(row.name)}`;
  if (again) return;
  if (jump(placeOf(route))) return;
  scrollTo(0, 0);
  page.querySelector('h1')?.focus({ preventScroll: true });
}

// Goes to a place of this page, also if the address names it already.
function follow(href) {
  if (location.hash === href) enter();
  else location.hash = href;
}

// ---- runs

// The newest run when the list was drawn.
let listed = null;

function showRuns() {
  turn += 1;
  listed = source.newest;
  show(runs.page);
  document.title = 'Runs';
  return runs.show();
}

function showComparison() {
  turn += 1;
  show(compared.page);
  document.title = 'Two runs compared';
  const [before, after] = route.get('compare').split('..');
  return compared.show(before, after || '', route.has('other_inputs'));
}

// ---- frame

const THEMES = ['system', 'light', 'dark'];
let theme = THEMES.includes(stored.get('hotseat-theme')) ? stored.get('hotseat-theme') : 'system';
const themeButton = h('button.quiet', {
  type: 'button', title: 'Light, dark, or as the system',
  onclick: () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    stored.set('hotseat-theme', theme);
    applyTheme();
  },
});
function applyTheme() {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  themeButton.textContent = { system: '◐ system', light: '○ light', dark: '● dark' }[theme];
}

const KEYS = [
  ['j  k', 'next and previous case'], ['↵', 'open the case'], ['esc', 'back to all cases, or clear the search'],
  ['/', 'search'], ...(runs ? [['r', 'saved runs']] : []), ['n', 'next failure of the case'], ['e', 'unfold or fold the whole case'], ['t', 'light, dark, system'], ['?', 'these keys'],
];
const help = h('dialog.help', { 'aria-label': 'Keys' }, h('h2', {}, 'Keys'),
  h('dl', {}, KEYS.map(([keys, does]) => h('div', {}, h('dt', {}, keys.split('  ').map((key) => h('kbd', {}, key))), h('dd', {}, does)))),
  h('form', { method: 'dialog' }, h('button', {}, 'Close')));
const settings = settingsDialog(source, () => (route.has('case') ? showCase(true) : enter()));
const top = h('div.top', {}, h('a.brand', { href: '#' }, 'Hotseat'), h('span.spacer'),
  runs && h('a.quiet', { href: '#runs', title: 'Saved runs (r)' }, 'Runs'), themeButton,
  h('button.quiet', { type: 'button', onclick: () => settings.show() }, 'Settings'),
  h('button.quiet', { type: 'button', title: 'Keys (?)', 'aria-label': 'Keys', onclick: () => help.showModal() }, '?'));
const banner = h('div.banner', { role: 'status' });
const frame = h('div.frame', {}, top, banner);

function knowCurrency() {
  currency = (source.run?.summary || source.run?.start)?.currency || null;
}

function show(main) {
  knowCurrency();
  if (main.parentNode !== app) fill(app, frame, main);
}

function enter() {
  route = new URLSearchParams(location.hash.slice(1));
  if (runs && route.has('runs')) return showRuns();
  if (compared && route.has('compare')) return showComparison();
  if (route.has('case')) {
    const isShown = page.parentNode === app && shownRow && shownRow === rowOf(route) && shownAttempt === route.get('attempt');
    return isShown && jump(placeOf(route)) ? undefined : showCase();
  }
  turn += 1;
  const from = page.parentNode === app ? page.dataset.index : null;
  showOverview();
  if (from) cases.focus(cases.at(from));
  return undefined;
}

// ---- running run

// Delay in milliseconds that combines several updates.
const TOGETHER = 200;
let drawing = null;

// Redraws only what has changed, and keeps the scroll position.
function news() {
  drawing = null;
  drawBanner();
  if (overview.parentNode === app) {
    const anchor = cases.anchor();
    drawOverview();
    cases.hold(anchor);
  } else if (page.parentNode === app && isOther(rowOf(route), shownRow)) {
    showCase(true);
  }
  if (runs.page.parentNode === app && listed === source.newest) runs.update();
  else if (runs.page.parentNode === app) showRuns();
}

function isOther(row, before) {
  const told = (one) => JSON.stringify({ ...one, text: undefined });
  return row && row !== before && told(row) !== told(before);
}

// Shows an error of the connection, or a link to a newer run.
let trouble = null;
function drawBanner() {
  const newer = source.newest !== source.newestAtFirst && source.newest !== source.run?.kept.id;
  renew(banner, trouble
    ? h('p.bad', {}, trouble)
    : newer && h('p', {}, 'A newer run has started. ', h('a', { href: `/runs/${source.newest}` }, 'Show it')));
}

addEventListener('hashchange', enter);
addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href^="#"]');
  if (link && link.getAttribute('href') === location.hash) enter();
});

addEventListener('keydown', (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector('dialog[open]')) return;
  const typing = event.target.matches('input:not([type=checkbox]), textarea, select');
  if (typing) {
    if (event.key === 'Escape' && event.target === search) {
      choose('q', null);
      search.blur();
    } else if (event.key === 'Enter' && event.target === search) {
      clearTimeout(timer);
      choose('q', search.value || null);
      cases.focus(0);
      event.preventDefault();
    }
    return;
  }
  const onCase = route.has('case');
  const onRuns = route.has('runs') || route.has('compare');
  const act = {
    j: () => (onCase ? moves.step(1) : cases.focus(here() + 1)),
    k: () => (onCase ? moves.step(-1) : cases.focus(Math.max(0, here() - 1))),
    '/': () => {
      if (onCase || onRuns) location.hash = moves.overview();
      setTimeout(() => { search.focus(); search.select(); });
    },
    r: () => runs && (location.hash = '#runs'),
    Escape: () => (onCase || onRuns ? (location.hash = moves.overview()) : choose('q', null)),
    '?': () => help.showModal(),
    t: () => themeButton.click(),
    n: () => onCase && page.querySelector('.to-failure')?.click(),
    e: () => onCase && openAll(page, ![...page.querySelectorAll('.chat details')].every((one) => one.open)),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

function here() {
  const focused = document.activeElement?.dataset?.index;
  return focused === undefined ? -1 : cases.at(focused);
}

addEventListener('beforeprint', () => {
  if (route.has('case')) showWhole(page);
  else cases.print(true);
});
addEventListener('afterprint', () => !route.has('case') && cases.print(false));

// The index of the running case that is shown, undefined for all in the overview, null if none is shown.
function runningShown() {
  if (source.run?.kept.state !== 'running') return null;
  if (overview.parentNode === app) return source.rows.some((row) => row.status === 'running') ? undefined : null;
  return page.parentNode === app && shownRow?.status === 'running' ? shownRow.index : null;
}

function drawRunning(found) {
  if (overview.parentNode === app) {
    const anchor = cases.anchor();
    renew(runningNow, runningPanel(found, source.rows, moves));
    cases.hold(anchor);
    return;
  }
  const place = page.querySelector('.transcript');
  if (!place || !found) return;
  // A reader at the end of the conversation stays there.
  const atEnd = scrollY > 0 && innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
  renew(place, runningTranscript(found, shownRow));
  if (atEnd) scrollTo(0, document.documentElement.scrollHeight);
}

applyTheme();
document.body.append(help, settings.dialog);
if (source.live) {
  let begun = false;
  source.follow(() => {
    if (begun) drawing ??= setTimeout(news, TOGETHER);
    else enter();
    begun = true;
  }, (words) => {
    trouble = words;
    if (!begun) show(overview);
    overview.classList.toggle('awaited', !source.run);
    drawBanner();
  });
  followRunning(source, runningShown, drawRunning);
} else {
  enter();
}
