import type { RequestedGrant } from '../../core/requests/decision.js';
import type { Json } from '../../core/json.js';
import { predicateProblem, type Predicate } from '../../core/requests/predicate.js';
import { predicateMisfit } from '../../core/requests/predicate-misfit.js';
import { likelyMeant } from '../../validation/nearest.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import { UsageError } from '../exit-codes.js';
import { submitDecision } from '../requests/decide.js';
import type { OpenedRequest } from '../requests/open-request.js';
import { chosenActions } from '../requests/read-decision.js';

export interface ApproveOptions {
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
      } as const;
      return await submitDecision(context, { id, request, digest, by, ...what });
    }
    const what = { as: 'approve', command: 'approve', ...(grant && { grant }) } as const;
    const check = (opened: OpenedRequest): void => checkGrant(grant, opened);
    return await submitDecision(context, { id, request, digest, by, check, ...what });
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
