// Where the run comes from: the server that serves this page. What happens in a run is asked for while it goes on.

const RETRY = 1500;
const GONE = '`hotseat view` does not answer any more. What is shown here stays; what was not looked at is not there.';

async function ask(path, signal) {
  let answer;
  try {
    answer = await fetch(path, { signal });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Error(GONE);
  }
  const told = await answer.json().catch(() => ({ error: `the answer is cut off (${answer.status})` }));
  if (!answer.ok) throw new Error(told.error);
  return told;
}

// A page that nobody looks at asks for nothing.
function looked() {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener('visibilitychange', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    look();
  });
}

function pageSource() {
  const meant = location.pathname.startsWith('/runs/') ? location.pathname.slice(1) : 'run';
  const places = new Map();
  const source = { run: null, rows: [], position: 0, newest: null, live: true };
  const own = () => (source.run ? `runs/${source.run.kept.id}` : meant);
  // Cases that have begun and never ended are no longer held once the run is not.
  const held = (row) => (row.status === 'running' && source.run.kept.state !== 'running' ? { ...row, status: 'unfinished' } : row);
  const put = (row) => {
    if (!places.has(row.index)) places.set(row.index, source.rows.push(row) - 1);
    else source.rows[places.get(row.index)] = row;
  };
  const forget = () => {
    source.rows.length = 0;
    source.position = 0;
    places.clear();
  };
  // Whether somebody has gone on with a run that was over: what was left of it is held anew.
  const goneOn = (before, now) => before && now && before.kept.state !== 'running' && (now.kept.state === 'running' || before.ended !== now.ended);

  return Object.assign(source, {
    // Calls `change` with the cases that are new, and `trouble` with what keeps anybody from knowing.
    async follow(change, trouble) {
      let seen = null;
      for (;;) {
        await looked();
        const query = new URLSearchParams({ after: source.position, ...(seen ? { seen } : {}) });
        try {
          const news = await ask(`/api/${own()}?${query}`);
          if (goneOn(source.run, news.run) && source.position > 0) {
            forget();
            seen = null;
            source.run = news.run;
            continue;
          }
          const first = source.newest === null;
          source.run = news.run;
          source.newest = news.newest;
          if (first) source.newestAtFirst = news.newest;
          news.rows.forEach((row) => put(held(row)));
          const changed = new Set(news.rows.map((row) => row.index));
          source.rows.forEach((row) => {
            const now = held(row);
            if (now !== row) changed.add(row.index);
            put(now);
          });
          source.position = news.position;
          seen = news.more ? null : news.seen;
          trouble(null);
          change(changed);
        } catch (error) {
          seen = null;
          trouble(error.message);
          await new Promise((resolve) => setTimeout(resolve, RETRY));
        }
      }
    },
    caseOf: (index) => ask(`/api/${own()}/cases/${index}`),
    runs: (most) => ask(`/api/runs?most=${most}`),
    // The cases in which words are said, in those that have ended since `more` was last asked.
    search(words) {
      let after = 0;
      return {
        async more(signal) {
          const all = [];
          while (source.run && after < source.position) {
            const { found, position } = await ask(`/api/${own()}/search?${new URLSearchParams({ q: words, after })}`, signal);
            all.push(...found);
            after = position;
          }
          return all;
        },
      };
    },
  });
}
