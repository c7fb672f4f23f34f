import { LIMIT_NAMES } from '../../core/definition/definition.js';
import { limitWord } from '../../core/requests/limit-words.js';
import type { Limits } from '../../core/definition/definition.js';
import type { Json } from '../../core/text/json.js';
import type { RunSettings } from '../../updates/start.js';
import type { OptionName } from './options.js';
import { deciderName } from './option-parsers.js';

/** The settings of a new run, as every command that starts runs takes them. */
export interface RunSettingOptions {
  readonly tag?: readonly string[];
  readonly limit?: Limits;
  /** Deny every approval, because no person is there to decide. */
  readonly unattended?: boolean;
  readonly archive?: boolean;
  readonly tenant?: string;
  readonly modelAttempts?: number;
  /** Parsed JSON. */
  readonly context?: Json;
  readonly by?: string;
}

/** The options that `runSettings` reads. */
export const RUN_SETTINGS = [
  'tag',
  'limit',
  'unattended',
  'archive',
  'tenant',
  'modelAttempts',
  'context',
  'by',
] as const satisfies readonly OptionName[];

/** Returns the settings that the options set. Throws a `UsageError` for an invalid name. */
export function runSettings(options: RunSettingOptions): RunSettings {
  const { tag: tags, limit: limits, unattended, archive, tenant, modelAttempts, context } = options;
  return {
    by: deciderName(options.by),
    ...(tags !== undefined && { tags }),
    ...(limits !== undefined && { limits }),
    ...(unattended && { unattended: 'deny' as const }),
    ...(archive && { archive }),
    ...(tenant !== undefined && { tenant }),
    ...(modelAttempts !== undefined && { modelAttempts }),
    ...(context !== undefined && { context }),
  };
}

/** The options of the fields of an input, a message, or a schedule that have another name. */
const FLAGS: Readonly<Record<string, string>> = {
  args: 'arg',
  artifacts: 'artifact',
  attachments: 'attach',
  catchUp: 'catch-up',
  limits: 'limit',
  modelAttempts: 'model-attempts',
  promptArgs: 'arg',
  settings: 'setting',
  tags: 'tag',
  timeZone: 'time-zone',
};

/** The fields that have the name of their option. */
const SAME = 'archive by context input open prompt refresh tenant unattended'.split(' ');

/**
 * Replaces the field names at the beginnings of lines by options: `tags[0]` by `--tag`. `others`:
 * more fields that have the name of their option.
 */
export function inFlags(text: string, others: readonly string[] = []): string {
  return text
    .replaceAll('give `input`', 'give `--input`')
    .replaceAll('got null (none)', 'got none')
    .replaceAll(
      /^(- )?(\w+)((?:\.\w+|\[\d+\])*)(?=[:[])/gm,
      (whole, dash: string | undefined, field: string, rest: string) => {
        const isSame = SAME.includes(field) || others.includes(field);
        const word = FLAGS[field] ?? (isSame ? field : null);
        if (word === null) return whole;
        const part = word === 'limit' ? limitFlag(rest) : word === 'tag' ? '' : rest;
        return `${dash ?? ''}--${word}${part}`;
      },
    )
    .replace(
      /^--arg\.(\w+): missing; (.*)$/m,
      '--arg: expected a value for $1, got none; $2: give --arg $1=TEXT',
    );
}

/** Returns the limit that a path such as `.run.costUsd` names, as `--limit` takes it: ` run.cost-usd`. */
function limitFlag(path: string): string {
  const words = path
    .split('.')
    .slice(1)
    .map((part) => {
      const name = LIMIT_NAMES.find((one) => one === part);
      return name === undefined ? part : limitWord(name);
    });
  return words.length === 0 ? '' : ` ${words.join('.')}`;
}
