//! Bytes on their way into a file, compressed as its name says.

use std::io::{self, Write};

use flate2::write::GzEncoder;

/// How a file is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// What the ending of a file's name says.
    pub fn of_path(path: &str) -> Self {
        let lower = path.to_ascii_lowercase();
        match lower.rsplit_once('.').map(|(_, ending)| ending) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// Compresses what is written to it.
pub enum Compressor<W: Write> {
    /// Passes it on.
    None(W),
    /// As gzip does.
    Gzip(GzEncoder<W>),
    /// As zstd does.
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Compressor<W> {
    /// Writes to `sink`.
    ///
    /// # Errors
    /// There is no memory for zstd.
    pub fn new(sink: W, compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None(sink),
            Compression::Gzip => Self::Gzip(GzEncoder::new(sink, flate2::Compression::default())),
            // 0 is the library's usual level.
            Compression::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(sink, 0)?;
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
        })
    }

    /// Ends the stream, and gives what was written to.
    ///
    /// # Errors
    /// Of writing.
    pub fn finish(self) -> io::Result<W> {
        match self {
            Self::None(sink) => Ok(sink),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::None(sink) => sink.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::None(sink) => sink.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}
