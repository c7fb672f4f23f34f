import type { Client } from '@temporalio/client';
import type { Decision, Request } from '../core/transcript/request.js';
import type { Action, Reaction, ScriptedDecision } from '../testing/actions.js';
import { InputError } from '../core/errors.js';
import { type Fault, assertFaults } from './faults.js';
import { isObject, textField } from '../core/text/json.js';
import { show, toMs } from '../core/text/text.js';
import type { PerdureClient } from '../client/client-types.js';
import { askRun } from '../updates/ask.js';
import type { VirtualClock } from './clock.js';

/** What happens when. A list is used up one after another; a single request's entry always applies. */
export interface Reactions {
  /**
   * What answers each request: by the tool's name for an approval, by the request's kind for another
   * one, such as `question`, `limit`, or `outcome_unknown`, and by `*` for any.
   */
  readonly request?: Readonly<Record<string, Reaction | readonly Reaction[]>>;
  /** By the tool's name: what happens just before its first, second, … execution begins. */
  readonly call?: Readonly<Record<string, Action | readonly Action[]>>;
  /** By number from 1: what happens just before the run's n-th model call, one after another. */
  readonly step?: Readonly<Record<number, Action | readonly Action[]>>;
  /** What happens each time when the run waits for its next message. */
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
  isWaiting: boolean;
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

const ACTIONS: Readonly<Record<Action['type'], true>> = {
  send: true,
  'cancel-turn': true,
  cancel: true,
  close: true,
  pause: true,
  resume: true,
  'set-limits': true,
  kill: true,
  after: true,
  wait: true,
  decide: true,
};
const MOMENTS = ['request', 'call', 'step', 'waiting'];
/** The parts of a script. */
interface ScriptParts {
  readonly on?: Reactions;
  readonly at?: Script['at'];
  readonly faults?: readonly Fault[];
}

/** Throws an `InputError` for a part of a script that would have no effect. */
export function assertScript({ on = {}, at = {}, faults = [] }: ScriptParts): void {
  for (const [moment, entries] of Object.entries(on)) {
    if (!MOMENTS.includes(moment)) throw unexpected('on', `one of ${MOMENTS.join(', ')}`, moment);
    const all: unknown = moment === 'waiting' ? { waiting: entries } : entries;
    for (const [name, entry] of Object.entries(isObject(all) ? all : {})) {
      const list: readonly unknown[] = Array.isArray(entry) ? entry : [entry];
      for (const one of list) {
        if (typeof one !== 'function') assertAction(`on.${moment}.${name}`, one);
      }
    }
  }
  for (const [delay, entry] of Object.entries(at)) {
    const ms = toMs(delay);
    if (!(ms >= 0)) throw unexpected('at', 'a time after the start such as "3 days"', delay);
    for (const one of Array.isArray(entry) ? entry : [entry]) assertAction(`at["${delay}"]`, one);
  }
  assertFaults(faults);
}

function assertAction(place: string, action: unknown): void {
  const type = isObject(action) ? textField(action, 'type') : '';
  if (!Object.hasOwn(ACTIONS, type)) {
    throw unexpected(place, 'an action such as approve(), deny(), or send("…")', action);
  }
}

function unexpected(field: string, what: string, value: unknown): InputError {
  return new InputError(`${field}: expected ${what}, got ${show(value)}`);
}

export function createScript({ on = {}, at = {}, faults = [] }: ScriptParts): Script {
  return {
    on,
    at,
    faults,
    replies: [],
    requests: new Map(),
    used: new Map(),
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

function isList<T>(entry: T | readonly T[]): entry is readonly T[] {
  return Array.isArray(entry);
}

/** Performs an action. Rejects if the run refuses it. */
export async function perform(stage: Stage, action: Action): Promise<void> {
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
      return later(stage, action.delay, () => perform(stage, action.action));
    case 'wait':
      return;
    case 'decide':
      throw new Error('in memory: a decision answers a request: give it in `on.request`');
  }
}

function later(stage: Stage, delay: Parameters<typeof toMs>[0], act: () => Promise<void>): void {
  const at = stage.clock.now() + toMs(delay);
  stage.clock.set({ at, kind: 'script' }, () => stage.work(act));
}

/** Sets the timers of `at`. */
export function setTimes(script: Script, stage: Stage, at: Script['at']): void {
  for (const [delay, given] of Object.entries(at)) {
    const actions = isList(given) ? given : [given];
    later(stage, delay, async () => {
      script.used.set(`at ${delay}`, 1);
      for (const action of actions) await perform(stage, action);
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
  const seen = script.requests.get(name) ?? { run, request, decided: [], isWaiting: false };
  script.requests.set(name, seen);
  seen.request = request;
  if (request.checking || seen.isWaiting) return false;
  markRefused(seen);
  const place = placesOf(request).find((one) => script.on.request?.[one] !== undefined);
  if (place === undefined) return false;
  const entry = script.on.request?.[place];
  if (seen.decided.length >= mostDecisions(entry)) return false;
  const given = take(script, `request ${place}`, entry, true);
  if (given === undefined) return false;
  const reaction = typeof given === 'function' ? given(request, run) : given;
  await decideOrPerform(stage, seen, reaction);
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

/** A function that has decided this often about one request is always refused. */
const MOST_DECISIONS = 100;

/** Returns how often an entry may decide about one request: a single decision would be refused again. */
function mostDecisions(entry: Reaction | readonly Reaction[] | undefined): number {
  if (Array.isArray(entry)) return entry.length;
  return typeof entry === 'function' ? MOST_DECISIONS : 1;
}

/** The tool stands for its approval; any other request is first looked up by its kind. */
function placesOf({ tool, kind }: Request): readonly string[] {
  const named = tool === undefined ? [] : [tool];
  return kind === 'approval' ? [...named, kind, '*'] : [kind, ...named, '*'];
}

async function decideOrPerform(stage: Stage, seen: SeenRequest, action: Action): Promise<void> {
  switch (action.type) {
    case 'wait':
      seen.isWaiting = true;
      return;
    case 'after': {
      seen.isWaiting = true;
      return later(stage, action.delay, async () => {
        seen.isWaiting = false;
        await decideOrPerform(stage, seen, action.action);
      });
    }
    case 'decide':
      return await decide(stage, seen, action.decision);
    default:
      await perform(stage, action);
  }
}

async function decide(
  { client }: Stage,
  { run, request, decided }: SeenRequest,
  given: ScriptedDecision,
): Promise<void> {
  const decision: Decision = { request: request.id, digest: request.digest, ...given };
  try {
    await client.resolve(run, decision);
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
  const action = take(script, `call ${tool}`, script.on.call?.[tool], false);
  if (action !== undefined) await perform(stage, action);
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
  const entry = script.on.step?.[number];
  if (entry === undefined) return number;
  script.used.set(`step ${number}`, 1);
  for (const action of isList(entry) ? entry : [entry]) await perform(stage, action);
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

/** Performs the next action for a run that waits for a message. Returns false if there is none. */
export async function nextWhenWaiting(script: Script, stage: Stage): Promise<boolean> {
  const { waiting } = script.on;
  const action = take(script, 'waiting', waiting, false);
  if (action === undefined) return false;
  await perform(stage, action);
  return true;
}

/** Returns the places at which something was to happen, and which the run did not reach. */
export function missedIn({ on, at, faults, firedFaults, used }: Script): readonly string[] {
  const isUnused = (place: string): boolean => !used.has(place);
  return [
    ...faults.flatMap((fault, index) =>
      firedFaults.has(fault) ? [] : [`faults[${index}]: ${show(fault)}`],
    ),
    ...Object.entries(on.call ?? {}).flatMap(([tool, entry]) =>
      leftOf(entry, used.get(`call ${tool}`)).map((left) => `on.call.${tool}: ${left}`),
    ),
    ...Object.keys(on.step ?? {})
      .filter((step) => isUnused(`step ${step}`))
      .map((step) => `on.step[${step}]`),
    ...Object.keys(at)
      .filter((delay) => isUnused(`at ${delay}`))
      .map((delay) => `at["${delay}"]`),
  ];
}

/** Returns what the run left over of what was there for it. */
export function unusedIn({ on, used, replies }: Script): readonly string[] {
  const requests = Object.entries(on.request ?? {}).filter(([name]) => name !== '*');
  return [
    ...replies.flatMap(({ place, given, used: count }) =>
      count() >= given ? [] : [`${place}: ${given - count()} of ${given} replies`],
    ),
    ...requests.flatMap(([name, entry]) =>
      leftOf(entry, used.get(`request ${name}`)).map((left) => `on.request.${name}: ${left}`),
    ),
    ...leftOf(on.waiting ?? [], used.get('waiting')).map((left) => `on.waiting: ${left}`),
  ];
}

function leftOf(entry: unknown, count = 0): readonly string[] {
  const given = Array.isArray(entry) ? entry.length : 1;
  if (count >= given) return [];
  return [given === 1 ? 'never used' : `${given - count} of ${given} entries`];
}
