//! Serves the example agent on 127.0.0.1 until it is stopped.

use std::io::{self, Write};
use std::process::ExitCode;

use hotseat_testkit::checkout::{self, Fault};
use hotseat_testkit::{FakeAgent, Listen, doors};

const USAGE: &str = "\
An example agent under test: AG-UI over POST, chat completions at /v1/chat/completions, an interface of its own
at /chat; GET /health answers `ok`.

Usage: checkout-agent [--port N | --lines] [--fault double-charge|no-confirm|wrong-total]

  --port N      the port on 127.0.0.1 [default: 0, one that is free]
  --lines       no port: messages come on standard input, answers go to standard output, a JSON object a line
  --fault NAME  misbehave in this way
";

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)).and_then(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Nowhere is left to say it if stderr is gone.
            let _ = writeln!(io::stderr(), "checkout-agent: {why}");
            ExitCode::from(2)
        }
    }
}

struct Options {
    port: u16,
    lines: bool,
    fault: Fault,
    help: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { port: 0, lines: false, fault: Fault::None, help: false };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--port" => options.port = value()?.parse().map_err(|error| format!("--port: {error}"))?,
                "--lines" => options.lines = true,
                "--fault" => options.fault = value()?.parse()?,
                "--help" | "-h" => options.help = true,
                _ => return Err(format!("unknown argument `{word}`; --help shows those there are")),
            }
        }
        Ok(options)
    }
}

fn serve(options: Options) -> Result<(), String> {
    let print = |text: &str| io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string());
    if options.help {
        return print(USAGE);
    }
    if options.lines {
        return doors::lines(io::stdin().lock(), io::stdout().lock(), options.fault)
            .map_err(|error| error.to_string());
    }
    let listen = Listen { port: options.port, keep_requests: false };
    let agent = FakeAgent::listen(listen, move |request| checkout::reply(request, options.fault))
        .map_err(|error| format!("port {}: {error}", options.port))?;
    print(&format!("listening on {}\n", agent.url()))?;
    loop {
        std::thread::park();
    }
}
