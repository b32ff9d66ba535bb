// Attempts side by side: a row for each turn, in which everything that differs from the first attempt is marked.

// Returns the messages and calls of a turn that differ from those of another one, and those that it lacks.
function turnDifferences(base, turn) {
  const groups = (of) => {
    const all = new Map();
    for (const item of of?.items || []) {
      const key = item.call ? `call ${item.call.name}` : ['message.assistant', 'message.user'].includes(item.type) ? item.type : null;
      if (key) all.set(key, [...(all.get(key) || []), item]);
    }
    return all;
  };
  const [before, after] = [groups(base), groups(turn)];
  const found = { changed: new Map(), added: new Set(), missing: [] };
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    const [one, other] = [before.get(key) || [], after.get(key) || []];
    for (let at = 0; at < Math.max(one.length, other.length); at += 1) {
      if (!other[at]) found.missing.push(one[at]);
      else if (!one[at]) found.added.add(other[at]);
      else if (!sameItem(one[at], other[at])) found.changed.set(other[at], one[at]);
    }
  }
  found.any = found.changed.size + found.added.size + found.missing.length > 0;
  return found;
}

function sameItem(one, other) {
  if (one.call) return ('error' in one.call) === ('error' in other.call) && !valueDiff(one.call.args, other.call.args).length;
  return one.payload.content.trim().split(/\s+/).join(' ') === other.payload.content.trim().split(/\s+/).join(' ');
}

// One message or call; what differs is shown inside it.
function comparedItem(item, found) {
  const base = found.changed.get(item);
  const shown = saidItem(item);
  if (found.added.has(item)) {
    shown.classList.add('differs');
    return [shown, h('p.note.differs-note', {}, 'only here')];
  }
  if (!base) return shown;
  if (!item.call) {
    const side = item.type === 'message.user' ? 'user' : 'agent';
    return h(`div.said.differs.${side}`, {}, h('div.who', {}, side === 'user' ? 'User' : agentOf(item)), textDifference(base.payload.content, item.payload.content));
  }
  shown.classList.add('differs');
  const rows = valueDiff(base.call.args, item.call.args).map(({ path, expected, got }) => ({ path, expected: asText(expected), got: asText(got) }));
  return [shown, rows.length > 0 && differenceTable(rows, 0, [['First', 'missing'], ['Here', 'missing']]),
    ('error' in base.call) !== ('error' in item.call) && h('p.note.differs-note', {}, 'error' in item.call ? 'fails only here' : 'fails in the first')];
}

// All attempts of a case. `parts` has the result of each attempt, its turns and its name.
function attemptsBeside(parts, origin) {
  const [first] = parts;
  const numbers = [...new Set(parts.flatMap(({ turns }) => turns.map((turn) => turn.number)))].sort((a, b) => a - b);
  const turnOf = (part, n) => part.turns.find((turn) => turn.number === n);
  const recordOf = (part, n) => (part.one.turns || []).find((turn) => turn.turn === n);
  const rows = numbers.map((n) => {
    const found = parts.map((part) => (part === first ? { changed: new Map(), added: new Set(), missing: [] } : turnDifferences(turnOf(first, n), turnOf(part, n))));
    return { n, found, differs: found.some((one) => one.any), failed: parts.some((part) => recordOf(part, n)?.status === 'failed') };
  });
  const row = ({ n, found, differs, failed }) => fold({ class: 'turn beside-turn', open: differs || failed }, [
    h('h3', {}, `Turn ${n}`), h(`span.tag${differs ? '.differs-tag' : ''}`, {}, differs ? 'differs' : 'the same in all')],
  () => h('div.columns', {}, parts.map((part, at) => {
    const turn = turnOf(part, n);
    const record = recordOf(part, n);
    return h('div.column', {}, turn ? turn.items.map((item) => comparedItem(item, found[at])) : h('p.note', {}, 'no such turn'),
      found[at].missing.map((item) => h('p.note.differs-note', {}, item.call ? `no such call of ${item.call.name}` : 'no such message')),
      record?.error && h('p.trouble', {}, record.error), checks(record?.assertions, origin, null, record?.output));
  })));
  const firstDifference = (at) => rows.find(({ found }) => found[at].any)?.n;
  return h('div.beside', {},
    h('div.columns.heads', {}, parts.map(({ one, name }, at) => h('div.column', {},
      h('h2', {}, resultMark(one), ` ${name}`),
      h('p.facts', {}, [duration(one.duration_ms), at === 0 ? 'the others are compared with this one'
        : firstDifference(at) ? `first difference in turn ${firstDifference(at)}` : 'no difference'].join(' · ')),
      one.failure && failure(one, one.failure, one.label)))),
    rows.map(row),
    parts.some(({ one }) => wholeChecks(one).length) && h('section', { 'aria-label': 'Checks of the whole conversation' },
      h('header.section-head', {}, h('h2', {}, 'The whole conversation')),
      h('div.columns', {}, parts.map(({ one }) => h('div.column', {}, checks(wholeChecks(one), origin))))));
}
