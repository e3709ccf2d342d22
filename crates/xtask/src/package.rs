//! `cargo xtask package`: every crate as it would be published, and README's Rust example in a crate of its own.
//!
//! Responsible for: packing with `cargo package`, unpacking, building and running the example against the unpacked
//! packages. Not responsible for: publishing.
//!
//! The new crate lies in `target/package-check`. It takes the versions of `Cargo.lock` and the workspace's profile, so
//! that the libraries that the tests have built are used again.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Packages that stay here: tools of this repository.
const UNPUBLISHED: [&str; 3] = ["albireo-sim", "albireo-testing", "xtask"];

/// Packs all crates, then builds and runs the example.
///
/// # Errors
/// A crate cannot be packed, README has no Rust example, or the example does not build or fails.
pub fn run(root: &Path) -> Result<(), String> {
    let mut pack = cargo(root);
    pack.args(["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"]);
    UNPUBLISHED.iter().for_each(|name| {
        pack.args(["--exclude", name]);
    });
    succeed(pack)?;
    let packages = root.join("target/package");
    let names = unpack(&packages)?;
    let readme = read(&root.join("README.md"))?;
    let example = rust_example(&readme).ok_or("README.md has no code block that begins with ```rust")?;
    let new = root.join("target/package-check");
    write(&new.join("src/main.rs"), example)?;
    write(&new.join("Cargo.toml"), &manifest(&read(&root.join("Cargo.toml"))?, &packages, &names))?;
    write(&new.join("Cargo.lock"), &read(&root.join("Cargo.lock"))?)?;
    let mut example = cargo(&new);
    example.args(["run", "--quiet", "--target-dir"]).arg(root.join("target"));
    succeed(example)?;
    println!("{} crates packed; README's example builds against them and runs", names.len());
    Ok(())
}

/// Unpacks every package of the workspace; gives the names of the folders, `albireo-0.1.0` for instance.
fn unpack(packages: &Path) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let entries = fs::read_dir(packages).map_err(|error| format!("{}: {error}", packages.display()))?;
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", packages.display()))?;
        let file = entry.file_name().to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix(".crate") else { continue };
        let mut tar = Command::new("tar");
        tar.current_dir(packages).args(["xzf", &file]);
        succeed(tar)?;
        names.push(name.to_owned());
    }
    names.sort();
    Ok(names)
}

/// The first block of Rust in a Markdown text.
fn rust_example(markdown: &str) -> Option<&str> {
    let (_, rest) = markdown.split_once("```rust\n")?;
    rest.split_once("```").map(|(block, _)| block)
}

/// The manifest of a crate that depends on the unpacked library alone.
fn manifest(workspace: &str, packages: &Path, names: &[String]) -> String {
    let mut text = String::from(
        "[package]\nname = \"first-steps\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nalbireo = \"0.1.0\"\n\n[patch.crates-io]\n",
    );
    for folder in names {
        let name = folder.rsplit_once('-').map_or(folder.as_str(), |(name, _)| name);
        let path = packages.join(folder);
        writeln!(text, "{name} = {{ path = {:?} }}", path.display().to_string())
            .expect("strings take everything");
    }
    if let Some(start) = workspace.find("[profile.dev]") {
        let end = workspace.find("[profile.release]").unwrap_or(workspace.len()).max(start);
        text.push('\n');
        text.push_str(&workspace[start..end]);
    }
    text
}

fn cargo(directory: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(directory);
    command
}

fn succeed(mut command: Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().expect("a file lies in a folder");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_is_the_first_block_of_rust() {
        let text = "a\n```sh\nx\n```\n```rust\nfn main() {}\n```\n```rust\nno\n```\n";
        assert_eq!(rust_example(text), Some("fn main() {}\n"));
        assert_eq!(rust_example("```sh\nx\n```\n"), None);
    }

    #[test]
    fn manifest_takes_each_package_from_its_folder_and_the_profile_of_the_workspace() {
        let workspace = "[workspace]\n[profile.dev]\nopt-level = 1\n[profile.release]\ndebug = false\n";
        let names = ["albireo-0.1.0".to_owned(), "albireo-base-0.1.0".to_owned()];
        let text = manifest(workspace, Path::new("/p"), &names);
        assert!(text.contains("albireo = { path = \"/p/albireo-0.1.0\" }\n"), "{text}");
        assert!(text.contains("albireo-base = { path = \"/p/albireo-base-0.1.0\" }\n"), "{text}");
        assert!(
            text.contains("[profile.dev]\nopt-level = 1\n") && !text.contains("profile.release"),
            "{text}"
        );
    }
}
