// Tests the page of a case: the failure in view, the outline, links to turns, and what helps to correct a case.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { is, look, ok, open as openAt, within } from './looking.mjs';

const TURNS = 40;
const long = Array.from({ length: TURNS }, (_, n) => {
  const user = [5, 23, 40].includes(n + 1) ? 'How is the weather?' : `hello, number ${n + 1}`;
  const assert = n + 1 === TURNS
    ? '\n    assert: { tools: { require: [{ name: get_weather, args_match: { city: "^Berlin$" } }] }, text: { must_match: "snow" } }' : '';
  return `  - user: "${user}"${assert}`;
}).join('\n');

const isSeen = (page, selector) => page.waitForFunction((wanted) => {
  const box = document.querySelector(wanted)?.getBoundingClientRect();
  return box && box.top >= 0 && box.top < innerHeight - 20;
}, selector);
const focused = (page) => page.evaluate(() => document.activeElement.closest('[id]')?.id);

export async function cases(browser, folder, run) {
  writeFileSync(join(folder, 'long.test.yaml'), `name: a long conversation\nturns:\n${long}\n`);
  run('long.test.yaml', '-o', 'long.html');
  const open = (file, hash = '', options = {}) => openAt(browser, `file://${join(folder, file)}${hash}`, options);
  const link = (id, more = '') => `#${new URLSearchParams({ case: id })}${more}`;
  const conversation = (options, more) => open('long.html', link('a long conversation', more), options);

  await look(`a case of ${TURNS} turns opens with its failure in view, and passed turns are folded`, async () => {
    for (const viewport of [{ width: 1280, height: 900 }, { width: 400, height: 700 }]) {
      await within(await conversation({ viewport }), async (page) => {
        await isSeen(page, '.failure .to-check');
        is(await page.$$eval('.failure .to-check', (all) => all.map((one) => one.textContent)), ['Turn 40', 'Turn 40'], 'failed checks');
        is(await page.$$eval('.turn[open]', (all) => all.map((one) => one.id)), ['turn-40'], 'unfolded');
        is((await page.$$('.turn')).length, TURNS, 'turns');
        is((await page.$$('.said')).length, 2, 'only one turn is drawn');
      });
    }
  });

  await look('a case that asserts nothing says so', async () => {
    const turn = (more) => `turns: [{ user: hello${more} }]`;
    writeFileSync(join(folder, 'plain.test.yaml'), `name: asserts nothing\n${turn('')}\n---\nname: asserts\n${turn(', assert: { text: { must_match: . } }')}\n`);
    run('plain.test.yaml', '-o', 'plain.html');
    for (const [name, count] of [['asserts nothing', 1], ['asserts', 0]]) {
      await within(await open('plain.html', link(name)), async (page) => {
        await page.waitForSelector('.turn');
        is(await page.getByText('Nothing was asserted').count(), count, name);
      });
    }
  });

  await look('a link leads from the failure to its check, and back', async () => within(await conversation(), async (page) => {
    await page.click('.failure li:nth-child(2) .to-check');
    await isSeen(page, '#turn-40-check-1');
    is(await focused(page), 'turn-40-check-1', 'focused');
    ok(new URL(page.url()).hash.endsWith('to=turn-40-check-1'), page.url());
    await page.evaluate(() => scrollTo(0, 0));
    await page.click('.to-failure');
    await isSeen(page, '#turn-40-check-0');
    await page.keyboard.press('n');
    await page.waitForFunction(() => document.activeElement.closest('[id]')?.id === 'turn-40-check-1');
    await page.goBack();
    await page.waitForFunction(() => document.activeElement.closest('[id]')?.id === 'turn-40-check-0');
    await page.reload();
    await isSeen(page, '#turn-40-check-0');
  }));

  await look('the outline stays in view and unfolds what it links to', async () => {
    for (const viewport of [{ width: 1280, height: 900 }, { width: 400, height: 700 }]) {
      await within(await conversation({ viewport }), async (page) => {
        is(await page.getAttribute('.outline a[data-to=turn-40]', 'aria-label'), 'Turn 40, failed, How is the weather?', 'its name');
        await page.focus('.outline a[data-to=turn-23]');
        await page.keyboard.press('Enter');
        await isSeen(page, '#turn-23 .said.user');
        is(await focused(page), 'turn-23', 'focused');
        await isSeen(page, '.outline a[data-to=turn-23]');
        await isSeen(page, '.bar-name');
        is(await page.$$eval('.outline [aria-current]', (all) => all.map((one) => one.dataset.to)), ['turn-23'], 'marked');
        const covered = await page.$eval('#turn-23', (one) => {
          const box = one.querySelector('summary').getBoundingClientRect();
          return document.elementFromPoint(box.left + 30, box.top + 6).closest('.turn')?.id;
        });
        is(covered, 'turn-23', 'what is at its place');
      });
    }
  });

  await look('bars link to what they show', async () => within(await conversation(), async (page) => {
    const bar = page.locator('.bar-turn', { hasText: 'Turn 23' }).locator('a.bar-row', { hasText: 'get_weather' });
    await bar.focus();
    await page.keyboard.press('Enter');
    await isSeen(page, '#turn-23 .call[open]');
    ok((await page.textContent('#turn-23 .call[open]')).includes('"degrees": 21'), 'it is unfolded');
    is(await page.evaluate(() => document.activeElement.textContent.includes('get_weather')), true, 'focused');
    await page.locator('.bar-turn', { hasText: 'Turn 7' }).locator('a.bar-row').first().click();
    await isSeen(page, '#turn-7[open] .said.user');
  }));

  await look('a place that does not exist leads to the top, and a hostile one nowhere', async () => {
    for (const to of ['turn-99', 'turn-1"],#app', '<img src=x>', 'app']) {
      await within(await conversation({}, `&${new URLSearchParams({ to })}`), async (page) => {
        is(await page.evaluate(() => [scrollY, document.activeElement.tagName]), [0, 'H1'], to);
      });
    }
  });

  await look('every control has a name, every picture a text, and headings follow each other', async () => {
    for (const hash of [link('a long conversation'), '']) {
      await within(await open('long.html', hash), async (page) => {
        await page.waitForSelector('.row, article.case');
        const unnamed = await page.$$eval('button, a, input, select, summary, [role=img], nav, section', (all) => all
          .filter((one) => !(one.getAttribute('aria-label') || one.title || one.textContent.trim() || one.closest('label')))
          .filter((one) => one.tagName !== 'SECTION').map((one) => one.outerHTML.slice(0, 120)));
        is(unnamed, [], 'without a name');
        const levels = await page.$$eval('main h1, main h2, main h3', (all) => all.map((one) => Number(one.tagName[1])));
        ok(levels[0] === 1 && levels.every((level, at) => at === 0 || level <= levels[at - 1] + 1), `headings ${levels}`);
      });
    }
  });
}
