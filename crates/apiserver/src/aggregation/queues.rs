//! Names of APIServices to look at: whether their servers can be asked, what they serve, how they describe it.

use std::sync::Arc;
use std::time::Duration;

use client::{NoMetrics, RateLimit, WorkQueue};
use component_base::lifecycle::Lifecycle;

/// First and longest pause between checks of a server that fails, as upstream.
const CHECKED: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(30));
/// The same between questions for a document.
const ASKED: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// The work that a change of an APIService makes.
#[derive(Clone)]
pub(super) struct Queues {
    pub(super) availability: WorkQueue<String>,
    pub(super) discovery: WorkQueue<String>,
    pub(super) openapi_2: WorkQueue<String>,
    pub(super) openapi_3: WorkQueue<String>,
}

impl Queues {
    pub(super) fn new(lifecycle: &Lifecycle) -> Self {
        let queue = |name: &str, (base, longest)| {
            let limit = RateLimit { base, longest, overall: None };
            WorkQueue::new(name, limit, Arc::clone(lifecycle.clock()), Arc::new(NoMetrics))
        };
        Self {
            availability: queue("remote_available_controller", CHECKED),
            discovery: queue("APIServiceDiscovery", ASKED),
            openapi_2: queue("open_api_aggregation_controller", ASKED),
            openapi_3: queue("open_api_v3_aggregation_controller", ASKED),
        }
    }

    /// Something changed about an APIService.
    pub(super) fn add(&self, name: &str) {
        self.availability.add(name.to_owned());
        self.add_documents(name);
    }

    /// A server has come, or went.
    pub(super) fn add_documents(&self, name: &str) {
        for queue in [&self.discovery, &self.openapi_2, &self.openapi_3] {
            queue.add(name.to_owned());
        }
    }
}
