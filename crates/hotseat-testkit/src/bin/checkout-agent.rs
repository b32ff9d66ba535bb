//! Serves the example agent on 127.0.0.1 until it is stopped.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use hotseat_testkit::checkout::AgentFault;
use hotseat_testkit::{FakeAgent, ListenOptions, interfaces};

const USAGE: &str = "\
An example agent under test: AG-UI over POST, chat completions at /v1/chat/completions, a custom interface
at /chat; GET /health answers `ok`.

Usage: checkout-agent [--port N | --lines] [--fault double-charge|no-confirm|wrong-total]

  --port N      port on 127.0.0.1 [default: 0, picks a free port]
  --lines       open no port: read messages from standard input, write replies to standard output as JSON lines
  --fault NAME  misbehave in this way
";

fn main() -> ExitCode {
    match AgentOptions::parse(std::env::args().skip(1)).and_then(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Errors are ignored if standard error is closed.
            let _ = writeln!(io::stderr(), "checkout-agent: {why}");
            ExitCode::from(2)
        }
    }
}

struct AgentOptions {
    port: u16,
    lines: bool,
    fault: AgentFault,
    help: bool,
}

impl AgentOptions {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<AgentOptions, Box<dyn Error>> {
        let mut options = AgentOptions { port: 0, lines: false, fault: AgentFault::None, help: false };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--port" => options.port = value()?.parse().map_err(|error| format!("--port: {error}"))?,
                "--lines" => options.lines = true,
                "--fault" => options.fault = value()?.parse()?,
                "--help" | "-h" => options.help = true,
                _ => return Err(format!("unknown argument `{word}`; see --help").into()),
            }
        }
        Ok(options)
    }
}

fn serve(options: AgentOptions) -> Result<(), Box<dyn Error>> {
    let print = |text: &str| io::stdout().write_all(text.as_bytes());
    if options.help {
        return Ok(print(USAGE)?);
    }
    if options.lines {
        return Ok(interfaces::lines(io::stdin().lock(), io::stdout().lock(), options.fault)?);
    }
    let listen = ListenOptions { port: options.port, keep_requests: false };
    let agent = FakeAgent::listen(listen, move |request| interfaces::reply(request, options.fault))
        .map_err(|error| format!("port {}: {error}", options.port))?;
    print(&format!("listening on {}\n", agent.url()))?;
    loop {
        std::thread::park();
    }
}
