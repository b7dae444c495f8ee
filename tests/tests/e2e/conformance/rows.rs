//! Tables of containers: every row is a container of one shared pod, and what it must print.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{BUSYBOX, pod, text, with};

/// Where a row's volume is mounted.
pub(crate) const AT: &str = "/v";

/// What a row's container must print; blanks at the ends do not matter.
pub(crate) enum Expect {
    /// Just this.
    Is(String),
    /// These lines, among others.
    Lines(Vec<String>),
    /// What these fields of the pod hold, a line each; by JSON pointer.
    Fields(&'static [&'static str]),
    /// What the pod's node can give to pods of these resources, in whole units, a line each.
    Allocatable(&'static [&'static str]),
}

/// One container.
pub(crate) struct Row {
    items: Vec<String>,
    container: Value,
    volume: Option<Value>,
    expect: Expect,
}

impl Row {
    /// A container that runs a script.
    pub(crate) fn script(item: impl Into<String>, script: &str, container: Value, expect: Expect) -> Self {
        Self::command(item, &["sh", "-c", script], container, expect)
    }

    /// A container that runs a command.
    pub(crate) fn command(item: impl Into<String>, command: &[&str], container: Value, expect: Expect) -> Self {
        let container = with(json!({"image": BUSYBOX, "command": command}), container);
        Self { items: vec![item.into()], container, volume: None, expect }
    }

    /// A container that runs a script and has a volume at [`AT`].
    pub(crate) fn volume(item: impl Into<String>, volume: Value, script: &str, expect: Expect) -> Self {
        Self::mounted(item, volume, json!({"mountPath": AT}), script, expect)
    }

    /// A container that runs a script and has a volume mounted as told.
    pub(crate) fn mounted(item: impl Into<String>, volume: Value, mount: Value, script: &str, expect: Expect) -> Self {
        let mut row = Self::script(item, script, json!({"volumeMounts": [mount]}), expect);
        row.volume = Some(volume);
        row
    }

    /// With more members of the container.
    pub(crate) fn container(mut self, more: Value) -> Self {
        self.container = with(self.container, more);
        self
    }

    pub(crate) fn non_root(self) -> Self {
        self.container(json!({"securityContext": {"runAsUser": 1000}}))
    }
}

/// Exactly this.
pub(crate) fn is(text: &str) -> Expect {
    Expect::Is(text.to_owned())
}

/// These lines, among others.
pub(crate) fn lines(lines: &[&str]) -> Expect {
    Expect::Lines(lines.iter().map(ToString::to_string).collect())
}

/// A check of all rows in one pod; `prepare` makes what they refer to.
pub(crate) fn check<F>(
    name: &'static str,
    spec: Value,
    rows: Vec<Row>,
    prepare: impl FnOnce(Place) -> F + 'static,
) -> Check
where
    F: Future<Output = ()> + 'static,
{
    let items = rows.iter().flat_map(|row| row.items.clone()).collect();
    Check::of(name, items, async move |place: Place| {
        prepare(place.clone()).await;
        run(&place, name, spec, rows).await;
    })
}

async fn run(place: &Place, name: &str, spec: Value, rows: Vec<Row>) {
    let (mut containers, mut volumes) = (Vec::new(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let mut container = with(row.container.clone(), json!({"name": format!("row-{number}")}));
        if let Some(volume) = &row.volume {
            volumes.push(with(volume.clone(), json!({"name": format!("row-{number}")})));
            container["volumeMounts"][0]["name"] = json!(format!("row-{number}"));
        }
        containers.push(container);
    }
    let base = json!({"restartPolicy": "Never", "volumes": volumes});
    let made = place.create("pods", &pod(name, &containers, with(base, spec))).await.ok();
    let path = place.path(&format!("pods/{name}"));
    assert_eq!(made["metadata"]["name"], name);
    let ended = place.ended(&path).await;
    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let printed = place.log(name, &format!("row-{number}")).await;
        let expected = expected(place, &ended, &row.expect).await;
        let printed = printed.trim();
        let held = match &row.expect {
            Expect::Lines(_) => expected.lines().all(|line| printed.lines().any(|have| have == line)),
            _ => printed == expected,
        };
        if !held {
            wrong.push(format!("{}: printed {printed:?}, expected {expected:?}", row.items.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    place.delete(&path).await.ok();
}

async fn expected(place: &Place, pod: &Value, expect: &Expect) -> String {
    let field = |pointer: &&str| text(pod.pointer(pointer).unwrap_or(&Value::Null)).to_owned();
    let lines: Vec<String> = match expect {
        Expect::Is(text) => return text.clone(),
        Expect::Lines(lines) => lines.clone(),
        Expect::Fields(pointers) => pointers.iter().map(field).collect(),
        Expect::Allocatable(resources) => {
            let node = place.get(&format!("/api/v1/nodes/{}", text(&pod["spec"]["nodeName"]))).await.ok();
            resources.iter().map(|resource| whole(text(&node["status"]["allocatable"][resource]))).collect()
        }
    };
    lines.join("\n")
}

/// A quantity as nodes write it, in whole units rounded up.
fn whole(quantity: &str) -> String {
    let quantity = api_machinery::quantity::Quantity::parse(quantity).expect("nodes write quantities");
    quantity.value().to_string()
}
