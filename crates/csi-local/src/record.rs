//! What is written down of a volume and of a snapshot, and what they are called.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The hexadecimal digits of an id.
const DIGITS: usize = 32;
/// The digits of a kubelet's handle of an inline volume.
const INLINE_DIGITS: usize = 64;

/// How a volume is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    Block,
}

/// What a volume started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Volume(String),
    Snapshot(String),
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) id: String,
    /// As who asked for it calls it.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) capacity_bytes: i64,
    pub(crate) origin: Option<Origin>,
    /// Made when it was published, and gone when it is no more.
    pub(crate) ephemeral: bool,
    /// Staging paths: where it was, or was about to be, brought to.
    pub(crate) staged: BTreeSet<String>,
    /// Target paths likewise.
    pub(crate) published: BTreeSet<String>,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) volume_id: String,
    pub(crate) kind: Kind,
    pub(crate) size_bytes: i64,
    /// When it was made, in seconds of Unix time.
    pub(crate) made_seconds: i64,
}

/// Something with a record in a directory of its own.
pub(crate) trait Record: Sized {
    /// The directory of all of them.
    const FOLDER: &str;
    fn id(&self) -> &str;
    fn to_json(&self) -> Value;
    /// `None` where something is missing or of another form.
    fn from_json(value: &Value) -> Option<Self>;
}

/// The id of the volume of a name: the same name is always the same volume, also after a crash.
pub(crate) fn volume_id(name: &str) -> String {
    id("vol-", name)
}

/// The id of the snapshot of a name.
pub(crate) fn snapshot_id(name: &str) -> String {
    id("snap-", name)
}

/// Whether a text has the form of a volume's id.
pub(crate) fn is_volume_id(text: &str) -> bool {
    has_form(text, "vol-", DIGITS)
}

/// Whether a text has the form of a snapshot's id.
pub(crate) fn is_snapshot_id(text: &str) -> bool {
    has_form(text, "snap-", DIGITS)
}

/// Whether a text has the form of a kubelet's handle of an inline volume.
pub(crate) fn is_inline_handle(text: &str) -> bool {
    has_form(text, "csi-", INLINE_DIGITS)
}

fn id(prefix: &str, name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    format!("{prefix}{}", base::hex(&digest[..DIGITS / 2]))
}

fn has_form(text: &str, prefix: &str, digits: usize) -> bool {
    let rest = text.strip_prefix(prefix).unwrap_or_default();
    rest.len() == digits && rest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Block => "block",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Directory, Self::Block].into_iter().find(|kind| kind.name() == name)
    }
}

impl Record for Volume {
    const FOLDER: &str = "volumes";

    fn id(&self) -> &str {
        &self.id
    }

    fn to_json(&self) -> Value {
        let origin = self.origin.as_ref().map(|origin| match origin {
            Origin::Volume(id) => json!({"volume": id}),
            Origin::Snapshot(id) => json!({"snapshot": id}),
        });
        json!({
            "id": self.id, "name": self.name, "kind": self.kind.name(), "capacityBytes": self.capacity_bytes,
            "origin": origin, "ephemeral": self.ephemeral, "staged": self.staged, "published": self.published,
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let origin = match &value["origin"] {
            Value::Null => None,
            origin => Some(match origin.get("volume") {
                Some(id) => Origin::Volume(id.as_str()?.to_owned()),
                None => Origin::Snapshot(text(origin, "snapshot")?),
            }),
        };
        Some(Self {
            id: text(value, "id")?,
            name: text(value, "name")?,
            kind: Kind::from_name(value["kind"].as_str()?)?,
            capacity_bytes: value["capacityBytes"].as_i64()?,
            origin,
            ephemeral: value["ephemeral"].as_bool()?,
            staged: texts(&value["staged"])?,
            published: texts(&value["published"])?,
        })
    }
}

impl Record for Snapshot {
    const FOLDER: &str = "snapshots";

    fn id(&self) -> &str {
        &self.id
    }

    fn to_json(&self) -> Value {
        json!({
            "id": self.id, "name": self.name, "volume": self.volume_id, "kind": self.kind.name(),
            "sizeBytes": self.size_bytes, "madeSeconds": self.made_seconds,
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            id: text(value, "id")?,
            name: text(value, "name")?,
            volume_id: text(value, "volume")?,
            kind: Kind::from_name(value["kind"].as_str()?)?,
            size_bytes: value["sizeBytes"].as_i64()?,
            made_seconds: value["madeSeconds"].as_i64()?,
        })
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn texts(value: &Value) -> Option<BTreeSet<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(origin: Option<Origin>) -> Volume {
        Volume {
            id: volume_id("pvc-1"),
            name: "pvc-1".into(),
            kind: Kind::Block,
            capacity_bytes: 4096,
            origin,
            ephemeral: true,
            staged: BTreeSet::from(["/s".to_owned()]),
            published: BTreeSet::from(["/a".to_owned(), "/b".to_owned()]),
        }
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        for origin in [None, Some(Origin::Volume("vol-1".into())), Some(Origin::Snapshot("snap-1".into()))] {
            let volume = volume(origin);
            assert_eq!(Volume::from_json(&volume.to_json()), Some(volume));
        }
        let snapshot = Snapshot {
            id: snapshot_id("s"),
            name: "s".into(),
            volume_id: "vol-1".into(),
            kind: Kind::Directory,
            size_bytes: 1,
            made_seconds: 2,
        };
        assert_eq!(Snapshot::from_json(&snapshot.to_json()), Some(snapshot));
    }

    #[test]
    fn half_a_record_is_none() {
        let whole = volume(Some(Origin::Volume("vol-1".into()))).to_json();
        let keys: Vec<_> = whole.as_object().unwrap().keys().filter(|key| *key != "origin").cloned().collect();
        for key in keys {
            let mut part = whole.clone();
            part.as_object_mut().unwrap().remove(&key);
            assert_eq!(Volume::from_json(&part), None, "{key}");
        }
    }

    #[test]
    fn ids_are_told_by_their_form() {
        assert!(is_volume_id(&volume_id("a")) && !is_volume_id(&snapshot_id("a")));
        assert!(is_snapshot_id(&snapshot_id("../../etc")));
        assert_ne!(volume_id("a"), volume_id("b"));
        let inline = format!("csi-{}", "0a".repeat(32));
        assert!(is_inline_handle(&inline) && !is_volume_id(&inline));
        for bad in
            ["", "vol-", "vol-../../../../../../../../etc/passwd", "csi-0a", "vol-0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A"]
        {
            assert!(!is_volume_id(bad) && !is_inline_handle(bad), "{bad}");
        }
    }
}
