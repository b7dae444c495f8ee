//! What a content says of a snapshot, as the snapshot shows it. Pure.

use std::time::Duration;

use api_machinery::quantity::{Format, Quantity};
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::snapshot_v1::{VolumeSnapshot, VolumeSnapshotContent, VolumeSnapshotStatus};
use serde_json::json;

/// What is new for whoever looks at the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Taken,
    Ready,
}

fn time_of(nanoseconds: i64) -> Option<Time> {
    let since = Duration::from_nanos(u64::try_from(nanoseconds).ok()?);
    Some(Time::from(std::time::UNIX_EPOCH + since))
}

/// The status of a snapshot with a content.
pub(super) fn status(content: &VolumeSnapshotContent) -> VolumeSnapshotStatus {
    let of_content = content.status.as_ref();
    VolumeSnapshotStatus {
        bound_volume_snapshot_content_name: Some(content.metadata.name.clone()),
        creation_time: of_content.and_then(|status| status.creation_time).and_then(time_of),
        ready_to_use: Some(of_content.and_then(|status| status.ready_to_use).unwrap_or_default()),
        restore_size: of_content
            .and_then(|status| status.restore_size)
            .filter(|bytes| *bytes > 0)
            .map(|bytes| Quantity::from_value(bytes, Format::BinarySi)),
        error: of_content.and_then(|status| status.error.clone()),
        volume_group_snapshot_name: None,
    }
}

/// What differs from what the snapshot shows, as a merge of its status; nothing where it shows that.
pub(super) fn change(snapshot: &VolumeSnapshot, wanted: &VolumeSnapshotStatus) -> Option<Value> {
    let empty = VolumeSnapshotStatus::default();
    let shown = snapshot.status.as_ref().unwrap_or(&empty);
    let facts = |status: &VolumeSnapshotStatus| {
        (
            status.bound_volume_snapshot_content_name.clone(),
            status.creation_time,
            status.ready_to_use,
            status.restore_size.clone(),
            status.error.as_ref().and_then(|error| error.message.clone()),
        )
    };
    if snapshot.status.is_some() && facts(shown) == facts(wanted) {
        return None;
    }
    let time = |time: Option<Time>| time.map(|time| time.to_string());
    let error = wanted.error.as_ref().map(|error| json!({"message": error.message, "time": time(error.time)}));
    Some(json!({"status": {
        "boundVolumeSnapshotContentName": wanted.bound_volume_snapshot_content_name,
        "creationTime": time(wanted.creation_time),
        "readyToUse": wanted.ready_to_use,
        "restoreSize": wanted.restore_size.as_ref().map(ToString::to_string),
        "error": error,
    }}))
}

/// What is worth an event.
pub(super) fn news(snapshot: &VolumeSnapshot, wanted: &VolumeSnapshotStatus) -> Vec<News> {
    let shown = snapshot.status.as_ref();
    let was_taken = shown.is_some_and(|status| status.creation_time.is_some());
    let was_ready = shown.is_some_and(|status| status.ready_to_use == Some(true));
    let taken = (wanted.creation_time.is_some() && !was_taken).then_some(News::Taken);
    let ready = (wanted.ready_to_use == Some(true) && !was_ready).then_some(News::Ready);
    taken.into_iter().chain(ready).collect()
}

#[cfg(test)]
mod tests {
    use api_types::snapshot_v1::VolumeSnapshotContentStatus;

    use super::*;

    #[test]
    fn what_is_shown_is_not_written_again() {
        let mut content = VolumeSnapshotContent::default();
        content.metadata.name = "snapcontent-u".into();
        let mut snapshot = VolumeSnapshot::default();
        let wanted = status(&content);
        assert_eq!(wanted.ready_to_use, Some(false));
        assert!(change(&snapshot, &wanted).is_some(), "bound");
        snapshot.status = Some(wanted.clone());
        assert_eq!((change(&snapshot, &wanted), news(&snapshot, &wanted)), (None, Vec::new()));

        content.status = Some(VolumeSnapshotContentStatus {
            creation_time: Some(1_700_000_000_000_000_000),
            restore_size: Some(1024),
            ready_to_use: Some(true),
            ..VolumeSnapshotContentStatus::default()
        });
        let wanted = status(&content);
        assert_eq!(news(&snapshot, &wanted), [News::Taken, News::Ready]);
        let change = change(&snapshot, &wanted).unwrap();
        assert_eq!(change["status"]["creationTime"], "2023-11-14T22:13:20Z");
        assert_eq!(change["status"]["restoreSize"], "1Ki");
    }
}
