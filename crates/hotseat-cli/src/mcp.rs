//! `hotseat mcp`: the bridge for agents that start their MCP servers, mocks for trying out, and recordings.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::{fs, thread};

use hotseat_document::{Diagnostic, DocumentNode, NodeValue, SourceSpan, SourceText, json};
use hotseat_engine::run::ShutdownSignals;
use hotseat_mcp::{
    BRIDGE_VARIABLE, FixedAnswerer, McpLimits, McpOptions, McpRecording, McpReplaySource, McpServers,
    MockFileError, MockFileErrors, MockFileMistake, ServerDefinition, ServerKind, TextCleaner, ToolAnswerer,
    Upstream, UpstreamCommand, bridge_lines, list_contents, read_mock, run_bridge,
};
use hotseat_report::reporters::format_count;
use tokio::runtime::{Builder, Runtime};

use crate::args::{McpArgs, McpCommand, McpRecordArgs, McpServeArgs};
use crate::context::CliContext;
use crate::exit::{CommandResult, ExitStatus};

pub fn run(args: &McpArgs, context: &CliContext) -> CommandResult {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| context.fail(ExitStatus::RunError, format!("cannot start: {error}")))?;
    match (&args.name, &args.command) {
        (_, Some(McpCommand::Serve(args))) => runtime.block_on(serve(args, context)),
        (_, Some(McpCommand::Record(args))) => runtime.block_on(record(args, context)),
        (Some(name), None) => bridge(name, &runtime, context),
        (None, None) => Err(ExitStatus::Usage),
    }
}

/// Connects standard input and output to a server of the running tests.
fn bridge(name: &str, runtime: &Runtime, context: &CliContext) -> CommandResult {
    let Some(address) = std::env::var(BRIDGE_VARIABLE).ok().filter(|address| !address.is_empty()) else {
        let message = format!(
            "{BRIDGE_VARIABLE} is not set: `hotseat mcp {name}` works for agents that `hotseat test` starts; other agents \
             need this variable in the environment of the server"
        );
        return Err(context.fail(ExitStatus::Usage, message));
    };
    let max_bytes = McpLimits::default().max_message_bytes;
    let (lines, input) = bridge_lines();
    // The thread ends with the input, or with the process.
    thread::spawn(move || read_lines(max_bytes, &lines));
    let (output, mut written) = bridge_lines();
    let writer = thread::spawn(move || -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        while let Some(line) = written.blocking_recv() {
            stdout.write_all(&line)?;
            stdout.write_all(b"\n")?;
            stdout.flush()?;
        }
        Ok(())
    });
    let ended = runtime.block_on(run_bridge(&address, name, input, output, max_bytes));
    // A client that closed its input needs no further answers.
    let _ = writer.join();
    ended.map_err(|error| context.fail(ExitStatus::RunError, error)).map(|()| ExitStatus::Passed)
}

/// Reads lines of standard input until its end, or until one is too long.
fn read_lines(max_bytes: usize, lines: &tokio::sync::mpsc::Sender<Vec<u8>>) {
    let mut input = BufReader::new(io::stdin());
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(limit).read_until(b'\n', &mut line);
        let is_complete = line.last() == Some(&b'\n') || line.len() < max_bytes;
        if !matches!(read, Ok(1..)) || !is_complete {
            return;
        }
        while matches!(line.last(), Some(b'\n' | b'\r')) {
            line.pop();
        }
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

/// Serves one server over HTTP until Ctrl-C.
async fn serve(args: &McpServeArgs, context: &CliContext) -> CommandResult {
    if let (Some(file), Some(_)) = (&args.file, &args.record) {
        let message = format!(
            "--record needs a server to pass requests on to, with --url or a command: {} answers by itself",
            file.display()
        );
        return Err(context.fail(ExitStatus::Usage, message));
    }
    if let Some(message) = args.record.as_deref().and_then(|file| wrong_recording_name("--record ", file)) {
        return Err(context.fail(ExitStatus::Usage, message));
    }
    if let Some(file) = &args.record {
        check_replaced("--record ", file, context)?;
    }
    let (definition, answerer) = definition_of(args, context).map_err(|found| context.reject(found))?;
    let mut signals = receive_signals(context)?;
    let options = McpOptions { port: args.port, record: args.record.is_some(), ..McpOptions::default() };
    let opened = McpServers::start(vec![definition.clone()], options)
        .and_then(|servers| Ok((servers.open_conversation("serve", answerer, Vec::new())?, servers)));
    let (mut conversation, servers) = opened.map_err(|error| {
        let file = args.file.as_ref().map_or_else(String::new, |file| format!("{}: ", file.display()));
        context.fail(ExitStatus::RunError, format!("{file}{error}"))
    })?;
    let url = conversation.url(&definition.name).unwrap_or_default();
    let printed = context.print(|out| writeln!(out, "{} on {url}\nCtrl-C stops it.", definition.name));
    if printed != ExitStatus::Passed {
        return Err(printed);
    }
    let events = async {
        while let Some(event) = conversation.next_event().await {
            event.kind.server_failure().into_iter().for_each(|message| context.report_error(message));
        }
    };
    tokio::select! {
        () = events => {}
        () = signals.next() => {}
    }
    conversation.close();
    let written = match (&args.record, conversation.recording(&definition.name)) {
        (Some(path), Some(recording)) if recording.exchanges.is_empty() => {
            context.print_warning(&format!("no request was recorded, so {} was not written", path.display()));
            Ok(())
        }
        (Some(path), Some(recording)) => write_recording(&recording, &context.folder.join(path)),
        _ => Ok(()),
    };
    let gap = args.record.as_ref().and_then(|path| {
        let gap = conversation.recording_gap(&definition.name)?;
        Some(format!("{} is incomplete: {gap}", path.display()))
    });
    drop(servers);
    let written = written.and_then(|()| gap.map_or(Ok(()), |gap| Err(gap.into())));
    written.map_err(|error| context.fail(ExitStatus::RunError, error)).map(|()| ExitStatus::Passed)
}

/// Begins to receive Ctrl-C.
pub fn receive_signals(context: &CliContext) -> Result<ShutdownSignals, ExitStatus> {
    ShutdownSignals::new()
        .map_err(|error| context.fail(ExitStatus::RunError, format!("cannot receive signals: {error}")))
}

type AnsweredDefinition = (ServerDefinition, Arc<dyn ToolAnswerer>);

fn definition_of(args: &McpServeArgs, context: &CliContext) -> Result<AnsweredDefinition, Vec<Diagnostic>> {
    let none = || -> Arc<dyn ToolAnswerer> { Arc::new(FixedAnswerer::default()) };
    let Some(file) = &args.file else {
        let kind = ServerKind::Proxy(upstream_of(args.url.as_deref(), &args.program));
        return Ok((ServerDefinition::new("proxy", kind), none()));
    };
    let path = context.folder.join(file);
    let text = fs::read_to_string(&path)
        .map_err(|error| vec![Diagnostic::new(format!("cannot read {}: {error}", file.display()))])?;
    if is_recording(file) {
        let recording = McpRecording::read(&text)
            .map_err(|error| vec![Diagnostic::new(format!("{}: {error}", file.display()))])?;
        let (recording, cleaner) = (Arc::new(recording), TextCleaner::default());
        let source = McpReplaySource { recording, cleaner, conversation: None };
        return Ok((ServerDefinition::new("replay", ServerKind::Replay(source)), none()));
    }
    let (definition, answerer) = read_mock(&text)
        .map_err(|errors| locate(errors, &SourceText::new(file.display().to_string(), text, 1)))?;
    let answerer: Arc<dyn ToolAnswerer> = answerer;
    Ok((definition, answerer))
}

/// Returns the mistakes of a definition with their places in its file.
fn locate(errors: MockFileErrors, source: &Arc<SourceText>) -> Vec<Diagnostic> {
    let parsed = json::parse_recorded(source);
    let locate = |MockFileMistake { pointer, problem }| match (&parsed, &problem) {
        (Err(found), MockFileError::NoJson(_)) => found.iter().cloned().collect(),
        (Ok(file), _) => vec![Diagnostic::new(problem).at(place_of(file, &pointer, source))],
        (Err(_), _) => vec![Diagnostic::new(format!("{}: {problem}", source.name))],
    };
    errors.0.into_iter().flat_map(locate).collect()
}

/// Returns the place of the key or the entry that a JSON Pointer names.
fn place_of(file: &DocumentNode, pointer: &str, source: &Arc<SourceText>) -> SourceSpan {
    let (mut node, mut place) = (file, file.place(source));
    for name in pointer.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        match &node.value {
            NodeValue::Map(entries) => {
                let Some(entry) = entries.iter().find(|entry| entry.key.text == name) else { break };
                (node, place) = (&entry.value, entry.key.place(source));
            }
            NodeValue::List(items) => {
                let Some(item) = name.parse().ok().and_then(|index: usize| items.get(index)) else { break };
                (node, place) = (item, item.place(source));
            }
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => break,
        }
    }
    place
}

fn upstream_of(url: Option<&str>, program: &[String]) -> Upstream {
    match url {
        Some(url) => Upstream::Url { url: url.to_string(), headers: BTreeMap::new() },
        None => Upstream::Command(UpstreamCommand {
            argv: program.to_vec(),
            environment: std::env::vars().collect(),
            folder: None,
        }),
    }
}

/// Returns true if [`serve`] reads a file as a recording; it reads any other file as the definition of a mock.
fn is_recording(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "jsonl")
}

/// Returns the error for a name under which a recording could be written but not served.
fn wrong_recording_name(option: &str, file: &Path) -> Option<String> {
    let file = (!is_recording(file)).then(|| file.display())?;
    Some(format!("{option}{file}: the name of a recording ends in `.jsonl`, for example `bank.mcp.jsonl`"))
}

/// Refuses to replace a file that is no recording.
fn check_replaced(option: &str, file: &Path, context: &CliContext) -> Result<(), ExitStatus> {
    let problem = match fs::read_to_string(context.folder.join(file)) {
        Ok(text) => McpRecording::read(&text).err().map(|error| error.to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(error.to_string()),
    };
    let Some(problem) = problem else { return Ok(()) };
    let message = format!(
        "{option}{} would be replaced: {problem}; choose another name, or delete the file",
        file.display()
    );
    Err(context.fail(ExitStatus::Usage, message))
}

/// Records the lists of a server.
async fn record(args: &McpRecordArgs, context: &CliContext) -> CommandResult {
    if let Some(message) = wrong_recording_name("", &args.file) {
        return Err(context.fail(ExitStatus::Usage, message));
    }
    check_replaced("", &args.file, context)?;
    let recorded = list_contents(upstream_of(args.url.as_deref(), &args.program)).await;
    let written = recorded.map_err(Box::<dyn Error>::from).and_then(|recording| {
        write_recording(&recording, &context.folder.join(&args.file))?;
        Ok(recording.entries("tools/list", "tools").len())
    });
    let tools = written.map_err(|error| context.fail(ExitStatus::RunError, error))?;
    Ok(context.print(|out| writeln!(out, "{} in {}", format_count(tools, "tool"), args.file.display())))
}

fn write_recording(recording: &McpRecording, path: &Path) -> Result<(), Box<dyn Error>> {
    let text = recording.write(&TextCleaner::default());
    Ok(fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?)
}
