import { actorOf } from '../core/input/turn-context.js';
import type { Client } from '@temporalio/client';
import type { Limits } from '../core/definition/definition.js';
import { NoRunError } from '../core/errors.js';
import type { RecordedDecision } from '../core/state/state.js';
import { type Json, canonicalJson, isObject, parseJson, sha256Hex } from '../core/text/json.js';
import { callShape } from '../core/transcript/message-shapes.js';
import type { Message, ToolCall } from '../core/transcript/messages.js';
import type { Archive } from '../storage/blob-store.js';
import { type ErasureRecord, readRecords } from '../storage/erasure-log.js';
import type { HistoryEvent } from './history-event.js';
import { type DecisionView, type Projection, createProjector } from './projection.js';
import { readRun } from './read-run.js';
import { previousRunId, readSegments } from './segments.js';

/** Something that a person, a program, or a tool has done in a run. It holds digests, never texts. */
export type AuditAct =
  | { readonly type: 'started'; readonly agent: string; readonly definition: string | null }
  /** `message`: its number in the transcript; `digest`: SHA-256 (hex) of its text. */
  | {
      readonly type: 'sent';
      readonly message: number;
      readonly turn: number;
      readonly digest: string;
    }
  /**
   * A decision about a request, a pause, other limits, a canceled turn, a closed run, a revoked grant, or
   * an undo. `refused`: why it had no effect. `limits`: those that apply from then on.
   */
  | {
      readonly type: 'decided';
      readonly what: RecordedDecision['what'];
      readonly request?: string;
      readonly as?: string;
      readonly call?: string;
      readonly refused?: string;
      readonly limits?: Limits;
    }
  /** A tool with a side effect was executed. `arguments`: their digest; `ok`: null if it is unknown. */
  | {
      readonly type: 'executed';
      readonly call: string;
      readonly tool: string;
      readonly effect: string;
      readonly arguments: string;
      readonly ok: boolean | null;
    }
  /** The run has called an agent, whose run has entries of its own. */
  | { readonly type: 'called'; readonly call: string; readonly child: string }
  | { readonly type: 'cancel-requested' }
  /** `how`: as Temporal says it; `reason`: that of the outcome. */
  | { readonly type: 'ended'; readonly how: string; readonly reason: string | null }
  /** The server has deleted a segment that the archive does not have, or has only the beginning of. */
  | { readonly type: 'lost'; readonly segment: string }
  /**
   * The run was erased. `erasure`: the entry of the erasure log; `complete`: false if something is left of
   * it.
   */
  | { readonly type: 'erased'; readonly erasure: string; readonly complete: boolean };

/** An act with its place, before it is chained. */
export type AuditFact = AuditAct & {
  readonly run: string;
  /** ISO 8601. */
  readonly at: string;
  /** Who did it: a claim of 1 to 200 characters; absent if none was made. */
  readonly by?: string;
  /** The door that has verified `by`, such as `http`; absent: a claim. */
  readonly door?: string;
};

/** A line of an audit log. */
export type AuditEntry = AuditFact & {
  /** The number of the line, from 0. */
  readonly n: number;
  /** The hash of the line before; for the first line 64 zeros. */
  readonly previous: string;
  /** SHA-256 (hex) of the line without this field, as canonical JSON. */
  readonly hash: string;
};

/** What `verifyAudit` has found. `head`: the hash of the last line, to be kept elsewhere. */
export type AuditCheck =
  | { readonly ok: true; readonly entries: number; readonly head: string }
  | { readonly ok: false; readonly line: number; readonly problem: string };

const FIRST = '0'.repeat(64);

/**
 * Returns the acts of a run in the order in which it learned of them: a pure function of its histories.
 * `segments`: the events of each segment, oldest first.
 */
function auditFacts({
  id: run,
  segments,
}: {
  readonly id: string;
  readonly segments: readonly (readonly HistoryEvent[])[];
}): readonly AuditFact[] {
  const read = segments.map((events) => readActs(events));
  const [first] = read;
  const last = read.at(-1);
  const began = segments[0]?.find(({ type }) => type === 'started');
  if (first === undefined || last === undefined || began === undefined) return [];
  const place = (at: number): Pick<AuditFact, 'run' | 'at'> => ({
    run,
    at: new Date(at).toISOString(),
  });
  const { input, state } = first.view;
  const started: AuditFact = {
    ...place(began.at),
    type: 'started',
    agent: input?.agent ?? '',
    definition: state?.config.definition.hash || null,
    ...actorOf(input ?? {}),
  };
  // A new segment carries messages of the one before.
  const sent = new Set<number>();
  const told = read.flatMap(({ acts, view, lastAt }, index): readonly TimedAct[] => {
    const next = segments[index + 1];
    if (next === undefined || view.ended !== null) return acts;
    // The archive got the segment before its end, and the server no longer has it.
    return [...acts, { at: lastAt, act: { type: 'lost', segment: previousRunId(next) } }];
  });
  const acts = told.filter(({ act }) => {
    if (act.type !== 'sent') return true;
    const isNew = !sent.has(act.message);
    sent.add(act.message);
    return isNew;
  });
  const { ended, outcome } = last.view;
  return [
    started,
    ...acts.map(({ at, act, ...who }): AuditFact => ({ ...place(at), ...actorOf(who), ...act })),
    ...(ended === null
      ? []
      : [
          {
            ...place(ended.at),
            type: 'ended',
            how: ended.how,
            reason: outcome?.reason ?? null,
          } as const,
        ]),
  ];
}

interface TimedAct {
  readonly at: number;
  readonly by?: string | undefined;
  readonly door?: string | undefined;
  readonly act: AuditAct;
}

/** Returns the acts of a segment in the order in which the run learned of them. */
function readActs(events: readonly HistoryEvent[]): {
  readonly acts: readonly TimedAct[];
  readonly view: Projection;
  readonly lastAt: number;
} {
  const projector = createProjector();
  const acts: TimedAct[] = [];
  const scheduled = new Map<number, unknown>();
  let before: Pick<Projection, 'decisions' | 'messages'> = { decisions: [], messages: [] };
  const note = (view: Projection): void => {
    const fresh = view.messages.slice(before.messages.length).flatMap(sentBy);
    const decided = view.decisions.slice(before.decisions.length).map(decidedBy);
    acts.push(...decided, ...fresh);
    before = view;
  };
  for (const event of events) {
    projector.push(event);
    note(projector.processed());
    if (event.type === 'scheduled' && event.activity === 'runTool') {
      scheduled.set(event.id, event.input);
    }
    acts.push(...actsOf(event, scheduled));
  }
  const view = projector.view();
  note(view);
  return { acts, view, lastAt: events.at(-1)?.at ?? 0 };
}

function sentBy(message: Message): readonly TimedAct[] {
  if (!isFromPerson(message)) return [];
  const { n, turn, by, door, at, text, blob } = message;
  const digest = blob?.sha256 ?? sha256Hex(text);
  return [{ at, by, door, act: { type: 'sent', digest, message: n, turn } }];
}

function decidedBy({ decision, limits }: DecisionView): TimedAct {
  const { what, at, by, door, request, as, call, refused } = decision;
  const act: AuditAct = {
    type: 'decided',
    what,
    ...(request !== undefined && { request }),
    ...(as !== undefined && { as }),
    ...(call !== undefined && { call }),
    ...(refused !== undefined && { refused }),
    ...(what === 'setLimits' && { limits }),
  };
  return { at, by, door, act };
}

function isFromPerson(message: Message): message is Message & { readonly role: 'user' } {
  if (message.role !== 'user') return false;
  const { origin, compacts, side, document } = message;
  return origin === undefined && compacts === undefined && !side && document === undefined;
}

function actsOf(event: HistoryEvent, scheduled: ReadonlyMap<number, unknown>): readonly TimedAct[] {
  const { at } = event;
  switch (event.type) {
    case 'completed': {
      const ok = isObject(event.result) && event.result['ok'];
      // The server has asked a person instead.
      if (ok === 'input_required') return [];
      return executed(at, scheduled.get(event.scheduled), typeof ok === 'boolean' ? ok : null);
    }
    case 'failed':
    case 'cancelled':
      return executed(at, scheduled.get(event.scheduled), null);
    case 'child-started':
      return [{ at, act: { type: 'called', call: event.call, child: event.child } }];
    case 'cancel-requested':
      return [{ at, act: { type: 'cancel-requested' } }];
    default:
      return [];
  }
}

/** Returns the act of a tool with a side effect; empty for any other activity. */
function executed(at: number, input: unknown, ok: boolean | null): readonly TimedAct[] {
  if (!isObject(input) || !isCall(input['call'])) return [];
  const { id, name, digest } = input['call'];
  const effect = typeof input['effect'] === 'string' ? input['effect'] : '';
  if (effect === 'read') return [];
  const act = { type: 'executed', call: id, tool: name, effect, arguments: digest, ok } as const;
  return [{ at, act }];
}

function isCall(value: unknown): value is ToolCall {
  return callShape(value, '') === null;
}

/** Returns the lines of a log: each has the hash of the one before. */
function chainAudit(facts: readonly AuditFact[]): readonly AuditEntry[] {
  let previous = FIRST;
  return facts.map((fact, n) => {
    const line = { ...fact, n, previous };
    previous = hashOf(line);
    return { ...line, hash: previous };
  });
}

function hashOf(line: object): string {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written or parsed as JSON
  return sha256Hex(canonicalJson(line as Json));
}

/**
 * Checks a log offline: that no line was changed, added, removed, or moved. Only `head`, the hash that
 * `perdure audit` printed when it wrote the log, shows that lines are missing at the end.
 *
 * @example
 * ```ts
 * import { readFileSync } from 'node:fs';
 * import { verifyAudit } from 'perdure/client';
 *
 * const check = verifyAudit(readFileSync('audit.jsonl', 'utf8'));
 * if (!check.ok) console.error(`line ${check.line}: ${check.problem}`);
 * ```
 */
export function verifyAudit(text: string, { head }: { readonly head?: string } = {}): AuditCheck {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  let previous = FIRST;
  for (const [index, line] of lines.entries()) {
    const broken = (problem: string): AuditCheck => ({ ok: false, line: index + 1, problem });
    const entry = parseJson(line);
    if (!isObject(entry)) return broken('expected an entry as JSON');
    const { hash, ...rest } = entry;
    if (rest['n'] !== index) return broken(`expected entry ${index}, got ${String(rest['n'])}`);
    if (rest['previous'] !== previous) return broken('the entry before it is another one');
    if (hashOf(rest) !== hash) return broken('the entry was changed: its hash does not fit');
    previous = hash;
  }
  if (head !== undefined && head !== previous) {
    const problem = `expected the hash ${head} at the end, got ${previous}: entries are missing, or the log is another one`;
    return { ok: false, line: lines.length, problem };
  }
  return { ok: true, entries: lines.length, head: previous };
}

/** Where the histories of runs are. */
interface AuditSources {
  readonly client: Client;
  readonly archive: Archive;
}

/**
 * Reads the log of runs, and of the agents that they have called, from the server or the archive. Of an
 * erased run, the erasure log has who erased it, and when. Rejects with a `NoRunError` for an unknown run.
 */
export async function readAudit(
  { client, archive }: AuditSources,
  ids: readonly string[],
): Promise<readonly AuditEntry[]> {
  const facts: AuditFact[] = [];
  const log = archive.erasure;
  const { records } = log ? await readRecords(log, client.options.namespace) : { records: [] };
  const seen = new Set<string>();
  const waiting = [...ids];
  for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
    if (seen.has(id)) continue;
    seen.add(id);
    // A later run may have the id again.
    const erased = erasuresOf(id, records);
    facts.push(...erased);
    const isGiven = ids.includes(id);
    const reading = await readRun(client, id, { archive }).catch((error: unknown) => {
      const isErased = erased.length > 0 && NoRunError.isInstance(error);
      if (isGiven && !isErased) throw error;
      return null;
    });
    if (reading === null) continue;
    const { segments, lost } = await readSegments({ client, archive }, reading);
    const own = auditFacts({ id, segments });
    const at = own[0]?.at ?? new Date(0).toISOString();
    if (lost !== null) facts.push({ run: id, at, type: 'lost', segment: lost });
    facts.push(...own);
    const { description, view, runId } = reading;
    const last = facts.at(-1)?.at ?? at;
    if (description === null && view.ended === null)
      facts.push({ run: id, at: last, type: 'lost', segment: runId });
    waiting.push(...own.flatMap((fact) => (fact.type === 'called' ? fact.child : [])));
  }
  return chainAudit(facts);
}

/** Returns the erasures of earlier runs with this id. */
function erasuresOf(run: string, records: readonly ErasureRecord[]): readonly AuditFact[] {
  return records
    .filter(({ runs }) => runs.some(({ id }) => id === run))
    .map(({ erasure, by, startedAt, endedAt, left }) => {
      const complete = endedAt !== null && left === 0;
      return { run, at: endedAt ?? startedAt, by, type: 'erased', erasure, complete };
    });
}
