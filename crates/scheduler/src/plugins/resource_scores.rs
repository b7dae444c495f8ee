//! How full a node gets, as a score: emptier is better, fuller is better, or a function of the utilization. All
//! division is of whole numbers.

use api_types::scheduler_config_v1::{ScoringStrategy, UtilizationShapePoint};

use crate::framework::{MAX_SCORE, PluginError};

/// A resource of a node as it would be with the pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighed {
    pub(super) allocatable: i64,
    pub(super) requested: i64,
}

/// A scoring function over some resources.
#[derive(Debug)]
pub(super) struct Strategy {
    kind: Kind,
    resources: Vec<(String, i64)>,
}

#[derive(Debug)]
enum Kind {
    Least,
    Most,
    /// Points of utilization in percent and score in 0..=100, by rising utilization.
    Ratio(Vec<(i64, i64)>),
}

impl Strategy {
    pub(super) fn of(strategy: &ScoringStrategy) -> Result<Self, PluginError> {
        let kind = match strategy.type_.as_str() {
            "LeastAllocated" => Kind::Least,
            "MostAllocated" => Kind::Most,
            "RequestedToCapacityRatio" => {
                let ratio = strategy.requested_to_capacity_ratio.as_ref();
                Kind::Ratio(points(ratio.map(|ratio| ratio.shape.as_slice()).unwrap_or_default()))
            }
            other => return Err(PluginError::ScoringStrategy(other.to_owned())),
        };
        let resources = strategy.resources.iter().map(|spec| (spec.name.clone(), spec.weight)).collect();
        Ok(Self { kind, resources })
    }

    /// The same resources, where fuller is better.
    pub(super) fn filling(&self) -> Self {
        Self { kind: Kind::Most, resources: self.resources.clone() }
    }

    /// The resources that count.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.resources.iter().map(|(name, _)| name.as_str())
    }

    /// The score of a node; `of` gives a resource of it, or none where it does not count.
    pub(super) fn score(&self, of: impl Fn(&str) -> Option<Weighed>) -> i64 {
        let (mut total, mut weights) = (0, 0);
        for (name, weight) in &self.resources {
            let Some(resource) = of(name) else { continue };
            let score = self.kind.score(resource);
            if matches!(self.kind, Kind::Ratio(_)) && score <= 0 {
                continue;
            }
            total += score * weight;
            weights += weight;
        }
        match (&self.kind, weights) {
            (_, 0) => 0,
            (Kind::Ratio(_), weights) => (2 * total + weights) / (2 * weights),
            (_, weights) => total / weights,
        }
    }
}

/// The points of a shape: utilization in percent and score in 0..=100.
pub(super) fn points(shape: &[UtilizationShapePoint]) -> Vec<(i64, i64)> {
    /// Scores in the configuration go up to 10.
    const SCALE: i64 = MAX_SCORE / 10;
    shape.iter().map(|point| (i64::from(point.utilization), i64::from(point.score) * SCALE)).collect()
}

impl Kind {
    fn score(&self, resource: Weighed) -> i64 {
        let Weighed { allocatable, requested } = resource;
        match self {
            Self::Least if requested > allocatable => 0,
            Self::Least => part(allocatable - requested, allocatable),
            Self::Most => part(requested.min(allocatable), allocatable),
            Self::Ratio(points) => by_utilization(points, resource),
        }
    }
}

/// The score of a resource by how much of it would be taken; what is too small counts as full.
pub(super) fn by_utilization(points: &[(i64, i64)], resource: Weighed) -> i64 {
    let Weighed { allocatable, requested } = resource;
    interpolate(points, if requested > allocatable { MAX_SCORE } else { part(requested, allocatable) })
}

/// Bytes times a hundred may not fit 64 bits.
fn part(amount: i64, of: i64) -> i64 {
    i64::try_from(i128::from(amount) * i128::from(MAX_SCORE) / i128::from(of.max(1))).unwrap_or(MAX_SCORE)
}

/// The piecewise linear function through the points, constant outside.
fn interpolate(points: &[(i64, i64)], x: i64) -> i64 {
    let Some(next) = points.iter().position(|(utilization, _)| x <= *utilization) else {
        return points.last().map_or(0, |(_, score)| *score);
    };
    let before = next.checked_sub(1).and_then(|previous| points.get(previous));
    match (before, points.get(next)) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0).max(1),
        (None, Some((_, score))) => *score,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use api_types::scheduler_config_v1::{RequestedToCapacityRatioParam, ResourceSpec};

    use super::*;

    fn strategy(type_: &str) -> Strategy {
        let point = |utilization, score| UtilizationShapePoint { utilization, score };
        let resource = |name: &str, weight| ResourceSpec { name: name.into(), weight };
        Strategy::of(&ScoringStrategy {
            type_: type_.into(),
            resources: vec![resource("cpu", 1), resource("memory", 3)],
            requested_to_capacity_ratio: Some(RequestedToCapacityRatioParam {
                shape: vec![point(0, 0), point(50, 10), point(100, 0)],
            }),
        })
        .unwrap()
    }

    #[test]
    fn scores() {
        let cases = [
            ("LeastAllocated", (1000, 250), (100, 50), (75 + 3 * 50) / 4),
            ("LeastAllocated", (1000, 2000), (100, 50), (3 * 50) / 4),
            ("MostAllocated", (1000, 250), (100, 200), (25 + 3 * 100) / 4),
            ("RequestedToCapacityRatio", (1000, 250), (100, 75), 50),
            ("RequestedToCapacityRatio", (1000, 500), (100, 100), 100),
        ];
        for (type_, cpu, memory, expected) in cases {
            let score = strategy(type_).score(|name| {
                let (allocatable, requested) = if name == "cpu" { cpu } else { memory };
                Some(Weighed { allocatable, requested })
            });
            assert_eq!(score, expected, "{type_} {cpu:?} {memory:?}");
        }
    }
}
