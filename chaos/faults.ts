import { cp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Fault } from '../src/memory/faults.js';
import { type Random, integer, seeded } from './random.js';
import type { World } from './world.js';

const WORKER_EVERY_MS = 2_000;
const SERVER_EVERY_MS = 20_000;
const STORAGE_EVERY_MS = 25_000;
const STORAGE_DOWN_MS = 5_000;
/**
 * Longer than the heartbeat and workflow task timeouts, so that other workers take over meanwhile.
 */
const ZOMBIE_MS = 15_000;
const ZOMBIE_SHARE = 0.15;
/** Connections to the server are cut, or let nothing pass, for so long. */
const LINK_EVERY_MS = 10_000;
const LINK_DOWN_MS = [1_000, 15_000] as const;
const CLOCK_EVERY_MS = 3_000;

/** The share of processes of workers that die at a certain call. */
const FAULT_SHARE = 0.5;

/** Returns where the next process of a worker dies by itself, just before or just after a call. */
export function nextFaults(random: Random): readonly Fault[] {
  if (random() >= FAULT_SHARE) return [];
  const at = random() < 0.5 ? 'before-effect' : 'after-effect';
  return [{ at, call: integer(random, 1, 12), kill: true }];
}

/** Counts of the faults that were caused. */
export interface Tally {
  kills: number;
  zombies: number;
  serverKills: number;
  outages: number;
  cuts: number;
  jumps: number;
}

/**
 * Kills and freezes, takes storage away, cuts connections, and lets clocks jump until `signal`
 * aborts; resolves when everything is restored.
 */
export async function inflict(world: World, seed: number, signal: AbortSignal): Promise<Tally> {
  const tally: Tally = { kills: 0, zombies: 0, serverKills: 0, outages: 0, cuts: 0, jumps: 0 };
  await Promise.all([
    harmWorkers(world, { seed, tally, signal }),
    every(SERVER_EVERY_MS, signal, async () => {
      tally.serverKills += 1;
      await world.killServer();
    }),
    every(STORAGE_EVERY_MS, signal, async () => {
      tally.outages += 1;
      await storageDown(world.home);
    }),
    harmLinks(world, { seed, tally, signal }),
    harmClocks(world, { seed, tally, signal }),
  ]);
  return tally;
}

async function harmWorkers(world: World, { seed, tally, signal }: Harm): Promise<void> {
  const random = seeded(seed + 1);
  const zombies = new Map<number, Promise<void>>();
  const starts: Promise<void>[] = [];
  await every(WORKER_EVERY_MS, signal, async () => {
    const chosen = integer(random, 0, world.workers.length);
    const slot = world.workers[chosen];
    // Only a worker that is polling can lose work.
    if (slot === undefined || !slot.isUp || zombies.has(chosen)) return;
    if (random() < ZOMBIE_SHARE) {
      tally.zombies += 1;
      slot.signal('SIGSTOP');
      const comeBack = async (): Promise<void> => {
        await pause(ZOMBIE_MS);
        slot.signal('SIGCONT');
        zombies.delete(chosen);
      };
      zombies.set(chosen, comeBack());
      return;
    }
    tally.kills += 1;
    await slot.kill();
    // The next fault does not wait until this worker polls again.
    starts.push(slot.start());
  });
  await Promise.all([...zombies.values(), ...starts]);
}

interface Harm {
  readonly seed: number;
  readonly tally: Tally;
  readonly signal: AbortSignal;
}

/** Cuts the connection of the client or of a worker, or lets nothing pass, and restores it. */
async function harmLinks({ links }: World, { seed, tally, signal }: Harm): Promise<void> {
  const random = seeded(seed + 4);
  const all = [links.client, ...links.workers];
  const down = new Map<number, Promise<void>>();
  await every(LINK_EVERY_MS, signal, async () => {
    const chosen = integer(random, 0, all.length);
    const link = all[chosen];
    if (link === undefined || down.has(chosen)) return;
    tally.cuts += 1;
    if (random() < 0.5) link.cut();
    else link.hold();
    const comeBack = async (): Promise<void> => {
      await pause(integer(random, ...LINK_DOWN_MS), undefined, { signal }).catch(() => undefined);
      link.restore();
      down.delete(chosen);
    };
    down.set(chosen, comeBack());
  });
  await Promise.all(down.values());
}

/** Lets the clock of a worker jump by a day, forward, back, or back to the right time. */
async function harmClocks({ workers }: World, { seed, tally, signal }: Harm): Promise<void> {
  const random = seeded(seed + 5);
  await every(CLOCK_EVERY_MS, signal, async () => {
    const slot = workers[integer(random, 0, workers.length)];
    if (slot === undefined || !slot.isUp) return;
    tally.jumps += 1;
    slot.signal('SIGUSR2');
  });
}

/** The folders of both stores are gone, and files stand in their place, so that nothing can be created. */
async function storageDown(home: string): Promise<void> {
  const folders = ['blobs', 'archive'].map((name) => join(home, name));
  const away = (folder: string): string => `${folder}.away`;
  const taken = await Promise.all(
    folders.map(async (folder) => {
      const moved = await rename(folder, away(folder)).then(
        () => true,
        () => false,
      );
      if (moved) await writeFile(folder, '', { flag: 'wx' }).catch(() => undefined);
      return moved;
    }),
  );
  await pause(STORAGE_DOWN_MS);
  for (const [at, folder] of folders.entries()) {
    if (taken[at] === true) await bringBack(away(folder), folder);
  }
}

/**
 * A worker may have created the folder before the file was put in its place; what it wrote is
 * preserved.
 */
async function bringBack(away: string, folder: string): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const meanwhile = `${folder}.meanwhile-${attempt}`;
    await rename(folder, meanwhile).catch(() => undefined);
    const isBack = await rename(away, folder).then(
      () => true,
      () => false,
    );
    if (!isBack) continue;
    for (let each = 0; each <= attempt; each += 1) {
      const written = `${folder}.meanwhile-${each}`;
      const isFolder = await stat(written).then(
        (found) => found.isDirectory(),
        () => false,
      );
      if (isFolder) await cp(written, folder, { recursive: true });
      await rm(written, { recursive: true, force: true });
    }
    return;
  }
}

async function every(ms: number, signal: AbortSignal, harm: () => Promise<void>): Promise<void> {
  for (;;) {
    await pause(ms, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    await harm();
  }
}
