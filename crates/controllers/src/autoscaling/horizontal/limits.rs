//! How far and how fast a workload may go towards what its metrics want: stabilization over recent recommendations, rates of
//! change, and the ends of its range.

use std::time::Duration;

use api_types::autoscaling_v2::constants::{hpa_scaling_policy_type, scaling_policy_select};
use api_types::autoscaling_v2::{HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerBehavior};
use tokio::time::Instant;

use super::conditions::{Said, said};

const READY: Said = said("ReadyForNewScale", "recommended size matches current size");
const DOWN_STABILIZED: Said = said(
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const UP_STABILIZED: Said = said(
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const WITHIN: Said = said("DesiredWithinRange", "the desired count is within the acceptable range");
const TOO_FEW: Said = said("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const TOO_MANY: Said = said("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const UP_RATE: Said =
    said("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const DOWN_RATE: Said =
    said("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate");

/// Without rules of its own a workload at most doubles at once, or grows to this.
const LEAST_LEAP: i32 = 4;
/// More entries than this are never kept: the windows are an hour at most, and looks are a second apart or more.
const LONGEST_HISTORY: usize = 4096;

/// A number at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    replicas: i32,
    at: Instant,
}

/// What is remembered of an autoscaler. It is lost when the process ends.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    recommendations: Vec<Entry>,
    /// By how much it was scaled, and when.
    ups: Vec<Entry>,
    downs: Vec<Entry>,
}

/// The replicas that there are and may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) current: i32,
    pub(super) min: i32,
    pub(super) max: i32,
}

/// What came out, with what is said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limited {
    pub(super) replicas: i32,
    /// Of the condition `AbleToScale`.
    pub(super) able: Said,
    /// Of the condition `ScalingLimited`.
    pub(super) limited: Said,
    /// Whether that is true.
    pub(super) is_limited: bool,
}

impl History {
    /// What an autoscaler begins with: the workload is as large as it should be.
    pub(super) fn begin(&mut self, current: i32, now: Instant) {
        if self.recommendations.is_empty() {
            self.recommendations.push(Entry { replicas: current, at: now });
        }
    }

    /// What becomes of a proposal, which is remembered. `window` is how far back the way down looks where the autoscaler does
    /// not say so itself.
    pub(super) fn limit(
        &mut self,
        proposal: i32,
        range: Range,
        behavior: Option<&HorizontalPodAutoscalerBehavior>,
        window: Duration,
        now: Instant,
    ) -> Limited {
        let Some(behavior) = behavior else { return self.limit_plainly(proposal, range, window, now) };
        let (up, down) = (Rules::up(behavior), Rules::down(behavior, window));
        let stable = self.stabilize(proposal, range.current, (up.window, down.window), now);
        let able = if stable == proposal {
            READY
        } else if proposal >= range.current {
            UP_STABILIZED
        } else {
            DOWN_STABILIZED
        };
        let (replicas, limited) = self.limit_rate(stable, range, (&up, &down), now);
        Limited { replicas, able, limited, is_limited: replicas != stable }
    }

    fn limit_plainly(&mut self, proposal: i32, range: Range, window: Duration, now: Instant) -> Limited {
        let is_old = |entry: &Entry| now.saturating_duration_since(entry.at) > window;
        let recent = self.recommendations.iter().filter(|entry| !is_old(entry)).map(|entry| entry.replicas);
        let stable = recent.fold(proposal, i32::max);
        remember(&mut self.recommendations, Entry { replicas: proposal, at: now }, is_old);
        let able = if stable == proposal { READY } else { DOWN_STABILIZED };
        let leap = range.current.saturating_mul(2).max(LEAST_LEAP);
        let (most, beyond) = if range.max > leap { (leap, UP_RATE) } else { (range.max, TOO_MANY) };
        let (replicas, limited) = if stable < range.min {
            (range.min, TOO_FEW)
        } else if stable > most {
            (most, beyond)
        } else {
            (stable, WITHIN)
        };
        Limited { replicas, able, limited, is_limited: replicas != stable }
    }

    /// The nearest number to the current one that all recent recommendations of each direction's window agree to.
    fn stabilize(&mut self, proposal: i32, current: i32, windows: (Duration, Duration), now: Instant) -> i32 {
        let age = |entry: &Entry| now.saturating_duration_since(entry.at);
        let within = |window: Duration| {
            self.recommendations.iter().filter(move |entry| age(entry) < window).map(|entry| entry.replicas)
        };
        let (up, down) = windows;
        let least = within(up).fold(proposal, i32::min);
        let most = within(down).fold(proposal, i32::max);
        let stable = current.max(least).min(most);
        let is_old = |entry: &Entry| age(entry) > up && age(entry) > down;
        remember(&mut self.recommendations, Entry { replicas: proposal, at: now }, is_old);
        stable
    }

    fn limit_rate(&self, wanted: i32, range: Range, (up, down): (&Rules<'_>, &Rules<'_>), now: Instant) -> (i32, Said) {
        if wanted > range.current {
            let rate = self.furthest(up, Way::Up, range.current, now).max(range.current);
            let (most, why) = if range.max > rate { (rate, UP_RATE) } else { (range.max, TOO_MANY) };
            if wanted > most {
                return (most, why);
            }
        } else if wanted < range.current {
            let rate = self.furthest(down, Way::Down, range.current, now).min(range.current);
            let (least, why) = if range.min < rate { (rate, DOWN_RATE) } else { (range.min, TOO_FEW) };
            if wanted < least {
                return (least, why);
            }
        }
        (wanted, WITHIN)
    }

    /// How far the policies of a direction let go from here.
    fn furthest(&self, rules: &Rules<'_>, way: Way, current: i32, now: Instant) -> i32 {
        let change = |entries: &[Entry], period: Duration| -> i64 {
            let recent = entries.iter().filter(|entry| now.saturating_duration_since(entry.at) < period);
            recent.map(|entry| i64::from(entry.replicas)).sum()
        };
        let ends = rules.policies.iter().map(|policy| {
            let period = seconds(policy.period_seconds);
            let start = i64::from(current) - change(&self.ups, period) + change(&self.downs, period);
            way.end(start, policy)
        });
        let end = match (rules.select, way) {
            (Select::Disabled, _) => None,
            (Select::Max, Way::Up) | (Select::Min, Way::Down) => ends.max(),
            (Select::Min, Way::Up) | (Select::Max, Way::Down) => ends.min(),
        };
        end.unwrap_or(current)
    }

    /// Remembers that the workload was scaled, for the rates of an autoscaler that has rules for them.
    pub(super) fn scaled(
        &mut self,
        from: i32,
        to: i32,
        behavior: Option<&HorizontalPodAutoscalerBehavior>,
        now: Instant,
    ) {
        let Some(behavior) = behavior else { return };
        let (entries, rules) = if to > from {
            (&mut self.ups, Rules::up(behavior))
        } else {
            (&mut self.downs, Rules::down(behavior, Duration::ZERO))
        };
        let longest = rules.policies.iter().map(|policy| seconds(policy.period_seconds)).max().unwrap_or_default();
        let replicas = i32::try_from(to.abs_diff(from)).unwrap_or(i32::MAX);
        remember(entries, Entry { replicas, at: now }, |entry| now.saturating_duration_since(entry.at) > longest);
    }
}

/// Adds an entry in place of those that are too old to matter.
fn remember(entries: &mut Vec<Entry>, entry: Entry, is_old: impl Fn(&Entry) -> bool) {
    entries.retain(|entry| !is_old(entry));
    if entries.len() >= LONGEST_HISTORY {
        entries.remove(0);
    }
    entries.push(entry);
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Up,
    Down,
}

impl Way {
    /// How far a policy lets go that began at `start`.
    fn end(self, start: i64, policy: &HPAScalingPolicy) -> i32 {
        let value = i64::from(policy.value);
        let is_percent = policy.type_ == hpa_scaling_policy_type::PERCENT;
        let end = match self {
            Self::Up if is_percent => rounded(start, 1.0 + f64::from(policy.value) / 100.0, f64::ceil),
            Self::Up => start + value,
            Self::Down if is_percent => rounded(start, 1.0 - f64::from(policy.value) / 100.0, f64::trunc),
            Self::Down => start - value,
        };
        i32::try_from(end).unwrap_or(if end < 0 { i32::MIN } else { i32::MAX })
    }
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as upstream; the cast saturates")]
fn rounded(start: i64, factor: f64, round: fn(f64) -> f64) -> i64 {
    round(start as f64 * factor) as i64
}

#[derive(Debug, Clone, Copy)]
enum Select {
    Max,
    Min,
    Disabled,
}

/// The rules of a direction, complete. The API server fills in what is left out.
struct Rules<'a> {
    window: Duration,
    select: Select,
    policies: &'a [HPAScalingPolicy],
}

impl<'a> Rules<'a> {
    fn up(behavior: &'a HorizontalPodAutoscalerBehavior) -> Self {
        Self::of(behavior.scale_up.as_ref(), Duration::ZERO)
    }

    fn down(behavior: &'a HorizontalPodAutoscalerBehavior, window: Duration) -> Self {
        Self::of(behavior.scale_down.as_ref(), window)
    }

    fn of(rules: Option<&'a HPAScalingRules>, window: Duration) -> Self {
        let Some(rules) = rules else { return Self { window, select: Select::Disabled, policies: &[] } };
        let select = match rules.select_policy.as_deref() {
            Some(scaling_policy_select::DISABLED) => Select::Disabled,
            Some(scaling_policy_select::MIN) => Select::Min,
            _ => Select::Max,
        };
        let window = rules.stabilization_window_seconds.map_or(window, seconds);
        Self { window, select, policies: &rules.policies }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(300);

    fn range(current: i32) -> Range {
        Range { current, min: 2, max: 100 }
    }

    fn before(now: Instant, seconds: u64, replicas: i32) -> Entry {
        Entry { replicas, at: now.checked_sub(Duration::from_secs(seconds)).unwrap() }
    }

    /// Far enough from the beginning of time.
    fn now() -> Instant {
        Instant::now() + Duration::from_secs(10_000)
    }

    fn rules(window: Option<i32>, select: &str, policies: &[(&str, i32, i32)]) -> HPAScalingRules {
        let policy = |(type_, value, period_seconds): &(&str, i32, i32)| HPAScalingPolicy {
            type_: (*type_).to_owned(),
            value: *value,
            period_seconds: *period_seconds,
        };
        HPAScalingRules {
            stabilization_window_seconds: window,
            select_policy: Some(select.to_owned()),
            policies: policies.iter().map(policy).collect(),
            tolerance: None,
        }
    }

    fn behavior(up: HPAScalingRules, down: HPAScalingRules) -> HorizontalPodAutoscalerBehavior {
        HorizontalPodAutoscalerBehavior { scale_up: Some(up), scale_down: Some(down) }
    }

    #[tokio::test]
    async fn without_rules_the_highest_recent_recommendation_counts() {
        let now = now();
        for (case, past, proposal, current, expected) in [
            ("nothing remembered", vec![], 5, 4, (5, READY, WITHIN)),
            ("a higher one is recent", vec![(100, 8)], 5, 8, (8, DOWN_STABILIZED, WITHIN)),
            ("a higher one is just old enough to go", vec![(301, 8)], 5, 8, (5, READY, WITHIN)),
            ("a higher one is not quite", vec![(300, 8)], 5, 8, (8, DOWN_STABILIZED, WITHIN)),
            ("a lower one", vec![(100, 3)], 5, 8, (5, READY, WITHIN)),
            ("more than twice", vec![], 50, 8, (16, READY, UP_RATE)),
            ("little may grow to four", vec![], 50, 1, (4, READY, UP_RATE)),
            ("too many", vec![], 101, 60, (100, READY, TOO_MANY)),
            ("too few", vec![], 1, 8, (2, READY, TOO_FEW)),
        ] {
            let recommendations = past.into_iter().map(|(seconds, count)| before(now, seconds, count)).collect();
            let mut history = History { recommendations, ..History::default() };
            let limited = history.limit(proposal, range(current), None, WINDOW, now);
            assert_eq!((limited.replicas, limited.able, limited.limited), expected, "{case}");
            assert_eq!(limited.is_limited, limited.limited != WITHIN, "{case}");
            assert_eq!(history.recommendations.last(), Some(&Entry { replicas: proposal, at: now }), "{case}");
        }
    }

    #[tokio::test]
    async fn windows_hold_each_direction() {
        let now = now();
        let fast = |window| rules(window, "Max", &[("Percent", 1000, 15)]);
        for (case, (up, down), past, proposal, current, expected) in [
            ("no windows", (Some(0), Some(0)), vec![(1, 9), (1, 1)], 5, 4, (5, READY)),
            ("the lowest on the way up", (Some(60), Some(0)), vec![(50, 6), (10, 7)], 8, 4, (6, UP_STABILIZED)),
            ("never below what there is", (Some(60), Some(0)), vec![(50, 2)], 8, 4, (4, UP_STABILIZED)),
            ("the window is open at its far end", (Some(60), Some(0)), vec![(60, 2)], 8, 4, (8, READY)),
            ("the highest on the way down", (Some(0), Some(60)), vec![(50, 6)], 3, 9, (6, DOWN_STABILIZED)),
            ("the flag's window", (Some(0), None), vec![(299, 6)], 3, 9, (6, DOWN_STABILIZED)),
            ("beyond the flag's window", (Some(0), None), vec![(300, 6)], 3, 9, (3, READY)),
            ("never above what there is", (Some(0), Some(60)), vec![(50, 20)], 3, 9, (9, DOWN_STABILIZED)),
        ] {
            let recommendations = past.into_iter().map(|(seconds, count)| before(now, seconds, count)).collect();
            let mut history = History { recommendations, ..History::default() };
            let behavior = behavior(fast(up), fast(down));
            let limited = history.limit(proposal, range(current), Some(&behavior), WINDOW, now);
            assert_eq!((limited.replicas, limited.able), expected, "{case}");
        }
    }

    #[tokio::test]
    async fn policies_limit_the_rate() {
        let now = now();
        let both = &[("Pods", 4, 60), ("Percent", 50, 60)];
        let (max, min, off) =
            (rules(Some(0), "Max", both), rules(Some(0), "Min", both), rules(Some(0), "Disabled", both));
        let open = rules(Some(0), "Max", &[("Percent", 100, 60)]);
        type Row<'r> = (&'r str, &'r HPAScalingRules, &'r [(u64, i32)], &'r [(u64, i32)], i32, i32, (i32, Said));
        let up: &[Row<'_>] = &[
            ("the larger", &max, &[], &[], 50, 10, (15, UP_RATE)),
            ("the smaller", &min, &[], &[], 50, 10, (14, UP_RATE)),
            ("none", &off, &[], &[], 50, 10, (10, UP_RATE)),
            ("what was added lately counts", &max, &[(30, 2)], &[], 50, 10, (12, UP_RATE)),
            ("what was added long ago does not", &max, &[(60, 2)], &[], 50, 10, (15, UP_RATE)),
            ("what was removed lately may come back", &max, &[], &[(30, 10)], 50, 10, (30, UP_RATE)),
            ("too much was added already", &max, &[(30, 9)], &[], 50, 10, (10, UP_RATE)),
            ("percents are rounded up", &max, &[], &[], 50, 9, (14, UP_RATE)),
            ("the end of the range", &max, &[], &[], 150, 99, (100, TOO_MANY)),
            ("within", &max, &[], &[], 15, 10, (15, WITHIN)),
        ];
        let down: &[Row<'_>] = &[
            ("the larger", &max, &[], &[], 2, 10, (5, DOWN_RATE)),
            ("the smaller", &min, &[], &[], 2, 10, (6, DOWN_RATE)),
            ("none", &off, &[], &[], 2, 10, (10, DOWN_RATE)),
            ("what was removed lately counts", &max, &[], &[(30, 2)], 2, 10, (6, DOWN_RATE)),
            ("too much was removed already", &max, &[], &[(30, 90)], 2, 10, (10, DOWN_RATE)),
            ("percents are rounded towards zero", &max, &[], &[], 2, 9, (4, DOWN_RATE)),
            ("the end of the range", &open, &[], &[], 1, 10, (2, TOO_FEW)),
            ("within", &max, &[], &[], 5, 10, (5, WITHIN)),
        ];
        let rows = up.iter().map(|row| (row, true)).chain(down.iter().map(|row| (row, false)));
        for ((case, rules, ups, downs, proposal, current, expected), is_up) in rows {
            let entries = |past: &[(u64, i32)]| past.iter().map(|(at, by)| before(now, *at, *by)).collect();
            let mut history = History { ups: entries(ups), downs: entries(downs), ..History::default() };
            let (own, other) = ((*rules).clone(), open.clone());
            let behavior = if is_up { behavior(own, other) } else { behavior(other, own) };
            let limited = history.limit(*proposal, range(*current), Some(&behavior), WINDOW, now);
            assert_eq!((limited.replicas, limited.limited), *expected, "{case}, up: {is_up}");
        }
    }

    #[tokio::test]
    async fn a_workload_that_is_as_wanted_is_not_put_into_its_range() {
        let open = || rules(Some(0), "Max", &[("Percent", 100, 60)]);
        let limited = History::default().limit(1, range(1), Some(&behavior(open(), open())), WINDOW, now());
        assert_eq!((limited.replicas, limited.is_limited), (1, false));
    }

    #[tokio::test]
    async fn the_past_is_forgotten() {
        let (now, mut history) = (now(), History::default());
        history.begin(7, now);
        history.begin(9, now);
        assert_eq!(history.recommendations, [Entry { replicas: 7, at: now }], "only what it begins with");
        let rules = rules(Some(0), "Max", &[("Pods", 4, 60)]);
        let behavior = behavior(rules.clone(), rules);
        let later = |seconds| now + Duration::from_secs(seconds);
        history.scaled(1, 5, None, now);
        assert!(history.ups.is_empty(), "nobody asks for it");
        history.scaled(1, 5, Some(&behavior), now);
        history.scaled(5, 2, Some(&behavior), now);
        history.scaled(2, 4, Some(&behavior), later(60));
        assert_eq!((history.ups.len(), history.downs.len()), (2, 1));
        history.scaled(4, 5, Some(&behavior), later(61));
        assert_eq!(history.ups.iter().map(|entry| entry.replicas).collect::<Vec<_>>(), [2, 1]);
        for seconds in 0..2000 {
            history.limit(5, range(5), None, WINDOW, later(seconds));
        }
        assert!(history.recommendations.len() <= 302, "{}", history.recommendations.len());
    }
}
