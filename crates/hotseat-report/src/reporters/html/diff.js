// Differences of texts and of values, with bounds on their cost.

// Maximum size of the table that compares two texts word by word.
const DIFF_CELLS = 2_000_000;
// Maximum number of differing values, and maximum depth of a path.
const DIFFERENCES_SHOWN = 50;
const DIFF_DEPTH = 40;

function wordsOf(text) {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
}

// Returns the parts of two texts in order: `same`, `removed` from the first, `added` by the second. Texts that are
// too different or too long are one removed and one added part between their common ends.
function textDiff(before, after) {
  const [a, b] = [wordsOf(before), wordsOf(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const [left, right] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const parts = [];
  const push = (kind, all) => {
    const text = all.join('');
    if (!text) return;
    if (parts.at(-1)?.kind === kind) parts.at(-1).text += text;
    else parts.push({ kind, text });
  };
  push('same', a.slice(0, start));
  if (left.length * right.length > DIFF_CELLS) {
    push('removed', left);
    push('added', right);
  } else {
    longestCommon(left, right, push);
  }
  push('same', a.slice(a.length - end));
  return parts;
}

// Reports the parts of two lists of words by their longest common subsequence.
function longestCommon(left, right, push) {
  const width = right.length + 1;
  const lengths = new Uint16Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = left[i] === right[j]
        ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      push('same', [left[i]]);
      i += 1;
      j += 1;
    } else if (j >= right.length || (i < left.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) {
      push('removed', [left[i]]);
      i += 1;
    } else {
      push('added', [right[j]]);
      j += 1;
    }
  }
}

// Shows two texts in one: removed and added words are marked.
function textDifference(before, after) {
  return h('div.difference.words', { dir: 'auto' }, textDiff(before, after).map(({ kind, text }) =>
    (kind === 'same' ? text : h(kind === 'removed' ? 'del' : 'ins', {}, text))));
}

// Returns the values that differ, each with its path. `undefined` stands for a missing value.
function valueDiff(before, after) {
  const found = [];
  const visit = (path, one, other, depth) => {
    if (found.length > DIFFERENCES_SHOWN) return;
    const both = [one, other].every((value) => value !== null && typeof value === 'object' && !isRaw(value));
    if (!both || Array.isArray(one) !== Array.isArray(other) || depth > DIFF_DEPTH) {
      if (JSON.stringify(one) !== JSON.stringify(other)) found.push({ path, expected: one, got: other });
      return;
    }
    const inner = (key) => (path ? `${path}.${key}` : key);
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
      visit(inner(key), Object.hasOwn(one, key) ? one[key] : undefined, Object.hasOwn(other, key) ? other[key] : undefined, depth + 1);
    }
  };
  visit('', before, after, 0);
  return found;
}

// Columns of a table of differing values, each with the word for a value that is not there.
const CHECK_COLUMNS = [['Expected', 'nothing'], ['Got', 'missing']];

// Table of differing values: `{path, expected, got, note}` with texts; a missing text is a missing value.
function differenceTable(rows, omitted = 0, [first, second] = CHECK_COLUMNS) {
  const shown = rows.slice(0, DIFFERENCES_SHOWN);
  const more = omitted + rows.length - shown.length;
  const cell = (tag, text, absent, note) => h('td', {},
    text === undefined || text === null ? h('i.absent', {}, absent) : h(tag, {}, words(text, 'span.words')),
    note && [' ', h('div.note', {}, note)]);
  return h('div.scrolls', {}, h('table.differences', {},
    h('thead', {}, h('tr', {}, ['Value', first[0], second[0]].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, shown.map((row) => h('tr', {}, h('th', { scope: 'row' }, row.path || 'the whole value'),
      cell('del', row.expected, first[1]), cell('ins', row.got, second[1], row.note))))),
  more > 0 && h('p.note', {}, `and ${number(more)} more`));
}

function asText(value) {
  return value === undefined ? undefined : JSON.stringify(value);
}

// What a failed check expected, beside what it got. Null if its two texts say everything.
function checkDifference(check, answer) {
  if (check.comparison) return callComparison(check.comparison);
  if (check.type !== 'equals' || check.negate || check.error || typeof answer !== 'string') return null;
  if (typeof check.value === 'string') return textDifference(check.value, answer);
  try {
    const rows = valueDiff(check.value, readJson(answer));
    return differenceTable(rows.map(({ path, expected, got }) => ({ path, expected: asText(expected), got: asText(got) })));
  } catch {
    return null;
  }
}

// Expected calls without a match, each with the nearest call, and further lines: the calls that were made.
function callComparison({ summary, missing = [], lines = [], omitted = 0 }) {
  const path = (row) => [row.part === 'result' && 'result', row.path].filter(Boolean).join(': ');
  return h('div.call-comparison', {}, h('p', {}, summary),
    missing.map(({ expected, nearest }) => [
      h('p', {}, expected && [h('b', {}, 'missing '), words(expected, 'span.words')], nearest && h('span.facts', {}, ` nearest: ${nearest.tool} in turn ${nearest.turn}`)),
      nearest && differenceTable((nearest.differences || []).map((row) => ({ ...row, path: path(row) })), nearest.omitted)]),
    lines.length > 0 && h('ul', {}, lines.map((made) => h('li', {}, made.unexpected && h('b.bad', {}, 'not allowed '), words(made.text, 'span.words')))),
    omitted > 0 && h('p.note', {}, `and ${number(omitted)} more`));
}
