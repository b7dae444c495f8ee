//! Developer tasks that deserve more than shell: `cargo xtask check` holds the tree to its own rules.

mod additions;
mod component_image;
mod dependencies;
mod hot_code;
mod images;
mod layers;
mod metadata;
mod mutants;
mod patches;
mod sizes;
mod vulnerabilities;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "usage: cargo xtask TASK

  check            layers, dependencies, licences, file sizes, the table of attacks, and that patches of tests fit
  additions [--all] add a kind, a version, a controller and plugins in a copy of the tree, and see that they work there
  mutants [NAME]   plant the bugs of tests/mutants, and see that the tests catch each
  images           pack the test images (hack/images.sh calls this)
  component-image  pack a binary of the project as an image
  hot-code         which functions of a program lie together in its file (make build calls this)";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("check") => check(),
        Some("additions") => {
            let root = metadata::workspace_root(&metadata::load()?)?;
            additions::run(&root, arguments.next().as_deref() == Some("--all"))
        }
        Some("component-image") => component_image::run(arguments),
        Some("hot-code") => hot_code::run(arguments),
        Some("images") => images::run(arguments),
        Some("mutants") => {
            let root = metadata::workspace_root(&metadata::load()?)?;
            mutants::run(&root, &arguments.next().unwrap_or_default())
        }
        _ => bail!("{USAGE}"),
    }
}

fn check() -> Result<()> {
    let metadata = metadata::load()?;
    let root = metadata::workspace_root(&metadata)?;
    let mut problems = layers::problems(&metadata)?;
    problems.extend(dependencies::problems(&metadata)?);
    problems.extend(sizes::problems(&root)?);
    problems.extend(vulnerabilities::problems(&root)?);
    problems.extend(mutants::problems(&root)?);
    problems.extend(additions::problems(&root)?);
    for problem in &problems {
        report(problem);
    }
    if problems.is_empty() {
        report(
            "layers, dependencies, licences, sizes, the table of attacks, planted bugs and additions are as they should be",
        );
        return Ok(());
    }
    bail!("{} problems", problems.len())
}

#[expect(clippy::print_stderr, reason = "this tool talks to its user")]
fn report(line: &str) {
    eprintln!("{line}");
}
