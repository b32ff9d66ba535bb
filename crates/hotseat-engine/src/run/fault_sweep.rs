//! Sweep of faults: repeats each case that passed without faults, once for each tool call and each kind of fault.

use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use hotseat_document::Diagnostic;
use hotseat_mcp::{FaultKind, FaultRule, FaultTrigger};
use hotseat_trace::VerdictStatus;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::attempt::run_attempt;
use super::cancellation::{CancellationSignal, RunControl};
use super::case_queue::CaseQueue;
use super::context::RunContext;
use super::dispatcher::RunEvent;
use super::mcp_servers::SweptFault;
use super::outcome::CaseOutcome;
use super::plan::{RunPlan, SelectedCase};
use super::results::CaseRef;
use super::sweep_result::{CleanRun, SweepFinding, SweepReport, SweepRow, SweepSkip, SweptCall};
use super::workers::spawn_conversation;

/// Maximum number of calls of one case that get faults.
pub const MAX_CALLS_OF_CASE: usize = 200;
/// Maximum number of cases that are swept.
const MAX_SWEPT_CASES: usize = 10_000;

/// Settings of a sweep.
#[derive(Debug, Clone)]
pub struct SweepSettings {
    /// The faults.
    pub kinds: Vec<FaultKind>,
    /// Maximum number of conversations with a fault.
    pub limit: usize,
    /// Seed of the selection, if there are more combinations.
    pub seed: u64,
}

/// A sweep that collects the calls of conversations without faults.
#[derive(Debug)]
pub struct FaultSweep {
    settings: SweepSettings,
    /// Cases that are swept, by index.
    clean: BTreeMap<usize, SweptCase>,
    skipped: BTreeMap<usize, SweepSkip>,
    /// Number of selected conversations of cases that were skipped later.
    dropped: usize,
}

#[derive(Debug)]
struct SweptCase {
    case_ref: Arc<CaseRef>,
    run: Arc<CleanRun>,
}

/// A selected combination: a hash that ranks it, and the indices of case, call and kind.
type Combination = (u64, usize, usize, usize);

/// One conversation of a sweep.
struct SweepJob {
    selected: SelectedCase,
    clean: Arc<CleanRun>,
    call: SweptCall,
    fault: FaultKind,
    /// Place among the conversations of its case.
    place: usize,
}

impl FaultSweep {
    /// Creates a sweep without cases.
    pub fn new(settings: SweepSettings) -> FaultSweep {
        FaultSweep { settings, clean: BTreeMap::new(), skipped: BTreeMap::new(), dropped: 0 }
    }

    /// Adds the outcome of a case without faults.
    pub fn add_clean_run(&mut self, outcome: &CaseOutcome) {
        let case_ref = &outcome.case_ref;
        let conversation = &outcome.representative().conversation;
        let run = CleanRun::new(conversation, MAX_CALLS_OF_CASE);
        let reason = match outcome.verdict.status {
            VerdictStatus::Skipped => "it was skipped",
            VerdictStatus::Failed => "it failed without faults",
            VerdictStatus::Passed if run.has_faults => "it injects faults itself",
            VerdictStatus::Passed if run.calls.is_empty() => "it called no tool of an MCP server of the test",
            VerdictStatus::Passed if self.clean.len() >= MAX_SWEPT_CASES => "there are too many cases",
            VerdictStatus::Passed => {
                let swept = SweptCase { case_ref: case_ref.clone(), run: Arc::new(run) };
                self.clean.insert(case_ref.index, swept);
                return;
            }
        };
        self.skipped.insert(case_ref.index, SweepSkip::new(case_ref, reason));
    }

    /// Returns the combinations by case, at most as many as the limit allows, and the number of all combinations.
    fn combinations(&self) -> (BTreeMap<usize, Vec<(SweptCall, FaultKind)>>, usize) {
        let mut all = 0;
        let mut selected: BinaryHeap<Combination> = BinaryHeap::new();
        for (index, case) in &self.clean {
            for (place, call) in case.run.calls.iter().enumerate() {
                for (number, kind) in self.settings.kinds.iter().enumerate() {
                    // The first call has no previous answer.
                    if *kind == FaultKind::Stale && call.nth == 1 {
                        continue;
                    }
                    all += 1;
                    let mut hasher = DefaultHasher::new();
                    (self.settings.seed, &case.case_ref.case.id, call, kind.name()).hash(&mut hasher);
                    selected.push((hasher.finish(), *index, place, number));
                    if selected.len() > self.settings.limit {
                        selected.pop();
                    }
                }
            }
        }
        let mut places: Vec<Combination> = selected.into_vec();
        places.sort_unstable_by_key(|(_, index, place, number)| (*index, *place, *number));
        let mut by_case: BTreeMap<usize, Vec<(SweptCall, FaultKind)>> = BTreeMap::new();
        for (_, index, place, number) in places {
            let call = self.clean[&index].run.calls[place].clone();
            by_case.entry(index).or_default().push((call, self.settings.kinds[number].clone()));
        }
        (by_case, all)
    }

    /// Runs the conversations with faults, up to `parallel` at once, and reports the result. Must run on worker threads
    /// ([`start_workers`](super::start_workers)). Fails if a suite can no longer be read.
    pub async fn run(
        mut self,
        plan: &Arc<RunPlan>,
        context: &Arc<RunContext>,
        parallel: usize,
        mut control: watch::Receiver<RunControl>,
        report: &mut (dyn FnMut(RunEvent) + Send),
    ) -> Result<SweepReport, Vec<Diagnostic>> {
        let (mut selected, combinations) = self.combinations();
        let runs: usize = selected.values().map(Vec::len).sum();
        report(RunEvent::SweepStarted { runs, combinations });
        let cancellation = CancellationSignal::new(control.clone());
        let mut cases = CaseQueue::new(plan, &context.project, Default::default());
        let mut waiting: VecDeque<SweepJob> = VecDeque::new();
        let mut attempts: JoinSet<SweepRow> = JoinSet::new();
        let mut rows = Vec::new();
        let mut known = RunControl::Run;
        loop {
            let wish = *control.borrow_and_update();
            if wish > known {
                known = wish;
                report(RunEvent::Stopping(wish));
            }
            while attempts.len() < parallel && known == RunControl::Run {
                let Some(job) = waiting.pop_front() else {
                    if selected.is_empty() {
                        break;
                    }
                    let Some(case) = cases.next().await else { break };
                    waiting.extend(self.jobs(case?, &mut selected));
                    continue;
                };
                let (context, cancellation) = (context.clone(), cancellation.clone());
                spawn_conversation(&mut attempts, async move { job.run(&context, &cancellation).await });
            }
            tokio::select! {
                biased;
                Ok(()) = control.changed() => {}
                row = attempts.join_next() => match row {
                    Some(Ok(row)) => rows.push(row),
                    // The attempt of a panic has no row; the report says how many are missing.
                    Some(Err(_)) => {}
                    None => break,
                },
            }
        }
        rows.sort_by_key(SweepRow::order);
        let missing = runs.saturating_sub(rows.len() + self.dropped);
        let calls_left_out = self.clean.values().map(|case| case.run.calls_left_out).sum();
        let skipped = self.skipped.into_values().collect();
        let seed = self.settings.seed;
        Ok(SweepReport { runs, combinations, seed, missing, rows, skipped, calls_left_out })
    }

    /// Returns the conversations of a case.
    fn jobs(
        &mut self,
        case: SelectedCase,
        selected: &mut BTreeMap<usize, Vec<(SweptCall, FaultKind)>>,
    ) -> Vec<SweepJob> {
        let Some(faults) = selected.remove(&case.index) else { return Vec::new() };
        let Some(swept) = self.clean.get(&case.index) else { return Vec::new() };
        if case.agent.as_ref().is_some_and(|agent| agent.is_replayed()) {
            let skip = SweepSkip::new(&case.case_ref, "its agent is a recording");
            self.skipped.insert(case.index, skip);
            self.dropped += faults.len();
            return Vec::new();
        }
        let clean = swept.run.clone();
        let jobs = faults.into_iter().enumerate().map(|(place, (call, fault))| {
            let (selected, clean) = (case.clone(), clean.clone());
            SweepJob { selected, clean, call, fault, place }
        });
        jobs.collect()
    }
}

impl SweepJob {
    async fn run(self, context: &Arc<RunContext>, cancellation: &CancellationSignal) -> SweepRow {
        let SweepJob { mut selected, clean, call, fault, place } = self;
        let case_ref = selected.case_ref.clone();
        let servers = selected.case.clone();
        let rule = FaultRule {
            tool: Some(call.tool.clone()),
            arguments: None,
            trigger: FaultTrigger::Nth(call.nth),
            kind: fault.clone(),
        };
        selected.swept_fault = Some(Arc::new(SweptFault { server: call.server.clone(), rule }));
        // The same number as the first attempt, so that seeds are the same.
        let attempt = run_attempt(selected, 1, context, cancellation).await;
        let hint = |server: &str, tool: &str| servers.mcp.repeat_hint(server, tool);
        let finding = SweepFinding::new(&clean, &call, hint, &attempt);
        SweepRow::new(&case_ref, call, &fault, finding, &attempt, place)
    }
}
