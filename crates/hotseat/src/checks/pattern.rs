//! Regular expressions as users write them: searched, not anchored, in time linear in the text.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex_automata::meta;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};

/// The largest automaton a pattern may need, in bytes.
const SIZE_LIMIT: usize = 10 * 1024 * 1024;
/// How many patterns are kept compiled, and how many bytes they may take together.
const MOST_KEPT: usize = 256;
const LARGEST_KEPT: usize = 32 * 1024 * 1024;

/// A regular expression.
///
/// Written plainly, or as `/expression/flags` with the flags `i` (case does not matter), `m` (`^` and `$` at
/// line ends), `s` (`.` fits line ends), `u` (default), `x` (blanks ignored); `g` and `y` change nothing. As in
/// the languages that have this form, a slash inside must be written `\/`: so `/v1/orders/` is a plain one.
#[derive(Clone)]
pub struct Pattern {
    written: String,
    matcher: Matcher,
}

/// How a pattern is matched. Most patterns that people write are a text, perhaps at the start or the end; and
/// most are matched once or twice, so making an automaton would take longer than all the matching.
#[derive(Clone)]
enum Matcher {
    Text { text: Arc<str>, at_start: bool, at_end: bool },
    Automaton(Arc<meta::Regex>),
}

/// Patterns that are compiled, by the text that is written. The cases of a run repeat few patterns many times, and to compile
/// one takes as long as a part of a conversation.
static COMPILED: LazyLock<Mutex<Compiled>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Compiled {
    matchers: HashMap<String, Matcher>,
    /// What they take, in bytes.
    size: usize,
}

impl Compiled {
    /// Keeps a matcher. Where that would be too much, everything else is forgotten first.
    fn keep(&mut self, written: &str, matcher: &Matcher) {
        let size = written.len() + matcher.size();
        if self.matchers.len() >= MOST_KEPT || self.size + size > LARGEST_KEPT {
            *self = Compiled::default();
        }
        // Another thread may have compiled the same meanwhile.
        if self.matchers.insert(written.to_string(), matcher.clone()).is_none() {
            self.size += size;
        }
    }
}

impl Matcher {
    fn size(&self) -> usize {
        match self {
            Matcher::Text { text, .. } => text.len(),
            Matcher::Automaton(automaton) => automaton.memory_usage(),
        }
    }
}

impl Pattern {
    /// Compiles an expression, unless that was done before.
    ///
    /// # Errors
    /// When it is not one; the words name what is wrong and, for what other dialects have, say so.
    pub fn compile(written: &str) -> Result<Pattern, String> {
        let compiled = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = compiled().matchers.get(written).cloned();
        let matcher = match known {
            Some(matcher) => matcher,
            None => {
                let matcher = matcher(written)?;
                compiled().keep(written, &matcher);
                matcher
            }
        };
        Ok(Pattern { written: written.to_string(), matcher })
    }

    /// Whether it fits anywhere in a text.
    pub fn fits(&self, text: &str) -> bool {
        match &self.matcher {
            Matcher::Automaton(automaton) => automaton.is_match(text),
            Matcher::Text { text: wanted, at_start: false, at_end: false } => text.contains(&**wanted),
            Matcher::Text { text: wanted, at_start: true, at_end: false } => text.starts_with(&**wanted),
            Matcher::Text { text: wanted, at_start: false, at_end: true } => text.ends_with(&**wanted),
            Matcher::Text { text: wanted, at_start: true, at_end: true } => text == &**wanted,
        }
    }
}

/// What matches an expression.
fn matcher(written: &str) -> Result<Matcher, String> {
    let (expression, flags) = split_flags(written);
    let has = |flag: char| flags.contains(flag);
    let hir = ParserBuilder::new()
        .case_insensitive(has('i'))
        .multi_line(has('m'))
        .dot_matches_new_line(has('s'))
        .ignore_whitespace(has('x'))
        .build()
        .parse(&expression)
        .map_err(|error| explain(&error.to_string()))?;
    if fits_nothing_written(&hir) {
        return Err(
            "nothing is written there, or in one of its alternatives, so it fits every text".to_string()
        );
    }
    match plain_text(&hir) {
        Some(text) => Ok(text),
        None => Ok(Matcher::Automaton(Arc::new(automaton(&hir)?))),
    }
}

/// Whether an expression, or one of the alternatives that it is, is empty.
fn fits_nothing_written(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty => true,
        HirKind::Alternation(parts) => parts.iter().any(fits_nothing_written),
        HirKind::Capture(group) => fits_nothing_written(&group.sub),
        _ => false,
    }
}

/// The matcher of an expression that is just a text.
fn plain_text(hir: &Hir) -> Option<Matcher> {
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
    Some(Matcher::Text { text, at_start, at_end })
}

/// An automaton without the lazily built tables that pay off only over many megabytes.
fn automaton(hir: &Hir) -> Result<meta::Regex, String> {
    let config = meta::Config::new().nfa_size_limit(Some(SIZE_LIMIT)).hybrid(false).dfa(false).onepass(false);
    meta::Regex::builder().configure(config).build_from_hir(hir).map_err(|error| match error.size_limit() {
        Some(limit) => format!("it needs an automaton of more than {limit} bytes"),
        None => explain(&error.to_string()),
    })
}

impl fmt::Display for Pattern {
    /// The expression between slashes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (expression, flags) = split_flags(&self.written);
        write!(f, "/{expression}/{flags}")
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({self})")
    }
}

/// A text as an expression that fits just that text.
pub fn escape(text: &str) -> String {
    regex_syntax::escape(text)
}

/// Takes `/expression/flags` apart; everything else is an expression without flags.
fn split_flags(written: &str) -> (String, &str) {
    let plain = || (written.to_string(), "");
    let Some((body, flags)) = written.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')) else {
        return plain();
    };
    let flags_known = flags.chars().all(|flag| "imsuxgy".contains(flag));
    let mut escaped = false;
    let bare_slash = body.chars().any(|c| {
        let bare = c == '/' && !escaped;
        escaped = c == '\\' && !escaped;
        bare
    });
    if body.is_empty() || !flags_known || bare_slash { plain() } else { (body.replace("\\/", "/"), flags) }
}

fn explain(error: &str) -> String {
    // The first lines draw the expression, which the snippet shows already; the last one says what is wrong.
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
    fn flags_are_read_only_where_the_form_is_unmistakable() {
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
        ] {
            assert_eq!(Pattern::compile(written).unwrap().fits(text), fits, "{written} on {text}");
        }
    }

    #[test]
    fn what_does_not_compile_is_explained() {
        for (written, words) in
            [("(unclosed", "unclosed group"), ("(?=x)", "linear time"), (r"(a)\1", "linear time")]
        {
            let error = Pattern::compile(written).unwrap_err();
            assert!(error.contains(words), "{written}: {error}");
        }
    }

    #[test]
    fn what_is_empty_is_refused() {
        for written in ["", "(?i)", "()", "(?:)", "a|", "|a", "a||b", "(a|)", "(?i)error|sorry|"] {
            let error = Pattern::compile(written).expect_err(written);
            assert!(error.contains("fits every text"), "{written}: {error}");
        }
        for written in ["^$", "a?", ".*", "(a|)b", "^|a"] {
            assert!(Pattern::compile(written).is_ok(), "{written}");
        }
    }

    #[test]
    fn a_plain_text_is_matched_as_its_automaton_would() {
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
                assert_eq!(pattern.fits(text), reference.is_match(text), "{written} on {text:?}");
            }
        }
    }

    #[test]
    fn what_is_compiled_is_kept_and_what_is_kept_is_bounded() {
        let automaton = |written: &str| match Pattern::compile(written).unwrap().matcher {
            Matcher::Automaton(automaton) => automaton,
            Matcher::Text { .. } => panic!("{written} is a text"),
        };
        let first = automaton("kept [0-9]+");
        assert!(Arc::ptr_eq(&first, &automaton("kept [0-9]+")));
        assert!(!Arc::ptr_eq(&first, &automaton("/kept [0-9]+/i")), "flags belong to a pattern");
        let kept = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        for number in 0..2 * MOST_KEPT {
            automaton(&format!("number {number}x+"));
            assert!(kept().matchers.len() <= MOST_KEPT);
        }
        for least in 0..50 {
            automaton(&format!("[a-z]{{{least},2000}}"));
            assert!(kept().size <= LARGEST_KEPT);
        }
    }

    #[test]
    fn time_is_linear() {
        let text = "a".repeat(100_000) + "b";
        assert!(!Pattern::compile("(a+)+$").unwrap().fits(&text));
    }
}
