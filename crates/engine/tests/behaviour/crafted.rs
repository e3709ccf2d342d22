//! Parquet files that claim what they do not have, read by a process that may not have much memory: each is an error,
//! none ends the process.
#![allow(clippy::disallowed_methods, reason = "a test writes files and starts itself again")]

use std::path::Path;
use std::process::Command;

use albireo::Database;

use crate::support::{database, state};

/// The process may have this much address space, in KiB.
const LIMIT_KIB: u64 = 4 << 20;
/// Says to the process that it is the limited one.
const LIMITED: &str = "ALBIREO_TEST_IS_LIMITED";
const NAME: &str = "crafted::parquet_that_claims_too_much_is_an_error_within_limited_memory";

/// A value in Thrift's compact protocol.
#[derive(Clone)]
enum T {
    Int(i64),
    Text(&'static str),
    Struct(Vec<(u8, T)>),
    Structs(Vec<T>),
    /// A list that says that it has so many structures, and has none.
    Claim(u64),
    /// No elements of a type.
    Empty(u8),
}

use T::{Claim, Empty, Int, Struct, Structs, Text};

fn put_unsigned(bytes: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn put_signed(bytes: &mut Vec<u8>, value: i64) {
    put_unsigned(bytes, ((value << 1) ^ (value >> 63)) as u64);
}

impl T {
    fn kind(&self) -> u8 {
        match self {
            Int(_) => 6,
            Text(_) => 8,
            Struct(_) => 12,
            Structs(_) | Claim(_) | Empty(_) => 9,
        }
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Int(value) => put_signed(bytes, *value),
            Text(text) => {
                put_unsigned(bytes, text.len() as u64);
                bytes.extend_from_slice(text.as_bytes());
            }
            Struct(fields) => {
                let mut last = 0;
                for (number, field) in fields {
                    bytes.push((number - last) << 4 | field.kind());
                    field.put(bytes);
                    last = *number;
                }
                bytes.push(0);
            }
            Structs(elements) => {
                bytes.push(0xfc);
                put_unsigned(bytes, elements.len() as u64);
                elements.iter().for_each(|element| element.put(bytes));
            }
            Claim(count) => {
                bytes.push(0xfc);
                put_unsigned(bytes, *count);
            }
            Empty(kind) => bytes.push(*kind),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        bytes
    }
}

const HUGE: i64 = i32::MAX as i64;

const INT64: i64 = 2;
const BYTE_ARRAY: i64 = 6;
const FIXED: i64 = 7;

const PLAIN: i64 = 0;
const DELTA_LENGTH: i64 = 6;
const DELTA: i64 = 7;
const DICTIONARY: i64 = 8;

/// One column `a` with one value.
#[derive(Clone)]
struct File {
    physical: i64,
    codec: i64,
    schema: Option<T>,
    type_length: i64,
    rows: i64,
    row_groups: Option<T>,
    pages: Vec<Vec<u8>>,
    /// Added to where the column begins, and its length if it is another than that of the pages.
    start: i64,
    length: Option<i64>,
    offset_index: Option<Vec<u8>>,
    column_index: Option<Vec<u8>>,
}

impl Default for File {
    fn default() -> Self {
        Self {
            physical: BYTE_ARRAY,
            codec: 0,
            schema: None,
            type_length: 0,
            rows: 1,
            row_groups: None,
            pages: vec![dictionary(1, 6, 6), data(DICTIONARY, 1, &[1, 2, 0])],
            start: 0,
            length: None,
            offset_index: None,
            column_index: None,
        }
    }
}

fn page(kind: i64, claimed: i64, header: (u8, T), body: &[u8]) -> Vec<u8> {
    let mut bytes =
        Struct(vec![(1, Int(kind)), (2, Int(claimed)), (3, Int(body.len() as i64)), header]).bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// A dictionary of the text "ab", or so it says.
fn dictionary(entries: i64, claimed: i64, encoded: usize) -> Vec<u8> {
    let header = Struct(vec![(1, Int(entries)), (2, Int(PLAIN))]);
    page(2, claimed, (7, header), &[2, 0, 0, 0, b'a', b'b', 0, 0][..encoded])
}

fn data(encoding: i64, values: i64, body: &[u8]) -> Vec<u8> {
    data_of(encoding, values, body.len() as i64, body)
}

fn data_of(encoding: i64, values: i64, claimed: i64, body: &[u8]) -> Vec<u8> {
    let header = Struct(vec![(1, Int(values)), (2, Int(encoding)), (3, Int(3)), (4, Int(3))]);
    page(0, claimed, (5, header), body)
}

fn data_v2(encoding: i64, values: i64, claimed: i64, body: &[u8]) -> Vec<u8> {
    let sizes = [(5, Int(0)), (6, Int(0))];
    let header = [(1, Int(values)), (2, Int(0)), (3, Int(1)), (4, Int(encoding))];
    page(3, claimed, (8, Struct(header.into_iter().chain(sizes).collect())), body)
}

/// Lengths that say how many they are, and no more.
fn lengths(count: u64) -> Vec<u8> {
    let mut bytes = vec![0x80, 0x01, 0x04];
    put_unsigned(&mut bytes, count);
    bytes.extend([0; 16]);
    bytes
}

fn element(name: &'static str, children: i64) -> T {
    Struct(vec![(3, Int(0)), (4, Text(name)), (5, Int(children))])
}

impl File {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"PAR1".to_vec();
        let mut offsets: Vec<i64> = Vec::new();
        for page in &self.pages {
            offsets.push(bytes.len() as i64);
            bytes.extend_from_slice(page);
        }
        let length = self.length.unwrap_or(bytes.len() as i64 - 4);
        let mut chunk = vec![(2, Int(0)), (3, Struct(self.column(&offsets, length)))];
        let mut place = |field: u8, index: &Option<Vec<u8>>| {
            if let Some(index) = index {
                chunk.extend([(field, Int(bytes.len() as i64)), (field + 1, Int(index.len() as i64))]);
                bytes.extend_from_slice(index);
            }
        };
        place(4, &self.offset_index);
        place(6, &self.column_index);
        let group = Struct(vec![(1, Structs(vec![Struct(chunk)])), (2, Int(1)), (3, Int(self.rows))]);
        let mut leaf = vec![(1, Int(self.physical)), (3, Int(0)), (4, Text("a"))];
        if self.type_length > 0 {
            leaf.insert(1, (2, Int(self.type_length)));
        }
        if self.physical == BYTE_ARRAY {
            leaf.push((6, Int(0)));
        }
        let schema = || Structs(vec![element("root", 1), Struct(leaf)]);
        let footer = Struct(vec![
            (1, Int(2)),
            (2, self.schema.clone().unwrap_or_else(schema)),
            (3, Int(self.rows)),
            (4, self.row_groups.clone().unwrap_or(Structs(vec![group]))),
        ]);
        let footer = footer.bytes();
        bytes.extend_from_slice(&footer);
        bytes.extend_from_slice(&(footer.len() as u32).to_le_bytes());
        bytes.extend_from_slice(b"PAR1");
        bytes
    }

    fn column(&self, offsets: &[i64], length: i64) -> Vec<(u8, T)> {
        let mut fields = vec![
            (1, Int(self.physical)),
            (2, Empty(5)),
            (3, Empty(8)),
            (4, Int(self.codec)),
            (5, Int(1)),
            (6, Int(length)),
            (7, Int(length)),
            (9, Int(offsets[offsets.len() - 1] + self.start)),
        ];
        if offsets.len() > 1 {
            fields.push((11, Int(offsets[0] + self.start)));
        }
        fields
    }
}

fn of_pages(physical: i64, codec: i64, pages: Vec<Vec<u8>>) -> File {
    File { physical, codec, pages, ..File::default() }
}

/// What claims too much, by a name.
fn crafted() -> Vec<(String, File)> {
    let mut files: Vec<(String, File)> = Vec::new();
    let mut add = |name: String, file| files.push((name, file));
    let indexes = || data(DICTIONARY, 1, &[1, 2, 0]);
    for physical in [1, INT64, 5, BYTE_ARRAY] {
        let pages = vec![dictionary(HUGE, 8, 8), indexes()];
        add(format!("entries of a dictionary of type {physical}"), of_pages(physical, 0, pages));
    }
    // Snappy, gzip, LZ4 of two kinds, Zstandard.
    for codec in [1, 2, 5, 6, 7] {
        let body = &[8, 28, 2, 0, 0, 0, b'a', b'b', 0, 0];
        let pages = vec![data_of(PLAIN, 1, HUGE, body)];
        add(format!("size of a page, codec {codec}"), of_pages(BYTE_ARRAY, codec, pages));
        let pages = vec![data_v2(PLAIN, 1, HUGE, body)];
        add(format!("size of a page of version 2, codec {codec}"), of_pages(BYTE_ARRAY, codec, pages));
        let pages = vec![dictionary(1, HUGE, 6), indexes()];
        add(format!("size of a dictionary, codec {codec}"), of_pages(BYTE_ARRAY, codec, pages));
    }
    for (name, encoding) in [("lengths", DELTA_LENGTH), ("shared texts", DELTA)] {
        for count in [1 << 33, 1 << 40, 1 << 62] {
            let pages = vec![data(encoding, 1, &lengths(count))];
            add(format!("{count} {name}"), of_pages(BYTE_ARRAY, 0, pages));
            let body = lengths(count);
            let pages = vec![data_v2(encoding, 1, body.len() as i64, &body)];
            add(format!("{count} {name}, version 2"), of_pages(BYTE_ARRAY, 0, pages));
        }
    }
    add("values of a page".to_owned(), of_pages(BYTE_ARRAY, 0, vec![data(PLAIN, HUGE, &[0; 8])]));
    add("row groups".to_owned(), File { row_groups: Some(Claim(1 << 28)), ..File::default() });
    add("columns of the schema".to_owned(), File { schema: Some(Claim(1 << 28)), ..File::default() });
    let children = Structs(vec![element("root", 1), element("a", HUGE)]);
    add("columns of a group".to_owned(), File { schema: Some(children), ..File::default() });
    let deep = Structs(vec![element("a", 1); 100_000]);
    add("groups in groups".to_owned(), File { schema: Some(deep), ..File::default() });
    for rows in [1 << 40, 1 << 60, -1] {
        add(format!("{rows} rows"), File { rows, ..File::default() });
    }
    for (start, length) in [(0, 1 << 40), (1 << 40, 1 << 10), (-1000, 1 << 10), (0, -1)] {
        add(
            format!("a column of {length} bytes at {start}"),
            File { start, length: Some(length), ..File::default() },
        );
    }
    let fixed = File { physical: FIXED, type_length: HUGE, rows: 100_000, ..File::default() };
    add("bytes of a value".to_owned(), File { pages: vec![data(PLAIN, 1, &[0; 8])], ..fixed });
    let claim = || Some(Struct(vec![(1, Claim(1 << 28))]).bytes());
    add(
        "pages in the page index".to_owned(),
        File { offset_index: claim(), column_index: claim(), ..File::default() },
    );
    files
}

/// What reading a file says: nothing if it can be read, or the error's SQLSTATE and text.
fn outcomes(db: &Database, path: &Path) -> Vec<Option<(String, String)>> {
    let path = path.display();
    let statements = [
        format!("COPY t FROM '{path}'"),
        format!("SELECT * FROM '{path}'"),
        format!("SELECT count(a) FROM '{path}' WHERE a::TEXT <> 'x'"),
    ];
    let said = |sql: &String| db.execute(sql).err().map(|error| (state(&error), format!("{error:?}")));
    statements.iter().map(said).collect()
}

#[test]
fn parquet_that_claims_too_much_is_an_error_within_limited_memory() {
    if std::env::var_os("ALBIREO_SANITIZED").is_some() {
        println!("skipped: a sanitizer takes more addresses than the limit");
        return;
    }
    if std::env::var_os(LIMITED).is_none() {
        let script = format!("ulimit -v {LIMIT_KIB} && exec \"$0\" {NAME} --exact --nocapture");
        let limited = Command::new("sh")
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .env(LIMITED, "1")
            .output()
            .unwrap();
        let said = [limited.stdout, limited.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(limited.status.success(), "{}: {said:?}", limited.status);
        assert!(said[0].contains("1 passed"), "{said:?}");
        return;
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("crafted-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let db = database();
    db.execute("CREATE TABLE t (a TEXT)").unwrap();
    let path = directory.join("sound.parquet");
    std::fs::write(&path, File::default().bytes()).unwrap();
    assert_eq!(outcomes(&db, &path), [None, None, None]);
    for (number, (name, file)) in crafted().into_iter().enumerate() {
        println!("{name}");
        let path = directory.join(format!("{number}.parquet"));
        std::fs::write(&path, file.bytes()).unwrap();
        // COPY does not look at the page index.
        let first = usize::from(file.offset_index.is_some());
        for outcome in outcomes(&db, &path).into_iter().skip(first) {
            let (state, text) = outcome.unwrap_or_else(|| panic!("{name} was read"));
            println!("  {text}");
            assert_eq!(state, "22P04", "{name}: {text}");
            assert!(text.contains(&format!("{number}.parquet")), "{name}: {text}");
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
