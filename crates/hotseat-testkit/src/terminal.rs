//! Pseudo-terminals for tests of interactive programs.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Both ends of a pseudo-terminal.
pub(crate) struct PseudoTerminal {
    /// The end of the human, for input and output.
    pub human: File,
    program: File,
}

impl PseudoTerminal {
    /// Opens a terminal with this many columns.
    pub fn open(columns: u16) -> io::Result<PseudoTerminal> {
        let person: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&person)?;
        unlockpt(&person)?;
        let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&person, size)?;
        let name = ptsname(&person, Vec::new())?;
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let program = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(PseudoTerminal { human: File::from(person), program })
    }

    /// Returns the program's end, as one of its streams.
    pub fn stream(&self) -> io::Result<Stdio> {
        Ok(Stdio::from(self.program.try_clone()?))
    }
}
