//! Programs that the shell starts: the editor of `\e`, and those of `\!`.
//!
//! Not responsible for: the terminal's mode (`terminal`), the pager (`pager`).

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// What is tried if no editor is named.
const DEFAULT_EDITOR: &str = "vi";

/// The editor's command, from the first of the variables that is set.
fn editor(variable: impl Fn(&str) -> Option<OsString>) -> OsString {
    let named = ["ALBIREO_EDITOR", "EDITOR", "VISUAL"].into_iter().find_map(variable);
    named.filter(|command| !command.is_empty()).unwrap_or_else(|| DEFAULT_EDITOR.into())
}

/// Has a person edit the file; the error says why that was not possible.
pub fn edit(path: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Result<(), String> {
    let command = editor(variable);
    // The command may have arguments, so that a shell has to read it; the path must not be read again.
    let script: OsString = [&command, OsStr::new(" \"$1\"")].into_iter().collect();
    let status = Command::new("sh").arg("-c").arg(script).arg("albireo").arg(path).status();
    let named = || command.to_string_lossy().into_owned();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the editor {} ended with {status}; EDITOR names another", named())),
        Err(error) => Err(format!("cannot start the editor {}: {error}", named())),
    }
}

/// Has a person edit `text`.
pub fn edit_text(text: &str, variable: impl Fn(&str) -> Option<OsString>) -> Result<String, String> {
    let kept = |error: io::Error| format!("cannot use a temporary file: {error}");
    let mut file =
        tempfile::Builder::new().prefix("albireo-edit-").suffix(".sql").tempfile().map_err(kept)?;
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    write!(file, "{text}{end}").and_then(|()| file.flush()).map_err(kept)?;
    edit(file.path(), variable)?;
    // The editor may have put another file in its place.
    let mut found = Vec::new();
    let mut again = albireo_env::Env::real().disk.open(file.path()).map_err(kept)?;
    again.read_to_end(&mut found).map_err(kept)?;
    String::from_utf8(found).map_err(|_| "what was edited is not UTF-8".to_owned())
}

/// Runs a command of the system's shell, or that shell itself; the error says why that was not possible.
pub fn run(command: &str, variable: impl Fn(&str) -> Option<OsString>) -> Result<(), String> {
    let mut program = match command {
        "" => Command::new(variable("SHELL").unwrap_or_else(|| "sh".into())),
        _ => {
            let mut program = Command::new("sh");
            program.arg("-c").arg(command);
            program
        }
    };
    let status = program.stdin(Stdio::inherit()).status();
    status.map(drop).map_err(|error| format!("cannot start {:?}: {error}", program.get_program()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editor_is_the_one_that_the_environment_names_or_vi() {
        let named = |set: &'static str| editor(move |name| (name == set).then(|| "ed -s".into()));
        assert_eq!(
            (named("EDITOR"), named("VISUAL"), named("PAGER")),
            ("ed -s".into(), "ed -s".into(), "vi".into())
        );
    }

    #[test]
    fn text_is_what_the_editor_leaves() {
        let with = |command: &'static str| {
            edit_text("select 1", move |name| (name == "EDITOR").then(|| command.into()))
        };
        assert_eq!(with("true").unwrap(), "select 1\n");
        assert_eq!(with("sed -i -e 's/1/2/' -e '$a-- done'").unwrap(), "select 2\n-- done\n");
        assert!(with("false").unwrap_err().contains("the editor false ended with exit status: 1"));
        assert!(with("printf '\\377' >").unwrap_err().contains("not UTF-8"));
    }
}
