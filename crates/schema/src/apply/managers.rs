//! The record of `metadata.managedFields`: who owns what, since when.

use std::collections::BTreeMap;

use api_machinery::leaf::RawJson;
use api_machinery::meta::ManagedFieldsEntry;
use api_machinery::time::Time;
use serde_json::{Map, Value};

use super::field_set::{FieldSet, FieldSetError};

/// Most entries of ordinary writes; older ones are united.
pub(super) const MAX_UPDATE_ENTRIES: usize = 10;
/// The manager that united entries go to.
const ANCIENT_MANAGER: &str = "ancient-changes";
pub(super) const FIELDS_TYPE: &str = "FieldsV1";

/// How a manager wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What tells entries apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// The manager's name.
    pub manager: String,
    /// How it wrote.
    pub operation: Operation,
    /// The version it wrote in; empty for Apply, whose entries move between versions.
    pub api_version: String,
    /// The subresource it wrote to; empty for the object itself.
    pub subresource: String,
}

impl Identity {
    /// As conflicts name it: `"kubectl" with subresource "scale" using apps/v1`.
    pub fn describe(&self) -> String {
        use api_machinery::quote::go_quote;
        let mut text = go_quote(&self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {}", go_quote(&self.subresource)));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }

    /// Its entry, which owns the places of a set that is written.
    pub(super) fn entry(self, api_version: String, time: Time, fields_v1: String) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: self.manager,
            operation: self.operation.name().to_owned(),
            api_version,
            time: (!time.is_zero()).then_some(time),
            fields_type: FIELDS_TYPE.to_owned(),
            fields_v1: Some(RawJson::from_text(fields_v1)),
            subresource: self.subresource,
        }
    }
}

/// What one entry says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The version that the set's places belong to.
    pub api_version: String,
    /// What it owns.
    pub set: FieldSet,
    /// When it last changed; zero when it never changed a value.
    pub time: Time,
}

/// Entries that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManagersError {
    /// Neither Apply nor Update.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// No version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// Not told how the fields are written.
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingFieldsType(usize),
    /// Written in an unknown way.
    #[error("invalid fieldsType \"{fields_type}\" in managed fields entry {index}")]
    FieldsType {
        /// What was given.
        fields_type: String,
        /// Which entry.
        index: usize,
    },
    /// The set is malformed.
    #[error(transparent)]
    Set(#[from] FieldSetError),
    /// The time is malformed, or the entry as a whole.
    #[error("error decoding managed fields entry: {0}")]
    Malformed(String),
}

/// All entries of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managers {
    /// The entries.
    pub entries: BTreeMap<Identity, Record>,
}

impl Managers {
    /// Reads the list as it stands in the object; absent or null is empty.
    pub fn decode(list: Option<&Value>) -> Result<Self, ManagersError> {
        let items = match list {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(ManagersError::Malformed("expected a list".into())),
        };
        let mut managers = Self::default();
        for (index, item) in items.iter().enumerate() {
            let (identity, record) = decode_entry(index, item)?;
            if !record.set.is_empty() {
                managers.entries.insert(identity, record);
            }
        }
        Ok(managers)
    }

    /// Reads the typed list.
    pub fn of_entries<'a>(entries: impl IntoIterator<Item = &'a ManagedFieldsEntry>) -> Result<Self, ManagersError> {
        let mut managers = Self::default();
        for (index, entry) in entries.into_iter().enumerate() {
            let parts = EntryKey {
                manager: &entry.manager,
                operation: &entry.operation,
                api_version: &entry.api_version,
                fields_type: &entry.fields_type,
                subresource: &entry.subresource,
            };
            let fields = entry.fields_v1.as_ref().map_or("", RawJson::as_str);
            let (identity, mut record) = parts.read(index, || FieldSet::from_fields_v1_text(fields))?;
            record.time = entry.time.unwrap_or_default();
            if !record.set.is_empty() {
                managers.entries.insert(identity, record);
            }
        }
        Ok(managers)
    }

    fn sorted(&self) -> Vec<(&Identity, &Record)> {
        let mut entries: Vec<(&Identity, &Record)> =
            self.entries.iter().filter(|(_, record)| !record.set.is_empty()).collect();
        entries.sort_by_key(|(identity, record)| {
            let texts = [&identity.manager, &record.api_version, &identity.subresource].map(String::as_str);
            place(identity.operation.name(), record.time, texts)
        });
        entries
    }

    /// The list as it stands in the object, sorted; `None` when there is nothing to record.
    pub fn encode(&self) -> Option<Value> {
        let list: Vec<Value> = self.sorted().into_iter().map(encode_entry).collect();
        (!list.is_empty()).then_some(Value::Array(list))
    }

    /// The typed list, sorted.
    pub fn to_entries(&self) -> Vec<ManagedFieldsEntry> {
        let entry = |(identity, record): (&Identity, &Record)| {
            identity.clone().entry(record.api_version.clone(), record.time, record.set.to_fields_v1())
        };
        self.sorted().into_iter().map(entry).collect()
    }

    /// Drops entries that own nothing.
    pub fn prune(&mut self) {
        self.entries.retain(|_, record| !record.set.is_empty());
    }

    /// The same with few enough entries of ordinary writes: the oldest are united, per version.
    #[must_use]
    pub fn capped(mut self) -> Self {
        self.cap();
        self
    }

    fn cap(&mut self) {
        if self.entries.len() <= MAX_UPDATE_ENTRIES {
            return;
        }
        let mut updates: Vec<(Time, Identity)> = self
            .entries
            .iter()
            .filter(|(identity, _)| identity.operation == Operation::Update)
            .map(|(identity, record)| (record.time, identity.clone()))
            .collect();
        updates.sort();
        let mut count = updates.len();
        let mut first_of_version: BTreeMap<String, Identity> = BTreeMap::new();
        for (time, identity) in updates {
            if count <= MAX_UPDATE_ENTRIES {
                return;
            }
            let version = identity.api_version.clone();
            let Some(first) = first_of_version.get(&version).cloned() else {
                first_of_version.insert(version, identity);
                continue;
            };
            let bucket = Identity {
                manager: ANCIENT_MANAGER.into(),
                operation: Operation::Update,
                api_version: version.clone(),
                subresource: String::new(),
            };
            if identity == bucket {
                continue;
            }
            if first != bucket
                && let Some(record) = self.entries.remove(&first)
            {
                let united = self.entries.remove(&bucket).map_or(FieldSet::default(), |old| old.set);
                self.entries.insert(bucket.clone(), Record { set: record.set.union(united), ..record });
                first_of_version.insert(version, bucket.clone());
            }
            if let Some(record) = self.entries.remove(&identity) {
                let target = self.entries.entry(bucket).or_default();
                target.set = std::mem::take(&mut target.set).union(record.set);
                target.api_version = record.api_version;
                target.time = time;
                count -= 1;
            }
        }
    }
}

/// Where an entry has its place in the list: by operation and time, then by manager, version and subresource.
fn place<'a>(operation: &'a str, time: Time, texts: [&'a str; 3]) -> (&'a str, i64, [&'a str; 3]) {
    (operation, time.unix_seconds().unwrap_or(0), texts)
}

/// Puts a list into the order in which it stands in objects.
pub(super) fn sort(entries: &mut [ManagedFieldsEntry]) {
    fn key(entry: &ManagedFieldsEntry) -> (&str, i64, [&str; 3]) {
        let texts = [&entry.manager, &entry.api_version, &entry.subresource].map(String::as_str);
        place(&entry.operation, entry.time.unwrap_or_default(), texts)
    }
    entries.sort_by(|one, other| key(one).cmp(&key(other)));
}

/// What an entry says but for its time.
struct EntryKey<'a> {
    manager: &'a str,
    operation: &'a str,
    api_version: &'a str,
    fields_type: &'a str,
    subresource: &'a str,
}

impl EntryKey<'_> {
    fn read(
        &self,
        index: usize,
        set: impl FnOnce() -> Result<FieldSet, FieldSetError>,
    ) -> Result<(Identity, Record), ManagersError> {
        let operation = match self.operation {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(ManagersError::Operation),
        };
        if self.api_version.is_empty() {
            return Err(ManagersError::ApiVersion);
        }
        match self.fields_type {
            FIELDS_TYPE => {}
            "" => return Err(ManagersError::MissingFieldsType(index)),
            other => return Err(ManagersError::FieldsType { fields_type: other.to_owned(), index }),
        }
        let set = set()?;
        let versioned = if operation == Operation::Update { self.api_version } else { "" };
        let identity = Identity {
            manager: self.manager.to_owned(),
            operation,
            api_version: versioned.to_owned(),
            subresource: self.subresource.to_owned(),
        };
        Ok((identity, Record { api_version: self.api_version.to_owned(), set, time: Time::default() }))
    }
}

fn decode_entry(index: usize, item: &Value) -> Result<(Identity, Record), ManagersError> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let parts = EntryKey {
        manager: text("manager"),
        operation: text("operation"),
        api_version: text("apiVersion"),
        fields_type: text("fieldsType"),
        subresource: text("subresource"),
    };
    let set = || match item.get("fieldsV1") {
        None | Some(Value::Null) => Ok(FieldSet::default()),
        Some(fields) => FieldSet::from_fields_v1(fields),
    };
    let (identity, mut record) = parts.read(index, set)?;
    record.time = match text("time") {
        "" => Time::default(),
        time => Time::parse(time).map_err(|error| ManagersError::Malformed(error.to_string()))?,
    };
    Ok((identity, record))
}

fn encode_entry((identity, record): (&Identity, &Record)) -> Value {
    let mut entry = Map::new();
    let mut put = |name: &str, text: &str| {
        if !text.is_empty() {
            entry.insert(name.to_owned(), text.into());
        }
    };
    put("manager", &identity.manager);
    put("operation", identity.operation.name());
    put("apiVersion", &record.api_version);
    put("fieldsType", FIELDS_TYPE);
    put("subresource", &identity.subresource);
    if !record.time.is_zero() {
        put("time", &record.time.to_string());
    }
    let fields = serde_json::from_str(&record.set.to_fields_v1()).unwrap_or_default();
    entry.insert("fieldsV1".to_owned(), fields);
    Value::Object(entry)
}
