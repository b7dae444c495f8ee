// The package @kubernetes/client-node against a cluster.
//
// Takes KUBECONFIG, NAMESPACE (there, and this program's alone), POD (a running pod with a shell in its container `main`),
// WEB (a running pod that answers HTTP on port 8080). Prints `ok NAME` for each check; the first that fails ends it.

import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import * as k8s from '@kubernetes/client-node';

const { NAMESPACE: namespace, POD: pod, WEB: web } = process.env;
const PATIENCE = 60_000;
const kubeconfig = new k8s.KubeConfig();
kubeconfig.loadFromDefault();
const core = kubeconfig.makeApiClient(k8s.CoreV1Api);
const apps = kubeconfig.makeApiClient(k8s.AppsV1Api);
const leases = kubeconfig.makeApiClient(k8s.CoordinationV1Api);
const anyKind = k8s.KubernetesObjectApi.makeApiClient(kubeconfig);

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** What `probe` gives once it gives anything. */
async function until(what, probe) {
    for (const end = Date.now() + PATIENCE; Date.now() < end; await sleep(100)) {
        const found = await probe();
        if (found) return found;
    }
    assert.fail(`${what}: not within ${PATIENCE} ms`);
}

/** Waits for a call that must be refused with this code, and gives the refusal's message. */
async function refused(code, call) {
    try {
        await call;
    } catch (error) {
        assert.equal(error.code, code, error.message);
        return error.message;
    }
    assert.fail(`taken instead of refused with ${code}`);
}

const configMap = (name, data) => ({ metadata: { name, labels: { of: name.split('-')[0] } }, data });

function deployment(name) {
    const labels = { app: name };
    const containers = ['main', 'side'].map((own) => ({ name: own, image: 'busybox:1.36' }));
    return { metadata: { name }, spec: { replicas: 0, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } } };
}

async function objects() {
    const made = await core.createNamespacedConfigMap({ namespace, body: configMap('crud-one', { colour: 'blue' }) });
    assert.ok(made.metadata.uid && made.metadata.creationTimestamp instanceof Date);
    assert.match(await refused(409, core.createNamespacedConfigMap({ namespace, body: configMap('crud-one') })), /already exists/);
    made.data.colour = 'green';
    const changed = await core.replaceNamespacedConfigMap({ name: 'crud-one', namespace, body: made });
    assert.deepEqual(changed.data, { colour: 'green' });
    assert.match(await refused(409, core.replaceNamespacedConfigMap({ name: 'crud-one', namespace, body: made })), /the object has been modified/);
    for (let number = 2; number < 6; number += 1) {
        await core.createNamespacedConfigMap({ namespace, body: configMap(`crud-${number}`) });
    }
    const names = [];
    let next;
    do {
        const page = await core.listNamespacedConfigMap({ namespace, labelSelector: 'of=crud', limit: 2, _continue: next });
        names.push(...page.items.map((item) => item.metadata.name));
        next = page.metadata._continue;
    } while (next);
    assert.deepEqual(names, ['crud-2', 'crud-3', 'crud-4', 'crud-5', 'crud-one']);
    const body = { preconditions: { uid: 'another' } };
    assert.match(await refused(409, core.deleteNamespacedConfigMap({ name: 'crud-one', namespace, body })), /UID in the precondition/);
    assert.equal((await core.deleteNamespacedConfigMap({ name: 'crud-one', namespace })).status, 'Success');
    assert.match(await refused(404, core.readNamespacedConfigMap({ name: 'crud-one', namespace })), /not found/);
    await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector: 'of=crud' });
    assert.equal((await core.listNamespacedConfigMap({ namespace, labelSelector: 'of=crud' })).items.length, 0);
}

/** A watch that is left and taken up again where it was tells everything once. */
async function watches() {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    let version = (await core.listNamespacedConfigMap({ namespace })).metadata.resourceVersion;
    const wanted = [];
    for (let number = 0; number < 6; number += 1) {
        await core.createNamespacedConfigMap({ namespace, body: configMap(`watch-${number}`) });
        wanted.push(`ADDED watch-${number}`);
    }
    await core.deleteNamespacedConfigMap({ name: 'watch-0', namespace });
    wanted.push('DELETED watch-0');
    const told = [];
    for (const part of [3, 4]) {
        const enough = told.length + part;
        let ended = false;
        const query = { labelSelector: 'of=watch', resourceVersion: version, allowWatchBookmarks: false };
        const abort = await new k8s.Watch(kubeconfig).watch(path, query, (phase, object) => {
            if (told.length === enough) return;
            told.push(`${phase} ${object.metadata.name}`);
            version = object.metadata.resourceVersion;
        }, () => { ended = true; });
        await until('events', () => told.length === enough);
        abort.abort();
        await until('the end of the watch', () => ended);
    }
    assert.deepEqual(told, wanted);
}

async function patches() {
    const as = (strategy) => k8s.setHeaderOptions('Content-Type', strategy);
    const map = { name: 'patch-map', namespace };
    await core.createNamespacedConfigMap({ namespace, body: configMap('patch-map', { a: '1', b: '2' }) });
    const steps = [{ op: 'test', path: '/data/a', value: '1' }, { op: 'replace', path: '/data/a', value: '3' }];
    const stepped = await core.patchNamespacedConfigMap({ ...map, body: steps }, as(k8s.PatchStrategy.JsonPatch));
    assert.deepEqual(stepped.data, { a: '3', b: '2' });
    const merged = await core.patchNamespacedConfigMap({ ...map, body: { data: { b: null } } }, as(k8s.PatchStrategy.MergePatch));
    assert.deepEqual(merged.data, { a: '3' });
    await apps.createNamespacedDeployment({ namespace, body: deployment('patch') });
    const byName = { spec: { template: { spec: { containers: [{ name: 'side', image: 'busybox:1.35' }] } } } };
    const strategic = await apps.patchNamespacedDeployment({ name: 'patch', namespace, body: byName }, as(k8s.PatchStrategy.StrategicMergePatch));
    const images = strategic.spec.template.spec.containers.map((it) => `${it.name} ${it.image}`);
    assert.deepEqual(images.sort(), ['main busybox:1.36', 'side busybox:1.35']);
    const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied', namespace }, data: { a: '1' } };
    const apply = (manager, force) => anyKind.patch(applied, undefined, undefined, manager, force, k8s.PatchStrategy.ServerSideApply);
    assert.deepEqual((await apply('one')).data, { a: '1' });
    applied.data.a = '2';
    assert.match(await refused(409, apply('two')), /\.data\.a/);
    const owners = (await apply('two', true)).metadata.managedFields.filter((it) => it.fieldsV1['f:data']);
    assert.deepEqual(owners.map((it) => it.manager), ['two']);
    await apps.deleteNamespacedDeployment({ name: 'patch', namespace });
}

async function informers() {
    const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: 'of=informer' });
    const cached = k8s.makeInformer(kubeconfig, `/api/v1/namespaces/${namespace}/configmaps`, list, 'of=informer');
    const seen = new Set();
    for (const kind of ['add', 'update', 'delete']) cached.on(kind, (object) => seen.add(`${kind} ${object.metadata.name}`));
    cached.on('error', (error) => seen.add(`error ${error}`));
    await core.createNamespacedConfigMap({ namespace, body: configMap('informer-a') });
    await cached.start();
    await until('the list', () => seen.has('add informer-a'));
    const made = await core.createNamespacedConfigMap({ namespace, body: configMap('informer-b') });
    await until('an addition', () => seen.has('add informer-b'));
    await core.replaceNamespacedConfigMap({ name: 'informer-b', namespace, body: { ...made, data: { x: 'y' } } });
    await until('a change', () => seen.has('update informer-b'));
    await core.deleteNamespacedConfigMap({ name: 'informer-a', namespace });
    await until('a deletion', () => seen.has('delete informer-a'));
    assert.deepEqual(cached.list(namespace).map((it) => it.metadata.name), ['informer-b']);
    assert.ok(![...seen].some((line) => line.startsWith('error')), [...seen].join());
    await cached.stop();
}

async function definitions() {
    const group = 'node.clients.example.com';
    const size = { type: 'integer', maximum: 9 };
    const openAPIV3Schema = { type: 'object', properties: { spec: { type: 'object', required: ['size'], properties: { size } } } };
    const versions = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }];
    const names = { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' };
    const definition = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: `gadgets.${group}` }, spec: { group, scope: 'Namespaced', names, versions } };
    const gadget = (name, size) => ({ apiVersion: `${group}/v1`, kind: 'Gadget', metadata: { name, namespace }, spec: { size } });
    await anyKind.create(definition);
    try {
        const conditions = async () => (await anyKind.read(definition)).status?.conditions ?? [];
        await until('established', async () => (await conditions()).some((it) => it.type === 'Established' && it.status === 'True'));
        const made = await anyKind.create(gadget('small', 1));
        assert.deepEqual([made.spec.size, made.metadata.generation], [1, 1]);
        assert.match(await refused(422, anyKind.create(gadget('big', 10))), /should be less than or equal to 9/);
        made.spec.size = 2;
        assert.equal((await anyKind.replace(made)).metadata.generation, 2);
        const listed = await anyKind.list(`${group}/v1`, 'Gadget', namespace);
        assert.deepEqual(listed.items.map((it) => it.metadata.name), ['small']);
        await anyKind.delete(gadget('small', 2));
    } finally {
        await anyKind.delete(definition);
    }
}

/** Of two holders of a lease that read it at the same time one gets it: what elections are made of. */
async function elections() {
    const now = () => new k8s.V1MicroTime();
    const spec = (holder) => ({ holderIdentity: holder, leaseDurationSeconds: 1, acquireTime: now(), renewTime: now() });
    const lease = { name: 'election', namespace };
    await leases.createNamespacedLease({ namespace, body: { metadata: { name: 'election' }, spec: spec('nobody') } });
    const read = await leases.readNamespacedLease(lease);
    const claims = await Promise.allSettled(['one', 'two'].map((holder) => leases.replaceNamespacedLease({ ...lease, body: { ...read, spec: spec(holder) } })));
    assert.deepEqual(claims.map((it) => it.status).sort(), ['fulfilled', 'rejected']);
    assert.equal(claims.find((it) => it.status === 'rejected').reason.code, 409);
    const holder = claims.find((it) => it.status === 'fulfilled').value.spec.holderIdentity;
    assert.equal((await leases.readNamespacedLease(lease)).spec.holderIdentity, holder);
}

async function collected(stream) {
    let text = '';
    for await (const part of stream) text += part;
    return text;
}

async function executes() {
    const [stdout, stderr, stdin] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const command = ['sh', '-c', 'read line; echo got $line; echo bad >&2; exit 3'];
    const ended = new Promise((done) => {
        new k8s.Exec(kubeconfig).exec(namespace, pod, 'main', command, stdout, stderr, stdin, false, done).then((socket) => {
            socket.on('close', () => [stdout, stderr].forEach((it) => it.end()));
            stdin.write('this\n');
        });
    });
    const status = await ended;
    assert.equal(status.details.causes.find((it) => it.reason === 'ExitCode').message, '3');
    assert.deepEqual(await Promise.all([collected(stdout), collected(stderr)]), ['got this\n', 'bad\n']);
}

async function forwards() {
    const [output, errors, input] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const socket = await new k8s.PortForward(kubeconfig).portForward(namespace, web, [8080], output, errors, input);
    let text = '';
    output.on('data', (part) => { text += part; });
    input.write('GET /hostname HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n');
    await until('an answer', () => text.includes(web));
    assert.match(text, /^HTTP\/1\.1 200/);
    socket.close();
}

const checks = { objects, watches, patches, informers, definitions, elections, exec: executes, 'port-forward': forwards };
for (const [name, check] of Object.entries(checks)) {
    await check();
    console.log(`ok ${name}`);
}
process.exit(0);
