import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { toRunStatus } from '../../src/client/status.js';
import type { Effect } from '../../src/core/definition/tool-definition.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { readRun } from '../../src/history/read-run.js';
import type { ModelReply, ModelRequest } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { fileBlobStore, fileArchive } from '../../src/storage/file-stores.js';
import { s3Stores } from '../../src/storage/s3-stores.js';
import type { Stores } from '../../src/storage/tool-lock.js';
import { artifact } from '../../src/tools/built-in/artifact.js';
import { defaultTools } from '../../src/tools/built-in/default-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { S3_KEYS, startS3 } from '../support/s3-server.js';

const exec = promisify(execFile);

/** Storage that a test can break and repair. */
interface Place {
  readonly stores: Stores;
  readonly fault: RegExp;
  readonly fail: () => Promise<void>;
  readonly repair: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** A disk of a few MB, which only root can mount. */
async function disk(
  kb: number,
): Promise<{ readonly folder: string; readonly close: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-disk-'));
  await exec('mount', ['-t', 'tmpfs', '-o', `size=${kb}k,mode=700`, 'tmpfs', folder]);
  const close = async (): Promise<void> => {
    await exec('umount', ['--lazy', folder]);
    await rm(folder, { recursive: true, force: true });
  };
  return { folder, close };
}

function storesIn(folder: string): Stores {
  return {
    blobs: fileBlobStore(join(folder, 'blobs')),
    archive: fileArchive(join(folder, 'archive')),
  };
}

const places: Readonly<Record<string, () => Promise<Place>>> = {
  async 'is read-only'() {
    const { folder, close } = await disk(16_000);
    return {
      stores: storesIn(folder),
      fault: /the file system is read-only/,
      fail: async () => void (await exec('mount', ['-o', 'remount,ro', folder])),
      repair: async () => void (await exec('mount', ['-o', 'remount,rw', folder])),
      close,
    };
  },
  async 'is full'() {
    const { folder, close } = await disk(8_000);
    const filling = join(folder, 'filling');
    return {
      stores: storesIn(folder),
      fault: /the disk is full/,
      async fail() {
        const file = await open(filling, 'w');
        const block = Buffer.alloc(4_096);
        const full = (async () => {
          for (;;) await file.write(block);
        })();
        await expect(full).rejects.toMatchObject({ code: 'ENOSPC' });
        await file.close();
      },
      repair: async () => await rm(filling),
      close,
    };
  },
  async 'is gone'() {
    const folder = await mkdtemp(join(tmpdir(), 'perdure-gone-'));
    const [at, away] = [join(folder, 'stores'), join(folder, 'away')];
    await mkdir(at);
    return {
      stores: storesIn(at),
      fault: /a part of the path is a file/,
      async fail() {
        await rename(at, away);
        await writeFile(at, '');
      },
      async repair() {
        await rm(at);
        await rename(away, at);
      },
      close: async () => await rm(folder, { recursive: true, force: true }),
    };
  },
  async 'is an S3 bucket that refuses to write'() {
    for (const [name, value] of Object.entries({ ...S3_KEYS, AWS_REGION: 'us-east-1' })) {
      vi.stubEnv(name, value);
    }
    const s3 = await startS3();
    const whole = s3Stores({ bucket: s3.bucket, endpoint: s3.endpoint });
    const lost = s3Stores({ bucket: 'no-such-bucket', endpoint: s3.endpoint });
    let current = whole;
    return {
      stores: {
        blobs: { put: (text) => current.blobs.put(text), get: (ref) => current.blobs.get(ref) },
        archive: {
          write: (...given) => current.archive.write(...given),
          list: (run) => current.archive.list(run),
          read: (...given) => current.archive.read(...given),
        },
      },
      fault: /create the bucket, or correct its name/,
      fail: async () => void (current = lost),
      repair: async () => void (current = whole),
      async close() {
        await s3.close();
        vi.unstubAllEnvs();
      },
    };
  },
};

const mayMount = await disk(64).then(
  async ({ close }) => {
    await close();
    return true;
  },
  (error: Error) => {
    process.stderr.write(
      `a folder cannot be mounted, so two places are left out: ${error.message}\n`,
    );
    return false;
  },
);
const names = Object.keys(places).filter((name) => mayMount || !/read-only|full/.test(name));

const BYTES = 300_045;
const executed = new Map<string, number>();
let requests = 0;

const make = (name: string, effect: Effect, isArtifact = false) =>
  defineTool({
    name,
    description: name,
    input: z.object({ id: z.string() }),
    effect,
    execute: async ({ id }) => {
      executed.set(id, (executed.get(id) ?? 0) + 1);
      const text = `${id} `.repeat(BYTES).slice(0, BYTES);
      return isArtifact ? artifact(text, { name: 'report' }) : text;
    },
  });

/** The first message names the tool; `write` makes the model itself write a long answer. */
async function obey({ messages }: ModelRequest): Promise<ModelReply> {
  const [task = '', id = ''] = (messages[0]?.text ?? '').split(' ');
  if (task === 'write') {
    requests += 1;
    return replyText(`${id} `.repeat(100_000).slice(0, 100_000));
  }
  if (messages.some(({ role }) => role === 'tool')) return replyText('done');
  return replyCall(task, { id });
}

describe.each(names)('when the folder of the storage %s', (name) => {
  let rig: Rig;
  let place: Place;
  const runs = new Map<string, WorkflowHandle>();
  const start = async (task: string): Promise<void> => {
    const id = `${task}-${names.indexOf(name)}`;
    const archive = task === 'once' ? { archive: true } : {};
    runs.set(task, await rig.start({ agent: 'a', message: `${task} ${id}`, ...archive }));
  };
  const of = (task: string): WorkflowHandle => {
    const run = runs.get(task);
    if (run === undefined) throw new Error(`no run ${task}`);
    return run;
  };
  const read = async (task: string): Promise<RunStatus> =>
    toRunStatus(await readRun(rig.client, of(task).workflowId), Date.now());

  beforeAll(async () => {
    place = await (places[name] ?? (() => Promise.reject(new Error(name))))();
    rig = await createMemoryRig();
    const tools = [
      ...defaultTools(),
      make('look', 'read'),
      make('collect', 'read', true),
      make('put', 'keyed'),
      make('once', 'once'),
      make('produce', 'keyed', true),
    ];
    await rig.worker([defineAgent({ name: 'a', instructions: 'x', model: 'm', tools })], {
      models: { m: { call: obey } },
      ...place.stores,
    });
    executed.clear();
    requests = 0;
    await place.fail();
    await Promise.all(['look', 'collect', 'put', 'once', 'produce', 'write'].map(start));
  });
  afterAll(async () => {
    await rig.close();
    await place.close();
  });

  test.each(['put', 'once', 'produce'])(
    'a %s call finishes, and its loss is in the outcome and in the status',
    async (task) => {
      const { outcome } = await rig.end(of(task));
      expect(outcome).toMatchObject({ status: 'completed', answer: 'done' });
      expect(outcome.lost).toEqual([expect.stringMatching(place.fault)]);
      expect(outcome.lost?.[0]).toMatch(
        new RegExp(`^the result of ${task} \\(call_1_1_0\\): ${BYTES} bytes could not be stored: `),
      );
      const reported = { type: 'storage_lost', message: outcome.lost?.[0] };
      const { reports, outcome: shown } = await read(task);
      expect(reports).toContainEqual(expect.objectContaining(reported));
      expect(shown?.lost).toEqual(outcome.lost);
      expect(executed.get(`${task}-${names.indexOf(name)}`)).toBe(1);
      if (task !== 'once') return;
      expect(reports).toContainEqual(expect.objectContaining({ type: 'not_archived' }));
    },
    60_000,
  );

  test('a read and a paid reply wait, and are whole when the storage is back', async () => {
    const waiting = ['look', 'collect', 'write'];
    const blocked = { status: 'blocked', reason: 'storage' };
    for (const task of waiting) {
      await vi.waitFor(async () => expect(await read(task)).toMatchObject(blocked), {
        timeout: 45_000,
        interval: 100,
      });
      expect((await read(task)).message).toMatch(place.fault);
    }
    await place.repair();
    await Promise.all(waiting.map((task) => of(task).executeUpdate('resume')));
    for (const task of waiting) {
      const { outcome, projection } = await rig.end(of(task));
      expect(outcome).toMatchObject({ status: 'completed' });
      expect(outcome).not.toHaveProperty('lost');
      const [blob] = (projection.state?.transcript.messages ?? []).flatMap((one) => one.blob ?? []);
      const [report] = projection.state?.artifacts ?? [];
      const kept = task === 'collect' ? report?.blob : blob;
      expect(kept?.bytes).toBe(task === 'write' ? 100_000 : BYTES);
      expect((await place.stores.blobs.get(kept ?? { sha256: '' })).length).toBe(kept?.bytes);
    }
    expect(requests).toBe(1);
  }, 120_000);
});
