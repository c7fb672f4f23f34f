import {
  checkBy,
  checkDoor,
  type AttachedArtifact,
  type TurnContext,
  checkArtifacts,
  checkAttachments,
  turnContextProblem,
} from './turn-context.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import { checkFork, type ForkInput, forksAtNode } from './fork-input.js';
import type { LimitSet, Limits } from '../definition/definition.js';
import { type Rule, rulesProblem } from '../definition/rules.js';
import type { ClientTool } from '../definition/tool-definition.js';
import {
  type Json,
  type JsonObject,
  checkArgs,
  checkContext,
  checkInput,
  isObject,
  tooLong,
} from '../text/json.js';
import { fields, jsonObject, list, optional, text as textShape } from '../text/shape.js';
import { show } from '../text/text.js';
import { type CallOrigin, checkCalled } from '../transcript/call-result.js';
import { blobShape } from '../transcript/message-shapes.js';
import {
  type Attachment,
  type BlobRef,
  type SuppliedMessage,
  suppliedProblem,
} from '../transcript/messages.js';
import { checkRecordedLimits } from './limits.js';
import { startPromptProblem, unknownField } from './named-prompt.js';
import { turnSettingsProblem } from './turn-settings.js';

/** One check for each field of an input. */
export type FieldChecks<T> = {
  readonly [K in keyof T]-?: (value: unknown, all: Record<string, unknown>) => string | null;
};

/**
 * Returns what is wrong with an input, or null: a field that has no check, or the first one that its
 * check refuses. `name`: what people call the input.
 */
export function checkFields<T>(
  name: string,
  value: Record<string, unknown>,
  checks: FieldChecks<T>,
): string | null {
  const names = Object.keys(checks);
  const unknown = Object.keys(value).find((key) => !names.includes(key));
  if (unknown !== undefined) return unknownField(name, unknown, names);
  for (const [field, check] of Object.entries<FieldChecks<T>[keyof T]>(checks)) {
    const found = check(value[field], value);
    if (found !== null) return found;
  }
  return null;
}

/** Maximum number of tags. The memo holds them, and the server limits its size. */
const MAX_TAGS = 50;
const MAX_TAG_CHARACTERS = 200;

/** Returns what is wrong with the tags of an input, or null. */
function checkTags(value: unknown): string | null {
  if (value === undefined) return null;
  if (!Array.isArray(value) || !value.every(isTag)) {
    return `tags: expected a list of strings of 1–${MAX_TAG_CHARACTERS} characters, got ${show(value)}; give for example ["billing"]`;
  }
  if (value.length <= MAX_TAGS) return null;
  return `tags: expected at most ${MAX_TAGS}, got ${value.length}; give fewer`;
}

function isTag(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.length <= MAX_TAG_CHARACTERS;
}

export { show } from '../text/text.js';

/** The one argument of workflow type `agent`. */
export interface RunInput {
  readonly agent: string;
  /**
   * The text of the first message. Required, except with `messages` or `prompt`, for an open run that
   * gets one later, and for a graph with `input`.
   */
  readonly message?: string;
  /** Images and files that belong to the message. Default: none. */
  readonly attachments?: readonly Attachment[];
  /** Values that become artifacts of the run with its first message. Default: none. */
  readonly artifacts?: readonly AttachedArtifact[];
  /** The run waits for more messages after a turn instead of ending. Default: false. */
  readonly open?: boolean;
  /** Lowers the agent's limits, or replaces its default limits. */
  readonly limits?: Limits;
  /** JSON that every user function receives; the model never sees it. Default: null. */
  readonly context?: Json;
  /** The context by reference. Only a calling agent sets it. Default: none. */
  readonly contextBlob?: BlobRef;
  /** The context of the caller's turn. Only a calling agent sets it. Default: none. */
  readonly turnContext?: TurnContext;
  /** Labels for people and filters: at most 50, each of 1 to 200 characters. Default: none. */
  readonly tags?: readonly string[];
  /** Stores every message in the archive. Default: the value of `open`. */
  readonly archive?: boolean;
  /** Number of agents above this run, for the limit `depth`. Only a calling agent sets it. Default: 0. */
  readonly depth?: number;
  /** For a graph: a patch of the state with which the first turn begins. Default: none. */
  readonly input?: JsonObject;
  /** Arguments of an agent whose instructions are a template. Default: none. */
  readonly args?: JsonObject;
  /** Several messages, as a conversation, in place of `message`. The first and the last have role `user`. Default: none. */
  readonly messages?: readonly SuppliedMessage[];
  /** In place of `message`: a prompt of the agent. Default: none. */
  readonly prompt?: string;
  /** Arguments of the prompt. Default: none. */
  readonly promptArgs?: JsonObject;
  /** Settings of the model for the first turn, in addition to those of the agent. Default: none. */
  readonly settings?: JsonObject;
  /** The calling agent's remaining budget. Each value lowers the agent's limit if that is higher. Default: none. */
  readonly budget?: LimitSet;
  /** The run begins with the messages of another run. Default: none. */
  readonly fork?: ForkInput;
  /** Set by a workflow that calls the agent; the run's idempotency keys derive from it. Default: none. */
  readonly called?: CallOrigin;
  /** Who started the run: a claim of 1 to 200 characters, recorded and not verified. Default: none. */
  readonly by?: string;
  /** The interface that has verified `by`, such as `http`; absent: `by` is a claim. Only a server sets it. */
  readonly door?: string;
  /**
   * Everyone for whom an agent calls this one: who asked for the calling turn and for the turns
   * above it. Only a calling agent sets it. Default: none.
   */
  readonly requesters?: readonly string[];
  /**
   * Rules about the run's tool calls, in addition to those of its agent and its workers. They can
   * only be stricter. Default: none.
   */
  readonly rules?: readonly Rule[];
  /** Who shares the workers with others: 1 to 64 bytes of text. Called agents inherit it. Default: none. */
  readonly tenant?: string;
  /** `deny`: no person is available, so every approval is denied and no question is asked. Default: people are asked. */
  readonly unattended?: 'deny';
  /**
   * Number of failed attempts, 1 to 10, after which a model call fails its turn. The turn also
   * fails where the run would otherwise be blocked. Default: the run waits until the model answers.
   */
  readonly modelAttempts?: number;
  /** Tools that the caller defines and executes, beside those of the agent. Default: none. */
  readonly clientTools?: readonly ClientTool[];
}

/** A refused input. The problem names the field, the value, and the fix. */
interface InputProblem {
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

/** Whoever starts a run, and the worker that loads its agent, check the rest: `clientToolsProblem`. */
const clientTools = optional(
  list(
    fields<ClientTool>({
      name: textShape,
      description: optional(textShape),
      parameters: optional(jsonObject),
    }),
  ),
);

/**
 * The check of each field of a run's input; a field without one does not compile. A check that
 * depends on other fields gets all of them.
 */
const CHECKS: FieldChecks<RunInput> = {
  agent: checkAgent,
  message: checkMessage,
  attachments: (value, all) => checkAttachments(value) ?? checkAlone('attachments', all),
  artifacts: (value, all) => checkArtifacts(value) ?? checkAlone('artifacts', all),
  open: (value) => checkFlag('open', value),
  limits: (value) => checkRecordedLimits(value, 'limits'),
  context: checkContext,
  contextBlob: checkBlob,
  turnContext: turnContextProblem,
  tags: checkTags,
  archive: (value) => checkFlag('archive', value),
  depth: checkDepth,
  budget: (value) => checkRecordedLimits(value, 'budget'),
  args: (value) => checkArgs(value),
  messages: (_, all) => suppliedProblem(all),
  prompt: (_, all) => startPromptProblem(all),
  promptArgs: (_, all) => startPromptProblem(all),
  settings: turnSettingsProblem,
  input: checkInput,
  fork: checkFork,
  called: checkCalled,
  by: checkBy,
  door: checkDoor,
  requesters: checkRequesters,
  rules: (value) => rulesProblem(value),
  tenant: checkTenant,
  unattended: checkUnattended,
  modelAttempts: checkModelAttempts,
  clientTools: (value) => clientTools(value, 'clientTools'),
};

/** The fields of a run's input. */
export const INPUT_FIELDS: readonly string[] = Object.keys(CHECKS);

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
  const checks = continued ? { ...CHECKS, message: checkReceived } : CHECKS;
  const found = checkFields('input', value, checks);
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

function checkMessage(value: unknown, all: Record<string, unknown>): string | null {
  const instead = [all['input'], all['prompt'], all['messages']].some((one) => one !== undefined);
  if (value !== undefined || instead || all['open'] === true || forksAtNode(all['fork'])) {
    return checkReceived(value);
  }
  return 'message: expected a string, got none; give one, or give "open": true and send it later';
}

/** Checks the message of a later segment, which has received it before. */
function checkReceived(value: unknown): string | null {
  return value === undefined ? null : checkText(value);
}

/** Returns what is wrong with attached values that belong to no message, or null. */
function checkAlone(
  field: 'attachments' | 'artifacts',
  all: Record<string, unknown>,
): string | null {
  const { message, prompt, messages, input } = all;
  const homes = [message, prompt, messages, ...(field === 'artifacts' ? [input] : [])];
  if (all[field] === undefined || homes.some((one) => one !== undefined)) return null;
  return `${field}: expected a message that they belong to; give "message" too`;
}

/** Returns what is wrong with a message, or null. */
export function checkText(value: unknown): string | null {
  if (value === undefined) return 'message: expected a string, got none; give one';
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

/** The server refuses a longer key. */
const MAX_TENANT_BYTES = 64;

/** Returns what is wrong with a tenant; null if nothing is. */
export function checkTenant(value: unknown): string | null {
  if (value === undefined) return null;
  const isText = typeof value === 'string' && value.trim() !== '';
  if (isText && utf8ToBytes(value).length <= MAX_TENANT_BYTES) return null;
  return `tenant: expected a text of 1 to ${MAX_TENANT_BYTES} bytes, got ${show(value)}; use a short id`;
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
