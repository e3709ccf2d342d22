//! What happened in a run, in order: to be told from another run, and to be read when one fails.

use std::fmt::Display;

/// The events of a run.
#[derive(Debug)]
pub struct Trace {
    lines: Vec<String>,
    digest: u64,
    shown: bool,
}

impl Trace {
    /// Without events; `shown` prints each as it happens.
    pub fn new(shown: bool) -> Self {
        Self { lines: Vec::new(), digest: 0xcbf2_9ce4_8422_2325, shown }
    }

    /// Adds an event.
    pub fn note(&mut self, event: impl Display) {
        let line = event.to_string();
        if self.shown {
            println!("{:>5} {line}", self.lines.len());
        }
        // FNV-1a, with an end of line.
        for byte in line.bytes().chain([b'\n']) {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        self.lines.push(line);
    }

    /// How many events there were.
    pub fn events(&self) -> u64 {
        self.lines.len() as u64
    }

    /// The same for the same events in the same order, and hardly for any other.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The last `count` events.
    pub fn last(&self, count: usize) -> &[String] {
        &self.lines[self.lines.len().saturating_sub(count)..]
    }
}
