//! Server-sent events: the data of the events in a stream of bytes.

/// Cuts a stream into the data of its events.
pub(crate) struct EventScanner {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    ends_with_return: bool,
    max_bytes: usize,
}

/// An event exceeds the maximum size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OversizedEvent;

impl EventScanner {
    /// Creates a scanner for events up to this size.
    pub(crate) fn new(max_bytes: usize) -> EventScanner {
        EventScanner {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            ends_with_return: false,
            max_bytes,
        }
    }

    /// Adds bytes and returns the data of the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, OversizedEvent> {
        let mut events = Vec::new();
        for byte in bytes {
            let is_second = *byte == b'\n' && self.ends_with_return;
            self.ends_with_return = *byte == b'\r';
            match byte {
                _ if is_second => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                byte => self.line.push(*byte),
            }
            if self.line.len() + self.data.len() > self.max_bytes {
                return Err(OversizedEvent);
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let is_event = std::mem::take(&mut self.has_data);
            let data = std::mem::take(&mut self.data);
            return (is_event && !data.is_empty()).then_some(data);
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
        None
    }
}
