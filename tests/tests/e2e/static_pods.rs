//! The control plane as static Pods that our own kubelet starts from the generated manifests, as kubeadm has it.

use tests::kubectl::PATIENCE;

use crate::cluster::Cluster;

const COMPONENTS: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

pub(crate) async fn story(cluster: Cluster) {
    let kubectl = cluster.kubectl("1.36", "kube-system");
    assert!(kubectl.ok("get nodes").await.contains("Ready"));
    for component in COMPONENTS {
        // The mirror of a static Pod is there for users to see.
        let pod = format!("{component}-node-1");
        kubectl.until(&format!("get pod {pod}"), |text| text.contains("1/1") && text.contains("Running")).await;
        let annotations = kubectl.ok(&format!("get pod {pod} -o jsonpath={{.metadata.annotations}}")).await;
        assert!(annotations.contains("kubernetes.io/config.mirror"), "{annotations}");
    }
    assert!(kubectl.ok("logs kube-scheduler-node-1 --tail=5").await.lines().count() > 0);
    kubectl.ok("-n default create deployment app --image=k8s.gcr.io/echoserver:1.4").await;
    kubectl.ok("-n default rollout status deployment/app --timeout=90s").await;
    // Deleting the mirror does not delete what it shows.
    kubectl.ok("delete pod kube-scheduler-node-1 --wait=false").await;
    kubectl.until("get pod kube-scheduler-node-1", |text| text.contains("1/1") && text.contains("Running")).await;

    kill_api_server(&cluster).await;
    kubectl.until_within(PATIENCE, "get --raw /readyz", |text| text == "ok").await;
    assert!(kubectl.ok("-n default get deployment app").await.contains("1/1"));
    kubectl
        .until("get pod kube-apiserver-node-1 -o jsonpath={.status.containerStatuses[0].restartCount}", |text| {
            text == "1"
        })
        .await;
    cluster.up().await;
}

/// The kubelet starts it again although there is no API server to ask.
async fn kill_api_server(cluster: &Cluster) {
    let proc = sys::proc::Proc::system();
    let config = cluster.root.join("etc/kubernetes/pki").display().to_string();
    let is_it = |pid: &u32| {
        proc.command_line(*pid).is_ok_and(|words| {
            words.first().is_some_and(|word| word == "kube-apiserver") && words.join(" ").contains(&config)
        })
    };
    let pids: Vec<u32> = proc.pids().expect("processes can be listed").into_iter().filter(is_it).collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
    pids.into_iter().for_each(crate::machine::kill_number);
}
