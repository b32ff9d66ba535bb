//! Parses expressions.

use serde_json::{Value, json};

use super::term::{BinaryOperator, ExpressionTerm, ListItem};

/// Maximum length of an expression, in bytes.
const MAX_EXPRESSION_BYTES: usize = 10_000;
/// Maximum nesting depth.
const MAX_NESTING_DEPTH: usize = 64;

/// Syntax error of an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {at}")]
pub struct ParseError {
    /// Byte offset, from 0.
    pub at: usize,
    /// Description of the error.
    pub problem: String,
}

pub(super) fn parse(text: &str) -> Result<ExpressionTerm, ParseError> {
    if text.len() > MAX_EXPRESSION_BYTES {
        return Err(ParseError {
            at: MAX_EXPRESSION_BYTES,
            problem: "the expression is too long".to_string(),
        });
    }
    let mut reader = ExpressionParser { text, at: 0, depth: 0 };
    // `$.a` means `a`.
    reader.skip_whitespace();
    if reader.rest().starts_with("$.") {
        reader.at += 2;
    }
    let term = reader.choice()?;
    reader.skip_whitespace();
    if reader.at < text.len() { Err(reader.error("unexpected text after the expression")) } else { Ok(term) }
}

struct ExpressionParser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

/// Operators of one precedence level, longest first.
const PRECEDENCE_LEVELS: &[&[(&str, BinaryOperator)]] = &[
    &[("||", BinaryOperator::Or)],
    &[("&&", BinaryOperator::And)],
    &[
        ("===", BinaryOperator::Equal),
        ("!==", BinaryOperator::Different),
        ("==", BinaryOperator::Equal),
        ("!=", BinaryOperator::Different),
        ("<=", BinaryOperator::LessOrEqual),
        (">=", BinaryOperator::MoreOrEqual),
        ("<", BinaryOperator::Less),
        (">", BinaryOperator::More),
    ],
    &[("+", BinaryOperator::Plus), ("-", BinaryOperator::Minus)],
    &[("*", BinaryOperator::Times), ("/", BinaryOperator::Divided), ("%", BinaryOperator::Remainder)],
];

impl<'a> ExpressionParser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_whitespace(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn error(&self, problem: &str) -> ParseError {
        ParseError { at: self.at, problem: problem.to_string() }
    }

    fn take(&mut self, word: &str) -> bool {
        self.skip_whitespace();
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), ParseError> {
        if self.take(word) { Ok(()) } else { Err(self.error(&format!("`{word}` is missing"))) }
    }

    fn choice(&mut self) -> Result<ExpressionTerm, ParseError> {
        self.depth += 1;
        if self.depth > MAX_NESTING_DEPTH {
            return Err(self.error("the expression is nested too deeply"));
        }
        let condition = self.binary(0)?;
        let term = if self.take("?") {
            let then = self.choice()?;
            self.expect(":")?;
            ExpressionTerm::Choice(Box::new(condition), Box::new(then), Box::new(self.choice()?))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(term)
    }

    fn binary(&mut self, level: usize) -> Result<ExpressionTerm, ParseError> {
        let Some(operators) = PRECEDENCE_LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        'more: loop {
            for (word, operator) in *operators {
                if self.take(word) {
                    let right = self.binary(level + 1)?;
                    left = ExpressionTerm::Binary(*operator, Box::new(left), Box::new(right));
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    fn unary(&mut self) -> Result<ExpressionTerm, ParseError> {
        self.depth += 1;
        if self.depth > MAX_NESTING_DEPTH {
            return Err(self.error("the expression is nested too deeply"));
        }
        let term = if self.take("!") {
            ExpressionTerm::Not(Box::new(self.unary()?))
        } else if self.take("-") {
            ExpressionTerm::Negative(Box::new(self.unary()?))
        } else {
            self.path()?
        };
        self.depth -= 1;
        Ok(term)
    }

    fn path(&mut self) -> Result<ExpressionTerm, ParseError> {
        let mut term = self.primary()?;
        loop {
            let spread = {
                self.skip_whitespace();
                self.rest().starts_with("...")
            };
            if !spread && self.take(".") {
                self.skip_whitespace();
                let digits = self.rest().chars().take_while(char::is_ascii_digit).count();
                term = if digits > 0 {
                    let index = json!(
                        self.rest()[..digits]
                            .parse::<i64>()
                            .map_err(|_| self.error("the number is too large"))?
                    );
                    self.at += digits;
                    ExpressionTerm::Index(Box::new(term), Box::new(ExpressionTerm::Constant(index)))
                } else {
                    ExpressionTerm::Member(Box::new(term), self.name()?)
                };
            } else if self.take("[") {
                let index = self.choice()?;
                self.expect("]")?;
                term = ExpressionTerm::Index(Box::new(term), Box::new(index));
            } else {
                return Ok(term);
            }
        }
    }

    fn name(&mut self) -> Result<String, ParseError> {
        self.skip_whitespace();
        let fits = |(index, letter): &(usize, char)| {
            letter.is_alphabetic() || *letter == '_' || *letter == '$' || (*index > 0 && letter.is_numeric())
        };
        let length: usize =
            self.rest().char_indices().take_while(fits).map(|(_, letter)| letter.len_utf8()).sum();
        if length == 0 {
            return Err(self.error("a name is missing"));
        }
        let name = self.rest()[..length].to_string();
        self.at += length;
        Ok(name)
    }

    fn primary(&mut self) -> Result<ExpressionTerm, ParseError> {
        self.skip_whitespace();
        let Some(first) = self.rest().chars().next() else {
            return Err(self.error("unexpected end of the expression"));
        };
        match first {
            '(' => {
                self.at += 1;
                let term = self.choice()?;
                self.expect(")")?;
                Ok(term)
            }
            '[' => self.list(),
            '{' => self.object(),
            '\'' | '"' => self.quoted(first).map(|text| ExpressionTerm::Constant(Value::String(text))),
            '0'..='9' => self.number(),
            _ => {
                let name = self.name()?;
                match name.as_str() {
                    "true" => Ok(ExpressionTerm::Constant(Value::Bool(true))),
                    "false" => Ok(ExpressionTerm::Constant(Value::Bool(false))),
                    "null" => Ok(ExpressionTerm::Constant(Value::Null)),
                    _ if self.take("(") => Ok(ExpressionTerm::Call(name, self.arguments()?)),
                    _ => Ok(ExpressionTerm::Name(name)),
                }
            }
        }
    }

    fn arguments(&mut self) -> Result<Vec<ExpressionTerm>, ParseError> {
        let mut arguments = Vec::new();
        while !self.take(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.choice()?);
        }
        Ok(arguments)
    }

    fn list(&mut self) -> Result<ExpressionTerm, ParseError> {
        self.expect("[")?;
        let mut entries = Vec::new();
        while !self.take("]") {
            if !entries.is_empty() {
                self.expect(",")?;
            }
            let all = self.take("...");
            let term = self.choice()?;
            entries.push(if all { ListItem::Spread(term) } else { ListItem::Single(term) });
        }
        Ok(ExpressionTerm::List(entries))
    }

    fn object(&mut self) -> Result<ExpressionTerm, ParseError> {
        self.expect("{")?;
        let mut members = Vec::new();
        while !self.take("}") {
            if !members.is_empty() {
                self.expect(",")?;
            }
            if self.take("...") {
                members.push((None, self.choice()?));
                continue;
            }
            self.skip_whitespace();
            let name = match self.rest().chars().next() {
                Some(quote @ ('\'' | '"')) => self.quoted(quote)?,
                _ => self.name()?,
            };
            self.expect(":")?;
            members.push((Some(name), self.choice()?));
        }
        Ok(ExpressionTerm::Object(members))
    }

    fn quoted(&mut self, quote: char) -> Result<String, ParseError> {
        let mut text = String::new();
        let mut letters = self.rest().char_indices().skip(1);
        while let Some((index, letter)) = letters.next() {
            match letter {
                '\\' => match letters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, other)) => text.push(other),
                    None => break,
                },
                letter if letter == quote => {
                    self.at += index + letter.len_utf8();
                    return Ok(text);
                }
                letter => text.push(letter),
            }
        }
        Err(self.error("unterminated string"))
    }

    fn number(&mut self) -> Result<ExpressionTerm, ParseError> {
        let whole = self.rest().chars().take_while(char::is_ascii_digit).count();
        let after = &self.rest()[whole..];
        let fraction = after
            .strip_prefix('.')
            .map_or(0, |digits| digits.chars().take_while(char::is_ascii_digit).count());
        let length = if fraction > 0 { whole + 1 + fraction } else { whole };
        let text = &self.rest()[..length];
        let value = if fraction > 0 {
            text.parse::<f64>().ok().map(|n| json!(n))
        } else {
            text.parse::<i64>().ok().map(|n| json!(n))
        };
        let value = value.ok_or_else(|| self.error("the number is too large"))?;
        self.at += length;
        Ok(ExpressionTerm::Constant(value))
    }
}
