//! A volume whose user has planted links before the kubelet writes to it again (CVE-2017-1002102).

use std::os::unix::fs::symlink;
use std::time::Duration;

use super::*;

fn put(target: &Path, files: &[(&str, &str)], seed: u64) -> Result<Written, WriteError> {
    let content = |text: &str| Content { bytes: text.as_bytes().to_vec(), mode: 0o644, owner: None };
    let payload: Payload = files.iter().map(|(path, text)| ((*path).to_owned(), content(text))).collect();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seed);
    write(target, &payload, now, &Rng::seeded(seed), &|_| Ok(()))
}

/// Every file below a directory, with its content.
fn tree(at: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path))
        } else {
            found.push((path.clone(), fs::read_to_string(path).unwrap()))
        }
    }
    found.sort();
    found
}

#[test]
fn planted_links_lead_no_deletion_out_of_the_volume() {
    type Plant = fn(&Path, &Path);
    let plants: [(&str, Plant); 6] = [
        ("a file", |target, host| {
            fs::remove_file(target.join("a")).unwrap();
            symlink(host.join("a"), target.join("a")).unwrap();
        }),
        ("a directory", |target, host| {
            fs::remove_file(target.join("deep")).unwrap();
            symlink(host, target.join("deep")).unwrap();
        }),
        ("the data, absolute", |target, host| {
            fs::remove_file(target.join("..data")).unwrap();
            symlink(host, target.join("..data")).unwrap();
        }),
        ("the data, climbing", |target, _| {
            fs::remove_file(target.join("..data")).unwrap();
            symlink("../host", target.join("..data")).unwrap();
        }),
        ("the new data", |target, host| symlink(host, target.join("..data_tmp")).unwrap()),
        ("within the data", |target, host| {
            let data = target.join(fs::read_link(target.join("..data")).unwrap());
            fs::remove_dir_all(data.join("deep")).unwrap();
            symlink(host, data.join("deep")).unwrap();
        }),
    ];
    for (name, plant) in plants {
        let dir = tempfile::tempdir().unwrap();
        let (target, host) = (dir.path().join("volume"), dir.path().join("host"));
        fs::create_dir_all(&target).unwrap();
        fs::create_dir_all(host.join("deep")).unwrap();
        for file in ["a", "b", "deep/b"] {
            fs::write(host.join(file), "the host's").unwrap();
        }
        let before = tree(&host);
        put(&target, &[("a", "1"), ("deep/b", "1")], 1).unwrap();
        plant(&target, &host);
        // Whether the writer goes on or gives up is its own affair.
        for (seed, files) in [(2, &[("a", "2"), ("deep/b", "2")][..]), (3, &[("c", "3")]), (4, &[])] {
            drop(put(&target, files, seed));
            assert_eq!(tree(&host), before, "{name}");
        }
        sys::fs::remove_tree(&target).unwrap();
        assert_eq!(tree(&host), before, "{name}");
    }
}
