//! Frozen chunks as files: each written once, encoded, and named by later archives.
//!
//! ```text
//! archive/0000000007/t12-p0-c16.frozen.arrow    table 12, partition 0, chunk 16
//! ```
//!
//! The file is an Arrow IPC file of one batch, which has a row for each slot of the chunk, dead ones too: which of them
//! live is in the manifest, of each archive its own. The arrays are what the columns are encoded as, and are its sections
//! but for what is said below.
//!
//! | encoded as | array |
//! |---|---|
//! | dictionary | `Dictionary`, its codes as they are |
//! | runs, constant | `RunEndEncoded`, with ends one greater; of values or of a dictionary |
//! | texts | `Utf8` or `Binary`; of texts of one length the offsets are left out in memory alone |
//! | packed or compressed texts | the texts |
//! | floats, UUIDs, decimals of more than 18 digits | as they are |
//! | frame of reference | Arrow has none: values, in the narrowest type of integer or decimal that has them all |
//! | NULLs | the array's validity; of runs a `Struct` of one field has it, because runs have none of their own |
//!
//! So whoever knows Arrow reads right values. The metadata of a field say what SQL calls its type (`albireo.type`), how it
//! is encoded in words (`albireo.encoding`), and the header of the encoded column (`albireo.header`, base64), from which
//! and from the arrays the same column comes back: codes and texts are copied, a base is taken off, texts are packed, or
//! compressed by the table of symbols that the metadata have too (`albireo.symbols`, base64).
//!
//! Checksums are over *parts*: the file is cut where large buffers begin and end, so that what is damaged has a place.
//! Rows that have left memory are read from such a file column by column ([`places`]).

pub(crate) mod arrays;
pub(crate) mod file;
pub(crate) mod made;
pub(crate) mod places;
pub(crate) mod restore;

/// In the metadata of fields: the header of the encoded column.
const HEADER: &str = "albireo.header";
/// In the metadata of fields of compressed texts: their symbols.
const SYMBOLS: &str = "albireo.symbols";
/// In the metadata of fields: how the column is encoded, in words.
const ENCODING: &str = "albireo.encoding";
/// In the metadata of schemas: bytes of the heaps that texts were in.
const TEXT_BYTES: &str = "albireo.text_bytes";

// Sections are little endian, and are Arrow's buffers as they are.
const _: () = assert!(cfg!(target_endian = "little"));
