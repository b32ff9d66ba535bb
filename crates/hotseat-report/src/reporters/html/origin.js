// Where a case comes from: its file, the line of a check, and texts that help to repeat or keep it.

// The place of a check in its file, as a link to the editor, with its line.
function definedAt(place, source, sources) {
  const name = `${place.file}:${place.line}${place.column ? `:${place.column}` : ''}`;
  const href = editorLink(source, place);
  const found = (sources || []).find((one) => one.file === place.file && one.line === place.line && (!place.column || one.column === place.column));
  return [href ? h('a.place', { href, title: 'Open in the editor' }, h('code', {}, name)) : h('code.place', {}, name), found && sourceLine(found)];
}

function sourceLine({ text, line, marked: [from, to] }) {
  const chars = [...text];
  return h('pre.source', { tabindex: '0', 'aria-label': 'Source' }, h('span.source-line.marked', {},
    h('span.number', { 'aria-hidden': 'true' }, line), chars.slice(0, from).join(''), h('mark', {}, chars.slice(from, to).join('')), chars.slice(to).join(''), '\n'));
}

// Texts in a test case may contain variables, and YAML has characters that must be escaped.
function yamlText(text) {
  return JSON.stringify(String(text).toWellFormed().replaceAll('${', () => '$${')).replace(YAML_ESCAPED, yamlEscape);
}

const YAML_ESCAPED = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]/g;

function yamlEscape(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

// Writes a value on one line, as JSON, which YAML reads.
function yamlValue(value) {
  if (typeof value === 'string') return yamlText(value);
  if (Array.isArray(value)) return `[${value.map(yamlValue).join(', ')}]`;
  if (value && typeof value === 'object' && !isRaw(value)) {
    return `{ ${Object.entries(value).map(([name, of]) => `${yamlText(name)}: ${yamlValue(of)}`).join(', ')} }`;
  }
  return JSON.stringify(value ?? null);
}

// Writes an attempt as a test case in YAML: what the user said, and the calls that the agent made. Answers are
// comments, because agents rephrase them.
function asTestCase(result, one) {
  const out = [`name: ${yamlText(`${result.name} (recorded)`)}`];
  if (result.tags?.length) out.push(`tags: ${yamlValue(result.tags)}`);
  out.push('turns:');
  for (const turn of (one.turns || []).filter((held) => held.start_ts !== undefined)) {
    out.push(`  - user: ${yamlText(turn.input ?? '')}`);
    const resume = (turn.interrupts || []).filter((asked) => asked.status && !asked.server).map((asked) =>
      ({ ...(asked.status === 'cancelled' ? { status: 'cancelled' } : asked.payload === undefined ? {} : { payload: asked.payload }), once: true }));
    if (resume.length) out.push(`    resume: ${yamlValue(resume)}`);
    const calls = new Map();
    for (const call of turn.tool_calls || []) {
      const hasArguments = !call.args_broken && call.args && typeof call.args === 'object' && !Array.isArray(call.args);
      const check = { type: 'tool_called', name: call.name, ...(hasArguments ? { arguments: call.args } : {}) };
      calls.set(JSON.stringify(check), check);
    }
    if (calls.size) out.push('    assert:', ...[...calls.values()].map((check) => `      - ${yamlValue(check)}`));
    if (turn.output) out.push(`    # answered: ${harmless(line(turn.output, 200))}`);
  }
  return `${out.join('\n')}\n`;
}
