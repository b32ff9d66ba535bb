//! A test of a file as the body of a case.

use std::sync::Arc;
use std::time::Duration;

use hotseat_script::thread::RunningScript;
use hotseat_script::{HostCallError, ScriptContext, ScriptError, ScriptHost, ScriptLimits};
use hotseat_trace::{AttemptFailure, FailureKind};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::callbacks::{TestChannel, TestCommand};
use super::commands::{execute_command, script_failure};
use super::engine::{MODULE_NAME, TestFile};
use super::excerpts::TestExcerpts;
use super::to_json;
use crate::session::{CaseBody, CheckResult, Session, unseen_calls_reason};
use hotseat_targets::BoxFuture;

/// Default time limit of a script, not counting time spent in the agent and judges.
const DEFAULT_SCRIPT_TIMEOUT: Duration = Duration::from_secs(10);

/// A test of a file.
#[derive(Debug, Clone)]
pub struct TypeScriptTest {
    pub file: TestFile,
    /// The code that runs it, in place of the code of the file, and its number there.
    pub excerpt: Option<(Arc<TestExcerpts>, usize)>,
    /// `it` or `test`.
    pub kind: String,
    /// Index among the tests declared by `it` in that code, from 0.
    pub place: usize,
    pub name: String,
}

impl CaseBody for TypeScriptTest {
    fn drive<'a>(&'a self, session: &'a mut Session<'_>) -> BoxFuture<'a, Result<(), AttemptFailure>> {
        Box::pin(self.run(session))
    }
}

impl TypeScriptTest {
    /// Index of the only test that the file has to keep; -1 if it is an exported function.
    fn wanted(&self) -> i64 {
        if self.kind == "it" { i64::try_from(self.place).unwrap_or(i64::MAX) } else { -1 }
    }

    async fn run(&self, session: &mut Session<'_>) -> Result<(), AttemptFailure> {
        let Some(powers) = session.permissions().cloned() else {
            return Err(AttemptFailure::new(
                FailureKind::TestError,
                "the permissions of this test are not set",
            ));
        };
        let own_time = powers.time_limit().unwrap_or(DEFAULT_SCRIPT_TIMEOUT);
        let own_time = session.time_limit().map_or(own_time, |limit| limit.min(own_time));
        let limits = ScriptLimits { is_computing_time: true, ..powers.limits(own_time) };
        let (hands, mut doings) = powers.channel_untimed();
        let (commands, asked) = mpsc::channel::<TestCommand>(1);
        let which = json!({
            "kind": self.kind,
            "name": self.name,
            "ctx": *session.case().target.identity.ctx,
            "unseen": unseen_calls(session),
        });
        let (file, excerpt, wanted) = (self.file.clone(), self.excerpt.clone(), self.wanted());
        let begun = RunningScript::start(move |stop| {
            let commands = command_host(commands).function("wanted", move |_| Ok(wanted.into()));
            let host = file.with_module(hands.host(), commands);
            let mut context = match ScriptContext::new(&file.scripts, limits, host) {
                Ok(context) => context.with_stop(stop),
                Err(error) => return (Err(error), Vec::new()),
            };
            if let Some((excerpts, test)) = excerpt {
                context = context.with_code(&file.module, excerpts.code_with(test));
            }
            let result = context.run_entry(MODULE_NAME, "run", &file.module, &[which]);
            (result, context.take_console())
        });
        let mut running = begun.map_err(|error| script_failure(&error))?;
        // A script that checks its limits ends by itself, but on a busy machine it may check them late.
        let longest_hang = own_time.max(DEFAULT_SCRIPT_TIMEOUT) + RunningScript::<()>::GRACE;
        let stop = running.stop_signal().clone();
        let asked = TestChannel::new(asked, stop.clone(), longest_hang, self.file.scripts.clone());
        session.set_program_checks(Arc::new(asked.clone()));
        loop {
            tokio::select! {
                biased;
                Some(command) = asked.next() => {
                    let mut told = execute_command(&command, session, &self.file).await;
                    told["turns"] = to_json::turns_from(&session.conversation().turns, asked.known_turns()).into();
                    told["unseen"] = unseen_calls(session).into();
                    asked.reply(told);
                }
                Some(job) = doings.next() => {
                    session.begin_direct_turns();
                    job.perform().await;
                    session.record_direct_turns();
                }
                ended = running.wait() => {
                    let (result, said): (Result<Value, ScriptError>, _) = ended.map_err(|error| script_failure(&error))?;
                    for line in said {
                        session.log(match line.level.name() {
                            "log" => line.text,
                            level => format!("{level}: {}", line.text),
                        });
                    }
                    let ended = result.map_err(|error| script_failure(&error))?;
                    return check_stop_reason(&ended, session);
                }
                () = sleep(longest_hang) => {
                    if !stop.take_checked() {
                        return Err(script_failure(&running.abandon(own_time)));
                    }
                }
            }
        }
    }
}

/// Returns why tool calls cannot be read at the moment; none if they can.
fn unseen_calls(session: &Session<'_>) -> Option<String> {
    session.conversation().unseen_calls().map(unseen_calls_reason)
}

/// Checks that a stopped test was stopped by the end of its case or by a failed check. Fails if there is no
/// such reason; the test would otherwise look completed.
fn check_stop_reason(ended: &Value, session: &Session<'_>) -> Result<(), AttemptFailure> {
    let has_reason = session.ensure_open().is_err() || session.checks().iter().any(CheckResult::fails);
    if ended["stopped"].as_bool() == Some(false) || has_reason {
        return Ok(());
    }
    let words = "the test was stopped without a failed assertion or an ended case";
    let help = "do not rethrow an error of Hotseat outside the block that caught it";
    Err(AttemptFailure::new(FailureKind::TestError, words).with_detail(help))
}

/// Creates the function that sends commands.
fn command_host(commands: mpsc::Sender<TestCommand>) -> ScriptHost {
    let ask = move |arguments: Vec<Value>| {
        let commands = commands.clone();
        async move {
            let gone = || HostCallError::from("this test was cancelled");
            let (reply, told) = oneshot::channel();
            let command = arguments.into_iter().next().unwrap_or_default();
            commands.send((command, reply)).await.map_err(|_| gone())?;
            told.await.map_err(|_| gone())
        }
    };
    ScriptHost::new().untimed_function("ask", ask)
}
