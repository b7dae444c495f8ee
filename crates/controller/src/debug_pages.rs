//! Pages under `/debug/controllers` that controllers serve beside their work, of what only they know. They are there as long
//! as the process leads, and made when somebody asks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use component_base::serving::Query;
use parking_lot::RwLock;

/// Where they are, behind which come the controller and its page.
const PREFIX: &str = "/debug/controllers/";

/// The content of a page.
pub struct DebugPage {
    /// Its media type.
    pub content_type: &'static str,
    /// Itself.
    pub body: String,
}

type Answer = Arc<dyn Fn(&Query) -> DebugPage + Send + Sync>;

/// The pages of a process. Clones share them.
#[derive(Clone, Default)]
pub struct DebugPages(Arc<RwLock<BTreeMap<String, Answer>>>);

impl fmt::Debug for DebugPages {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.read().keys()).finish()
    }
}

impl DebugPages {
    /// Serves a page of a controller from now on.
    pub(crate) fn put(
        &self,
        controller: &str,
        page: &str,
        answer: impl Fn(&Query) -> DebugPage + Send + Sync + 'static,
    ) {
        self.0.write().insert(format!("{PREFIX}{controller}/{page}"), Arc::new(answer));
    }

    /// The page at a path; nothing where there is none.
    pub(crate) fn answer(&self, path: &str, query: Option<&str>) -> Option<DebugPage> {
        if !path.starts_with(PREFIX) {
            return None;
        }
        let answer = self.0.read().get(path).cloned()?;
        Some(answer(&Query::parse(query.unwrap_or_default()).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_controller_and_name() {
        let pages = DebugPages::default();
        let answer = |query: &Query| DebugPage {
            content_type: "text/plain",
            body: query.all("uid").collect::<Vec<_>>().join(","),
        };
        pages.put("gc", "graph", answer);
        let body = |path, query| pages.answer(path, query).map(|page| page.body);
        for (path, query, expected) in [
            ("/debug/controllers/gc/graph", None, Some("")),
            ("/debug/controllers/gc/graph", Some("uid=a&x=y&uid=b%2Fc"), Some("a,b/c")),
            ("/debug/controllers/gc/graph", Some("uid"), Some("")),
            ("/debug/controllers/gc/graph/", None, None),
            ("/debug/controllers/gc", None, None),
            ("/debug/controllers/other/graph", None, None),
            ("/graph", None, None),
        ] {
            assert_eq!(body(path, query).as_deref(), expected, "{path} {query:?}");
        }
    }
}
