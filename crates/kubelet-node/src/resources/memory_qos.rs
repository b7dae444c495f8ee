//! Memory that containers are slowed down at before they reach their limit, and memory that is kept for them (gate
//! `MemoryQoS`, <https://kep.k8s.io/2570>). Pure; version 2 of control groups alone knows of either.

use std::collections::HashMap;

use api_types::core_v1::constants::pod_qos_class;

/// The least size of the kernel's pages. One that has larger ones rounds down what it is given by itself.
const PAGE_BYTES: i64 = 4096;

/// What of the node's configuration it depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryQos {
    /// `memoryThrottlingFactor`: how far between request and limit containers are slowed down, above 0 and at most 1.
    pub throttling_factor: f64,
    /// What containers without a limit may use: the memory of all pods together.
    pub allocatable_bytes: i64,
    pub reservation: MemoryReservation,
}

/// Whether memory that pods ask for is kept for them (`memoryReservationPolicy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryReservation {
    #[default]
    None,
    /// For guaranteed pods under all circumstances, for burstable ones while there is other memory to reclaim.
    Tiered,
}

/// Memory that is kept, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeptMemory {
    /// Never reclaimed (`memory.min`).
    pub min_bytes: u64,
    /// Reclaimed last (`memory.low`).
    pub low_bytes: u64,
}

impl MemoryReservation {
    /// What is kept of an amount that a pod of this class, or a container of it, asks for.
    pub(super) fn of(self, class: &str, request: i64) -> KeptMemory {
        let bytes = u64::try_from(request).unwrap_or_default();
        match (self, class) {
            (Self::None, _) => KeptMemory::default(),
            (Self::Tiered, pod_qos_class::GUARANTEED) => KeptMemory { min_bytes: bytes, low_bytes: 0 },
            (Self::Tiered, _) => KeptMemory { min_bytes: 0, low_bytes: bytes },
        }
    }
}

impl MemoryQos {
    /// What the runtime is to write to the group of a container, by the class of its pod. Where nothing is kept for it
    /// that is written, too: a kubelet before may have kept something.
    pub(super) fn of(&self, class: &str, request: i64, limit: i64) -> HashMap<String, String> {
        let kept = self.reservation.of(class, request);
        let mut files: HashMap<String, String> = [("memory.min", kept.min_bytes), ("memory.low", kept.low_bytes)]
            .map(|(file, bytes)| (file.to_owned(), bytes.to_string()))
            .into();
        if let Some(high) = self.high(request, limit) {
            files.insert("memory.high".to_owned(), high.to_string());
        }
        files
    }

    /// Where a container is slowed down: nowhere if it may use just what it asks for, or nothing lies in between.
    fn high(&self, request: i64, limit: i64) -> Option<i64> {
        if request == limit {
            return None;
        }
        let most = if limit > 0 { limit } else { self.allocatable_bytes };
        #[expect(clippy::cast_precision_loss, reason = "a byte more or less does not matter")]
        let between = most.saturating_sub(request) as f64 * self.throttling_factor;
        #[expect(clippy::cast_possible_truncation, reason = "a part of what lies between two amounts of memory")]
        let high = request.saturating_add(between as i64);
        Some(high / PAGE_BYTES * PAGE_BYTES).filter(|high| *high > request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_slowed_down_between_request_and_limit() {
        let reservation = MemoryReservation::None;
        let qos = MemoryQos { throttling_factor: 0.9, allocatable_bytes: 10 << 30, reservation };
        const MI: i64 = 1 << 20;
        let cases = [
            ("between", (100 * MI, 200 * MI), Some(199_229_440)),
            ("whole pages", (0, 10_000), Some(8192)),
            ("no limit: what the node has", (MI, 0), Some((MI + ((10 << 30) - MI) * 9 / 10) / 4096 * 4096)),
            ("nothing asked for", (0, 0), None),
            ("just what it asks for", (MI, MI), None),
            ("less than a page between", (8192, 8200), None),
            ("more than there is", (11 << 30, 0), None),
        ];
        for (what, (request, limit), expected) in cases {
            let files = qos.of(pod_qos_class::BURSTABLE, request, limit);
            let high = files.get("memory.high").map(|text| text.parse::<i64>().unwrap());
            assert_eq!(high, expected, "{what}");
            assert_eq!((files["memory.min"].as_str(), files["memory.low"].as_str()), ("0", "0"), "{what}");
        }
        let all = MemoryQos { throttling_factor: 1.0, ..qos };
        assert_eq!(all.high(0, 1 << 20), Some(1 << 20));
    }

    #[test]
    fn memory_is_kept_by_class() {
        use MemoryReservation::{None, Tiered};
        use pod_qos_class::{BEST_EFFORT, BURSTABLE, GUARANTEED};
        let cases = [
            (None, GUARANTEED, 5, (0, 0)),
            (None, BURSTABLE, 5, (0, 0)),
            (Tiered, GUARANTEED, 5, (5, 0)),
            (Tiered, BURSTABLE, 5, (0, 5)),
            (Tiered, BEST_EFFORT, 0, (0, 0)),
            (Tiered, BURSTABLE, -1, (0, 0)),
        ];
        for (reservation, class, request, (min, low)) in cases {
            let expected = KeptMemory { min_bytes: min, low_bytes: low };
            assert_eq!(reservation.of(class, request), expected, "{reservation:?} {class}");
            let qos = MemoryQos { throttling_factor: 0.9, allocatable_bytes: 0, reservation };
            let files = qos.of(class, request, 0);
            assert_eq!((&files["memory.min"], &files["memory.low"]), (&min.to_string(), &low.to_string()));
        }
    }
}
