//! Words that must not be in the tree: paths of one machine, unfinished work, references to papers
//! that readers do not have, packages from elsewhere.

use super::Finding;
use super::tree::File;

/// Written in pieces so that this file passes its own check.
const ANYWHERE: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("/ho", "me/"), "a path of one machine"),
    (concat!("/tm", "p/"), "a path of one machine; ask the system for its temporary directory"),
    (concat!("DES", "IGN §"), "a document that is not in this repository"),
];

const IN_CODE: &[(&str, &str)] = &[
    (concat!("to", "do!"), "unfinished work"),
    (concat!("unimple", "mented!"), "unfinished work"),
    (concat!("FIX", "ME"), "unfinished work"),
];

/// Documents that exist beside the repository; naming one is fine once it is inside.
const DOCUMENTS: &[&str] = &[concat!("DES", "IGN.md"), concat!("STY", "LE.md"), concat!("DATA", "FUSION.md")];

/// The only place packages may come from, as Cargo.lock writes it.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Looks for banned words in `file`; `files` is the whole tree.
pub fn check(file: &File, files: &[File]) -> Vec<Finding> {
    if matches!(file.path.as_str(), "LICENSE" | "Cargo.lock") {
        return Vec::new();
    }
    let is_code = file.path.ends_with(".rs");
    let missing = |name: &&&str| !files.iter().any(|other| other.path == **name);
    let documents = DOCUMENTS.iter().filter(missing).map(|name| (*name, "not in this repository"));
    let words: Vec<_> = ANYWHERE
        .iter()
        .copied()
        .chain(IN_CODE.iter().copied().filter(|_| is_code))
        .chain(documents)
        .collect();
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for (word, reason) in &words {
            if line.contains(word) {
                let message = format!("`{word}` is not allowed: {reason}");
                findings.push(Finding::new("words", &file.path, message).at(index + 1));
            }
        }
        if has_issue_number(line) {
            let message = "names an issue by number; say what it is about";
            findings.push(Finding::new("words", &file.path, message).at(index + 1));
        }
    }
    findings
}

/// Whether `line` has the word issue before a number.
fn has_issue_number(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    lower.match_indices(concat!("iss", "ue ")).any(|(at, word)| {
        let rest = lower[at + word.len()..].trim_start_matches('#');
        rest.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Every package in Cargo.lock is ours or comes from crates.io.
pub fn check_lock_file(files: &[File]) -> Vec<Finding> {
    let lock = files.iter().filter(|file| file.path == "Cargo.lock");
    let lines = lock.flat_map(|file| file.text.lines().enumerate());
    lines
        .filter_map(|(index, line)| {
            let source = line.strip_prefix("source = \"")?.strip_suffix('"')?;
            (source != REGISTRY).then(|| {
                let message = format!("a package comes from `{source}`, not from crates.io");
                Finding::new("words", "Cargo.lock", message).at(index + 1)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&File::sample(path, text), &[]).len()
    }

    #[test]
    fn banned_word_is_found_with_its_line() {
        let text = concat!("fine\nlet x = to", "do!();\n");
        let findings = check(&File::sample("crates/sql/src/lib.rs", text), &[]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, Some(2));
        assert_eq!(found("README.md", concat!("cd /wo", "rk/here")), 1);
        assert_eq!(found("a.sh", concat!("see iss", "ue 12")), 1);
        assert_eq!(found("a.sh", concat!("see Iss", "ue #12")), 1);
    }

    #[test]
    fn document_is_found_only_while_it_is_missing() {
        let file = File::sample("README.md", concat!("see STY", "LE.md"));
        assert_eq!(check(&file, &[]).len(), 1);
        let document = File::sample(concat!("STY", "LE.md"), "");
        assert_eq!(check(&file, &[document]).len(), 0);
    }

    #[test]
    fn ordinary_text_passes() {
        assert_eq!(found("a.rs", "// issues a statement; homework/ and root/ are words"), 0);
        assert_eq!(found("CONTRIBUTING.md", "a to do list"), 0);
    }

    #[test]
    fn package_from_another_registry_is_found() {
        let text = format!("source = \"{REGISTRY}\"\nsource = \"registry+https://example.com/index\"\n");
        let findings = check_lock_file(&[File::sample("Cargo.lock", &text)]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, Some(2));
    }
}
