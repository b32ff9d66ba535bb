// Matchers for the text of the agent.

const { asWritten, decide, misuse, part, shown } = core;
const values = () => part("values");

/** Converts regular expressions and literal strings to case file patterns. */
function asPatterns(name, all) {
  return all.map((one) => {
    if (one instanceof RegExp) return values().inline(one);
    if (typeof one !== "string" || one === "") throw misuse(`${name} needs regular expressions or strings, got ${shown(one)}`);
    return values().literally(one);
  });
}

/** Returns an assertion in case file form that the agent's text matches patterns. */
function asRegex(name, all, match) {
  const patterns = asPatterns(name, all);
  return patterns.length === 1 ? { type: "regex", pattern: patterns[0] } : { type: "regex", pattern: patterns, match };
}

/** Returns the turns that a text assertion reads, in case file form. */
const turnsOf = (way) => (way.subject === "conversation" ? { turns: "all" } : {});

const matchers = {
  toMatch(way, ...all) {
    if (way.negated && all.length > 1) throw misuse("not.toMatch needs one pattern: negating several is ambiguous");
    decide([asWritten({ ...asRegex("toMatch", all, "all"), ...turnsOf(way) })], way);
  },
  toMatchAny(way, ...all) {
    decide([asWritten({ ...asRegex("toMatchAny", all, "any"), ...turnsOf(way) })], way);
  },
  toContain(way, ...texts) {
    const wrong = texts.find((text) => typeof text !== "string" || text === "");
    if (wrong !== undefined || texts.includes(undefined)) throw misuse(`toContain needs a non-empty string, got ${shown(wrong)}`);
    if (way.negated && texts.length > 1) throw misuse("not.toContain needs one text: negating several is ambiguous");
    decide(texts.map((value) => asWritten({ type: "contains", value, ...turnsOf(way) })), way);
  },
};

return { asRegex, matchers };
