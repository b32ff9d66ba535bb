//! Selection of cases: filters of the command line, lines, case files, and the explanation if nothing matches.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_checks::Pattern;
use hotseat_document::json::read_bytes;
use hotseat_document::{Diagnostic, nearest_or};
use hotseat_engine::cases::Suite;
use hotseat_engine::config::{
    Project, discover_suites, display_path, is_case_word, nearest_suite, split_part,
};
use hotseat_engine::run::{
    CaseFilter, CaseLabels, CaseSelection, FailedCases, KeywordExpression, RunPlan, SelectedParts,
};
use hotseat_report::reporters::{format_count, shell_word};
use hotseat_report::store::{RunStore, StoredRun, store_path};

use crate::args::{FilterArgs, SelectionArgs};
use crate::context::CliContext;
use crate::exit::ExitStatus;
use crate::store_location::report_store_error;

/// Suite names and case ids.
pub type CaseSet = BTreeSet<(String, String)>;

impl FilterArgs {
    /// Compiles the filter. Fails if an expression is invalid.
    pub fn compile(&self) -> Result<CaseFilter, Diagnostic> {
        let keywords = self.keywords.as_deref();
        CaseFilter::compile(&self.run, keywords, &self.grep, &self.tag, &self.exclude_tag)
            .map_err(Diagnostic::new)
    }

    /// True if nothing is filtered.
    pub fn is_empty(&self) -> bool {
        self.run.is_empty()
            && self.keywords.is_none()
            && self.grep.is_empty()
            && self.tag.is_empty()
            && self.exclude_tag.is_empty()
    }

    /// The filter as flags for messages: `--run "a" --tag "b"`.
    pub fn describe(&self) -> String {
        let flags = |flag: &str, values: &[String]| -> Vec<String> {
            values.iter().map(|value| format!("{flag} {value:?}")).collect()
        };
        let keywords: Vec<String> = self.keywords.iter().cloned().collect();
        let all = [
            flags("--run", &self.run),
            flags("-k", &keywords),
            flags("--grep", &self.grep),
            flags("--tag", &self.tag),
            flags("--exclude-tag", &self.exclude_tag),
        ];
        all.concat().join(" ")
    }
}

impl SelectionArgs {
    /// The first argument that is a path and no word.
    pub fn first_path(&self, folder: &Path) -> Option<&Path> {
        self.paths.iter().find(|written| !is_case_word(written, folder)).map(Path::new)
    }

    /// Words and filter for messages: `"a" --tag "b"`.
    pub fn describe_filter(&self, words: &[String]) -> String {
        let words = words.iter().map(|word| format!("{word:?}"));
        let flags = Some(self.filter.describe()).filter(|flags| !flags.is_empty());
        words.chain(flags).collect::<Vec<_>>().join(" ")
    }

    /// The arguments that are words.
    pub fn words(&self, folder: &Path) -> Vec<String> {
        self.paths.iter().filter(|written| is_case_word(written, folder)).cloned().collect()
    }
}

/// Cases that a run is restricted to, apart from [`SelectionArgs`].
#[derive(Debug, Default)]
pub enum CaseRestriction {
    /// All cases.
    #[default]
    None,
    /// Those of `--cases`, which must all exist.
    Listed(CaseSet),
    /// Those that failed.
    Failed(FailedCases),
    /// Those of a saved run.
    Saved(CaseSet),
}

impl CaseRestriction {
    fn cases(&self) -> Option<&CaseSet> {
        match self {
            CaseRestriction::None | CaseRestriction::Failed(_) => None,
            CaseRestriction::Listed(cases) | CaseRestriction::Saved(cases) => Some(cases),
        }
    }

    fn failed(&self) -> Option<&FailedCases> {
        match self {
            CaseRestriction::Failed(cases) => Some(cases),
            CaseRestriction::None | CaseRestriction::Listed(_) | CaseRestriction::Saved(_) => None,
        }
    }
}

/// Returns an error if options cannot be combined.
fn refused_combination(args: &SelectionArgs, folder: &Path) -> Option<Diagnostic> {
    if args.last_failed && args.shard.is_some() {
        let message = "--last-failed cannot be used with --shard: which cases failed changes with each saved run, so the shards would \
                       be parts of different selections";
        let help = "run `hotseat list --last-failed --json > failed.jsonl` once, then each shard with `--cases failed.jsonl`";
        return Some(Diagnostic::new(message).help(help));
    }
    args.cases.as_ref()?;
    let filter = Some(args.filter.describe()).filter(|filter| !filter.is_empty());
    let is_part = |written: &&String| {
        is_case_word(written, folder) || (!folder.join(written).exists() && split_part(written).is_some())
    };
    let part = || args.paths.iter().find(is_part).map(|written| shell_word(written).into_owned());
    let option = filter.or_else(|| args.last_failed.then(|| "--last-failed".to_string())).or_else(part)?;
    let message = format!("--cases cannot be used with {option}: every case of the file must run");
    let help =
        format!("write the file with `hotseat list --json {option}`, which prints only the cases that match");
    Some(Diagnostic::new(message).help(help))
}

/// Returns the restriction of `--cases` or `--last-failed`; the latter before a resumed run. Errors have been
/// printed.
pub fn restriction(
    args: &SelectionArgs,
    project: &Project,
    before: Option<&StoredRun>,
    context: &CliContext,
) -> Result<CaseRestriction, ExitStatus> {
    if let Some(wrong) = refused_combination(args, &context.folder) {
        return Err(context.reject([wrong]));
    }
    if let Some(path) = &args.cases {
        let listed = read_case_file(path, context).map_err(|wrong| context.reject([wrong]))?;
        return Ok(CaseRestriction::Listed(listed));
    }
    if !args.last_failed {
        return Ok(CaseRestriction::None);
    }
    let store = RunStore::open(&store_path(&project.root));
    let failed = store.and_then(|store| store.failed_cases(None, before));
    let failed = failed.map_err(|error| report_store_error(&error, context))?;
    if failed.is_empty() {
        let message = "no case selected: every case passed when it last ran";
        return Err(context.fail(ExitStatus::NothingSelected, message));
    }
    Ok(CaseRestriction::Failed(failed))
}

/// Loads the selected cases of the given suites, or of the suites named by the arguments and the project file.
/// Errors have been printed.
pub fn load_plan(
    args: &SelectionArgs,
    prepared: Option<Vec<Suite>>,
    restriction: &CaseRestriction,
    project: &Project,
    context: &CliContext,
) -> Result<RunPlan, ExitStatus> {
    let mut filter = args.filter.compile().map_err(|wrong| context.reject([wrong]))?;
    let (mut lines, mut named, mut nested) = (Vec::new(), Vec::new(), Vec::new());
    let mut whole = HashSet::new();
    let (suites, mut diagnostics) = match prepared {
        Some(suites) => {
            filter.words = args.words(&context.folder);
            (suites, Vec::new())
        }
        None => {
            let found = discover_suites(&args.paths, &context.folder, project);
            if !found.missing.is_empty() {
                let is_usage = !found.mistakes.is_empty();
                context.report_errors(found.missing.into_iter().chain(found.mistakes));
                return Err(if is_usage { ExitStatus::Usage } else { ExitStatus::NothingSelected });
            }
            (lines, named, filter.words) = (found.lines, found.named, found.words);
            (nested, whole) = (found.notes, found.whole);
            (found.suites, found.mistakes)
        }
    };
    let mut parts: BTreeMap<String, SelectedParts> = BTreeMap::new();
    for (path, line) in lines.iter().filter(|(path, _)| !whole.contains(path)) {
        parts.entry(project.suite_name(path)).or_default().lines.insert(*line);
    }
    for (path, name) in named.iter().filter(|(path, _)| !whole.contains(path)) {
        parts.entry(project.suite_name(path)).or_default().names.insert(name.clone());
    }
    let selection = CaseSelection {
        filter: filter.clone(),
        parts,
        among: restriction.cases().cloned(),
        failed: restriction.failed().cloned(),
        shard: args.shard,
        forbid_only: args.forbid_only,
    };
    let plan = RunPlan::load(suites, selection, project);
    let mut plan = match plan {
        Ok(plan) if diagnostics.is_empty() => plan,
        Ok(_) => return Err(context.reject(diagnostics)),
        Err(found) => {
            diagnostics.extend(found);
            return Err(context.reject(diagnostics));
        }
    };
    if let CaseRestriction::Listed(required) = restriction {
        check_existence(required, &plan, project).map_err(|missing| context.reject(missing))?;
    }
    let mut missing = missing_lines(&lines, &plan, project, context);
    missing.extend(missing_names(&named, &plan, project, context));
    missing.extend(missing_words(&filter.words, &plan, project, context));
    if !missing.is_empty() {
        context.report_errors(missing);
        return Err(ExitStatus::NothingSelected);
    }
    // An empty shard is not an error.
    if plan.selected_in_all_shards == 0 {
        let shown = |path: &Path| display_path(path, &context.folder);
        let at_lines = lines.iter().map(|(path, line)| format!("{}:{line}", shown(path)));
        let by_names = named.iter().map(|(path, name)| format!("{}::{name}", shown(path)));
        let described = at_lines.chain(by_names).chain([args.describe_filter(&filter.words)]);
        let described = described.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        context.report_errors([nothing_selected(&described, &filter, restriction, &plan, project)]);
        return Err(ExitStatus::NothingSelected);
    }
    if args.filter.run.len() + args.filter.tag.len() + args.filter.exclude_tag.len() > 0 {
        let notes = idle_terms(&filter, &plan, project);
        plan.notes.splice(0..0, notes);
    }
    plan.notes.splice(0..0, nested);
    Ok(plan)
}

/// Reads a file of lines as `hotseat list --json` prints them, as suite names and case ids. Fails if the file
/// cannot be read or has no line, or a line names no case.
fn read_case_file(path: &Path, context: &CliContext) -> Result<CaseSet, Diagnostic> {
    let shown = path.display();
    let text = fs::read_to_string(context.folder.join(path))
        .map_err(|error| Diagnostic::new(format!("cannot read --cases {shown}: {error}")))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let cases: Result<CaseSet, _> = lines
        .map(|(index, line)| {
            let case = read_bytes(line.as_bytes()).ok();
            let member = |name: &str| Some(case.as_ref()?.get(name)?.as_str()?.to_string());
            member("suite").zip(member("id")).ok_or_else(|| {
                Diagnostic::new(format!("--cases {shown}: line {} is not a case", index + 1))
                    .help("write lines as `hotseat list --json` prints them")
            })
        })
        .collect();
    cases.and_then(|cases| match cases.is_empty() {
        true => Err(Diagnostic::new(format!("--cases {shown}: the file has no case"))),
        false => Ok(cases),
    })
}

/// Checks that the plan has all these cases. Fails if one does not exist in the suites of the plan.
fn check_existence(required: &CaseSet, plan: &RunPlan, project: &Project) -> Result<(), Vec<Diagnostic>> {
    if plan.selected_in_all_shards == required.len() {
        return Ok(());
    }
    let mut missing = required.clone();
    for (suite, case) in plan.all_cases(project) {
        missing.remove(&(suite.to_string(), case.id.clone()));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.into_iter();
    Err(missing.map(|(suite, id)| Diagnostic::new(format!("--cases: {suite} has no case `{id}`"))).collect())
}

/// Diagnostics for lines at which no case lies, each with the nearest case.
fn missing_lines(
    lines: &[(PathBuf, u32)],
    plan: &RunPlan,
    project: &Project,
    context: &CliContext,
) -> Vec<Diagnostic> {
    if lines.is_empty() {
        return Vec::new();
    }
    let mut cases: BTreeMap<Arc<str>, Vec<(RangeInclusive<u32>, String)>> = BTreeMap::new();
    for (suite, case) in plan.all_cases(project) {
        cases.entry(suite).or_default().push((case.lines(), case.name.clone()));
    }
    let mut missing = Vec::new();
    for (path, line) in lines {
        let known = cases.get(&*project.suite_name(path)).map_or(&[][..], Vec::as_slice);
        if known.iter().any(|(lines, _)| lines.contains(line)) {
            continue;
        }
        let shown = display_path(path, &context.folder);
        let message = format!("no case selected: no case is at line {line} of {shown}");
        let distance =
            |lines: &RangeInclusive<u32>| line.abs_diff(*lines.start()).min(line.abs_diff(*lines.end()));
        let near = known.iter().min_by_key(|(lines, _)| distance(lines));
        missing.push(match near {
            Some((lines, name)) => {
                Diagnostic::new(message).help(format!("`{name}` is at {shown}:{}", lines.start()))
            }
            None => Diagnostic::new(message),
        });
    }
    missing
}

/// Diagnostics for `FILE::NAME` if the file has no such case, each with the most similar name.
fn missing_names(
    named: &[(PathBuf, String)],
    plan: &RunPlan,
    project: &Project,
    context: &CliContext,
) -> Vec<Diagnostic> {
    if named.is_empty() {
        return Vec::new();
    }
    let mut names: BTreeMap<Arc<str>, BTreeSet<String>> = BTreeMap::new();
    for (suite, case) in plan.all_cases(project) {
        let known = names.entry(suite).or_default();
        known.extend([case.id.clone(), case.name.clone()]);
        known.extend(case.names_without_scenario());
    }
    let none = BTreeSet::new();
    let known = |path: &Path| names.get(&*project.suite_name(path)).unwrap_or(&none);
    let missing = named.iter().filter(|(path, name)| !known(path).contains(name));
    let missing = missing.map(|(path, name)| {
        let shown = display_path(path, &context.folder);
        let wrong = Diagnostic::new(format!("no case selected: {shown} has no case `{name}`"));
        let list = || format!("`hotseat list {}` prints the cases", shell_word(&shown));
        wrong.help(nearest_or(name, known(path).iter().map(String::as_str), list))
    });
    missing.collect()
}

/// Diagnostics for words that are neither a path nor a part of a name, each with the most similar path or name. A
/// word may be a misspelt suite, so it is an error even if other words select cases.
fn missing_words(
    words: &[String],
    plan: &RunPlan,
    project: &Project,
    context: &CliContext,
) -> Vec<Diagnostic> {
    let mut missing: Vec<&String> = words.iter().collect();
    if missing.is_empty() {
        return Vec::new();
    }
    for (suite, case) in plan.all_cases(project) {
        let labels = CaseLabels { id: &case.id, name: &case.name, suite: &suite, tags: &case.tags };
        missing.retain(|word| !labels.contain(word));
        if missing.is_empty() {
            return Vec::new();
        }
    }
    let known = plan.known_labels(project);
    let missing = missing.into_iter().map(|word| {
        let message = format!("no case selected: `{word}` is no file, no folder and no part of a name");
        let near =
            nearest_suite(word, &context.folder, project).map(|near| format!("did you mean `{near}`?"));
        let near = near.or_else(|| known.suggest_name(word));
        // A sentence may be a message to the agent.
        let message_help = word
            .contains(char::is_whitespace)
            .then(|| format!("`hotseat test -i {}` sends it to the agent as a message", shell_word(word)));
        let help = match (near, message_help) {
            (Some(near), Some(more)) => format!("{near} {more}"),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => "`hotseat list` prints the cases".to_string(),
        };
        Diagnostic::new(message).help(help)
    });
    missing.collect()
}

/// Explains why no case is selected, and suggests the most similar name or tag. `described` are the arguments that select cases
/// of suites.
fn nothing_selected(
    described: &str,
    filter: &CaseFilter,
    restriction: &CaseRestriction,
    plan: &RunPlan,
    project: &Project,
) -> Diagnostic {
    let cases = format_count(plan.total, "case");
    let failed = matches!(restriction, CaseRestriction::Failed(_));
    let words = match (failed, described.is_empty()) {
        (true, true) => format!("none of {cases} failed"),
        (true, false) => format!("{described} matches no case that failed when it last ran"),
        (false, true) => format!("none of {cases} is in the saved run"),
        (false, false) => format!("{described} matches none of {cases}"),
    };
    let mistake = Diagnostic::new(format!("no case selected: {words}"));
    if described.is_empty() {
        return mistake;
    }
    let mut keywords = filter.keywords.iter().flat_map(KeywordExpression::words);
    let pattern_help = keywords
        .any(|word| word.contains(['|', '&', '*']))
        .then(|| "`-k` joins words by `and`, `or` and `not`; `--run` takes a regular expression".to_string());
    let help = pattern_help.or_else(|| plan.known_labels(project).suggest(filter));
    let other_help = match failed {
        true => "without `--last-failed`, cases run regardless of their last result",
        false => "`hotseat list` prints the cases",
    };
    mistake.help(help.unwrap_or_else(|| other_help.to_string()))
}

/// Notes for names and tags that match no case although others do.
fn idle_terms(filter: &CaseFilter, plan: &RunPlan, project: &Project) -> Vec<Diagnostic> {
    let mut names: Vec<&Pattern> = filter.names.iter().collect();
    let mut tags: BTreeSet<&String> = filter.tags.iter().chain(&filter.excluded_tags).collect();
    for (suite, case) in plan.all_cases(project) {
        let labels = CaseLabels { id: &case.id, name: &case.name, suite: &suite, tags: &case.tags };
        names.retain(|pattern| !labels.name_matches(pattern));
        tags.retain(|tag| !case.tags.contains(*tag));
        if names.is_empty() && tags.is_empty() {
            return Vec::new();
        }
    }
    let known = plan.known_labels(project);
    let names = names.into_iter().map(|pattern| {
        let near = known.suggest_name(pattern.source()).map_or_else(String::new, |near| format!("; {near}"));
        format!("--run {:?} matches no case{near}", pattern.source())
    });
    let tags = tags.into_iter().map(|tag| format!("no case has the tag {tag:?}; {}", known.suggest_tag(tag)));
    names.chain(tags).map(Diagnostic::new).collect()
}
