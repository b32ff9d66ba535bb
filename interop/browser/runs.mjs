// Tests attempts side by side, the comparison of two saved runs and the course of all runs.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { is, look, ok, open, within } from './looking.mjs';

const SUITE = `name: it varies
turns:
  - user: "hello"
  - user: "vary, please"
    assert: { text: { must_match: "number 1" } }
---
name: it greets
turns: [{ user: "hello", assert: { text: { must_match: "Hello" } } }]
---
name: it looks up
turns: [{ user: "vary, please" }]
`;

export async function savedRuns(browser, hotseat, folder, run) {
  writeFileSync(join(folder, 'varies.test.yaml'), SUITE);
  const begin = () => rmSync(join(folder, 'varies.count'), { force: true });
  begin();
  run('varies.test.yaml', '--run', 'it varies', '--runs', '3', '--parallel', '1', '-o', 'varies.html');

  await look('attempts side by side show what differs', async () => {
    for (const viewport of [{ width: 1280, height: 900 }, { width: 400, height: 800 }]) {
      const page = await open(browser, `file://${join(folder, 'varies.html')}#case=it+varies&attempt=all`, { viewport });
      await page.waitForSelector('.beside');
      const facts = await page.$$eval('.heads .facts', (all) => all.map((one) => one.textContent.split(' · ')[1]));
      is(facts, ['the others are compared with this one', 'first difference in turn 2', 'first difference in turn 2'], 'columns');
      is(await page.$$eval('.beside-turn', (all) => all.map((one) => one.open)), [false, true], 'what is the same is folded');
      const second = '.beside-turn[open] .column:nth-child(2)';
      is(await page.$$eval(`${second} .difference :is(del, ins)`, (all) => all.map((one) => one.textContent)), ['1', '2'], 'words');
      is(await page.$$eval(`${second} .differences tbody tr`, (all) => all.map((one) => one.textContent)), ['n12'], 'arguments');
      ok((await page.textContent(second)).includes('only here'), 'a further call');
      is((await page.$$('.beside-turn[open] .column:nth-child(1) .differs')).length, 0, 'the first is unmarked');
      ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the page does not scroll sideways');
      await within(page, async () => {});
    }
  });

  // Two runs of a project of their own: in the second one the agent does something else.
  const project = join(folder, 'two');
  mkdirSync(project);
  writeFileSync(join(project, 'hotseat.yaml'), 'target: { type: command, command: ["node", "../agent.mjs"] }\n');
  writeFileSync(join(project, 'varies.test.yaml'), SUITE);
  const execute = (...args) => spawnSync(hotseat, args, { cwd: project, encoding: 'utf8' });
  for (let n = 0; n < 2; n += 1) execute('test', '--parallel', '1');
  const view = spawn(hotseat, ['view', '--editor', 'editor://open/{file}:{line}'], { cwd: project, stdio: ['ignore', 'pipe', 'inherit'] });
  const address = await new Promise((resolve) => {
    let printed = '';
    view.stdout.on('data', (data) => {
      printed += data;
      const found = printed.match(/http:\S+/);
      if (found) resolve(found[0]);
    });
  });

  await look('two runs are selected and compared', async () => within(await open(browser, `${address}#runs`), async (page) => {
    await page.waitForSelector('.runs li');
    ok((await page.textContent('.choice')).includes('Select two runs'), 'what to do');
    await page.check('.runs li:nth-child(1) input');
    ok((await page.textContent('.choice')).includes('another run'), 'what is missing');
    await page.check('.runs li:nth-child(2) input');
    await page.click('.choice a');
    await page.waitForSelector('.comparison .compared');
    const said = JSON.parse(execute('compare', 'last~1', 'last', '--json').stdout);
    const shown = await page.textContent('.comparison');
    ok(shown.includes(`p = ${said.pass_rate.p}`) && shown.includes('not significant'), 'the significance is that of the command');
    const rates = await page.$$eval('.rate small', (all) => all.map((one) => one.textContent));
    is(rates, [said.pass_rate.before, said.pass_rate.after].map((one) => `${one.passed} of ${one.attempts}`), 'pass rates');
    const changed = await page.$$eval('[aria-label="Changed results"] li b', (all) => all.map((one) => one.textContent));
    is(changed, said.cases.filter((one) => one.change !== 'same').map((one) => one.name), 'changed cases');
    ok(changed.includes('it varies'), 'the case that changed');
    const first = '[aria-label="Changed results"] li:has-text("it varies")';
    ok((await page.textContent(`${first} .divergence`)).includes('First divergence: turn 2, call 1'), 'where they diverge');
    ok((await page.textContent(`${first} .differences`)).includes('n'), 'in which argument');
    await page.click('.swap');
    await page.waitForFunction(() => document.querySelector('[aria-label="Changed results"] .tag')?.textContent === 'newly passes');
    await page.goBack();
    await page.waitForFunction(() => document.querySelector('[aria-label="Changed results"] .tag')?.textContent === 'newly fails');
    await page.click(`${first} .facts a:nth-of-type(2)`);
    await page.waitForSelector('#turn-2.reached');
    ok((await page.getAttribute('.check a.place', 'href')).startsWith(`editor://open/${project}`), 'the editor of --editor');
    await page.goto(`${address}#compare=nothing..else`);
    await page.waitForSelector('[role=alert]:has-text("cannot be compared")');
    page.troubles = page.troubles.filter((one) => !one.includes('404'));
  }));

  await look('the course of the runs links to each of them', async () => {
    for (const options of [{}, { viewport: { width: 400, height: 800 }, colorScheme: 'dark' }]) {
      await within(await open(browser, `${address}#runs`, options), async (page) => {
        await page.waitForSelector('.chart');
        is(await page.$$eval('.chart figcaption b', (all) => all.map((one) => one.textContent)), ['Pass rate', 'Duration'], 'charts');
        is((await page.$$('.chart:first-child circle')).length, 2, 'points');
        const shown = await page.textContent('.chart:first-child figcaption span');
        is(shown, '66.7%', 'the last pass rate');
        ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it fits');
        await page.focus('.chart:first-child a:nth-of-type(1)');
        await page.keyboard.press('Enter');
        await page.waitForURL(/\/runs\/[0-9a-f]{12}$/);
        await page.waitForSelector('.list .row');
      });
    }
  });
  view.kill('SIGINT');
}
