// Tests pages in a real browser: node look.mjs HOTSEAT CHROMIUM FOLDER. The last line is `PASSED FAILED`, two
// numbers.
import { chromium } from 'playwright-core';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cases } from './case.mjs';
import { live } from './live.mjs';
import { markdowns } from './markdown.mjs';
import { origins } from './origin.mjs';
import { savedRuns } from './runs.mjs';
import { counts, is, look, ok, open as openAt, within } from './looking.mjs';

const [hotseat, browserPath, folder] = process.argv.slice(2);
function run(...args) {
  const ran = spawnSync(hotseat, ['test', ...args], { cwd: folder, encoding: 'utf8' });
  if (![0, 1].includes(ran.status)) throw new Error(`hotseat ended with ${ran.status}: ${ran.stderr}`);
}

// ---- test data

writeFileSync(join(folder, 'hotseat.yaml'), 'target:\n  type: command\n  command: ["node", "agent.mjs"]\ncurrency: EUR\n');
run('pages.test.yaml', '-o', 'page.html', '-o', 'page.json', '--trace', 'page.jsonl');
run('pages.test.yaml', '--run', 'weather|fails', '--runs', '3', '-o', 'runs.html');

// Many cases: results of one run are copied under other names, since running one agent for all would be slow.
function many(count) {
  const page = readFileSync(join(folder, 'page.html'), 'utf8');
  const data = (id) => page.match(new RegExp(`<script type="application/json" id="${id}">([^]*?)</script>`))[1];
  const rows = JSON.parse(data('rows'));
  const harmless = (value) => JSON.stringify(value).replaceAll('<', '\\u003c');
  const kinds = [0, 1, 4];
  const all = Array.from({ length: count }, (_, index) => {
    const row = rows[kinds[index % kinds.length]];
    return { ...row, index, id: `case-${index}`, name: `${row.name}, number ${index}` };
  });
  const whole = all.map((row) => {
    const one = JSON.parse(data(`case-${kinds[row.index % kinds.length]}`));
    one.result = { ...one.result, index: row.index, id: row.id, name: row.name };
    return `<script type="application/json" id="case-${row.index}">${harmless(one)}</script>\n`;
  });
  const [head] = page.split('<script type="application/json" id="case-0">');
  const begin = head.split('<script type="application/json" id="rows">');
  const end = begin[1].slice(begin[1].indexOf('</script>'));
  writeFileSync(join(folder, 'many.html'),
    `${begin[0]}<script type="application/json" id="rows">${harmless(all)}${end}${whole.join('')}</body></html>`);
}
many(5000);

const browser = await chromium.launch({
  executablePath: browserPath,
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

const open = (file, hash = '', options = {}) => openAt(browser, `file://${join(folder, file)}${hash}`, options);
const names = (page) => page.$$eval('.list .row .name', (all) => all.map((one) => one.firstChild.textContent));
const until = (page, count) => page.waitForFunction((n) => document.querySelectorAll('.list .row').length === n, count);
const link = (id, more = '') => `#${new URLSearchParams({ case: id })}${more}`;

// ---- the overview

await look('counts, reasons and figures are those of the run', async () => within(await open('page.html'), async (page) => {
  const { summary } = JSON.parse(readFileSync(join(folder, 'page.json'), 'utf8'));
  const chips = await page.$$eval('.chip', (all) => all.map((one) => one.textContent.replace(/[^a-z0-9 ]/g, '').trim().replace(/ +/g, ' ')));
  is(chips, [`all ${summary.total}`, `failed ${summary.failed}`, `passed ${summary.passed}`, `skipped ${summary.skipped}`], 'chips');
  is(await page.$$eval('[aria-label="Why cases failed"] .meter b', (all) => all.map((one) => one.textContent)), ['2', '1'], 'reasons');
  is(await page.$$eval('[aria-label="Soft checks"] .meter b', (all) => all.map((one) => one.textContent.trim())), ['0.0% 0/1', '100.0% 1/1'], 'measured');
}));

await look('filters narrow the list, and the address keeps them', async () => within(await open('page.html'), async (page) => {
  await page.click('.chip:has-text("failed")');
  await until(page, 3);
  is(new URL(page.url()).hash, '#status=failed', 'address');
  await page.selectOption('select[data-key=kind]', 'agent_error');
  await until(page, 1);
  is(await names(page), ['the agent fails'], 'list');
  await page.reload();
  await until(page, 1);
  await page.click('.chip:has-text("all")');
  await page.selectOption('select[data-key=kind]', '');
  await page.selectOption('select[data-key=tag]', 'weather');
  await until(page, 2);
  await page.selectOption('select[data-key=sort]', 'name');
  is(await names(page), ['the weather is looked up', 'the weather is wrong'], 'sorted');
}));

await look('search finds names, failures and what was said', async () => within(await open('page.html'), async (page) => {
  await page.fill('.search input', 'looked up');
  await until(page, 1);
  await page.fill('.search input', 'exploded');
  await until(page, 1);
  await page.fill('.search input', 'clear in Paris');
  await until(page, 2);
  await page.fill('.search input', 'nobody says this');
  await until(page, 0);
}));

await look('the keyboard leads through it', async () => within(await open('page.html'), async (page) => {
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  const focused = await page.evaluate(() => document.activeElement.querySelector('.name').firstChild.textContent);
  is(focused, (await names(page))[1], 'the second row');
  await page.keyboard.press('k');
  await page.keyboard.press('Enter');
  await page.waitForSelector('article.case');
  is(await page.textContent('h1 span:last-child'), 'the weather is wrong', 'opened');
  await page.keyboard.press('j');
  await page.waitForFunction(() => document.querySelector('h1').textContent.includes('name'));
  await page.keyboard.press('Escape');
  await page.waitForSelector('.list .row');
  await page.keyboard.press('/');
  await page.waitForFunction(() => document.activeElement.type === 'search');
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.waitForSelector('dialog[open]');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog:not([open])', { state: 'attached' });
}));

// ---- a case

await look('checks stand at their turn, with what was expected and found', async () => within(await open('page.html', link('the weather is wrong')), async (page) => {
  is(await page.$$eval('#turn-1 .check', (all) => all.length), 0, 'checks of turn 1');
  const checks = await page.$$eval('#turn-2 .check', (all) => all.map((one) => [one.className, one.querySelector('details').open]));
  is(checks, [['check failed', true], ['check failed', true], ['check failed', true], ['check passed', false]], 'checks of turn 2');
  ok((await page.textContent('#turn-2 .check:nth-child(3) dl')).includes('It is 21 degrees'), 'what was found is shown');
  ok((await page.textContent('#turn-2 .check:nth-child(4)')).includes('informational'), 'what is informational says so');
}));

await look('what is folded unfolds', async () => within(await open('page.html', link('the weather is looked up')), async (page) => {
  is(await page.$$eval('.call pre', (all) => all.length), 0, 'nothing is made before');
  await page.click('.call summary');
  await page.waitForSelector('.call[open] pre');
  ok((await page.textContent('.call[open]')).includes('"degrees": 21'), 'the result is there');
  await page.keyboard.press('e');
  ok((await page.textContent('.chat .thought[open]')).includes('look it up first'), 'reasoning is there');
  await page.click('.events > summary');
  await page.waitForSelector('.event');
  ok((await page.textContent('.events')).includes('turn.started'), 'events are there');
}));

await look('bars stand where their events were', async () => within(await open('page.html', link('the weather is looked up')), async (page) => {
  const lines = readFileSync(join(folder, 'page.jsonl'), 'utf8').trim().split('\n').map((one) => JSON.parse(one));
  const begin = lines.findIndex((one) => one.type === 'case' && one.id === 'the weather is looked up');
  const rest = lines.slice(begin + 1);
  const end = rest.findIndex((one) => one.type === 'case');
  const events = end < 0 ? rest : rest.slice(0, end);
  const at = (type, id) => events.find((one) => one.type === type && (!id || one.payload.toolCallId === id)).offsetUs;
  const calls = events.filter((one) => one.type === 'tool.invoked').map((one) => one.payload.toolCallId);
  const wanted = [[at('tool.invoked', calls[0]), at('tool.completed', calls[0])], [at('tool.invoked', calls[1]), at('tool.failed', calls[1])]];
  const bars = await page.$$eval('.bar.tool', (all) => all.map((one) => [Number(one.dataset.start), Number(one.dataset.end)]));
  is(bars, wanted, 'times of the bars');
  ok(wanted[0][1] > wanted[0][0], 'the first tool took some time');
  // And they are drawn there.
  const turn = [at('turn.started'), at('turn.completed')];
  const drawn = await page.$$eval('.bar.tool', (all) => all.map((one) => {
    const [bar, track] = [one.getBoundingClientRect(), one.parentElement.getBoundingClientRect()];
    return [(bar.left - track.left) / track.width, bar.width / track.width];
  }));
  wanted.forEach(([from, to], place) => {
    const length = turn[1] - turn[0];
    ok(Math.abs(drawn[place][0] - (from - turn[0]) / length) < 0.01, `bar ${place} begins at ${drawn[place][0]}`);
    ok(Math.abs(drawn[place][1] - (to - from) / length) < 0.01, `bar ${place} is ${drawn[place][1]} long`);
  });
  ok((await page.$$('.bar.idle')).length > 0, 'gaps are shown');
}));

await look('what is hostile is text', async () => within(await open('page.html', link('</script><!-- hostile')), async (page) => {
  await page.keyboard.press('e');
  await page.waitForSelector('.call[open] pre');
  is(await page.evaluate(() => window.broken), undefined, 'what a script would have set');
  is(await page.$$eval('img, iframe, object, embed, .chat svg, .chat script, .chat b, .chat i', (all) => all.length), 0, 'elements of others');
  const text = await page.textContent('.said.agent .bubble');
  for (const part of ['<script>window.broken = 1</script>', '<!--', ']]>', '&lt;b&gt;', '␛[31mred', '👩‍👩‍👧‍👦', 'مرحبا', '\\u003cb']) {
    ok(text.includes(part), `${part} is shown`);
  }
  ok(!/[\u0000-\u0008\u001b\u009b\u202e\u2066]/.test(text), 'nothing steers');
  ok(!/[\u202e\u001b]/.test(await page.textContent('h1')), 'nor in the name');
  ok((await page.textContent('h1')).includes('<script>window.broken = 7</script>'), 'the name is whole');
}));

await look('a huge text is cut until somebody wants it', async () => within(await open('page.html', link('a huge text')), async (page) => {
  const length = () => page.$eval('.said.agent .words', (one) => one.textContent.length);
  ok((await length()) < 10000, 'the beginning first');
  await page.click('text=Show all');
  ok((await length()) > 280000, 'then all');
}));

await look('attempts stand by themselves and side by side', async () => within(await open('runs.html', link('the weather is wrong')), async (page) => {
  is(await page.$$eval('.tab', (all) => all.length), 4, 'tabs');
  await page.click('.tab:nth-child(3)');
  await page.waitForFunction(() => document.querySelector('.tab:nth-child(3)').getAttribute('aria-current') === 'true');
  await page.click('.tab:has-text("Side by side")');
  await page.waitForSelector('.columns');
  is(await page.$$eval('.heads .column', (all) => all.length), 3, 'columns');
}));

await look('dark follows the system and the switch', async () => {
  const ground = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const dark = await open('page.html', '', { colorScheme: 'dark' });
  const light = await open('page.html', '', { colorScheme: 'light' });
  const [night, day] = [await ground(dark), await ground(light)];
  ok(night !== day, 'two grounds');
  await light.keyboard.press('t');
  await light.keyboard.press('t');
  is(await ground(light), night, 'switched');
  await within(dark, async () => {});
  await within(light, async () => {});
});

await look('narrow pages do not scroll sideways', async () => {
  for (const hash of ['', link('the weather is wrong'), link('</script><!-- hostile')]) {
    await within(await open('page.html', hash, { viewport: { width: 360, height: 700 } }), async (page) => {
      ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${hash} fits`);
    });
  }
});

await look('on paper everything is unfolded', async () => within(await open('page.html', link('the weather is looked up')), async (page) => {
  await page.emulateMedia({ media: 'print' });
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  ok((await page.textContent('.chat')).includes('"degrees": 21'), 'results are there');
  is(await page.$eval('.case-nav', (one) => getComputedStyle(one).display), 'none', 'no navigation');
  await page.goto(`file://${join(folder, 'page.html')}${link('a huge text')}`);
  await page.waitForFunction(() => document.querySelector('h1').textContent.includes('huge'));
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  ok((await page.$eval('.said.agent .words', (one) => one.textContent.length)) > 280000, 'long texts are whole');
}));

await look('forced colors leave the areas that differ by their color', async () => {
  const colors = (page, selector) => page.$$eval(selector, (all) => [...new Set(all.map((one) => getComputedStyle(one).backgroundColor))]);
  await within(await open('page.html', '#status=failed', { forcedColors: 'active' }), async (page) => {
    ok((await colors(page, '.part, body')).length > 3, 'the parts of the bar');
    is((await colors(page, '.gauge, .gauge i')).length > 1, true, 'gauges');
    is(await page.$$eval('.chip', (all) => all.map((one) => getComputedStyle(one).outlineStyle === 'solid')), [false, true, false, false], 'the chosen chip');
  });
  await within(await open('page.html', link('the weather is looked up'), { forcedColors: 'active' }), async (page) => {
    ok((await colors(page, '.bar.tool')).every((color) => !/255, 255, 255|rgb\(0, 0, 0\)/.test(color)), 'bars of the timeline');
  });
});

// ---- 5,000 cases

const LIMIT = { paint: 3000, open: 5000, key: 300, filter: 500, frame: 500 };

await look(`5,000 cases are painted within ${LIMIT.paint} ms, and filters, keystrokes and scrolling take at most ${LIMIT.filter}, ${LIMIT.key} and ${LIMIT.frame} ms`, async () => {
  const begin = performance.now();
  const page = await open('many.html');
  await page.waitForSelector('.list .row');
  const opened = Math.round(performance.now() - begin);
  ok((await page.$$('.list .row')).length < 60, 'only what is looked at is in the page');
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
  const filter = await page.evaluate(async () => {
    const begin = performance.now();
    document.querySelectorAll('.chip')[1].click();
    document.querySelector('.list').getBoundingClientRect();
    return performance.now() - begin;
  });
  const found = await page.textContent('.found');
  ok(/of 5,000 cases/.test(found), found);
  // A keystroke filters after a pause; the longest task of the page from there on is what a user feels.
  const longest = (act, wait) => page.evaluate(async ([body, pause]) => {
    let most = 0;
    let last = performance.now();
    let on = true;
    const watch = () => {
      const now = performance.now();
      most = Math.max(most, now - last);
      last = now;
      if (on) setTimeout(watch);
    };
    watch();
    await window[body]();
    await new Promise((resolve) => setTimeout(resolve, pause));
    on = false;
    return most;
  }, [act, wait]);
  await page.evaluate(() => {
    window.typing = async () => {
      const search = document.querySelector('.search input');
      for (const text of ['w', 'we', 'wea', 'weather', 'weather is w']) {
        search.value = text;
        search.dispatchEvent(new Event('input', { bubbles: true }));
        await new Promise((resolve) => setTimeout(resolve, 160));
      }
      search.value = '';
      search.dispatchEvent(new Event('input', { bubbles: true }));
    };
    window.scrolling = async () => {
      for (let at = 0; at < document.body.scrollHeight; at += Math.ceil(document.body.scrollHeight / 60)) {
        scrollTo(0, at);
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
      scrollTo(0, document.body.scrollHeight);
    };
  });
  const key = await longest('typing', 600);
  const frame = await longest('scrolling', 100);
  await page.waitForFunction(() => [...document.querySelectorAll('.list .row')].some((one) => one.getAttribute('aria-posinset') === one.getAttribute('aria-setsize')));
  const size = Math.round(readFileSync(join(folder, 'many.html')).length / 1e6);
  console.log(`       painted in ${Math.round(paint)} ms, open in ${opened} ms, filtered in ${Math.round(filter)} ms, keystroke ${Math.round(key)} ms, scroll ${Math.round(frame)} ms, ${size} MB`);
  ok(paint < LIMIT.paint, `it took ${paint} ms to paint`);
  ok(opened < LIMIT.open, `it took ${opened} ms to open`);
  ok(filter < LIMIT.filter, `it took ${filter} ms to filter`);
  ok(key < LIMIT.key, `a keystroke blocks for ${key} ms`);
  ok(frame < LIMIT.frame, `scrolling blocks for ${frame} ms`);
  await within(page, async () => {});
});

await cases(browser, folder, run);
await origins(browser, hotseat, folder, run);
await markdowns(browser, folder);
await savedRuns(browser, hotseat, folder, run);
await live(browser, hotseat, folder);
await browser.close();
console.log(counts());
