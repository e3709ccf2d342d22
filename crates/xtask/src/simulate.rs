//! `cargo xtask simulate`: simulations of seeds that nobody has run before, with optimized code.

use std::path::Path;
use std::process::Command;

/// For how long, if nobody says.
const MINUTES: &str = "10";

/// Runs `albireo-sim` with `arguments`.
///
/// # Errors
/// A simulation found something, whose seed it has printed, or the program could not be built.
pub fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let status = command(root, arguments).status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("simulation: {status}")) }
}

fn command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["run", "--release", "--package", "albireo-sim", "--"]);
    match arguments {
        [] => command.args(["--minutes", MINUTES]),
        arguments => command.args(arguments),
    };
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulation_runs_for_some_minutes_unless_told_otherwise() {
        let shown = |arguments: &[&str]| format!("{:?}", command(Path::new("r"), arguments));
        assert!(shown(&[]).ends_with("\"--\" \"--minutes\" \"10\""), "{}", shown(&[]));
        assert!(shown(&["--seed", "7"]).ends_with("\"--\" \"--seed\" \"7\""));
    }
}
