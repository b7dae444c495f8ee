//! Block volumes: images behind loop devices.

use super::*;

#[tokio::test]
async fn a_device_comes_grows_and_goes() {
    let bench = Bench::new();
    let writer = block(Mode::SingleNodeWriter);
    let id = bench.create(request("a", 5 * MIB, writer.clone())).await.unwrap().volume_id;
    let size = || i64::try_from(std::fs::metadata(bench.data(&id)).unwrap().len()).unwrap();
    assert_eq!(size(), 5 * MIB);
    assert_eq!(code(bench.stage(&id, mount(Mode::SingleNodeWriter)).await), Code::InvalidArgument, "of another kind");
    for _ in 0..2 {
        bench.stage(&id, writer.clone()).await.unwrap();
        bench.publish(&id, "device", writer.clone()).await.unwrap();
    }
    let mounted = bench.mounts.mounted();
    let [only] = mounted.as_slice() else { panic!("{mounted:?}") };
    assert_eq!(only.what, sys::mounts::Source::Bind { source: "/dev/loop0".into(), depth: sys::mounts::Depth::One });
    assert!(Path::new(&bench.path("device")).is_file());

    let range = Some(CapacityRange { required_bytes: 8 * MIB, limit_bytes: 0 });
    let grow = ControllerExpandVolumeRequest {
        volume_id: id.clone(),
        capacity_range: range,
        ..ControllerExpandVolumeRequest::default()
    };
    let on_node = NodeExpandVolumeRequest {
        volume_id: id.clone(),
        volume_path: bench.path("device"),
        capacity_range: range,
        ..NodeExpandVolumeRequest::default()
    };
    let early = bench.driver.node_expand_volume(Request::new(on_node.clone())).await;
    assert_eq!(code(early), Code::OutOfRange, "the controller comes first");
    let grown = bench.driver.controller_expand_volume(Request::new(grow)).await.unwrap().into_inner();
    assert!(grown.node_expansion_required && size() == 8 * MIB);
    bench.driver.node_expand_volume(Request::new(on_node)).await.unwrap();
    assert!(bench.tools.lines.lock().iter().any(|line| line == "losetup --set-capacity /dev/loop0"));

    bench.unpublish(&id, "device").await.unwrap();
    assert!(!Path::new(&bench.path("device")).exists());
    assert_eq!(code(bench.delete(&id).await), Code::FailedPrecondition, "its device is there");
    bench.unstage(&id).await.unwrap();
    assert!(bench.tools.loops.lock().is_empty());
    bench.delete(&id).await.unwrap();
}

#[tokio::test]
async fn a_device_is_read_only_by_its_access_mode() {
    let bench = Bench::new();
    let (reader, writer) = (block(Mode::SingleNodeReaderOnly), block(Mode::SingleNodeWriter));
    let id = bench.create(request("a", MIB, reader.clone())).await.unwrap().volume_id;
    bench.stage(&id, reader.clone()).await.unwrap();
    assert!(bench.tools.lines.lock().iter().any(|line| line.contains("--read-only")));
    bench.publish(&id, "device", reader).await.unwrap();
    let other = bench.create(request("b", MIB, writer.clone())).await.unwrap().volume_id;
    bench.stage(&other, writer.clone()).await.unwrap();
    let readonly = NodePublishVolumeRequest {
        volume_id: other,
        staging_target_path: bench.path("staging"),
        target_path: bench.path("other"),
        volume_capability: Some(writer),
        readonly: true,
        ..NodePublishVolumeRequest::default()
    };
    let answer = bench.driver.node_publish_volume(Request::new(readonly)).await;
    assert_eq!(code(answer), Code::InvalidArgument, "nobody could keep the promise");
}
