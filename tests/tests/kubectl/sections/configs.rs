//! ConfigMaps, Secrets and service accounts.

use super::prelude::*;

const MAP: &str = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}";
const DOCKER: &str =
    r#"{"auths":{"http://foo.example.com":{"username":"foo","password":"bar","email":"foo@example.com"}}}"#;
const STRINGS: &str = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"strings"},
    "data":{"k1":"djE=","k2":""},"stringData":{"k2":"v2"}}"#;

pub(crate) const CONFIG_MAPS: Section = Section {
    name: "configmaps",
    files: &[("settings.yaml", MAP)],
    rows: &[
        Row::new("create -f $DIR/settings.yaml", Prints("configmap/settings created")),
        Row::new("get configmap/settings -o go-template={{.metadata.name}}", Prints("settings")),
        Row::new("delete configmap settings", Says(&["configmap \"settings\" deleted"])),
        Row::new(
            "create configmap words --dry-run=client --from-literal=key1=value1",
            Prints("configmap/words created (dry run)"),
        ),
        Row::new(
            "create configmap words --dry-run=server --from-literal=key1=value1",
            Prints("configmap/words created (server dry run)"),
        ),
        Row::new("get configmap words", Fails(&["configmaps \"words\" not found"])),
        Row::new("create configmap words --from-literal=key1=value1", Succeeds),
        // Bytes that are no text.
        Row::new("create configmap bytes --from-file=$SHARED/blob", Succeeds),
        Row::new("get configmap words -o yaml", Says(&["key1: value1"])),
        Row::new("get configmap bytes -o yaml", Says(&["binaryData:", "blob: AP+A/g=="])),
        Row::new(
            "describe --chunk-size=1 --v=6 configmaps",
            Says(&["/configmaps?limit=1", "continue=", "key1:", "BinaryData"]),
        ),
        Row::new("create configmap words --from-literal=a=b", Fails(&["configmaps \"words\" already exists"])),
        Row::new(
            "create configmap words --from-literal=a=b --from-literal=a=c",
            Fails(&["another key by that name already exists"]),
        ),
        Row::new("delete configmap words bytes", Succeeds),
    ],
};

pub(crate) const SECRETS: Section = Section {
    name: "secrets",
    files: &[("docker.json", DOCKER), ("strings.json", STRINGS)],
    rows: &[
        Row::new("get secrets mine", Fails(&["secrets \"mine\" not found"])),
        Row::new(
            "create secret generic mine --dry-run=client --from-literal=foo=bar -o jsonpath={.metadata.namespace} --namespace=told",
            Prints("told"),
        ),
        Row::new("get secrets mine", Fails(&["secrets \"mine\" not found"])),
        Row::new("create secret generic mine --from-literal=key1=value1 --type=own", Succeeds),
        Row::new("get secret/mine -o go-template={{.type}}", Prints("own")),
        Row::new("get secret/mine -o yaml", Says(&["key1: dmFsdWUx"])),
        Row::new("describe --chunk-size=1 --v=6 secrets", Says(&["/secrets?limit=1", "key1:  6 bytes"])),
        Row::new(
            "patch secret mine -p {\"type\":\"another\"}",
            Fails(&["type: Invalid value: \"another\": field is immutable"]),
        ),
        Row::new("delete secret mine", Succeeds),
        Row::new("get secrets -o name", Prints("")),
        Row::new(
            "create secret docker-registry pull --docker-username=test-user --docker-password=test-password --docker-email=test-user@test.com",
            Succeeds,
        ),
        Row::new("get secret/pull -o go-template={{.type}}", Prints("kubernetes.io/dockerconfigjson")),
        Row::new(
            "get secret/pull -o jsonpath={.data}",
            Says(&["{\".dockerconfigjson\":\"eyJhdXRocyI6eyJodHRwczovL2luZGV4LmRvY2tlci5pby92MS8i"]),
        ),
        Row::new("delete secret pull", Succeeds),
        Row::new("create secret docker-registry pull --from-file=.dockerconfigjson=$DIR/docker.json", Succeeds),
        Row::new("get secret/pull -o go-template={{.type}}", Prints("kubernetes.io/dockerconfigjson")),
        Row::new("delete secret pull", Succeeds),
        Row::new("create secret tls served --key=$SHARED/user.key --cert=$SHARED/user.crt", Succeeds),
        Row::new("get secret/served -o go-template={{.type}}", Prints("kubernetes.io/tls")),
        Row::new("get secret/served -o jsonpath={.data}", Says(&["tls.crt", "tls.key"])),
        Row::new("delete secret served", Succeeds),
        Row::new("create -f $DIR/strings.json", Succeeds),
        Row::new("get secret/strings -o go-template={{.data}}", Prints("map[k1:djE= k2:djI=]")),
        Row::new("get secret/strings -o go-template={{.stringData}}", Prints("<no value>")),
        Row::new("delete secret strings", Succeeds),
        Row::new(
            "create secret generic mine --from-literal=key1=value1 -o go-template --template={{.metadata.name}}:",
            Prints("mine:"),
        ),
        Row::new("delete secret mine", Succeeds),
    ],
};

pub(crate) const SERVICE_ACCOUNTS: Section = Section {
    name: "serviceaccounts",
    files: &[],
    rows: &[
        Row::new("create serviceaccount robot --dry-run=client", Succeeds),
        Row::new("create serviceaccount robot --dry-run=server", Succeeds),
        Row::new("get serviceaccount robot", Fails(&["serviceaccounts \"robot\" not found"])),
        Row::new("create serviceaccount robot", Prints("serviceaccount/robot created")),
        Row::new("get serviceaccount/robot -o go-template={{.metadata.name}}", Prints("robot")),
        Row::new("describe --chunk-size=1 --v=6 serviceaccounts", Says(&["/serviceaccounts?limit=1", "robot"])),
        Row::new("create token robot --duration=10m --audience=test", Says(&["ey"])),
        Row::new(
            "create token robot --bound-object-kind=Secret --bound-object-name=none",
            Fails(&["secrets \"none\" not found"]),
        ),
        Row::new("create token none", Fails(&["serviceaccounts \"none\" not found"])),
        Row::new("delete serviceaccount robot", Succeeds),
    ],
};
