//! What the command line chooses for a run.

use std::sync::Arc;

use hotseat::config::{Calling, ContextFile, Project};
use hotseat::document::{Diagnostic, Diagnostics};
use hotseat::report::count;
use hotseat::run::{AskPerson, Options, Overrides, PassRate, Plan};
use hotseat::session::{Asked, OnMissingInput, Person};

use crate::args::{CallArgs, MissingInput, TestArgs};
use crate::input::Input;
use crate::keyboard::Keyboard;
use crate::world::World;

/// How many conversations are held at once where nobody says: they wait for the network most of the time, and an
/// agent on a developer's machine still copes.
const PARALLEL: usize = 8;

/// Whether a person may be asked in the run.
pub fn asks_person(args: &TestArgs, plan: &Plan) -> bool {
    !args.skip_interactive && (args.interactive || plan.asks_person)
}

/// How the run is carried out.
pub fn options(args: &TestArgs, project: &Project, plan: &Plan) -> Result<Options, Diagnostic> {
    let runs = args.runs.or(project.runs).unwrap_or(1);
    // Whoever says how many runs there are does not want as many as it takes.
    let as_declared = args.runs.is_none();
    if runs == 1 && args.min_pass_rate.is_some() {
        let help = "`--runs N` runs each case several times";
        return Err(
            Diagnostic::new("--min-pass-rate is a part of the runs of a case, which is run once").help(help)
        );
    }
    if runs > 1 && args.retries.is_some_and(|retries| retries > 0) {
        let message = format!("--retries and {runs} runs of each case: one of the two");
        let help =
            "runs are never tried again, for that would hide how steady a case is; `--runs 1` runs each once";
        return Err(Diagnostic::new(message).help(help));
    }
    // Who is asked by several conversations at once would not know which of them to answer.
    let unless_said = if asks_person(args, plan) { 1 } else { PARALLEL };
    Ok(Options {
        parallel: args.parallel.or(project.parallel).unwrap_or(unless_said),
        fail_fast: args.fail_fast,
        runs,
        min_pass_rate: args
            .min_pass_rate
            .or_else(|| project.min_pass_rate.and_then(PassRate::new))
            .unwrap_or(PassRate::ALL),
        as_declared,
        reliability: project.reliability,
        redraws: args.redraws.map(usize::from).or(project.redraws),
        retries: args.retries.map(usize::from),
        default_retries: project.retries,
        fail_on_skip: args.fail_on_skip,
    })
}

/// What is to be known of declared reliabilities that do not count in this run.
pub fn put_aside(plan: &Plan, options: Options) -> Option<Diagnostic> {
    let declared = plan.declared(&Options { as_declared: true, ..options });
    let words = "--runs says how many runs there are: `reliability`, which is declared for";
    (!options.as_declared && declared > 0)
        .then(|| Diagnostic::new(format!("{words} {}, is put aside", count(declared, "case"))))
}

/// How the command line wants agents to be spoken to.
pub fn calling(args: &CallArgs, world: &World) -> Result<Calling, Diagnostics> {
    let context = args
        .ctx
        .as_ref()
        .map(|path| ContextFile::read(&world.folder.join(path), &path.to_string_lossy(), &world.environment));
    Ok(Calling {
        user: args.user.clone(),
        team: args.team.clone(),
        locale: args.locale.clone(),
        connector: args.connector.clone(),
        context: context.transpose()?,
    })
}

pub fn overrides(args: &TestArgs, input: Option<&Input>) -> Overrides {
    Overrides {
        on_missing_input: args.on_missing_input.map(|missing| match missing {
            MissingInput::Skip => OnMissingInput::Skip,
            MissingInput::Fail => OnMissingInput::Fail,
            MissingInput::End => OnMissingInput::End,
        }),
        person: match (input, args.skip_interactive, args.interactive) {
            // Whoever types says when the conversation is over.
            (Some(Input::Lines), ..) => Some(AskPerson::In(Asked::Always)),
            (_, true, _) => Some(AskPerson::Never),
            (_, false, true) => Some(AskPerson::In(Asked::WhenAwaited)),
            (_, false, false) => None,
        },
    }
}

/// The person at the keyboard, or whoever writes to standard input.
pub fn person(args: &TestArgs, world: &World) -> Option<Arc<dyn Person>> {
    (!args.skip_interactive).then(|| -> Arc<dyn Person> { Arc::new(Keyboard::new(world)) })
}
