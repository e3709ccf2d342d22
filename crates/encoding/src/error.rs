//! Why bytes are not a column.

use crate::section::SectionName;

/// What is wrong with the bytes of a column. They are corrupt, or of another version or column; who has them elsewhere
/// reads them there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The form is not one that this version reads.
    #[error("an encoded column has form {found}, which this version does not read")]
    Version {
        /// What it says.
        found: u8,
    },
    /// The header contradicts itself or what is known of the column.
    #[error("the header of an encoded column is wrong at byte {at}: {what}")]
    Header {
        /// What is wrong.
        what: &'static str,
        /// Behind which byte.
        at: usize,
    },
    /// A section is not as long as the header says.
    #[error("the {section} of an encoded column have {found} bytes instead of {expected}")]
    Length {
        /// Which.
        section: SectionName,
        /// Bytes.
        expected: u64,
        /// Bytes.
        found: u64,
    },
    /// What a section holds breaks a rule of it.
    #[error("the {section} of an encoded column are wrong: {rule} does not hold")]
    Content {
        /// Which.
        section: SectionName,
        /// The rule.
        rule: &'static str,
    },
}

/// Why there is no column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FromPartsError<E> {
    /// The bytes are wrong.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A section could not be had.
    #[error("a section of an encoded column cannot be had")]
    Section(E),
}
