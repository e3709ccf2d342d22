//! The shell at a pseudo-terminal, and what is seen there.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};

use nix::pty::{Winsize, openpty};
use tempfile::TempDir;

/// A shell that runs, and the person in front of it.
pub struct Session {
    shell: Child,
    keys: File,
    /// What is shown, as it comes; ends with the shell.
    shown: Receiver<Vec<u8>>,
    /// What was shown and not yet expected, without what moves the cursor.
    seen: Text,
    /// The person's home.
    home: TempDir,
}

impl Session {
    /// Of a terminal with 80 columns and 24 rows.
    pub fn start() -> Self {
        Self::start_with(80, |_| {})
    }

    /// With another terminal, and other variables or arguments.
    pub fn start_with(columns: u16, change: impl FnOnce(&mut Command)) -> Self {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).expect("there are pseudo-terminals");
        let home = tempfile::tempdir().unwrap();
        // A session of its own, so that Ctrl-C is a signal to it and to nobody else.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_albireo"), "shell"]);
        command.env("TERM", "xterm").env("HOME", home.path());
        for name in [
            "XDG_DATA_HOME",
            "ALBIREO_PAGER",
            "PAGER",
            "ALBIREO_EDITOR",
            "EDITOR",
            "VISUAL",
            "COLUMNS",
            "LINES",
        ] {
            command.env_remove(name);
        }
        change(&mut command);
        let end = |file: &std::os::fd::OwnedFd| file.try_clone().unwrap();
        command.stdin(end(&pty.slave)).stdout(end(&pty.slave)).stderr(end(&pty.slave));
        let shell = command.spawn().expect("setsid starts the program");
        drop((command, pty.slave));
        let (keys, mut screen) = (File::from(pty.master.try_clone().unwrap()), File::from(pty.master));
        let (sender, shown) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // At the end there is an error: nobody has the terminal any more.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { shell, keys, shown, seen: Text::default(), home }
    }

    /// The person's home.
    pub fn home(&self) -> &std::path::Path {
        self.home.path()
    }

    /// Types a text as it is, control characters too.
    pub fn enter(&mut self, text: impl AsRef<OsStr>) {
        self.keys.write_all(text.as_ref().as_encoded_bytes()).unwrap();
    }

    /// Waits until `text` is shown; gives what was shown since the last time, up to its end.
    pub fn expect(&mut self, text: &str) -> String {
        let mut from = 0;
        loop {
            if let Some(at) = self.seen.plain[from..].find(text) {
                return self.seen.plain.drain(..from + at + text.len()).collect();
            }
            from = self.seen.plain.len().saturating_sub(text.len());
            from = (0..=from).rev().find(|at| self.seen.plain.is_char_boundary(*at)).unwrap_or(0);
            match self.shown.recv() {
                Ok(bytes) => self.seen.push(&bytes),
                Err(_) => panic!("the shell ended without {text:?}; it showed:\n{}", self.seen.plain),
            }
        }
    }

    /// Waits until the shell has ended; gives what else was shown, and the exit status.
    pub fn end(mut self) -> (String, Option<i32>) {
        while let Ok(bytes) = self.shown.recv() {
            self.seen.push(&bytes);
        }
        let status = self.shell.wait().unwrap();
        (std::mem::take(&mut self.seen.plain), status.code())
    }
}

/// A test that fails leaves no shell behind.
impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.shell.kill().and_then(|()| self.shell.wait());
    }
}

/// Text without the sequences that move cursors, clear lines and so on.
#[derive(Default)]
struct Text {
    plain: String,
    /// What is not complete yet: of a sequence, or of a character.
    rest: Vec<u8>,
}

impl Text {
    fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        loop {
            let Some(first) = self.rest.first() else { return };
            let length = match first {
                0x1b => match sequence_length(&self.rest) {
                    Some(length) => length,
                    None => return,
                },
                b'\r' => 1,
                _ => {
                    let end = self.rest.iter().position(|byte| [0x1b, b'\r'].contains(byte));
                    let text = &self.rest[..end.unwrap_or(self.rest.len())];
                    let valid = match std::str::from_utf8(text) {
                        Ok(text) => text.len(),
                        Err(error) if error.valid_up_to() > 0 => error.valid_up_to(),
                        Err(_) => return,
                    };
                    self.plain.push_str(std::str::from_utf8(&text[..valid]).unwrap());
                    valid
                }
            };
            self.rest.drain(..length);
        }
    }
}

/// Of `ESC [ parameters letter`, or of another sequence of two bytes.
fn sequence_length(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'[' => Some(3 + bytes[2..].iter().position(|byte| (0x40..0x7f).contains(byte))?),
        _ => Some(2),
    }
}
