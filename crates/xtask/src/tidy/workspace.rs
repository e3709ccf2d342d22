//! The workspace as `cargo metadata` sees it.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The workspace's crates and everything they depend on.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// Members, by directory name under `crates/`.
    pub crates: BTreeMap<String, Crate>,
    /// For each package id in the resolved graph: its name and the ids it needs, development
    /// dependencies left out.
    pub graph: BTreeMap<String, (String, Vec<String>)>,
}

/// One member.
#[derive(Clone, Debug, Default)]
pub struct Crate {
    /// Package id, as in [`Workspace::graph`].
    pub id: String,
    /// Package name.
    pub package: String,
    /// Names of the packages it asks for, of every kind.
    pub dependencies: Vec<String>,
    /// Root files of its library and programs, from the repository's root.
    pub roots: Vec<String>,
}

/// Asks cargo.
pub fn read(root: &Path) -> Result<Workspace, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata gave no JSON: {error}"))?;
    Ok(from_metadata(&metadata, root))
}

fn from_metadata(metadata: &Value, root: &Path) -> Workspace {
    let relative = |path: &Value| {
        let path = Path::new(text(path));
        path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
    };
    let mut workspace = Workspace::default();
    let members: Vec<&str> = list(&metadata["workspace_members"]).map(text).collect();
    let mut names = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let id = text(&package["id"]);
        names.insert(id, text(&package["name"]));
        if !members.contains(&id) {
            continue;
        }
        let manifest = relative(&package["manifest_path"]);
        let directory = manifest.rsplit('/').nth(1).unwrap_or_default().to_owned();
        let is_root = |target: &&Value| list(&target["kind"]).any(|kind| matches!(text(kind), "lib" | "bin"));
        let member = Crate {
            id: id.to_owned(),
            package: text(&package["name"]).to_owned(),
            dependencies: list(&package["dependencies"]).map(|d| text(&d["name"]).to_owned()).collect(),
            roots: list(&package["targets"]).filter(is_root).map(|t| relative(&t["src_path"])).collect(),
        };
        workspace.crates.insert(directory, member);
    }
    for node in list(&metadata["resolve"]["nodes"]) {
        let id = text(&node["id"]);
        let needed = |dep: &&Value| list(&dep["dep_kinds"]).any(|kind| text(&kind["kind"]) != "dev");
        let needs = list(&node["deps"]).filter(needed).map(|dep| text(&dep["pkg"]).to_owned()).collect();
        let name = names.get(id).copied().unwrap_or_default().to_owned();
        workspace.graph.insert(id.to_owned(), (name, needs));
    }
    workspace
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_becomes_crates_by_directory_and_a_graph_without_development_dependencies() {
        let metadata = json!({
            "workspace_members": ["sql#1"],
            "packages": [
                {"id": "sql#1", "name": "albireo-sql", "manifest_path": "/r/crates/sql/Cargo.toml",
                 "dependencies": [{"name": "serde"}],
                 "targets": [{"kind": ["lib"], "src_path": "/r/crates/sql/src/lib.rs"},
                             {"kind": ["test"], "src_path": "/r/crates/sql/tests/a.rs"}]},
                {"id": "serde#1", "name": "serde", "manifest_path": "/c/Cargo.toml"}
            ],
            "resolve": {"nodes": [{"id": "sql#1", "deps": [
                {"pkg": "serde#1", "dep_kinds": [{"kind": null}]},
                {"pkg": "proptest#1", "dep_kinds": [{"kind": "dev"}]}
            ]}]}
        });
        let workspace = from_metadata(&metadata, Path::new("/r"));
        let sql = &workspace.crates["sql"];
        assert_eq!(sql.package, "albireo-sql");
        assert_eq!(sql.dependencies, ["serde"]);
        assert_eq!(sql.roots, ["crates/sql/src/lib.rs"]);
        assert_eq!(workspace.graph["sql#1"].1, ["serde#1"]);
    }
}
