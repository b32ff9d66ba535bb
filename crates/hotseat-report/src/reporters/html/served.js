// Data source of a served page: queries the server, and follows a running run.

const RETRY = 1500;
const GONE = '`hotseat view` does not answer any more. The page keeps the data that it has loaded.';

async function ask(path, signal) {
  let answer;
  try {
    answer = await fetch(path, { signal });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Error(GONE);
  }
  const told = await answer.text().then(readJson).catch(() => ({ error: `the answer is cut off (${answer.status})` }));
  if (!answer.ok) throw new Error(told.error);
  return told;
}

// Resolves when the page is visible; a hidden page sends no requests.
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
  const source = { run: null, rows: [], position: 0, newest: null, live: true, isLoading: true };
  const own = () => (source.run ? `runs/${source.run.kept.id}` : meant);
  // Cases that started but never ended count as unfinished once the run has stopped.
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
  // Detects that a finished run was resumed; its unfinished cases are run again.
  const goneOn = (before, now) => before && now && before.kept.state !== 'running' && (now.kept.state === 'running' || before.ended !== now.ended);

  return Object.assign(source, {
    // Calls `change` with the changed cases, and `trouble` with an error message or null.
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
          source.editor = news.editor;
          if (first) source.newestAtFirst = news.newest;
          news.rows.forEach((row) => put(held(row)));
          const changed = new Set(news.rows.map((row) => row.index));
          source.rows.forEach((row) => {
            const now = held(row);
            if (now !== row) changed.add(row.index);
            put(now);
          });
          source.position = news.position;
          source.isLoading = news.more;
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
    // Conversations that are running: all in a few words, or those of a case.
    running: (index) => ask(`/api/${own()}/running${index === undefined ? '' : `?case=${index}`}`),
    caseOf: (index) => ask(`/api/${own()}/cases/${index}`),
    runs: (most) => ask(`/api/runs?most=${most}`),
    compare: (before, after, otherInputs) =>
      ask(`/api/compare?${new URLSearchParams({ before, after, ...(otherInputs ? { other_inputs: '1' } : {}) })}`),
    // Finds the cases that contain a text, among those that ended since the last call of `more`.
    search(words) {
      let after = 0;
      return {
        isBehind: () => after < source.position,
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
