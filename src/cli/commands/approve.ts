import { predicateMisfit } from '../../core/definition/predicate-misfit.js';
import { type Predicate, predicateProblem } from '../../core/definition/predicate.js';
import { SHOWN_DIGITS, isYesOrNo } from '../../core/requests/commands.js';
import { unwrittenField } from '../../core/requests/server-ask.js';
import { visible } from '../../core/state/summaries.js';
import { type Json, isJsonObject, isObject } from '../../core/text/json.js';
import { readRefusal, reasonOfNo } from '../../core/text/refusal-words.js';
import { show } from '../../core/text/text.js';
import type { RequestedGrant } from '../../core/transcript/request.js';
import { revokeGrant } from '../../updates/decide.js';
import { likelyMeant } from '../../validation/near-names.js';
import { type CliContext, type Command, EXIT, UsageError } from '../context.js';
import { withWorker } from '../hosting/with-worker.js';
import { checkWritten, deciderName } from '../input/option-parsers.js';
import { withOptions } from '../input/options.js';
import { requireOpenRun } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';
import { type OpenedRequest, byWords, denyingCommand, submitDecision } from '../requests/decide.js';
import { chosenActions } from '../requests/prompt.js';

interface ApproveOptions {
  readonly id: string;
  readonly request: string;
  readonly digest?: string;
  /** For a plan: true for all actions that need no approval, or the ids of some. */
  readonly some?: true | string;
  /** Which later calls the approval also covers. */
  readonly grant?: 'same_call' | 'tool';
  /** A predicate as JSON. */
  readonly where?: Json;
  readonly by?: string;
}

/** `approve ID REQUEST`: lets a run execute a call, or a plan, exactly as shown. */
export const approve: Command<ApproveOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run').argument('<request>', 'the request, as inbox shows it'),
      'digest',
      'grant',
      'where',
      'some',
      'by',
    ),
  async run(context, { id, request, digest, by, some, ...options }) {
    const grant = parseGrant(options);
    if (some !== undefined) {
      if (grant !== null) {
        throw new UsageError('--grant: expected it without --some; omit one of them');
      }
      const what = {
        as: 'some',
        command: 'approve',
        ...(some !== true && chosenActions(some)),
        given: some === true ? ['--some'] : ['--some', some],
      } as const;
      return await submitDecision(context, { id, request, digest, by, ...what });
    }
    const what = { as: 'approve', command: 'approve', ...(grant && { grant }) } as const;
    const check = (opened: OpenedRequest): void => checkGrant(grant, opened);
    const given = [
      ...(grant ? ['--grant', grant.scope] : []),
      ...(grant?.where ? ['--where', JSON.stringify(grant.where)] : []),
    ];
    return await submitDecision(context, { id, request, digest, by, given, check, ...what });
  },
};

/** Throws a `UsageError` for a condition that no call of the tool can meet. */
function checkGrant(
  grant: RequestedGrant | null,
  { opened, request }: Pick<OpenedRequest, 'opened' | 'request'>,
): void {
  if (grant?.where === undefined) return;
  const tools = opened.run.view.state?.config.definition.tools ?? [];
  const tool = tools.find(({ name }) => name === request.tool);
  if (tool === undefined) return;
  const tested = { name: tool.name, schemas: [tool.parameters], meantBy: likelyMeant };
  const misfit = predicateMisfit(grant.where, tested, '--where');
  if (misfit !== null) throw new UsageError(misfit);
}

/**
 * Returns the grant that the options describe; null if there is none. Throws a `UsageError` if the
 * options do not fit together.
 */
export function parseGrant({
  grant,
  where,
}: Pick<ApproveOptions, 'grant' | 'where'>): RequestedGrant | null {
  if (where !== undefined && grant !== 'tool') {
    throw new UsageError('--where: expected --grant tool; add it, or omit --where');
  }
  if (grant === undefined) return null;
  if (where === undefined) return { scope: grant };
  const problem = predicateProblem(where, '--where');
  if (problem !== null) throw new UsageError(problem);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked in the line above
  return { scope: 'tool', where: where as unknown as Predicate };
}

interface DenyOptions {
  readonly id: string;
  readonly request: string;
  readonly digest?: string;
  /** The reason, for the model. */
  readonly note?: string;
  readonly by?: string;
}

const MAX_NOTE_CHARACTERS = 2_000;

/** `deny ID REQUEST`: refuses a call, and gives the model the reason. */
export const deny: Command<DenyOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run').argument('<request>', 'the request, as inbox shows it'),
      'digest',
      'note',
      'by',
    ),
  async run(context, { note, ...given }) {
    const what = { as: 'deny', command: 'deny', ...noteOf(note) } as const;
    return await submitDecision(context, { ...given, ...what });
  },
};

/** Returns the note for the model. Throws a `UsageError` if it is too long, or a placeholder. */
export function noteOf(note: string | undefined): { readonly note?: string } {
  if (note === undefined) return {};
  checkWritten('--note', note);
  if (note.length <= MAX_NOTE_CHARACTERS) return { note };
  throw new UsageError(
    `--note: expected at most ${MAX_NOTE_CHARACTERS} characters, got ${note.length}; shorten it`,
  );
}

interface EditOptions {
  readonly id: string;
  readonly request: string;
  readonly digest?: string;
  /** Parsed JSON. */
  readonly arguments: Json;
  readonly by?: string;
}

/**
 * `edit ID REQUEST`: lets a run execute a call with other arguments. The rules apply to them again.
 */
export const edit: Command<EditOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run').argument('<request>', 'the request, as inbox shows it'),
      'digest',
      'arguments',
      'by',
    ),
  async run(context, { arguments: value, ...target }) {
    if (!isObject(value)) {
      throw new UsageError(
        `--arguments: expected an object with all arguments, got ${show(value)}; take those that the request shows, with your changes`,
      );
    }
    const what = { as: 'edit', command: 'edit', arguments: value } as const;
    const given = ['--arguments', JSON.stringify(value)];
    return await submitDecision(context, { ...target, ...what, given });
  },
};

interface AnswerCommandOptions {
  readonly id: string;
  readonly request: string;
  /** The words of the answer. */
  readonly text: readonly string[];
  readonly digest?: string;
  /** Parsed JSON. */
  readonly result?: Json;
  readonly by?: string;
}

/** `answer ID REQUEST`: answers a question, or provides the result of a call. */
export const answer: Command<AnswerCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry
        .argument('<id>', 'the run')
        .argument('<request>', 'the request, as inbox shows it')
        .argument('[text...]', 'the answer as text'),
      'digest',
      'result',
      'by',
    ),
  async run(context, { text, result, ...given }) {
    const what = { as: 'answer', command: 'answer', result: resultOf(text, result) } as const;
    const words = text.join(' ');
    const check = async (opened: OpenedRequest): Promise<void> => {
      const { form } = opened.request;
      const unwritten = form && isJsonObject(result) ? unwrittenField(result, form) : undefined;
      if (unwritten !== undefined) checkWritten(`--result.${visible(unwritten)}`, 'TEXT');
      await checkRefusal(context, opened, { words, by: given.by });
    };
    return await submitDecision(context, { ...given, ...what, check });
  },
};

/**
 * Throws a `UsageError` for words that refuse what the request is about, and that would be its answer: the
 * result of a call, an answer to a server, or one that a graph does not take. It names the command that
 * denies.
 */
async function checkRefusal(
  context: CliContext,
  { opened: { run }, request }: OpenedRequest,
  { words, by }: { readonly words: string; readonly by: string | undefined },
): Promise<void> {
  const { kind, id, digest, server } = request;
  const isAsked = server === undefined && (kind === 'question' || kind === 'plan');
  const isGraph = kind === 'plan' || isYesOrNo(request);
  const note = isAsked ? (isGraph ? reasonOfNo(words) : null) : readRefusal(words);
  if (note === null || !request.decisions.includes('deny')) return;
  const denying = await denyingCommand(context, { run, request }, { note, by });
  const meant = ['answer', run.id, id, '--digest', digest.slice(0, SHOWN_DIGITS)];
  const literally = [...meant, '--result', JSON.stringify(words), ...byWords(by)];
  const fix = isAsked
    ? ''
    : `; if ${server === undefined ? 'the result of the call' : 'the answer'} is this text, give it as JSON: ${await nextCommandFor(context, run, literally)}`;
  throw new UsageError(
    `text: expected ${isAsked ? 'an answer' : 'no refusal'}, got ${show(words)}; refuse the request with: ${denying}${fix}`,
  );
}

/** Returns the answer, as text or JSON. Throws a `UsageError` unless exactly one is given. */
export function resultOf(text: readonly string[], result: Json | undefined): Json {
  const words = text.join(' ');
  if (result !== undefined && text.length > 0) {
    throw new UsageError('--result: expected either TEXT or --result JSON, got both; omit one');
  }
  if (result !== undefined) return result;
  checkWritten('text', words);
  if (words.trim() !== '') return words;
  throw new UsageError('text: expected an answer, got none; give TEXT or --result JSON');
}

interface RevokeOptions {
  readonly id: string;
  readonly grant: string;
  readonly by?: string;
}

/** `revoke ID GRANT`: ends an approval that covers later calls. */
export const revoke: Command<RevokeOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run').argument('<grant>', 'the grant, as status shows it'),
      'by',
    ),
  async run(context, { id: named, grant, by }) {
    const actor = deciderName(by);
    const opened = await requireOpenRun(context, named);
    const { id } = opened.run;
    const revoked = await withWorker(context, opened, {
      decision: 'revoke',
      send: () => revokeGrant(opened.client, id, grant, { by: actor }),
    });
    context.note(
      `Grant ${visible(revoked)} of run ${visible(id)} is revoked: later calls need approval again. Calls that have already started continue.`,
    );
    if (context.options.json) context.out(JSON.stringify({ id, revoked }));
    return EXIT.completed;
  },
};
