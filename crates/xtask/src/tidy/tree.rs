//! Reads every text file of the repository.

use std::io;
use std::path::Path;

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// From the root, with `/`.
    pub path: String,
    /// All of it.
    pub text: String,
}

impl File {
    /// Whether it holds tests only: named `tests.rs` or `..._tests.rs`, or in a directory `tests`.
    pub fn is_test(&self) -> bool {
        let mut parts = self.path.rsplit('/');
        let is_named_so = parts.next().is_some_and(|name| name == "tests.rs" || name.ends_with("_tests.rs"));
        is_named_so || parts.any(|directory| directory == "tests")
    }

    /// The crate's directory name, for a file under `crates/`.
    pub fn crate_dir(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    #[cfg(test)]
    pub fn sample(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }
}

/// All text files under `root` but those of git and of builds, sorted by path.
pub fn read(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    read_directory(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn read_directory(directory: &Path, prefix: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        // In a linked work tree, `.git` is a file.
        if prefix.is_empty() && (name == ".git" || name == "target") {
            continue;
        }
        if kind.is_dir() {
            read_directory(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() {
            // What is not UTF-8 (a test's Parquet file, a picture) has no words to check.
            if let Ok(text) = String::from_utf8(std::fs::read(entry.path())?) {
                files.push(File { path, text });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_in_a_tests_directory_or_named_tests_is_a_test() {
        assert!(File::sample("crates/sql/tests/parse.rs", "").is_test());
        assert!(File::sample("crates/sql/src/bind/tests.rs", "").is_test());
        assert!(File::sample("crates/sql/src/bind/tests/joins.rs", "").is_test());
        assert!(File::sample("crates/sql/src/bind/join_tests.rs", "").is_test());
        assert!(!File::sample("crates/sql/src/bind/contests.rs", "").is_test());
        assert_eq!(File::sample("crates/sql/src/lib.rs", "").crate_dir(), Some("sql"));
    }
}
