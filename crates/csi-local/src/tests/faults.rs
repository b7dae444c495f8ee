//! Callers that give up, processes that are killed, machines that refuse.

use super::*;

/// The volume of a name, and a request to clone it.
async fn to_clone(bench: &Bench) -> CreateVolumeRequest {
    let volume_id = bench.create(directory("original", MIB)).await.unwrap().volume_id;
    std::fs::write(bench.data(&volume_id).join("file"), "whole").unwrap();
    let kind = volume_content_source::Type::Volume(volume_content_source::VolumeSource { volume_id });
    let volume_content_source = Some(VolumeContentSource { r#type: Some(kind) });
    CreateVolumeRequest { volume_content_source, ..directory("clone", MIB) }
}

/// Takes all permits to copy, so that the next copy waits.
fn hold_copies(bench: &Bench) -> usize {
    bench.tools.copies.forget_permits(usize::MAX)
}

#[tokio::test]
async fn who_gives_up_and_comes_back_finds_it_done() {
    let bench = Bench::new();
    let request = to_clone(&bench).await;
    let held = hold_copies(&bench);
    let given_up = tokio::time::timeout(Duration::from_millis(50), bench.create(request.clone())).await;
    assert!(given_up.is_err());
    assert_eq!(code(bench.create(request.clone()).await), Code::Aborted, "it is at work still");
    let original = crate::record::volume_id("original");
    assert_eq!(code(bench.delete(&original).await), Code::Aborted, "nobody takes away what is being copied");
    bench.tools.copies.add_permits(held);
    let made = loop {
        match bench.create(request.clone()).await {
            Err(status) if status.code() == Code::Aborted => tokio::time::sleep(Duration::from_millis(5)).await,
            other => break other.unwrap(),
        }
    };
    assert_eq!(std::fs::read_to_string(bench.data(&made.volume_id).join("file")).unwrap(), "whole");
    let copies = bench.tools.lines.lock().iter().filter(|line| line.starts_with("cp ")).count();
    assert_eq!(copies, 1, "it was copied once");
}

#[test]
fn a_kill_in_the_middle_of_a_copy_leaves_no_volume() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let killed = runtime();
    let mut bench = Bench::new();
    let clone = crate::record::volume_id("clone");
    let (request, held) = killed.block_on(async {
        let request = to_clone(&bench).await;
        let held = hold_copies(&bench);
        let waiting = tokio::time::timeout(Duration::from_millis(50), bench.create(request.clone())).await;
        assert!(waiting.is_err());
        (request, held)
    });
    // All that it was at work on ends where it is.
    drop(killed);
    let half = bench.root.path().join("kept/building").join(&clone).join("data/half");
    std::fs::create_dir_all(&half).unwrap();
    bench.restart();
    assert!(!bench.data(&clone).exists() && !half.exists(), "half a volume is none");
    bench.tools.copies.add_permits(held);
    runtime().block_on(bench.create(request)).unwrap();
    assert!(bench.data(&clone).join("file").is_file() && !bench.data(&clone).join("half").exists());
}

#[tokio::test]
async fn a_mount_that_is_refused_can_be_tried_again() {
    let mut bench = Bench::new();
    let writer = mount(Mode::SingleNodeWriter);
    let id = bench.create(directory("a", MIB)).await.unwrap().volume_id;
    bench.stage(&id, writer.clone()).await.unwrap();
    bench.mounts.refuse(bench.path("busy"));
    assert_eq!(code(bench.publish(&id, "busy", writer.clone()).await), Code::Internal);
    bench.restart();
    // It was noted before it was tried, and nothing is there.
    bench.unpublish(&id, "busy").await.unwrap();
    assert!(!Path::new(&bench.path("busy")).exists());
    bench.publish(&id, "free", writer).await.unwrap();
    bench.unpublish(&id, "free").await.unwrap();
    bench.unstage(&id).await.unwrap();
    bench.delete(&id).await.unwrap();
}

#[tokio::test]
async fn what_a_pod_left_in_its_directory_is_never_removed_with_the_target() {
    let bench = Bench::new();
    let writer = mount(Mode::SingleNodeWriter);
    let id = bench.create(directory("a", MIB)).await.unwrap().volume_id;
    bench.stage(&id, writer.clone()).await.unwrap();
    bench.publish(&id, "target", writer).await.unwrap();
    std::fs::write(Path::new(&bench.path("target")).join("file"), "somebody's").unwrap();
    assert_eq!(code(bench.unpublish(&id, "target").await), Code::Internal);
    assert!(Path::new(&bench.path("target")).join("file").is_file());
}
