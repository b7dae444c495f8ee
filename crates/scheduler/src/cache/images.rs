//! Which nodes have which images.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api_types::core_v1::Node;

use crate::node_info::ImageSummary;

/// Images by name.
#[derive(Debug, Default)]
pub(super) struct Images(HashMap<String, Image>);

#[derive(Debug)]
struct Image {
    /// Sizes as nodes report them; the image's size is that of the first.
    nodes: BTreeMap<Arc<str>, i64>,
    size: i64,
}

impl Images {
    /// Notes the images of a node; the answer is what the node remembers of them.
    pub(super) fn add(&mut self, name: &Arc<str>, node: &Node) -> Arc<HashMap<String, ImageSummary>> {
        let mut summary = HashMap::new();
        for image in &node.status.images {
            for tag in &image.names {
                let entry = self
                    .0
                    .entry(tag.clone())
                    .or_insert_with(|| Image { nodes: BTreeMap::new(), size: image.size_bytes });
                entry.nodes.insert(Arc::clone(name), image.size_bytes);
                summary.insert(tag.clone(), ImageSummary { size: entry.size, nodes: entry.nodes.len() });
            }
        }
        Arc::new(summary)
    }

    /// Forgets the images of a node.
    pub(super) fn remove(&mut self, name: &str, node: &Node) {
        for tag in node.status.images.iter().flat_map(|image| &image.names) {
            let Some(image) = self.0.get_mut(tag) else { continue };
            image.nodes.remove(name);
            if image.nodes.is_empty() {
                self.0.remove(tag);
            } else if let Some(size) = image.nodes.values().next()
                && !image.nodes.values().any(|other| *other == image.size)
            {
                image.size = *size;
            }
        }
    }
}
