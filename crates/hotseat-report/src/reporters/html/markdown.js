// Markdown of agents as elements. It is untrusted text: no HTML, nothing that loads, only links that show their
// address. Cost is linear in the length of the text; everything beyond a bound stays plain.

const MARKDOWN_LENGTH = 100_000;
const MARKDOWN_DEPTH = 6;
const TABLE_CELLS = 2000;
const LINK_SCHEMES = ['http:', 'https:', 'mailto:'];

// True if texts of agents are shown as plain text.
let plainText = stored.get('hotseat-plain') === 'yes';

// Shows a text of an agent; `redraw` follows the setting.
function agentText(text) {
  const whole = String(text);
  const shown = h('div.words.bubble', { dir: 'auto' });
  let isCut = whole.length > LONGEST;
  shown.redraw = () => {
    const part = isCut ? `${cut(whole, LONGEST)} …` : whole;
    const isRich = !plainText && part.length <= MARKDOWN_LENGTH && MARKUP.test(part);
    shown.classList.toggle('rich', isRich);
    fill(shown, isRich ? markdown(part) : part);
  };
  shown.redraw();
  if (!isCut) return shown;
  const more = h('button.link.rest', {
    type: 'button',
    onclick: () => {
      isCut = false;
      shown.redraw();
      more.remove();
    },
  }, `Show all ${count(whole.length, 'character')}`);
  return h('div', {}, shown, more);
}

// Switch between Markdown and plain text.
function plainSwitch() {
  return h('label.switch', {}, h('input', {
    type: 'checkbox', checked: plainText,
    onchange: (event) => {
      plainText = event.target.checked;
      stored.set('hotseat-plain', plainText ? 'yes' : null);
      document.querySelectorAll('.bubble').forEach((one) => one.redraw?.());
    },
  }), 'plain text');
}

// Texts without any of these are plain.
const MARKUP = /[`*_#[\]>|~]|^[ \t]*(?:[-+]|\d{1,9}[.)])[ \t]|^(?:-{3,}|={3,})|https?:/m;

function markdown(text) {
  return blocks(text.split(/\r\n|\r|\n/), 0);
}

const FENCE = /^ {0,3}(`{3,}|~{3,})[^`]*$/;
const HEADING = /^ {0,3}#{1,6}[ \t]+(.*?)[ \t#]*$/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}>[ ]?/;
const ITEM = /^( {0,9}|\t)([-*+]|\d{1,9}[.)])(?:[ \t]+|$)/;
const TABLE_RULE = /^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

// Blocks of lines: code, headings, rules, quotes, lists, tables, paragraphs.
function blocks(lines, depth) {
  if (depth > MARKDOWN_DEPTH) return [h('p.plain', {}, lines.join('\n'))];
  const out = [];
  let at = 0;
  const take = (fits) => {
    const start = at;
    while (at < lines.length && fits(lines[at], at - start)) at += 1;
    return lines.slice(start, at);
  };
  while (at < lines.length) {
    const first = lines[at];
    const fence = first.length < 200 && FENCE.exec(first);
    if (first.trim() === '') {
      at += 1;
    } else if (fence) {
      at += 1;
      const inside = take((one) => !(one.trim().startsWith(fence[1]) && one.trim().replaceAll(fence[1][0], '') === ''));
      at += 1;
      out.push(h('pre.code', {}, inside.join('\n')));
    } else if (HEADING.test(cut(first, 1000))) {
      at += 1;
      out.push(h('p.heading', {}, inline(first.replace(/^[ #\t]+/, ''), depth)));
    } else if (first.length < 200 && RULE.test(first)) {
      at += 1;
      out.push(h('hr', {}));
    } else if (QUOTE.test(first)) {
      out.push(h('blockquote', {}, blocks(take((one) => QUOTE.test(one)).map((one) => one.replace(QUOTE, '')), depth + 1)));
    } else if (ITEM.test(first)) {
      out.push(listBlock(take((one, n) => n === 0 || ITEM.test(one) || (one.trim() !== '' && /^\s/.test(one))), depth));
    } else if (first.includes('|') && at + 1 < lines.length && lines[at + 1].length < 2000 && lines[at + 1].includes('-') && TABLE_RULE.test(lines[at + 1])) {
      out.push(tableBlock(take((one) => one.includes('|')), depth));
    } else {
      const held = take((one, n) => n === 0 || (one.trim() !== '' && !(one.length < 200 && FENCE.test(one)) && !HEADING.test(cut(one, 1000)) && !QUOTE.test(one) && !ITEM.test(one)));
      out.push(h('p', {}, held.map((one, n) => [n > 0 && h('br'), inline(one, depth)])));
    }
  }
  return out;
}

// A list: its items are at the indentation of the first one, deeper lines belong to the item before.
function listBlock(lines, depth) {
  const own = ITEM.exec(lines[0])[1].length;
  const isOrdered = /\d/.test(ITEM.exec(lines[0])[2]);
  const items = [];
  for (const one of lines) {
    const found = ITEM.exec(one);
    if (found && found[1].length <= own + 1) items.push([one.slice(found[0].length)]);
    else items.at(-1).push(one.replace(/^(?: {1,4}|\t)/, ''));
  }
  const start = isOrdered ? Number.parseInt(lines[0], 10) : null;
  return h(isOrdered ? 'ol' : 'ul', { start: start > 1 ? start : null }, items.map((item) => {
    const parts = blocks(item, depth + 1);
    return h('li', {}, parts.length === 1 && parts[0].tagName === 'P' ? [...parts[0].childNodes] : parts);
  }));
}

function tableBlock(lines, depth) {
  const cells = (one) => one.trim().replace(/^\||\|$/g, '').split('|').slice(0, 100);
  const [head, , ...rows] = lines;
  const shown = rows.slice(0, Math.floor(TABLE_CELLS / cells(head).length));
  const rest = rows.slice(shown.length);
  return h('div.scrolls', {}, h('table', {},
    h('thead', {}, h('tr', {}, cells(head).map((cell) => h('th', { scope: 'col' }, inline(cell.trim(), depth))))),
    h('tbody', {}, shown.map((row) => h('tr', {}, cells(row).map((cell) => h('td', {}, inline(cell.trim(), depth))))))),
  rest.length > 0 && h('p.plain', {}, rest.join('\n')));
}

const LINK = /(!?)\[([^[\]\n]{0,500})\]\(<?([^()<>\s]{1,1000}(?:\([^()<>\s]{0,200}\)[^()<>\s]{0,200})?)>?(?:\s+"[^"\n]{0,200}")?\)/y;
const ADDRESS = /<?(https?:\/\/[^\s<>"'`\\^{|}[\]]{1,1000})>?/y;
const MARKED = [['**', 'strong'], ['__', 'strong'], ['~~', 's'], ['*', 'em'], ['_', 'em']];

// Marked text, code and links in a line.
function inline(text, depth) {
  const out = [];
  // Marks without an end are searched only once.
  const open = new Set();
  let [plain, at] = [0, 0];
  const add = (end, element) => {
    if (plain < at) out.push(text.slice(plain, at));
    out.push(element);
    [at, plain] = [end, end];
  };
  while (at < text.length) {
    const one = text[at];
    if (one === '\\' && /[!-/:-@[-`{-~]/.test(text[at + 1] || '')) {
      add(at + 2, text[at + 1]);
    } else if (one === '`') {
      const mark = /`+/y;
      mark.lastIndex = at;
      const [ticks] = mark.exec(text);
      const end = open.has(ticks) ? -1 : text.indexOf(ticks, at + ticks.length);
      if (end < 0) {
        open.add(ticks);
        at += ticks.length;
      } else {
        add(end + ticks.length, h('code', {}, text.slice(at + ticks.length, end)));
      }
    } else if (one === '[' || (one === '!' && text[at + 1] === '[')) {
      LINK.lastIndex = at;
      const found = LINK.exec(text);
      if (found) add(LINK.lastIndex, linked(found, depth));
      else at += 1;
    } else if (one === '<' || (one === 'h' && text.startsWith('http', at) && !/\w/.test(text[at - 1] || ''))) {
      ADDRESS.lastIndex = at;
      const found = ADDRESS.exec(text);
      if (found) add(...bareLink(found, at));
      else at += 1;
    } else if ('*_~'.includes(one)) {
      const [end, element] = marked(text, at, depth, open);
      if (element) add(end, element);
      else at = end;
    } else {
      at += 1;
    }
  }
  out.push(text.slice(plain));
  return out;
}

// Emphasis at a position: its end and element, or the position after a mark that has no end.
function marked(text, at, depth, open) {
  const found = MARKED.find(([mark]) => text.startsWith(mark, at));
  if (!found) return [at + 1, null];
  const [mark, tag] = found;
  const inside = at + mark.length;
  // `snake_case` and `2*3*4` are no emphasis.
  const isWord = mark !== '**' && mark !== '~~' && /\w/.test(text[at - 1] || '');
  if (depth > MARKDOWN_DEPTH || isWord || open.has(mark) || /\s|^$/.test(text[inside] || '')) return [inside, null];
  let end = text.indexOf(mark, inside + 1);
  // The end of `*a **b***` is the last one.
  while (mark.length === 1 && end >= 0 && text[end + 1] === mark) end = text.indexOf(mark, end + 2);
  if (end < 0) {
    open.add(mark);
    return [inside, null];
  }
  return [end + mark.length, h(tag, {}, inline(text.slice(inside, end), depth + 1))];
}

// Returns the address of a link that may be followed, or null.
function linkAddress(written) {
  try {
    const address = new URL(written);
    return LINK_SCHEMES.includes(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}

function anchor(href, shown) {
  return h('a', { href, rel: 'noopener noreferrer nofollow', target: '_blank' }, shown);
}

// A link shows where it leads. An image is a link, because a page loads nothing.
function linked([whole, image, label, written], depth) {
  const href = linkAddress(written);
  if (href === null) return whole;
  if (image) return [`image: ${label} `, anchor(href, href)];
  return label.trim() === href ? anchor(href, href) : [h('span', {}, inline(label, depth + 1)), ' (', anchor(href, href), ')'];
}

function bareLink([whole, written], at) {
  const isBracketed = whole.startsWith('<') && whole.endsWith('>');
  const address = isBracketed ? written : written.replace(/[).,;:!?*_~]+$/, '');
  const href = linkAddress(address);
  const end = at + (isBracketed ? whole.length : whole.indexOf(written) + address.length);
  return [end, href === null ? whole : [whole.startsWith('<') && !isBracketed ? '<' : '', anchor(href, href)]];
}
