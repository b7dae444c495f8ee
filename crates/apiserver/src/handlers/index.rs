//! The index of paths. It comes last, when all places are taken.

use std::sync::Arc;

use api_machinery::status::ApiError;
use async_trait::async_trait;
use component_base::serving::Response;
use http::StatusCode;

use crate::aggregation::state::Aggregation;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::respond;
use crate::routes::{Endpoint, Routes};

const PATHS: [&str; 2] = ["/", "/index.html"];

/// Adds the index of the paths that are there already.
pub(crate) fn install(routes: &mut Routes, aggregation: &Arc<Aggregation>) {
    let own = Index { own: routes.paths().collect(), aggregation: Arc::clone(aggregation) };
    let index: Arc<dyn Endpoint> = Arc::new(own);
    for path in PATHS {
        routes.exact(path, Arc::clone(&index));
    }
}

/// The paths, and who knows of those of other servers.
struct Index {
    own: Vec<&'static str>,
    aggregation: Arc<Aggregation>,
}

#[async_trait]
impl Endpoint for Index {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        Ok(respond::json(request.preferences(), StatusCode::OK, document(&self.own, cx, &self.aggregation)))
    }
}

/// Every path, sorted, in indented JSON.
fn document(routed: &[&str], cx: &ApiCx, aggregation: &Aggregation) -> String {
    let mut paths: Vec<String> = routed.iter().copied().map(str::to_owned).collect();
    paths.extend(cx.health.check_paths());
    for resource in cx.registry().resources() {
        let info = resource.info();
        if !info.group.is_empty() {
            paths.push(format!("/apis/{}", info.group));
            paths.push(format!("/apis/{}/{}", info.group, info.version));
        }
    }
    for listed in aggregation.listed().into_iter().filter(|listed| !listed.group.is_empty()) {
        paths.push(format!("/apis/{}", listed.group));
        paths.push(format!("/apis/{}/{}", listed.group, listed.version));
    }
    paths.extend(["/api", "/api/v1", "/apis", "/apis/", "/openapi/v3/"].map(str::to_owned));
    paths.sort_unstable();
    paths.dedup();
    let quoted: Vec<String> = paths.iter().map(|path| format!("    {path:?}")).collect();
    format!("{{\n  \"paths\": [\n{}\n  ]\n}}\n", quoted.join(",\n"))
}
