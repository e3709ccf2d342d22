//! Settings of a connection: SET, SHOW, RESET.

use std::time::Duration;

use albireo_base::{SqlError, SqlState};
use albireo_sql::classify::{Isolation, synchronous_commit};

/// What a connection has set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// The longest a statement may run; `None`: for ever.
    pub(crate) statement_timeout: Option<Duration>,
    /// The longest an open transaction may wait for its next statement; `None`: for ever.
    pub(crate) idle_in_transaction_timeout: Option<Duration>,
    /// The longest a transaction may be open; `None`: for ever.
    pub(crate) transaction_timeout: Option<Duration>,
    /// The longest a statement may wait for a lock; `None`: for ever.
    pub(crate) lock_timeout: Option<Duration>,
    /// How old the snapshot of a single query may be.
    pub(crate) max_staleness: Duration,
    /// Threads for one query; `None`: all.
    pub(crate) query_threads: Option<usize>,
    /// Bytes for one query; `None`: the database's limit.
    pub(crate) query_memory: Option<usize>,
    /// Whether routines are interpreted though they have machine code.
    pub(crate) interprets: bool,
    /// Whether transactions wait for the redo log; `None`: as the database was opened.
    pub(crate) synchronous: Option<bool>,
    /// The level of transactions that do not say one.
    pub(crate) isolation: Isolation,
    /// Whether transactions that do not say so only read.
    pub(crate) read_only: bool,
}

/// Names, and what they are for.
pub(crate) const NAMES: [&str; 11] = [
    "default_transaction_isolation",
    "default_transaction_read_only",
    "idle_in_transaction_session_timeout",
    "jit",
    "lock_timeout",
    "max_staleness",
    "query_memory",
    "query_threads",
    "statement_timeout",
    "synchronous_commit",
    "transaction_timeout",
];

/// Settings of other systems that clients send unasked; taken and forgotten.
const IGNORED: [&str; 6] = [
    "application_name",
    "client_encoding",
    "client_min_messages",
    "datestyle",
    "extra_float_digits",
    "timezone",
];

impl Settings {
    /// Sets one; `None` is the default.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), SqlError> {
        let wrong = |what: &str| {
            let text = format!("invalid value for parameter \"{name}\": \"{}\"", value.unwrap_or_default());
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text).with_hint(what))
        };
        match name {
            "statement_timeout"
            | "lock_timeout"
            | "max_staleness"
            | "idle_in_transaction_session_timeout"
            | "transaction_timeout" => {
                let Some(duration) = value.map_or(Some(Duration::ZERO), albireo_base::duration::parse) else {
                    return wrong("Use a number of milliseconds, or one with a unit: us, ms, s, min, h, d.");
                };
                let timeout = (!duration.is_zero()).then_some(duration);
                match name {
                    "max_staleness" => self.max_staleness = duration,
                    "lock_timeout" => self.lock_timeout = timeout,
                    "transaction_timeout" => self.transaction_timeout = timeout,
                    "statement_timeout" => self.statement_timeout = timeout,
                    _ => self.idle_in_transaction_timeout = timeout,
                }
            }
            "jit" => match value.map_or(Some(true), truth) {
                Some(on) => self.interprets = !on,
                None => return wrong("Use on or off."),
            },
            "default_transaction_read_only" => match value.map_or(Some(false), truth) {
                Some(on) => self.read_only = on,
                None => return wrong("Use on or off."),
            },
            "default_transaction_isolation" => {
                match value.map_or(Some(Isolation::default()), Isolation::named) {
                    Some(level) => self.isolation = level,
                    None => return wrong("Use serializable, repeatable read or read committed."),
                }
            }
            "synchronous_commit" => self.synchronous = synchronous_commit(value)?,
            "query_threads" => match value.map(str::parse::<usize>) {
                None => self.query_threads = None,
                Some(Ok(threads)) if (1..=1024).contains(&threads) => self.query_threads = Some(threads),
                Some(_) => return wrong("Use a number from 1 to 1024."),
            },
            "query_memory" => match value.map(bytes) {
                None => self.query_memory = None,
                Some(Some(bytes)) if bytes >= 64 << 10 => self.query_memory = Some(bytes),
                Some(_) => {
                    return wrong(
                        "Use a number of kilobytes, or one with a unit: kB, MB, GB; at least 64 kB.",
                    );
                }
            },
            name if IGNORED.contains(&name) => {}
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// A setting as text.
    pub(crate) fn show(&self, name: &str) -> Result<String, SqlError> {
        let timeout = |timeout: Option<Duration>| format!("{}ms", timeout.unwrap_or_default().as_millis());
        Ok(match name {
            "idle_in_transaction_session_timeout" => timeout(self.idle_in_transaction_timeout),
            "transaction_timeout" => timeout(self.transaction_timeout),
            "statement_timeout" => timeout(self.statement_timeout),
            "lock_timeout" => timeout(self.lock_timeout),
            "jit" => if self.interprets { "off" } else { "on" }.to_owned(),
            "synchronous_commit" => match self.synchronous {
                None => "default".to_owned(),
                Some(on) => if on { "on" } else { "off" }.to_owned(),
            },
            "max_staleness" => format!("{}ms", self.max_staleness.as_millis()),
            "query_threads" => self.query_threads.map_or_else(|| "all".to_owned(), |n| n.to_string()),
            "query_memory" => {
                self.query_memory.map_or_else(|| "default".to_owned(), |n| format!("{}kB", n >> 10))
            }
            "server_version" => "15.0".to_owned(),
            "client_encoding" | "server_encoding" => "UTF8".to_owned(),
            "timezone" => "UTC".to_owned(),
            "datestyle" => "ISO, MDY".to_owned(),
            "transaction_isolation" | "default_transaction_isolation" => self.isolation.name().to_owned(),
            "default_transaction_read_only" => if self.read_only { "on" } else { "off" }.to_owned(),
            _ => return Err(unknown(name)),
        })
    }
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
        .with_hint(format!("There are: {}.", NAMES.join(", ")))
}

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

fn bytes(text: &str) -> Option<usize> {
    let (number, unit) = albireo_base::duration::split_unit(text)?;
    let unit_bytes: u64 = match unit {
        "B" => 1,
        "" | "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit_bytes).and_then(|bytes| usize::try_from(bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_with_units_are_read_and_shown() {
        let mut settings = Settings::default();
        settings.set("statement_timeout", Some("2 s")).unwrap();
        settings.set("query_memory", Some("64MB")).unwrap();
        assert_eq!(settings.show("statement_timeout").unwrap(), "2000ms");
        assert_eq!(settings.show("query_memory").unwrap(), "65536kB");
        settings.set("statement_timeout", None).unwrap();
        assert_eq!(settings.statement_timeout, None);
        settings.set("jit", Some("off")).unwrap();
        assert_eq!(settings.show("jit").unwrap(), "off");
        settings.set("jit", None).unwrap();
        assert_eq!(settings.show("jit").unwrap(), "on");
    }

    #[test]
    fn setting_that_does_not_exist_names_those_that_do() {
        let error = Settings::default().set("work_mem", Some("1")).unwrap_err();
        assert_eq!(error.state(), SqlState::UNDEFINED_OBJECT);
        assert!(error.hint().unwrap().contains("query_memory"));
    }

    #[test]
    fn value_out_of_range_is_refused_with_a_remedy() {
        let mut settings = Settings::default();
        for (name, value) in
            [("query_threads", "0"), ("statement_timeout", "soon"), ("query_memory", "1kB"), ("jit", "2")]
        {
            let error = settings.set(name, Some(value)).unwrap_err();
            assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE, "{name}");
            assert!(error.hint().is_some());
        }
    }
}
