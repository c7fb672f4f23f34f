import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { SEARCH_ATTRIBUTES } from '../src/temporal/grpc.js';
import { DYNAMIC_CONFIG, RETENTION_HOURS } from '../src/server/server-settings.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const text = (path: string): string => readFileSync(join(root, path), 'utf8');
const matches = (path: string, pattern: RegExp): readonly string[] =>
  [...text(path).matchAll(pattern)].map(([, found = '']) => found);

const service = z.object({
  image: z.string(),
  environment: z.record(z.string(), z.string().nullable()).default({}),
  ports: z.array(z.object({ host_ip: z.string() })).default([]),
});
const compose = z.object({ services: z.record(z.string(), service) });

/** The composition as Docker parses it; null, with the reason printed, if Docker is unavailable. */
function composed(env: NodeJS.ProcessEnv): z.infer<typeof compose>['services'] | null {
  const run = (...rest: string[]): string =>
    // Ignores the .env file of the machine that runs the tests.
    execFileSync('docker', ['compose', '--env-file', '/dev/null', ...rest], {
      cwd: root,
      env,
      encoding: 'utf8',
      stdio: 'pipe',
    });
  try {
    run('version');
  } catch {
    console.warn('docker-compose.yml is not given to Docker: `docker compose` is not installed');
    return null;
  }
  return compose.parse(JSON.parse(run('config', '--format', 'json'))).services;
}

/** What a worker of the composition does not get from the shell, and why. */
const NOT_PASSED: Readonly<Record<string, string>> = {
  PERDURE_ASK: 'a code of a warning',
  PERDURE_CANCEL_TURN: 'a code of a warning',
  PERDURE_DEV_ANY_PORT: 'set by `dev` for its worker',
  PERDURE_HINTS: 'set in commands that are printed for another shell',
  PERDURE_HOME: 'the image sets it',
  PERDURE_LIVE_UNREACHABLE: 'a code of a warning',
  PERDURE_NO_WORKER: 'a code of a warning',
  PERDURE_REPORTS_FILES: 'set by `dev` for its worker',
  PERDURE_SERVER: 'the composition sets TEMPORAL_ADDRESS',
  PERDURE_SERVER_OWNER_PID: 'set by perdure for the embedded server',
  PERDURE_SERVE_KEYS: 'of `serve`; a worker needs no keys of its callers',
  PERDURE_WEBHOOK_SECRET: 'an example in a message; the configuration chooses the name',
};

/** Returns the variables that code below a folder reads by name. */
function variablesReadIn(folder: string): ReadonlySet<string> {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  const read = files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      const code = text(join(folder, file)).replaceAll(/^ *(?:\*|\/\/).*$/gm, '');
      const names =
        /(?<=['"`]|env\.)(?:PERDURE|OPENAI|ANTHROPIC|AWS|OTEL)_[A-Z0-9_]+(?=['"`,;) ]|$)/gm;
      return code.match(names) ?? [];
    });
  return new Set(read);
}

/** The composition as YAML, with its anchors merged. */
function composition(): { services: Record<string, Record<string, unknown>> } {
  return z
    .object({ services: z.record(z.string(), z.record(z.string(), z.unknown())) })
    .parse(parseYaml(text('docker-compose.yml'), { merge: true }));
}

test('the dynamic configuration for Docker is that of the embedded server', () => {
  const entries = text('docker/dynamicconfig/perdure.yaml').matchAll(
    /^(\S+):\n {2}- value: (.+)$/gm,
  );
  const config = [...entries].map(([, key, value = '']) => [
    key,
    /^(\d+|true|false)$/.test(value) ? JSON.parse(value) : value,
  ]);
  expect(Object.fromEntries(config)).toEqual(DYNAMIC_CONFIG);
});

test('the Docker setup creates the retention and the search attributes of the embedded server', () => {
  expect(matches('docker/setup.sh', /^RETENTION=(\d+)h$/gm)).toEqual([String(RETENTION_HOURS)]);
  expect(matches('docker/setup.sh', /^ATTRIBUTES='(.*)'$/gm)).toEqual([
    SEARCH_ATTRIBUTES.join(' '),
  ]);
});

test('every image has a version and a digest, and every port is for this machine only', () => {
  const images = [
    ...matches('docker-compose.yml', /^ +image: (\S+)$/gm).filter(
      (image) => image !== '${PERDURE_IMAGE:-perdure-worker}',
    ),
    ...matches('Dockerfile', /^FROM (\S+)/gm),
  ];
  expect(images.length).toBeGreaterThan(5);
  for (const image of images) expect(image).toMatch(/^[a-z/-]+:\d[\w.-]*(@sha256:[0-9a-f]{64})?$/);
  // Its digest was unavailable when the others were pinned; no other image may lack one.
  const unpinned = images.filter((image) => !image.includes('@'));
  expect(unpinned.filter((image) => !image.startsWith('temporalio/ui:'))).toEqual([]);
  const ports = matches('docker-compose.yml', /^ +- (\S+:\d+)$/gm);
  expect(ports.length).toBeGreaterThan(0);
  for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
});

test('the image is made of files that its context includes, from a checkout and from the package', () => {
  const allowed = matches('.dockerignore', /^!(.+)$/gm);
  const published = z
    .object({ files: z.array(z.string()) })
    .parse(JSON.parse(text('package.json')));
  // Each part of the image is in the context, or is made by the build.
  const parts = matches('Dockerfile', /^COPY --from=build \/app\/(\S+) /gm);
  expect(parts).toEqual(['node_modules', 'dist', 'package.json', 'bin', 'docker/worker-health.js']);
  for (const part of parts.slice(1)) expect(allowed).toContain(part);
  for (const part of allowed) {
    if (part !== 'dist') expect(existsSync(join(root, part))).toBe(true);
  }
  const shipped = ['dist', 'bin', 'docker', 'docker-compose.yml', 'Dockerfile', '.dockerignore'];
  expect(published.files).toEqual(expect.arrayContaining(shipped));
  expect(allowed.filter((part) => part.startsWith('.env'))).toEqual([]);
  expect(matches('Dockerfile', /^USER (.+)$/gm)).toEqual(['node']);
});

test('no container is root, has capabilities, or can write to its image', () => {
  const hardened = z.object({
    user: z.string().regex(/^(?!root|0\b)/),
    cap_drop: z.tuple([z.literal('ALL')]),
    security_opt: z.tuple([z.literal('no-new-privileges:true')]),
    read_only: z.literal(true),
    tmpfs: z.array(z.string()).min(1),
    privileged: z.never().optional(),
    cap_add: z.never().optional(),
  });
  const { services } = composition();
  expect(Object.keys(services)).toHaveLength(6);
  for (const each of Object.values(services)) hardened.parse(each);
});

test('the worker runs the agents of a mounted folder, which the header of the composition names', () => {
  const { worker } = composition().services;
  expect(worker).toMatchObject({
    build: '.',
    volumes: ['blobs:/data', '${PERDURE_AGENTS:-./agents}:/agents:ro'],
  });
  expect(matches('Dockerfile', /^WORKDIR (.+)$/gm).at(-1)).toBe('/agents');
  expect(text('docker-compose.yml')).toContain(
    'PERDURE_AGENTS="$PWD" docker compose --file node_modules/perdure/docker-compose.yml up --detach --build',
  );
  // Keys of the folder come from its .env, without a place in the image or the composition.
  expect(text('Dockerfile')).toContain(
    '"--env-file-if-exists=.env", "/app/bin/perdure.js", "worker"',
  );
});

test('an image of a team runs in the composition, with its keys from outside', () => {
  expect(composition().services['worker']).toMatchObject({
    image: '${PERDURE_IMAGE:-perdure-worker}',
  });
  const [[block = ''] = []] = [
    ...text('docs/operations.md').matchAll(/FROM perdure-worker[^]*?```/g),
  ];
  // It copies no keys, and reads those of the mounted folder.
  expect(block).toContain('COPY --chown=node package.json package-lock.json perdure.config.ts ./');
  expect(block).toContain('"--env-file-if-exists=/agents/.env", "/app/bin/perdure.js", "worker"');
});

test('the Deployment for Kubernetes has known fields, and names that fit each other, the image, and the command', () => {
  const named = z.strictObject({ name: z.string() });
  const quantities = z.strictObject({
    cpu: z
      .string()
      .regex(/^\d+m?$/)
      .optional(),
    memory: z.string().regex(/^\d+[MG]i$/),
  });
  const container = z.strictObject({
    name: z.string(),
    image: z.string().regex(/^[\w.-]+\/[\w-]+:[\w.-]+$/),
    args: z.array(z.string()),
    ports: z.tuple([z.strictObject({ name: z.literal('metrics'), containerPort: z.int() })]),
    env: z.array(z.strictObject({ name: z.string(), value: z.string() })),
    envFrom: z.array(z.strictObject({ secretRef: named })),
    resources: z.strictObject({ requests: quantities, limits: quantities }),
    securityContext: z.strictObject({
      readOnlyRootFilesystem: z.literal(true),
      allowPrivilegeEscalation: z.literal(false),
    }),
    volumeMounts: z.array(z.strictObject({ name: z.string(), mountPath: z.string() })),
  });
  const user = { runAsUser: z.literal(1000), fsGroup: z.literal(1000) };
  const labels = z.record(z.string(), z.string());
  const pod = z.strictObject({
    terminationGracePeriodSeconds: z.int().positive(),
    securityContext: z.strictObject({ runAsNonRoot: z.literal(true), ...user }),
    containers: z.tuple([container]),
    volumes: z.array(z.strictObject({ name: z.string(), emptyDir: z.strictObject({}) })),
  });
  const deployment = z.strictObject({
    apiVersion: z.literal('apps/v1'),
    kind: z.literal('Deployment'),
    metadata: named,
    spec: z.strictObject({
      replicas: z.int().positive(),
      selector: z.strictObject({ matchLabels: labels }),
      template: z.strictObject({ metadata: z.strictObject({ labels }), spec: pod }),
    }),
  });
  const [block = ''] = matches('docs/production.md', /^```yaml\n([^]*?)^```$/gm);
  const { spec } = deployment.parse(parseYaml(block));
  const { template } = spec;
  const [worker] = template.spec.containers;
  expect(template.metadata.labels).toEqual(spec.selector.matchLabels);
  const names = (list: readonly { readonly name: string }[]): readonly string[] =>
    list.map(({ name }) => name).toSorted();
  expect(names(worker.volumeMounts)).toEqual(names(template.spec.volumes));
  // What the image writes: PERDURE_HOME, and the folder that the composition mounts, too.
  const [home = ''] = matches('Dockerfile', /^ENV .*PERDURE_HOME=(\S+)/gm);
  expect(worker.volumeMounts.map(({ mountPath }) => mountPath).toSorted()).toEqual([home, '/tmp']);
  // The user `node` of the image is 1000.
  expect(matches('Dockerfile', /^FROM (\w+):/gm).at(-1)).toBe('node');
  expect(text('Dockerfile')).toContain(`"${worker.args[1]}", "${worker.args[2]}"`);
  const [section = ''] = matches(
    'docs/reference/commands.md',
    /^### `?(?:perdure )?worker\b([^]*?)^##/gm,
  );
  for (const option of worker.args.filter((arg) => arg.startsWith('-'))) {
    expect(section).toContain(`\`${option} `);
  }
  const [{ containerPort }] = worker.ports;
  expect(worker.args.join(' ')).toContain(`--metrics 0.0.0.0:${containerPort}`);
  const variables = text('docs/operations.md');
  for (const { name } of worker.env) expect(variables).toContain(`\`${name}`);
});

test('the health check of the image imports modules that the build makes', () => {
  const modules = matches('docker/worker-health.js', /^import .* from '\.\.\/dist\/(.*)\.js';$/gm);
  expect(modules).not.toEqual([]);
  for (const name of modules) expect(existsSync(join(root, 'src', `${name}.ts`))).toBe(true);
});

test('the composition passes every variable of the shell that a worker reads, and the page names them', () => {
  const { environment } = z
    .object({ environment: z.record(z.string(), z.string().nullable()) })
    .parse(composition().services['worker']);
  const passed = Object.keys(environment).filter((name) => environment[name] === null);
  const read = variablesReadIn('src');
  expect(read.size).toBeGreaterThan(15);
  expect(Object.keys(NOT_PASSED).filter((name) => !read.has(name))).toEqual([]);
  expect(passed).toEqual(expect.arrayContaining([...read].filter((name) => !NOT_PASSED[name])));
  // AWS's SDK reads the keys itself.
  expect(passed).toEqual(
    expect.arrayContaining(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN']),
  );
  expect(passed.filter((name) => NOT_PASSED[name])).toEqual([]);
  const [, page = ''] = text('docs/operations.md').split(/^## For a team$/m);
  const [section = ''] = page.split(/^## /m);
  expect(passed.filter((name) => !section.includes(`\`${name}\``))).toEqual([]);
});

test('the image of a worker has the SDK of the storage that the pages configure', () => {
  const { peerDependencies } = z
    .object({ peerDependencies: z.record(z.string(), z.string()) })
    .parse(JSON.parse(text('package.json')));
  const [sdk = ''] = matches('src/storage/s3-stores.ts', /await import\('(.+)'\)/g);
  expect(peerDependencies).toHaveProperty([sdk]);
  expect(text('docs/production.md')).toContain('{ name: PERDURE_STORE, value: ');
  // npm installs optional peer dependencies nowhere by itself, and others in both ways.
  const [[, drop = '', build = ''] = []] = [
    ...text('Dockerfile').matchAll(/^RUN drop="(.+)"; \\\n([^]*?[^\\])\n\n/gm),
  ];
  expect(drop).toBe(`npm pkg delete devDependencies peerDependenciesMeta.${sdk}`);
  expect(build).toMatch(/npm run build && \$drop && npm prune[^]*else[^]*\$drop && npm install/);
});

test('Docker reads the composition, and keys come only from the shell', () => {
  const { OPENAI_API_KEY: _key, ...env } = process.env;
  const without = composed(env);
  if (!without) return;
  expect(without['worker']?.environment).toMatchObject({ OPENAI_API_KEY: null });
  const ports = Object.values(without).flatMap((each) => each.ports);
  expect(ports.map((port) => port.host_ip)).toEqual(ports.map(() => '127.0.0.1'));
  const given = composed({ ...env, OPENAI_API_KEY: 'from-the-shell' });
  expect(given?.['worker']?.environment).toMatchObject({ OPENAI_API_KEY: 'from-the-shell' });
});

test('every action is pinned by its commit, with its version', () => {
  const workflows = readdirSync(join(root, '.github/workflows'));
  expect(workflows).toEqual(expect.arrayContaining(['ci.yml', 'release.yml']));
  for (const workflow of workflows) {
    const uses = matches(`.github/workflows/${workflow}`, /^.*\buses:\s*(.*)$/gm);
    expect(uses.length).toBeGreaterThan(0);
    for (const use of uses)
      expect(use).toMatch(/^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  }
});

test('a release has provenance and bills of materials, and no job has unneeded permissions', () => {
  const release = text('.github/workflows/release.yml');
  expect(release).toContain('permissions: {}');
  expect(release).toMatch(/npm publish .*--provenance/);
  expect(release).toContain('npm sbom --omit dev');
  const rights = matches('.github/workflows/release.yml', /^ +([\w-]+: (?:read|write).*)$/gm);
  expect(rights).toEqual(['contents: read', 'id-token: write', 'contents: write']);
  // A job that may publish executes neither our code nor that of dependencies.
  const publishing = release.slice(
    release.indexOf('id-token: write'),
    release.indexOf('  attach:'),
  );
  expect(matches('.github/workflows/ci.yml', /^ {2}(contents: .*)$/gm)).toEqual(['contents: read']);
  expect(publishing.match(/run: .*/g)).toEqual([
    'run: npm publish release/*.tgz --provenance --access public --ignore-scripts',
  ]);
});
