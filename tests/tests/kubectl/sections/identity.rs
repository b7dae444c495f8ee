//! Certificates asked for, approved, denied and used, impersonation, and credentials from a plugin.

use super::prelude::*;

const ASKED: &str = "apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: asked}
spec: {request: $REQUEST, signerName: example.com/nobody, usages: [digital signature, key encipherment, client auth]}
";
const PERSON: &str = "apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: person}
spec: {request: $REQUEST, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth]}
";
const AS_SOMEBODY: &str = "apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: as-somebody}
spec: {request: $REQUEST, signerName: example.com/nobody, usages: [client auth]}
";
const CONDITIONS: &str = "get csr/asked -o jsonpath={.status.conditions[*].type}";

pub(crate) const CERTIFICATES: Section = Section {
    name: "certificates",
    files: &[("asked.yaml", ASKED), ("person.yaml", PERSON)],
    rows: &[
        Row::new("create -f $DIR/asked.yaml", Prints("certificatesigningrequest.certificates.k8s.io/asked created")),
        Row::new(CONDITIONS, Prints("")),
        Row::new(
            "get csr asked",
            Says(&["NAME", "AGE", "SIGNERNAME", "REQUESTOR", "REQUESTEDDURATION", "CONDITION", "root", "Pending"]),
        ),
        Row::new("certificate approve asked", Prints("certificatesigningrequest.certificates.k8s.io/asked approved")),
        Row::new(CONDITIONS, Prints("Approved")),
        Row::new("certificate deny asked", Fails(&["certificate signing request \"asked\" is already Approved"])),
        Row::new("delete -f $DIR/asked.yaml", Succeeds),
        Row::new("create -f $DIR/asked.yaml", Succeeds),
        Row::new("certificate approve -f $DIR/asked.yaml", Succeeds),
        Row::new(CONDITIONS, Prints("Approved")),
        Row::new("delete -f $DIR/asked.yaml", Succeeds),
        Row::new("create -f $DIR/asked.yaml", Succeeds),
        Row::new("certificate deny asked", Succeeds),
        Row::new(CONDITIONS, Prints("Denied")),
        Row::new("get csr asked", Says(&["Denied"])),
        Row::new("delete -f $DIR/asked.yaml", Succeeds),
        Row::new("create -f $DIR/asked.yaml", Succeeds),
        Row::new("certificate deny -f $DIR/asked.yaml", Succeeds),
        Row::new(CONDITIONS, Prints("Denied")),
        Row::new(
            "describe csr asked",
            Says(&[
                "Requesting User:",
                "root",
                "Signer:",
                "example.com/nobody",
                "Status:",
                "Denied",
                "Subject:",
                "Common Name:",
            ]),
        ),
        Row::new("delete -f $DIR/asked.yaml", Succeeds),
        // Signed, and good for what it was asked for.
        Row::new("create -f $DIR/person.yaml", Succeeds),
        Row::new("certificate approve person", Succeeds),
        Row::new("wait --for=jsonpath={.status.certificate} csr/person --timeout=30s", Succeeds),
        Row::new("get csr person", Says(&["Approved,Issued"])),
        Row::new("get csr person -o 'go-template={{.status.certificate | base64decode}}'", Keeps("person.crt")),
        Row::new(
            "auth whoami --kubeconfig=$SHARED/plugin.conf --client-certificate=$DIR/person.crt --client-key=$SHARED/user.key",
            Says(&["testuser", "system:authenticated"]),
        ),
        Row::new("delete csr person", Succeeds),
    ],
};

pub(crate) const IMPERSONATION: Section = Section {
    name: "impersonation",
    files: &[("csr.yaml", AS_SOMEBODY)],
    rows: &[
        Row::new("get pods --as-group=foo", Fails(&["without impersonating a user"])),
        Row::new("get pods --as-uid=abc123", Fails(&["without impersonating a user"])),
        Row::new("get namespaces --as=user1", Fails(&["(Forbidden)", "User \"user1\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope"])),
        Row::new("create clusterrolebinding judged-user1 --clusterrole=cluster-admin --user=user1", Succeeds),
        Row::new("create -f $DIR/csr.yaml --as=user1", Shows(&["created"])),
        Row::new("get csr/as-somebody -o jsonpath='{.spec.username} {.spec.groups}'", Prints("user1 [\"system:authenticated\"]")),
        Row::new("delete -f $DIR/csr.yaml", Succeeds),
        Row::new("create -f $DIR/csr.yaml --as=user1 --as-group=group2 --as-group=group1 --as-group=,,,chameleon", Succeeds),
        Row::new("get csr/as-somebody -o jsonpath={.spec.groups}", Prints("[\"group2\",\"group1\",\",,,chameleon\",\"system:authenticated\"]")),
        Row::new("delete -f $DIR/csr.yaml", Succeeds),
        Row::new("create -f $DIR/csr.yaml --as=user1 --as-uid=abc123", Succeeds),
        Row::new("get csr/as-somebody -o jsonpath='{.spec.username} {.spec.uid}'", Prints("user1 abc123")),
        Row::new("delete -f $DIR/csr.yaml", Succeeds),
        Row::new(
            "create -f $DIR/csr.yaml --as=user1 --as-uid=abc123 --as-user-extra 'key1=hello there' --as-user-extra key1=one,two --as-user-extra 'key1=the best' --as-user-extra key2=val3",
            Succeeds,
        )
        .since("1.35"),
        Row::new("get csr/as-somebody -o jsonpath={.spec.extra}", Prints("{\"key1\":[\"hello there\",\"one,two\",\"the best\"],\"key2\":[\"val3\"]}")).since("1.35"),
        Row::new("delete -f $DIR/csr.yaml", Succeeds).since("1.35"),
        Row::new("auth whoami --as=system:serviceaccount:$NS:robot", Says(&["system:serviceaccount:$NS:robot", "system:serviceaccounts:$NS"])),
        Row::new("delete clusterrolebinding judged-user1", Succeeds),
    ],
};

pub(crate) const PLUGINS: Section = Section {
    name: "plugins",
    files: &[],
    rows: &[
        // A token that is told comes before a plugin that has none.
        Row::new(
            "get namespace kube-system -o name --kubeconfig=$SHARED/plugin.conf --token=root",
            Prints("namespace/kube-system"),
        ),
        Row::new(
            "get namespace kube-system -o name --kubeconfig=$SHARED/plugin.conf --context=none",
            Fails(&["decoding stdout"]),
        ),
        Row::new(
            "get namespace kube-system -o name --kubeconfig=$SHARED/plugin.conf --context=v1",
            Prints("namespace/kube-system"),
        ),
        Row::new(
            "get namespace kube-system -o name --kubeconfig=$SHARED/plugin.conf --context=v1beta1",
            Prints("namespace/kube-system"),
        ),
        Row::new(
            "get namespace kube-system -o name --kubeconfig=$SHARED/plugin.conf --context=v1 --username bad --password wrong",
            Fails(&["User \"system:anonymous\" cannot get resource"]),
        ),
        Row::new(
            "get namespace kube-system -o name --kubeconfig=$SHARED/plugin.conf --context=v1 --token=wrong",
            Fails(&["Unauthorized"]),
        ),
    ],
};
