import { LIMITS } from '../definition/definition.js';
import { exampleOf } from '../plan/chosen-actions.js';
import { harmlessActions, shownActions } from '../plan/confirm-plan.js';
import { isOpenStatus, type RunStatus } from '../state/status.js';
import { nodeOfCall, nodeOfCallId } from '../state/turn-definition.js';
import { shellLine } from '../text/text.js';
import type { DecisionKind, Request } from '../transcript/request.js';
import { limitWords } from './limit-words.js';
import { exampleAnswer } from './server-ask.js';
import { isUndoing } from './undo-text.js';

/** Number of hex digits of a digest in a command, which compares them with the whole digest. */
export const SHOWN_DIGITS = 12;

/** What a program gives as the digest in a decision. */
export const WHOLE_DIGEST = `expected all 64 hex digits of the request's \`digest\`; only commands take the first ${SHOWN_DIGITS}`;

/** A command to suggest to a person, and what it is for. */
interface RunCommand {
  /**
   * The command, its operands, and its options, without quotes. A word in capitals, such as `TEXT`,
   * `JSON`, `N`, `NAME`, or `MESSAGE`, stands for what the person adds, also after `=`.
   */
  readonly words: readonly string[];
  readonly purpose: string;
}

type Decided = Pick<
  Request,
  'id' | 'digest' | 'kind' | 'definition' | 'limit' | 'arguments' | 'form' | 'url'
> &
  Partial<Pick<Request, 'call' | 'tool' | 'decisions'>>;

/**
 * Returns a command line for a POSIX shell. `words`: the command, its operands, and its options. An
 * operand may be any text, also one that looks like an option.
 */
export function commandLine(
  program: string,
  [command = '', ...rest]: readonly string[],
  more: readonly string[] = [],
): string {
  const at = rest.findIndex((word, index) => index > 0 && word.startsWith('--'));
  const end = at < 0 ? rest.length : at;
  return shellLine({
    program: `${program} ${command}`,
    operands: rest.slice(0, end),
    options: [...rest.slice(end), ...more],
  });
}

/** The commands that texts of runs, workers, and servers name; those do not know how it was started. */
const NAMED_COMMANDS =
  /(?<![\w./-]|(?:npx|exec|yarn|bunx) )perdure (mcp accept|approve|answer|attach|audit|budgets|codec|costs|deny|dev|doctor|edit|erase|eval|export|inbox|limits|list|record|replay|rerun|resolve|resume|serve|status|transcript|worker)(?![\w-])/g;

/**
 * Returns a text in which each command can be pasted. `program`: the words that start the program; by
 * default, those that work in a project. `flags`: what follows the command.
 */
export function withProgram(
  text: string,
  program = 'npx perdure',
  flags: readonly string[] = [],
): string {
  return text.replace(NAMED_COMMANDS, (_, command: string) =>
    [program, command, ...flags].join(' '),
  );
}

/** Returns a request with other texts in place of its fix and its reason. */
export function withRequestTexts<One extends { readonly fix: string; readonly why?: string }>(
  request: One,
  replace: (text: string) => string,
): One {
  const { fix, why } = request;
  return { ...request, fix: replace(fix), ...(why !== undefined && { why: replace(why) }) };
}

/** Returns a status with other texts in place of the message, and of the fix and the reason of each request. */
export function withTexts<Status extends Pick<RunStatus, 'message' | 'pending'>>(
  status: Status,
  replace: (text: string) => string,
): Status {
  const { message, pending } = status;
  return {
    ...status,
    message: message && replace(message),
    pending: pending.map((one) => withRequestTexts(one, replace)),
  };
}

/**
 * Whose name a command gives as the one who decides: that of its user, another that its user adds,
 * since their own may not decide, or none, since no name that a command can give may.
 */
export type DecidingName = 'own' | 'other' | 'none';

/**
 * Returns the commands that can decide about a request now, in the order in which it offers them.
 * There are none while a decision is being checked, after the request has expired, and if no name may
 * decide: the run would refuse each of them. `now`: Unix time in ms.
 */
export function decidingCommands(
  run: string,
  request: Request,
  now: number,
  name: DecidingName = 'own',
): readonly RunCommand[] {
  const { checking, decisions } = request;
  if (name === 'none' || checking || isExpired(request, now)) return [];
  const [only, ...others] = shownActions(request.arguments ?? '') ?? [];
  const isOne = only !== undefined && others.length === 0;
  return decisions
    .filter((as) => as !== 'some' || !isOne)
    .map((as) => decidingCommand(run, request, { as, name }));
}

/**
 * Returns the command that decides about a request, for a notice or a status. If each decision states
 * something else that only a person can know, or if no name may decide, it is the command that shows
 * the request.
 */
export function fixFor(
  run: string,
  request: Decided,
  [first]: readonly DecisionKind[],
  name: DecidingName = 'own',
): string {
  if (first === undefined || first === 'happened' || name === 'none') {
    return commandLine('perdure', ['inbox', run, request.id]);
  }
  return commandLine('perdure', decidingCommand(run, request, { as: first, name }).words);
}

/**
 * Returns a request whose `fix` is a command that would work now: the one that shows the request while it is
 * being checked, after it has expired, and if no name may decide. `now`: Unix time in ms.
 */
export function withFixNow(
  run: string,
  request: Request,
  { now, name }: { readonly now: number; readonly name: DecidingName },
): Request {
  const canDecide = !request.checking && !isExpired(request, now);
  return { ...request, fix: fixFor(run, request, request.decisions, canDecide ? name : 'none') };
}

/** Whether a request has expired. `now`: Unix time in ms. */
export function isExpired({ expiresAt }: Pick<Request, 'expiresAt'>, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

/** Returns the command for one decision about a request. */
export function decidingCommand(
  run: string,
  request: Decided,
  { as, name }: { readonly as: DecisionKind; readonly name: DecidingName },
): RunCommand {
  const { words, purpose } = commandFor(run, request, as);
  return { words: name === 'own' ? words : [...words, '--by', 'NAME'], purpose };
}

function commandFor(run: string, request: Decided, as: DecisionKind): RunCommand {
  const { id, digest, kind, definition, limit, form, url } = request;
  const seen = ['--digest', digest.slice(0, SHOWN_DIGITS)];
  const resolve = ['resolve', run, id, '--as', as, ...seen];
  if (form !== undefined || url !== undefined) return askCommand(run, request, as);
  switch (as) {
    case 'approve':
      return {
        words: ['approve', run, id, ...seen],
        purpose: approvePurpose(request),
      };
    case 'some':
      return someCommand(['approve', run, id, ...seen], request);
    case 'deny':
      return {
        words: ['deny', run, id, ...seen, '--note', 'TEXT'],
        purpose: denyPurpose(request),
      };
    case 'edit':
      return {
        words: ['edit', run, id, ...seen, '--arguments', 'JSON'],
        purpose: 'execute it with these arguments instead',
      };
    case 'answer':
      if (kind === 'plan') {
        return {
          words: ['answer', run, id, 'edit', 'TEXT', ...seen],
          purpose: 'edit …: request a new plan with your change',
        };
      }
      if (isYesOrNo(request)) {
        return { words: ['answer', run, id, 'yes', ...seen], purpose: 'answer yes' };
      }
      return kind === 'question'
        ? { words: ['answer', run, id, 'TEXT', ...seen], purpose: 'answer the question' }
        : {
            words: ['answer', run, id, ...seen, '--result', 'JSON'],
            purpose: 'provide the result of the call yourself',
          };
    case 'raise':
      return {
        words: [
          'limits',
          run,
          '--add',
          `${limitWords(limit ?? { name: 'steps' })}=${limit !== undefined && LIMITS[limit.name] === 'time' ? '10m' : 'N'}`,
          ...seen,
        ],
        purpose: `raise the limit${limit?.scope === 'run' ? ', and that of each turn if it has one,' : ''} by this amount; what is used above the limit is added`,
      };
    case 'stop':
      return { words: resolve, purpose: 'keep the limit, and stop' };
    case 'happened':
      return {
        words: [...resolve, '--result', 'JSON'],
        purpose: `it happened; pass its result to the ${callerOf(request)}, or omit --result`,
      };
    case 'retry':
      return { words: resolve, purpose: 'it did not happen: call the tool again' };
    case 'abandon':
      return {
        words: resolve,
        purpose: `give up on the call and tell the ${callerOf(request)}`,
      };
    case 'accept':
      // The digest covers the pinned form of the tool, not the current one.
      return {
        words: [...resolve, ...(definition === undefined ? [] : ['--definition', definition])],
        purpose: 'accept the tool in its current form',
      };
  }
}

/** Whether a node of a graph asks for yes or no. */
export function isYesOrNo({ kind, tool = '' }: Pick<Decided, 'kind' | 'tool'>): boolean {
  return kind === 'question' && nodeOfCall({ name: tool }) !== null;
}

/** What approving the request does. */
function approvePurpose({ kind, decisions = [] }: Decided): string {
  if (kind === 'plan') return 'yes: execute all actions';
  return isUndoing({ kind, decisions })
    ? 'undo the executed call shown above'
    : 'execute it exactly as shown';
}

/** What denying the request does, and where the note goes. */
function denyPurpose(request: Decided): string {
  const { kind, tool = '', decisions = [] } = request;
  if (kind === 'plan') return 'no: execute nothing; the note becomes a message of the run';
  if (nodeOfCall({ name: tool }) !== null) {
    return 'answer no; the note becomes a message of the run';
  }
  if (isUndoing({ kind, decisions })) {
    return 'do not undo it; the note is recorded';
  }
  const caller = callerOf(request);
  return `refuse it; the note is for the ${caller}${caller === 'graph' ? ', as the error of the call' : ''}`;
}

/** Who has made the call that a request is about. */
function callerOf({ call = '' }: Decided): 'graph' | 'model' {
  return nodeOfCallId(call) === null ? 'model' : 'graph';
}

/** Returns the command for one decision about what an MCP server asks. */
function askCommand(run: string, { id, digest, url, form }: Decided, as: DecisionKind): RunCommand {
  const seen = ['--digest', digest.slice(0, SHOWN_DIGITS)];
  if (as === 'deny') {
    return { words: ['deny', run, id, ...seen], purpose: 'decline; the server is told so' };
  }
  if (as !== 'answer') {
    const words = ['resolve', run, id, '--as', as, ...seen];
    return { words, purpose: 'dismiss it; the server gets `cancel`' };
  }
  return url === undefined
    ? {
        words: ['answer', run, id, ...seen, '--result', exampleAnswer(form ?? {}) ?? 'JSON'],
        purpose: 'send your values of these fields to the server',
      }
    : {
        words: ['answer', run, id, 'done', ...seen],
        purpose: 'you have opened the address, and are done there',
      };
}

/**
 * Returns the command for a part of a plan. Without ids, it is offered only if some actions need
 * approval and others do not.
 */
function someCommand(words: readonly string[], request: Decided): RunCommand {
  const actions = shownActions(request.arguments ?? '') ?? [];
  const harmless = harmlessActions(actions);
  const ids = actions.map(({ id }) => id);
  const example = exampleOf(actions).join(',');
  if (harmless.length > 0 && harmless.length < actions.length) {
    return {
      words: [...words, '--some'],
      purpose: `some: execute only what needs no approval; with ids, as --some ${example}, only those`,
    };
  }
  return {
    words: [...words, '--some', ids[0] ?? 'IDS'],
    purpose: `some …: execute only the actions that you name${example.includes(',') ? `, e.g. ${example}` : ''}`,
  };
}

/** What the commands for a run depend on. */
export interface RunFacts extends Pick<
  RunStatus,
  'id' | 'status' | 'grants' | 'undoable' | 'cancel'
> {
  readonly isPaused: boolean;
  /** Something outside the run must be fixed, and the run retries until then. */
  readonly isBlocked: boolean;
  /** The run is open, and no turn is under way or waiting. */
  readonly isIdle: boolean;
  /** Whether a worker seems to be running. */
  readonly hasWorker: boolean;
  /** The node of a graph that failed in the newest turn, and at which a fork can begin; absent if none did. */
  readonly failedNode?: string;
  /** Whether there are messages to read; default true. */
  readonly hasMessages?: boolean;
  /** Whether a worker that a command hosts could continue the run; default true. */
  readonly canHost?: boolean;
}

/**
 * Returns the commands about a run that would work now, except those that decide about requests.
 * `now`: Unix time in ms.
 */
export function runCommands(run: RunFacts, now: number): readonly RunCommand[] {
  const { id, status, grants = [], undoable = [], isBlocked, isPaused, isIdle } = run;
  const { hasWorker, hasMessages = true, canHost = true } = run;
  const again = forkCommands(run);
  if (!isOpenStatus(status)) {
    const read = { words: ['transcript', id], purpose: 'read the messages' };
    return [...(hasMessages ? [read] : []), ...again];
  }
  const follow = {
    words: ['attach', id],
    purpose: hasWorker || !canHost ? 'follow it' : 'start a worker and follow it',
  };
  // Whatever else is sent comes after the cancel.
  if (run.cancel !== undefined) return [follow];
  const [grant] = grants;
  const undo = undoable.findLast(({ state, until }) => state === undefined && until > now);
  return [
    ...(isBlocked ? [{ words: ['resume', id], purpose: 'retry at once, after a fix' }] : []),
    ...(!isBlocked && isPaused ? [{ words: ['resume', id], purpose: 'resume it' }] : []),
    ...(grant === undefined
      ? []
      : [
          {
            words: ['revoke', id, grant.id],
            purpose: grants.length === 1 ? 'end the grant' : 'end the first of the grants',
          },
        ]),
    // Only a worker can undo a call, and the command hosts one for a run that only waits for a message.
    ...(undo === undefined || !(hasWorker || (isIdle && canHost))
      ? []
      : [{ words: ['undo', id, undo.call], purpose: 'undo this call' }]),
    ...(isIdle
      ? [
          { words: ['send', id, 'MESSAGE'], purpose: 'send it a message' },
          { words: ['close', id], purpose: 'end it' },
          ...again,
        ]
      : [follow]),
  ];
}

/** Returns the command that begins a new run at the node that failed, if a worker could execute it. */
function forkCommands({
  id,
  failedNode,
  hasWorker,
  canHost = true,
}: RunFacts): readonly RunCommand[] {
  if (failedNode === undefined || !(hasWorker || canHost)) return [];
  const words = ['fork', id, '--node', failedNode];
  return [{ words, purpose: 'begin at the node that failed, in a new run, after a fix' }];
}
