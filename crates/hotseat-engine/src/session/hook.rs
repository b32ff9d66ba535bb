//! Hooks: commands that run before the first turn and print variables. Scripts run commands in the same way.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use hotseat_document::excerpt;
use hotseat_document::json::{read_bytes, to_line};
use hotseat_trace::{AttemptFailure, FailureKind};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cases::{Environment, HookCommand};
use hotseat_targets::process::{GroupCommand, ProjectServers};
use hotseat_targets::recorder::{SecretRedactor, printed_secrets};

/// Maximum output of a hook in bytes. More output is discarded and fails the hook.
const MAX_OUTPUT_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of characters of the output shown in an error.
const MAX_SHOWN_CHARS: usize = 4000;

/// Runs a hook in `folder` (or its own `cwd`) and returns the variables that it prints. The hook receives
/// `input` as JSON on standard input. `what` names it in errors, which do not show variables that are `declared` secrets or
/// have the name of one. Fails if it cannot be started, fails, times out, or
/// prints anything but a JSON object.
pub async fn run_hook(
    what: &str,
    hook: &HookCommand,
    folder: &Path,
    environment: &Environment,
    project: ProjectServers,
    input: Option<&Value>,
    declared: &[String],
) -> Result<BTreeMap<String, Value>, AttemptFailure> {
    let shown = hook.command.join(" ");
    let failed = |message: String| AttemptFailure::new(FailureKind::HookError, message);
    let (printed, detail) = run_command(what, hook, folder, environment, project, input, declared).await?;
    match printed {
        None => Ok(BTreeMap::new()),
        Some(Value::Object(variables)) => Ok(variables.into_iter().collect()),
        Some(_) => {
            Err(failed(format!("{what} `{shown}` printed JSON that is not an object")).with_detail(detail))
        }
    }
}

/// Runs a command in `folder` (or its own `cwd`) and returns the JSON that it prints, if any, and its output
/// for error messages. `what` names the command in errors, which do not show members of the output that are `declared` secrets
/// or have the name of one. Fails if it cannot be started, fails, times out,
/// or prints anything but JSON.
pub async fn run_command(
    what: &str,
    hook: &HookCommand,
    folder: &Path,
    environment: &Environment,
    project: ProjectServers,
    input: Option<&Value>,
    declared: &[String],
) -> Result<(Option<Value>, String), AttemptFailure> {
    let shown = format!("{what} `{}`", hook.command.join(" "));
    let failed = |message: String| AttemptFailure::new(FailureKind::HookError, message);
    let mut group_command = GroupCommand::new(&hook.command, environment, project);
    let command = &mut group_command.command;
    let folder = hook.cwd.as_deref().map_or_else(|| folder.to_path_buf(), |cwd| folder.join(cwd));
    command.envs(&hook.env).current_dir(&folder);
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut child, group) = group_command.spawn().map_err(|error| match folder.is_dir() {
        true => failed(format!("{shown} cannot be started: {error}")),
        // The system reports a missing folder as a missing program.
        false => failed(format!("{shown} cannot be started: there is no folder {}", folder.display())),
    })?;
    let stdin = child.stdin.take();
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let mut stderr = child.stderr.take().expect("stderr is piped");

    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ended = tokio::time::timeout(hook.timeout, async {
        let waited = async {
            let status = child.wait().await;
            // Remaining child processes are killed, which also closes the output.
            group.kill();
            status
        };
        let tell = async {
            if let (Some(mut stdin), Some(value)) = (stdin, input) {
                // A hook need not read its input.
                let _ = stdin.write_all(to_line(value).as_bytes()).await;
            }
        };
        let (read_out, read_err, status, ()) =
            tokio::join!(read(&mut stdout, &mut out), read(&mut stderr, &mut err), waited, tell);
        (read_out.and(read_err), status)
    })
    .await;
    group.kill();
    let detail = output(&out, &err, declared);
    let (read, status) = match ended {
        Ok((read, status)) => (read, status),
        Err(_) => {
            let _ = child.wait().await;
            let message = format!("{shown} timed out after {} ms", hook.timeout.as_millis());
            return Err(failed(message).with_detail(detail));
        }
    };
    let status =
        read.and(status).map_err(|error| failed(format!("{shown}: {error}")).with_detail(detail.clone()))?;
    if !status.success() {
        return Err(failed(format!("{shown} failed ({status})")).with_detail(detail));
    }
    if out.len() >= MAX_OUTPUT_BYTES {
        return Err(failed(format!("{shown} printed more than {MAX_OUTPUT_BYTES} bytes")));
    }
    if out.trim_ascii().is_empty() {
        return Ok((None, detail));
    }
    match read_bytes(&out) {
        Ok(printed) => Ok((Some(printed), detail)),
        Err(error) => Err(failed(format!("{shown} printed something that {error}")).with_detail(detail)),
    }
}

async fn read(from: &mut (impl AsyncReadExt + Unpin), into: &mut Vec<u8>) -> std::io::Result<()> {
    let mut buffer = vec![0; 8192];
    loop {
        let n = from.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        let room = MAX_OUTPUT_BYTES - into.len();
        into.extend_from_slice(&buffer[..n.min(room)]);
    }
}

fn output(out: &[u8], err: &[u8], declared: &[String]) -> String {
    let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    let redactor = SecretRedactor::new(printed_secrets(&out, declared));
    let mut words = Vec::new();
    for (name, text) in [("stdout", out), ("stderr", err)] {
        match text.trim_end() {
            "" => words.push(format!("{name}: nothing")),
            text => words.push(format!("{name}:\n{}", redactor.message(&excerpt(text, MAX_SHOWN_CHARS)))),
        }
    }
    words.join("\n")
}
