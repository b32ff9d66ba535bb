// An agent for the page tests: its behaviour depends on the user text. Speaks JSON lines.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const HOSTILE = [
  '<script>window.broken = 1</script></script><!-- <script>',
  '<img src="http://127.0.0.1:1/leak" onerror="window.broken = 2"><svg onload="window.broken = 3">',
  ']]> --> &lt;b&gt; &amp; "quoted" \'single\' `ticks` ${window.broken = 4} \\u003cb',
  'javascript:window.broken=5 [a](javascript:alert(1)) {{constructor.constructor("window.broken=6")()}}',
  '\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u009b31m \u0000 \u202eevil\u202c \u2066x\u2069 \ufeff',
  'مرحبا بالعالم, שלום, 👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 你好',
].join('\n');

const acts = {
  async weather() {
    say({ type: 'reasoning', text: 'The user wants the weather. I should look it up first.' });
    await wait(120);
    say({ type: 'tool_call', id: 'w1', name: 'get_weather', arguments: { city: 'Paris', days: 2 } });
    await wait(180);
    say({ type: 'tool_result', id: 'w1', result: { sky: 'clear', degrees: 21 } });
    await wait(60);
    say({ type: 'tool_call', id: 'w2', name: 'get_forecast', arguments: { city: 'Paris' } });
    await wait(90);
    say({ type: 'tool_result', id: 'w2', error: 'the service is down' });
    say({ type: 'text', text: 'It is 21 degrees and clear in Paris.\nThe forecast is not there today.' });
    say({ type: 'usage', usage: { prompt_tokens: 1200, completion_tokens: 80, total_tokens: 1280, cost: 0.25 } });
  },
  async hostile() {
    say({ type: 'reasoning', text: HOSTILE });
    say({ type: 'tool_call', id: 'h1', name: '<b>tool</b>', arguments: { '<i>key</i>': HOSTILE }, result: { html: HOSTILE } });
    say({ type: 'state', state: { html: HOSTILE } });
    say({ type: 'text', text: HOSTILE });
  },
  async huge() {
    say({ type: 'text', text: `${'A long story. '.repeat(20000)}THE END` });
  },
  async crash() {
    say({ type: 'error', message: 'the model <b>exploded</b>', code: 'MODEL_ERROR' });
  },
  async flaky(turn, conversation) {
    const even = [...conversation].reduce((sum, c) => sum + c.charCodeAt(0), 0) % 2 === 0;
    say({ type: 'text', text: even ? 'heads' : 'tails' });
  },
  // Blocks until a file exists.
  async gate(turn, conversation, text) {
    while (!existsSync(text)) await wait(20);
    say({ type: 'text', text: `The ${text} is open.` });
  },
  // Does something else each time.
  async vary() {
    const file = 'varies.count';
    const n = existsSync(file) ? Number(readFileSync(file, 'utf8')) + 1 : 1;
    writeFileSync(file, String(n));
    say({ type: 'tool_call', id: 'v1', name: 'count', arguments: { n, same: true }, result: n });
    if (n > 1) say({ type: 'tool_call', id: 'v2', name: 'look', arguments: {}, result: 'nothing' });
    say({ type: 'text', text: `This is number ${n} of them.` });
  },
  // JavaScript cannot hold the integer.
  async integer() {
    process.stdout.write('{"type":"tool_call","id":"i1","name":"get_order","arguments":{"order":1234567890123456789},"result":{"order":-9223372036854775808}}\n');
    say({ type: 'text', text: 'It is on its way.' });
  },
  async json() {
    say({ type: 'text', text: JSON.stringify({ a: 2, list: [1, 2, { b: 'y' }, 4], more: null }) });
  },
  async hello() {
    say({ type: 'text', text: 'Hello. What can I do for you?' });
    say({ type: 'awaiting_input', hint: 'a wish' });
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.type !== 'message') continue;
  const act = Object.keys(acts).find((word) => message.text.includes(word)) || 'hello';
  await acts[act](message.turn, message.conversation_id, message.text);
  if (act !== 'crash') say({ type: 'done' });
}
