//! Resources of running containers changed in place, seen in the spec, in the status and in the containers' cgroups.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{condition_of, container, idle, is_true, pod, restarts, text, with};

/// Requests and limits of one container: milli-CPUs and MiB; 0 is none.
#[derive(Clone, Copy)]
struct Room {
    cpu: u32,
    memory: u32,
    cpu_limit: u32,
    memory_limit: u32,
}

/// The same as request and as limit.
const fn guaranteed(cpu: u32, memory: u32) -> Room {
    Room { cpu, memory, cpu_limit: cpu, memory_limit: memory }
}

const fn burstable(cpu: u32, cpu_limit: u32, memory: u32, memory_limit: u32) -> Room {
    Room { cpu, memory, cpu_limit, memory_limit }
}

impl Room {
    fn resources(self) -> Value {
        let list = |cpu: u32, memory: u32| {
            let mut list = serde_json::Map::new();
            if cpu > 0 {
                list.insert("cpu".to_owned(), json!(format!("{cpu}m")));
            }
            if memory > 0 {
                list.insert("memory".to_owned(), json!(format!("{memory}Mi")));
            }
            Value::Object(list)
        };
        let mut resources = serde_json::Map::new();
        for (name, list) in
            [("requests", list(self.cpu, self.memory)), ("limits", list(self.cpu_limit, self.memory_limit))]
        {
            if list.as_object().is_some_and(|list| !list.is_empty()) {
                resources.insert(name.to_owned(), list);
            }
        }
        Value::Object(resources)
    }

    /// What the container's own cgroup says: CPU quota of a period of 100 ms, and bytes.
    fn cgroup(self) -> String {
        let quota = match self.cpu_limit {
            0 => "none".to_owned(),
            // The kernel takes no less than a millisecond.
            milli => (u64::from(milli) * 100).max(1000).to_string(),
        };
        let bytes = match self.memory_limit {
            0 => "none".to_owned(),
            memory => (u64::from(memory) << 20).to_string(),
        };
        format!("{quota} {bytes}")
    }
}

/// Prints what [`Room::cgroup`] says, of either version of cgroups.
const CGROUP: &str = "cd /sys/fs/cgroup; if [ -e cpu.max ]; then q=$(cut -d\" \" -f1 cpu.max); m=$(cat memory.max); \
    else q=$(cat cpu/cpu.cfs_quota_us); m=$(cat memory/memory.limit_in_bytes); fi; \
    case $q in -1|max) q=none;; esac; case $m in max|9223372036854*) m=none;; esac; echo $q $m";

struct Case {
    name: &'static str,
    item: &'static str,
    before: &'static [Room],
    after: &'static [Room],
}

const CASES: &[Case] = &[
    Case {
        name: "resize-net-increase",
        item: "Pod InPlace Resize Container guaranteed pods with multiple containers 3 containers - increase cpu & mem on c1, c2, decrease cpu & mem on c3 - net increase",
        before: &[guaranteed(20, 32), guaranteed(20, 32), guaranteed(30, 48)],
        after: &[guaranteed(30, 48), guaranteed(40, 64), guaranteed(20, 40)],
    },
    Case {
        name: "resize-net-decrease",
        item: "Pod InPlace Resize Container guaranteed pods with multiple containers 3 containers - increase cpu & mem on c1, decrease cpu & mem on c2, c3 - net decrease",
        before: &[guaranteed(20, 32), guaranteed(40, 64), guaranteed(30, 48)],
        after: &[guaranteed(30, 40), guaranteed(20, 48), guaranteed(20, 32)],
    },
    Case {
        name: "resize-mixed",
        item: "Pod InPlace Resize Container guaranteed pods with multiple containers 3 containers - increase: CPU (c1,c3), memory (c2, c3) ; decrease: CPU (c2)",
        before: &[guaranteed(20, 32), guaranteed(30, 32), guaranteed(20, 32)],
        after: &[guaranteed(30, 32), guaranteed(20, 48), guaranteed(30, 48)],
    },
    Case {
        name: "resize-six",
        item: "Pod InPlace Resize Container burstable pods - extended 6 containers - various operations performed (including adding limits and requests)",
        before: &[
            burstable(0, 0, 0, 0),
            burstable(0, 0, 16, 0),
            burstable(10, 0, 0, 0),
            burstable(10, 20, 16, 32),
            burstable(10, 20, 16, 32),
            burstable(10, 20, 16, 32),
        ],
        after: &[
            burstable(10, 20, 16, 32),
            burstable(10, 20, 16, 32),
            burstable(20, 30, 0, 0),
            burstable(20, 40, 32, 64),
            burstable(10, 30, 16, 48),
            burstable(20, 20, 32, 32),
        ],
    },
    Case {
        name: "resize-equivalent",
        item: "Pod InPlace Resize Container burstable pods - extended resize with equivalents",
        before: &[burstable(2, 10, 0, 0)],
        after: &[burstable(1, 5, 0, 0)],
    },
];

pub(crate) fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> =
        CASES.iter().map(|case| Check::new(case.name, &[case.item], move |place| resize(place, case))).collect();
    checks.push(replaced());
    checks
}

fn containers(rooms: &[Room]) -> Vec<Value> {
    let of = |(number, room): (usize, &Room)| {
        let policy = json!([{"resourceName": "cpu", "restartPolicy": "NotRequired"},
            {"resourceName": "memory", "restartPolicy": "NotRequired"}]);
        with(idle(&format!("c{number}")), json!({"resources": room.resources(), "resizePolicy": policy}))
    };
    rooms.iter().enumerate().map(of).collect()
}

async fn resize(place: Place, case: &'static Case) {
    place.ready(&pod(case.name, &containers(case.before), json!({}))).await;
    shown(&place, case.name, case.before).await;
    let changed = |(number, room): (usize, &Room)| json!({"name": format!("c{number}"), "resources": room.resources()});
    let changed: Vec<Value> = case.after.iter().enumerate().map(changed).collect();
    let path = place.path(&format!("pods/{}/resize", case.name));
    place.strategic(&path, &json!({"spec": {"containers": changed}})).await.ok();
    shown(&place, case.name, case.after).await;
    place.delete(&place.path(&format!("pods/{}", case.name))).await.ok();
}

fn replaced() -> Check {
    const ITEM: &str = "Pod InPlace Resize Container resize pod via the replace endpoint";
    Check::new("resize-replaced", &[ITEM], async |place: Place| {
        let (before, after) = ([burstable(10, 20, 16, 32)], [burstable(20, 30, 32, 48)]);
        place.ready(&pod("replaced", &containers(&before), json!({}))).await;
        let path = place.path("pods/replaced/resize");
        let settled = |pod: &Value| pod["status"]["observedGeneration"] == pod["metadata"]["generation"];
        let whole = place.until(&place.path("pods/replaced"), settled).await;
        let mut found = place.get(&path).await.ok();
        assert_eq!(found, whole);
        found["spec"]["containers"][0]["resources"] = after[0].resources();
        found["metadata"]["resourceVersion"] = Value::Null;
        place.replace(&path, &found).await.ok();
        shown(&place, "replaced", &after).await;
        place.delete(&place.path("pods/replaced")).await.ok();
    })
}

/// Waits until everything shows these resources, without a restart.
async fn shown(place: &Place, name: &str, rooms: &[Room]) {
    let path = place.path(&format!("pods/{name}"));
    let in_status = |pod: &Value, number: usize, room: &Room| {
        let resources = room.resources();
        let wanted = if resources == json!({}) { &Value::Null } else { &resources };
        let have = &container(pod, &format!("c{number}"))["resources"];
        have == wanted || (wanted.is_null() && *have == json!({}))
    };
    let all = |pod: &Value| {
        rooms.iter().enumerate().all(|(number, room)| in_status(pod, number, room))
            && condition_of(pod, "PodResizeInProgress").is_null()
            && condition_of(pod, "PodResizePending").is_null()
    };
    let pod = place.until(&path, all).await;
    assert!(is_true(&pod, "Ready"), "{pod}");
    for (number, room) in rooms.iter().enumerate() {
        let name_of = format!("c{number}");
        assert_eq!(restarts(&pod, &name_of), 0, "{name_of}");
        assert_eq!(
            place.exec(text(&pod["metadata"]["name"]), &name_of, CGROUP).await,
            room.cgroup(),
            "{name_of} of {name}"
        );
    }
}
