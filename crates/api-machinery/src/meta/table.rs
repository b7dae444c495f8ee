//! Table and what it is made of.

use crate::leaf::RawJson;
use crate::value::Value;
use api_derive::api;

use super::ListMeta;

/// A list of objects shown as rows and columns.
#[api(group = "meta.k8s.io", version = "v1", kind = "Table")]
pub struct Table {
    /// Standard list metadata.
    #[field(0)]
    pub metadata: ListMeta,
    /// The columns, in order of their cells.
    #[field(0, always, required)]
    pub column_definitions: Vec<TableColumnDefinition>,
    /// The rows, one per object.
    #[field(0, always, required)]
    pub rows: Vec<TableRow>,
}

/// Describes one column of a table.
#[api]
pub struct TableColumnDefinition {
    /// Heading of the column.
    #[field(0, always, required)]
    pub name: String,
    /// OpenAPI type of the cells, such as string, integer or date.
    #[field(0, always, required)]
    pub type_: String,
    /// OpenAPI format of the type, such as name for the main identifier.
    #[field(0, always, required)]
    pub format: String,
    /// Text that explains the column.
    #[field(0, always, required)]
    pub description: String,
    /// Importance of the column. 0 is always shown, higher only when wide.
    #[field(0, always, required)]
    pub priority: i32,
}

/// One row of a table.
#[api]
pub struct TableRow {
    /// Cell values, in the order of the columns.
    #[field(0, always, required)]
    pub cells: Vec<Value>,
    /// Notes on the state of the row, such as Completed.
    #[field(0)]
    pub conditions: Vec<TableRowCondition>,
    /// The object behind the row, as includeObject asks for.
    #[field(0)]
    pub object: RawJson,
}

/// A note on the state of a table row.
#[api]
pub struct TableRowCondition {
    /// Kind of the note. The only value is Completed.
    #[field(0, always, required, go = "v1.RowConditionType")]
    pub type_: String,
    /// Whether it holds: True, False or Unknown.
    #[field(0, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// Short machine-readable reason for the last change.
    #[field(0)]
    pub reason: String,
    /// Text for people about the last change.
    #[field(0)]
    pub message: String,
}
