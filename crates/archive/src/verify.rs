//! Looking whether an archive could be loaded.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use albireo_env::Env;
use arrow_schema::Schema;

use crate::error::{ArchiveError, Damage};
use crate::files::archive_path;
use crate::frozen::file::open_with_schema;
use crate::manifest::{FileEntry, Manifest, NAME, TableEntry, file_path};
use crate::read::open;

/// Something wrong with an archive.
#[derive(Debug)]
pub struct Finding {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub error: ArchiveError,
}

/// Reads all of an archive: every file must be there, with its length and checksums, be an Arrow file with the
/// table's columns, and have its rows, those of frozen chunks encoded as their headers say. An empty answer means that all is well.
pub fn verify(env: &Env, directory: &Path, number: u64) -> Vec<Finding> {
    let manifest = match Manifest::read(env, directory, number) {
        Ok(manifest) => manifest,
        Err(error) => return vec![Finding { path: archive_path(directory, number).join(NAME), error }],
    };
    let files = manifest.tables.iter().flat_map(|table| table.files.iter().map(move |file| (table, file)));
    let check = |(table, file): (&TableEntry, &FileEntry)| {
        let error = check_file(env, directory, table, file).err()?;
        Some(Finding { path: file_path(directory, file), error })
    };
    files.filter_map(check).collect()
}

/// Whether [`verify`] would find nothing; ends at the first finding. `None` once `cancel` is set.
pub fn is_sound(env: &Env, directory: &Path, manifest: &Manifest, cancel: &AtomicBool) -> Option<bool> {
    for table in &manifest.tables {
        for file in &table.files {
            if cancel.load(Ordering::Relaxed) {
                return None;
            }
            if check_file(env, directory, table, file).is_err() {
                return Some(false);
            }
        }
    }
    Some(true)
}

fn check_file(env: &Env, directory: &Path, table: &TableEntry, file: &FileEntry) -> Result<(), ArchiveError> {
    if let Some(frozen) = &file.frozen {
        let (schema, _) = open_with_schema(env, directory, file, frozen)?;
        return check_columns(directory, table, file, &schema);
    }
    let mut batches = open(env, directory, file)?;
    check_columns(directory, table, file, &batches.schema())?;
    batches.try_for_each(|batch| batch.map(|_| ()))
}

fn check_columns(
    directory: &Path,
    table: &TableEntry,
    file: &FileEntry,
    schema: &Schema,
) -> Result<(), ArchiveError> {
    let found = schema.fields().iter().map(|field| (field.name(), field.is_nullable()));
    match found.eq(table.columns.iter().map(|column| (&column.name, column.nullable))) {
        true => Ok(()),
        false => Err(ArchiveError::damaged(&file_path(directory, file), Damage::Columns)),
    }
}
