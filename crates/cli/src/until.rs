//! `albireo restore`: a new database of what another was at a moment.

use std::io::{self, Write};
use std::path::PathBuf;

use albireo::{Config, Database, RecoveryTarget, RestoreReport, SqlError};
use albireo_env::Env;
use clap::Args;

use crate::args::Moment;
use crate::progress::Shown;
use crate::shell::report;

/// Exit status when nothing was restored.
const FAILED: u8 = 1;

/// Options of `restore`.
#[derive(Args, Clone, Debug)]
pub struct RestoreArgs {
    /// The directory of a database that is not open, or of a backup; nothing in it is changed
    pub from: PathBuf,
    /// The directory of the new database, which is made; it must be empty
    pub to: PathBuf,
    /// Only up to this record, itself included, or up to the first that is later than this time; without, all
    #[arg(long, value_name = "RECORD|TIME")]
    pub until: Option<Moment>,
}

/// What is told of it on the command line.
pub const RESTORE_HELP: &str = "\
Makes a new database of an archive and the redo log behind it. Records have their numbers and times in what
`albireo log` prints; a time without a zone is UTC. Archives that are later than the moment are passed over, so
that it must not be before the oldest archive that is kept, unless the log is there from its beginning.

  albireo restore bank bank-before --until 2026-01-31T12:00:00Z
  albireo restore bank bank-before --until 4711

Exit status: 0 the new database is there; 1 it is not, and what is in its directory is to be removed; 2 the
command line makes no sense.";

impl From<Moment> for RecoveryTarget {
    fn from(moment: Moment) -> Self {
        match moment {
            Moment::Record(record) => Self::Record(record),
            Moment::Time(time_us) => Self::Time(time_us),
        }
    }
}

/// Restores; the exit status.
pub fn run(args: &RestoreArgs, env: &Env) -> u8 {
    let mut shown = Shown::on_stderr();
    let restored = restore(args, env, &mut shown);
    shown.end();
    match restored {
        Ok(done) => {
            let _ = tell(args, &done, &mut io::stderr());
            0
        }
        Err(error) => {
            eprint!("albireo: {}", report::error(None, 1, "", &error));
            FAILED
        }
    }
}

fn restore<W: Write + Send>(
    args: &RestoreArgs,
    env: &Env,
    shown: &mut Shown<W>,
) -> Result<RestoreReport, SqlError> {
    let target = args.until.map_or(RecoveryTarget::End, RecoveryTarget::from);
    let mut listener = |progress| shown.tell(progress);
    Database::recover_copy(&args.from, &args.to, target, Config::default(), env, &mut listener)
}

fn tell(args: &RestoreArgs, done: &RestoreReport, to: &mut dyn Write) -> io::Result<()> {
    let RestoreReport { recovery, archive, last_record, last_time_us, notice } = done;
    let of =
        last_time_us.map_or_else(String::new, |time_us| format!(" of {}", crate::log::line::time(time_us)));
    let place = args.to.display();
    writeln!(to, "albireo: restored {place}: {} rows, up to record {last_record}{of}", archive.rows)?;
    for notice in recovery.left_out.iter().chain(&recovery.torn).chain(notice) {
        writeln!(to, "albireo: {notice}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use albireo_env::MemoryDisk;

    use super::*;

    #[test]
    fn copy_up_to_a_record_has_what_was_there_then_and_says_so() {
        let env = Env { disk: Arc::new(MemoryDisk::default()), ..Env::real() };
        let open = |path: &str| Database::open_in(path, Config::default(), env.clone()).unwrap();
        let db = open("/bank");
        db.execute("create table t (a int); insert into t values (1), (2); insert into t values (3)")
            .unwrap();
        drop(db);
        let args = |to: &str, until: &str| RestoreArgs {
            from: "/bank".into(),
            to: to.into(),
            until: Some(until.parse().unwrap()),
        };
        let mut shown = Shown::on_stderr();
        let done = restore(&args("/new", "2"), &env, &mut shown).unwrap();
        let mut said = Vec::new();
        tell(&args("/new", "2"), &done, &mut said).unwrap();
        let said = String::from_utf8(said).unwrap();
        assert!(said.starts_with("albireo: restored /new: 2 rows, up to record 2 of 2"), "{said}");
        let count = |db: &Database| db.query("select count(*) from t", &[]).unwrap().value(0, 0).to_string();
        assert_eq!(count(&open("/new")), "2");
        let error = restore(&args("/late", "9"), &env, &mut shown).unwrap_err();
        assert_eq!(error.message(), "there is no record 9");
        assert!(env.disk.read_dir(Path::new("/late")).is_err(), "nothing was made");
        let done = restore(&args("/all", "2999-01-01T00:00:00Z"), &env, &mut shown).unwrap();
        assert!(done.notice.unwrap().starts_with("the log ends with record 3 of 2"));
    }
}
