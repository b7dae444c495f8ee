//! Objects as the rows of a table, for people.
//! Concept: <https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables>

use std::borrow::Cow;
use std::sync::Arc;

use api_machinery::json;
use api_machinery::leaf::RawJson;
use api_machinery::meta::{ListMeta, Table, TableColumnDefinition, TableRow, TableRowCondition};
use api_machinery::object::Object;
use api_machinery::value::Value;
use bytes::Bytes;
use kinds::info::Column;
use kinds::rules::Rules;
use registry::{List, Stored};
use watch_cache::Pace;

use super::chunks::Chunks;
use super::projection::metadata_json;
use super::rendering::Rendering;
use crate::request::IncludeObject;

/// The table of one object, as JSON.
pub(crate) fn of_object(rendering: &Rendering<'_>, object: &dyn Object, version: &str) -> String {
    let metadata = ListMeta { resource_version: object.meta().resource_version.clone(), ..ListMeta::default() };
    encode(columns(rendering.rules), vec![row(rendering, object, version)], metadata, version)
}

/// The table of a list, as JSON.
pub(crate) async fn of_list(rendering: &Rendering<'_>, list: &List, metadata: ListMeta, version: &str) -> Chunks {
    let empty = encode(columns(rendering.rules), Vec::new(), metadata, version);
    let (mut pieces, mut pace) = (Chunks::default(), Pace::default());
    // All but the end of the list of rows, which is the last member.
    pieces.push(empty.strip_suffix("]}").unwrap_or(&empty).to_owned());
    for (index, item) in in_order(rendering.rules, &list.items).iter().enumerate() {
        if index > 0 {
            pieces.push(Bytes::from_static(b","));
        }
        pieces.push(json::encode(&row(rendering, item.object(), version)));
        pace.after(Pace::CODED).await;
    }
    pieces.push(Bytes::from_static(b"]}\n"));
    pieces
}

/// The objects in the order of the rows.
fn in_order<'a>(rules: &dyn Rules, items: &'a [Arc<Stored>]) -> Cow<'a, [Arc<Stored>]> {
    let has_ranks = items.first().is_some_and(|first| rules.table_rank(first.object()).is_some());
    if !has_ranks {
        return Cow::Borrowed(items);
    }
    let mut sorted = items.to_vec();
    // Those of the same rank stay in the order of their names.
    sorted.sort_by_key(|item| rules.table_rank(item.object()));
    Cow::Owned(sorted)
}

/// The table of one event of a watch, as JSON: columns only with the first one.
pub(crate) fn of_event(rendering: &Rendering<'_>, object: &dyn Object, version: &str, is_first: bool) -> String {
    let metadata = ListMeta { resource_version: object.meta().resource_version.clone(), ..ListMeta::default() };
    let columns = if is_first { columns(rendering.rules) } else { Vec::new() };
    encode(columns, vec![row(rendering, object, version)], metadata, version)
}

fn encode(columns: Vec<TableColumnDefinition>, rows: Vec<TableRow>, metadata: ListMeta, version: &str) -> String {
    let table = Table { metadata, column_definitions: columns, rows };
    let text = json::encode_typed("Table", &format!("meta.k8s.io/{version}"), &table);
    // Go writes lists that nobody filled as null, and empty rows as a list.
    text.replacen("\"rows\":null", "\"rows\":[]", 1)
}

fn columns(rules: &dyn Rules) -> Vec<TableColumnDefinition> {
    let definition = |own: Column<'_>| TableColumnDefinition {
        name: own.name.to_owned(),
        type_: own.type_.to_owned(),
        format: own.format.to_owned(),
        description: String::new(),
        priority: own.priority,
    };
    rules.columns().into_iter().map(definition).collect()
}

fn row(rendering: &Rendering<'_>, object: &dyn Object, version: &str) -> TableRow {
    let carried = match rendering.include {
        IncludeObject::None => RawJson::default(),
        IncludeObject::Metadata => RawJson::from_text(metadata_json(object, version)),
        IncludeObject::Object => RawJson::from_text(object.to_json()),
    };
    TableRow {
        cells: rendering.rules.cells(object, rendering.now),
        conditions: rendering.rules.row_conditions(object).iter().map(condition).collect(),
        object: carried,
    }
}

fn condition(value: &Value) -> TableRowCondition {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    TableRowCondition { type_: text("type"), status: text("status"), reason: text("reason"), message: text("message") }
}
