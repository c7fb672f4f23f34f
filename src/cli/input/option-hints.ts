import type { Command as Entry } from 'commander';
import { distance } from 'fastest-levenshtein';
import { shellWord, show } from '../../core/text/text.js';
import type { GlobalOptions } from '../context.js';
import { nextCommand } from '../reports/next-command.js';

/**
 * What people call an option, by its words: the options that it may mean, of which a command has one. A
 * text after a blank is a value.
 */
export const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  'reason note comment why because explanation': ['--note'],
  'message text msg m': ['--note'],
  'name run-id workflow-id': ['--id'],
  'user who author actor': ['--by'],
  'yes y force confirm': ['--yes'],
  'steps max-steps max-turns': ['--limit steps=N', '--add steps=N'],
  'timeout max-time time-limit': ['--limit wall=10m', '--add wall=10m'],
  'tokens max-tokens': ['--limit tokens=N', '--add tokens=N'],
  'cost max-cost budget': ['--limit cost-usd=N', '--add cost-usd=N'],
  'background async no-follow d': ['--detach'],
  'args params param': ['--arg NAME=VALUE', '--arguments'],
  'arguments input': ['--arguments', '--arg NAME=VALUE', '--input'],
  'answer value': ['--result'],
  'file image attachment': ['--attach'],
  'temperature model-setting': ['--setting temperature=N'],
  'label labels tags': ['--tag'],
  'interval period': ['--every'],
  'tz timezone': ['--time-zone'],
  'queue tasks': ['--task-queue'],
  'host server url': ['--address'],
  ns: ['--namespace'],
  'output o': ['--out'],
  'format output-json': ['--json'],
  'limit count n': ['--max'],
};

/** Operands that people give as options, by the name of the operand. */
export const OPERANDS: Readonly<Record<string, string>> = {
  'message text msg m prompt input': 'message',
  'answer text message msg m reason note': 'text',
  'id run run-id': 'id',
  'agent name': 'agent',
  'request request-id': 'request',
};

/** The words for a text that goes with an act. Only some acts take one. */
const NOTE_WORDS = 'reason note comment why because explanation message'.split(' ');
const SEND = 'send the model a message with the command send';
const NO_REASON = 'it takes no reason: your name (--by) and the time are recorded';
const NOTES: Readonly<Record<string, string>> = {
  approve: `an approval has no note; deny has one. To say more, ${SEND}`,
  edit: `an edit has no note; deny has one. To say more, ${SEND}`,
  cancel: NO_REASON,
  close: NO_REASON,
  limits: NO_REASON,
  revoke: NO_REASON,
  undo: NO_REASON,
  pause: `${NO_REASON}. To say more, ${SEND}`,
  resume: `${NO_REASON}. To say more, ${SEND}`,
};

const UNKNOWN = /^(error: unknown option '--?([^'=]+)(?:=[^']*)?')/;

/** Decisions that need arguments have a command of their own. */
const OWN_COMMANDS: Readonly<Record<string, readonly [purpose: string, command: string]>> = {
  raise: ['raise a limit', 'limits RUN --add NAME=N'],
  edit: ['change the arguments', 'edit RUN REQUEST --arguments JSON'],
};

const DECISION = /^error: option '--as <decision>' argument '([a-z]+)' is invalid/;

/**
 * Returns an error of the command line with the option that an unknown one means, where words mean the same
 * and their letters differ, or with the command that makes a decision. Any other error stays as it is.
 */
export function withOptionHint(message: string, entry: Entry): string {
  const [, decision = ''] = DECISION.exec(message) ?? [];
  const command = Object.hasOwn(OWN_COMMANDS, decision) ? OWN_COMMANDS[decision] : undefined;
  if (command !== undefined) return `${message.trimEnd()}\n(${withOperands(command, entry)})`;
  if (message.startsWith(EXCESS)) return unexpectedText(entry);
  const [, error = '', word = ''] = UNKNOWN.exec(message) ?? [];
  if (error === '') return message;
  const hint = hintFor(word.toLowerCase(), entry);
  return hint === null ? message : `${error}\n(${hint})`;
}

/** What people call a command, by the name of the program or the group that has it. */
export const COMMAND_SYNONYMS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  perdure: {
    'ls ps runs': 'list',
    'start exec': 'run',
    'message tell say ask': 'send',
    'requests pending approvals': 'inbox',
    'accept ok allow yes': 'approve',
    'reject refuse decline no': 'deny',
    'describe get info show state': 'status',
    'follow watch tail': 'attach',
    'log logs history messages': 'transcript',
    'stop kill abort terminate': 'cancel',
    'server http api': 'serve',
    'new create': 'init',
    'check health': 'doctor',
    'stats usage': 'costs',
    'rm remove delete': 'erase',
  },
  schedule: {
    ls: 'list',
    'add new': 'create',
    'describe get info status': 'show',
    'edit change set': 'update',
    'stop disable suspend': 'pause',
    'start enable unpause continue': 'resume',
    'rm remove erase': 'delete',
    'run fire now': 'trigger',
  },
};

const UNKNOWN_COMMAND = /^(error: unknown command '([^']+)')/;

/**
 * Returns an error of the program or of a group with the command that an unknown one means: one of a group,
 * such as `schedule trigger` for `trigger`, or one with another name. A name that is only near stays as it is.
 */
export function withCommandHint(message: string, entry: Entry): string {
  const [, error = '', word = ''] = UNKNOWN_COMMAND.exec(message) ?? [];
  if (error === '') return message;
  const group = entry.commands.find(({ commands }) => commands.some((one) => one.name() === word));
  const meant = Object.entries(COMMAND_SYNONYMS[entry.name()] ?? {}).find(([words]) =>
    words.split(' ').includes(word.toLowerCase()),
  );
  const hint = group === undefined ? meant?.[1] : `${group.name()} ${word}`;
  return hint === undefined ? message : `${error}\n(Did you mean ${hint}?)`;
}

const EXCESS = 'error: too many arguments';
/** The most letters in which a mistyped command differs from the one that is meant. */
const MISTYPED = 2;

/** Returns the error for more operands than a command takes, which may be a mistyped command of its group. */
function unexpectedText(entry: Entry): string {
  const rest = entry.args.slice(entry.registeredArguments.length);
  const [first = ''] = rest;
  const meant = entry.commands.find((one) => distance(one.name(), first) <= MISTYPED)?.name();
  const flag = wordBefore(first, entry);
  const isFlag = entry.options.some(({ long, short }) => flag === long || flag === short);
  const takesNone = flag.startsWith('-') ? `${flag} takes no value` : '';
  // The word before a second id is the first one.
  const isList = wordBefore(flag, entry) === '--some';
  const why = isList ? `give the ids with commas: --some ${flag},${first}` : takesNone;
  const shownWhy = meant === undefined ? why : `Did you mean ${meant}?`;
  const hint = meant === undefined && !isFlag && !isList ? '' : `\n(${shownWhy})`;
  const shown = rest.map((word) => show(word)).join(' ');
  return `error: unexpected ${rest.length === 1 ? 'argument' : 'arguments'} ${shown}${hint}`;
}

/** Returns the word before another one on the command line; empty if there is none. */
function wordBefore(word: string, entry: Entry & { readonly rawArgs?: readonly string[] }): string {
  if (entry.parent !== null) return wordBefore(word, entry.parent);
  const all = entry.rawArgs ?? [];
  return all[all.lastIndexOf(word) - 1] ?? '';
}

/** Puts the run and the request that were given into a command, with the options that select the place. */
function withOperands([purpose, command]: readonly [string, string], entry: Entry): string {
  const words = entry.parent?.args ?? [];
  const [run, request] = words.filter(
    (word, at) => at > 0 && !word.startsWith('-') && words[at - 1]?.startsWith('-') !== true,
  );
  const filled = command
    .replace('RUN', () => (run === undefined ? 'RUN' : shellWord(run)))
    .replace('REQUEST', () => (request === undefined ? 'REQUEST' : shellWord(request)));
  const place = { options: entry.optsWithGlobals<GlobalOptions>(), env: process.env };
  return `${purpose} with: ${nextCommand(place, filled)}`;
}

function hintFor(word: string, entry: Entry): string | null {
  const own = SYNONYM_OF.get(word)?.find((flag) => hasOption(entry, flag.split(' ')[0] ?? ''));
  if (own !== undefined) return `Did you mean ${own}?`;
  const operand = entry.registeredArguments.find((argument) =>
    OPERAND_OF.get(word)?.includes(argument.name()),
  );
  if (operand !== undefined) {
    const name = operand.name();
    return `The ${name} is no option: give it as ${operand.variadic ? `${name.toUpperCase()} after the other operands` : name.toUpperCase()}`;
  }
  return NOTE_WORDS.includes(word) ? (NOTES[entry.name()] ?? null) : null;
}

function hasOption(entry: Entry, flag: string): boolean {
  if (entry.options.some(({ long }) => long === flag)) return true;
  return entry.parent !== null && hasOption(entry.parent, flag);
}

/** Returns the values of a table by each word of their keys. */
function byWord<T>(table: Readonly<Record<string, T>>): ReadonlyMap<string, readonly T[]> {
  const found = new Map<string, T[]>();
  for (const [words, value] of Object.entries(table)) {
    for (const word of words.split(' ')) found.set(word, [...(found.get(word) ?? []), value]);
  }
  return found;
}

const OPERAND_OF = byWord(OPERANDS);
const SYNONYM_OF = new Map(
  [...byWord(SYNONYMS)].map(([word, flags]) => [word, flags.flat()] as const),
);
