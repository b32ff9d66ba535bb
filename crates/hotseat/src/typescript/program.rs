//! A test of a file as the body of a case.

use std::sync::Arc;
use std::time::Duration;

use hotseat_script::thread::Running;
use hotseat_script::{Context, Host, ScriptError};
use hotseat_trace::{Failure, FailureKind};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

use super::callbacks::{Asked, Asking};
use super::commands::{act, broken};
use super::engine::{File, MODULE};
use super::told;
use crate::adapters::Pending;
use crate::session::{Body, Checked, Session};

/// How long a script may take for itself where nobody says; what its agent and its judges take is not counted.
const OWN_TIME: Duration = Duration::from_secs(10);

/// A test of a file.
#[derive(Debug, Clone)]
pub struct Program {
    pub file: File,
    /// `it` or `test`.
    pub kind: String,
    /// Its place among those that `it` declares, from 0.
    pub place: usize,
    pub name: String,
    /// The function, as it is written.
    pub source: String,
}

impl Body for Program {
    fn hold<'a>(&'a self, session: &'a mut Session<'_>) -> Pending<'a, Result<(), Failure>> {
        Box::pin(self.run(session))
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }
}

impl Program {
    async fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let Some(powers) = session.powers().cloned() else {
            return Err(Failure::new(FailureKind::TestError, "nobody has said what this test may do"));
        };
        let own_time = powers.time_limit().unwrap_or(OWN_TIME);
        let own_time = session.time_limit().map_or(own_time, |limit| limit.min(own_time));
        let limits = powers.limits(own_time);
        let (hands, mut doings) = powers.lend_patiently();
        let (commands, asked) = mpsc::channel::<Asked>(1);
        let asked = Asking::of(asked, own_time + Running::<()>::GRACE);
        session.judged_by(Arc::new(asked.clone()));
        let which = json!({
            "kind": self.kind,
            "place": self.place,
            "name": self.name,
            "ctx": *session.case().target.identity.ctx,
        });
        let file = self.file.clone();
        let begun = Running::begin(move |stop| {
            let host = file.furnish(hands.host(), asking(commands));
            let mut context = match Context::new(&file.scripts, limits, host) {
                Ok(context) => context.until(stop),
                Err(error) => return (Err(error), Vec::new()),
            };
            let result = context.enter(MODULE, "run", &file.module, &[which]);
            (result, context.said())
        });
        let mut running = begun.map_err(|error| broken(&error))?;
        let mut taken = Duration::ZERO;
        loop {
            let since = Instant::now();
            let left = own_time.saturating_sub(taken) + Running::<()>::GRACE;
            tokio::select! {
                biased;
                Some(command) = asked.next() => {
                    taken += since.elapsed();
                    let mut told = act(&command, session, &self.file).await;
                    told["turns"] = told::turns_of(&session.conversation().turns, asked.known()).into();
                    asked.tell(told);
                }
                Some(job) = doings.next() => {
                    taken += since.elapsed();
                    session.begin_overhearing();
                    job.carry_out().await;
                    session.record_overheard();
                }
                ended = running.ended() => {
                    let (result, said): (Result<Value, ScriptError>, _) = ended.map_err(|error| broken(&error))?;
                    for line in said {
                        session.log(match line.level.name() {
                            "log" => line.text,
                            level => format!("{level}: {}", line.text),
                        });
                    }
                    let ended = result.map_err(|error| broken(&error))?;
                    return stopped_for_a_reason(&ended, session);
                }
                () = sleep(left) => return Err(broken(&running.leave(own_time))),
            }
        }
    }
}

/// Makes sure that a test was stopped because its case has ended, or by a check that does not hold.
///
/// # Errors
/// When it was stopped by something else, which would otherwise look like a test that has come to its end.
fn stopped_for_a_reason(ended: &Value, session: &Session<'_>) -> Result<(), Failure> {
    let has_reason = session.goes_on().is_err() || session.checks().iter().any(Checked::fails);
    if ended["stopped"].as_bool() == Some(false) || has_reason {
        return Ok(());
    }
    let words = "the test was stopped, and nothing that it has asserted or asked for is the reason";
    let help = "an error of Hotseat that is caught is thrown again only where it was caught";
    Err(Failure::new(FailureKind::TestError, words).with_detail(help))
}

/// The functions by which a test asks for something: `ask` where others take their time for it, and `tell` where the test
/// has done the work itself.
fn asking(commands: mpsc::Sender<Asked>) -> Host {
    let ask = move |arguments: Vec<Value>| {
        let commands = commands.clone();
        async move {
            let gone = || "nobody waits for this test any more".to_string();
            let (reply, told) = oneshot::channel();
            let command = arguments.into_iter().next().unwrap_or_default();
            commands.send((command, reply)).await.map_err(|_| gone())?;
            told.await.map_err(|_| gone())
        }
    };
    Host::new().pausing_function("ask", ask.clone()).waiting_function("tell", ask)
}
