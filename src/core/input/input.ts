import { checkCalled, type CallOrigin } from '../calls/idempotency.js';
import type { LimitName, LimitSet, Limits } from '../definition/definition.js';
import type { Attachment, BlobRef } from '../transcript/messages.js';
import { isObject, type Json, type JsonObject } from '../json.js';
import { LIMIT_NAMES } from '../limits.js';
import { checkAttachments } from './attachments.js';
import { blobShape } from '../guards/message.js';
import { checkTags } from './tags.js';
import { jsonText, show } from '../text/format-value.js';

export { show } from '../text/format-value.js';

/** The one argument of workflow type `agent`. */
export interface RunInput {
  readonly agent: string;
  readonly message?: string;
  /** Sent along with the message. */
  readonly attachments?: readonly Attachment[];
  /** Wait for more messages after a turn instead of ending. */
  readonly open?: boolean;
  /** May lower the agent's limits or replace defaults. */
  readonly limits?: Limits;
  /** JSON that every user function receives; the model never sees it. */
  readonly context?: Json;
  /** The same by reference, from an agent that calls another. */
  readonly contextBlob?: BlobRef;
  /** For people and filters. */
  readonly tags?: readonly string[];
  /** Keep every message in the archive; default: `open`. */
  readonly archive?: boolean;
  /** Agents above this run, for the limit of depth; set by the agent that calls another. */
  readonly depth?: number;
  /** For an agent whose instructions are a template: the values of its arguments. */
  readonly args?: JsonObject;
  /** What a caller has left: each of these lowers the agent's own limit where that is higher. */
  readonly budget?: LimitSet;
  /** Begin with the messages of another run. */
  readonly fork?: ForkInput;
  /** Set by a workflow that calls the agent; the run's idempotency keys derive from it. */
  readonly called?: CallOrigin;
}

export interface ForkInput {
  readonly run: string;
  /**
   * Number of its first message that is not taken; default: all are. Where that would part a call from
   * its results, the step is not taken either.
   */
  readonly at?: number;
}

/** Refused input: names the field, the value, and the cure. */
export interface InputProblem {
  readonly problem: string;
}

/** UTF-16 code units of a message or a context; more belongs into a file that a tool reads. */
export const MAX_TEXT_CHARACTERS = 256 * 1024;

const MAX_NAME_CHARACTERS = 1_000;

const EXAMPLE = 'give JSON like {"agent": "name", "message": "text"}';
const UNREADABLE = Symbol.for('perdure.unreadable');

/** What stands for a payload that could not be decoded. */
export function unreadable(message: string): object {
  return { [UNREADABLE]: message };
}

const FIELDS = [
  'agent',
  'message',
  'attachments',
  'open',
  'limits',
  'context',
  'contextBlob',
  'tags',
  'archive',
  'depth',
  'budget',
  'args',
  'fork',
  'called',
];

/**
 * Guards the door: whatever comes in, a run input or a problem comes out, never a throw.
 * `continued`: of a later segment, whose message has been taken.
 */
export function parseRunInput(
  value: unknown,
  { continued = false }: { continued?: boolean } = {},
): RunInput | InputProblem {
  if (isObject(value) && UNREADABLE in value) {
    return problem(`input: cannot be read (${String(value[UNREADABLE])}); ${EXAMPLE}`);
  }
  if (ArrayBuffer.isView(value)) return problem(`input: bytes are no JSON; ${EXAMPLE}`);
  if (!isObject(value)) {
    return problem(`input: ${show(value)} is no object; give {"agent": "name", "message": "text"}`);
  }
  const unknown = Object.keys(value).find((key) => !FIELDS.includes(key));
  if (unknown !== undefined) {
    return problem(`input.${unknown}: no such field; there are ${FIELDS.join(', ')}`);
  }
  const found =
    checkAgent(value['agent']) ??
    checkFlag('open', value['open']) ??
    checkMessage(value['message'], continued || value['open'] === true) ??
    checkAttached(value) ??
    checkLimits(value['limits'], 'limits') ??
    checkContext(value['context']) ??
    checkBlob(value['contextBlob']) ??
    checkTags(value['tags']) ??
    checkFlag('archive', value['archive']) ??
    checkDepth(value['depth']) ??
    checkLimits(value['budget'], 'budget') ??
    checkArgs(value['args']) ??
    checkFork(value['fork']) ??
    checkCalled(value['called']);
  return found === null ? trusted(value) : problem(found);
}

/** Checked field by field before; TypeScript cannot follow a guard per field. */
function trusted(value: Record<string, unknown>): RunInput {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return value as unknown as RunInput;
}

export function isProblem(value: object): value is InputProblem {
  return 'problem' in value;
}

function checkAgent(value: unknown): string | null {
  const fits = typeof value === 'string' && value !== '' && value.length <= MAX_NAME_CHARACTERS;
  return fits ? null : `agent: expected the name of a registered agent, got ${show(value)}`;
}

function checkMessage(value: unknown, open: boolean): string | null {
  if (value === undefined) {
    return open ? null : 'message: missing; give a text, or "open": true and send it later';
  }
  return checkText(value);
}

function checkAttached({ message, attachments }: Record<string, unknown>): string | null {
  if (attachments === undefined || message !== undefined) return checkAttachments(attachments);
  return 'attachments: they belong to a message, and there is none; give "message" too';
}

/** @returns what is wrong with a message, or null */
export function checkText(value: unknown): string | null {
  if (typeof value !== 'string') return `message: ${show(value)} is no text; give a string`;
  if (value.trim() === '') return 'message: is empty; say what the agent shall do';
  return tooLong('message', value.length);
}

/** @returns what is wrong with a flag, or null */
export function checkFlag(field: string, value: unknown): string | null {
  if (value === undefined || typeof value === 'boolean') return null;
  return `${field}: ${show(value)} is neither true nor false`;
}

function checkDepth(value: unknown): string | null {
  if (value === undefined || (Number.isSafeInteger(value) && Number(value) >= 0)) return null;
  return `depth: ${show(value)} is no whole number from 0 on; leave it out`;
}

/** @returns what is wrong with a set of limits, or null */
export function checkLimits(value: unknown, path: string): string | null {
  if (value === undefined) return null;
  if (!isObject(value)) return `${path}: ${show(value)} is no object; give e.g. {"steps": 10}`;
  for (const [name, limit] of Object.entries(value)) {
    const at = `${path}.${name}`;
    if (name === 'run' && path === 'limits') {
      const inner = checkLimits(limit, at);
      if (inner !== null) return inner;
    } else if (!isLimitName(name)) {
      return `${at}: no such limit; there are ${LIMIT_NAMES.join(', ')} and, for the whole run, limits.run`;
    } else if (!isLimit(name, limit)) {
      return `${at}: ${show(limit)} is no limit; give a positive ${name === 'costUsd' ? 'number' : 'whole number'}, or null for none`;
    }
  }
  return null;
}

function isLimitName(name: string): name is LimitName {
  return (LIMIT_NAMES as readonly string[]).includes(name);
}

function isLimit(name: keyof LimitSet, value: unknown): boolean {
  if (value === null) return true;
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) return false;
  return name === 'costUsd' || Number.isInteger(value);
}

function checkContext(value: unknown): string | null {
  if (value === undefined) return null;
  const text = jsonText(value);
  if (text === undefined) return 'context: is no JSON; give what JSON.stringify can write';
  return tooLong('context', text.length);
}

function checkBlob(value: unknown): string | null {
  if (value === undefined) return null;
  if (blobShape(value, 'contextBlob') === null) return null;
  return `contextBlob: expected a reference to a blob, got ${show(value)}; give the context itself`;
}

function checkArgs(value: unknown): string | null {
  if (value === undefined) return null;
  if (!isObject(value)) return `args: ${show(value)} is no object; give e.g. {"city": "Rome"}`;
  const text = jsonText(value);
  return text === undefined ? 'args: is no JSON' : tooLong('args', text.length);
}

/** @returns what is wrong with a fork, or null */
function checkFork(value: unknown): string | null {
  if (value === undefined) return null;
  if (!isObject(value)) return `fork: ${show(value)} is no object; give e.g. {"run": "id"}`;
  const unknown = Object.keys(value).find((key) => key !== 'run' && key !== 'at');
  if (unknown !== undefined) return `fork.${unknown}: no such field; there are run, at`;
  const { run, at } = value;
  if (typeof run !== 'string' || run === '') {
    return `fork.run: ${show(run)} is no id of a run; give that of the run to fork`;
  }
  if (at === undefined || (Number.isInteger(at) && Number(at) >= 1)) return null;
  return `fork.at: ${show(at)} is no number of a message from 1 on; give that of the first one not to take, or leave it out`;
}

function tooLong(field: string, characters: number): string | null {
  if (characters <= MAX_TEXT_CHARACTERS) return null;
  return (
    `${field}: ${characters} characters are more than ${MAX_TEXT_CHARACTERS}; ` +
    'put the text into a file and name the file'
  );
}

function problem(text: string): InputProblem {
  return { problem: text };
}
