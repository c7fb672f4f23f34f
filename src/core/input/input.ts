import { checkCalled, type CallOrigin } from '../calls/idempotency.js';
import type { LimitSet, Limits } from '../definition/definition.js';
import type { Attachment, BlobRef } from '../transcript/messages.js';
import { isObject, type Json, type JsonObject } from '../json.js';
import { checkAttachments } from './attachments.js';
import { blobShape } from '../guards/message.js';
import { rulesProblem, type Rule } from '../requests/rules.js';
import { checkLimits } from './check-limits.js';
import { checkArgs, checkContext, checkInput, tooLong } from './check-object.js';
import { suppliedProblem, type SuppliedMessage } from './supplied-messages.js';
import { turnContextProblem, type TurnContext } from './turn-context.js';
import { checkArtifacts, type AttachedArtifact } from './attached-artifacts.js';
import { checkFork, type ForkInput } from './check-fork.js';
import { checkBy, checkTags } from './check-tags.js';
import { turnSettingsProblem } from './turn-settings.js';
import { startPromptProblem } from '../named-prompts/named-prompt.js';
import { show } from '../text/format-value.js';

export { show } from '../text/format-value.js';

/** The one argument of workflow type `agent`. */
export interface RunInput {
  readonly agent: string;
  readonly message?: string;
  /** Images and files that belong to the message. */
  readonly attachments?: readonly Attachment[];
  /** Values that become artifacts of the run with its first message. */
  readonly artifacts?: readonly AttachedArtifact[];
  /** The run waits for more messages after a turn instead of ending. Default: false. */
  readonly open?: boolean;
  /** Lowers the agent's limits, or replaces its default limits. */
  readonly limits?: Limits;
  /** JSON that every user function receives; the model never sees it. */
  readonly context?: Json;
  /** The context by reference. Only a calling agent sets it. */
  readonly contextBlob?: BlobRef;
  /** The context of the caller's turn. Only a calling agent sets it. */
  readonly turnContext?: TurnContext;
  /** Labels for people and filters: at most 50, each of 1 to 200 characters. */
  readonly tags?: readonly string[];
  /** Stores every message in the archive. Default: the value of `open`. */
  readonly archive?: boolean;
  /** Number of agents above this run, for the limit `depth`. Only a calling agent sets it. */
  readonly depth?: number;
  /** For a graph: a patch of the state with which the first turn begins. */
  readonly input?: JsonObject;
  /** Arguments of an agent whose instructions are a template. */
  readonly args?: JsonObject;
  /**
   * Several messages, as a conversation, in place of `message`. The first and the last have role
   * `user`.
   */
  readonly messages?: readonly SuppliedMessage[];
  /** In place of `message`: a prompt of the agent. */
  readonly prompt?: string;
  /** Arguments of the prompt. */
  readonly promptArgs?: JsonObject;
  /** Settings of the model for the first turn, in addition to those of the agent. */
  readonly settings?: JsonObject;
  /**
   * The calling agent's remaining budget. Each value lowers the agent's limit if that is higher.
   */
  readonly budget?: LimitSet;
  /** The run begins with the messages of another run. */
  readonly fork?: ForkInput;
  /** Set by a workflow that calls the agent; the run's idempotency keys derive from it. */
  readonly called?: CallOrigin;
  /** Who started the run: a claim of 1 to 200 characters, recorded and not verified. */
  readonly by?: string;
  /**
   * Everyone for whom an agent calls this one: who asked for the calling turn and for the turns
   * above it. Only a calling agent sets it.
   */
  readonly requesters?: readonly string[];
  /**
   * Rules about the run's tool calls, in addition to those of its agent and its workers. They can
   * only be stricter.
   */
  readonly rules?: readonly Rule[];
  /** `deny`: no person is available, so every approval is denied and no question is asked. */
  readonly unattended?: 'deny';
  /**
   * Number of failed attempts, 1 to 10, after which a model call fails its turn. The turn also
   * fails where the run would otherwise be blocked. Default: the run waits until the model answers.
   */
  readonly modelAttempts?: number;
}

/** A refused input. The problem names the field, the value, and the fix. */
export interface InputProblem {
  readonly problem: string;
}

/** The number of failed attempts whose reports a model call retains. */
const MAX_MODEL_ATTEMPTS = 10;
const MAX_NAME_CHARACTERS = 1_000;
const EXAMPLE = 'give for example {"agent": "name", "message": "text"}';
const UNREADABLE = Symbol.for('perdure.unreadable');

/** Returns the value that replaces a payload that cannot be decoded. */
export function unreadable(message: string): object {
  return { [UNREADABLE]: message };
}

const FIELDS = [
  'agent',
  'message',
  'attachments',
  'artifacts',
  'open',
  'limits',
  'context',
  'contextBlob',
  'turnContext',
  'tags',
  'archive',
  'depth',
  'budget',
  'args',
  'messages',
  'prompt',
  'promptArgs',
  'settings',
  'input',
  'fork',
  'called',
  'by',
  'requesters',
  'rules',
  'unattended',
  'modelAttempts',
];

/**
 * Validates the input of a run. Returns the input or the problem, and never throws. `continued`:
 * the input is that of a later segment, so its message was already received.
 */
export function parseRunInput(
  value: unknown,
  { continued = false }: { continued?: boolean } = {},
): RunInput | InputProblem {
  if (isObject(value) && UNREADABLE in value) {
    return problem(`input: it cannot be read (${String(value[UNREADABLE])}); ${EXAMPLE}`);
  }
  if (ArrayBuffer.isView(value)) return problem(`input: expected JSON, got bytes; ${EXAMPLE}`);
  if (!isObject(value)) {
    return problem(`input: expected an object, got ${show(value)}; ${EXAMPLE}`);
  }
  const unknown = Object.keys(value).find((key) => !FIELDS.includes(key));
  if (unknown !== undefined) {
    return problem(`input.${unknown}: expected one of ${FIELDS.join(', ')}; remove this field`);
  }
  const found =
    checkAgent(value['agent']) ??
    checkFlag('open', value['open']) ??
    checkMessage(
      value['message'],
      continued ||
        value['open'] === true ||
        [value['input'], value['prompt'], value['messages']].some((one) => one !== undefined),
    ) ??
    checkAttached(value) ??
    checkLimits(value['limits'], 'limits') ??
    checkContext(value['context']) ??
    checkBlob(value['contextBlob']) ??
    turnContextProblem(value['turnContext']) ??
    checkTags(value['tags']) ??
    checkFlag('archive', value['archive']) ??
    checkDepth(value['depth']) ??
    checkLimits(value['budget'], 'budget') ??
    checkArgs(value['args']) ??
    checkInput(value['input']) ??
    startPromptProblem(value) ??
    turnSettingsProblem(value['settings']) ??
    suppliedProblem(value) ??
    checkFork(value['fork']) ??
    checkCalled(value['called']) ??
    checkBy(value['by']) ??
    checkRequesters(value['requesters']) ??
    rulesProblem(value['rules']) ??
    checkUnattended(value['unattended']) ??
    checkModelAttempts(value['modelAttempts']);
  return found === null ? trusted(value) : problem(found);
}

/** Casts an input whose fields have all been checked. */
function trusted(value: Record<string, unknown>): RunInput {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- there is one check per field
  return value as unknown as RunInput;
}

/** Whether a result is a problem. */
export function isProblem(value: object): value is InputProblem {
  return 'problem' in value;
}

function checkAgent(value: unknown): string | null {
  const fits = typeof value === 'string' && value !== '' && value.length <= MAX_NAME_CHARACTERS;
  return fits ? null : `agent: expected the name of a registered agent, got ${show(value)}`;
}

function checkMessage(value: unknown, open: boolean): string | null {
  if (value !== undefined || open) return value === undefined ? null : checkText(value);
  return 'message: expected a string, got none; give one, or give "open": true and send it later';
}

function checkAttached(value: Record<string, unknown>): string | null {
  const { message, prompt, messages, input, attachments, artifacts } = value;
  const found = checkAttachments(attachments) ?? checkArtifacts(artifacts);
  if (found !== null) return found;
  const hasMessage = [message, prompt, messages].some((one) => one !== undefined);
  const alone = [
    attachments !== undefined && !hasMessage && 'attachments',
    artifacts !== undefined && !hasMessage && input === undefined && 'artifacts',
  ].find((one) => one !== false);
  if (alone === undefined) return null;
  return `${alone}: expected a message that they belong to; give "message" too`;
}

/** Returns what is wrong with a message, or null. */
export function checkText(value: unknown): string | null {
  if (typeof value !== 'string') return `message: expected a string, got ${show(value)}`;
  if (value.trim() === '') return 'message: expected text, got an empty string';
  return tooLong('message', value.length);
}

/** Returns what is wrong with a flag, or null. */
export function checkFlag(field: string, value: unknown): string | null {
  if (value === undefined || typeof value === 'boolean') return null;
  return `${field}: expected true or false, got ${show(value)}`;
}

function checkDepth(value: unknown): string | null {
  if (value === undefined || (Number.isSafeInteger(value) && Number(value) >= 0)) return null;
  return `depth: expected a whole number from 0, got ${show(value)}; omit it`;
}

function checkRequesters(value: unknown): string | null {
  if (value === undefined) return null;
  const fits =
    Array.isArray(value) && value.every((name) => name !== undefined && checkBy(name) === null);
  return fits ? null : `requesters: expected a list of names, got ${show(value)}; omit it`;
}

function checkUnattended(value: unknown): string | null {
  if (value === undefined || value === 'deny') return null;
  return `unattended: expected "deny", got ${show(value)}; omit it if people can decide`;
}

function checkModelAttempts(value: unknown): string | null {
  if (value === undefined) return null;
  if (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_MODEL_ATTEMPTS)
    return null;
  return `modelAttempts: expected a whole number from 1 to ${MAX_MODEL_ATTEMPTS}, got ${show(value)}; omit it to wait for the model`;
}

function checkBlob(value: unknown): string | null {
  if (value === undefined) return null;
  if (blobShape(value, 'contextBlob') === null) return null;
  return `contextBlob: expected a blob reference, got ${show(value)}; give the context itself`;
}

function problem(text: string): InputProblem {
  return { problem: text };
}
