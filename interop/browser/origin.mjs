// Tests what helps to correct and repeat a case: differences, source lines, links to the editor, copied texts, costs
// and filters.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { is, look, ok, open as openAt, within } from './looking.mjs';

const SUITE = `name: a text differs
tags: [texts]
turns:
  - user: "hello"
    assert:
      - { type: equals, value: "Hello. What may I do for them?" }
---
name: json differs
turns:
  - user: "json please"
    assert:
      - { type: equals, value: { a: 1, list: [1, 2, { b: "x" }], gone: true } }
---
name: "it's a $HOME and \`weather\`"
turns:
  - user: "How is the weather? $\${NOT_A_VARIABLE} \\\\ \\"quoted\\" # no comment \\u0085 \\u2028 \\ufeff"
    assert: { text: { must_match: "snow" } }
---
name: a large integer
turns: [{ user: "an integer" }]
`;

// Form of the comparison of calls, as reports contain it.
const COMPARISON = {
  summary: '0 of 1 call matching',
  missing: [{
    expected: 'book({"amount":3500})',
    nearest: {
      tool: 'book', turn: 1, id: 'c1', omitted: 2,
      differences: [
        { part: 'arguments', path: 'amount', expected: '3500', got: '350', reason: 'value' },
        { part: 'result', path: 'status', expected: '"ok"', got: null, reason: 'missing', note: 'the call failed' },
        { part: 'arguments', path: '<b>x</b>', expected: null, got: '"<img src=x onerror=alert(1)>"', reason: 'unexpected' },
      ],
    },
  }],
  lines: [{ text: 'turn 1: cancel({})', unexpected: true }],
};

// Writes a copy of a page with changed data of its first case.
export function withCase(folder, from, to, change) {
  const page = readFileSync(join(folder, from), 'utf8');
  const [start, end] = ['<script type="application/json" id="case-0">', '</script>'];
  const at = page.indexOf(start) + start.length;
  const stop = page.indexOf(end, at);
  const data = JSON.parse(page.slice(at, stop));
  change(data);
  writeFileSync(join(folder, to), page.slice(0, at) + JSON.stringify(data).replaceAll('<', '\\u003c') + page.slice(stop));
}

// Clicks a button that copies, and returns what it copied.
async function copied(page, label) {
  await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', {
    configurable: true, value: { writeText: async (text) => { window.copiedText = text; } },
  }));
  await page.click(`button:has-text("${label}")`);
  await page.waitForSelector('button:has-text("Copied")');
  return page.evaluate(() => window.copiedText);
}

export async function origins(browser, hotseat, folder, run) {
  writeFileSync(join(folder, 'origin.test.yaml'), SUITE);
  run('origin.test.yaml', '-o', 'origin.html');
  const open = (file, hash = '', options = {}) => openAt(browser, `file://${join(folder, file)}${hash}`, options);
  const link = (id) => `#${new URLSearchParams({ case: id })}`;
  const rows = (page) => page.$$eval('.check .differences tbody tr', (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  const execute = (...args) => spawnSync(hotseat, args, { cwd: folder, encoding: 'utf8' });

  await look('differences of texts, values and calls are shown', async () => {
    await within(await open('origin.html', link('a text differs')), async (page) => {
      is(await page.$$eval('.difference del', (all) => all.map((one) => one.textContent)), ['may', 'them'], 'expected');
      is(await page.$$eval('.difference ins', (all) => all.map((one) => one.textContent)), ['can', 'you'], 'got');
    });
    await within(await open('origin.html', link('json differs')), async (page) => {
      is(await rows(page), [['a', '1', '2'], ['list.2.b', '"x"', '"y"'], ['list.3', 'nothing', '4'], ['gone', 'true', 'missing'], ['more', 'nothing', 'null']], 'rows');
    });
    withCase(folder, 'origin.html', 'calls.html', ({ result }) => { result.turns[0].assertions[0].comparison = COMPARISON; });
    await within(await open('calls.html', link('a text differs')), async (page) => {
      is(await rows(page), [['amount', '3500', '350'], ['result: status', '"ok"', 'missing the call failed'], ['<b>x</b>', 'nothing', '"<img src=x onerror=alert(1)>"']], 'rows');
      is(await page.$$eval('.failure .differences tbody th', (all) => all.map((one) => one.textContent)), ['amount', 'result: status', '<b>x</b>'], 'rows of the failure');
      ok(!(await page.textContent('.failure')).includes('not allowed'), 'calls that were made are at the check only');
      const text = await page.textContent('.check .call-comparison');
      for (const part of ['0 of 1 call matching', 'nearest: book in turn 1', 'and 2 more', 'not allowed turn 1: cancel({})']) ok(text.includes(part), part);
    });
  });

  await look('words of a table of differences are not broken on a narrow page', async () => within(await open('calls.html', link('a text differs'), { viewport: { width: 360, height: 800 } }), async (page) => {
    const heights = await page.$$eval('.failure .differences thead th', (all) => all.map((one) => one.getBoundingClientRect().height));
    const line = await page.$eval('.failure .differences thead th', (one) => parseFloat(getComputedStyle(one).lineHeight) * 2);
    ok(heights.length === 3 && heights.every((height) => height < line), `heights ${heights}, less than two lines ${line}`);
    is(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, 'the page does not scroll sideways');
  }));

  await look('details of a check fit on a narrow page', async () => within(await open('origin.html', link('json differs'), { viewport: { width: 360, height: 800 } }), async (page) => {
    const beyond = await page.$$eval('.check dd', (all) => all.filter((one) => one.getBoundingClientRect().right > one.closest('.check').getBoundingClientRect().right).length);
    is(beyond, 0, 'details beyond the edge');
  }));

  await look('long and unlike texts are compared at a bounded cost', async () => {
    const long = (word) => Array.from({ length: 60000 }, (_, n) => `${word}${n}`).join(' ');
    withCase(folder, 'origin.html', 'long-texts.html', ({ result }) => {
      result.turns[0].assertions[0].value = `same ${long('a')} end`;
      result.turns[0].output = `same ${long('b')} end`;
    });
    await within(await open('long-texts.html', link('a text differs')), async (page) => {
      await page.waitForSelector('.difference');
      is(await page.$$eval('.difference > *', (all) => all.map((one) => one.tagName)), ['DEL', 'INS'], 'parts');
      ok((await page.textContent('.difference')).startsWith('same a0'), 'the common start');
    });
  });

  await look('a failed check shows its lines and links to the editor', async () => within(await open('origin.html', link('a text differs')), async (page) => {
    is(await page.$eval('.source-line.marked', (one) => one.textContent.trim()), '6      - { type: equals, value: "Hello. What may I do for them?" }', 'line');
    is(await page.textContent('.source mark'), '"Hello. What may I do for them?"', 'marked');
    const place = () => page.getAttribute('.check a.place', 'href');
    is(await place(), `vscode://file${folder}/origin.test.yaml:6:32`, 'default');
    await page.click('button:has-text("Settings")');
    await page.selectOption('select[name=editor]', 'idea');
    await page.fill('input[name=folder]', '/a folder/ü');
    await page.click('dialog[open] button:has-text("Save")');
    await page.waitForFunction(() => document.querySelector('.check a.place')?.href.startsWith('idea:'));
    is(await place(), 'idea://open?file=/a%20folder/%C3%BC/origin.test.yaml&line=6&column=32', 'chosen');
    await page.reload();
    await page.waitForSelector('.check a.place');
    is(await place(), 'idea://open?file=/a%20folder/%C3%BC/origin.test.yaml&line=6&column=32', 'kept');
    await page.click('button:has-text("Settings")');
    await page.selectOption('select[name=editor]', 'other');
    for (const bad of ['javascript://%0aalert({file})', 'data://{file}', 'editor://x', 'nothing']) {
      await page.fill('input[name=link]', bad);
      await page.click('dialog[open] button:has-text("Save")');
      ok((await page.textContent('dialog[open] [role=alert]')).includes('needs a scheme'), bad);
    }
    await page.fill('input[name=link]', 'editor://open/{file}#{line}');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('.check a.place')?.href.startsWith('editor:'));
    await page.evaluate(() => { localStorage.setItem('hotseat-editor', 'javascript://{file}'); localStorage.removeItem('hotseat-folder'); });
    await page.reload();
    await page.waitForSelector('.check a.place');
    ok((await place()).startsWith('vscode:'), 'what was tampered with is ignored');
    await page.click('button:has-text("Settings")');
    await page.selectOption('select[name=editor]', 'none');
    await page.click('dialog[open] button:has-text("Save")');
    await page.waitForSelector('.check code.place');
    is(await page.$$eval('a.place', (all) => all.length), 0, 'no links');
  }));

  await look('integers that JavaScript would round stay as they are', async () => {
    for (const label of ['Copy JSON', 'Copy as test']) {
      await within(await open('origin.html', link('a large integer')), async (page) => {
        ok((await page.textContent('main')).includes('{"order":1234567890123456789}'), 'shown');
        const text = await copied(page, label);
        for (const integer of ['1234567890123456789', ...(label === 'Copy JSON' ? ['-9223372036854775808'] : [])]) ok(text.includes(integer), text);
      });
    }
  });

  await look('a copied test case is valid, and says and expects what happened', async () => {
    for (const [file, id] of [['origin.html', 'a large integer'], ['origin.html', "it's a $HOME and `weather`"], ['page.html', '</script><!-- hostile'], ['page.html', 'the weather is looked up']]) {
      await within(await open(file, link(id)), async (page) => {
        const text = await copied(page, 'Copy as test');
        writeFileSync(join(folder, 'copied.test.yaml'), text);
        const listed = execute('list', 'copied.test.yaml', '--json');
        is(listed.status, 0, `${listed.stderr}${text}`);
        const ran = execute('test', 'copied.test.yaml', '-o', 'copied.json');
        is(ran.status, 0, `${ran.stdout}${text}`);
        const [result] = JSON.parse(readFileSync(join(folder, 'copied.json'), 'utf8')).results;
        const said = await page.evaluate(() => JSON.parse([...document.querySelectorAll('script[id^=case-]')].map((one) => one.textContent)
          .find((one) => JSON.parse(one).result.id === new URLSearchParams(location.hash.slice(1)).get('case'))).result.turns);
        is(result.turns.map((turn) => turn.input), said.map((turn) => turn.input), 'what is said');
        const calls = said.flatMap((turn) => turn.tool_calls);
        is(result.turns.flatMap((turn) => turn.assertions).length, calls.length, 'assertions');
      });
    }
  });

  await look('the copied command runs the case again', async () => {
    for (const id of ["it's a $HOME and `weather`", 'json differs']) {
      await within(await open('origin.html', link(id)), async (page) => {
        const command = await copied(page, 'Copy command');
        ok(command.startsWith(`${basename('hotseat')} test origin.test.yaml --run `), command);
        const env = { ...process.env, PATH: `${dirname(hotseat)}:${process.env.PATH}` };
        const ran = spawnSync('sh', ['-c', `${command} -o again.json`], { cwd: folder, encoding: 'utf8', env });
        is(ran.status, 1, `${command}\n${ran.stderr}`);
        is(JSON.parse(readFileSync(join(folder, 'again.json'), 'utf8')).results.map((one) => one.id), [id], 'what ran');
      });
    }
  });

  // One of the failures is the fault of the test.
  const faults = readFileSync(join(folder, 'page.html'), 'utf8').replace('"label":"failed"', '"label":"test error"');
  writeFileSync(join(folder, 'faults.html'), faults);
  await look('costs have their currency, and cases can be filtered by tag and result', async () => within(await open('faults.html'), async (page) => {
    is(await page.$$eval('.figure', (all) => all.filter((one) => one.textContent.startsWith('Cost')).map((one) => one.textContent)), ['Cost0.50 EUR'], 'figure');
    is(await page.$$eval('.parts .part.failed', (all) => all.map((one) => one.className.split(' ').at(-1)).sort()), ['magenta', 'red'], 'colours of the results');
    ok((await page.$$eval('.row .under', (all) => all.map((one) => one.textContent))).some((words) => words.startsWith('test error: ')), 'the word of the result');
    const colors = await page.$$eval('.row .mark.failed', (all) => all.map((one) => getComputedStyle(one).backgroundColor));
    is(new Set(colors).size, 2, 'different colours');
    await page.selectOption('select[data-key=label]', 'failed');
    await page.waitForFunction(() => document.querySelectorAll('.list .row').length === 2);
    await page.selectOption('select[data-key=tag]', 'failures');
    await page.waitForFunction(() => document.querySelectorAll('.list .row').length === 1);
    await page.goto(page.url().replace(/#.*/, link('the weather is looked up')));
    await page.waitForSelector('.facts-list');
    ok((await page.textContent('.facts-list')).includes('cost 0.25 EUR'), 'of the case');
  }));
}
