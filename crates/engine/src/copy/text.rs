//! Text files into batches, on several threads.
//!
//! Responsible for: the header, who decodes which chunk, the order of batches, the first of several errors.
//! Not responsible for: what is in the bytes (`albireo_files`).
//!
//! I-1 The outcome does not depend on which thread was faster: chunks are handed out in order, and of what goes
//! wrong the first chunk's counts.

use std::io::Read;

use albireo_base::progress::{Phase, Unit};
use albireo_base::{SqlError, SqlState};
use albireo_files::{
    Batch, Chunk, Chunker, CsvDialect, Decoded, Decoder, Encoding, Fault, Field, Force, JsonDialect,
    TextDialect, TextFormat,
};
use albireo_sql::copy::{CopyFormat, Header};
use parking_lot::Mutex;

use super::batch::Staged;
use super::{Limits, Target, files};

/// More threads than this would wait for the file.
const MAX_THREADS: usize = 8;

/// Reads and checks a whole file.
pub(super) fn stage<'a>(
    source: Box<dyn Read + Send + 'a>,
    length_bytes: Option<u64>,
    format: &CopyFormat,
    encoding: Option<&str>,
    target: &Target<'_>,
    limits: &'a Limits<'_>,
) -> Result<Staged, SqlError> {
    limits.progress.begin(Phase::ReadingFile, Unit::Bytes, length_bytes);
    let source = files::Counted { source, progress: limits.progress };
    let encoding = encoding.map_or(Ok(Encoding::Utf8), encoding_of)?;
    let source = albireo_files::open(Box::new(source), encoding).map_err(|fault| target.fault(fault))?;
    let (format, header) = text_format(format, target)?;
    let mut chunks = Chunker::new(source, &format);
    take_header(&mut chunks, &format, header, target)?;
    let field = |column| {
        let def = target.table.column_def(column);
        Field { name: def.name.clone(), ty: def.ty, nullable: def.nullable }
    };
    let fields = target.columns.iter().map(|column| field(*column)).collect();
    let decoder = Decoder::new(format, fields);
    let result = decode_all(chunks, &decoder, limits);
    result.map_err(|failure| match failure {
        Failure::Fault(fault) => target.fault(with_remedy(fault, decoder.format(), header)),
        Failure::Sql(error) => error,
    })
}

fn encoding_of(name: &str) -> Result<Encoding, SqlError> {
    Encoding::of_name(name).ok_or_else(|| {
        let text = format!("encoding \"{name}\" is not known");
        let hint = format!("The encodings are {}.", Encoding::NAMES);
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text).with_hint(hint)
    })
}

fn text_format(format: &CopyFormat, target: &Target<'_>) -> Result<(TextFormat, Header), SqlError> {
    Ok(match format {
        CopyFormat::Csv(options) => {
            let force = |column| Force {
                not_null: options.force_not_null.contains(column),
                null: options.force_null.contains(column),
            };
            let is_any = !(options.force_null.is_empty() && options.force_not_null.is_empty());
            let dialect = CsvDialect {
                delimiter: options.delimiter,
                quote: options.quote,
                escape: options.escape,
                null: options.null.clone(),
                force: if is_any { target.columns.iter().map(force).collect() } else { Vec::new() },
                skips_empty_lines: false,
            };
            (TextFormat::Csv(dialect), options.header)
        }
        CopyFormat::Text(options) => {
            let dialect = TextDialect { delimiter: options.delimiter, null: options.null.clone() };
            (TextFormat::Text(dialect), options.header)
        }
        CopyFormat::Json => {
            let name = |column| target.table.column_def(column).name.clone();
            let names = target.columns.iter().map(|column| name(*column)).collect();
            (TextFormat::Json(JsonDialect { names, is_strict: true }), Header::None)
        }
        CopyFormat::Parquet => return Err(SqlError::unsupported("Parquet as text")),
    })
}

/// Reads the line of names, and compares them if that was asked for.
fn take_header(
    chunks: &mut Chunker<'_>,
    format: &TextFormat,
    header: Header,
    target: &Target<'_>,
) -> Result<(), SqlError> {
    if header == Header::None {
        return Ok(());
    }
    let names = chunks.take_record(format).map_err(|fault| target.fault(fault))?;
    let Some(names) = names.filter(|_| header == Header::Match) else { return Ok(()) };
    let bad = |text: String| {
        let error = SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, text);
        let hint = "Name the columns in the file's order: COPY table (column, ...) FROM ....";
        Err(target.at(error.with_hint(hint), 1, None))
    };
    if names.len() != target.columns.len() {
        let (found, expected) = (names.len(), target.columns.len());
        return bad(format!(
            "wrong number of fields in header line: field count is {found}, expected {expected}"
        ));
    }
    for (index, (column, name)) in target.columns.iter().zip(&names).enumerate() {
        let expected = &target.table.column_def(*column).name;
        let field = index + 1;
        match name {
            Some(name) if name == expected => {}
            Some(name) => {
                return bad(format!(
                    "column name mismatch in header line field {field}: got \"{}\", expected \"{expected}\"",
                    albireo_files::excerpt(name.as_bytes())
                ));
            }
            None => {
                return bad(format!(
                    "column name mismatch in header line field {field}: got null value, expected \"{expected}\""
                ));
            }
        }
    }
    Ok(())
}

/// Says what may help, where nothing else does.
fn with_remedy(fault: Fault, format: &TextFormat, header: Header) -> Fault {
    let albireo_files::Cause::Sql(error) = fault.cause else { return fault };
    let is_about_fields = error.state() == SqlState::BAD_COPY_FILE_FORMAT;
    let hint = match format {
        _ if error.hint().is_some() => None,
        TextFormat::Csv(CsvDialect { delimiter, .. }) | TextFormat::Text(TextDialect { delimiter, .. })
            if is_about_fields =>
        {
            let delimiter = char::from(*delimiter).escape_default().to_string();
            Some(format!("Values are separated by '{delimiter}' here; the option DELIMITER names another."))
        }
        TextFormat::Csv(_) | TextFormat::Text(_) if header == Header::None && fault.place == Some(1) => {
            Some("If the first line has the names of the columns, add the option HEADER.".to_owned())
        }
        _ => None,
    };
    let error = match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    };
    Fault { cause: albireo_files::Cause::Sql(error), ..fault }
}

/// Why a load ends early.
enum Failure {
    Fault(Fault),
    Sql(SqlError),
}

/// The file, for whoever has nothing to decode.
struct Feed<'a> {
    chunks: Chunker<'a>,
    next: usize,
    is_done: bool,
}

/// What has come of the chunks.
#[derive(Default)]
struct Results {
    batches: Vec<(usize, Batch)>,
    bytes: u64,
    /// The first chunk after which nothing counts, and what is wrong with it.
    end: Option<(usize, Option<Failure>)>,
}

impl Results {
    fn end_at(&mut self, chunk: usize, failure: Option<Failure>) {
        if self.end.as_ref().is_none_or(|(end, _)| chunk < *end) {
            self.end = Some((chunk, failure));
        }
    }
}

fn decode_all(chunks: Chunker<'_>, decoder: &Decoder, limits: &Limits<'_>) -> Result<Staged, Failure> {
    let feed = Mutex::new(Feed { chunks, next: 0, is_done: false });
    let results = Mutex::new(Results::default());
    let work = || {
        while let Some((number, chunk)) = next_chunk(&feed, &results, limits) {
            let decoded = decoder.decode(&chunk);
            feed.lock().chunks.recycle(chunk);
            let is_last = decoded.as_ref().map_or(true, |decoded| decoded.is_end);
            if is_last {
                feed.lock().is_done = true;
            }
            let mut results = results.lock();
            match decoded {
                Ok(Decoded { batch, is_end }) => {
                    results.bytes += batch.bytes();
                    results.batches.push((number, batch));
                    if is_end {
                        results.end_at(number, None);
                    }
                }
                Err(fault) => results.end_at(number, Some(Failure::Fault(fault))),
            }
        }
    };
    albireo_env::scope(|threads| {
        for _ in 1..albireo_env::cores().min(MAX_THREADS) {
            // Without another thread this one does it all.
            let _ = albireo_env::spawn_scoped(threads, "albireo-copy", work);
        }
        work();
    });
    let Results { mut batches, end, .. } = results.into_inner();
    batches.sort_unstable_by_key(|(number, _)| *number);
    let end = match end {
        Some((_, Some(failure))) => return Err(failure),
        Some((end, None)) => end,
        None => usize::MAX,
    };
    let mut staged = Staged::default();
    batches.into_iter().filter(|(number, _)| *number <= end).for_each(|(_, batch)| staged.push(batch));
    Ok(staged)
}

/// The next chunk and its number; `None` if there is none, or nothing more counts.
fn next_chunk(
    feed: &Mutex<Feed<'_>>,
    results: &Mutex<Results>,
    limits: &Limits<'_>,
) -> Option<(usize, Chunk)> {
    let mut feed = feed.lock();
    if feed.is_done {
        return None;
    }
    let staged_bytes = results.lock().bytes;
    let chunk = match limits.check(staged_bytes) {
        Ok(()) => feed.chunks.next_chunk().map_err(Failure::Fault),
        Err(error) => Err(Failure::Sql(error)),
    };
    let number = feed.next;
    match chunk {
        Ok(Some(chunk)) => {
            feed.next += 1;
            Some((number, chunk))
        }
        Ok(None) => {
            feed.is_done = true;
            None
        }
        Err(failure) => {
            feed.is_done = true;
            results.lock().end_at(number, Some(failure));
            None
        }
    }
}
