"""The Python package `kubernetes` against a cluster.

Takes KUBECONFIG, NAMESPACE (there, and this program's alone), POD (a running pod with a shell in its container `main`),
WEB (a running pod that answers HTTP on port 8080). Prints `ok NAME` for each check; the first that fails ends it.
"""

import os
import tempfile
import threading
import time

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock
from kubernetes.stream import portforward, stream

NAMESPACE = os.environ["NAMESPACE"]
POD = os.environ["POD"]
WEB = os.environ["WEB"]
PATIENCE = 60
APPLY = "application/apply-patch+yaml"


def refused(status, call, *arguments, **named):
    """Makes a call that must be refused with this code, and gives the refusal's text."""
    try:
        call(*arguments, **named)
    except ApiException as error:
        assert error.status == status, (error.status, error.body)
        return str(error.body)
    raise AssertionError(f"taken instead of refused with {status}")


def until(what, probe):
    """What `probe` gives once it gives anything."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = probe()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {PATIENCE} s")


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"of": name.split("-")[0]}), data=data)


def deployment(name):
    labels = {"app": name}
    containers = [client.V1Container(name="main", image="busybox:1.36"), client.V1Container(name="side", image="busybox:1.36")]
    template = client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=containers))
    spec = client.V1DeploymentSpec(replicas=0, selector=client.V1LabelSelector(match_labels=labels), template=template)
    return client.V1Deployment(metadata=client.V1ObjectMeta(name=name), spec=spec)


def objects(core):
    made = core.create_namespaced_config_map(NAMESPACE, config_map("crud-one", colour="blue"))
    assert made.metadata.uid and made.metadata.creation_timestamp.tzinfo is not None
    assert "already exists" in refused(409, core.create_namespaced_config_map, NAMESPACE, config_map("crud-one"))
    made.data["colour"] = "green"
    changed = core.replace_namespaced_config_map("crud-one", NAMESPACE, made)
    assert changed.data == {"colour": "green"} and changed.metadata.resource_version != made.metadata.resource_version
    assert "the object has been modified" in refused(409, core.replace_namespaced_config_map, "crud-one", NAMESPACE, made)
    for number in range(2, 6):
        core.create_namespaced_config_map(NAMESPACE, config_map(f"crud-{number}"))
    names, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(NAMESPACE, label_selector="of=crud", limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert names == ["crud-2", "crud-3", "crud-4", "crud-5", "crud-one"], names
    one = core.list_namespaced_config_map(NAMESPACE, field_selector="metadata.name=crud-3")
    assert [item.metadata.name for item in one.items] == ["crud-3"]
    status = core.delete_namespaced_config_map("crud-one", NAMESPACE, body=client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=made.metadata.uid)))
    assert status.status == "Success"
    assert "not found" in refused(404, core.read_namespaced_config_map, "crud-one", NAMESPACE)
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="of=crud")
    assert core.list_namespaced_config_map(NAMESPACE, label_selector="of=crud").items == []
    unnamed = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="Not a name"))
    assert "Invalid value" in refused(422, core.create_namespaced_config_map, NAMESPACE, unnamed)


def watches(core):
    """A watch that is left and taken up again where it was tells everything once."""
    start = core.list_namespaced_config_map(NAMESPACE, label_selector="of=watch").metadata.resource_version
    for number in range(6):
        core.create_namespaced_config_map(NAMESPACE, config_map(f"watch-{number}"))
    core.delete_namespaced_config_map("watch-0", NAMESPACE)
    told, version = [], start
    for part in (3, 4):
        follow = watch.Watch()
        for event in follow.stream(core.list_namespaced_config_map, NAMESPACE, label_selector="of=watch", resource_version=version, timeout_seconds=PATIENCE):
            told.append((event["type"], event["object"].metadata.name))
            version = event["object"].metadata.resource_version
            part -= 1
            if part == 0:
                follow.stop()
    assert told == [("ADDED", f"watch-{number}") for number in range(6)] + [("DELETED", "watch-0")], told


def patches(core, apps):
    core.create_namespaced_config_map(NAMESPACE, config_map("patch-map", a="1", b="2"))
    steps = [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "3"}]
    assert core.patch_namespaced_config_map("patch-map", NAMESPACE, steps).data == {"a": "3", "b": "2"}
    refused(422, core.patch_namespaced_config_map, "patch-map", NAMESPACE, steps)
    merged = core.patch_namespaced_config_map("patch-map", NAMESPACE, {"data": {"b": None}}, _content_type="application/merge-patch+json")
    assert merged.data == {"a": "3"}
    apps.create_namespaced_deployment(NAMESPACE, deployment("patch"))
    by_name = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "busybox:1.35"}]}}}}
    merged = apps.patch_namespaced_deployment("patch", NAMESPACE, by_name, _content_type="application/strategic-merge-patch+json")
    images = {it.name: it.image for it in merged.spec.template.spec.containers}
    assert images == {"main": "busybox:1.36", "side": "busybox:1.35"}, images
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
    apply = dict(field_manager="one", _content_type=APPLY)
    assert core.patch_namespaced_config_map("applied", NAMESPACE, applied, **apply).data == {"a": "1"}
    applied["data"] = {"a": "2"}
    words = refused(409, core.patch_namespaced_config_map, "applied", NAMESPACE, applied, field_manager="two", _content_type=APPLY)
    assert "conflict with" in words and ".data.a" in words, words
    forced = core.patch_namespaced_config_map("applied", NAMESPACE, applied, field_manager="two", force=True, _content_type=APPLY)
    assert [it.manager for it in forced.metadata.managed_fields if it.fields_v1.get("f:data")] == ["two"]
    scaled = apps.patch_namespaced_deployment_scale("patch", NAMESPACE, {"spec": {"replicas": 0}})
    # Zero is not written.
    assert not scaled.spec.replicas
    apps.delete_namespaced_deployment("patch", NAMESPACE)


def informers(core):
    seen, cached = [], SharedInformer(core.list_namespaced_config_map, namespace=NAMESPACE, label_selector="of=informer")
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        cached.add_event_handler(kind, lambda item, kind=kind: seen.append((kind, item.metadata.name)))
    core.create_namespaced_config_map(NAMESPACE, config_map("informer-a"))
    cached.start()
    until("the list", lambda: cached.cache.list())
    made = core.create_namespaced_config_map(NAMESPACE, config_map("informer-b"))
    until("an addition", lambda: ("ADDED", "informer-b") in seen)
    made.data = {"x": "y"}
    core.replace_namespaced_config_map("informer-b", NAMESPACE, made)
    until("a change", lambda: ("MODIFIED", "informer-b") in seen)
    core.delete_namespaced_config_map("informer-a", NAMESPACE)
    until("a deletion", lambda: ("DELETED", "informer-a") in seen)
    assert [item.metadata.name for item in cached.cache.list()] == ["informer-b"]
    cached.stop()


def definitions(api):
    """The dynamic client and a kind that comes at run time."""
    # What it keeps of discovery outlives it: a file of an earlier run would say what is not so any more.
    kept = os.path.join(tempfile.mkdtemp(), "discovery.json")
    any_kind = dynamic.DynamicClient(api, cache_file=kept)
    group = "python.clients.example.com"
    schema = {"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "maximum": 9}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"gadgets.{group}"}, "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}}
    kinds = any_kind.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    kinds.create(body=definition)
    try:
        ready = lambda: any(it.type == "Established" and it.status == "True" for it in kinds.get(name=definition["metadata"]["name"]).status.conditions or [])
        until("established", ready)
        gadgets = until("discovery", lambda: found(any_kind, f"{group}/v1", "Gadget"))
        gadget = lambda name, size: {"apiVersion": f"{group}/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": {"size": size}}
        made = gadgets.create(body=gadget("small", 1), namespace=NAMESPACE)
        assert made.spec.size == 1 and made.metadata.generation == 1
        assert "should be less than or equal to 9" in refused(422, gadgets.create, body=gadget("big", 10), namespace=NAMESPACE)
        applied = gadgets.server_side_apply(namespace=NAMESPACE, body=gadget("small", 2), field_manager="suite", force_conflicts=True)
        assert applied.spec.size == 2 and applied.metadata.generation == 2
        assert [it.metadata.name for it in gadgets.get(namespace=NAMESPACE).items] == ["small"]
        for event in gadgets.watch(namespace=NAMESPACE, timeout=PATIENCE):
            assert event["type"] == "ADDED" and event["object"].metadata.name == "small"
            break
        gadgets.delete(name="small", namespace=NAMESPACE)
    finally:
        kinds.delete(name=definition["metadata"]["name"])


def found(any_kind, api_version, kind):
    try:
        return any_kind.resources.get(api_version=api_version, kind=kind)
    except dynamic.exceptions.ResourceNotFoundError:
        any_kind.resources.invalidate_cache()
        return None


def elections():
    """Of two candidates one leads at a time; the other takes over."""
    leaders, first = [], threading.Event()

    def candidate(name, lead):
        lock = ConfigMapLock("election", NAMESPACE, name)
        ends = lambda: None
        settings = electionconfig.Config(lock, lease_duration=4, renew_deadline=3, retry_period=1, onstarted_leading=lead, onstopped_leading=ends)
        threading.Thread(target=leaderelection.LeaderElection(settings).run, daemon=True).start()

    candidate("one", lambda: (leaders.append("one"), first.set()))
    assert first.wait(PATIENCE), "nobody leads"
    candidate("two", lambda: leaders.append("two"))
    time.sleep(3)
    assert leaders == ["one"], leaders


def executes(core):
    def execute(*command, **options):
        return stream(core.connect_get_namespaced_pod_exec, POD, NAMESPACE, container="main", command=list(command), stderr=True, stdout=True, tty=False, **options)

    assert execute("echo", "hello", stdin=False) == "hello\n"
    session = execute("sh", "-c", "read line; echo got $line; echo bad >&2; exit 3", stdin=True, _preload_content=False)
    session.write_stdin("this\n")
    session.run_forever(timeout=PATIENCE)
    assert (session.read_stdout(), session.read_stderr(), session.returncode) == ("got this\n", "bad\n", 3)


def forwards(core):
    forwarded = portforward(core.connect_get_namespaced_pod_portforward, WEB, NAMESPACE, ports="8080")
    http = forwarded.socket(8080)
    http.settimeout(PATIENCE)
    http.sendall(b"GET /hostname HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n")
    answer = b""
    while True:
        part = http.recv(4096)
        if not part:
            break
        answer += part
    assert answer.startswith(b"HTTP/1.1 200") and WEB.encode() in answer, answer


def main():
    config.load_kube_config()
    api = client.ApiClient()
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    checks = [
        ("objects", lambda: objects(core)),
        ("watches", lambda: watches(core)),
        ("patches", lambda: patches(core, apps)),
        ("informers", lambda: informers(core)),
        ("definitions", lambda: definitions(api)),
        ("elections", elections),
        # They put another way to connect into the client for the length of a call.
        ("exec", lambda: executes(client.CoreV1Api(client.ApiClient()))),
        ("port-forward", lambda: forwards(client.CoreV1Api(client.ApiClient()))),
    ]
    for name, check in checks:
        check()
        print(f"ok {name}", flush=True)


if __name__ == "__main__":
    main()
