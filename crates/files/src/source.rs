//! A file's bytes as UTF-8: decompressed, and out of the encoding they are in.
//!
//! Responsible for: gzip and zstd, told by their first bytes; byte order marks; UTF-16, LATIN1 and WINDOWS-1252.
//! Not responsible for: finding and opening files.
//!
//! I-1 Memory: buffers of fixed size, and the window of zstd, at most 128 MiB.

use std::io::{self, BufReader, Cursor, Read};

use albireo_base::{SqlError, SqlState};
use flate2::read::MultiGzDecoder;

use crate::fault::Undecodable;
use crate::{Compression, Fault};

/// Bytes read from a file at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The largest window of zstd, as a power of two; what its own programs take without being asked.
const ZSTD_WINDOW_LOG: u32 = 27;

/// How a file's characters are written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Encoding {
    /// UTF-8; UTF-16 if the file begins with its byte order mark.
    #[default]
    Utf8,
    /// UTF-16, little-endian unless a byte order mark says otherwise.
    Utf16Le,
    /// UTF-16, big-endian unless a byte order mark says otherwise.
    Utf16Be,
    /// ISO 8859-1.
    Latin1,
    /// Windows' code page 1252.
    Windows1252,
}

impl Encoding {
    /// The encoding of a name, as PostgreSQL and the IANA write them.
    pub fn of_name(name: &str) -> Option<Self> {
        let bare: String = name.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        Some(match bare.to_ascii_uppercase().as_str() {
            "UTF8" | "UNICODE" => Self::Utf8,
            "UTF16" | "UTF16LE" => Self::Utf16Le,
            "UTF16BE" => Self::Utf16Be,
            "LATIN1" | "ISO88591" => Self::Latin1,
            "WIN1252" | "WINDOWS1252" | "CP1252" => Self::Windows1252,
            _ => return None,
        })
    }

    /// The names that an error offers.
    pub const NAMES: &str = "UTF8, UTF16, UTF16BE, LATIN1 and WIN1252";
}

/// A file's name without the ending that says how it is compressed; its bytes decide.
pub fn without_compression(path: &str) -> &str {
    match (Compression::of_path(path), path.rfind('.')) {
        (Compression::Gzip | Compression::Zstd, Some(at)) => &path[..at],
        _ => path,
    }
}

/// The bytes of `file`, whatever they are wrapped in, as UTF-8 without a byte order mark.
///
/// # Errors
/// Of reading the first bytes; 22P04 for archives that are of no use here.
pub fn open<'a>(
    file: Box<dyn Read + Send + 'a>,
    encoding: Encoding,
) -> Result<Box<dyn Read + Send + 'a>, Fault> {
    let (first, file) = peek(file)?;
    let plain: Box<dyn Read + Send + 'a> = match first.as_slice() {
        [0x1f, 0x8b, ..] => {
            let inner = MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, file));
            Box::new(Decompressed { inner, name: "gzip" })
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let mut inner = zstd::stream::read::Decoder::new(file)?;
            inner.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(Decompressed { inner, name: "zstd" })
        }
        [b'P', b'K', 3, 4] => return Err(foreign("a ZIP archive")),
        [b'B', b'Z', b'h', b'1'..=b'9'] => return Err(foreign("compressed by bzip2")),
        [0xfd, b'7', b'z', b'X'] => return Err(foreign("compressed by xz")),
        [b'P', b'A', b'R', b'1'] => {
            let error = Fault::bad_file("the file is a Parquet file");
            return Err(Fault::new(
                error.with_hint("Say so with WITH (FORMAT parquet), or end its name in .parquet."),
            ));
        }
        _ => Box::new(file),
    };
    // What is compressed may have a byte order mark of its own.
    let (mut first, mut plain) = peek(plain)?;
    let marks: [(&[u8], Encoding); 3] = [
        (b"\xef\xbb\xbf", Encoding::Utf8),
        (b"\xff\xfe", Encoding::Utf16Le),
        (b"\xfe\xff", Encoding::Utf16Be),
    ];
    let is_single_byte = matches!(encoding, Encoding::Latin1 | Encoding::Windows1252);
    let found = marks.into_iter().find(|(mark, _)| first.starts_with(mark) && !is_single_byte);
    let encoding = match found {
        Some((mark, encoding)) => {
            // The peeked bytes are given again by the reader; the mark is read past.
            plain.read_exact(&mut first[..mark.len()])?;
            encoding
        }
        None => encoding,
    };
    Ok(match encoding {
        Encoding::Utf8 => Box::new(plain),
        other => Box::new(Transcoded::new(plain, other)),
    })
}

fn foreign(what: &str) -> Fault {
    let error = Fault::bad_file(format!("the file is {what}"));
    Fault::new(
        error.with_hint(
            "Unpack it first; files that gzip (.gz) or zstd (.zst) compressed are read as they are.",
        ),
    )
}

type Peeked<R> = io::Chain<Cursor<Vec<u8>>, R>;

/// The first four bytes, if there are as many, and a reader that gives them again.
fn peek<R: Read>(mut file: R) -> io::Result<(Vec<u8>, Peeked<R>)> {
    let mut first = Vec::with_capacity(4);
    (&mut file).take(4).read_to_end(&mut first)?;
    let again = Cursor::new(first.clone());
    Ok((first, again.chain(file)))
}

/// Says of a damaged stream that it is one.
struct Decompressed<R> {
    inner: R,
    name: &'static str,
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            if error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted {
                return error;
            }
            let what = Fault::bad_file(format!("the file's {} stream is damaged", self.name));
            let hint = "It may have been cut off on its way; compare its size with the original's.";
            io::Error::other(Undecodable(what.with_detail(format!("{error}.")).with_hint(hint)))
        })
    }
}

/// Another encoding's bytes as UTF-8.
struct Transcoded<R> {
    inner: R,
    encoding: Encoding,
    /// Bytes of the file that make no character yet.
    raw: Vec<u8>,
    /// Bytes of the file before `raw`.
    offset: u64,
    text: String,
    given: usize,
}

impl<R: Read> Transcoded<R> {
    fn new(inner: R, encoding: Encoding) -> Self {
        Self { inner, encoding, raw: Vec::new(), offset: 0, text: String::new(), given: 0 }
    }

    /// Reads on; false at the end of the file.
    fn refill(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.given = 0;
        let kept = self.raw.len();
        self.raw.resize(kept + (BUFFER_BYTES >> 2), 0);
        let read = self.inner.read(&mut self.raw[kept..]);
        self.raw.truncate(kept + *read.as_ref().unwrap_or(&0));
        let is_end = read? == 0;
        match self.encoding {
            Encoding::Latin1 => self.text.extend(self.raw.drain(..).map(char::from)),
            Encoding::Windows1252 => {
                let bad = self.raw.iter().position(|byte| windows_1252(*byte).is_none());
                if let Some(at) = bad {
                    return Err(self.undecodable(at));
                }
                self.offset += self.raw.len() as u64;
                self.text.extend(self.raw.drain(..).filter_map(windows_1252));
            }
            _ => self.utf16(is_end)?,
        }
        Ok(!is_end)
    }

    fn utf16(&mut self, is_end: bool) -> io::Result<()> {
        let join = if self.encoding == Encoding::Utf16Be { u16::from_be_bytes } else { u16::from_le_bytes };
        let mut units: Vec<u16> = self.raw.as_chunks::<2>().0.iter().map(|pair| join(*pair)).collect();
        // The first half of a pair waits for the second.
        if !is_end && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            units.pop();
        }
        let mut used = 0;
        for character in char::decode_utf16(units) {
            let Ok(character) = character else { return Err(self.undecodable(used)) };
            self.text.push(character);
            used += 2 * character.len_utf16();
        }
        self.raw.drain(..used);
        self.offset += used as u64;
        if is_end && !self.raw.is_empty() { Err(self.undecodable(0)) } else { Ok(()) }
    }

    fn undecodable(&self, at: usize) -> io::Error {
        let name = match self.encoding {
            Encoding::Windows1252 => "WIN1252",
            _ => "UTF16",
        };
        let place = self.offset + at as u64;
        let message = format!("invalid byte sequence for encoding \"{name}\" at byte {place}");
        let error = SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message);
        io::Error::other(Undecodable(error.with_hint("Name the file's encoding with ENCODING.")))
    }
}

impl<R: Read> Read for Transcoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() {
            if !self.refill()? && self.text.is_empty() {
                return Ok(0);
            }
        }
        let rest = &self.text.as_bytes()[self.given..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}

/// The characters of 0x80 to 0x9f; five of them have none.
const WINDOWS_1252: [char; 32] = [
    '€', '\0', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\0', 'Ž', '\0', '\0', '‘', '’', '“',
    '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\0', 'ž', 'Ÿ',
];

fn windows_1252(byte: u8) -> Option<char> {
    match byte {
        0x80..=0x9f => Some(WINDOWS_1252[usize::from(byte - 0x80)]).filter(|c| *c != '\0'),
        other => Some(char::from(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;
    use std::io::Write;

    fn read(bytes: &[u8], encoding: Encoding) -> Result<String, String> {
        let told = |fault: Fault| match fault.cause {
            Cause::Sql(error) => format!("{} {}", error.state(), error.message()),
            other => format!("{other:?}"),
        };
        let mut reader = open(Box::new(bytes), encoding).map_err(told)?;
        let mut text = String::new();
        reader.read_to_string(&mut text).map_err(|error| told(error.into()))?;
        Ok(text)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn text_comes_out_of_every_encoding_and_compression() {
        let text = "a;ä€\n𝄞";
        let utf16 = |join: fn(u16) -> [u8; 2], mark: &[u8]| -> Vec<u8> {
            mark.iter().copied().chain(text.encode_utf16().flat_map(join)).collect()
        };
        let marked: Vec<u8> = b"\xef\xbb\xbf".iter().chain(text.as_bytes()).copied().collect();
        let zstd = zstd::stream::encode_all(text.as_bytes(), 1).unwrap();
        let twice: Vec<u8> = [gzip("a;ä€\n".as_bytes()), gzip("𝄞".as_bytes())].concat();
        let cases = [
            (text.as_bytes().to_vec(), Encoding::Utf8),
            (marked.clone(), Encoding::Utf8),
            (utf16(u16::to_le_bytes, b"\xff\xfe"), Encoding::Utf8),
            (utf16(u16::to_be_bytes, b"\xfe\xff"), Encoding::Utf8),
            (utf16(u16::to_le_bytes, b""), Encoding::Utf16Le),
            (utf16(u16::to_be_bytes, b""), Encoding::Utf16Be),
            (gzip(&marked), Encoding::Utf8),
            (twice, Encoding::Utf8),
            (zstd, Encoding::Utf8),
        ];
        for (bytes, encoding) in cases {
            assert_eq!(read(&bytes, encoding).as_deref(), Ok(text), "{encoding:?} {bytes:?}");
        }
        assert_eq!(read(b"\xe4\x80", Encoding::Latin1).as_deref(), Ok("ä\u{80}"));
        assert_eq!(read(b"\xe4\x80", Encoding::Windows1252).as_deref(), Ok("ä€"));
        assert_eq!(read(b"", Encoding::Utf8).as_deref(), Ok(""));
    }

    #[test]
    fn characters_across_buffers_stay_whole() {
        let text = "x𝄞".repeat(100_000);
        let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(read(&bytes, Encoding::Utf16Be), Ok(text));
    }

    #[test]
    fn bad_byte_is_named_by_its_place_in_the_file_not_in_a_buffer() {
        let mut bytes = vec![b'a'; 1_000_000];
        bytes.push(0x81);
        let error = read(&bytes, Encoding::Windows1252).unwrap_err();
        assert!(error.ends_with("at byte 1000000"), "{error}");
    }

    #[test]
    fn bytes_that_mean_nothing_are_an_error() {
        let zip = gzip(&[b'x'; 1000]);
        let cases: [(&[u8], Encoding, &str); 6] = [
            (&zip[..zip.len() - 9], Encoding::Utf8, "22P04 the file's gzip stream is damaged"),
            (
                b"\x28\xb5\x2f\xfd\x00\x00\x00\xff\xff",
                Encoding::Utf8,
                "22P04 the file's zstd stream is damaged",
            ),
            (
                b"\x00\xd8\x41\x00",
                Encoding::Utf16Le,
                "22021 invalid byte sequence for encoding \"UTF16\" at byte 0",
            ),
            (b"a\0b", Encoding::Utf16Le, "22021 invalid byte sequence for encoding \"UTF16\" at byte 2"),
            (
                b"ab\x81",
                Encoding::Windows1252,
                "22021 invalid byte sequence for encoding \"WIN1252\" at byte 2",
            ),
            (b"PK\x03\x04...", Encoding::Utf8, "22P04 the file is a ZIP archive"),
        ];
        for (bytes, encoding, expected) in cases {
            assert_eq!(read(bytes, encoding), Err(expected.to_owned()));
        }
    }
}
