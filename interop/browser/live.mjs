// Tests the page of a running run: `hotseat view` serves it, and an agent blocks until this script releases
// it.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { is, look, ok, open, within } from './looking.mjs';

const HELLOS = 10;
const CASES = [
  ...Array.from({ length: HELLOS }, (_, n) => ['hello', `greets, number ${n + 1}`, 'Hello']),
  ['How is the weather?', 'looks something up', '21'],
  ['first gate', 'stands still once', 'open'],
  ...Array.from({ length: 3 }, (_, n) => ['hello', `is wrong, number ${n + 1}`, 'never']),
  ['second gate', 'stands still twice', 'open'],
  ...Array.from({ length: 2 }, (_, n) => ['hello', `is wrong once more, number ${n + 1}`, 'never']),
  [['hostile', 'huge', 'third gate'], 'stands still a third time', 'open'],
];

const suite = CASES.map(([users, name, word]) => {
  const turns = [users].flat().map((user, at, all) => (at < all.length - 1 ? `{ user: "${user}" }` : `{ user: "${user}", assert: { text: { must_match: "${word}" } } }`));
  return `---\nname: "${name}"\ntags: ["${word}"]\nturns: [${turns.join(', ')}]\n`;
}).join('');

// A running program and its output.
function start(program, args, folder) {
  const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  const waiting = [];
  const look = () => waiting.forEach((one) => one());
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => { printed += data; look(); });
  const ended = new Promise((resolve) => child.on('close', resolve));
  return {
    child, ended,
    said: (pattern) => new Promise((resolve, reject) => {
      const found = () => { const match = printed.match(pattern); if (match) resolve(match); };
      waiting.push(found);
      child.on('close', () => reject(new Error(`it ended, and printed ${printed}`)));
      found();
    }),
  };
}

const rowNames = (page) => page.$$eval('.list .row', (all) => all
  .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top).map((one) => one.querySelector('.name').firstChild.textContent));
const chip = (page, status) => page.$eval(`.chip:has-text("${status}") b`, (one) => one.textContent);
const chipSays = (page, status, words) => page.waitForFunction(([of, wanted]) =>
  [...document.querySelectorAll('.chip')].some((one) => one.textContent.includes(` ${of} `) && one.querySelector('b').textContent === wanted), [status, words]);
const runs = (page, name) => page.waitForFunction((wanted) =>
  [...document.querySelectorAll('.row')].some((row) => row.querySelector('.mark.running') && row.textContent.includes(wanted)), name);
// Waits until the page has received and drawn the state of this case; timers run in order.
async function told(page, name, status) {
  await page.waitForResponse(async (response) => {
    if (!/\/api\/runs\/[0-9a-f]+\?/.test(response.url())) return false;
    const { rows } = await response.json();
    return rows.some((row) => row.name === name && row.status === status);
  });
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 500)));
}

export async function live(browser, hotseat, folder) {
  writeFileSync(join(folder, 'live.test.yaml'), suite);
  const gate = (name) => writeFileSync(join(folder, `${name} gate`), '');
  const view = start(hotseat, ['view'], folder);
  const [address] = await view.said(/http:\S+/);
  let run;

  await look('a run that begins is announced, and followed', async () => {
    const page = await open(browser, address);
    await page.waitForSelector('.list .row');
    run = start(hotseat, ['test', 'live.test.yaml', '--parallel', '1'], folder);
    await page.waitForSelector('.banner a');
    await page.click('.banner a');
    await runs(page, 'stands still once');
    is(await chip(page, 'passed'), String(HELLOS + 1), 'passed');
    ok((await page.textContent('.how-far')).includes(`Running: ${HELLOS + 1} of ${CASES.length} cases have ended.`), 'how far it is');
    is((await rowNames(page))[0], 'stands still once', 'what goes on stands first');
    ok((await page.title()).startsWith('… '), 'and the title says so');
    ok(!(await page.$('.banner p')), 'the notice is gone');
    await within(page, async () => {});
  });

  await look('an open case and the filters stay as they are', async () => within(await open(browser, address), async (page) => {
    await runs(page, 'stands still once');
    await page.click('.chip:has-text("passed")');
    await page.click('.row:has-text("looks something up")');
    await page.waitForSelector('article.case .call');
    await page.click('.call summary');
    await page.waitForSelector('.call[open] pre');
    await page.evaluate(() => { window.kept = document.querySelector('article.case'); scrollTo(0, 120); });
    const scrolled = await page.evaluate(() => scrollY);
    const news = told(page, 'is wrong, number 3', 'failed');
    gate('first');
    await news;
    ok(await page.evaluate(() => window.kept === document.querySelector('article.case')), 'it is the same element');
    ok(await page.$('.call[open] pre'), 'what was unfolded is unfolded');
    is(await page.evaluate(() => scrollY), scrolled, 'scrolled');
    await page.keyboard.press('Escape');
    await chipSays(page, 'failed', '3');
    is(new URL(page.url()).hash, '#status=passed', 'filter');
    is(await page.getAttribute('.chip:has-text("passed")', 'aria-pressed'), 'true', 'its chip');
    is(await page.$$eval('.row .mark', (all) => [...new Set(all.map((one) => one.className))]), ['mark passed'], 'what is listed');
  }));

  await look('what somebody looks at in the list does not move, and a list of choices stays', async () => within(
    await open(browser, address, { viewport: { width: 1000, height: 520 } }), async (page) => {
      await runs(page, 'stands still twice');
      await page.focus('select[data-key=sort]');
      await page.evaluate(() => {
        window.select = document.activeElement;
        scrollTo(0, document.querySelector('.list').getBoundingClientRect().top + scrollY + 150);
      });
      const row = () => page.evaluate(() => {
        const bar = document.querySelector('.toolbar').getBoundingClientRect().bottom;
        const all = [...document.querySelectorAll('.row')].filter((one) => one.getBoundingClientRect().top >= bar)
          .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
        return [all[0].dataset.index, Math.round(all[0].getBoundingClientRect().top)];
      });
      const before = await row();
      const news = told(page, 'is wrong once more, number 2', 'failed');
      gate('second');
      await news;
      await chipSays(page, 'failed', '5');
      is(await row(), before, 'the first row that is seen, and where');
      ok(await page.evaluate(() => window.select === document.activeElement && window.select.isConnected), 'the list of choices keeps its focus');
    }));

  await look('the overview shows what is running now, with the elapsed time', async () => within(await open(browser, address), async (page) => {
    await runs(page, 'stands still a third time');
    await page.waitForSelector('.running-now .live-row');
    const panel = await page.textContent('.running-now');
    ok(panel.includes('Running now 1') && panel.includes('stands still a third time') && panel.includes('turn 3'), panel);
    ok(/\d+ s$/.test(await page.textContent('.live-row .elapsed')), 'the elapsed time');
    const before = await page.textContent('.live-row .elapsed');
    await page.waitForFunction((old) => document.querySelector('.live-row .elapsed').textContent !== old, before);
    await page.click('.live-row');
    await page.waitForSelector('.transcript .turn');
  }));

  for (const [scheme, width] of [['light', 1280], ['dark', 400]]) {
    await look(`the turns of a running case come while it runs: ${scheme}, ${width} px`, async () => within(
      await open(browser, address, { viewport: { width, height: 800 }, colorScheme: scheme }), async (page) => {
        await runs(page, 'stands still a third time');
        await page.click('.row:has-text("stands still a third time")');
        await page.waitForFunction(() => document.querySelectorAll('.transcript .turn').length === 3);
        is(await page.$$eval('.transcript .turn h3', (all) => all.map((one) => one.textContent)), ['Turn 1', 'Turn 2', 'Turn 3'], 'turns');
        ok(await page.$('.transcript .call'), 'the call of the first turn');
        const place = await page.$eval('.transcript .chat', (one) => ({ width: one.offsetWidth, top: one.getBoundingClientRect().top + scrollY }));
        ok(place.width > 300 && place.top > 150, 'the conversation is below the head of the case');
        is(await page.$$eval('.transcript .said.user .words', (all) => all.map((one) => one.textContent)), ['hostile', 'huge', 'third gate'], 'inputs');
        is(await page.evaluate(() => window.broken), undefined, 'no hostile text is executed');
        is(await page.$$('.transcript script, .transcript img, .transcript svg'), [], 'or becomes an element');
        const longest = await page.$$eval('.transcript .words', (all) => Math.max(...all.map((one) => one.textContent.length)));
        ok(longest < 3000, `long texts are shortened: ${longest}`);
        ok((await page.textContent('.transcript .turn:last-child .facts')).includes('waiting for the agent'), 'the open turn');
        const before = await page.textContent('.transcript .elapsed');
        await page.evaluate(() => { window.kept = document.querySelector('.transcript .turn'); });
        await page.waitForFunction((old) => document.querySelector('.transcript .elapsed').textContent !== old, before);
        ok(await page.evaluate(() => window.kept.isConnected), 'without a reload, the same elements');
        await page.focus('.transcript .turn summary');
        await page.keyboard.press('Enter');
        const folded = await page.textContent('.transcript .elapsed');
        await page.waitForFunction((old) => document.querySelector('.transcript .elapsed').textContent !== old, folded);
        is(await page.$$eval('.transcript .turn', (all) => all.map((one) => one.open)), [false, true, true], 'a folded turn stays folded');
        ok(await page.evaluate(() => document.activeElement === window.kept.firstChild), 'and its summary keeps the focus');
        ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the page does not scroll sideways');
      }));
  }

  await look('a case that goes on shows its conversation when it has ended', async () => within(await open(browser, address), async (page) => {
    await runs(page, 'stands still a third time');
    await page.click('.row:has-text("stands still a third time")');
    await page.waitForSelector('.begun');
    ok((await page.textContent('.begun')).includes('This case is running.'), 'it says so');
    gate('third');
    await page.waitForSelector('.said.agent');
    await page.waitForFunction(() => [...document.querySelectorAll('.said.agent')].some((one) => one.textContent.includes('The third gate is open.')));
    is(await run.ended, 1, 'the exit code of the run');
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => document.querySelector('.chip') && !document.querySelector('.how-far') && !document.querySelector('.mark.running'));
    is(await page.$$eval('.chip b', (all) => all.map((one) => one.textContent)), ['19', '5', '14'], 'all, failed, passed');
  }));

  await look('words of conversations are found by the server', async () => within(await open(browser, address), async (page) => {
    await page.fill('.search input', 'the FIRST gate is');
    await page.waitForFunction(() => document.querySelectorAll('.row').length === 1);
    is(await rowNames(page), ['stands still once'], 'found');
    let release;
    await page.route(/\/search\?/, (route) => { release = () => route.continue(); });
    await page.fill('.search input', 'in no conversation');
    await page.waitForFunction(() => document.querySelector('.found').textContent.includes('searching the conversations …'));
    ok(!(await page.textContent('.found')).includes('no case matches'), 'no answer before the search has ended');
    release();
    await page.waitForFunction(() => document.querySelector('.found').textContent.endsWith('no case matches'));
  }));

  await look('a page that is loading says so', async () => {
    const page = await browser.newPage();
    let release;
    const isLoaded = new Promise((resolve) => { release = resolve; });
    let requests = 0;
    await page.route(/\/api\/runs?\b[^/]*(\/\w+)?\?after=/, async (route) => {
      requests += 1;
      if (requests > 1) await isLoaded;
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json()), more: requests === 1 } });
    });
    await page.goto(address);
    await page.waitForFunction(() => document.querySelector('.found')?.textContent.endsWith('loading …'));
    release();
    await page.waitForFunction(() => /cases$/.test(document.querySelector('.found').textContent));
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.close();
  });

  await look('other runs are listed, and one click away', async () => within(await open(browser, address), async (page) => {
    await page.keyboard.press('r');
    await page.waitForSelector('.run');
    ok((await page.$$('.run')).length >= 3, 'all runs');
    is(await page.$$eval('.run', (all) => all.findIndex((one) => one.hasAttribute('aria-current'))), 0, 'the one that is shown');
    ok((await page.textContent('.run')).includes('14 passed, 5 failed'), 'what it came to');
    await page.click('li:nth-child(2) > .run');
    await page.waitForSelector('.list .row');
    ok(/\/runs\/[0-9a-f]{12}$/.test(page.url()), page.url());
    ok(!(await rowNames(page)).includes('stands still once'), 'another run');
  }));

  await look('narrow and dark pages fit', async () => {
    for (const hash of ['', '#runs', '#case=looks+something+up']) {
      const page = await open(browser, `${address}${hash}`, { viewport: { width: 360, height: 700 }, colorScheme: 'dark' });
      await page.waitForSelector('.row, .run, article.case');
      ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${hash} fits`);
      await within(page, async () => {});
    }
  });

  await look('what is hostile is text here, too', async () => within(await open(browser, address), async (page) => {
    const { runs: all } = await page.evaluate(() => fetch('/api/runs').then((answer) => answer.json()));
    const hostile = all.find((one) => one.inputs.includes('pages.test.yaml') && one.total === 6);
    await page.goto(`${address}runs/${hostile.id}#${new URLSearchParams({ case: '</script><!-- hostile' })}`);
    await page.waitForSelector('.said.agent .bubble');
    is(await page.evaluate(() => window.broken), undefined, 'what a script would have set');
    ok((await page.textContent('.said.agent .bubble')).includes('<script>window.broken = 1</script>'), 'it is shown');
  }));

  await look('a server that is gone is missed in words, and ends with 0', async () => {
    const page = await open(browser, address);
    await page.waitForSelector('.list .row');
    view.child.kill('SIGINT');
    is(await view.ended, 0, 'exit code');
    await page.waitForSelector('.banner .bad');
    ok((await page.textContent('.banner')).includes('does not answer any more'), 'words');
    ok((await page.$$('.list .row')).length > 0, 'what was shown stays');
    await page.close();
  });
}
