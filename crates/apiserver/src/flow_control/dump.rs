//! `/debug/api_priority_and_fairness/dump_*`: how levels, queues and requests stand, as tables.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::status::ApiError;
use async_trait::async_trait;
use component_base::serving::{Response, text};
use flow_control::{LevelState, RequestRow};
use http::StatusCode;

use super::control::FlowControl;
use super::seat::Asker;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::handlers;
use crate::routes::{Endpoint, Routes};

const PREFIX: &str = "/debug/api_priority_and_fairness/";
const LEVELS: [&str; 10] = [
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
];
const QUEUES: [&str; 9] = [
    "PriorityLevelName",
    "Index",
    "PendingRequests",
    "ExecutingRequests",
    "SeatsInUse",
    "NextDispatchR",
    "InitialSeatsSum",
    "MaxSeatsSum",
    "TotalWorkSum",
];
const REQUESTS: [&str; 10] = [
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    "FlowDistingsher",
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
    "StartTime",
];
const DETAILS: [&str; 8] =
    ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"];

type Row = Vec<String>;

/// Adds the paths; no index lists them.
pub(crate) fn install(routes: &mut Routes, control: &Arc<FlowControl>) {
    routes.prefix(PREFIX, Arc::new(Dump(Arc::clone(control))));
}

struct Dump(Arc<FlowControl>);

#[async_trait]
impl Endpoint for Dump {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        let path = &request.info().path;
        let rows = match path.strip_prefix(PREFIX) {
            Some("dump_priority_levels") => self.levels(),
            Some("dump_queues") => self.queues(),
            Some("dump_requests") => self.requests(cx, request.query().first("includeRequestDetails") == Some("1")),
            _ => return handlers::unknown_path(cx, path),
        };
        Ok(text(StatusCode::OK, table(&rows)))
    }
}

impl Dump {
    fn each(&self, header: &[&str], row: impl FnMut(&LevelState<Asker>) -> Vec<Row>) -> Vec<Row> {
        let header = header.iter().map(|&name| name.to_owned()).collect();
        let controller = self.0.controller.lock();
        std::iter::once(header).chain(controller.states().flat_map(row)).collect()
    }

    fn levels(&self) -> Vec<Row> {
        self.each(&LEVELS, |state| {
            let queues = state.level.queues();
            let counts = queues.counts();
            vec![vec![
                state.level.name().to_owned(),
                counts.active_queues.to_string(),
                queues.is_idle().to_string(),
                state.is_removed.to_string(),
                counts.waiting.to_string(),
                counts.executing.to_string(),
                counts.dispatched.to_string(),
                counts.rejected.to_string(),
                counts.timed_out.to_string(),
                counts.cancelled.to_string(),
            ]]
        })
    }

    fn queues(&self) -> Vec<Row> {
        self.each(&QUEUES, |state| {
            let rows = state.level.queues().queue_rows().into_iter().enumerate();
            let rows = rows.map(|(index, row)| {
                vec![
                    state.level.name().to_owned(),
                    index.to_string(),
                    row.waiting.to_string(),
                    row.executing.to_string(),
                    row.seats_in_use.to_string(),
                    row.start.to_string(),
                    row.initial_seats.to_string(),
                    row.max_seats.to_string(),
                    row.work.to_string(),
                ]
            });
            rows.collect()
        })
    }

    fn requests(&self, cx: &ApiCx, with_details: bool) -> Vec<Row> {
        let header: Vec<&str> = REQUESTS.into_iter().chain(DETAILS.into_iter().filter(|_| with_details)).collect();
        let (wall, now) = (cx.clock().wall(), self.0.now());
        let time = |moment: Duration| {
            let at: api_machinery::time::MicroTime = (wall - now.saturating_sub(moment)).into();
            at.to_string()
        };
        self.each(&header, |state| {
            let mut rows = Vec::new();
            state.level.queues().visit_requests(&mut |request| {
                rows.push(self::request(state.level.name(), &request, &time, with_details));
            });
            rows
        })
    }
}

fn request(level: &str, row: &RequestRow<'_, Asker>, time: &dyn Fn(Duration) -> String, with_details: bool) -> Row {
    let details = &row.caller.details;
    let info = &details.info;
    let index = |place: Option<usize>| place.map_or_else(|| "-1".to_owned(), |place| place.to_string());
    let asked = flow_control::Asked {
        user: &details.user,
        resource: info.is_resource.then(|| flow_control::AskedResource {
            namespace: &info.namespace,
            ..flow_control::AskedResource::default()
        }),
        ..flow_control::Asked::default()
    };
    let mut cells = vec![
        level.to_owned(),
        details.schema.name.to_string(),
        index(row.place.map(|(queue, _)| queue)),
        index(row.place.map(|(_, place)| place)),
        details.schema.distinguisher(&asked).to_owned(),
        time(row.arrived),
        row.work.initial_seats.to_string(),
        row.work.final_seats.to_string(),
        format!("{:?}", row.work.extra),
        row.started.map(time).unwrap_or_else(|| "0001-01-01T00:00:00Z".to_owned()),
    ];
    if with_details {
        let own = [
            &details.user,
            &info.verb,
            &info.path,
            &info.namespace,
            &info.name,
            &info.version,
            &info.resource,
            &info.subresource,
        ];
        cells.extend(own.into_iter().cloned());
    }
    cells
}

/// Cells with a comma behind each but the last, and spaces up to the next column.
fn table(rows: &[Row]) -> String {
    const LEAST_WIDTH: usize = 8;
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell: &String| cell.chars().count() + 2);
        cells.max().unwrap_or_default().max(LEAST_WIDTH)
    };
    let widths: Vec<usize> = (0..rows.iter().map(Vec::len).max().unwrap_or_default()).map(width).collect();
    let mut out = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == row.len() {
                out.push_str(cell);
            } else {
                let width = widths.get(column).copied().unwrap_or_default();
                out.push_str(&format!("{:width$}", format!("{cell},")));
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let text = table(&[row(["PriorityLevelName", "Index", "Last"]), row(["a", "10", "1"])]);
        assert_eq!(text, "PriorityLevelName, Index,  Last\na,                 10,     1\n");
    }
}
