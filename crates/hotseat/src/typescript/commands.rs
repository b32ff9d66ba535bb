//! What tests ask of their session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_document::{Diagnostic, Kind, Place};
use hotseat_trace::{Failure, FailureKind};
use serde_json::{Map, Value, json};

use super::engine::File;
use super::keys::keys_as_written;
use super::told;
use crate::cases::shape::{OWN_ASSERT_KIND, TURN};
use crate::cases::{SHARED, SIMULATE, USER, assertions_in, brief_in, messages_in, topics_in, turn_in};
use crate::checks::{
    Check, CheckKind, Compared, Judged, Judging, Matter, Open, Path as JsonPath, Reference, Strength, shown,
};
use crate::roles::Judgement;
use crate::session::{Checked, Ended, SaidElsewhere, Session, Simulation, Subject};

/// What a command comes to.
enum Reply {
    /// It was carried out; this is what it gives.
    Done(Value),
    /// The case has ended.
    Ended(Ended),
    /// It makes no sense, in words.
    Wrong(String),
}

/// Carries out what a test asks for, and says what it is told.
pub async fn act(command: &Value, session: &mut Session<'_>, file: &File) -> Value {
    let command = Command { given: command, file };
    let reply = match command.given["do"].as_str().unwrap_or_default() {
        "say" => command.say(session).await,
        "simulate" => command.simulate(session).await,
        "graph" => command.graph(session).await,
        "decide" => command.decide(session).await,
        // The test has found it out itself.
        "misuse" => Reply::Wrong(command.text("words")),
        "skip" => Reply::Ended(session.skip(command.text("reason"))),
        "results" => Reply::Done(told::results(session.checks()).into()),
        "path" => command.path(),
        "end" => {
            // Functions that topics ask are there only as long as the test.
            if session.goes_on().is_ok() {
                session.decide_all_topics().await;
            }
            Reply::Done(Value::Null)
        }
        "judge" => command.judge(session).await,
        other => Reply::Wrong(format!("`{other}` is nothing that a test can ask for")),
    };
    let mut told = Map::new();
    match reply {
        Reply::Done(value) => drop(told.insert("value".to_string(), value)),
        Reply::Ended(Ended { why, .. }) => drop(told.insert("ended".to_string(), why.into())),
        Reply::Wrong(words) => {
            let failure = command.mistaken(&words, session);
            session.fail(failure);
            told.insert("wrong".to_string(), words.into());
        }
    }
    if session.topics().is_some() {
        told.insert("topics".to_string(), told::topics(session.conversation()));
    }
    Value::Object(told)
}

#[derive(Clone, Copy)]
struct Command<'a> {
    given: &'a Value,
    file: &'a File,
}

impl Command<'_> {
    fn text(self, key: &str) -> String {
        self.given[key].as_str().unwrap_or_default().to_string()
    }

    /// Where it was asked for.
    fn place(self, session: &Session<'_>) -> Place {
        self.places().next().unwrap_or_else(|| session.case().place.clone())
    }

    /// Where the file of tests calls what has asked for it, if that is in another file.
    fn called_at(self, session: &Session<'_>) -> Option<Place> {
        let in_test = self.places().position(|place| place.file() == session.case().place.file())?;
        self.places().nth(in_test).filter(|_| in_test > 0)
    }

    /// The calls that led there, the innermost first.
    fn places(self) -> impl Iterator<Item = Place> {
        let stack = self.given["at"].as_str().unwrap_or_default();
        self.file.scripts.frames(stack).into_iter().map(|frame| frame.place)
    }

    fn place_of(self, stack: &Value) -> Option<Place> {
        let frames = self.file.scripts.frames(stack.as_str()?);
        Some(frames.into_iter().next()?.place)
    }

    /// The failure of a test that asks for what makes no sense. It stays one, whoever catches what is thrown.
    fn mistaken(self, words: &str, session: &Session<'_>) -> Failure {
        let place = self.place(session);
        let mut shown = Diagnostic::new(words).at(place.clone());
        if let Some(called_at) = self.called_at(session) {
            shown = shown.also(called_at, "called here");
        }
        let shown = shown.render(false, 100);
        Failure::new(FailureKind::ScriptError, format!("{words} ({place})")).with_detail(shown)
    }

    async fn say(self, session: &mut Session<'_>) -> Reply {
        let place = self.place(session);
        let written = keys_as_written(&self.given["turn"], &Kind::Shape(&TURN));
        match turn_in(&written, &session.case().unwritten, place) {
            Err(words) => Reply::Wrong(words),
            Ok(mut turn) => {
                let folders: Vec<&Path> = self.file.folders.iter().map(PathBuf::as_path).collect();
                match turn.load_attachments(&folders) {
                    Err(words) => Reply::Wrong(words),
                    Ok(()) => {
                        turn.checks.iter_mut().for_each(by_name);
                        done(session.say(turn).await)
                    }
                }
            }
        }
    }

    async fn simulate(self, session: &mut Session<'_>) -> Reply {
        let place = self.place(session);
        let groups = self.given["above"].as_array().into_iter().flatten();
        let groups: Vec<Value> = groups.map(|brief| keys_as_written(brief, &Kind::Shape(&USER))).collect();
        let own = keys_as_written(&self.given["brief"], &Kind::Shape(&SIMULATE));
        let mut brief = match brief_in(&own, &groups, &session.case().shared().simulate, &place) {
            Err(words) => return Reply::Wrong(words),
            Ok(brief) => brief,
        };
        if let Some(template) = &mut brief.template
            && let Err(words) = template.load(&self.file.folders)
        {
            return Reply::Wrong(words);
        }
        let simulation = Simulation { max_turns: None, brief: Some(Arc::new(brief)) };
        let first = session.conversation().turns.len();
        match session.simulate(simulation).await {
            Ok(stopped) => Reply::Done(json!({
                "reason": stopped.reason.name(),
                "goalProgress": stopped.goal_progress,
                "detail": stopped.detail,
                "turnCount": session.conversation().turns.len() - first,
            })),
            Err(ended) => Reply::Ended(ended),
        }
    }

    async fn graph(self, session: &mut Session<'_>) -> Reply {
        let written = json!({"topics": self.given["topics"], "graph": self.given["graph"]});
        let written = keys_as_written(&written, &Kind::Shape(&SHARED));
        let case = session.case();
        match topics_in(&written, &case.shared().topics, case.following, self.place(session)) {
            Err(words) => Reply::Wrong(words),
            Ok(mut topics) => {
                for topic in &mut topics.topics {
                    let place = self.place_of(&self.given["places"][&*topic.name]);
                    let topic = Arc::make_mut(topic);
                    topic.place = place.unwrap_or_else(|| topics.place.clone());
                    for check in topic.checks.iter_mut().chain(&mut topic.turn_checks) {
                        check.place = topic.place.clone();
                        by_name(check);
                    }
                }
                done(session.declare_topics(Arc::new(topics)).await)
            }
        }
    }

    /// Has everything decided that is asserted at once.
    async fn decide(self, session: &mut Session<'_>) -> Reply {
        let (place, called_at) = (self.place(session), self.called_at(session));
        let mut checks = Vec::new();
        for asserted in self.given["asserted"].as_array().into_iter().flatten() {
            match self.asserted(asserted, &place) {
                Ok(found) if found.is_empty() => return Reply::Wrong("this asserts nothing".to_string()),
                Ok(found) => {
                    checks.extend(
                        found.into_iter().map(|check| Check { called_at: called_at.clone(), ..check }),
                    );
                }
                Err(words) => return Reply::Wrong(words),
            }
        }
        if self.is("negated") && checks.len() > 1 {
            let words = "`not` of several assertions: nobody can tell which of them must not hold";
            return Reply::Wrong(words.to_string());
        }
        let subject = match self.given["subject"].as_str() {
            Some("turn") => Subject::LastTurn,
            Some("conversation") => Subject::Conversation,
            _ => Subject::Value,
        };
        let holds = |checked: &Checked| checked.verdict.passed && checked.error.is_none();
        match session.decide_all(checks, subject).await {
            Ok(decided) => Reply::Done(decided.iter().all(holds).into()),
            Err(ended) => Reply::Ended(ended),
        }
    }

    /// The checks that one assertion amounts to.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    fn asserted(self, asserted: &Value, place: &Place) -> Result<Vec<Check>, String> {
        let checks = match &asserted["compared"] {
            Value::Null => {
                let written = keys_as_written(&asserted["assertion"], &OWN_ASSERT_KIND);
                let mut checks = assertions_in(&written)?;
                checks.iter_mut().for_each(by_name);
                checks
            }
            compared => vec![self.compared(compared, place)],
        };
        let own = self.given["message"].as_str().map(str::to_string);
        let negated = |check: &Check| check.negated != self.is("negated");
        let told = |check: Check| Check {
            negated: negated(&check),
            written: check.written.as_deref().map(|written| Arc::new(negating(written, negated(&check)))),
            strength: if self.is("soft") { Strength::Soft } else { Strength::Hard },
            message: own.clone().or(check.message),
            place: place.clone(),
            ..check
        };
        Ok(checks.into_iter().map(told).collect())
    }

    /// A comparison that the test has made.
    fn compared(self, made: &Value, place: &Place) -> Check {
        let text = |key: &str| made[key].as_str().unwrap_or_default().to_string();
        let of_value = (made["kind"] == "value").then(|| asserted_of(place)).flatten();
        let mut written = match &made["written"] {
            Value::Null => json!({"type": made["kind"]}),
            written => written.clone(),
        };
        let expected = match of_value {
            Some(value) => {
                let expected = format!("`{value}` {}", text("expected"));
                written["of"] = value.into();
                expected
            }
            None => text("expected"),
        };
        let compared = Compared {
            expected,
            actual: match made["said"].as_str() {
                Some(said) => shown(said),
                None => text("actual"),
            },
            holds: match made["error"].as_str() {
                Some(words) => Err(words.to_string()),
                None => Ok(made["holds"].as_bool() == Some(true)),
            },
        };
        Check {
            written: Some(Arc::new(written)),
            criterion: made["criterion"].as_str().map(Into::into),
            ..Check::new(CheckKind::Compared(compared), place.clone())
        }
    }

    fn is(self, key: &str) -> bool {
        self.given[key].as_bool() == Some(true)
    }

    /// What a judge of the project says of something that was said elsewhere.
    async fn judge(self, session: &mut Session<'_>) -> Reply {
        let (response, options) = (&self.given["response"], &self.given["options"]);
        let told = &options["metadata"];
        let judging = Judging {
            judge: match Reference::parse(&self.text("judge")) {
                Ok(judge) => Some(judge),
                Err(words) => return Reply::Wrong(words),
            },
            connector: options["connector"].as_str().map(str::to_string),
            ..Judging::default()
        };
        let criteria = [&options["criteria"], &told["criteria"]].into_iter().find(|said| !said.is_null());
        let matter = Matter::Open(Open {
            criteria: criteria.cloned(),
            options: match options {
                Value::Object(options) => options.clone(),
                _ => Map::new(),
            },
        });
        let before = match &told["conversation"] {
            Value::Null => Vec::new(),
            messages => match messages_in(messages) {
                Ok(messages) => messages,
                Err(words) => return Reply::Wrong(format!("`metadata.conversation`: {words}")),
            },
        };
        let answer = match (response, &response["content"], &response["text"]) {
            (Value::String(text), ..) | (_, Value::String(text), _) | (_, _, Value::String(text)) => {
                text.clone()
            }
            (other, ..) => other.to_string(),
        };
        let written = json!({"type": "agent", "use": self.given["judge"], "criteria": criteria});
        let check = Check {
            written: Some(Arc::new(written)),
            ..Check::new(CheckKind::Judged(Judged { matter, judging }), self.place(session))
        };
        match session.judge_elsewhere(check, SaidElsewhere { before, answer }).await {
            Err(ended) => Reply::Ended(ended),
            Ok(Err(words)) => Reply::Done(json!({"passed": false, "error": words})),
            Ok(Ok(Judgement { passed, score, reasoning, .. })) => {
                Reply::Done(json!({"passed": passed, "score": score, "reason": reasoning}))
            }
        }
    }

    /// Whether a path selects a value in another one.
    fn path(self) -> Reply {
        match JsonPath::parse(&self.text("path")) {
            Err(words) => Reply::Done(json!({"error": format!("this is not a JSON path: {words}")})),
            Ok(path) => {
                let (holds, actual) = path.is_in(&self.given["value"], &self.given["expected"]);
                Reply::Done(json!({"holds": holds, "actual": actual}))
            }
        }
    }
}

/// What a case file would say in place of an assertion that is turned round, or is not.
fn negating(written: &Value, negated: bool) -> Value {
    let mut written = written.clone();
    if let Value::Object(members) = &mut written {
        match negated {
            true => drop(members.insert("negate".to_string(), true.into())),
            false => drop(members.shift_remove("negate")),
        }
    }
    written
}

/// A criterion that a function of the test decides is reported by its name.
fn by_name(check: &mut Check) {
    let is_own = check.scripted().is_some_and(|scripted| scripted.function.ends_with(" of the test)"));
    if let (true, Some(name)) = (is_own, &check.criterion) {
        let written = json!({"type": "satisfy", "criteria": name});
        check.written = Some(Arc::new(negating(&written, check.negated)));
    }
}

/// What stands between the parentheses of `expect(…)` or `evaluate(…)`, before the matcher at a place.
fn asserted_of(matcher: &Place) -> Option<String> {
    let before = matcher.source.text[..matcher.span.start].trim_end().strip_suffix('.')?.trim_end();
    let before = before.strip_suffix(".not").unwrap_or(before).trim_end().strip_suffix(')')?;
    let mut open = 1;
    let start = before.char_indices().rev().find(|(_, character)| {
        open += match character {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        open == 0
    })?;
    let is_word = ["expect", "evaluate"].iter().any(|word| before[..start.0].trim_end().ends_with(word));
    let value = first_argument(&before[start.0 + 1..]).trim();
    (is_word && !value.is_empty() && value.len() <= LONGEST_SUBJECT && !value.contains('\n'))
        .then(|| value.to_string())
}

/// What stands before the first comma that belongs to no inner list.
fn first_argument(arguments: &str) -> &str {
    let (mut depth, mut quote) = (0_i32, None);
    let mut characters = arguments.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (_, '\\') => drop(characters.next()),
            (Some(open), close) if open == close => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => return &arguments[..at],
            (None, _) => {}
        }
    }
    arguments
}

/// So many bytes of what is compared are shown.
const LONGEST_SUBJECT: usize = 80;

fn done(said: Result<(), Ended>) -> Reply {
    said.map_or_else(Reply::Ended, |()| Reply::Done(Value::Null))
}

/// A failure of the script itself.
pub fn broken(error: &hotseat_script::ScriptError) -> Failure {
    let first = error.message.lines().next().unwrap_or_default();
    let message = match &error.place {
        Some(place) => format!("{first} ({place})"),
        None => first.to_string(),
    };
    Failure::new(FailureKind::ScriptError, message).with_detail(error.diagnostic().render(false, 100))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotseat_document::Source;

    #[test]
    fn what_is_asserted_of_stands_before_its_matcher() {
        for (line, value) in [
            ("expect(1 + 1).toBe(2)", Some("1 + 1")),
            ("expect(a.b(c)[0], 'own, words').not.toBe(2)", Some("a.b(c)[0]")),
            ("evaluate( f(x, y) ) . toBe(2)", Some("f(x, y)")),
            ("expect(\"a, b\").toBe(2)", Some("\"a, b\"")),
            ("x.toBe(2)", None),
            ("f(1).toBe(2)", None),
        ] {
            let source = Source::new("a.ts", line, 1);
            let at = line.find("toBe").unwrap();
            assert_eq!(asserted_of(&Place::new(&source, at..at + 4)).as_deref(), value, "{line}");
        }
    }
}
