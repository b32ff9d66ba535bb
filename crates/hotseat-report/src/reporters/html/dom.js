// DOM elements, text and numbers. All displayed text passes through `harmless`; no text is parsed as HTML.

const PICTURES = 0x2400;

// Characters that are invisible or that reorder the text around them.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function harmless(text) {
  return String(text).replace(UNSEEN, (character) => {
    const code = character.codePointAt(0);
    if (code < 0x20) return String.fromCharCode(PICTURES + code);
    return code === 0x7f ? '\u2421' : '\ufffd';
  });
}

const SVG = 'http://www.w3.org/2000/svg';

// Creates an element: `h('button.quiet', { onclick, title }, 'words', child, …)`. Null and false are skipped.
function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split('.');
  const element = name.startsWith('svg:')
    ? document.createElementNS(SVG, name.slice(4))
    : document.createElement(name || 'div');
  if (classes.length) element.setAttribute('class', classes.join(' '));
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'style') Object.entries(value).forEach(([k, v]) => element.style.setProperty(k, v));
    else if (key === 'value') element.value = value;
    else element.setAttribute(key, value === true ? '' : harmless(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(harmless(child)));
  }
}

// Replaces the content of an element.
function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

// Replaces the content of an element but reuses unchanged child elements, so they keep their focus and open
// state.
function renew(element, ...children) {
  const fresh = [];
  append({ append: (child) => fresh.push(child) }, children);
  const old = [...element.childNodes];
  fresh.forEach((child, place) => {
    if (place >= old.length) element.append(child);
    else renewed(old[place], child);
  });
  old.slice(fresh.length).forEach((child) => child.remove());
  return element;
}

function renewed(old, fresh) {
  const areFolds = Boolean(old.make && fresh.make);
  if (areFolds) {
    // Whether a fold is open is the choice of the reader.
    if (old.body === null) fresh.make();
    fresh.open = old.open;
    old.body = fresh.body;
  }
  if (!alike(old, fresh)) {
    const focused = document.activeElement;
    const inSummary = areFolds && focused === old.firstChild;
    old.replaceWith(fresh);
    if (focused === old || inSummary) (inSummary ? fresh.firstChild : fresh).focus({ preventScroll: true });
  } else if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
  } else {
    renew(old, [...fresh.childNodes]);
  }
}

// Returns true if two nodes differ only in their content.
function alike(one, other) {
  if (one.nodeName !== other.nodeName) return false;
  if (one.nodeType === Node.TEXT_NODE) return true;
  const names = one.getAttributeNames();
  return names.length === other.getAttributeNames().length && names.every((name) => one.getAttribute(name) === other.getAttribute(name));
}

// Creates a fold whose content is created when it is opened. `body` creates it, and is null once it has.
function fold(attributes, summary, body) {
  const details = h('details', attributes, h('summary', {}, summary));
  details.body = body;
  const make = () => {
    if (!details.open || !details.body) return;
    details.body = null;
    append(details, [body()]);
  };
  details.addEventListener('toggle', make);
  details.make = () => {
    details.open = true;
    make();
  };
  make();
  return details;
}

function openAll(root, open) {
  // New content may contain further folds.
  let seen = -1;
  for (let all = [...root.querySelectorAll('details')]; all.length !== seen; all = [...root.querySelectorAll('details')]) {
    seen = all.length;
    all.filter((one) => !one.classList.contains('events')).forEach((one) => (open && one.make ? one.make() : (one.open = open)));
  }
}

// Unfolds everything for printing, also shortened texts and items that are shown in portions.
function showWhole(root) {
  let rest;
  do {
    openAll(root, true);
    rest = [...root.querySelectorAll('button.rest')];
    rest.forEach((button) => button.click());
  } while (rest.length);
}

const LONGEST = 6000;

// Displays untrusted text. A very long text is shortened.
function words(text, tag = 'div.words') {
  const whole = String(text);
  if (whole.length <= LONGEST) return h(tag, { dir: 'auto' }, whole);
  const shown = h(tag, { dir: 'auto' }, cut(whole, LONGEST) + ' …');
  const more = h('button.link.rest', {
    type: 'button',
    onclick: () => {
      fill(shown, whole);
      more.remove();
    },
  }, `Show all ${count(whole.length, 'character')}`);
  return h('div', {}, shown, more);
}

// Cuts a text without splitting a surrogate pair.
function cut(text, length) {
  const end = /[\ud800-\udbff]/.test(text[length - 1]) ? length - 1 : length;
  return text.slice(0, end);
}

// Formats a text on one line.
function line(text, length = 160) {
  const whole = String(text).trim().replace(/\s+/g, ' ');
  return whole.length <= length ? whole : cut(whole, length) + ' …';
}

// Members that the page calculates with.
const CALCULATED = /(_ms|_ts|tokens|cost|score)$/;

// Reads JSON. Integers of agents that JavaScript would round stay as written, where the browser can.
function readJson(text) {
  if (!JSON.rawJSON || !/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (name, value, { source }) =>
    (Number.isInteger(value) && !Number.isSafeInteger(value) && !CALCULATED.test(name) ? JSON.rawJSON(source) : value));
}

// True for an integer as it is written.
function isRaw(value) {
  return Boolean(JSON.isRawJSON?.(value));
}

// Displays a value: text unchanged, everything else as JSON.
function value(of) {
  return words(typeof of === 'string' ? of : JSON.stringify(of, null, 2), 'pre.value');
}

function short(of, length = 100) {
  if (of === null || of === undefined) return '';
  return line(typeof of === 'string' ? of : JSON.stringify(of), length);
}

function count(n, what) {
  return `${number(n)} ${what}${n === 1 ? '' : 's'}`;
}

function number(n) {
  return Number(n).toLocaleString('en', { maximumFractionDigits: 1 });
}

function percent(part, whole) {
  if (whole === 0) return '–';
  const exact = (100 * part) / whole;
  // Only a whole is 100%, and only nothing is 0%.
  const shown = exact > 0 && exact < 100 ? Math.min(Math.max(exact, 0.1), 99.9) : exact;
  return `${shown.toFixed(1)}%`;
}

function duration(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms > 0 && ms < 1) return `${Math.max(1, Math.round(ms * 1000))} µs`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59950) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

// Formats the time since the start of the conversation, given in microseconds.
function clock(us) {
  return us < 500 ? '0 s' : `${(us / 1e6).toFixed(us < 1e7 ? 2 : 1)} s`;
}

// Currency of all costs of the run, if the project names it.
let currency = null;

function money(amount, of = currency) {
  const figure = amount < 0.01 && amount > 0 ? amount.toPrecision(2) : amount.toFixed(2);
  return of ? `${figure} ${of}` : figure;
}

function time(of) {
  const at = new Date(of);
  return Number.isNaN(at.getTime()) ? '' : at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}

const MARKS = { passed: '✓', failed: '✗', skipped: '○', flaky: '≈', soft: '◇', running: '', unfinished: '–' };

// A status mark that is readable without its colour. A failure has the colour of its label, which says who is at fault.
function mark(status, title = status, label = null) {
  const color = status === 'failed' && LABEL_COLORS[label] ? `.${LABEL_COLORS[label]}` : '';
  return h(`span.mark.${status}${color}`, { role: 'img', 'aria-label': title, title }, MARKS[status] ?? '·');
}

// The mark of a case, or of an attempt at it.
function resultMark(of) {
  return of.flaky ? mark('flaky', 'flaky: passed on a retry') : mark(of.status, of.label || of.status, of.label);
}

// The label of a result in its colour.
function labelTag(label) {
  return h(`span.tag.label.${LABEL_COLORS[label] || 'quiet'}`, {}, label);
}

// Formats a number of results: `2 judge errors`.
function countOf(n, label) {
  return label.endsWith(' error') ? count(n, label) : `${number(n)} ${label}`;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea.unseen', { value: text, 'aria-hidden': 'true' });
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    return copied;
  }
}

// A button that shows its result for a moment.
function copier(label, text, title) {
  const button = h('button', {
    type: 'button', title,
    onclick: async () => {
      const copied = await copy(await text());
      button.textContent = copied ? 'Copied' : 'Cannot copy';
      setTimeout(() => (button.textContent = label), 1500);
    },
  }, label);
  return button;
}
