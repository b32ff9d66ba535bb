//! Filters for cases by name, text and tag, the same for every command and front end.

use hotseat_checks::{Pattern, PatternError};

/// Maximum length of a keyword expression.
const MAX_EXPRESSION_BYTES: usize = 10_000;
/// Maximum number of nested brackets and negations in a keyword expression.
const MAX_EXPRESSION_DEPTH: usize = 50;

/// Filter for cases. The default selects all.
#[derive(Debug, Clone, Default)]
pub struct CaseFilter {
    /// Words among the paths: id, name, suite or a tag contains one of these. Upper and lower case do not matter.
    pub words: Vec<String>,
    /// `--run`: the id or the name matches one of these.
    pub names: Vec<Pattern>,
    /// `-k`.
    pub keywords: Option<KeywordExpression>,
    /// `--grep`: id, name, suite or a tag matches one of these.
    pub texts: Vec<Pattern>,
    /// `--tag`: the case has one of these.
    pub tags: Vec<String>,
    /// `--exclude-tag`: the case has none of these.
    pub excluded_tags: Vec<String>,
}

/// Labels of a case that a filter looks at.
#[derive(Debug, Clone, Copy)]
pub struct CaseLabels<'a> {
    /// Id of the case.
    pub id: &'a str,
    /// Display name.
    pub name: &'a str,
    /// Path of the suite, relative to the project.
    pub suite: &'a str,
    /// Tags.
    pub tags: &'a [String],
}

/// An invalid value of a selection flag.
#[derive(Debug, Clone, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum CaseFilterError {
    #[error("{flag} {text:?} is not a valid regular expression: {source}")]
    Pattern { flag: &'static str, text: String, source: PatternError },
    #[error("-k {text:?} is not a valid expression: {source}")]
    Keywords { text: String, source: KeywordError },
}

impl CaseFilter {
    /// Compiles the values of the selection flags. Fails if a regular expression or the keyword expression is
    /// invalid.
    pub fn compile(
        names: &[String],
        keywords: Option<&str>,
        texts: &[String],
        tags: &[String],
        excluded_tags: &[String],
    ) -> Result<CaseFilter, CaseFilterError> {
        let compile = |flag: &'static str, written: &[String]| -> Result<Vec<Pattern>, CaseFilterError> {
            let pattern = |text: &String| {
                Pattern::compile(text).map_err(|source| CaseFilterError::Pattern {
                    flag,
                    text: text.clone(),
                    source,
                })
            };
            written.iter().map(pattern).collect()
        };
        let expression = keywords.map(|text| {
            KeywordExpression::parse(text)
                .map_err(|source| CaseFilterError::Keywords { text: text.to_string(), source })
        });
        Ok(CaseFilter {
            words: Vec::new(),
            names: compile("--run", names)?,
            keywords: expression.transpose()?,
            texts: compile("--grep", texts)?,
            tags: tags.to_vec(),
            excluded_tags: excluded_tags.to_vec(),
        })
    }

    /// True if a case is selected.
    pub fn matches(&self, labels: CaseLabels<'_>) -> bool {
        let is_any = |patterns: &[Pattern], matches: &dyn Fn(&Pattern) -> bool| {
            patterns.is_empty() || patterns.iter().any(matches)
        };
        let has_tag = |tag: &String| labels.tags.contains(tag);
        (self.words.is_empty() || self.words.iter().any(|word| labels.contain(word)))
            && is_any(&self.names, &|pattern| labels.name_matches(pattern))
            && is_any(&self.texts, &|pattern| {
                labels.name_matches(pattern)
                    || pattern.is_match(labels.suite)
                    || labels.tags.iter().any(|tag| pattern.is_match(tag))
            })
            && (self.tags.is_empty() || self.tags.iter().any(has_tag))
            && !self.excluded_tags.iter().any(has_tag)
            && self.keywords.as_ref().is_none_or(|keywords| keywords.matches(labels))
    }
}

impl CaseLabels<'_> {
    /// True if a pattern matches the id or the name.
    pub fn name_matches(&self, pattern: &Pattern) -> bool {
        pattern.is_match(self.id) || pattern.is_match(self.name)
    }

    /// True if the id, the name, the suite or a tag contains a word. Upper and lower case do not matter.
    pub fn contain(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        self.in_lower_case().any(|text| text.contains(&word))
    }

    fn in_lower_case(&self) -> impl Iterator<Item = String> {
        let texts = [self.id, self.name, self.suite].into_iter();
        texts.chain(self.tags.iter().map(String::as_str)).map(str::to_lowercase)
    }
}

/// Words joined by `and`, `or` and `not`, with brackets, as `-k` of pytest. A word matches a case if its id, name,
/// suite or a tag contains it; the case of letters does not matter. Quotes join several words.
#[derive(Debug, Clone)]
pub struct KeywordExpression {
    root: KeywordNode,
}

#[derive(Debug, Clone)]
enum KeywordNode {
    /// In lower case.
    Word(String),
    Not(Box<KeywordNode>),
    All(Vec<KeywordNode>),
    Any(Vec<KeywordNode>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeywordToken {
    Word(String),
    And,
    Or,
    Not,
    Open,
    Close,
}

/// An invalid keyword expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum KeywordError {
    #[error("it is longer than {MAX_EXPRESSION_BYTES} bytes")]
    TooLong,
    #[error("the quote at column {0} is not closed")]
    OpenQuote(usize),
    #[error("the quotes at column {0} are empty")]
    EmptyQuotes(usize),
    #[error("too many nested brackets at column {0}")]
    TooDeep(usize),
    #[error("expected {expected} at column {column}{}", .is_word.then_some("; quotes join the words of one text").unwrap_or_default())]
    Unexpected { expected: &'static str, column: usize, is_word: bool },
}

impl KeywordExpression {
    /// Parses an expression. Fails if it is empty, too long, too deeply nested, or malformed.
    pub fn parse(text: &str) -> Result<KeywordExpression, KeywordError> {
        if text.len() > MAX_EXPRESSION_BYTES {
            return Err(KeywordError::TooLong);
        }
        let mut parser =
            KeywordParser { tokens: keyword_tokens(text)?, next: 0, end: text.chars().count() + 1 };
        let root = parser.any(0)?;
        let is_word = match parser.peek() {
            None => return Ok(KeywordExpression { root }),
            Some(token) => matches!(token, KeywordToken::Word(_)),
        };
        Err(KeywordError::Unexpected { expected: "`and`, `or` or the end", column: parser.column(), is_word })
    }

    /// True if the expression holds for a case.
    pub fn matches(&self, labels: CaseLabels<'_>) -> bool {
        let texts: Vec<String> = labels.in_lower_case().collect();
        self.root.matches(&texts)
    }

    /// Words of the expression in lower case, including negated ones.
    pub fn words(&self) -> Vec<&str> {
        let mut words = Vec::new();
        self.root.collect_words(&mut words);
        words
    }
}

impl KeywordNode {
    fn matches(&self, texts: &[String]) -> bool {
        match self {
            KeywordNode::Word(word) => texts.iter().any(|text| text.contains(word)),
            KeywordNode::Not(part) => !part.matches(texts),
            KeywordNode::All(parts) => parts.iter().all(|part| part.matches(texts)),
            KeywordNode::Any(parts) => parts.iter().any(|part| part.matches(texts)),
        }
    }

    fn collect_words<'a>(&'a self, words: &mut Vec<&'a str>) {
        match self {
            KeywordNode::Word(word) => words.push(word),
            KeywordNode::Not(part) => part.collect_words(words),
            KeywordNode::All(parts) | KeywordNode::Any(parts) => {
                parts.iter().for_each(|part| part.collect_words(words));
            }
        }
    }
}

/// Parser of a keyword expression, by recursive descent with a bounded depth.
struct KeywordParser {
    /// Each with its column.
    tokens: Vec<(KeywordToken, usize)>,
    next: usize,
    /// Column after the text.
    end: usize,
}

impl KeywordParser {
    fn peek(&self) -> Option<&KeywordToken> {
        self.tokens.get(self.next).map(|(token, _)| token)
    }

    fn accepts(&mut self, token: &KeywordToken) -> bool {
        let is_next = self.peek() == Some(token);
        self.next += usize::from(is_next);
        is_next
    }

    fn column(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(_, column)| *column)
    }

    fn unexpected(&self, expected: &'static str) -> KeywordError {
        KeywordError::Unexpected { expected, column: self.column(), is_word: false }
    }

    fn any(&mut self, depth: usize) -> Result<KeywordNode, KeywordError> {
        let mut parts = vec![self.all(depth)?];
        while self.accepts(&KeywordToken::Or) {
            parts.push(self.all(depth)?);
        }
        Ok(KeywordNode::Any(parts))
    }

    fn all(&mut self, depth: usize) -> Result<KeywordNode, KeywordError> {
        let mut parts = vec![self.unary(depth)?];
        while self.accepts(&KeywordToken::And) {
            parts.push(self.unary(depth)?);
        }
        Ok(KeywordNode::All(parts))
    }

    fn unary(&mut self, depth: usize) -> Result<KeywordNode, KeywordError> {
        if depth > MAX_EXPRESSION_DEPTH {
            return Err(KeywordError::TooDeep(self.column()));
        }
        if self.accepts(&KeywordToken::Not) {
            return Ok(KeywordNode::Not(Box::new(self.unary(depth + 1)?)));
        }
        if self.accepts(&KeywordToken::Open) {
            let inner = self.any(depth + 1)?;
            return match self.accepts(&KeywordToken::Close) {
                true => Ok(inner),
                false => Err(self.unexpected("`)`")),
            };
        }
        match self.peek() {
            Some(KeywordToken::Word(word)) => {
                let word = KeywordNode::Word(word.to_lowercase());
                self.next += 1;
                Ok(word)
            }
            _ => Err(self.unexpected("a word")),
        }
    }
}

/// Splits an expression into words, operators and brackets, each with its column.
fn keyword_tokens(text: &str) -> Result<Vec<(KeywordToken, usize)>, KeywordError> {
    let mut tokens = Vec::new();
    let mut characters = text.chars().enumerate().peekable();
    while let Some((index, character)) = characters.next() {
        let token = match character {
            character if character.is_whitespace() => continue,
            '(' => KeywordToken::Open,
            ')' => KeywordToken::Close,
            quote @ ('"' | '\'') => {
                let mut word = String::new();
                loop {
                    match characters.next() {
                        Some((_, end)) if end == quote => break,
                        Some((_, inner)) => word.push(inner),
                        None => return Err(KeywordError::OpenQuote(index + 1)),
                    }
                }
                if word.is_empty() {
                    return Err(KeywordError::EmptyQuotes(index + 1));
                }
                KeywordToken::Word(word)
            }
            first => {
                let mut word = String::from(first);
                let is_part = |next: &(usize, char)| !next.1.is_whitespace() && !matches!(next.1, '(' | ')');
                while let Some((_, next)) = characters.next_if(is_part) {
                    word.push(next);
                }
                match word.as_str() {
                    "and" => KeywordToken::And,
                    "or" => KeywordToken::Or,
                    "not" => KeywordToken::Not,
                    _ => KeywordToken::Word(word),
                }
            }
        };
        tokens.push((token, index + 1));
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(expression: &str, tags: &[&str]) -> bool {
        let tags: Vec<String> = tags.iter().map(|tag| tag.to_string()).collect();
        let labels =
            CaseLabels { id: "pay-once", name: "Pays once", suite: "shop/checkout.test.yaml", tags: &tags };
        KeywordExpression::parse(expression)
            .unwrap_or_else(|error| panic!("{expression}: {error}"))
            .matches(labels)
    }

    #[test]
    fn keywords_combine_as_in_pytest() {
        for (expression, expected) in [
            ("pays", true),
            ("PAYS and checkout", true),
            ("pays and refund", false),
            ("refund or slow", true),
            ("not slow", false),
            ("not (refund or quick)", true),
            ("refund and refund or pays", true),
            ("refund and (refund or pays)", false),
            ("not not pay-once", true),
            ("'pays once'", true),
            ("\"pays twice\"", false),
            ("shop/checkout", true),
        ] {
            assert_eq!(matches(expression, &["slow"]), expected, "{expression}");
        }
    }

    #[test]
    fn invalid_expressions_name_the_column() {
        let deep = "(".repeat(100) + "a" + &")".repeat(100);
        for (expression, words) in [
            ("", "expected a word at column 1"),
            ("a and", "expected a word at column 6"),
            ("a b", "expected `and`, `or` or the end at column 3; quotes join the words of one text"),
            ("(a", "expected `)` at column 3"),
            ("a)", "expected `and`, `or` or the end at column 2"),
            ("or a", "expected a word at column 1"),
            ("'a", "the quote at column 1 is not closed"),
            ("''", "the quotes at column 1 are empty"),
            (&deep, "too many nested brackets at column 52"),
            (&"a ".repeat(6_000), "it is longer than 10000 bytes"),
        ] {
            assert_eq!(KeywordExpression::parse(expression).unwrap_err().to_string(), words, "{expression}");
        }
        let flat = vec!["a"; 2_000].join(" or ");
        assert!(KeywordExpression::parse(&flat).is_ok());
    }
}
