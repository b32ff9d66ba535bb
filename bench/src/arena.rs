//! Runs the compared programs as processes, and checks that they did their work.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wait4::Wait4;

use crate::bare_client::BenchError;
use crate::suites::{write_lines, write_project, write_suites};
use crate::workload::Workload;

/// Maximum relative difference of request sizes. Ids need not have equal lengths.
const MAX_SIZE_DIFFERENCE: f64 = 0.02;

/// The compared programs.
#[derive(Debug)]
struct BenchPrograms {
    hotseat: PathBuf,
    bare_client: PathBuf,
    fake_agent: PathBuf,
}

/// A fake agent, and a project that targets it.
#[derive(Debug)]
pub struct BenchArena {
    programs: BenchPrograms,
    folder: TempDir,
    agent: FakeAgentProcess,
}

/// Cost of a process.
#[derive(Debug, Clone, Copy)]
pub struct ProcessCost {
    /// Wall-clock time.
    pub wall: Duration,
    /// CPU time of all threads, in user and kernel mode.
    pub cpu: Duration,
    /// Peak resident memory, in bytes.
    pub peak: u64,
}

/// Requests that the agent has received so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RequestTotals {
    requests: u64,
    bytes: u64,
}

/// A fake agent that runs while this value lives.
#[derive(Debug)]
struct FakeAgentProcess {
    process: Child,
    address: String,
}

impl BenchPrograms {
    /// Finds the programs beside this one. Fails if one is missing.
    fn find() -> Result<Self, BenchError> {
        let own = std::env::current_exe()?;
        let folder = own.parent().unwrap_or(Path::new("."));
        let find = |name: &str| {
            let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
            let missing = || {
                format!(
                    "{} is missing: cargo build --release -p hotseat-cli -p hotseat-bench",
                    path.display()
                )
            };
            if path.is_file() { Ok(path) } else { Err(missing()) }
        };
        Ok(BenchPrograms {
            hotseat: find("hotseat")?,
            bare_client: find("bare-client")?,
            fake_agent: find("fake-agent")?,
        })
    }
}

impl BenchArena {
    /// Starts the agent and writes the project. Fails if either fails.
    pub fn open() -> Result<Self, BenchError> {
        let programs = BenchPrograms::find()?;
        let folder = TempDir::new()?;
        let agent = FakeAgentProcess::start(&programs.fake_agent)?;
        write_project(folder.path(), &format!("http://{}/", agent.address))?;
        Ok(BenchArena { programs, folder, agent })
    }

    /// Writes the suites of a workload and returns their folder. Earlier suites are deleted. Fails if they
    /// cannot be written.
    pub fn write_suites(&self, cases: usize, turns: usize) -> Result<PathBuf, BenchError> {
        let folder = self.clear_suites()?;
        write_suites(&folder, cases, turns)?;
        Ok(folder)
    }

    /// Writes a JSON lines suite and returns its folder. Earlier suites are deleted. Fails if it cannot be
    /// written.
    pub fn write_lines(&self, cases: usize) -> Result<PathBuf, BenchError> {
        let folder = self.clear_suites()?;
        write_lines(&folder, cases)?;
        Ok(folder)
    }

    /// Writes a file of the project and returns its path. Fails if it cannot be written.
    pub fn write_file(&self, path: &str, text: &str) -> Result<PathBuf, BenchError> {
        let path = self.folder.path().join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text)?;
        Ok(path)
    }

    fn clear_suites(&self) -> Result<PathBuf, BenchError> {
        let folder = self.folder.path().join("suites");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        Ok(folder)
    }

    /// Runs Hotseat and then the bare client on the same workload. Fails if one of them fails or is
    /// incomplete.
    pub fn measure_pair(
        &self,
        suites: &Path,
        workload: Workload,
    ) -> Result<(ProcessCost, ProcessCost), BenchError> {
        self.measure_pair_with(suites, workload, &[])
    }

    /// Like [`BenchArena::measure_pair`], with additional arguments for Hotseat. Fails if one of them fails
    /// or is incomplete.
    pub fn measure_pair_with(
        &self,
        suites: &Path,
        workload: Workload,
        more: &[&str],
    ) -> Result<(ProcessCost, ProcessCost), BenchError> {
        let before = self.agent.totals()?;
        let hotseat = self.run_hotseat(suites, workload, more)?;
        let between = self.agent.totals()?;
        let bare = self.run_bare_client(workload)?;
        let after = self.agent.totals()?;
        let of_hotseat = (between.bytes - before.bytes) as f64 / workload.requests() as f64;
        let of_bare = (after.bytes - between.bytes) as f64 / workload.requests() as f64;
        if (of_hotseat / of_bare - 1.0).abs() > MAX_SIZE_DIFFERENCE {
            let message = format!(
                "a request of hotseat has {of_hotseat:.0} bytes, one of the bare client {of_bare:.0}: \
                 bench/src/bare_client.rs must send what Hotseat sends"
            );
            return Err(message.into());
        }
        Ok((hotseat, bare))
    }

    /// Runs `hotseat test` with additional arguments. Fails if it fails or does not send every request.
    pub fn run_hotseat(
        &self,
        suites: &Path,
        workload: Workload,
        more: &[&str],
    ) -> Result<ProcessCost, BenchError> {
        let mut command = Command::new(&self.programs.hotseat);
        command.arg("test").arg(suites).args([
            "--color",
            "never",
            "--parallel",
            &workload.parallel.to_string(),
        ]);
        command.args(more);
        self.run(command, workload.requests())
    }

    /// Runs the bare client on the same conversations. Fails if it fails or does not send every request.
    pub fn run_bare_client(&self, workload: Workload) -> Result<ProcessCost, BenchError> {
        let Workload { cases, turns, parallel } = workload;
        let mut command = Command::new(&self.programs.bare_client);
        command.arg("talk").arg(format!("http://{}/", self.agent.address));
        command.args([cases, turns, parallel].map(|number| number.to_string()));
        self.run(command, workload.requests())
    }

    /// Runs `hotseat test --dry-run`, which validates suites without contacting the agent. Fails if it fails
    /// or contacts the agent.
    pub fn run_dry(&self, suites: &Path) -> Result<ProcessCost, BenchError> {
        let mut command = Command::new(&self.programs.hotseat);
        command.arg("test").arg(suites).args(["--color", "never", "--dry-run"]);
        self.run(command, 0)
    }

    /// Runs another Hotseat command that does not contact the agent. Fails if it fails or contacts the agent.
    pub fn run_command(&self, args: &[&str]) -> Result<ProcessCost, BenchError> {
        let mut command = Command::new(&self.programs.hotseat);
        command.args(args);
        self.run(command, 0)
    }

    /// Deletes all saved runs. Fails if they cannot be deleted.
    pub fn delete_runs(&self) -> Result<(), BenchError> {
        let folder = self.store_folder();
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        Ok(())
    }

    /// Returns the size of all saved runs on disk, in bytes. Fails if no run was saved.
    pub fn store_bytes(&self) -> Result<u64, BenchError> {
        folder_bytes(&self.store_folder())
    }

    fn store_folder(&self) -> PathBuf {
        self.folder.path().join(".hotseat")
    }

    /// Runs the YAML parser alone on the same files. Fails if it fails.
    pub fn run_yaml_parser(&self, suites: &Path) -> Result<ProcessCost, BenchError> {
        let mut command = Command::new(&self.programs.bare_client);
        command.arg("read").arg(suites);
        self.run(command, 0)
    }

    /// Runs a program to its end. It must succeed and send exactly this number of requests.
    fn run(&self, mut command: Command, requests: u64) -> Result<ProcessCost, BenchError> {
        let before = self.agent.totals()?;
        let output = self.folder.path().join("output.txt");
        let file = File::create(&output)?;
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        // Secrets and CI variables would give Hotseat more work, so the environment is empty.
        command.env_clear();
        let started = Instant::now();
        let used = command.spawn()?.wait4()?;
        let wall = started.elapsed();
        if !used.status.success() {
            return Err(format!("{command:?} failed ({}):\n{}", used.status, last_lines(&output)).into());
        }
        let made = self.agent.totals()?.requests - before.requests;
        if made != requests {
            return Err(format!("{command:?} sent {made} requests instead of {requests}").into());
        }
        // A process inherits the peak memory of its parent. The driver stays small, so this is less than
        // either program needs.
        Ok(ProcessCost { wall, cpu: used.rusage.utime + used.rusage.stime, peak: used.rusage.maxrss })
    }
}

/// Returns the total size of the files of a folder, in bytes. Fails if the folder cannot be read.
pub fn folder_bytes(folder: &Path) -> Result<u64, BenchError> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

/// Returns the last lines of a file.
fn last_lines(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

impl FakeAgentProcess {
    fn start(program: &Path) -> Result<Self, BenchError> {
        let mut process = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_string();
        Ok(FakeAgentProcess { process, address })
    }

    fn totals(&self) -> Result<RequestTotals, BenchError> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: agent\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.shutdown(std::net::Shutdown::Write)?;
        stream.read_to_string(&mut answer)?;
        let numbers = answer.lines().last().and_then(|line| line.split_once(' '));
        let (requests, bytes) = numbers.ok_or("the fake agent does not say what it was asked")?;
        Ok(RequestTotals { requests: requests.parse()?, bytes: bytes.parse()? })
    }
}

impl Drop for FakeAgentProcess {
    fn drop(&mut self) {
        // The process would end with its standard input; killing it is faster.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
