//! Shows what is longer than the screen through the pager.
//!
//! Responsible for: when there is a pager and which. Not responsible for: the terminal's mode (`terminal`).
//!
//! I-1 A pager that cannot be started, or ends early, fails nothing.

use super::terminal::Terminal;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

/// What is run if no pager is named; where there is no `less`, as in many containers, all is shown at once.
const DEFAULT: &str = "command -v less >/dev/null && exec less; exec cat";

/// Whether to use a pager, and which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pager {
    /// The one that `ALBIREO_PAGER` or `PAGER` names, or `less`, for what is longer than the screen.
    #[default]
    On,
    /// None.
    Off,
    /// As [`Pager::On`], for whatever is printed.
    Always,
}

/// The pager's command: the first of the two variables that is set; nothing if it is empty.
pub fn command(variable: impl Fn(&str) -> Option<OsString>) -> Option<OsString> {
    let named = variable("ALBIREO_PAGER").or_else(|| variable("PAGER"));
    let command = named.unwrap_or_else(|| DEFAULT.into());
    let is_blank = command.to_string_lossy().trim().is_empty();
    (!is_blank).then_some(command)
}

/// Takes text, shows it at its end or, as soon as it is longer than the screen, through the pager.
pub struct Paged<'a> {
    out: &'a mut dyn Write,
    command: OsString,
    /// What the pager reads keys from.
    terminal: Option<&'a Terminal>,
    /// Lines that the screen has room for.
    lines: usize,
    kept: Vec<u8>,
    kept_lines: usize,
    shown: Shown,
}

enum Shown {
    /// Nothing yet.
    Kept,
    /// To this pager.
    Paged(Child),
    /// Past a pager that could not be started.
    Plain,
}

impl<'a> Paged<'a> {
    /// To `out`, or through `command` if it is more than so many lines.
    pub fn new(
        out: &'a mut dyn Write,
        command: OsString,
        lines: usize,
        terminal: Option<&'a Terminal>,
    ) -> Self {
        Self { out, command, terminal, lines, kept: Vec::new(), kept_lines: 0, shown: Shown::Kept }
    }

    /// Shows what is left, and waits for the pager to end.
    ///
    /// # Errors
    /// `out` fails.
    pub fn finish(self) -> io::Result<()> {
        match self.shown {
            Shown::Kept => self.out.write_all(&self.kept),
            Shown::Paged(mut child) => {
                drop(child.stdin.take());
                let _ = child.wait();
                if let Some(terminal) = self.terminal {
                    terminal.listen();
                }
                Ok(())
            }
            Shown::Plain => Ok(()),
        }
    }

    /// Whether `error` came because the pager ended before everything was shown.
    pub fn has_ended_early(&self, error: &io::Error) -> bool {
        matches!(self.shown, Shown::Paged(_)) && error.kind() == io::ErrorKind::BrokenPipe
    }

    fn start(&mut self) -> io::Result<()> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&self.command).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            // Ends by itself if all fits, shows colours, leaves the text on the screen.
            shell.env("LESS", "FRX");
        }
        if let Some(terminal) = self.terminal {
            terminal.give_back();
        }
        let kept = std::mem::take(&mut self.kept);
        match shell.spawn() {
            Ok(child) => {
                self.shown = Shown::Paged(child);
                self.write_all(&kept)
            }
            Err(_) => {
                if let Some(terminal) = self.terminal {
                    terminal.listen();
                }
                self.shown = Shown::Plain;
                self.out.write_all(&kept)
            }
        }
    }
}

impl Write for Paged<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.shown {
            Shown::Paged(child) => match &mut child.stdin {
                Some(stdin) => stdin.write(bytes),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            },
            Shown::Plain => self.out.write(bytes),
            Shown::Kept => {
                self.kept.extend_from_slice(bytes);
                self.kept_lines += bytes.iter().filter(|byte| **byte == b'\n').count();
                if self.kept_lines > self.lines {
                    self.start()?;
                }
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.shown {
            Shown::Paged(child) => child.stdin.as_mut().map_or(Ok(()), Write::flush),
            Shown::Plain => self.out.flush(),
            Shown::Kept => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(own: Option<&str>, common: Option<&str>) -> Option<OsString> {
        command(|name| if name == "PAGER" { common } else { own }.map(Into::into))
    }

    #[test]
    fn pager_is_the_one_that_the_environment_names_or_less() {
        assert_eq!(named(Some("more"), Some("most")), Some("more".into()));
        assert_eq!(named(None, Some("most -x")), Some("most -x".into()));
        assert_eq!(named(None, None), Some(DEFAULT.into()));
        assert_eq!((named(Some(" "), Some("most")), named(None, Some(""))), (None, None));
    }

    /// What `lines` lines on a screen of three come out as, through a pager.
    fn shown(lines: usize, pager: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        let command = pager.replace("FILE", file.path().to_str().unwrap());
        let mut out = Vec::new();
        let mut paged = Paged::new(&mut out, command.into(), 3, None);
        for line in 0..lines {
            if let Err(error) = writeln!(paged, "{line}") {
                assert!(paged.has_ended_early(&error), "{error}");
                break;
            }
        }
        paged.finish().unwrap();
        let piped = std::io::read_to_string(file.reopen().unwrap()).unwrap();
        format!("{}|{piped}", String::from_utf8(out).unwrap())
    }

    #[test]
    fn what_is_longer_than_the_screen_goes_through_the_pager_whole() {
        assert_eq!(shown(3, "cat > FILE"), "0\n1\n2\n|");
        assert_eq!(shown(5, "cat > FILE"), "|0\n1\n2\n3\n4\n");
        assert_eq!(shown(1_000_000, "head -n 2 > FILE"), "|0\n1\n");
    }
}
