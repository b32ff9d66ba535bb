//! The contestants as processes: started, waited for, and checked to have done their work.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wait4::Wait4;

use crate::bare_client::Failure;
use crate::suites::{write_lines, write_project, write_suites};
use crate::workload::Workload;

/// Two contestants send as many bytes if they differ by less than this part: their ids need not be equally long.
const SAME_SIZE: f64 = 0.02;

/// The programs that take part.
#[derive(Debug)]
pub struct Programs {
    hotseat: PathBuf,
    bare_client: PathBuf,
    fake_agent: PathBuf,
}

/// A place to compete in: a fake agent, and a project whose target it is.
#[derive(Debug)]
pub struct Arena {
    programs: Programs,
    folder: TempDir,
    agent: Agent,
}

/// What a process cost.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// From its start to its end.
    pub wall: Duration,
    /// Processor time of all its threads, in the program and in the system.
    pub cpu: Duration,
    /// The most memory that was resident, in bytes.
    pub peak: u64,
}

/// What has been asked of the agent so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    requests: u64,
    bytes: u64,
}

/// A fake agent that runs as long as this lives.
#[derive(Debug)]
struct Agent {
    process: Child,
    address: String,
}

impl Programs {
    /// The programs in a folder.
    ///
    /// # Errors
    /// When one is not there.
    pub fn in_folder(folder: &Path) -> Result<Self, Failure> {
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
        Ok(Programs {
            hotseat: find("hotseat")?,
            bare_client: find("bare-client")?,
            fake_agent: find("fake-agent")?,
        })
    }
}

impl Arena {
    /// Starts the agent and writes the project.
    ///
    /// # Errors
    /// When either cannot be done.
    pub fn open(programs: Programs) -> Result<Self, Failure> {
        let folder = TempDir::new()?;
        let agent = Agent::start(&programs.fake_agent)?;
        write_project(folder.path(), &format!("http://{}/", agent.address))?;
        Ok(Arena { programs, folder, agent })
    }

    /// Writes the suites of a workload and returns their folder. Earlier ones are gone.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write_suites(&self, cases: usize, turns: usize) -> Result<PathBuf, Failure> {
        let folder = self.no_suites()?;
        write_suites(&folder, cases, turns)?;
        Ok(folder)
    }

    /// Writes a suite of JSON lines and returns its folder. Earlier ones are gone.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_lines(&self, cases: usize) -> Result<PathBuf, Failure> {
        let folder = self.no_suites()?;
        write_lines(&folder, cases)?;
        Ok(folder)
    }

    /// Writes a file of the project and returns its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_file(&self, path: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.path().join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text)?;
        Ok(path)
    }

    fn no_suites(&self) -> Result<PathBuf, Failure> {
        let folder = self.folder.path().join("suites");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        Ok(folder)
    }

    /// Hotseat and the bare client, one after the other, on the same workload.
    ///
    /// # Errors
    /// When one of them fails, or has not done its work.
    pub fn pair(&self, suites: &Path, workload: Workload) -> Result<(Cost, Cost), Failure> {
        self.pair_with(suites, workload, &[])
    }

    /// The same where Hotseat is told these things, too.
    ///
    /// # Errors
    /// When one of them fails, or has not done its work.
    pub fn pair_with(
        &self,
        suites: &Path,
        workload: Workload,
        more: &[&str],
    ) -> Result<(Cost, Cost), Failure> {
        let before = self.agent.asked()?;
        let hotseat = self.hotseat(suites, workload, more)?;
        let between = self.agent.asked()?;
        let bare = self.bare_client(workload)?;
        let after = self.agent.asked()?;
        let of_hotseat = (between.bytes - before.bytes) as f64 / workload.requests() as f64;
        let of_bare = (after.bytes - between.bytes) as f64 / workload.requests() as f64;
        if (of_hotseat / of_bare - 1.0).abs() > SAME_SIZE {
            let message = format!(
                "a request of hotseat has {of_hotseat:.0} bytes, one of the bare client {of_bare:.0}: \
                 bench/src/bare_client.rs must send what Hotseat sends"
            );
            return Err(message.into());
        }
        Ok((hotseat, bare))
    }

    /// `hotseat test`, told `more` than what to test.
    ///
    /// # Errors
    /// When it fails, or has not sent every request.
    pub fn hotseat(&self, suites: &Path, workload: Workload, more: &[&str]) -> Result<Cost, Failure> {
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

    /// The bare client with the same conversations.
    ///
    /// # Errors
    /// When it fails, or has not sent every request.
    pub fn bare_client(&self, workload: Workload) -> Result<Cost, Failure> {
        let Workload { cases, turns, parallel } = workload;
        let mut command = Command::new(&self.programs.bare_client);
        command.arg("talk").arg(format!("http://{}/", self.agent.address));
        command.args([cases, turns, parallel].map(|number| number.to_string()));
        self.run(command, workload.requests())
    }

    /// `hotseat test --dry-run`: suites are read and checked, and nobody is contacted.
    ///
    /// # Errors
    /// When it fails, or contacts the agent.
    pub fn dry_run(&self, suites: &Path) -> Result<Cost, Failure> {
        let mut command = Command::new(&self.programs.hotseat);
        command.arg("test").arg(suites).args(["--color", "never", "--dry-run"]);
        self.run(command, 0)
    }

    /// Another command of Hotseat's, which contacts nobody.
    ///
    /// # Errors
    /// When it fails, or contacts the agent.
    pub fn command(&self, args: &[&str]) -> Result<Cost, Failure> {
        let mut command = Command::new(&self.programs.hotseat);
        command.args(args);
        self.run(command, 0)
    }

    /// Gives up all runs that were kept.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub fn forget_runs(&self) -> Result<(), Failure> {
        let folder = self.kept_runs();
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        Ok(())
    }

    /// How many bytes the runs that were kept take on disk.
    ///
    /// # Errors
    /// When nothing was kept.
    pub fn kept_bytes(&self) -> Result<u64, Failure> {
        bytes_in(&self.kept_runs())
    }

    fn kept_runs(&self) -> PathBuf {
        self.folder.path().join(".hotseat")
    }

    /// The parser of YAML alone, over the same files.
    ///
    /// # Errors
    /// When it fails.
    pub fn read_yaml(&self, suites: &Path) -> Result<Cost, Failure> {
        let mut command = Command::new(&self.programs.bare_client);
        command.arg("read").arg(suites);
        self.run(command, 0)
    }

    /// Runs a contestant to its end. It must succeed and must have sent exactly so many requests.
    fn run(&self, mut command: Command, requests: u64) -> Result<Cost, Failure> {
        let before = self.agent.asked()?;
        let output = self.folder.path().join("output.txt");
        let file = File::create(&output)?;
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        // Secrets and the variables of a CI service give Hotseat more to do; here is neither.
        command.env_clear();
        let started = Instant::now();
        let used = command.spawn()?.wait4()?;
        let wall = started.elapsed();
        if !used.status.success() {
            return Err(format!("{command:?} failed ({}):\n{}", used.status, end_of(&output)).into());
        }
        let made = self.agent.asked()?.requests - before.requests;
        if made != requests {
            return Err(format!("{command:?} sent {made} requests instead of {requests}").into());
        }
        // A process begins with the peak of the one that started it. The driver stays small, so that this is less than
        // what either contestant needs.
        Ok(Cost { wall, cpu: used.rusage.utime + used.rusage.stime, peak: used.rusage.maxrss })
    }
}

/// How many bytes the files of a folder have together.
///
/// # Errors
/// When the folder cannot be read.
pub fn bytes_in(folder: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

/// The last lines of a file.
fn end_of(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

impl Agent {
    fn start(program: &Path) -> Result<Self, Failure> {
        let mut process = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_string();
        Ok(Agent { process, address })
    }

    fn asked(&self) -> Result<Asked, Failure> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: agent\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.shutdown(std::net::Shutdown::Write)?;
        stream.read_to_string(&mut answer)?;
        let numbers = answer.lines().last().and_then(|line| line.split_once(' '));
        let (requests, bytes) = numbers.ok_or("the fake agent does not say what it was asked")?;
        Ok(Asked { requests: requests.parse()?, bytes: bytes.parse()? })
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It ends by itself when its standard input does; this is sooner.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
