//! Functions of a test that judge while its session is busy: the test waits for what it has asked for, is asked meanwhile,
//! and goes on waiting.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotseat_trace::Turn;
use serde_json::{Value, json};
use tokio::sync::{Mutex as Waiting, mpsc, oneshot};

use super::told;
use crate::adapters::Pending;
use crate::session::Judges;

/// What a test asks for, and where it is told what came of it.
pub type Asked = (Value, oneshot::Sender<Value>);

/// Where a test waits to be told something, and how many turns it knows.
type Waits = (oneshot::Sender<Value>, usize);

/// What a test asks for, one thing after the other.
#[derive(Clone)]
pub struct Asking {
    asked: Arc<Waiting<mpsc::Receiver<Asked>>>,
    waits: Arc<Mutex<Option<Waits>>>,
    /// How long one of its functions may take.
    within: Duration,
}

impl Asking {
    pub fn of(asked: mpsc::Receiver<Asked>, within: Duration) -> Asking {
        Asking { asked: Arc::new(Waiting::new(asked)), waits: Arc::default(), within }
    }

    /// What the test asks for next; none when it asks for nothing any more.
    pub async fn next(&self) -> Option<Value> {
        let (command, reply) = self.asked.lock().await.recv().await?;
        let known = command["known"].as_u64().and_then(|known| usize::try_from(known).ok()).unwrap_or(0);
        *self.waits.lock().unwrap_or_else(PoisonError::into_inner) = Some((reply, known));
        Some(command)
    }

    /// How many turns the test knows that waits.
    pub fn known(&self) -> usize {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.as_ref().map_or(0, |(_, known)| *known)
    }

    /// Tells the test something.
    pub fn tell(&self, told: Value) {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((reply, _)) = waits {
            // Who has gone away meanwhile wants to know nothing.
            let _ = reply.send(told);
        }
    }

    /// Has a function of the test called, of turns in a row: the numbers of the first and the last of them.
    async fn call(
        &self,
        function: usize,
        so_far: &[Turn],
        [first, last]: [Option<usize>; 2],
    ) -> Result<bool, String> {
        let turns = told::turns_of(so_far, self.known());
        self.tell(json!({"call": function, "first": first, "turn": last, "turns": turns}));
        match tokio::time::timeout(self.within, self.next()).await {
            Err(_) => Err(format!("it did not end within {} ms", self.within.as_millis())),
            Ok(None) => Err("the test has ended meanwhile".to_string()),
            Ok(Some(answer)) => match (answer["error"].as_str(), answer["value"].as_bool()) {
                (Some(words), _) => Err(words.to_string()),
                (None, Some(holds)) => Ok(holds),
                (None, None) => Err("it returned nothing that judges".to_string()),
            },
        }
    }
}

impl Judges for Asking {
    fn judge<'a>(
        &'a self,
        function: &'a str,
        so_far: &'a [Turn],
        looked_at: &'a [Turn],
    ) -> Option<Pending<'a, Result<bool, String>>> {
        let number = function.strip_suffix(" of the test)")?.rsplit_once("(function ")?.1.parse().ok()?;
        let of = [looked_at.first(), looked_at.last()].map(|turn| turn.map(|turn| turn.number));
        Some(Box::pin(async move {
            self.call(number, so_far, of).await.map_err(|words| format!("{function}: {words}"))
        }))
    }
}
