//! Pages of a column, before they are decoded.
//!
//! Responsible for: headers that say no more than the page's bytes and the row group can hold. Not responsible for:
//! what is in the pages; decoders find that out, some by panicking.
//!
//! Only headers are read, but of a page whose texts are stored as deltas, and of a large one compressed by gzip: what
//! these make a decoder allocate stands in their compressed bytes.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::PageReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, SerializedPageReader};

use super::beginning::beginning_of;
use super::thrift::{Event, Flaw, Kind, Shape, Walk};
use super::{Implausible, MOST_BYTES, deltas};
use crate::guard::{Damaged, guarded};

/// More entries no dictionary may have: readers keep 16 bytes of each.
const MOST_ENTRIES: u64 = MOST_BYTES / 16;
/// Values of a repeated column that a row group may have beside those that its bytes account for.
const MOST_REPEATED: u64 = 1 << 26;
/// So many values of a repeated column may be in one byte.
const REPEATED_PER_BYTE: u64 = 64;
/// A page of few bytes may be this much larger than its compression explains.
const SLACK_BYTES: u64 = 4096;
/// Deflate makes at most this of a byte.
const GZIP_RATIO: u64 = 1032;
/// LZ4 makes at most this of a byte.
const LZ4_RATIO: u64 = 256;

/// Bytes that are read for a header at first, and the most it can have: it contains the page's least and largest value.
const HEADER_BYTES: u64 = 512;
const MOST_HEADER_BYTES: u64 = 1 << 26;
/// Pages smaller than this are looked through together.
const SMALL_BYTES: u64 = 8 << 10;
/// Bytes that are read for the headers of small pages.
const WINDOW_BYTES: u64 = 64 << 10;

/// Lists that no page's header has.
const MOST_ELEMENTS: usize = 1 << 10;

static PAGE: Shape = Shape {
    fields: &[
        (1, Kind::Int),
        (2, Kind::Int),
        (3, Kind::Int),
        (4, Kind::Int),
        (5, Kind::Struct(&DATA)),
        (7, Kind::Struct(&DICTIONARY)),
        (8, Kind::Struct(&DATA_V2)),
    ],
};
static DATA: Shape = Shape { fields: &[(1, Kind::Int), (2, Kind::Int), (3, Kind::Int), (4, Kind::Int)] };
static DICTIONARY: Shape = Shape { fields: &[(1, Kind::Int), (2, Kind::Int), (3, Kind::Bool)] };
static DATA_V2: Shape = Shape {
    fields: &[
        (1, Kind::Int),
        (2, Kind::Int),
        (3, Kind::Int),
        (4, Kind::Int),
        (5, Kind::Int),
        (6, Kind::Int),
        (7, Kind::Bool),
    ],
};

/// What a page's header says, as far as it matters here.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Header {
    kind: i64,
    uncompressed: i64,
    pub(super) compressed: i64,
    /// Of data pages of both versions, and of dictionaries.
    data: Option<(i64, i64)>,
    dictionary: Option<i64>,
    data_v2: Option<(i64, i64)>,
    /// Bytes of levels that are not compressed, and whether the rest is not. Only version 2 says so; the decoder goes
    /// by it whatever kind the page is of.
    levels: [i64; 2],
    is_stored: bool,
}

const DATA_PAGE: i64 = 0;
const INDEX_PAGE: i64 = 1;
const DICTIONARY_PAGE: i64 = 2;
const DATA_PAGE_V2: i64 = 3;

impl Header {
    /// Reads a header and gives its length too.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, usize), Flaw> {
        let mut header = Self::default();
        let mut visit = |shape: &'static Shape, event| header.visit(shape, &event);
        let mut walk = Walk::new(bytes, MOST_ELEMENTS);
        walk.structure(&PAGE, &mut visit)?;
        let length = walk.at();
        Ok((header, length))
    }

    fn visit(&mut self, shape: &'static Shape, event: &Event) {
        // Decoders keep the lower half of an integer.
        let (field, value) = match event {
            Event::Int(field, value) => (*field, i64::from(*value as i32)),
            Event::Bool(field, value) => (*field, i64::from(*value)),
            Event::Begin => (0, 0),
        };
        let is = |known: *const Shape| std::ptr::eq(shape, known);
        if is(&raw const PAGE) {
            match field {
                1 => self.kind = value,
                2 => self.uncompressed = value,
                3 => self.compressed = value,
                _ => {}
            }
        } else if is(&raw const DATA) {
            let data = self.data.get_or_insert_default();
            match field {
                1 => data.0 = value,
                2 => data.1 = value,
                _ => {}
            }
        } else if is(&raw const DICTIONARY) {
            let entries = self.dictionary.get_or_insert_default();
            if field == 1 {
                *entries = value;
            }
        } else if is(&raw const DATA_V2) {
            let data = self.data_v2.get_or_insert_default();
            match field {
                0 => (self.levels, self.is_stored) = ([0; 2], false),
                1 => data.0 = value,
                4 => data.1 = value,
                5 | 6 => self.levels[usize::from(field == 6)] = value,
                7 => self.is_stored = value == 0,
                _ => {}
            }
        }
    }

    /// The page's values and how they are encoded.
    fn values(&self) -> Option<(i64, i64)> {
        match self.kind {
            DATA_PAGE => self.data,
            DATA_PAGE_V2 => self.data_v2,
            _ => None,
        }
    }

    /// How texts are stored, if as deltas.
    fn deltas(&self) -> Option<Encoding> {
        let (_, encoding) = self.values()?;
        let deltas = [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY];
        deltas.into_iter().find(|delta| *delta as i64 == encoding)
    }
}

/// A part of a column of a row group: all of its pages, or some.
pub struct Pages<'a, R> {
    /// The file.
    pub source: &'a Arc<R>,
    /// What the footer says of the column.
    pub chunk: &'a ColumnChunkMetaData,
    /// Rows of the row group.
    pub rows: i64,
    /// Where the pages lie in the file, one after another.
    pub range: Range<u64>,
}

impl<R: ChunkReader + 'static> Pages<'_, R> {
    /// Checks the pages and gives the offsets of their headers.
    ///
    /// # Errors
    /// A page that cannot be what its header says.
    pub fn check(&self) -> Result<Vec<u64>, Implausible> {
        let mut offsets = Vec::new();
        let at_page = |offset: u64, reason: &str| Implausible {
            reason: format!(
                "Column \"{}\", page at byte {offset}: {reason}.",
                self.chunk.column_path().string()
            ),
        };
        let mut headers = Headers::new(self.source, self.range.clone());
        let mut sums = Sums::default();
        let mut has_deltas = false;
        while let Some(read) = headers.next() {
            let offset = headers.offset;
            let header = read.map_err(|reason| at_page(offset, &reason))?;
            offsets.push(offset);
            let data = headers.next..headers.next + header.compressed as u64;
            headers.next = data.end;
            let checked = self.check_header(&header, &mut sums);
            checked.and_then(|()| self.check_expansion(&header, data)).map_err(|r| at_page(offset, &r))?;
            has_deltas |= header.deltas().is_some();
        }
        let is_text = matches!(self.chunk.column_type(), Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY);
        if has_deltas && is_text {
            let checked = guarded(|| self.check_deltas());
            let checked = checked.unwrap_or_else(|Damaged| Err("its texts are damaged".to_owned()));
            checked.map_err(|reason| at_page(self.range.start, &reason))?;
        }
        Ok(offsets)
    }

    fn check_header(&self, header: &Header, sums: &mut Sums) -> Result<(), String> {
        let bytes = self.check_size(header)?;
        if header.kind == DICTIONARY_PAGE {
            let entries = header.dictionary.unwrap_or(0);
            let fits = u64::try_from(entries).is_ok_and(|n| {
                n <= MOST_ENTRIES && n.saturating_mul(self.narrowest()) <= bytes.saturating_mul(8)
            });
            return if fits {
                Ok(())
            } else {
                Err(format!("it says that {bytes} bytes hold a dictionary of {entries} values"))
            };
        }
        let Some((values, _)) = header.values() else { return Ok(()) };
        let is_repeated = self.chunk.column_descr().max_rep_level() > 0;
        let fits = if is_repeated {
            sums.values = sums.values.saturating_add(values.max(0) as u64);
            sums.bytes = sums.bytes.saturating_add(bytes);
            let most = MOST_REPEATED.saturating_add(sums.bytes.saturating_mul(REPEATED_PER_BYTE));
            let width = self.widest().saturating_add(4);
            sums.values <= most && sums.values.saturating_mul(width) <= MOST_BYTES.max(16 * sums.bytes)
        } else {
            values <= self.rows
        };
        if !fits || values < 0 {
            let rows = self.rows;
            return Err(format!("it says that {bytes} bytes of {rows} rows hold {values} values"));
        }
        Ok(())
    }

    /// The page's size when it is decompressed.
    fn check_size(&self, header: &Header) -> Result<u64, String> {
        let compressed = header.compressed as u64;
        let ratio = match self.chunk.compression() {
            Compression::SNAPPY => 22,
            Compression::GZIP(_) => GZIP_RATIO,
            Compression::LZ4 | Compression::LZ4_RAW => LZ4_RATIO,
            Compression::ZSTD(_) => 1 << 16,
            // Nothing is decompressed.
            _ => return Ok(compressed),
        };
        if header.is_stored {
            return Ok(compressed);
        }
        let most = compressed.saturating_mul(ratio).saturating_add(SLACK_BYTES).min(MOST_BYTES);
        let uncompressed = u64::try_from(header.uncompressed).ok().filter(|bytes| *bytes <= most);
        uncompressed
            .ok_or_else(|| format!("it says that {compressed} bytes become {} bytes", header.uncompressed))
    }

    /// Decompresses, to nowhere, what may become more than the header says.
    fn check_expansion(&self, header: &Header, data: Range<u64>) -> Result<(), String> {
        let is_large = |ratio: u64| (header.compressed as u64).saturating_mul(ratio) > MOST_BYTES;
        let levels = header.levels.iter().sum::<i64>().max(0) as u64;
        let start = data.start.saturating_add(levels).min(data.end);
        let bytes = |count: u64| self.source.get_bytes(start, count as usize).map_err(|e| e.to_string());
        match self.chunk.compression() {
            _ if header.is_stored => Ok(()),
            Compression::GZIP(_) if is_large(GZIP_RATIO) => {
                let bytes = bytes(data.end - start)?;
                let most = (header.uncompressed as u64).saturating_sub(levels);
                let reason = || format!("it becomes more than {} bytes", header.uncompressed);
                is_inflated_to(&bytes, most).then_some(()).ok_or_else(reason)
            }
            // The framed format, which few old files have, says nothing of its size.
            Compression::LZ4 if is_large(LZ4_RATIO) => {
                let magic = bytes(4.min(data.end - start))?;
                let is_framed = matches!(magic[..], [0x04, 0x22, 0x4d, 0x18] | [0x02, 0x21, 0x4c, 0x18]);
                if is_framed { Err("it is too large".to_owned()) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Decodes the pages whose texts are stored as deltas, as far as is needed.
    fn check_deltas(&self) -> Result<(), String> {
        let text = |error: ParquetError| error.to_string();
        let length = self.range.end - self.range.start;
        let chunk = self.chunk.clone().into_builder();
        let chunk = chunk.set_dictionary_page_offset(None).set_data_page_offset(self.range.start as i64);
        let chunk = chunk.set_total_compressed_size(length as i64).build().map_err(text)?;
        let mut pages = SerializedPageReader::new(Arc::clone(self.source), &chunk, 0, None).map_err(text)?;
        let mut headers = Headers::new(self.source, self.range.clone());
        while let Some(header) = headers.next() {
            let header = header?;
            headers.next += header.compressed as u64;
            if header.kind == INDEX_PAGE {
                // The reader passes over these by itself.
            } else if let Some(encoding) = header.deltas()
                && let data = (headers.next - header.compressed as u64..headers.next)
                && self.is_beginning_sound(&header, encoding, data)? != Some(true)
            {
                let page = pages.get_next_page().map_err(text)?;
                let column = self.chunk.column_descr();
                if page.is_some_and(|page| deltas::is_page_sound(&page, column) == Some(false)) {
                    return Err("its texts are longer or more than it says".to_owned());
                }
            } else {
                pages.skip_next_page().map_err(text)?;
            }
        }
        Ok(())
    }

    /// Whether the texts of a page are sound; None if their beginning does not tell.
    fn is_beginning_sound(
        &self,
        header: &Header,
        encoding: Encoding,
        data: Range<u64>,
    ) -> Result<Option<bool>, String> {
        // In version 1 levels come before, compressed too.
        let (Some((values, _)), DATA_PAGE_V2) = (header.data_v2, header.kind) else { return Ok(None) };
        let (values, levels) = (values as u32, header.levels.iter().sum::<i64>());
        let start = u64::try_from(levels).ok().and_then(|levels| data.start.checked_add(levels));
        let Some(start) = start.filter(|start| *start <= data.end) else { return Ok(None) };
        let bytes = self.source.get_bytes(start, (data.end - start) as usize).map_err(|e| e.to_string())?;
        let wanted = deltas::expected_bytes(encoding, values);
        let compression = if header.is_stored { Compression::UNCOMPRESSED } else { self.chunk.compression() };
        let beginning = beginning_of(compression, &bytes, wanted);
        Ok(beginning.and_then(|bytes| deltas::are_sound(&bytes, encoding, values)))
    }

    /// Bits that a value has at least.
    fn narrowest(&self) -> u64 {
        match self.chunk.column_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 32,
            Type::INT64 | Type::DOUBLE => 64,
            Type::INT96 => 96,
            Type::FIXED_LEN_BYTE_ARRAY => self.type_bytes().saturating_mul(8),
        }
    }

    /// Bytes that a value takes once it is decoded, without those of a text.
    fn widest(&self) -> u64 {
        match self.chunk.column_type() {
            Type::FIXED_LEN_BYTE_ARRAY => self.type_bytes(),
            _ => 16,
        }
    }

    fn type_bytes(&self) -> u64 {
        u64::try_from(self.chunk.column_descr().type_length()).unwrap_or(0)
    }
}

/// Of the pages so far.
#[derive(Default)]
struct Sums {
    values: u64,
    bytes: u64,
}

/// Whether gzip's `bytes` become no more than `most`.
pub(super) fn is_inflated_to(bytes: &[u8], most: u64) -> bool {
    let mut decoder = MultiGzDecoder::new(bytes).take(most.saturating_add(1));
    // What cannot be decompressed, the decoder will refuse.
    std::io::copy(&mut decoder, &mut std::io::sink()).is_ok_and(|count| count <= most)
}

/// Walks from header to header; who uses it passes over the pages.
struct Headers<'a, R> {
    source: &'a Arc<R>,
    end: u64,
    /// Where the last header was.
    offset: u64,
    /// Behind the last header; and, once it is moved there, behind its page.
    next: u64,
    window: bytes::Bytes,
    window_start: u64,
}

impl<'a, R: ChunkReader> Headers<'a, R> {
    fn new(source: &'a Arc<R>, range: Range<u64>) -> Self {
        let (start, end) = (range.start, range.end);
        Self { source, end, offset: start, next: start, window: bytes::Bytes::new(), window_start: start }
    }

    fn next(&mut self) -> Option<Result<Header, String>> {
        if self.next >= self.end {
            return None;
        }
        let is_small = self.next - self.offset < SMALL_BYTES && self.next > self.offset;
        self.offset = self.next;
        let mut wanted = if is_small { WINDOW_BYTES } else { HEADER_BYTES };
        let left = self.end - self.offset;
        loop {
            // A header that is cut off by the window is read again, with a larger one.
            let in_window = self.offset.checked_sub(self.window_start).map(|skipped| skipped as usize);
            let bytes = in_window.and_then(|skipped| self.window.get(skipped..)).unwrap_or_default();
            let is_all = bytes.len() as u64 >= left.min(MOST_HEADER_BYTES);
            match Header::read(bytes) {
                Ok((header, length)) => return Some(self.accept(header, length as u64)),
                Err(Flaw::Bad(reason)) => return Some(Err(format!("its header is damaged: {reason}"))),
                Err(Flaw::Short) if is_all => return Some(Err("its header is cut off".to_owned())),
                Err(Flaw::Short) => {}
            }
            wanted = wanted.max(bytes.len() as u64 * 4).min(left);
            match self.source.get_bytes(self.offset, wanted as usize) {
                Ok(bytes) => (self.window, self.window_start) = (bytes, self.offset),
                Err(error) => return Some(Err(error.to_string())),
            }
        }
    }

    fn accept(&mut self, header: Header, length: u64) -> Result<Header, String> {
        self.next = self.offset + length;
        let left = self.end - self.next;
        if u64::try_from(header.compressed).is_ok_and(|bytes| bytes <= left) {
            return Ok(header);
        }
        Err(format!("it says that it has {} bytes where {left} are left", header.compressed))
    }
}
