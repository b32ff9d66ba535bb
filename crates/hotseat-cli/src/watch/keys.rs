//! Single keys of the terminal, without Enter.

use std::io::{self, Read, Write};

#[cfg(unix)]
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};

use unicode_width::UnicodeWidthChar;

use crate::context::stderr;

/// Key codes of the filter prompt.
pub(super) const ESCAPE: u8 = 27;
pub(super) const BACKSPACE: u8 = 8;
pub(super) const DELETE: u8 = 127;
/// Maximum length of a typed filter.
pub(super) const MAX_FILTER_BYTES: usize = 500;

/// Meaning of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PressedKey {
    All,
    Failed,
    Filter,
    Again,
    Quit,
    Other,
}

impl PressedKey {
    pub(super) fn from_byte(key: u8) -> PressedKey {
        match key {
            b'a' => PressedKey::All,
            b'f' => PressedKey::Failed,
            b't' | b'/' => PressedKey::Filter,
            b'\r' | b'\n' => PressedKey::Again,
            b'q' => PressedKey::Quit,
            _ => PressedKey::Other,
        }
    }
}

/// Returns the keys that sent these bytes at once, without those that send a sequence, such as arrows: Esc is followed by nothing.
#[cfg(unix)]
fn single_keys(bytes: &[u8]) -> Vec<u8> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((&key, after)) = rest.split_first() {
        rest = match (key, after) {
            (ESCAPE, [b'[', sequence @ ..]) => {
                let end = sequence.iter().position(|byte| matches!(byte, b'@'..=b'~'));
                &sequence[end.map_or(sequence.len(), |end| end + 1)..]
            }
            (ESCAPE, [b'O', sequence @ ..]) => sequence.get(1..).unwrap_or_default(),
            _ => {
                keys.push(key);
                after
            }
        };
    }
    keys
}

/// Returns the character that the last byte completes, if it completes one.
pub(super) fn last_char(typed: &[u8]) -> Option<char> {
    std::str::from_utf8(typed).ok()?.chars().next_back()
}

/// Removes the last character, and returns the number of columns that it takes.
pub(super) fn pop_char(typed: &mut Vec<u8>) -> usize {
    let columns = last_char(typed).map_or(1, |last| last.width().unwrap_or(0));
    while typed.pop().is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {}
    columns
}

/// Applies the settings of the terminal again whenever the process continues: a shell has changed them after Ctrl-Z. Fails if
/// the signal cannot be received.
#[cfg(unix)]
fn keep_settings(settings: Termios) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let kind = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
    let mut continued = runtime.block_on(async { signal(kind) })?;
    std::thread::Builder::new().name("terminal".to_string()).spawn(move || {
        while runtime.block_on(continued.recv()).is_some() {
            // A process in the background would be stopped again.
            let is_background =
                tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground != rustix::process::getpgrp());
            if !is_background {
                let _ = tcsetattr(io::stdin(), OptionalActions::Now, &settings);
            }
        }
    })?;
    Ok(())
}

/// Keys of a terminal. Dropping this value restores the terminal.
pub(super) struct KeyboardKeys {
    /// Settings of the terminal before. `None` without a terminal.
    #[cfg(unix)]
    before: Option<Termios>,
}

impl KeyboardKeys {
    /// Reads keys on a thread, if there is a terminal. `report` returns false once its receiver is gone.
    #[cfg(unix)]
    pub(super) fn open(is_terminal: bool, report: impl Fn(u8) -> bool + Send + 'static) -> KeyboardKeys {
        if !is_terminal {
            return KeyboardKeys { before: None };
        }
        let Ok(before) = tcgetattr(io::stdin()) else { return KeyboardKeys { before: None } };
        let mut single = before.clone();
        // Ctrl-C stays a signal.
        single.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        single.special_codes[SpecialCodeIndex::VMIN] = 1;
        single.special_codes[SpecialCodeIndex::VTIME] = 0;
        if tcsetattr(io::stdin(), OptionalActions::Now, &single).is_err() {
            return KeyboardKeys { before: None };
        }
        // Without the listener, keys work until the process is stopped.
        let _ = keep_settings(single);
        std::thread::spawn(move || {
            let mut bytes = [0; 64];
            while let Ok(count @ 1..) = io::stdin().lock().read(&mut bytes) {
                if !single_keys(&bytes[..count]).into_iter().all(&report) {
                    break;
                }
            }
        });
        KeyboardKeys { before: Some(before) }
    }

    /// Reads no keys: single keys need a terminal of Unix.
    #[cfg(not(unix))]
    pub(super) fn open(_: bool, _: impl Fn(u8) -> bool + Send + 'static) -> KeyboardKeys {
        KeyboardKeys {}
    }

    /// True if keys are read.
    pub(super) fn is_open(&self) -> bool {
        #[cfg(unix)]
        return self.before.is_some();
        #[cfg(not(unix))]
        return false;
    }

    /// Shows typed text.
    pub(super) fn echo(&self, text: &str) {
        let mut out = stderr();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

#[cfg(unix)]
impl Drop for KeyboardKeys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
