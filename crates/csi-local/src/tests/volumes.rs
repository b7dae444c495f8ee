//! Volumes with a filesystem: what they hold, where they are, how much there is.

use super::*;

#[tokio::test]
async fn what_a_volume_holds_is_in_its_clone_and_in_what_is_restored() {
    let mut bench = Bench::new();
    let original = bench.create(directory("a", 5 * MIB)).await.unwrap().volume_id;
    std::fs::write(bench.data(&original).join("file"), "then").unwrap();
    let snapshot = CreateSnapshotRequest {
        name: "s".into(),
        source_volume_id: original.clone(),
        ..CreateSnapshotRequest::default()
    };
    let snapshot = bench.driver.create_snapshot(Request::new(snapshot)).await.unwrap().into_inner().snapshot.unwrap();
    std::fs::write(bench.data(&original).join("file"), "now").unwrap();
    bench.restart();
    let of = |name: &str, size: i64, kind| CreateVolumeRequest {
        volume_content_source: Some(VolumeContentSource { r#type: Some(kind) }),
        ..directory(name, size)
    };
    let by_volume = || {
        let volume_id = original.clone();
        volume_content_source::Type::Volume(volume_content_source::VolumeSource { volume_id })
    };
    let by_snapshot = || {
        let snapshot_id = snapshot.snapshot_id.clone();
        volume_content_source::Type::Snapshot(volume_content_source::SnapshotSource { snapshot_id })
    };
    let clone = bench.create(of("b", 0, by_volume())).await.unwrap();
    assert_eq!(clone.capacity_bytes, 5 * MIB, "as large as what it is of");
    let restored = bench.create(of("c", 6 * MIB, by_snapshot())).await.unwrap();
    bench.delete(&original).await.unwrap();
    let content = |id: &str| std::fs::read_to_string(bench.data(id).join("file")).unwrap();
    assert_eq!((content(&clone.volume_id).as_str(), content(&restored.volume_id).as_str()), ("now", "then"));
    let other_kind =
        CreateVolumeRequest { volume_capabilities: vec![block(Mode::SingleNodeWriter)], ..of("d", 0, by_snapshot()) };
    assert_eq!(code(bench.create(other_kind).await), Code::InvalidArgument);
    let plain = directory("c", 6 * MIB);
    assert_eq!(code(bench.create(plain).await), Code::AlreadyExists, "the same name with another origin");
}

#[tokio::test]
async fn room_is_counted_and_given_back() {
    let bench = Bench::new();
    let id = bench.create(directory("a", 60 * MIB)).await.unwrap().volume_id;
    assert_eq!(bench.available().await, 40 * MIB);
    assert_eq!(code(bench.create(directory("b", 41 * MIB)).await), Code::ResourceExhausted);
    let grow = |required_bytes| ControllerExpandVolumeRequest {
        volume_id: id.clone(),
        capacity_range: Some(CapacityRange { required_bytes, limit_bytes: 0 }),
        ..ControllerExpandVolumeRequest::default()
    };
    assert_eq!(code(bench.driver.controller_expand_volume(Request::new(grow(101 * MIB))).await), Code::OutOfRange);
    let grown = bench.driver.controller_expand_volume(Request::new(grow(100 * MIB))).await.unwrap().into_inner();
    assert_eq!((grown.capacity_bytes, grown.node_expansion_required), (100 * MIB, false));
    assert_eq!(bench.available().await, 0);
    bench.delete(&id).await.unwrap();
    assert_eq!(bench.available().await, CAPACITY, "promises of what was refused are gone, too");
}

#[tokio::test]
async fn volumes_are_on_their_node_alone() {
    let bench = Bench::new();
    let place =
        |node: &str| Topology { segments: [("topology.csi-local.test/node".to_owned(), node.to_owned())].into() };
    let at = |node: &str| CreateVolumeRequest {
        accessibility_requirements: Some(TopologyRequirement { requisite: vec![place(node)], preferred: Vec::new() }),
        ..directory(node, MIB)
    };
    assert_eq!(code(bench.create(at("node-b")).await), Code::ResourceExhausted);
    assert_eq!(bench.create(at("node-a")).await.unwrap().accessible_topology, [place("node-a")]);
    let elsewhere = GetCapacityRequest { accessible_topology: Some(place("node-b")), ..GetCapacityRequest::default() };
    let capacity = bench.driver.get_capacity(Request::new(elsewhere)).await.unwrap().into_inner();
    assert_eq!(capacity.available_capacity, 0);
    let info = bench.driver.node_get_info(Request::new(NodeGetInfoRequest {})).await.unwrap().into_inner();
    assert_eq!((info.node_id.as_str(), info.max_volumes_per_node), ("node-a", 7));
    assert_eq!(info.accessible_topology, Some(place("node-a")));
}

#[tokio::test]
async fn what_is_in_use_stays() {
    let mut bench = Bench::new();
    let writer = mount(Mode::SingleNodeWriter);
    let id = bench.create(directory("a", MIB)).await.unwrap().volume_id;
    bench.stage(&id, writer.clone()).await.unwrap();
    bench.publish(&id, "one", writer.clone()).await.unwrap();
    bench.publish(&id, "two", mount(Mode::SingleNodeReaderOnly)).await.unwrap();
    let read_only: Vec<_> = bench.mounts.mounted().iter().map(|mount| mount.read_only).collect();
    assert_eq!(read_only, [false, false, true]);
    bench.restart();
    assert_eq!(code(bench.delete(&id).await), Code::FailedPrecondition);
    bench.unpublish(&id, "one").await.unwrap();
    bench.unpublish(&id, "two").await.unwrap();
    assert_eq!(code(bench.delete(&id).await), Code::FailedPrecondition, "it is staged");
    bench.unstage(&id).await.unwrap();
    bench.delete(&id).await.unwrap();
    assert!(bench.mounts.mounted().is_empty() && !bench.data(&id).exists());
}

#[tokio::test]
async fn a_single_writer_is_alone() {
    let bench = Bench::new();
    let single = mount(Mode::SingleNodeSingleWriter);
    let id = bench.create(directory("a", MIB)).await.unwrap().volume_id;
    assert_eq!(code(bench.publish(&id, "one", single.clone()).await), Code::FailedPrecondition, "it is not staged");
    bench.stage(&id, single.clone()).await.unwrap();
    bench.publish(&id, "one", single.clone()).await.unwrap();
    bench.publish(&id, "one", single.clone()).await.unwrap();
    assert_eq!(code(bench.publish(&id, "two", single.clone()).await), Code::FailedPrecondition);
    bench.unpublish(&id, "one").await.unwrap();
    bench.publish(&id, "two", single).await.unwrap();
}

#[tokio::test]
async fn inline_volumes_come_and_go_with_their_pod() {
    let bench = Bench::new();
    let id = format!("csi-{}", "0a".repeat(32));
    let inline = |id: &str, size: &str| NodePublishVolumeRequest {
        volume_id: id.to_owned(),
        target_path: bench.path("target"),
        volume_capability: Some(mount(Mode::SingleNodeWriter)),
        volume_context: [("csi.storage.k8s.io/ephemeral", "true"), ("size", size)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        ..NodePublishVolumeRequest::default()
    };
    for (bad, size) in [("../../etc", "1"), (id.as_str(), "large"), (id.as_str(), "-1")] {
        let answer = bench.driver.node_publish_volume(Request::new(inline(bad, size))).await;
        assert_eq!(code(answer), Code::InvalidArgument, "{bad} {size}");
    }
    for _ in 0..2 {
        bench.driver.node_publish_volume(Request::new(inline(&id, "2097152"))).await.unwrap();
    }
    assert_eq!(bench.available().await, CAPACITY - 2 * MIB);
    let list = bench.driver.list_volumes(Request::new(ListVolumesRequest::default())).await.unwrap().into_inner();
    assert_eq!(list.entries, [], "it is the pod's own");
    for _ in 0..2 {
        bench.unpublish(&id, "target").await.unwrap();
    }
    assert!(bench.mounts.mounted().is_empty() && !bench.data(&id).exists());
}

#[tokio::test]
async fn stats_say_what_was_written() {
    let bench = Bench::new();
    let writer = mount(Mode::SingleNodeWriter);
    let id = bench.create(directory("a", 10 * MIB)).await.unwrap().volume_id;
    bench.stage(&id, writer.clone()).await.unwrap();
    bench.publish(&id, "target", writer).await.unwrap();
    std::fs::write(bench.data(&id).join("file"), vec![1; 1024 * 1024]).unwrap();
    let (volume_id, volume_path) = (id.clone(), bench.path("target"));
    let request = NodeGetVolumeStatsRequest { volume_id, volume_path, staging_target_path: String::new() };
    let usage = bench.driver.node_get_volume_stats(Request::new(request)).await.unwrap().into_inner().usage;
    let [bytes, inodes] = usage.as_slice() else { panic!("{usage:?}") };
    assert!(bytes.total == 10 * MIB && (MIB..2 * MIB).contains(&bytes.used), "{bytes:?}");
    assert!(bytes.available <= 9 * MIB && inodes.used == 2, "{usage:?}");
}
