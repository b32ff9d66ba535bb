//! Executes the commands of a test on its session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_document::{Diagnostic, Kind, SourceSpan};
use hotseat_script::StackFrame;
use hotseat_trace::{AttemptFailure, FailureKind};
use serde_json::{Map, Value, json};

use super::engine::TestFile;
use super::keys::to_case_keys;
use super::to_json;
use crate::cases::shape::TURN;
use crate::cases::{
    MODEL_PREFIX, OWN_ASSERT_KIND, ProgramInputError, SHARED, SIMULATE, USER, negate_assertion,
    parse_assertions, parse_brief, parse_messages, parse_topics, parse_turn,
};
use crate::roles::Judgement;
use crate::session::{CheckResult, CheckSubject, EndedCaseError, ExternalAnswer, Session, SimulationOptions};
use hotseat_checks::{
    Check, CheckFunction, CheckKind, CheckStrength, FreeFormCriterion, JsonPathQuery as JsonPath,
    JudgeCriterion, JudgeSettings, JudgedCheck, PrecomputedCheck, RoleReference, Undecidable, format_text,
};
use hotseat_targets::recorder::SecretRedactor;

/// Reason why a command has no value.
enum CommandError {
    Ended(EndedCaseError),
    /// Invalid command, with a message.
    Invalid(String),
}

impl From<EndedCaseError> for CommandError {
    fn from(ended: EndedCaseError) -> CommandError {
        CommandError::Ended(ended)
    }
}

type CommandResult = Result<Value, CommandError>;

fn invalid(problem: impl ToString) -> CommandError {
    CommandError::Invalid(problem.to_string())
}

/// Executes a command and returns the reply for the test.
pub async fn execute_command(command: &Value, session: &mut Session<'_>, file: &TestFile) -> Value {
    let command = CommandContext { given: command, file };
    let reply = match command.given["do"].as_str().unwrap_or_default() {
        "say" => command.say(session).await,
        "simulate" => command.simulate(session).await,
        "graph" => command.graph(session).await,
        "decide" => command.decide(session).await,
        // Detected by the test library itself.
        "misuse" => Err(invalid(command.text("words"))),
        "skip" => Err(session.skip(command.text("reason")).into()),
        "results" => Ok(to_json::check_results(session.checks()).into()),
        "path" => Ok(command.path()),
        "address" => command.address(session),
        "end" => {
            // Functions of topics exist only as long as the test.
            if session.ensure_open().is_ok() {
                session.evaluate_all_topics().await;
            }
            Ok(Value::Null)
        }
        "judge" => command.judge(session).await,
        other => Err(invalid(format!("`{other}` is not a known command"))),
    };
    let mut told = Map::new();
    match reply {
        Ok(value) => drop(told.insert("value".to_string(), value)),
        Err(CommandError::Ended(ended)) => drop(told.insert("ended".to_string(), ended.reason.into())),
        Err(CommandError::Invalid(words)) => {
            let failure = command.invalid_command(&words, session);
            session.fail(failure);
            told.insert("wrong".to_string(), words.into());
        }
    }
    if let Some(topics) = session.topics() {
        told.insert("topics".to_string(), to_json::topic_state(&topics.graph, session.conversation()));
    }
    Value::Object(told)
}

#[derive(Clone, Copy)]
struct CommandContext<'a> {
    given: &'a Value,
    file: &'a TestFile,
}

impl CommandContext<'_> {
    fn text(self, key: &str) -> String {
        self.given[key].as_str().unwrap_or_default().to_string()
    }

    /// Returns the address of a served model or of an MCP server.
    fn address(self, session: &Session<'_>) -> CommandResult {
        let name = self.text("name");
        let (key, what) = match self.given["kind"] == "model" {
            true => (format!("{MODEL_PREFIX}{name}"), "served model"),
            false => (name.clone(), "MCP server"),
        };
        let address = session.service_addresses().remove(&key);
        address.map(Value::from).ok_or_else(|| invalid(format!("this case has no {what} `{name}`")))
    }

    /// Returns the location of the command.
    fn place(self, session: &Session<'_>) -> SourceSpan {
        self.frames().into_iter().next().map_or_else(|| session.case().place.clone(), |frame| frame.place)
    }

    /// Returns the location in the test file that leads to the command, if a helper function sends the command. The
    /// functions of tests have no name, except exported ones, which are the outermost.
    fn called_at(self, session: &Session<'_>) -> Option<SourceSpan> {
        let mut frames = self.frames();
        let is_in_test = |frame: &StackFrame| frame.place.file() == session.case().place.file();
        let of_test = frames.iter().position(|frame| is_in_test(frame) && frame.function.is_none());
        let caller = of_test.or_else(|| frames.iter().rposition(is_in_test))?;
        (caller > 0).then(|| frames.swap_remove(caller).place)
    }

    /// Returns the call stack, innermost first.
    fn frames(self) -> Vec<StackFrame> {
        self.file.scripts.frames(self.given["at"].as_str().unwrap_or_default())
    }

    fn place_of(self, stack: &Value) -> Option<SourceSpan> {
        let frames = self.file.scripts.frames(stack.as_str()?);
        Some(frames.into_iter().next()?.place)
    }

    /// Returns the failure of an invalid command. It remains even if the test catches the exception.
    fn invalid_command(self, words: &str, session: &Session<'_>) -> AttemptFailure {
        let place = self.place(session);
        let mut shown = Diagnostic::new(words).at(place.clone());
        if let Some(called_at) = self.called_at(session) {
            shown = shown.with_related(called_at, "called here");
        }
        let shown = shown.to_detail();
        AttemptFailure::new(FailureKind::ScriptError, format!("{words} ({place})")).with_detail(shown)
    }

    async fn say(self, session: &mut Session<'_>) -> CommandResult {
        let place = self.place(session);
        let written = to_case_keys(&self.given["turn"], &Kind::Shape(&TURN));
        let turn = parse_turn(&written, session.case(), session.redactor(), place);
        let mut turn = turn.map_err(invalid)?;
        let folders: Vec<&Path> = self.file.folders.iter().map(PathBuf::as_path).collect();
        turn.load_attachments(&folders).map_err(invalid)?;
        turn.checks.iter_mut().for_each(report_by_name);
        session.send_turn(turn).await?;
        Ok(Value::Null)
    }

    async fn simulate(self, session: &mut Session<'_>) -> CommandResult {
        let place = self.place(session);
        let groups = self.given["above"].as_array().into_iter().flatten();
        let groups: Vec<Value> = groups.map(|brief| to_case_keys(brief, &Kind::Shape(&USER))).collect();
        let own = to_case_keys(&self.given["brief"], &Kind::Shape(&SIMULATE));
        let inherited = &session.case().shared().simulate;
        let mut brief = parse_brief(&own, &groups, inherited, &place).map_err(invalid)?;
        if let Some(template) = &mut brief.template {
            template.load(&self.file.folders).map_err(invalid)?;
        }
        let simulation = SimulationOptions { max_turns: None, brief: Some(Arc::new(brief)) };
        let first = session.conversation().turns.len();
        let stopped = session.simulate(simulation).await?;
        Ok(json!({
            "reason": stopped.reason.name(),
            "goalProgress": stopped.goal_progress,
            "detail": stopped.detail,
            "turnCount": session.conversation().turns.len() - first,
        }))
    }

    async fn graph(self, session: &mut Session<'_>) -> CommandResult {
        let written = json!({"topics": self.given["topics"], "graph": self.given["graph"]});
        let written = to_case_keys(&written, &Kind::Shape(&SHARED));
        let case = session.case();
        let (above, settings) = (&case.shared().topics, case.topic_settings);
        let declared_at = |name: &str| self.place_of(&self.given["places"][name]);
        let topics =
            parse_topics(&written, above, settings, session.redactor(), self.place(session), declared_at);
        let mut topics = topics.map_err(invalid)?;
        topics.checks_mut().for_each(report_by_name);
        session.declare_topics(Arc::new(topics)).await?;
        Ok(Value::Null)
    }

    /// Evaluates assertions that are made together.
    async fn decide(self, session: &mut Session<'_>) -> CommandResult {
        let (place, called_at) = (self.place(session), self.called_at(session));
        let mut checks = Vec::new();
        for asserted in self.given["asserted"].as_array().into_iter().flatten() {
            let found = self.asserted(asserted, session.redactor(), &place).map_err(invalid)?;
            if found.is_empty() {
                return Err(invalid("this assertion is empty"));
            }
            checks.extend(found.into_iter().map(|check| Check { call_site: called_at.clone(), ..check }));
        }
        if self.is("negated") && checks.len() > 1 {
            return Err(invalid("`not` cannot negate several assertions at once"));
        }
        let subject = match self.given["subject"].as_str() {
            Some("turn") => CheckSubject::LastTurn,
            Some("conversation") => CheckSubject::Conversation,
            _ => CheckSubject::Value,
        };
        let holds = |checked: &CheckResult| checked.verdict.passed && checked.error.is_none();
        Ok(session.evaluate_all(checks, subject).await?.iter().all(holds).into())
    }

    /// Returns the checks of one assertion. Fails if the assertion is invalid.
    fn asserted(
        self,
        asserted: &Value,
        redactor: &SecretRedactor,
        place: &SourceSpan,
    ) -> Result<Vec<Check>, ProgramInputError> {
        let mut is_negated = self.is("negated");
        let checks = match &asserted["compared"] {
            Value::Null => {
                let mut written = to_case_keys(&asserted["assertion"], &OWN_ASSERT_KIND);
                // The decoder of a typed assertion knows which negations are ambiguous.
                if is_negated && written.get("type").is_some() {
                    negate_assertion(&mut written);
                    is_negated = false;
                }
                let mut checks = parse_assertions(&written, redactor)?;
                checks.iter_mut().for_each(report_by_name);
                checks
            }
            compared => vec![self.compared(compared, place)],
        };
        let own = self.given["message"].as_str().map(str::to_string);
        let negated = |check: &Check| check.negated != is_negated;
        let told = |check: Check| Check {
            negated: negated(&check),
            definition: check
                .definition
                .as_deref()
                .map(|written| Arc::new(with_negation(written, negated(&check)))),
            strength: if self.is("soft") { CheckStrength::Soft } else { CheckStrength::Hard },
            message: own.clone().or(check.message),
            place: place.clone(),
            ..check
        };
        Ok(checks.into_iter().map(told).collect())
    }

    /// Returns the check of a comparison made by the test library.
    fn compared(self, made: &Value, place: &SourceSpan) -> Check {
        let text = |key: &str| made[key].as_str().unwrap_or_default().to_string();
        let of_value = (made["kind"] == "value").then(|| asserted_source(place)).flatten();
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
        let compared = PrecomputedCheck {
            expected,
            actual: match made["said"].as_str() {
                Some(said) => format_text(said),
                None => text("actual"),
            },
            result: match made["error"].as_str() {
                Some(words) => Err(Undecidable::new(words)),
                None => Ok(made["holds"].as_bool() == Some(true)),
            },
        };
        Check {
            definition: Some(Arc::new(written)),
            criterion: made["criterion"].as_str().map(Into::into),
            ..Check::new(CheckKind::Precomputed(compared), place.clone())
        }
    }

    fn is(self, key: &str) -> bool {
        self.given[key].as_bool() == Some(true)
    }

    /// Asks a judge of the project about a response from outside the conversation.
    async fn judge(self, session: &mut Session<'_>) -> CommandResult {
        let (response, options) = (&self.given["response"], &self.given["options"]);
        let told = &options["metadata"];
        let judging = JudgeSettings {
            judge: Some(RoleReference::parse(&self.text("judge")).map_err(invalid)?),
            connector: options["connector"].as_str().map(str::to_string),
            ..JudgeSettings::default()
        };
        let criteria = [&options["criteria"], &told["criteria"]].into_iter().find(|said| !said.is_null());
        let matter = JudgeCriterion::FreeForm(FreeFormCriterion {
            criteria: criteria.cloned(),
            options: match options {
                Value::Object(options) => options.clone(),
                _ => Map::new(),
            },
        });
        let before = match &told["conversation"] {
            Value::Null => Vec::new(),
            messages => parse_messages(messages)
                .map_err(|error| invalid(format!("`metadata.conversation`: {error}")))?,
        };
        let answer = match (response, &response["content"], &response["text"]) {
            (Value::String(text), ..) | (_, Value::String(text), _) | (_, _, Value::String(text)) => {
                text.clone()
            }
            (other, ..) => other.to_string(),
        };
        let written = json!({"type": "agent", "use": self.given["judge"], "criteria": criteria});
        let check = Check {
            definition: Some(Arc::new(written)),
            ..Check::new(
                CheckKind::Judged(JudgedCheck { criterion: matter, settings: judging }),
                self.place(session),
            )
        };
        let answer = ExternalAnswer { history: before, answer };
        Ok(match session.judge_external_answer(check, answer).await? {
            Err(error) => json!({"passed": false, "error": error.to_string()}),
            Ok(Judgement { passed, score, reasoning, .. }) => {
                json!({"passed": passed, "score": score, "reason": reasoning})
            }
        })
    }

    /// Evaluates a JSON path on a value.
    fn path(self) -> Value {
        match JsonPath::parse(&self.text("path")) {
            Err(words) => json!({"error": format!("invalid JSON path: {words}")}),
            Ok(path) => match path.selects_value(&self.given["value"], &self.given["expected"]) {
                Ok((holds, actual)) => json!({"holds": holds, "actual": actual}),
                Err(error) => json!({"error": format!("JSON path {}: {error}", path.source())}),
            },
        }
    }
}

/// Sets or removes `negate` in the source of an assertion.
fn with_negation(written: &Value, negated: bool) -> Value {
    let mut written = written.clone();
    if let Value::Object(members) = &mut written {
        match negated {
            true => drop(members.insert("negate".to_string(), true.into())),
            false => drop(members.shift_remove("negate")),
        }
    }
    written
}

/// Reports a criterion that is decided by a function of the test under its name.
fn report_by_name(check: &mut Check) {
    let is_own =
        check.as_script().is_some_and(|scripted| matches!(scripted.function, CheckFunction::Program { .. }));
    if let (true, Some(name)) = (is_own, &check.criterion) {
        let written = json!({"type": "satisfy", "criteria": name});
        check.definition = Some(Arc::new(with_negation(&written, check.negated)));
    }
}

/// Returns the source text between the parentheses of `expect(…)` or `evaluate(…)` before a matcher.
fn asserted_source(matcher: &SourceSpan) -> Option<String> {
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
    (is_word && !value.is_empty() && value.len() <= MAX_SUBJECT_BYTES && !value.contains('\n'))
        .then(|| value.to_string())
}

/// Returns the text before the first top-level comma.
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

/// Maximum number of calls of a stack trace in reports.
const MAX_STACK_FRAMES: usize = 50;

/// Maximum length of a compared expression that is shown.
const MAX_SUBJECT_BYTES: usize = 80;

/// Returns the failure of the script itself.
pub fn script_failure(error: &hotseat_script::ScriptError) -> AttemptFailure {
    let first = error.message.lines().next().unwrap_or_default();
    let message = match &error.place {
        Some(place) => format!("{first} ({place})"),
        None => first.to_string(),
    };
    let failure = AttemptFailure::new(FailureKind::ScriptError, message);
    let stack_trace = error.stack.iter().take(MAX_STACK_FRAMES).map(ToString::to_string).collect();
    AttemptFailure { stack_trace, ..failure.with_detail(error.diagnostic().to_detail()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotseat_document::SourceText;

    #[test]
    fn finds_the_asserted_expression() {
        for (line, value) in [
            ("expect(1 + 1).toBe(2)", Some("1 + 1")),
            ("expect(a.b(c)[0], 'own, words').not.toBe(2)", Some("a.b(c)[0]")),
            ("evaluate( f(x, y) ) . toBe(2)", Some("f(x, y)")),
            ("expect(\"a, b\").toBe(2)", Some("\"a, b\"")),
            ("x.toBe(2)", None),
            ("f(1).toBe(2)", None),
        ] {
            let source = SourceText::new("a.ts", line, 1);
            let at = line.find("toBe").unwrap();
            assert_eq!(asserted_source(&SourceSpan::new(&source, at..at + 4)).as_deref(), value, "{line}");
        }
    }
}
