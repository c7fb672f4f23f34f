import type { Client } from '@temporalio/client';
import type { Decision, Request } from '../core/transcript/request.js';
import {
  type Action,
  type Reaction,
  type ScriptedDecision,
  assertAction,
} from '../testing/actions.js';
import { RefusedError } from '../core/errors.js';
import { toMs } from '../core/text/text.js';
import type { Fault } from './faults.js';
import type { PerdureClient } from '../client/client-types.js';
import { askRun } from '../updates/ask.js';
import { resolveRequests } from '../updates/decide.js';
import type { VirtualClock } from './clock.js';
import { isList } from '../core/text/json.js';

/** What happens when. A list is used up one after another; a single request's entry always applies. */
export interface Reactions {
  /**
   * What answers each request: by the tool's name for its approval, by the request's kind for
   * another one, such as `question`, `limit`, or `outcome_unknown`, and by `*` for any. A request of a
   * kind that has no entry is answered by the tool's name, too, except `outcome_unknown` and
   * `tool_changed`, which take other decisions. Default: nothing does.
   */
  readonly request?: Readonly<Record<string, Reaction | readonly Reaction[]>>;
  /**
   * By the tool's name: what happens just before its first, second, … execution begins. Default:
   * nothing.
   */
  readonly call?: Readonly<Record<string, Action | readonly Action[]>>;
  /**
   * By number from 1: what happens just before the run's n-th model call, one after another.
   * Default: nothing.
   */
  readonly step?: Readonly<Record<number, Action | readonly Action[]>>;
  /** What happens each time when the run waits for its next message. Default: nothing. */
  readonly waiting?: readonly Action[];
}

/** A request of a run, with what the script did about it. */
export interface MemoryRequest extends Request {
  /** The run that asked: that of a called agent has its own id. */
  readonly run: string;
  /** What the script decided, in order; each with its refusal, if the run refused it. */
  readonly decided: readonly MadeDecision[];
}

/** A decision of the script. */
export interface MadeDecision extends ScriptedDecision {
  /** Why the run refused it; absent if it did not. */
  readonly refused?: string;
}

/** The script of one run. */
export interface Script {
  readonly on: Reactions;
  readonly faults: readonly Fault[];
  /** The requests that were seen, oldest first. */
  readonly requests: Map<string, SeenRequest>;
  readonly at: Readonly<Record<string, Action | readonly Action[]>>;
  /** How often each entry was used, by its place. */
  readonly used: Map<string, number>;
  /** How many delayed actions of each place have not come. */
  readonly delayed: Map<string, number>;
  /** Null unless the run is executed again from its recording. */
  readonly moments: Moments | null;
  /** The lists of replies, and how many of them were given. */
  readonly replies: {
    readonly place: string;
    readonly given: number;
    readonly used: () => number;
  }[];
  /** The ids of the calls that began, in order. */
  readonly calls: string[];
  steps: number;
  readonly firedFaults: Set<Fault>;
}

interface SeenRequest {
  readonly run: string;
  request: Request;
  readonly decided: MadeDecision[];
  /** How often the script did something else about it. */
  performed: number;
  isWaiting: boolean;
}

/** What a rerun does by itself, as it was recorded. What the run refuses is left out. */
export interface Moments {
  /** Just before the n-th model call. */
  readonly step: (number: number) => readonly Action[];
  /**
   * When nothing goes on. `isWaiting`: the run waits for a message; `next`: the Unix time in ms of the
   * next timer, Infinity without one.
   */
  readonly quiet: (given: {
    readonly isWaiting: boolean;
    readonly next: number;
  }) => Action | undefined;
  /** The Unix time in ms after which no timer of the run fires. */
  readonly until: number;
}

/** What actions act on. */
export interface Stage {
  readonly id: string;
  readonly clock: VirtualClock;
  readonly client: PerdureClient;
  readonly temporal: Client;
  readonly kill: () => void;
  /** Runs work while the clock stands still; its failure ends everything. */
  readonly work: (act: () => Promise<void>) => void;
}

/** The parts of a script. */
export interface ScriptParts {
  readonly on?: Reactions;
  readonly at?: Script['at'];
  readonly faults?: readonly Fault[];
}

export function createScript(
  { on = {}, at = {}, faults = [] }: ScriptParts,
  moments: Moments | null = null,
): Script {
  return {
    on,
    at,
    faults,
    replies: [],
    requests: new Map(),
    used: new Map(),
    delayed: new Map(),
    moments,
    calls: [],
    steps: 0,
    firedFaults: new Set(),
  };
}

/** Returns the next entry of a list, or a single entry as often as `repeats` says. */
function take<T>(
  { used }: Script,
  place: string,
  entry: T | readonly T[] | undefined,
  repeats: boolean,
): T | undefined {
  if (entry === undefined) return undefined;
  const count = used.get(place) ?? 0;
  const list = isList(entry) ? entry : [entry];
  const taken = list[repeats && !isList(entry) ? 0 : count];
  if (taken !== undefined) used.set(place, count + 1);
  return taken;
}

/** An entry of a script, and where it acts. */
interface Scene {
  readonly script: Script;
  readonly stage: Stage;
  /** The name of the entry in `used`. */
  readonly place: string;
}

/** Performs an action. Rejects if the run refuses it. */
async function perform(scene: Scene, action: Action): Promise<void> {
  const { stage } = scene;
  const { id, client, clock, temporal } = stage;
  switch (action.type) {
    case 'send': {
      // The clock of the sender is the virtual one.
      await askRun(temporal, id, { ...action.message, sentAt: clock.now() });
      return;
    }
    case 'cancel-turn':
      await client.cancel(id, { turn: true });
      return;
    case 'cancel':
      return await client.cancel(id);
    case 'close':
      return await client.close(id);
    case 'pause':
      return await client.pause(id);
    case 'resume':
      return await client.resume(id);
    case 'set-limits':
      await client.setLimits(id, action.limits);
      return;
    case 'kill':
      return stage.kill();
    case 'after':
      return later(scene, action.delay, () => perform(scene, action.action));
    case 'wait':
      return;
    case 'decide':
      throw new Error('in memory: a decision answers a request: give it in `on.request`');
  }
}

function later(
  { script: { delayed }, stage, place }: Scene,
  delay: Parameters<typeof toMs>[0],
  act: () => Promise<void>,
): void {
  const at = stage.clock.now() + toMs(delay);
  delayed.set(place, (delayed.get(place) ?? 0) + 1);
  stage.clock.set({ at, kind: 'script' }, () => {
    delayed.set(place, (delayed.get(place) ?? 0) - 1);
    stage.work(act);
  });
}

/** Sets the timers of `at`. */
export function setTimes(script: Script, stage: Stage, at: Script['at']): void {
  for (const [delay, given] of Object.entries(at)) {
    const actions = isList(given) ? given : [given];
    const scene = { script, stage, place: `at ${delay}` };
    later(scene, delay, async () => {
      script.used.set(scene.place, 1);
      for (const action of actions) await perform(scene, action);
    });
  }
}

/** Answers an open request as the script says. Returns whether it did something. */
export async function react(
  script: Script,
  stage: Stage,
  { run, request }: { readonly run: string; readonly request: Request },
): Promise<boolean> {
  const name = `${run} ${request.id}`;
  const unseen = { run, request, decided: [], performed: 0, isWaiting: false };
  const seen = script.requests.get(name) ?? unseen;
  script.requests.set(name, seen);
  seen.request = request;
  if (request.checking || seen.isWaiting) return false;
  markRefused(seen);
  const place = placesOf(request).find((one) => script.on.request?.[one] !== undefined);
  if (place === undefined) return false;
  const entry = script.on.request?.[place];
  if (seen.decided.length + seen.performed >= mostDecisions(script, entry)) return false;
  const given = take(script, `request ${place}`, entry, true);
  if (given === undefined) return false;
  const reaction = typeof given === 'function' ? given(request, run) : given;
  const from = typeof given === 'function' ? ' from its function' : '';
  assertAction(`on.request.${place}`, reaction, from);
  await decideOrPerform({ script, stage, place: `request ${place}` }, seen, reaction);
  return true;
}

/** Marks the newest decision as refused, if the run has refused it after its check. */
function markRefused({ request: { refused }, decided }: SeenRequest): void {
  const newest = decided.pop();
  if (newest === undefined) return;
  decided.push(
    refused === undefined || newest.refused !== undefined ? newest : { ...newest, refused },
  );
}

/** How often a function may decide about one request, or do something else about it; and in a rerun, which repeats what people did. */
const [MOST_DECISIONS, MOST_RECORDED] = [3, 100];

/** Returns how often an entry may act on one request: a single decision would be refused again. */
function mostDecisions(
  { moments }: Script,
  entry: Reaction | readonly Reaction[] | undefined,
): number {
  if (Array.isArray(entry)) return entry.length;
  if (typeof entry !== 'function') return 1;
  return moments === null ? MOST_DECISIONS : MOST_RECORDED;
}

/** What is decided there is not whether to execute a call of the tool. */
const OF_KIND_ONLY: readonly Request['kind'][] = ['outcome_unknown', 'tool_changed'];

/**
 * Returns the names of the entries that may answer a request, the first one first. The tool stands for
 * its approval; any other request is first looked up by its kind.
 */
export function placesOf({ tool, kind }: Pick<Request, 'tool' | 'kind'>): readonly string[] {
  const named = tool === undefined || OF_KIND_ONLY.includes(kind) ? [] : [tool];
  return kind === 'approval' ? [...named, kind, '*'] : [kind, ...named, '*'];
}

async function decideOrPerform(scene: Scene, seen: SeenRequest, action: Action): Promise<void> {
  switch (action.type) {
    case 'wait':
      seen.isWaiting = true;
      return;
    case 'after': {
      seen.isWaiting = true;
      return later(scene, action.delay, async () => {
        seen.isWaiting = false;
        await decideOrPerform(scene, seen, action.action);
      });
    }
    case 'decide':
      return await decide(scene.stage, seen, action.decision);
    default:
      seen.performed += 1;
      await (scene.script.moments === null ? perform : performAgain)(scene, action);
  }
}

async function decide(
  { temporal }: Stage,
  { run, request, decided }: SeenRequest,
  given: ScriptedDecision,
): Promise<void> {
  const decision: Decision = { request: request.id, digest: request.digest, ...given };
  try {
    // A client would remove the door and the groups, which only a server verifies.
    await resolveRequests(temporal, run, decision);
    decided.push(given);
  } catch (error) {
    decided.push({ ...given, refused: error instanceof Error ? error.message : String(error) });
  }
}

/** What the script does just before a tool call is executed. Resolves when it is done. */
export async function beforeCall(
  script: Script,
  stage: Stage,
  { tool, call }: { readonly tool: string; readonly call: string },
): Promise<void> {
  const isNew = !script.calls.includes(call);
  if (isNew) script.calls.push(call);
  fire(script, stage, (fault) => fault.at === 'before-effect' && isCall(script, fault.call, call));
  const place = `call ${tool}`;
  const action = take(script, place, script.on.call?.[tool], false);
  if (action !== undefined) await perform({ script, stage, place }, action);
}

/** What the script does when a tool call was executed, before anybody learns of it. */
export function afterCall(script: Script, stage: Stage, call: string): void {
  fire(script, stage, (fault) => fault.at === 'after-effect' && isCall(script, fault.call, call));
}

function isCall({ calls }: Script, number: number, call: string): boolean {
  return calls[number - 1] === call;
}

/** What the script does just before a model call. Returns the number of the call. */
export async function beforeStep(script: Script, stage: Stage): Promise<number> {
  script.steps += 1;
  const number = script.steps;
  fire(script, stage, (fault) => fault.at === 'before-reply' && fault.step === number);
  const entry = script.on.step?.[number] ?? [];
  const scene = { script, stage, place: `step ${number}` };
  script.used.set(scene.place, 1);
  for (const action of isList(entry) ? entry : [entry]) await perform(scene, action);
  for (const action of script.moments?.step(number) ?? []) await performAgain(scene, action);
  return number;
}

/** What the script does when the model has replied, before anybody learns of it. */
export function afterStep(script: Script, stage: Stage, number: number): void {
  fire(script, stage, (fault) => fault.at === 'after-reply' && fault.step === number);
}

function fire(
  { faults, firedFaults }: Script,
  { kill }: Stage,
  isDue: (fault: Fault) => boolean,
): void {
  const due = faults.filter((fault) => !firedFaults.has(fault) && isDue(fault));
  for (const fault of due) firedFaults.add(fault);
  if (due.length > 0) kill();
}

/** Performs an action that the recorded run has accepted; the run may refuse it now. */
async function performAgain(scene: Scene, action: Action): Promise<void> {
  try {
    await perform(scene, action);
  } catch (error) {
    if (!RefusedError.isInstance(error)) throw error;
  }
}

/**
 * Performs the next action when nothing goes on: for a run that waits for a message, or that is
 * executed again. Returns false if there is none.
 */
export async function nextWhenQuiet(
  script: Script,
  stage: Stage,
  isWaiting: boolean,
): Promise<boolean> {
  const scene = { script, stage, place: 'waiting' };
  const timer = stage.clock.pending().find(({ kind }) => kind !== 'timeout');
  const recorded = script.moments?.quiet({ isWaiting, next: timer?.at ?? Infinity });
  if (recorded !== undefined) {
    await performAgain(scene, recorded);
    return true;
  }
  const action = isWaiting ? take(script, scene.place, script.on.waiting, false) : undefined;
  if (action === undefined) return false;
  await perform(scene, action);
  return true;
}
