//! Who containers run as and what they may do.

use serde_json::json;

use super::check::Check;
use super::rows::{self, Row, is};

pub(crate) fn checks() -> Vec<Check> {
    vec![
        rows::check("security-of-containers", json!({}), of_containers(), async |_| {}),
        rows::check("security-of-pods", of_pod(), of_pods(), async |_| {}),
    ]
}

fn of_containers() -> Vec<Row> {
    let context = |context: serde_json::Value| json!({"securityContext": context});
    vec![
        Row::script(
            "Security Context When creating a container with runAsUser should run the container with uid 65534",
            "id -u",
            context(json!({"runAsUser": 65534})),
            is("65534"),
        ),
        Row::script(
            "Security Context should support container.SecurityContext.RunAsUser And container.SecurityContext.RunAsGroup",
            "id",
            context(json!({"runAsUser": 1001, "runAsGroup": 2002})),
            is("uid=1001 gid=2002 groups=2002"),
        ),
        Row::script(
            "Security Context When creating a pod with privileged should run the container as unprivileged when false",
            "ip link add dummy0 type dummy 2>&1 || true",
            context(json!({"privileged": false})),
            is("ip: RTNETLINK answers: Operation not permitted"),
        ),
        Row::script(
            "Security Context When creating a pod with readOnlyRootFilesystem should run the container with writable \
             rootfs when readOnlyRootFilesystem=false",
            "touch checkfile && echo written",
            context(json!({"readOnlyRootFilesystem": false})),
            is("written"),
        ),
        Row::script(
            "Kubelet when scheduling a read only busybox container should not write to root filesystem",
            "{ echo test > /file || echo ended; } 2>&1",
            context(json!({"readOnlyRootFilesystem": true})),
            is("sh: can't create /file: Read-only file system\nended"),
        ),
        Row::script(
            "Security Context when creating containers with AllowPrivilegeEscalation should not allow privilege \
             escalation when false",
            "grep NoNewPrivs /proc/self/status",
            context(json!({"allowPrivilegeEscalation": false, "runAsUser": 1000})),
            is("NoNewPrivs:\t1"),
        ),
    ]
}

fn of_pod() -> serde_json::Value {
    json!({"securityContext": {
        "runAsUser": 1002,
        "runAsGroup": 2003,
        "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}],
    }})
}

fn of_pods() -> Vec<Row> {
    vec![
        Row::script(
            "Security Context should support pod.Spec.SecurityContext.RunAsUser And pod.Spec.SecurityContext.RunAsGroup",
            "id",
            json!({}),
            is("uid=1002 gid=2003 groups=2003"),
        ),
        Row::script("Sysctls should support sysctls", "cat /proc/sys/kernel/shm_rmid_forced", json!({}), is("1")),
    ]
}
