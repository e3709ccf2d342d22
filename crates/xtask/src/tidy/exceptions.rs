//! `exceptions.txt`: what may break which rule, and why.

use super::Finding;
use super::tree::File;

/// The file, from the repository's root.
const PATH: &str = "crates/xtask/exceptions.txt";

/// Takes out the findings that have an exception; an exception without a finding becomes one.
pub fn apply(files: &[File], findings: Vec<Finding>) -> Result<Vec<Finding>, String> {
    let text = files.iter().find(|file| file.path == PATH).map_or("", |file| file.text.as_str());
    let exceptions = parse(text)?;
    let excuses = |finding: &Finding, (check, subject, _): &Exception<'_>| {
        finding.check == *check && finding.subject == *subject
    };
    let idle = exceptions
        .iter()
        .filter(|exception| !findings.iter().any(|finding| excuses(finding, exception)))
        .map(|(check, subject, line)| {
            let message = format!("nothing needs the exception `{check} | {subject}` any more; remove it");
            Finding::new("exceptions", PATH, message).at(*line)
        })
        .collect::<Vec<_>>();
    let kept = findings
        .into_iter()
        .filter(|finding| !exceptions.iter().any(|exception| excuses(finding, exception)));
    Ok(kept.chain(idle).collect())
}

/// Check, subject, and the line it stands on.
type Exception<'a> = (&'a str, &'a str, usize);

fn parse(text: &str) -> Result<Vec<Exception<'_>>, String> {
    let mut exceptions = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let parts: Vec<&str> = line.splitn(3, '|').map(str::trim).collect();
        match parts.as_slice() {
            [check, subject, reason] if !reason.is_empty() => exceptions.push((*check, *subject, index + 1)),
            _ => return Err(format!("{PATH} (line {}): want `check | subject | reason`", index + 1)),
        }
    }
    Ok(exceptions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply_text(text: &str, findings: Vec<Finding>) -> Result<Vec<Finding>, String> {
        apply(&[File::sample(PATH, text)], findings)
    }

    #[test]
    fn exception_with_a_reason_takes_out_its_finding_only() {
        let one = Finding::new("length", "a.rs", "too long");
        let two = Finding::new("length", "b.rs", "too long");
        let left = apply_text("# why\nlength | a.rs | a generated table\n", vec![one, two.clone()]);
        assert_eq!(left.unwrap(), [two]);
    }

    #[test]
    fn exception_without_a_finding_is_found() {
        assert_eq!(apply_text("length | a.rs | once long", Vec::new()).unwrap()[0].line, Some(1));
    }

    #[test]
    fn exception_without_a_reason_is_refused() {
        assert!(apply_text("length | a.rs |", Vec::new()).is_err());
        assert!(apply_text("length a.rs", Vec::new()).is_err());
    }
}
