//! One storage watch per resource, snapshots, the shared event log, fan-out.
