//! `xtask component-image`: packs a binary of the project, with the shared libraries that it needs and programs of
//! this machine that it calls, as an image archive.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use image_archive::{Entry, ImageSpec, write_archive};

const USAGE: &str = "usage: xtask component-image BINARY IMAGE OUT.tar [PROGRAM...]";

/// Runs the task with the arguments that follow its name.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut next = || arguments.next().context(USAGE);
    let (binary, image, out) = (PathBuf::from(next()?), next()?, PathBuf::from(next()?));
    let name = binary.file_name().and_then(|name| name.to_str()).context(USAGE)?.to_owned();
    let inside = format!("/usr/bin/{name}");
    let mut entries = vec![Entry::File { path: inside.clone(), mode: 0o755, data: stripped(&binary)? }];
    let mut needed = libraries(&binary)?;
    for program in arguments {
        let path = installed(&program)?;
        needed.extend(libraries(&path)?);
        needed.insert(format!("/usr/bin/{program}"), path);
    }
    for (path, target) in needed {
        entries.push(file(&target, &path)?);
    }
    entries.push(Entry::Directory { path: "/tmp".into(), mode: 0o1777 });
    let spec = ImageSpec { names: vec![image], entries, entrypoint: vec![inside], ..ImageSpec::default() };
    if let Some(directory) = out.parent() {
        fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
    }
    let mut bytes = Vec::new();
    write_archive(&spec, &mut bytes).with_context(|| format!("packing {name}"))?;
    fs::write(&out, &bytes).with_context(|| format!("writing {}", out.display()))
}

/// Where a program is on this machine.
fn installed(program: &str) -> anyhow::Result<PathBuf> {
    let places = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].map(|place| Path::new(place).join(program));
    places.into_iter().find(|path| path.is_file()).with_context(|| format!("{program} is not installed"))
}

fn file(from: &Path, to: &str) -> anyhow::Result<Entry> {
    let data = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
    Ok(Entry::File { path: to.to_owned(), mode: 0o755, data })
}

/// The binary without what only a debugger reads, which is most of a debug build.
#[expect(clippy::disallowed_methods, reason = "a developer tool may start strip")]
fn stripped(binary: &Path) -> anyhow::Result<Vec<u8>> {
    let target = std::env::temp_dir().join(format!("coxswain-stripped-{}", std::process::id()));
    let output = std::process::Command::new("strip").arg("-o").arg(&target).arg(binary).output();
    let output = output.context("starting strip (Debian: binutils)")?;
    ensure!(output.status.success(), "strip {}: {}", binary.display(), String::from_utf8_lossy(&output.stderr));
    let data = fs::read(&target).with_context(|| format!("reading {}", target.display()));
    fs::remove_file(&target).with_context(|| format!("removing {}", target.display()))?;
    data
}

/// Where the loader looks for each library, and where it is on this machine.
#[expect(clippy::disallowed_methods, reason = "a developer tool may start ldd")]
fn libraries(binary: &Path) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let output = std::process::Command::new("ldd").arg(binary).output().context("starting ldd")?;
    ensure!(output.status.success(), "ldd {}: {}", binary.display(), String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(paths.map(|path| (path.to_owned(), PathBuf::from(path))).collect())
}
