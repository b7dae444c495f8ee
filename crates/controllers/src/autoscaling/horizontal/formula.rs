//! From values of a metric to a number of replicas. Amounts are in thousandths.

use std::collections::BTreeMap;

use super::groups::{Groups, Samples};

/// Why there is no number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FormulaError {
    #[error("no pods returned by selector while calculating replica count")]
    NoPods,
    #[error("unable to calculate ready pods: {}", Self::NoPods)]
    NoReadyPods,
    #[error("did not receive metrics for targeted pods (pods might be unready)")]
    NoSamples,
    #[error("no metrics returned matched known pods")]
    NoRequests,
    #[error("missing request for {resource} in container {container} of Pod {pod}")]
    MissingRequest { resource: String, container: String, pod: String },
    #[error("missing pod-level request for {resource} in Pod {pod}")]
    MissingPodRequest { resource: String, pod: String },
    #[error("container {container} not found in Pod {pod}")]
    NoContainer { container: String, pod: String },
}

/// How far from 1 a ratio may be without anything being done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tolerance {
    pub(super) up: f64,
    pub(super) down: f64,
}

impl Tolerance {
    fn holds(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

/// What the pods are to use on average.
pub(super) enum Goal<'a> {
    /// A share of what each of them asks for.
    Percent {
        percent: i32,
        requests: &'a BTreeMap<String, i64>,
    },
    Amount(i64),
}

/// How what is used relates to what is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usage {
    ratio: f64,
    /// In percent of what is asked for, where that is the goal.
    pub(super) percent: Option<i32>,
    pub(super) average: i64,
}

impl Goal<'_> {
    fn usage(&self, samples: &Samples) -> Result<Usage, FormulaError> {
        let values = samples.iter().map(|(name, sample)| (name, i128::from(sample.milli)));
        match self {
            Self::Amount(goal) => {
                let count = i128::try_from(samples.len()).unwrap_or(i128::MAX).max(1);
                let average = whole(values.map(|(_, value)| value).sum::<i128>() / count);
                Ok(Usage { ratio: float(average) / float(*goal), percent: None, average })
            }
            Self::Percent { percent, requests } => {
                let (mut used, mut asked, mut count) = (0_i128, 0_i128, 0_i128);
                for (name, value) in values {
                    if let Some(request) = requests.get(name) {
                        (used, asked, count) = (used + value, asked + i128::from(*request), count + 1);
                    }
                }
                if asked == 0 {
                    return Err(FormulaError::NoRequests);
                }
                let current = i32::try_from(used * 100 / asked).unwrap_or(i32::MAX);
                let ratio = f64::from(current) / f64::from(*percent);
                Ok(Usage { ratio, percent: Some(current), average: whole(used / count) })
            }
        }
    }

    /// What a pod without a value is taken to use when fewer pods may do: what it should, but at least all it asks for.
    fn assumed(&self, pod: &str) -> i64 {
        match self {
            Self::Amount(goal) => *goal,
            Self::Percent { percent, requests } => {
                let share = i64::from((*percent).max(100));
                requests.get(pod).map_or(0, |request| request.saturating_mul(share) / 100)
            }
        }
    }
}

/// How many replicas bring the average of the pods to its goal, careful where values are missing: whatever the pods without
/// one use may not turn the direction. The samples are those that count, at least one.
pub(super) fn from_pods(
    goal: &Goal<'_>,
    groups: &Groups,
    mut samples: Samples,
    current: i32,
    tolerance: Tolerance,
) -> Result<(i32, Usage), FormulaError> {
    let usage = goal.usage(&samples)?;
    let with_unready = !groups.unready.is_empty() && usage.ratio > 1.0;
    if !with_unready && groups.missing.is_empty() {
        let is_fine = tolerance.holds(usage.ratio);
        return Ok((if is_fine { current } else { count(usage.ratio * size(groups.ready)) }, usage));
    }
    let some = samples.values().next().copied();
    let mut assume = |name: &String, milli: i64| {
        samples.extend(some.map(|sample| (name.clone(), super::groups::Sample { milli, ..sample })));
    };
    if usage.ratio < 1.0 {
        groups.missing.iter().for_each(|name| assume(name, goal.assumed(name)));
    } else if usage.ratio > 1.0 {
        groups.missing.iter().for_each(|name| assume(name, 0));
    }
    if with_unready {
        groups.unready.iter().for_each(|name| assume(name, 0));
    }
    let careful = goal.usage(&samples)?.ratio;
    let turned = (usage.ratio < 1.0 && careful > 1.0) || (usage.ratio > 1.0 && careful < 1.0);
    let wanted = count(careful * size(samples.len()));
    let against = (careful < 1.0 && wanted > current) || (careful > 1.0 && wanted < current);
    Ok((if tolerance.holds(careful) || turned || against { current } else { wanted }, usage))
}

/// How many replicas bring one value to its goal. Nothing is known of pods where there are none.
pub(super) fn from_value(
    value: i64,
    goal: i64,
    current: i32,
    ready: Option<usize>,
    tolerance: Tolerance,
) -> Result<i32, FormulaError> {
    let ratio = float(value) / float(goal);
    if current == 0 {
        return Ok(count(ratio));
    }
    if tolerance.holds(ratio) {
        return Ok(current);
    }
    ready.map(|ready| count(ratio * size(ready))).ok_or(FormulaError::NoReadyPods)
}

/// How many replicas bring the share of each in one value to its goal, and what that share is.
pub(super) fn from_share(value: i64, goal: i64, replicas: i32, tolerance: Tolerance) -> (i32, i64) {
    let ratio = float(value) / (float(goal) * f64::from(replicas));
    let wanted = if tolerance.holds(ratio) { replicas } else { count(float(value) / float(goal)) };
    let share = float(value) / f64::from(replicas);
    // Nobody has a share where there is nobody.
    let share = if share.is_finite() { share.ceil() } else { float(value) };
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, which is wanted")]
    let share = share as i64;
    (wanted, share)
}

#[expect(clippy::cast_precision_loss, reason = "upstream computes in floating point, too")]
fn float(value: i64) -> f64 {
    value as f64
}

#[expect(clippy::cast_precision_loss, reason = "there are never that many pods")]
fn size(count: usize) -> f64 {
    count as f64
}

/// The next whole number of replicas; the largest where there is none.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, which is wanted")]
fn count(replicas: f64) -> i32 {
    replicas.ceil() as i32
}

fn whole(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api_machinery::time::Time;

    use super::super::groups::Sample;
    use super::*;

    const TENTH: Tolerance = Tolerance { up: 0.1, down: 0.1 };

    fn samples(values: &[i64]) -> Samples {
        let sample = |milli: i64| Sample { at: Time::from_unix_seconds(1), window: Duration::from_secs(60), milli };
        values.iter().enumerate().map(|(index, milli)| (format!("p{index}"), sample(*milli))).collect()
    }

    fn computed(goal: &Goal<'_>, groups: &Groups, values: &[i64], current: i32) -> Result<(i32, Usage), FormulaError> {
        let mut samples = samples(values);
        groups.filter(&mut samples);
        from_pods(goal, groups, samples, current, TENTH)
    }

    fn groups(ready: usize, unready: &[&str], missing: &[&str]) -> Groups {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Groups { ready, unready: own(unready), missing: own(missing), ..Groups::default() }
    }

    fn thousands(names: &[&str]) -> BTreeMap<String, i64> {
        names.iter().map(|name| ((*name).to_owned(), 1000)).collect()
    }

    #[test]
    fn utilization_leads_to_replicas() {
        let requests = thousands(&["p0", "p1", "p2", "p3"]);
        type Row<'r> = (&'r str, i32, &'r [i64], Groups, i32, i32);
        let rows: &[Row<'_>] = &[
            ("up", 30, &[300, 500, 700], groups(3, &[], &[]), 3, 5),
            ("down", 50, &[100, 100, 100], groups(3, &[], &[]), 3, 1),
            ("within the tolerance", 50, &[500, 520, 540], groups(3, &[], &[]), 3, 3),
            ("at the tolerance's end", 50, &[550], groups(1, &[], &[]), 1, 1),
            ("beyond the tolerance's end", 50, &[560], groups(1, &[], &[]), 1, 2),
            ("unready pods damp the way up", 30, &[300, 500, 700], groups(2, &["p0"], &[]), 3, 4),
            ("and may stop it", 50, &[0, 0, 700], groups(1, &["p0", "p1"], &[]), 3, 3),
            ("unready pods do not count on the way down", 50, &[900, 100, 100], groups(2, &["p0"], &[]), 3, 1),
            ("missing pods use nothing on the way up", 30, &[900, 900], groups(2, &[], &["p2"]), 3, 6),
            ("missing pods use all they ask for on the way down", 50, &[100, 100], groups(2, &[], &["p2"]), 3, 3),
            ("a goal above all they ask for is what they use", 200, &[400, 400], groups(2, &[], &["p2"]), 3, 2),
            ("missing pods that would turn the direction", 50, &[600, 600], groups(2, &[], &["p2"]), 3, 3),
        ];
        for (case, percent, values, groups, current, expected) in rows {
            let goal = Goal::Percent { percent: *percent, requests: &requests };
            let (replicas, _) = computed(&goal, groups, values, *current).unwrap();
            assert_eq!(replicas, *expected, "{case}");
        }
    }

    #[test]
    fn amounts_lead_to_replicas() {
        type Row<'r> = (&'r str, i64, &'r [i64], Groups, i32, i32);
        let rows: &[Row<'_>] = &[
            ("up", 15_000, &[20_000, 10_000, 30_000], groups(3, &[], &[]), 3, 4),
            ("down", 20_000, &[12_000, 12_000], groups(2, &[], &[]), 2, 2),
            ("far down", 20_000, &[8_000, 8_000], groups(2, &[], &[]), 2, 1),
            ("missing on the way down", 20_000, &[1_000, 1_000], groups(2, &[], &["x"]), 3, 2),
            ("missing on the way up", 10_000, &[40_000], groups(1, &[], &["x"]), 2, 4),
        ];
        for (case, goal, values, groups, current, expected) in rows {
            let (replicas, _) = computed(&Goal::Amount(*goal), groups, values, *current).unwrap();
            assert_eq!(replicas, *expected, "{case}");
        }
    }

    #[test]
    fn percent_and_average_are_cut_to_whole_numbers() {
        let requests = thousands(&["p0", "p1", "p2"]);
        let goal = Goal::Percent { percent: 50, requests: &requests };
        let (_, usage) = computed(&goal, &groups(3, &[], &[]), &[333, 333, 334], 3).unwrap();
        assert_eq!((usage.percent, usage.average), (Some(33), 333));
    }

    #[test]
    fn pods_that_nobody_knows_lead_nowhere() {
        let requests = thousands(&["other"]);
        let goal = Goal::Percent { percent: 50, requests: &requests };
        assert_eq!(computed(&goal, &groups(1, &[], &[]), &[5], 1), Err(FormulaError::NoRequests));
    }

    #[test]
    fn one_value_leads_to_replicas() {
        for (value, goal, current, ready, expected) in [
            (20, 10, 3, Some(3), Ok(6)),
            (20, 10, 3, Some(2), Ok(4)),
            (5, 10, 4, Some(4), Ok(2)),
            (11, 10, 3, None, Ok(3)),
            (20, 10, 3, None, Err(FormulaError::NoReadyPods)),
            (25, 10, 0, None, Ok(3)),
            (0, 10, 0, None, Ok(0)),
            (i64::MAX, 1, 1, Some(1), Ok(i32::MAX)),
        ] {
            assert_eq!(from_value(value, goal, current, ready, TENTH), expected, "{value} {goal} {current} {ready:?}");
        }
        for (value, goal, replicas, expected) in [
            (100, 20, 4, (5, 25)),
            (85, 20, 4, (4, 22)),
            (10, 20, 4, (1, 3)),
            (100, 20, 0, (5, 100)),
            (i64::MAX, 1, 1, (i32::MAX, i64::MAX)),
        ] {
            assert_eq!(from_share(value, goal, replicas, TENTH), expected, "{value} {goal} {replicas}");
        }
    }

    #[test]
    fn each_direction_has_its_tolerance() {
        let careful_up = Tolerance { up: 0.5, down: 0.0 };
        assert_eq!(from_value(15, 10, 4, Some(4), careful_up), Ok(4));
        assert_eq!(from_value(16, 10, 4, Some(4), careful_up), Ok(7));
        assert_eq!(from_value(9, 10, 10, Some(10), careful_up), Ok(9));
    }
}
