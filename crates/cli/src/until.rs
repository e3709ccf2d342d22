//! `albireo restore --until`: a new database of what another was at a moment.

use std::io::{self, Write};

use albireo::{Config, CopyReport, Database, RecoveryTarget, SqlError};
use albireo_env::Env;
use serde_json::json;

use crate::archive::say;
use crate::args::{Moment, ReportFormat, RestoreArgs};
use crate::interrupt::Interrupt;
use crate::recovering::Shown;
use crate::settings;
use crate::shell::report;

/// Exit status when nothing was restored.
const FAILED: u8 = 1;

impl From<Moment> for RecoveryTarget {
    fn from(moment: Moment) -> Self {
        match moment {
            Moment::Record(record) => Self::Record(record),
            Moment::Time(time_us) => Self::Time(time_us),
        }
    }
}

/// Restores up to `until`; the exit status.
pub fn run(args: &RestoreArgs, until: Moment, env: &Env, interrupt: &Interrupt) -> u8 {
    let mut shown = Shown::on_stderr();
    // Files of rows that leave memory go when that is over.
    let restored = settings::of(&args.database, env, interrupt)
        .and_then(|settings| restore(args, until, settings.config.clone(), env, &mut shown));
    shown.end();
    match restored {
        Ok(done) => {
            let _ = tell_notices(&done, &mut io::stderr());
            say(&text(args, &done))
        }
        Err(error) => {
            eprint!("albireo: {}", report::error(None, 1, "", &error));
            FAILED
        }
    }
}

fn restore<W: Write + Send>(
    args: &RestoreArgs,
    until: Moment,
    config: Config,
    env: &Env,
    shown: &mut Shown<W>,
) -> Result<CopyReport, SqlError> {
    let target = RecoveryTarget::from(until);
    let mut listener = |progress| shown.tell(progress);
    Database::recover_copy(&args.backup, &args.directory, target, config, env, &mut listener)
}

fn text(args: &RestoreArgs, done: &CopyReport) -> String {
    let CopyReport { archive, last_record, last_time_us, .. } = done;
    let (directory, time) = (args.directory.display(), last_time_us.map(crate::log::time));
    match args.format {
        ReportFormat::Table => {
            let of = time.map_or_else(String::new, |time| format!(" of {time}"));
            format!("restored to {directory}: {} rows, up to record {last_record}{of}", archive.rows)
        }
        ReportFormat::Json => {
            let object = json!({
                "directory": directory.to_string(), "rows": archive.rows, "last_record": last_record,
                "last_time": time,
            });
            format!("{object:#}")
        }
    }
}

fn tell_notices(done: &CopyReport, to: &mut dyn Write) -> io::Result<()> {
    let CopyReport { recovery, notice, .. } = done;
    let mut notices = recovery.left_out.iter().chain(&recovery.torn).chain(&recovery.notices).chain(notice);
    notices.try_for_each(|notice| writeln!(to, "albireo: {notice}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use albireo_env::MemoryDisk;
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn copy_up_to_a_record_has_what_was_there_then_and_says_so() {
        let env = Env { disk: Arc::new(MemoryDisk::default()), ..Env::real() };
        let open = |path: &str| Database::open_in(path, Config::default(), env.clone()).unwrap();
        let db = open("/bank");
        db.execute("create table t (a int); insert into t values (1), (2); insert into t values (3)")
            .unwrap();
        drop(db);
        let args = |to: &str| {
            let line = ["albireo", "restore", "/bank", to];
            let Command::Restore(args) = Cli::try_parse_from(line).unwrap().command else { panic!() };
            args
        };
        let mut shown = Shown::on_stderr();
        let mut restore = |to: &str, until: &str| {
            super::restore(&args(to), until.parse().unwrap(), Config::default(), &env, &mut shown)
        };
        let done = restore("/new", "2").unwrap();
        let said = text(&args("/new"), &done);
        assert!(said.starts_with("restored to /new: 2 rows, up to record 2 of 2"), "{said}");
        let count = |db: &Database| db.query("select count(*) from t", &[]).unwrap().value(0, 0).to_string();
        assert_eq!(count(&open("/new")), "2");
        let error = restore("/late", "9").unwrap_err();
        assert_eq!(error.message(), "there is no record 9");
        assert!(env.disk.read_dir(Path::new("/late")).is_err(), "nothing was made");
        let done = restore("/all", "2999-01-01T00:00:00Z").unwrap();
        assert!(done.notice.unwrap().starts_with("the log ends with record 3 of 2"));
    }
}
