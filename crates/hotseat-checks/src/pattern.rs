//! Regular expressions in tests: unanchored, and matched in time linear in the length of the text.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use hotseat_trace::as_integer;
use regex_automata::meta;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use serde_json::Value;

use super::json_answer::read_number;

/// Maximum size of the automaton of one pattern, in bytes.
const MAX_AUTOMATON_BYTES: usize = 10 * 1024 * 1024;
/// A backspace character.
const BACKSPACE: char = '\u{8}';
/// Maximum number and maximum total size of cached patterns.
const MAX_CACHED_PATTERNS: usize = 256;
const MAX_CACHE_BYTES: usize = 32 * 1024 * 1024;

/// A regular expression.
///
/// It is written plainly, or as `/expression/flags` with the flags `i` (ignore case), `m` (`^` and `$` match
/// at line ends), `s` (`.` matches line ends), `u` (default) and `x` (ignore white space); `d`, `g`, `v` and
/// `y` have no effect. As in languages with this form, a slash inside must be written as `\/`, so
/// `/v1/orders/` is a plain expression.
#[derive(Clone)]
pub struct Pattern {
    source: String,
    matcher: MatchStrategy,
}

/// An invalid pattern.
#[derive(Debug, Clone, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum PatternError {
    #[error("{}", shorten_error(&.0.to_string()))]
    Syntax(#[source] Box<regex_syntax::Error>),
    #[error("the pattern or one of its alternatives is empty, so it matches every text")]
    MatchesEverything,
    #[error(
        "it matches no text: `$` is the end of the text, with the flag `m` of a line, and `^` its start; write `\\$` or `\\^` for the character"
    )]
    MatchesNothing,
    #[error(
        "it matches no text: `\\b` is between a character of a word and another one, or the start or end of the text, and `\\B` is anywhere else"
    )]
    ImpossibleBoundary,
    /// In YAML and JSON `"\b"` is this character, and nobody looks for it.
    #[error(
        "it contains a backspace character, which `\\b` is in double quotes; write `\\\\b` for the end of a word, or use single quotes"
    )]
    Backspace,
    #[error(
        "`{0}` after the last slash is no flag; the flags are `i`, `m`, `s` and `x`, and without effect `d`, `g`, `u`, `v` and `y`; if this is a path, write its first slash as `[/]`"
    )]
    UnknownFlag(String),
    #[error("it needs an automaton of more than {0} bytes")]
    TooLarge(usize),
    #[error("{}", shorten_error(&.0.to_string()))]
    Build(#[source] Box<meta::BuildError>),
}

/// Matching strategy of a pattern. Most patterns are literal texts and are matched only once or twice, so
/// building an automaton would take longer than the matching itself.
#[derive(Clone)]
enum MatchStrategy {
    Text {
        text: Arc<str>,
        at_start: bool,
        at_end: bool,
    },
    Automaton(Arc<meta::Regex>),
    /// Matches every text, for instance `.*`.
    Everything,
}

/// Cache of compiled patterns by their source. The cases of a run repeat few patterns many times, and
/// compiling one is slow.
static COMPILED: LazyLock<Mutex<PatternCache>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct PatternCache {
    matchers: HashMap<String, MatchStrategy>,
    /// Total size of the matchers in bytes.
    size: usize,
}

impl PatternCache {
    /// Adds a matcher. If the cache would exceed its limits, it is cleared first.
    fn insert(&mut self, written: &str, matcher: &MatchStrategy) {
        let size = written.len() + matcher.size();
        if self.matchers.len() >= MAX_CACHED_PATTERNS || self.size + size > MAX_CACHE_BYTES {
            *self = PatternCache::default();
        }
        // Another thread may have compiled the same pattern in the meantime.
        if self.matchers.insert(written.to_string(), matcher.clone()).is_none() {
            self.size += size;
        }
    }
}

impl MatchStrategy {
    fn size(&self) -> usize {
        match self {
            MatchStrategy::Text { text, .. } => text.len(),
            MatchStrategy::Automaton(automaton) => automaton.memory_usage(),
            MatchStrategy::Everything => 0,
        }
    }
}

impl Pattern {
    /// Compiles an expression, or takes it from the cache.
    ///
    /// # Errors
    /// If the expression is invalid.
    pub fn compile(written: &str) -> Result<Pattern, PatternError> {
        if written.contains(BACKSPACE) {
            return Err(PatternError::Backspace);
        }
        // Building the matcher of a literal text is faster than looking it up.
        if let Some(matcher) = unescaped_literal(written) {
            return Ok(Pattern { source: written.to_string(), matcher });
        }
        let compiled = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = compiled().matchers.get(written).cloned();
        let matcher = match known {
            Some(matcher) => matcher,
            None => {
                let matcher = build_matcher(written)?;
                compiled().insert(written, &matcher);
                matcher
            }
        };
        Ok(Pattern { source: written.to_string(), matcher })
    }

    /// Returns true if the pattern matches a JSON value: a text, or another value as compact JSON. A whole
    /// number is matched with and without its decimal point, since `3500` equals `3500.0`.
    pub fn matches_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.is_match(text),
            Value::Number(number) => {
                self.is_match(&number.to_string())
                    || as_integer(number).is_some_and(|integer| self.is_match(&integer.to_string()))
            }
            other => self.is_match(&other.to_string()),
        }
    }

    /// Like [`Pattern::matches_value`], for the result of a tool: some protocols pass on every result as text, so a text
    /// that is a number is matched as that number, too.
    pub fn matches_result(&self, result: &Value) -> bool {
        self.matches_value(result)
            || result.as_str().and_then(read_number).is_some_and(|number| self.matches_value(&number))
    }

    /// Returns the expression as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns true if the pattern matches every text.
    pub fn matches_every_text(&self) -> bool {
        matches!(self.matcher, MatchStrategy::Everything)
    }

    /// Returns true if a match may end with further lines of the text.
    pub fn depends_on_end(&self) -> bool {
        match &self.matcher {
            MatchStrategy::Text { at_end, .. } => *at_end,
            MatchStrategy::Everything => false,
            MatchStrategy::Automaton(_) => parse(&self.source).map_or(true, |hir| {
                let looks = hir.properties().look_set();
                looks.contains(Look::End) || looks.contains(Look::EndCRLF)
            }),
        }
    }

    /// Returns true if an expression matches every text, also if it is refused for this reason.
    pub fn is_universal(written: &str) -> bool {
        match Pattern::compile(written) {
            Ok(pattern) => pattern.matches_every_text(),
            Err(error) => matches!(error, PatternError::MatchesEverything),
        }
    }

    /// Returns true if the pattern matches anywhere in a text.
    pub fn is_match(&self, text: &str) -> bool {
        match &self.matcher {
            MatchStrategy::Automaton(automaton) => automaton.is_match(text),
            MatchStrategy::Everything => true,
            MatchStrategy::Text { text: wanted, at_start: false, at_end: false } => text.contains(&**wanted),
            MatchStrategy::Text { text: wanted, at_start: true, at_end: false } => {
                text.starts_with(&**wanted)
            }
            MatchStrategy::Text { text: wanted, at_start: false, at_end: true } => text.ends_with(&**wanted),
            MatchStrategy::Text { text: wanted, at_start: true, at_end: true } => text == &**wanted,
        }
    }
}

/// Parses an expression with its flags.
fn parse(written: &str) -> Result<Hir, PatternError> {
    let (expression, flags) = split_flags(written);
    let has = |flag: char| flags.contains(flag);
    ParserBuilder::new()
        .case_insensitive(has('i'))
        .multi_line(has('m'))
        .dot_matches_new_line(has('s'))
        .ignore_whitespace(has('x'))
        .build()
        .parse(&expression)
        .map_err(|error| PatternError::Syntax(Box::new(error)))
}

/// Builds the matcher of an expression.
fn build_matcher(written: &str) -> Result<MatchStrategy, PatternError> {
    if let Some(flags) = mistaken_flags(written) {
        return Err(PatternError::UnknownFlag(flags.to_string()));
    }
    let hir = parse(written)?;
    if has_empty_alternative(&hir) {
        return Err(PatternError::MatchesEverything);
    }
    if matches_nothing(&hir) {
        let looks = hir.properties().look_set();
        return Err(match looks.contains_word() && !looks.contains_anchor() {
            true => PatternError::ImpossibleBoundary,
            false => PatternError::MatchesNothing,
        });
    }
    if matches_everything(&hir) {
        return Ok(MatchStrategy::Everything);
    }
    match literal_matcher(&hir) {
        Some(text) => Ok(text),
        None => Ok(MatchStrategy::Automaton(Arc::new(build_automaton(&hir)?))),
    }
}

/// Returns the matcher of an expression that is obviously a literal text: letters, digits, spaces, some
/// punctuation, and escaped punctuation. Most expressions are, and parsing takes much longer.
fn unescaped_literal(written: &str) -> Option<MatchStrategy> {
    let at_start = written.starts_with('^');
    let body = written.strip_prefix('^').unwrap_or(written);
    let mut text = String::with_capacity(body.len());
    let (mut at_end, mut characters) = (false, body.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.push(characters.next_if(|next| is_escapable(*next))?),
            '$' if characters.peek().is_none() => at_end = true,
            ' ' | '-' | '_' | ',' | ':' | ';' | '=' | '"' | '\'' | '!' | '@' => text.push(character),
            _ if character.is_ascii_alphanumeric() => text.push(character),
            _ => return None,
        }
    }
    (!text.is_empty()).then(|| MatchStrategy::Text { text: text.into(), at_start, at_end })
}

/// Returns true for punctuation that means itself after a backslash.
fn is_escapable(character: char) -> bool {
    matches!(
        character,
        '.' | '?' | '*' | '+' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' | '\\' | '-'
    )
}

/// Returns true if an expression or one of its alternatives is empty.
fn has_empty_alternative(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty => true,
        HirKind::Alternation(parts) => parts.iter().any(has_empty_alternative),
        HirKind::Capture(group) => has_empty_alternative(&group.sub),
        _ => false,
    }
}

/// Returns true if an expression certainly matches every text, mostly the empty text at its start or end.
fn matches_everything(hir: &Hir) -> bool {
    let is_start = |look| matches!(look, Look::Start | Look::StartLF | Look::StartCRLF);
    let is_end = |look| matches!(look, Look::End | Look::EndLF | Look::EndCRLF);
    let looks = hir.properties().look_set();
    let matches_empty = hir.properties().minimum_len() == Some(0);
    if matches_empty && (looks.iter().all(is_start) || looks.iter().all(is_end)) {
        return true;
    }
    match hir.kind() {
        HirKind::Alternation(parts) => {
            let has = |look| parts.iter().any(|part| *part.kind() == HirKind::Look(look));
            parts.iter().any(matches_everything)
                || (has(Look::WordUnicode) && has(Look::WordUnicodeNegate))
                || (has(Look::WordAscii) && has(Look::WordAsciiNegate))
        }
        HirKind::Capture(group) => matches_everything(&group.sub),
        HirKind::Repetition(repeated) => repeated.min == 0 || matches_everything(&repeated.sub),
        // From the start of the text to its end.
        HirKind::Concat(parts) => {
            let is_look = |part: &Hir, is_meant: fn(Look) -> bool| matches!(part.kind(), HirKind::Look(look) if is_meant(*look));
            let first = parts.iter().take_while(|part| is_look(part, is_start)).count();
            let last = parts.iter().rev().take_while(|part| is_look(part, is_end)).count();
            first + last < parts.len() && parts[first..parts.len() - last].iter().all(matches_anything)
        }
        _ => false,
    }
}

/// Returns true if an expression matches texts of any length and any characters.
fn matches_anything(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Repetition(repeated) => {
            let is_any = |class: &Class| {
                let mut others = class.clone();
                others.negate();
                others.is_empty()
            };
            repeated.min == 0
                && repeated.max.is_none()
                && matches!(repeated.sub.kind(), HirKind::Class(class) if is_any(class))
        }
        HirKind::Capture(group) => matches_anything(&group.sub),
        _ => false,
    }
}

/// Returns true if an expression certainly matches no text: a prohibition of it would always hold. Mostly a `$` before
/// an amount.
fn matches_nothing(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Concat(parts) => {
            let is_impossible = |at: usize| {
                Side::After.excludes(&parts[at], &parts[at + 1..])
                    || Side::Before.excludes(&parts[at], &parts[..at])
            };
            parts.iter().any(matches_nothing)
                || (0..parts.len()).any(|at| is_impossible(at) || is_impossible_boundary(parts, at))
        }
        HirKind::Alternation(parts) => parts.iter().all(matches_nothing),
        HirKind::Capture(group) => matches_nothing(&group.sub),
        HirKind::Repetition(repeated) => repeated.min > 0 && matches_nothing(&repeated.sub),
        // Without a minimum, as for an empty class, there is no match.
        _ => hir.properties().minimum_len().is_none(),
    }
}

/// Returns true if a part of a sequence is a word boundary, or its negation, that contradicts a later one at the same
/// position or the characters on both sides.
fn is_impossible_boundary(parts: &[Hir], at: usize) -> bool {
    let (opposite, is_boundary) = match parts[at].kind() {
        HirKind::Look(Look::WordUnicode) => (Look::WordUnicodeNegate, true),
        HirKind::Look(Look::WordUnicodeNegate) => (Look::WordUnicode, false),
        HirKind::Look(Look::WordAscii) => (Look::WordAsciiNegate, true),
        HirKind::Look(Look::WordAsciiNegate) => (Look::WordAscii, false),
        _ => return false,
    };
    let is_look = |part: &&Hir| matches!(part.kind(), HirKind::Look(_));
    let mut same_position = parts[at..].iter().take_while(is_look);
    if same_position.any(|part| *part.kind() == HirKind::Look(opposite)) {
        return true;
    }
    let before = parts[..at].iter().rev().find(|part| !is_look(part));
    let after = parts[at..].iter().find(|part| !is_look(part));
    let before = before.and_then(|part| Side::Before.is_word_nearest(part));
    let after = after.and_then(|part| Side::After.is_word_nearest(part));
    matches!((before, after), (Some(before), Some(after)) if (before != after) != is_boundary)
}

/// A side of an expression within a sequence.
#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

impl Side {
    /// Returns the assertions that restrict the text on this side, each with the characters that may be next to it.
    fn anchors(self) -> [(Look, &'static [char]); 3] {
        match self {
            Side::Before => [(Look::Start, &[]), (Look::StartLF, &['\n']), (Look::StartCRLF, &['\r', '\n'])],
            Side::After => [(Look::End, &[]), (Look::EndLF, &['\n']), (Look::EndCRLF, &['\r', '\n'])],
        }
    }

    /// Returns true if an expression matches only where no match of the other ones can be on this side.
    fn excludes(self, hir: &Hir, others: &[Hir]) -> bool {
        let excludes = |(look, allowed): (Look, &[char])| {
            self.is_anchored(hir, look) && !self.may_be_next(others, allowed, true)
        };
        self.anchors().into_iter().any(excludes)
    }

    /// Returns true if an expression matches only where this assertion holds on this side of it.
    fn is_anchored(self, hir: &Hir, anchor: Look) -> bool {
        match hir.kind() {
            HirKind::Look(look) => *look == anchor,
            HirKind::Capture(group) => self.is_anchored(&group.sub, anchor),
            HirKind::Concat(parts) => {
                let outermost = match self {
                    Side::Before => parts.first(),
                    Side::After => parts.last(),
                };
                outermost.is_some_and(|part| self.is_anchored(part, anchor))
            }
            HirKind::Alternation(parts) => parts.iter().all(|part| self.is_anchored(part, anchor)),
            _ => false,
        }
    }

    /// Returns whether the nearest character of a match on this side belongs to a word. `None` if that is not certain; only
    /// ASCII characters count.
    fn is_word_nearest(self, part: &Hir) -> Option<bool> {
        let is_word = |character: char| character == '_' || character.is_ascii_alphanumeric();
        match part.kind() {
            HirKind::Literal(literal) => {
                let nearest = match self {
                    Side::Before => literal.0.last(),
                    Side::After => literal.0.first(),
                };
                nearest.filter(|byte| byte.is_ascii()).map(|byte| is_word(char::from(*byte)))
            }
            HirKind::Class(class) => {
                let mut ascii =
                    (0..128_u8).map(char::from).filter(|character| has_character(class, *character));
                let first = is_word(ascii.next()?);
                (class.maximum_len() == Some(1) && ascii.all(|character| is_word(character) == first))
                    .then_some(first)
            }
            HirKind::Repetition(repeated) if repeated.min > 0 => self.is_word_nearest(&repeated.sub),
            HirKind::Capture(group) => self.is_word_nearest(&group.sub),
            _ => None,
        }
    }

    /// Returns true if a sequence on this side may match a text whose nearest character is one of these; `if_empty` if it
    /// matches no character.
    fn may_be_next(self, parts: &[Hir], characters: &[char], if_empty: bool) -> bool {
        let nearest_first = |at: usize| match self {
            Side::Before => &parts[parts.len() - 1 - at],
            Side::After => &parts[at],
        };
        for part in (0..parts.len()).map(nearest_first) {
            let may_be_next = match part.kind() {
                HirKind::Empty | HirKind::Look(_) => false,
                HirKind::Literal(literal) => {
                    let nearest = match self {
                        Side::Before => literal.0.last(),
                        Side::After => literal.0.first(),
                    };
                    nearest.is_some_and(|byte| characters.contains(&char::from(*byte)))
                }
                HirKind::Class(class) => characters.iter().any(|character| has_character(class, *character)),
                HirKind::Repetition(repeated) => {
                    self.may_be_next(std::slice::from_ref(&repeated.sub), characters, false)
                }
                HirKind::Capture(group) => {
                    self.may_be_next(std::slice::from_ref(&group.sub), characters, false)
                }
                HirKind::Concat(parts) => self.may_be_next(parts, characters, false),
                HirKind::Alternation(parts) => {
                    parts.iter().any(|part| self.may_be_next(std::slice::from_ref(part), characters, false))
                }
            };
            if may_be_next || part.properties().minimum_len() != Some(0) {
                return may_be_next;
            }
        }
        if_empty
    }
}

/// Returns true if a class contains an ASCII character.
fn has_character(class: &Class, character: char) -> bool {
    match class {
        Class::Unicode(class) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&character))
        }
        Class::Bytes(class) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&(character as u8)))
        }
    }
}

/// Returns the matcher of an expression that is a literal text.
fn literal_matcher(hir: &Hir) -> Option<MatchStrategy> {
    let mut parts = match hir.kind() {
        HirKind::Concat(parts) => parts.as_slice(),
        _ => std::slice::from_ref(hir),
    };
    let is_look = |part: Option<&Hir>, look| part.is_some_and(|part| *part.kind() == HirKind::Look(look));
    let at_start = is_look(parts.first(), Look::Start);
    parts = &parts[usize::from(at_start)..];
    let at_end = is_look(parts.last(), Look::End);
    parts = &parts[..parts.len() - usize::from(at_end)];
    let [part] = parts else { return None };
    let HirKind::Literal(literal) = part.kind() else { return None };
    let text = std::str::from_utf8(&literal.0).ok()?.into();
    Some(MatchStrategy::Text { text, at_start, at_end })
}

/// Builds an automaton without lazily built tables, which pay off only for many megabytes of text.
fn build_automaton(hir: &Hir) -> Result<meta::Regex, PatternError> {
    let config =
        meta::Config::new().nfa_size_limit(Some(MAX_AUTOMATON_BYTES)).hybrid(false).dfa(false).onepass(false);
    meta::Regex::builder().configure(config).build_from_hir(hir).map_err(|error| match error.size_limit() {
        Some(limit) => PatternError::TooLarge(limit),
        None => PatternError::Build(Box::new(error)),
    })
}

impl fmt::Display for Pattern {
    /// Writes the expression between slashes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (expression, flags) = split_flags(&self.source);
        write!(f, "/{expression}/{flags}")
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({self})")
    }
}

/// Escapes a text, so that the expression matches exactly this text, also within `/…/`.
pub fn escape(text: &str) -> String {
    regex_syntax::escape(text).replace('/', "\\/")
}

/// Flags behind the last slash. Those of JavaScript that have no meaning here have no effect.
const FLAGS: &str = "imsxdguvy";

/// Splits `/expression/flags`; everything else is an expression without flags.
fn split_flags(written: &str) -> (String, &str) {
    match split_slashes(written) {
        Some((body, flags)) if flags.chars().all(|flag| FLAGS.contains(flag)) => {
            (body.replace("\\/", "/"), flags)
        }
        _ => (written.to_string(), ""),
    }
}

/// Returns the text after `/expression/` if it looks like flags and is none: a single letter, or flags of which some are
/// capital letters. As a plain expression it would hardly match, so a prohibition of it would hold. Longer words are parts of
/// paths, such as `/usr/bin`.
fn mistaken_flags(written: &str) -> Option<&str> {
    let (_, flags) = split_slashes(written)?;
    let is_flag = |flag: char| FLAGS.contains(flag);
    let is_single = flags.len() == 1 && flags.chars().all(|flag| flag.is_ascii_alphabetic());
    let looks_like_flags = is_single || flags.chars().all(|flag| is_flag(flag.to_ascii_lowercase()));
    (looks_like_flags && !flags.chars().all(is_flag)).then_some(flags)
}

/// Splits a text of the form `/…/…` whose first part has no bare slash and is not empty.
fn split_slashes(written: &str) -> Option<(&str, &str)> {
    let (body, flags) = written.strip_prefix('/')?.rsplit_once('/')?;
    let mut escaped = false;
    let bare_slash = body.chars().any(|c| {
        let bare = c == '/' && !escaped;
        escaped = c == '\\' && !escaped;
        bare
    });
    (!body.is_empty() && !bare_slash).then_some((body, flags))
}

fn shorten_error(error: &str) -> String {
    // The first lines show the expression, which the snippet shows already; the last line contains the
    // reason.
    let reason = error.lines().rfind(|line| !line.trim().is_empty()).unwrap_or(error);
    let reason = reason.trim().trim_start_matches("error: ");
    if reason.contains("look-around") || reason.contains("backreferences") {
        return format!("{reason} (patterns are matched in linear time, which rules them out)");
    }
    reason.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_flags_only_in_unambiguous_form() {
        for (written, text, fits) in [
            ("approved", "Payment APPROVED", false),
            ("/approved/i", "Payment APPROVED", true),
            ("(?i)approved", "Payment APPROVED", true),
            ("/^b$/m", "a\nb", true),
            ("^b$", "a\nb", false),
            ("/a.b/s", "a\nb", true),
            ("/a/g", "a", true),
            ("/v1/orders/", "GET /v1/orders/7", true),
            ("/v1/orders/", "GET v1/orders", false),
            (r"/v1\/orders/", "GET v1/orders", true),
            ("/tmp", "in /tmp", true),
            ("/", "a/b", true),
            ("//", "a//b", true),
            ("/usr/bin", "/usr/bin/env", true),
            ("/usr/bin/x", "/usr/bin/x", true),
            ("/api/V1", "/api/V1", true),
            ("[/]a/b", "/a/b", true),
            ("/hello/v", "hello", true),
            ("/hello/di", "HELLO", true),
        ] {
            assert_eq!(Pattern::compile(written).unwrap().is_match(text), fits, "{written} on {text}");
        }
    }

    #[test]
    fn refuses_what_is_no_flag() {
        for (written, flags) in [("/HELLO/I", "I"), ("/a.b/iU", "iU"), ("/hello/n", "n"), ("/a/b", "b")] {
            let error = Pattern::compile(written).expect_err(written).to_string();
            assert!(error.starts_with(&format!("`{flags}` after the last slash is no flag")), "{error}");
        }
    }

    #[test]
    fn escaped_texts_match_themselves() {
        for text in ["/HELLO/I", "/hello/i", "/a/b", "a/b", "/", "1+1"] {
            for pattern in [escape(text), format!("/{}/i", escape(text))] {
                let pattern = Pattern::compile(&pattern).unwrap();
                assert!(pattern.is_match(text) && !pattern.is_match("hello a 11"), "{pattern}");
            }
        }
    }

    #[test]
    fn finds_patterns_that_every_text_matches() {
        for (written, every) in [
            (".*", true),
            ("^", true),
            ("$", true),
            ("(?m)$", true),
            ("a*$", true),
            (r"\b|\B", true),
            (r"(\B|\b|a)", true),
            (r"(\b)?", true),
            (r"(?s)^.*$", true),
            (r"(?s)^.*$|q", true),
            (r"^([\s\S]*)\z", true),
            (r"^.*$", false),
            (r"(?s)^.+$", false),
            (r"(?s)^a.*$", false),
            ("a|x*", true),
            ("^$", false),
            (r"\b", false),
            (r"\b|a", false),
            (".", false),
        ] {
            assert_eq!(Pattern::compile(written).unwrap().matches_every_text(), every, "{written}");
        }
    }

    #[test]
    fn obvious_literals_equal_parsed_ones() {
        for written in [
            "a",
            "^A-17$",
            "2",
            r"order-000123-1\?",
            r"^1\.5\$",
            "we don't know: 3 = three, \"x\"!",
            r"\\a\-b_@;",
        ] {
            let hir = ParserBuilder::new().build().parse(written).unwrap();
            let parts = |matcher: Option<MatchStrategy>| match matcher {
                Some(MatchStrategy::Text { text, at_start, at_end }) => (text, at_start, at_end),
                other => panic!("{written}: {}", other.is_some()),
            };
            assert_eq!(parts(unescaped_literal(written)), parts(literal_matcher(&hir)), "{written}");
        }
        for written in
            ["", "^", "$", "^$", "a.b", "a|b", "a$b", r"\d", r"\bx", "[a]", "x{2}", "a\\", "/a/i", "é", "a#b"]
        {
            assert!(unescaped_literal(written).is_none(), "{written}");
        }
    }

    #[test]
    fn explains_compile_errors() {
        for (written, words) in
            [("(unclosed", "unclosed group"), ("(?=x)", "linear time"), (r"(a)\1", "linear time")]
        {
            let error = Pattern::compile(written).unwrap_err().to_string();
            assert!(error.contains(words), "{written}: {error}");
        }
    }

    #[test]
    fn rejects_empty_patterns() {
        for written in ["", "(?i)", "()", "(?:)", "a|", "|a", "a||b", "(a|)", "(?i)error|sorry|"] {
            let error = Pattern::compile(written).expect_err(written).to_string();
            assert!(error.contains("matches every text"), "{written}: {error}");
        }
        for written in ["^$", "a?", ".*", "(a|)b", "^|a"] {
            assert!(Pattern::compile(written).is_ok(), "{written}");
        }
    }

    #[test]
    fn matches_literal_text_like_an_automaton() {
        let texts = ["", "a", "ab", "xab", "abx", "xabx", "ab\n", "\nab", "AB"];
        for written in [
            "ab", "^ab", "ab$", "^ab$", r"\Aab\z", "a\\x62", "(?-u)ab", "^$", "/ab/i", "/^ab$/m", "a?b",
            "(ab)",
        ] {
            let pattern = Pattern::compile(written).unwrap();
            let (expression, flags) = split_flags(written);
            let reference = if flags.is_empty() { expression } else { format!("(?{flags}){expression}") };
            let reference = meta::Regex::new(&reference).unwrap();
            for text in texts {
                assert_eq!(pattern.is_match(text), reference.is_match(text), "{written} on {text:?}");
            }
        }
    }

    #[test]
    fn caches_compiled_patterns_within_limits() {
        let automaton = |written: &str| match Pattern::compile(written).unwrap().matcher {
            MatchStrategy::Automaton(automaton) => automaton,
            MatchStrategy::Text { .. } | MatchStrategy::Everything => panic!("{written} needs no automaton"),
        };
        let first = automaton("kept [0-9]+");
        assert!(Arc::ptr_eq(&first, &automaton("kept [0-9]+")));
        assert!(!Arc::ptr_eq(&first, &automaton("/kept [0-9]+/i")), "flags belong to a pattern");
        let kept = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        for number in 0..2 * MAX_CACHED_PATTERNS {
            automaton(&format!("number {number}x+"));
            assert!(kept().matchers.len() <= MAX_CACHED_PATTERNS);
        }
        for least in 1..51 {
            automaton(&format!("[a-z]{{{least},2000}}"));
            assert!(kept().size <= MAX_CACHE_BYTES);
        }
    }

    #[test]
    fn matches_in_linear_time() {
        let text = "a".repeat(100_000) + "b";
        assert!(!Pattern::compile("(a+)+$").unwrap().is_match(&text));
    }

    fn is_refused(written: &str) -> bool {
        let compiled = Pattern::compile(written);
        matches!(compiled, Err(PatternError::MatchesNothing | PatternError::ImpossibleBoundary))
    }

    #[test]
    fn refuses_patterns_that_match_nothing() {
        for written in [
            "refund $50",
            "$50",
            "foo$bar",
            "error^",
            "(a$)b",
            "a(^b|^c)",
            "(x$y)+",
            "[^\\s\\S]",
            "/$5/i",
            "/$50/m",
            "(?m)$50",
            "/2^8/m",
            "(?mR)$50",
            "(?m)$\\r\\n",
            "(?m)$b?(50|60)",
            "(?m)(a|\\nb)^c",
            "a\\bb",
            "\\b\\B",
            "\\B(?m)^\\b",
            "price \\b-\\B5",
            "[a-c]+\\b[0-9]",
            "(?i)x\\by",
            "(a)\\b(b)",
        ] {
            assert!(is_refused(written), "{written}");
        }
        for written in [
            "a|b",
            "^a$",
            "a$|^b",
            "(?m)a$\\nb",
            "(?m)a$\\s*b",
            "(?m)^a",
            "(?m)a\\n^b",
            "(?m)(b|\\n)^a",
            "(?m)a$.?",
            "(?mR)a$\\r\\nb",
            "(?ms)a$.b",
            "a$(b|$)?",
            "^^a$$",
            "(x$y)*z",
            "\\$50",
            "a\\^",
            "^(a|b)$",
            "a$\\b",
            "a\\b-",
            "\\b-",
            "-\\B ",
            "a\\B\\w",
            "a\\b.b",
            "(?i)a\\bk",
            "a\\b\\W",
            "a*\\bb",
            "é\\bb",
        ] {
            assert!(Pattern::compile(written).is_ok(), "{written}");
        }
    }

    /// Tries each refused sequence of some expressions on all short texts.
    #[test]
    fn refuses_no_pattern_that_matches_a_text() {
        const PARTS: [&str; 14] = [
            "a", "\\n", "\\r", "$", "^", "\\s*", "(a|$)", "(^|\\n)", "(a^)?", "b?", ".", "\\b", "\\B",
            "[a-c]+",
        ];
        let mut texts = vec![String::new()];
        for length in 0..4 {
            let longer = texts.iter().filter(|text| text.len() == length);
            let longer: Vec<String> =
                longer.flat_map(|text| ["a", "b", "\n", "\r"].map(|end| format!("{text}{end}"))).collect();
            texts.extend(longer);
        }
        let mut refused = 0;
        for flags in ["", "(?m)", "(?mR)"] {
            for (first, second, third) in PARTS.iter().flat_map(|first| {
                PARTS.iter().flat_map(move |second| PARTS.iter().map(move |third| (first, second, third)))
            }) {
                let written = format!("{flags}{first}{second}{third}");
                if is_refused(&written) {
                    refused += 1;
                    let automaton = meta::Regex::new(&written).unwrap();
                    let matching = texts.iter().find(|text| automaton.is_match(text.as_str()));
                    assert_eq!(matching, None, "{written}");
                }
            }
        }
        assert!(refused > 500, "{refused}");
    }
}
