// Tests the Markdown of agents: what is shown, that nothing hostile gets through, and that the cost is bounded.
import { join } from 'node:path';
import { is, look, ok, open as openAt, within } from './looking.mjs';
import { withCase } from './origin.mjs';

const SAMPLE = `# Your order

It is **ready** and *nearly* shipped, see \`order_id\` and [the shop](https://shop.example/a?b=1).

- one
- two
  - nested

> a quote

\`\`\`js
const a = '<b>';
\`\`\`

| Item | Price |
|---|---:|
| Tea | \`3\` |

snake_case_word and 2*3*4 stay`;

const HOSTILE = [
  '<img src=x onerror="window.broken=1">', '<script>window.broken=1</script>', '[a](javascript:window.broken=1)', '[a](JaVaScRiPt:window.broken=1)',
  '[a](data:text/html,<script>window.broken=1</script>)', '[a](\tjavascript:window.broken=1)', '[a](vbscript:x)', '[a](file:///etc/passwd)',
  '![x](http://127.0.0.1:1/leak.png)', '![x](https://evil.example/leak?a=1 "onerror=window.broken=1")', '<https://evil.example/" onmouseover="window.broken=1>',
  '[https://good.example](https://evil.example/)', '**<svg onload=window.broken=1>**', '`<iframe src=javascript:window.broken=1>`',
  '|<b>|<i>|\n|---|---|\n|<img src=x onerror=window.broken=1>|b|', '# <style>*{display:none}</style>', '&lt;script&gt;', '[a]: javascript:alert(1)\n[a]',
  '<a href="javascript:window.broken=1">x</a>', 'https://user:secret@evil.example/\u202e', '[\u202eevil](https://evil.example)', 'https://ex\u0430mple.com/',
  '[a](https://evil.example/%0d%0aSet-Cookie:x)', '<math><mtext></form><form><mglyph><style></math><img src onerror=window.broken=1>',
];

// Inputs that make careless parsers slow.
const SLOW = ['*', '_', '`', '[', '![', '**a', '*a _b ', '[a](', '<http://', 'http', '> ', '- ', '  - ', '|', '|-', '~~', '\\', '((((', '`a``b', '# ', '1. ', '***', '](', '**a** '];
const SLOW_LENGTH = 90_000;

// A generator of numbers that repeats, for inputs made of hostile pieces.
function random(seed) {
  let state = seed;
  return (most) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state % most;
  };
}

function fuzzed(seed) {
  const next = random(seed);
  const pieces = [...HOSTILE, ...SLOW, 'word', ' ', '\n', '\n\n', '    ', '\t', '```\n', '\u0000', '\ud800', '|---|---|\n', '"', "'", '>', ')', ']'];
  return Array.from({ length: 5 + next(60) }, () => pieces[next(pieces.length)]).join('');
}

export async function markdowns(browser, folder) {
  const show = async (text, options = {}) => {
    withCase(folder, 'origin.html', 'markdown.html', ({ result, attempts }) => {
      attempts[0].events.filter((event) => event.type === 'message.assistant').forEach((event) => { event.payload.content = text; });
      result.turns[0].output = text;
    });
    const page = await openAt(browser, `file://${join(folder, 'markdown.html')}#case=a+text+differs`, options);
    await page.waitForSelector('.said.agent .bubble');
    return page;
  };
  const bubble = '.said.agent .bubble';

  await look('Markdown of agents is shown, and a switch shows the plain text', async () => within(await show(SAMPLE), async (page) => {
    const found = (selector) => page.$$eval(`${bubble} ${selector}`, (all) => all.map((one) => one.textContent));
    is(await found('.heading'), ['Your order'], 'heading');
    is(await found('strong, em'), ['ready', 'nearly'], 'emphasis');
    is(await found('code'), ['order_id', '3'], 'code');
    is(await found('pre'), ["const a = '<b>';"], 'block of code');
    is(await found('li li'), ['nested'], 'nested list');
    is(await found('blockquote'), ['a quote'], 'quote');
    is(await found('td'), ['Tea', '3'], 'table');
    ok((await page.textContent(bubble)).includes('snake_case_word and 2*3*4 stay'), 'words with marks');
    is(await page.$$eval(`${bubble} a`, (all) => all.map((one) => [one.href, one.textContent, one.rel, one.target])),
      [['https://shop.example/a?b=1', 'https://shop.example/a?b=1', 'noopener noreferrer nofollow', '_blank']], 'the link shows its address');
    ok((await page.textContent(bubble)).includes('the shop (https://shop.example/a?b=1).'), 'label and address');
    await page.check('label:has-text("plain text") input');
    is(await page.textContent(bubble), SAMPLE, 'plain');
    await page.reload();
    await page.waitForSelector(bubble);
    is(await page.textContent(bubble), SAMPLE, 'kept');
    await page.uncheck('label:has-text("plain text") input');
    is(await found('strong'), ['ready'], 'Markdown again');
    await page.evaluate(() => localStorage.clear());
  }));

  await look('hostile Markdown loads nothing, runs nothing and leads only where it says', async () => {
    const texts = [HOSTILE.join('\n\n'), HOSTILE.join(' '), ...Array.from({ length: 60 }, (_, seed) => fuzzed(seed + 1))];
    // All texts in one page: each is drawn through the same switch as a real one.
    await within(await show(texts.map((text, n) => `${text}\n\n`).join('')), async (page) => {
      if (await page.$('text=Show all')) await page.click('text=Show all');
      await page.hover('.said.agent');
      is(await page.evaluate(() => window.broken), undefined, 'what a script would have set');
      const tags = await page.$$eval(`${bubble} *`, (all) => [...new Set(all.map((one) => one.tagName))].sort());
      const allowed = ['A', 'BLOCKQUOTE', 'BR', 'CODE', 'DIV', 'EM', 'HR', 'LI', 'OL', 'P', 'PRE', 'S', 'SPAN', 'STRONG', 'TABLE', 'TBODY', 'TD', 'TH', 'THEAD', 'TR', 'UL'];
      is(tags.filter((tag) => !allowed.includes(tag)), [], 'elements');
      const links = await page.$$eval(`${bubble} a`, (all) => all.map((one) => [one.protocol, one.href === one.textContent, one.rel]));
      ok(links.length > 0, 'there are links');
      is(links.filter(([protocol, isShown, rel]) => !['http:', 'https:', 'mailto:'].includes(protocol) || !isShown || rel !== 'noopener noreferrer nofollow'), [], 'links');
      const attributes = await page.$$eval(`${bubble} *`, (all) => [...new Set(all.flatMap((one) => one.getAttributeNames()))].sort());
      is(attributes.filter((name) => !['class', 'dir', 'href', 'rel', 'scope', 'start', 'target'].includes(name)), [], 'attributes');
    });
    for (const text of texts.slice(0, 12)) {
      await within(await show(text), async (page) => {
        is(await page.evaluate(() => window.broken), undefined, 'what a script would have set');
        is(await page.$$eval(`${bubble} :is(img, script, style, iframe, svg, form, math)`, (all) => all.length), 0, 'elements');
      });
    }
  });

  await look('Markdown takes time in proportion to its length', async () => {
    for (const piece of SLOW) {
      const text = piece.repeat(Math.floor(SLOW_LENGTH / piece.length));
      const page = await show(text);
      const took = await page.evaluate(() => {
        const begin = performance.now();
        [...document.querySelectorAll('button')].find((one) => one.textContent.startsWith('Show all'))?.click();
        return performance.now() - begin;
      });
      ok(took < 3000, `${JSON.stringify(piece)} takes ${Math.round(took)} ms`);
      await within(page, async () => {});
    }
  });
}
