//! `xtask images`: packs the project's test images as archives that containerd imports. `hack/images.sh` builds the
//! programs and calls this; what the images are called and contain is here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use image_archive::{Entry, ImageSpec, write_archive};

const PAUSE_NAMES: &[&str] = &[
    "registry.k8s.io/pause:3.10.1",
    "registry.k8s.io/pause:3.10.2",
    "registry.k8s.io/pause:3.10",
    "registry.k8s.io/pause:3.9",
    "registry.k8s.io/pause:3.6",
];
const BUSYBOX_NAMES: &[&str] = &[
    "busybox:latest",
    "busybox:1.36",
    "busybox:1.35",
    "busybox:1.28",
    "registry.k8s.io/e2e-test-images/busybox:1.36.1-1",
    "registry.k8s.io/e2e-test-images/busybox:1.29-4",
];
const ECHOSERVER_REPOSITORIES: &[&str] = &["k8s.gcr.io/echoserver", "registry.k8s.io/echoserver"];
const ECHOSERVER_VERSIONS: &[&str] = &["1.4", "1.5"];

/// glibc's static resolver reads nsswitch.conf; without it names in /etc/hosts are not found.
const TEXTS: &[(&str, &str)] = &[
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    (
        "/etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nuser1000:x:1000:1000::/:/bin/sh\n",
    ),
    ("/etc/group", "root:x:0:\nnogroup:x:65534:\nuser1000:x:1000:\n"),
];
const DIRECTORIES: &[(&str, u32)] = &[
    ("/tmp", 0o1777),
    ("/root", 0o700),
    ("/var", 0o755),
    ("/proc", 0o555),
    ("/sys", 0o555),
    ("/dev", 0o755),
    ("/www", 0o755),
];

/// Where the contents are found and the archives go.
struct Places {
    programs: PathBuf,
    busybox: PathBuf,
    /// A file with one applet name per line.
    applets: PathBuf,
    out: PathBuf,
}

/// Runs the task with the arguments that follow its name.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let places = places(arguments)?;
    fs::create_dir_all(&places.out).with_context(|| format!("creating {}", places.out.display()))?;
    let userland = userland(&places)?;
    write(&places.out, "pause", &pause(&places)?)?;
    write(&places.out, "busybox", &busybox(userland.clone()))?;
    for version in ECHOSERVER_VERSIONS {
        write(&places.out, &format!("echoserver-{version}"), &echoserver(&places, version, userland.clone())?)?;
    }
    Ok(())
}

fn places(arguments: impl Iterator<Item = String>) -> anyhow::Result<Places> {
    const USAGE: &str = "usage: xtask images --programs DIR --busybox FILE --applets FILE --out DIR";
    let mut given = BTreeMap::new();
    let mut arguments = arguments;
    while let Some(name) = arguments.next() {
        if !["--programs", "--busybox", "--applets", "--out"].contains(&name.as_str()) {
            bail!("unknown argument {name:?}; {USAGE}");
        }
        given.insert(name, PathBuf::from(arguments.next().context(USAGE)?));
    }
    let mut take = |name: &str| given.remove(name).with_context(|| format!("{name} is missing; {USAGE}"));
    Ok(Places {
        programs: take("--programs")?,
        busybox: take("--busybox")?,
        applets: take("--applets")?,
        out: take("--out")?,
    })
}

fn pause(places: &Places) -> anyhow::Result<ImageSpec> {
    Ok(ImageSpec {
        names: owned(PAUSE_NAMES),
        entries: vec![program(&places.programs.join("pause"), "/pause")?],
        entrypoint: owned(&["/pause"]),
        user: "65535:65535".to_owned(),
        ..ImageSpec::default()
    })
}

fn busybox(userland: Vec<Entry>) -> ImageSpec {
    ImageSpec { names: owned(BUSYBOX_NAMES), entries: userland, command: owned(&["sh"]), ..ImageSpec::default() }
}

/// Every version is the same program; the environment tells it which one to say it is.
fn echoserver(places: &Places, version: &str, userland: Vec<Entry>) -> anyhow::Result<ImageSpec> {
    let mut entries = vec![program(&places.programs.join("echoserver"), "/echoserver")?];
    entries.extend(userland);
    Ok(ImageSpec {
        names: ECHOSERVER_REPOSITORIES.iter().map(|repository| format!("{repository}:{version}")).collect(),
        entries,
        entrypoint: owned(&["/echoserver"]),
        env: vec![format!("ECHOSERVER_VERSION={version}")],
        exposed_ports: owned(&["8080/tcp"]),
        ..ImageSpec::default()
    })
}

/// A shell and the usual commands, as hard links to busybox, with the few files that a C library looks for.
fn userland(places: &Places) -> anyhow::Result<Vec<Entry>> {
    let mut entries: Vec<_> =
        DIRECTORIES.iter().map(|(path, mode)| Entry::Directory { path: (*path).to_owned(), mode: *mode }).collect();
    entries.extend(TEXTS.iter().map(|(path, text)| Entry::File {
        path: (*path).to_owned(),
        mode: 0o644,
        data: text.as_bytes().to_vec(),
    }));
    entries.push(program(&places.busybox, "/bin/busybox")?);
    let applets =
        fs::read_to_string(&places.applets).with_context(|| format!("reading {}", places.applets.display()))?;
    entries.extend(
        applets
            .lines()
            .map(str::trim)
            .filter(|name| !name.is_empty() && *name != "busybox")
            .map(|name| Entry::HardLink { path: format!("/bin/{name}"), target: "/bin/busybox".to_owned() }),
    );
    Ok(entries)
}

fn program(from: &Path, to: &str) -> anyhow::Result<Entry> {
    let data = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
    Ok(Entry::File { path: to.to_owned(), mode: 0o755, data })
}

/// Writes beside the target and renames, so that a reader never sees half an archive.
fn write(out: &Path, name: &str, spec: &ImageSpec) -> anyhow::Result<()> {
    let target = out.join(format!("{name}.tar"));
    let partial = out.join(format!("{name}.tar.partial"));
    let mut bytes = Vec::new();
    write_archive(spec, &mut bytes).with_context(|| format!("packing {name}"))?;
    fs::write(&partial, &bytes).with_context(|| format!("writing {}", partial.display()))?;
    fs::rename(&partial, &target).with_context(|| format!("renaming to {}", target.display()))
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
