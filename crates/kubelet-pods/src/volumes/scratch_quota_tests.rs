//! Over a file system that counts what a test says.

use api_machinery::quantity::Quantity;
use api_types::core_v1::Container;
use sys::project_quota::FakeProjectQuotas;

use super::*;

/// A kubelet's root, an `/etc`, and a file system.
struct Bench {
    dir: tempfile::TempDir,
    fake: Arc<FakeProjectQuotas>,
}

impl Bench {
    fn new(fake: FakeProjectQuotas) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), fake: Arc::new(fake) }
    }

    /// What a kubelet knows that was just started.
    fn quotas(&self) -> Arc<ScratchQuotas> {
        ScratchQuotas::new(self.fake.clone(), self.dir.path())
    }

    fn volume(&self, name: &str) -> std::path::PathBuf {
        let path = self.dir.path().join("pods/u/volumes").join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn noted(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("projects")).unwrap_or_default()
    }
}

fn pod() -> Pod {
    let mut pod = Pod::default();
    pod.spec.host_users = Some(false);
    pod
}

fn source() -> EmptyDirVolumeSource {
    EmptyDirVolumeSource::default()
}

const SOME: ProjectUse = ProjectUse { bytes: 4096, inodes: 1 };

#[test]
fn a_volume_is_a_project_until_it_goes() {
    let bench = Bench::new(FakeProjectQuotas::counting());
    let (one, two) = (bench.volume("one"), bench.volume("two"));
    for path in [&one, &two] {
        bench.quotas().assign(&pod(), &source(), path);
    }
    assert_eq!(bench.fake.project(&one).unwrap(), FIRST);
    assert_eq!(bench.fake.project(&two).unwrap(), FIRST + 1);
    let expected = format!("{FIRST}:{}\n{}:{}\n", one.display(), FIRST + 1, two.display());
    assert_eq!(bench.noted(), expected);
    assert_eq!(bench.quotas().used(&pod(), &source(), &one), None, "not even the directory was counted");
    bench.fake.uses(FIRST, SOME);
    assert_eq!(bench.quotas().used(&pod(), &source(), &one), Some(SOME), "found on the directory");
    bench.fake.limit(&one, FIRST, ProjectLimit::Highest).unwrap();
    bench.quotas().clear(&one);
    assert_eq!(bench.fake.limit_of(FIRST), Some(ProjectLimit::None));
    assert_eq!(bench.noted(), format!("{}:{}\n", FIRST + 1, two.display()));
    // It still has something of the project, so that no other volume gets it.
    let three = bench.volume("three");
    bench.quotas().assign(&pod(), &source(), &three);
    assert_eq!(bench.fake.project(&three).unwrap(), FIRST + 2);
}

#[test]
fn only_scratch_on_disk_of_pods_with_own_users_counts() {
    let memory = EmptyDirVolumeSource { medium: "Memory".into(), ..source() };
    let with = |host_users| {
        let mut pod = pod();
        pod.spec.host_users = host_users;
        pod
    };
    for (name, pod, source, counts) in [
        ("own users", with(Some(false)), source(), true),
        ("the node's", with(Some(true)), source(), false),
        ("by default the node's", with(None), source(), false),
        ("in memory", with(Some(false)), memory, false),
    ] {
        let bench = Bench::new(FakeProjectQuotas::counting());
        let path = bench.volume("v");
        bench.quotas().assign(&pod, &source, &path);
        bench.quotas().adopt(&pod, &source, &path);
        assert_eq!(bench.fake.calls() > 0, counts, "{name}");
        bench.fake.assign(&path, FIRST).unwrap();
        bench.fake.uses(FIRST, SOME);
        assert_eq!(bench.quotas().used(&pod, &source, &path).is_some(), counts, "{name}");
    }
}

#[test]
fn a_limit_nobody_reaches_is_written_where_there_is_one() {
    let quantity = |text: &str| Some(Quantity::parse(text).unwrap());
    let limited = |size: &str| EmptyDirVolumeSource { size_limit: quantity(size), ..source() };
    let mut limited_pod = pod();
    let mut container = Container::default();
    container.resources.limits.insert("ephemeral-storage".into(), Quantity::parse("1Gi").unwrap());
    limited_pod.spec.containers.push(container);
    for (pod, source, expected) in [
        (pod(), source(), ProjectLimit::None),
        (pod(), limited("0"), ProjectLimit::None),
        (pod(), limited("1Mi"), ProjectLimit::Highest),
        (limited_pod, source(), ProjectLimit::Highest),
    ] {
        let bench = Bench::new(FakeProjectQuotas::counting());
        bench.quotas().assign(&pod, &source, &bench.volume("v"));
        assert_eq!(bench.fake.limit_of(FIRST), Some(expected), "{:?}", source.size_limit);
    }
}

#[test]
fn projects_that_are_not_the_volumes_own_do_not_count() {
    let bench = Bench::new(FakeProjectQuotas::counting());
    let (path, full) = (bench.volume("v"), bench.volume("full"));
    // Everything below the root is somebody's project.
    bench.fake.assign(bench.dir.path(), FIRST + 9).unwrap();
    bench.fake.uses(FIRST + 9, SOME);
    assert_eq!(bench.quotas().used(&pod(), &source(), &path), None);
    bench.quotas().clear(&path);
    assert_eq!(bench.fake.limit_of(FIRST + 9), None);
    bench.fake.assign(&path, 12).unwrap();
    bench.fake.uses(12, SOME);
    assert_eq!(bench.quotas().used(&pod(), &source(), &path), None, "a number that people give");
    bench.quotas().assign(&pod(), &source(), &path);
    assert_eq!(bench.fake.project(&path).unwrap(), FIRST, "new volumes get their own all the same");
    std::fs::write(full.join("file"), "x").unwrap();
    bench.quotas().assign(&pod(), &source(), &full);
    assert_eq!(bench.fake.project(&full).unwrap(), FIRST + 9, "what is in it would not count");
}

#[test]
fn another_kubelet_goes_on_where_one_was_stopped() {
    let bench = Bench::new(FakeProjectQuotas::counting());
    let path = bench.volume("v");
    // Noted, and no more.
    let files = ProjectFiles::in_directory(bench.dir.path());
    files.take(&path, &|_| Ok(true)).unwrap();
    bench.quotas().assign(&pod(), &source(), &path);
    assert_eq!(bench.fake.project(&path).unwrap(), FIRST);
    let noted = bench.noted();
    // Assigned, but not marked as ready.
    bench.quotas().assign(&pod(), &source(), &path);
    assert_eq!((bench.fake.project(&path).unwrap(), bench.noted()), (FIRST, noted.clone()));
    // Ready, but `/etc` was made anew.
    for file in ["projects", "projid"] {
        std::fs::remove_file(bench.dir.path().join(file)).unwrap();
    }
    bench.quotas().adopt(&pod(), &source(), &path);
    assert_eq!(bench.noted(), noted);
    // Noted, and no more, and the pod is gone.
    bench.fake.assign(&path, 0).unwrap();
    bench.quotas().clear(&path);
    assert_eq!(bench.noted(), "");
}

#[test]
fn whatever_fails_leaves_a_volume_that_is_walked_through() {
    for call in ["counts", "project", "used", "limit", "assign"] {
        let bench = Bench::new(FakeProjectQuotas::counting());
        let (quotas, path) = (bench.quotas(), bench.volume("v"));
        bench.fake.refuse(call);
        quotas.assign(&pod(), &source(), &path);
        assert!(quotas.told.load(Ordering::Relaxed), "{call}: nobody was told");
        assert_eq!(quotas.used(&pod(), &source(), &path), None, "{call}");
        assert_eq!(bench.noted(), "", "{call}: a number is kept for nothing");
        quotas.clear(&path);
    }
    let bench = Bench::new(FakeProjectQuotas::default());
    bench.quotas().assign(&pod(), &source(), &bench.volume("v"));
    assert_eq!(bench.noted(), "", "the file system does not count");
    let bench = Bench::new(FakeProjectQuotas::counting());
    std::fs::create_dir(bench.dir.path().join("projid")).unwrap();
    let path = bench.volume("v");
    bench.quotas().assign(&pod(), &source(), &path);
    assert_eq!(bench.fake.project(&path).unwrap(), 0, "nothing can be noted");
}
