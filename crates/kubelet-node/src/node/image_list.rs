//! The images in the node's status.

use api_types::core_v1::ContainerImage;
use node_api::cri::v1::Image;

/// Names shown of each image.
const MAX_NAMES: usize = 5;

/// The largest images first; `limit` below zero is all.
pub(super) fn of(images: &[Image], limit: i32) -> Vec<ContainerImage> {
    let mut sorted: Vec<&Image> = images.iter().collect();
    sorted.sort_by(|one, other| other.size.cmp(&one.size).then_with(|| one.id.cmp(&other.id)));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    sorted
        .into_iter()
        .take(limit)
        .map(|image| ContainerImage {
            names: image.repo_digests.iter().chain(&image.repo_tags).take(MAX_NAMES).cloned().collect(),
            size_bytes: i64::try_from(image.size).unwrap_or(i64::MAX),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_first() {
        let image = |id: &str, size: u64, tags: usize| Image {
            id: id.into(),
            size,
            repo_digests: vec![format!("{id}@sha256:0")],
            repo_tags: (0..tags).map(|tag| format!("{id}:{tag}")).collect(),
            ..Image::default()
        };
        let images = [image("a", 1, 9), image("b", 3, 1), image("c", 2, 1)];
        let listed = of(&images, 2);
        assert_eq!(listed.iter().map(|image| image.size_bytes).collect::<Vec<_>>(), [3, 2]);
        let all = of(&images, -1);
        assert_eq!(all.len(), 3);
        assert_eq!(all[2].names, ["a@sha256:0", "a:0", "a:1", "a:2", "a:3"]);
    }
}
