//! The end of a server, in stages that load balancers, clients and the process's supervisor can follow.

use std::sync::Arc;
use std::time::Duration;

use component_base::serving::ServerHandle;

use crate::cx::ApiCx;

/// How long that work may take altogether.
const HOOKS_DEADLINE: Duration = Duration::from_secs(20);
/// How long connections may take to close once nothing runs on them.
const CONNECTIONS_DEADLINE: Duration = Duration::from_secs(2);
/// How long audit events may take to reach their backends: three tries of a webhook that answers late.
const AUDIT_DEADLINE: Duration = Duration::from_secs(30);

/// How long the last spans may take to reach their collector.
const TRACES_DEADLINE: Duration = Duration::from_secs(5);

/// Ends the server: not ready first, then deaf, then idle.
pub(crate) async fn shut_down(cx: &Arc<ApiCx>, handle: Option<&ServerHandle>) {
    let events = cx.lifecycle.events();
    let config = &cx.config.shutdown;
    cx.health.begin_shutdown();
    let hooks = async {
        run_hooks(cx).await;
        events.pre_shutdown_hooks_stopped.signal();
    };
    let delay = async {
        tokio::time::sleep(config.delay).await;
        events.after_shutdown_delay.signal();
    };
    tokio::join!(hooks, delay);

    if !config.send_retry_after
        && let Some(handle) = handle
    {
        handle.drain();
        events.http_server_stopped_listening.signal();
    }
    events.not_accepting_new_request.signal();
    cx.running.close();
    let drained = tokio::time::timeout(cx.config.requests.timeout, cx.running.drained());
    if let (Err(_), ()) = tokio::join!(drained, cx.watches.end(config.watch_grace)) {
        tracing::warn!("Requests were still running when the server ended");
    }
    events.in_flight_requests_drained.signal();
    if let Some(handle) = handle {
        handle.shutdown(CONNECTIONS_DEADLINE).await;
        events.http_server_stopped_listening.signal();
    }
    // Nothing more is noted: what is noted may go.
    if let Some(auditor) = &cx.audit {
        auditor.shut_down(AUDIT_DEADLINE).await;
    }
    if let Some(tracer) = &cx.tracer {
        tracer.shut_down(TRACES_DEADLINE).await;
    }
}

async fn run_hooks(cx: &Arc<ApiCx>) {
    let hooks = std::mem::take(&mut *cx.pre_shutdown.lock());
    let running = hooks.iter().map(|hook| hook(Arc::clone(cx)));
    let all = futures_util::future::join_all(running);
    if tokio::time::timeout(HOOKS_DEADLINE, all).await.is_err() {
        tracing::warn!("Work before the shutdown did not end in time");
    }
}
