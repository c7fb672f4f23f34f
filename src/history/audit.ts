import type { Client } from '@temporalio/client';
import { NoRunError } from '../core/errors.js';
import { type Json, canonicalJson, isObject, parseJson, sha256Hex } from '../core/text/json.js';
import { escapeJson } from '../core/text/text.js';
import type { Archive } from '../storage/blob-store.js';
import { type ErasureRecord, erasureTime, readRecords } from '../storage/erasure-log.js';
import { type AuditFact, auditFacts } from './audit-acts.js';
import { type BegunRun, begunRuns } from './called-runs.js';
import { type RunReading, readRunsWithId } from './read-run.js';
import { readSegments } from './segments.js';

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
 * Checks a log offline: that no line, as `JSON.stringify` wrote it, was changed, added, removed, or moved. Only `head`, the hash that
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
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  let previous = FIRST;
  for (const [index, line] of lines.entries()) {
    const broken = (problem: string): AuditCheck => ({ ok: false, line: index + 1, problem });
    const entry = parseJson(line);
    if (!isObject(entry)) return broken('expected an entry as JSON');
    // The hash is that of what a parser reads: of a field that stands twice, that is one of both.
    const written = JSON.stringify(entry);
    // The command prints hidden characters as JSON escapes.
    if (line !== written && line !== escapeJson(written))
      return broken('the entry was changed: it is not as written');
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
 * Reads the log of runs, and of the agents that they have called, from the server or the archive, also of
 * earlier runs with the same ids. Of an erased run, the erasure log has who erased it, and when. Rejects
 * with a `NoRunError` for an unknown run, and with the error of the server or the archive for one that
 * cannot be read.
 */
export async function readAudit(
  sources: AuditSources,
  ids: readonly string[],
): Promise<readonly AuditEntry[]> {
  const { client, archive } = sources;
  const log = archive.erasure;
  const { records, damaged } = log
    ? await readRecords(log, client.options.namespace)
    : { records: [], damaged: [] };
  const facts: AuditFact[] = damaged.map(damagedFact);
  const begun = new Map<string, BegunRun>();
  const seen = new Set<string>();
  const waiting = [...ids];
  for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
    if (seen.has(id)) continue;
    seen.add(id);
    // A later run may have the id again.
    const erased = erasuresOf(id, records);
    facts.push(...erased);
    const runs = await readRunsWithId(client, id, archive).catch((error: unknown) => {
      const isAllowed = erased.length > 0 || !ids.includes(id);
      if (!isAllowed || !NoRunError.isInstance(error)) throw error;
      return [];
    });
    const gone = erased.length > 0 || runs.length > 0 ? undefined : begun.get(id);
    if (gone !== undefined) facts.push(lostFact(id, gone.at, gone.runId));
    for (const run of runs) {
      const read = await readFacts(sources, run);
      facts.push(...read.facts);
      for (const [child, one] of read.begun) begun.set(child, one);
      waiting.push(...read.facts.flatMap((fact) => (fact.type === 'called' ? fact.child : [])));
    }
  }
  return chainAudit(facts);
}

/** Reads the log of one run, and which of the runs that it has called have begun. */
async function readFacts(
  { client, archive }: AuditSources,
  run: RunReading,
): Promise<{
  readonly facts: readonly AuditFact[];
  readonly begun: ReadonlyMap<string, BegunRun>;
}> {
  const { id, description, view, runId } = run;
  const { segments, lost } = await readSegments({ client, archive }, run);
  const own = auditFacts({ id, segments });
  const first = segments[0]?.[0]?.at ?? 0;
  const last = segments.at(-1)?.at(-1)?.at ?? 0;
  const facts = [
    ...(lost === null ? [] : [lostFact(id, first, lost)]),
    ...own,
    // The archive got it before its end.
    ...(description === null && view.ended === null ? [lostFact(id, last, runId)] : []),
  ];
  return { facts, begun: begunRuns(segments) };
}

/** `at`: Unix time in ms. */
function lostFact(run: string, at: number, segment: string): AuditFact {
  return { run, at: new Date(at).toISOString(), type: 'lost', segment };
}

function damagedFact(erasure: string): AuditFact {
  const at = new Date(erasureTime(erasure)).toISOString();
  return { run: '', at, type: 'damaged', erasure };
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
