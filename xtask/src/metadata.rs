//! What cargo knows of the workspace and its dependencies.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Packages, features and edges as cargo resolves them.
pub(crate) fn load() -> Result<Value> {
    let output = cargo(&["metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM])?;
    serde_json::from_slice(&output).context("reading cargo metadata")
}

/// The names of the packages that are really built. `cargo metadata` also lists optional ones that nobody turned on.
pub(crate) fn built() -> Result<Vec<String>> {
    let output =
        cargo(&["tree", "--locked", "--workspace", "--target", PLATFORM, "--prefix", "none", "--format", "{p}"])?;
    let text = String::from_utf8_lossy(&output);
    Ok(text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

#[expect(clippy::disallowed_methods, reason = "a developer tool may start cargo")]
fn cargo(arguments: &[&str]) -> Result<Vec<u8>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = std::process::Command::new(cargo).args(arguments).output().context("starting cargo")?;
    ensure!(output.status.success(), "cargo {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}

pub(crate) fn workspace_root(metadata: &Value) -> Result<PathBuf> {
    metadata["workspace_root"].as_str().map(PathBuf::from).context("cargo metadata names no workspace root")
}

/// The packages of the workspace.
pub(crate) fn members(metadata: &Value) -> Vec<&Value> {
    let ids: Vec<&str> =
        metadata["workspace_members"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    packages(metadata).filter(|package| package["id"].as_str().is_some_and(|id| ids.contains(&id))).collect()
}

/// Every package of the graph.
pub(crate) fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

/// A text member of a package, empty where it is missing.
pub(crate) fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package[key].as_str().unwrap_or_default()
}
