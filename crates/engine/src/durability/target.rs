//! How far recovery goes.

use albireo_archive::Manifest;
use albireo_redo::Record;

/// The moment that recovery brings a database to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum RecoveryTarget {
    /// The end of the redo log.
    #[default]
    End,
    /// Before the first record, in the order of the log, that is later than so many microseconds since 1970.
    /// Records of several partitions may stand in the log some milliseconds earlier or later than their times
    /// say, and what ran at the same moment in other partitions is then on one side of it or the other.
    Time(i64),
    /// After the record of this number.
    Record(u64),
}

impl RecoveryTarget {
    /// Whether a record is to be done.
    pub(super) fn takes(self, record: &Record<'_>) -> bool {
        match self {
            Self::End => true,
            Self::Time(time_us) => record.time_us <= time_us,
            Self::Record(ordinal) => record.ordinal <= ordinal,
        }
    }

    /// Whether an archive has nothing that is not to be there.
    pub(super) fn takes_archive(self, manifest: &Manifest) -> bool {
        match self {
            Self::End => true,
            Self::Time(time_us) => manifest.time_us <= time_us,
            Self::Record(ordinal) => manifest.log.next_record.saturating_sub(1) <= ordinal,
        }
    }
}
