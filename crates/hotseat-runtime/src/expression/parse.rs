//! Text becomes an expression.

use std::fmt;

use serde_json::{Value, json};

use super::{Entry, Operator, Term};

/// How long an expression may be, in bytes.
const LONGEST: usize = 10_000;
/// How deep it may be nested.
const DEEPEST: usize = 64;

/// Where an expression cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The byte, from 0.
    pub at: usize,
    /// What is wrong there.
    pub problem: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.problem, self.at)
    }
}

impl std::error::Error for ParseError {}

pub(super) fn parse(text: &str) -> Result<Term, ParseError> {
    if text.len() > LONGEST {
        return Err(ParseError { at: LONGEST, problem: "it is too long".to_string() });
    }
    let mut reader = Reader { text, at: 0, depth: 0 };
    // `$.a` means `a`.
    reader.skip();
    if reader.rest().starts_with("$.") {
        reader.at += 2;
    }
    let term = reader.choice()?;
    reader.skip();
    if reader.at < text.len() { Err(reader.error("something is left over")) } else { Ok(term) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

/// The operators of one strength, longest first.
const LEVELS: &[&[(&str, Operator)]] = &[
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[
        ("===", Operator::Equal),
        ("!==", Operator::Different),
        ("==", Operator::Equal),
        ("!=", Operator::Different),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::MoreOrEqual),
        ("<", Operator::Less),
        (">", Operator::More),
    ],
    &[("+", Operator::Plus), ("-", Operator::Minus)],
    &[("*", Operator::Times), ("/", Operator::Divided), ("%", Operator::Remainder)],
];

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn error(&self, problem: &str) -> ParseError {
        ParseError { at: self.at, problem: problem.to_string() }
    }

    fn take(&mut self, word: &str) -> bool {
        self.skip();
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn need(&mut self, word: &str) -> Result<(), ParseError> {
        if self.take(word) { Ok(()) } else { Err(self.error(&format!("`{word}` is missing"))) }
    }

    fn choice(&mut self) -> Result<Term, ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("it is nested too deeply"));
        }
        let condition = self.binary(0)?;
        let term = if self.take("?") {
            let then = self.choice()?;
            self.need(":")?;
            Term::Choice(Box::new(condition), Box::new(then), Box::new(self.choice()?))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(term)
    }

    fn binary(&mut self, level: usize) -> Result<Term, ParseError> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        'more: loop {
            for (word, operator) in *operators {
                if self.take(word) {
                    let right = self.binary(level + 1)?;
                    left = Term::Binary(*operator, Box::new(left), Box::new(right));
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    fn unary(&mut self) -> Result<Term, ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("it is nested too deeply"));
        }
        let term = if self.take("!") {
            Term::Not(Box::new(self.unary()?))
        } else if self.take("-") {
            Term::Negative(Box::new(self.unary()?))
        } else {
            self.path()?
        };
        self.depth -= 1;
        Ok(term)
    }

    fn path(&mut self) -> Result<Term, ParseError> {
        let mut term = self.primary()?;
        loop {
            let spread = {
                self.skip();
                self.rest().starts_with("...")
            };
            if !spread && self.take(".") {
                self.skip();
                let digits = self.rest().chars().take_while(char::is_ascii_digit).count();
                term = if digits > 0 {
                    let index = json!(
                        self.rest()[..digits]
                            .parse::<i64>()
                            .map_err(|_| self.error("the number is too large"))?
                    );
                    self.at += digits;
                    Term::Index(Box::new(term), Box::new(Term::Constant(index)))
                } else {
                    Term::Member(Box::new(term), self.name()?)
                };
            } else if self.take("[") {
                let index = self.choice()?;
                self.need("]")?;
                term = Term::Index(Box::new(term), Box::new(index));
            } else {
                return Ok(term);
            }
        }
    }

    fn name(&mut self) -> Result<String, ParseError> {
        self.skip();
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

    fn primary(&mut self) -> Result<Term, ParseError> {
        self.skip();
        let Some(first) = self.rest().chars().next() else { return Err(self.error("it ends too early")) };
        match first {
            '(' => {
                self.at += 1;
                let term = self.choice()?;
                self.need(")")?;
                Ok(term)
            }
            '[' => self.list(),
            '{' => self.object(),
            '\'' | '"' => self.quoted(first).map(|text| Term::Constant(Value::String(text))),
            '0'..='9' => self.number(),
            _ => {
                let name = self.name()?;
                match name.as_str() {
                    "true" => Ok(Term::Constant(Value::Bool(true))),
                    "false" => Ok(Term::Constant(Value::Bool(false))),
                    "null" => Ok(Term::Constant(Value::Null)),
                    _ if self.take("(") => Ok(Term::Call(name, self.arguments()?)),
                    _ => Ok(Term::Name(name)),
                }
            }
        }
    }

    fn arguments(&mut self) -> Result<Vec<Term>, ParseError> {
        let mut arguments = Vec::new();
        while !self.take(")") {
            if !arguments.is_empty() {
                self.need(",")?;
            }
            arguments.push(self.choice()?);
        }
        Ok(arguments)
    }

    fn list(&mut self) -> Result<Term, ParseError> {
        self.need("[")?;
        let mut entries = Vec::new();
        while !self.take("]") {
            if !entries.is_empty() {
                self.need(",")?;
            }
            let all = self.take("...");
            let term = self.choice()?;
            entries.push(if all { Entry::All(term) } else { Entry::One(term) });
        }
        Ok(Term::List(entries))
    }

    fn object(&mut self) -> Result<Term, ParseError> {
        self.need("{")?;
        let mut members = Vec::new();
        while !self.take("}") {
            if !members.is_empty() {
                self.need(",")?;
            }
            if self.take("...") {
                members.push((None, self.choice()?));
                continue;
            }
            self.skip();
            let name = match self.rest().chars().next() {
                Some(quote @ ('\'' | '"')) => self.quoted(quote)?,
                _ => self.name()?,
            };
            self.need(":")?;
            members.push((Some(name), self.choice()?));
        }
        Ok(Term::Object(members))
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
        Err(self.error("the text has no end"))
    }

    fn number(&mut self) -> Result<Term, ParseError> {
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
        Ok(Term::Constant(value))
    }
}
