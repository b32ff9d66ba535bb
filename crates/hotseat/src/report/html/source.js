// Where the run comes from: what stands in this page.

function embedded(id) {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent) : null;
}

// The page holds everything. Cases stand behind this script and may still be on their way.
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
      if (!found) throw new Error('this page holds no such case: it was cut off');
      return JSON.parse(found);
    },
    // The cases in which words are said, without reading the cases, some at a time.
    search(words) {
      const pattern = asWritten(words);
      let left = [...rows];
      return {
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

// A pattern that finds words in JSON as it stands in this page.
function asWritten(text) {
  const written = JSON.stringify(text).slice(1, -1).replaceAll('<', '\\u003c');
  return new RegExp(written.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&'), 'i');
}
