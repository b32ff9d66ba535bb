// What is shown, by the part of the address behind `#`, and what the keys do.

const source = pageSource();
const app = document.getElementById('app');

// `#status=failed&q=refund` is the overview, `#case=ID` a case.
let route = new URLSearchParams();
// What the overview was last asked for; its filters stay while a case is shown.
let wanted = new URLSearchParams();
let turn = 0;

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
// Where a case is found: by its id, and by its place where others have the same id.
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

// ---- the overview

const cases = caseList(moves);
const search = h('input', {
  type: 'search', placeholder: 'Search names, failures, conversations', 'aria-label': 'Search', autocomplete: 'off', spellcheck: 'false',
  oninput: () => later(() => choose('q', search.value || null)),
});
const head = h('div', {});
const figures = h('div', {});
const panels = h('div.panels', {});
const tools = h('div.filters', {});
const found = h('p.found', { role: 'status' });
const overview = h('main.overview', {}, head, figures, panels,
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
  if (overview.parentNode !== app) fill(app, top, overview);
  drawOverview();
}

function drawOverview() {
  const rows = selected(source.rows, wanted);
  fill(head, runHead(source));
  fill(figures, overviewFigures(source, wanted, choose));
  fill(panels, breakdown(source.rows, wanted, choose), criteria(source.rows, wanted, choose));
  const focused = tools.contains(document.activeElement) ? document.activeElement : null;
  const again = focused && (focused.dataset.key ? `[data-key="${focused.dataset.key}"]` : null);
  fill(tools, toolbar(source.rows, wanted, choose));
  if (again) tools.querySelector(again)?.focus();
  fill(found, rows.length === source.rows.length ? count(rows.length, 'case') : `${number(rows.length)} of ${count(source.rows.length, 'case')}`,
    rows.length === 0 && source.rows.length > 0 && ' – nothing fits');
  cases.show(rows);
  document.title = `${source.run.summary?.agent_id || 'Hotseat'} · ${tally(source.rows).failed} failed of ${source.rows.length}`;
  searchConversations();
}

// What stands only in conversations is looked for after everything else, some cases at a time.
let searched = null;
async function searchConversations() {
  const q = wanted.get('q');
  if (!q || q.length < 3 || searched?.q === q) {
    if (!q) searched = null;
    else if (searched?.q === q) wanted.said = searched.said;
    return;
  }
  const mine = (searched = { q, said: new Set() });
  const pattern = asWritten(q);
  let pause = performance.now();
  for (const row of [...source.rows]) {
    if (await source.says(row.index, pattern)) mine.said.add(row.index);
    if (performance.now() - pause > 30) {
      await new Promise((resolve) => setTimeout(resolve));
      pause = performance.now();
    }
    if (searched !== mine) return;
  }
  wanted.said = mine.said;
  if (mine.said.size && app.contains(overview)) drawOverview();
}

// ---- a case

async function showCase() {
  const mine = ++turn;
  const row = rowOf(route);
  if (app.firstChild !== top || page.parentNode !== app) fill(app, top, page);
  if (!row) {
    fill(page, h('p.empty', {}, `There is no case ${route.get('case')} here. `, h('a', { href: moves.overview() }, 'All cases')));
    return;
  }
  try {
    const shown = await casePage(row, source, route, moves);
    if (mine !== turn) return;
    fill(page, shown);
  } catch (error) {
    if (mine !== turn) return;
    fill(page, h('p.empty', {}, `This case cannot be shown: ${error.message}. `, h('a', { href: moves.overview() }, 'All cases')));
  }
  document.title = `${row.status === 'failed' ? '✗ ' : ''}${harmless(row.name)}`;
  const at = route.get('turn') && document.getElementById(`turn-${route.get('turn')}`);
  if (at) at.scrollIntoView();
  else scrollTo(0, 0);
  page.querySelector('h1')?.focus({ preventScroll: true });
}

// ---- the frame

const THEMES = ['system', 'light', 'dark'];
const stored = { get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
  set: (key, of) => { try { localStorage.setItem(key, of); } catch { /* A page without a place of its own keeps nothing. */ } } };

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
  ['/', 'search'], ['e', 'unfold or fold the whole case'], ['t', 'light, dark, system'], ['?', 'these keys'],
];
const help = h('dialog.help', { 'aria-label': 'Keys' }, h('h2', {}, 'Keys'),
  h('dl', {}, KEYS.map(([keys, does]) => h('div', {}, h('dt', {}, keys.split('  ').map((key) => h('kbd', {}, key))), h('dd', {}, does)))),
  h('form', { method: 'dialog' }, h('button', {}, 'Close')));
const top = h('div.top', {}, h('a.brand', { href: '#' }, 'Hotseat'), h('span.spacer'), themeButton,
  h('button.quiet', { type: 'button', title: 'Keys (?)', 'aria-label': 'Keys', onclick: () => help.showModal() }, '?'));

function enter() {
  route = new URLSearchParams(location.hash.slice(1));
  if (route.has('case')) return showCase();
  turn += 1;
  const from = page.parentNode === app ? page.dataset.index : null;
  showOverview();
  if (from) cases.focus(cases.at(from));
  return undefined;
}

addEventListener('hashchange', () => {
  enter();
  const row = route.has('case') ? rowOf(route) : null;
  if (row) page.dataset.index = row.index;
});

addEventListener('keydown', (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || help.open) return;
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
  const act = {
    j: () => (onCase ? moves.step(1) : cases.focus(here() + 1)),
    k: () => (onCase ? moves.step(-1) : cases.focus(Math.max(0, here() - 1))),
    '/': () => {
      if (onCase) location.hash = moves.overview();
      setTimeout(() => { search.focus(); search.select(); });
    },
    Escape: () => (onCase ? (location.hash = moves.overview()) : choose('q', null)),
    '?': () => help.showModal(),
    t: () => themeButton.click(),
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
  if (route.has('case')) openAll(page, true);
  else cases.print(true);
});
addEventListener('afterprint', () => !route.has('case') && cases.print(false));

applyTheme();
document.body.append(help);
enter();
if (route.has('case')) page.dataset.index = rowOf(route)?.index ?? '';
