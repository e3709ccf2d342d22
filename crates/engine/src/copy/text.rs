//! Text files into batches, on several threads.
//!
//! Every thread takes chunks of the file and decodes them. Batches whose turn it is go to the load, by whichever
//! thread comes with one; what is decoded before its turn waits, at most [`MOST_WAITING`] batches.
//!
//! Responsible for: the header, who decodes which chunk, the order of batches, the first of several errors.
//! Not responsible for: what is in the bytes (`albireo_files`).
//!
//! I-1 The outcome does not depend on which thread was faster: chunks are handed out in order, and of what goes
//! wrong the first chunk's counts.

use std::collections::BTreeMap;
use std::io::Read;

use albireo_base::progress::{Phase, Unit};
use albireo_base::{SqlError, SqlState};
use albireo_files::{
    Batch, Chunk, Chunker, CsvDialect, Decoded, Decoder, Encoding, Fault, Field, Force, JsonDialect,
    TextDialect, TextFormat,
};
use albireo_sql::copy::{CopyFormat, Header};
use parking_lot::{Condvar, Mutex};

use super::{CopyTarget, Load, files};

/// More threads than this would wait for the file.
const MAX_THREADS: usize = 8;

/// Batches that are decoded before their turn.
const MOST_WAITING: usize = 2 * MAX_THREADS;

/// Reads and checks a whole file.
pub(super) fn read<'a>(
    source: Box<dyn Read + Send + 'a>,
    length_bytes: Option<u64>,
    format: &CopyFormat,
    encoding: Option<&str>,
    load: &mut Load<'_>,
) -> Result<(), SqlError> {
    let (target, limits) = (load.target(), load.limits());
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
    let result = decode_all(chunks, &decoder, load);
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

fn text_format(format: &CopyFormat, target: &CopyTarget<'_>) -> Result<(TextFormat, Header), SqlError> {
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
    target: &CopyTarget<'_>,
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

/// A batch, and the thread that made it.
struct Decoding {
    batch: Batch,
    thread: usize,
}

/// What has come of the chunks.
#[derive(Default)]
struct Results {
    /// Batches whose turn has not come.
    waiting: BTreeMap<usize, Decoding>,
    /// The chunk whose batch goes to the load next.
    next: usize,
    /// A thread is giving batches to the load.
    is_loading: bool,
    /// The first chunk after which nothing counts, and what is wrong with it.
    end: Option<(usize, Option<Failure>)>,
}

impl Results {
    fn end_at(&mut self, chunk: usize, failure: Option<Failure>) {
        if self.end.as_ref().is_none_or(|(end, _)| chunk < *end) {
            self.end = Some((chunk, failure));
        }
    }

    /// The next batch for the load, if it is there and counts.
    fn take_next(&mut self) -> Option<(usize, Decoding)> {
        let number = self.next;
        let counts = match &self.end {
            None => true,
            // The last chunk counts itself, one at fault has no batch.
            Some((end, _)) => number <= *end,
        };
        let batch = counts.then(|| self.waiting.remove(&number)).flatten()?;
        self.next += 1;
        Some((number, batch))
    }
}

/// A file on its way from chunks to the load.
struct Way<'a, 'l, 'f> {
    feed: Mutex<Feed<'f>>,
    results: Mutex<Results>,
    load: Mutex<&'a mut Load<'l>>,
    /// The load has taken a batch, or needs whoever has the next one.
    moved: Condvar,
    /// Batches that the load is done with, for each thread those that it made: memory that goes back to the thread
    /// that took it is used again at once.
    spent: [Mutex<Vec<Batch>>; MAX_THREADS],
}

/// A thread's work; when that panics, the others are not to wait for its chunk.
struct Turn<'t, 'a, 'l, 'f>(&'t Way<'a, 'l, 'f>);

impl Drop for Turn<'_, '_, '_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.feed.lock().is_done = true;
            self.0.results.lock().end_at(0, None);
            self.0.moved.notify_all();
        }
    }
}

fn decode_all(chunks: Chunker<'_>, decoder: &Decoder, load: &mut Load<'_>) -> Result<(), Failure> {
    let way = Way {
        feed: Mutex::new(Feed { chunks, next: 0, is_done: false }),
        results: Mutex::new(Results::default()),
        load: Mutex::new(load),
        moved: Condvar::new(),
        spent: Default::default(),
    };
    let way_of = &way;
    let work = move |thread: usize| {
        let _turn = Turn(way_of);
        while let Some((number, chunk)) = way_of.next_chunk() {
            let decoded = decoder.decode(&chunk);
            way_of.feed.lock().chunks.recycle(chunk);
            way_of.take(number, thread, decoded);
            way_of.spent[thread].lock().clear();
            albireo_env::give_way();
        }
    };
    albireo_env::scope(|threads| {
        for thread in 1..albireo_env::cores().min(MAX_THREADS) {
            // Without another thread this one does it all.
            let _ = albireo_env::spawn_scoped(threads, "albireo-copy", move || work(thread));
        }
        work(0);
    });
    match way.results.into_inner().end {
        Some((_, Some(failure))) => Err(failure),
        _ => Ok(()),
    }
}

impl Way<'_, '_, '_> {
    /// The next chunk and its number; `None` if there is none, or nothing more counts.
    fn next_chunk(&self) -> Option<(usize, Chunk)> {
        let mut results = self.results.lock();
        // The one that is missing is in another thread's hands, or will not come.
        while results.waiting.len() >= MOST_WAITING && results.end.is_none() {
            self.moved.wait(&mut results);
        }
        drop(results);
        let mut feed = self.feed.lock();
        if feed.is_done {
            return None;
        }
        let number = feed.next;
        match feed.chunks.next_chunk() {
            Ok(Some(chunk)) => {
                feed.next += 1;
                Some((number, chunk))
            }
            Ok(None) => {
                feed.is_done = true;
                None
            }
            Err(fault) => {
                feed.is_done = true;
                self.results.lock().end_at(number, Some(Failure::Fault(fault)));
                self.moved.notify_all();
                None
            }
        }
    }

    /// Takes what has come of a chunk, and gives the load what it can be given.
    fn take(&self, number: usize, thread: usize, decoded: Result<Decoded, Fault>) {
        let mut results = self.results.lock();
        match decoded {
            Ok(Decoded { batch, is_end }) => {
                results.waiting.insert(number, Decoding { batch, thread });
                if is_end {
                    results.end_at(number, None);
                }
            }
            Err(fault) => results.end_at(number, Some(Failure::Fault(fault))),
        }
        if results.end.is_some() {
            drop(results);
            self.feed.lock().is_done = true;
            results = self.results.lock();
        }
        if std::mem::replace(&mut results.is_loading, true) {
            // Whoever is at it will see this batch too.
            return;
        }
        while let Some((number, Decoding { mut batch, thread })) = results.take_next() {
            drop(results);
            self.moved.notify_all();
            let mut load = self.load.lock();
            let pushed = load.check().and_then(|()| load.push(&mut batch));
            drop(load);
            self.spent[thread].lock().push(batch);
            if pushed.is_err() {
                self.feed.lock().is_done = true;
            }
            results = self.results.lock();
            if let Err(error) = pushed {
                results.end_at(number, Some(Failure::Sql(error)));
                break;
            }
        }
        results.is_loading = false;
        drop(results);
        self.moved.notify_all();
    }
}
