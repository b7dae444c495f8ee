//! Developer tasks that deserve more than shell: `cargo xtask check` holds the tree to its own rules.

mod component_image;
mod dependencies;
mod images;
mod layers;
mod metadata;
mod sizes;
mod vulnerabilities;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "usage: cargo xtask TASK

  check            layers, dependencies, licences, file sizes and the table of attacks
  images           pack the test images (hack/images.sh calls this)
  component-image  pack a binary of the project as an image";

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
        Some("component-image") => component_image::run(arguments),
        Some("images") => images::run(arguments),
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
    for problem in &problems {
        report(problem);
    }
    if problems.is_empty() {
        report("layers, dependencies, licences, sizes and the table of attacks are as they should be");
        return Ok(());
    }
    bail!("{} problems", problems.len())
}

#[expect(clippy::print_stderr, reason = "this tool talks to its user")]
fn report(line: &str) {
    eprintln!("{line}");
}
