// Data source of a report file: the data embedded in the page.

function embedded(id) {
  const element = document.getElementById(id);
  return element ? readJson(element.textContent) : null;
}

// The page contains all data. Cases follow this script and may still be loading.
function pageSource() {
  const whole = new Promise((resolve) => {
    if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', resolve, { once: true });
    else resolve();
  });
  const text = async (index) => {
    if (!document.getElementById(`case-${index}`)) await whole;
    return document.getElementById(`case-${index}`)?.textContent;
  };
  const rows = embedded('rows');
  return {
    run: embedded('run'),
    rows,
    async caseOf(index) {
      const found = await text(index);
      if (!found) throw new Error('the page is incomplete: this case is missing');
      return readJson(found);
    },
    // Finds the cases that contain a text without parsing them, some at a time.
    search(words) {
      const pattern = asWritten(words);
      let left = [...rows];
      return {
        isBehind: () => left.length > 0,
        async more(signal) {
          const found = [];
          let pause = performance.now();
          for (const row of left) {
            if (pattern.test((await text(row.index)) || '')) found.push(row.index);
            if (performance.now() - pause > 30) {
              await new Promise((resolve) => setTimeout(resolve));
              pause = performance.now();
            }
            if (signal.aborted) return found;
          }
          left = [];
          return found;
        },
      };
    },
  };
}

// Returns a pattern that finds a text in the JSON of this page.
function asWritten(text) {
  const written = JSON.stringify(text).slice(1, -1).replaceAll('<', '\\u003c');
  return new RegExp(written.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&'), 'i');
}
