// Shared helpers of the browser tests.

let passed = 0;
let failed = 0;

export const counts = () => `${passed} ${failed}`;

export async function look(name, act) {
  try {
    await act();
    passed += 1;
    console.log(`  ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`  FAIL ${name}\n    | ${String(error.stack || error).split('\n').slice(0, 4).join('\n    | ')}`);
  }
}

export function is(found, wanted, what = '') {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

export function ok(holds, what) {
  if (!holds) throw new Error(what);
}

// Opens a page that records errors, console messages, requests to other hosts and dialogs.
export async function open(browser, address, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const own = address.startsWith('http:') ? new URL(address).origin : 'file:';
  page.troubles = [];
  page.on('console', (message) => page.troubles.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => page.troubles.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => { page.troubles.push('dialog'); dialog.dismiss(); });
  page.on('request', (request) => {
    if (!request.url().startsWith(own) && !/^(data|blob):/.test(request.url())) page.troubles.push(`request: ${request.url()}`);
  });
  await page.goto(address);
  await page.waitForSelector('h1');
  return page;
}

export async function within(page, act) {
  await act(page);
  is(page.troubles, [], 'what went wrong');
  await page.close();
}
