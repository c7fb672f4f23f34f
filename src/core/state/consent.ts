import type { AgentDefinition } from '../definition/definition.js';
import { holds, predicateText } from '../definition/predicate.js';
import { type Deciding, deciderProblem } from '../definition/rules.js';
import { isAnonymous, namesIn } from '../input/inbox.js';
import { actorOf } from '../input/turn-context.js';
import { type Json, canonicalJson, parseJson } from '../text/json.js';
import type { ToolCall } from '../transcript/messages.js';
import type { Decision, Grant } from '../transcript/request.js';
import type { RunState } from './state.js';
import { nodeOfCall } from './turn-definition.js';
import { type Work, isUndo } from './work.js';

/**
 * Number of grants that a run remembers. The oldest are dropped, and their calls need approval
 * again.
 */
const REMEMBERED_GRANTS = 100;

/** Returns the people behind the turn under way. */
export function peopleOf({
  turn,
  inbox,
}: Pick<RunState, 'turn' | 'inbox'>): Required<Omit<Deciding, 'by' | 'groups'>> {
  const waiting = inbox.waiting.filter((message) => message.turn === turn.number);
  const { by, anonymous = by === undefined } = turn;
  const isUnknown = anonymous || waiting.some(isAnonymous);
  return { requesters: by ?? [], joining: namesIn(waiting), anonymous: isUnknown };
}

/** Returns the people behind what a person decides about: who requested an undo, or those behind the turn. */
export function peopleBehind(
  state: Pick<RunState, 'turn' | 'inbox' | 'config'>,
  work: Pick<Work, 'name' | 'by'> | undefined,
): ReturnType<typeof peopleOf> {
  if (work === undefined || !isUndo(work) || !state.config.revised) return peopleOf(state);
  const { by } = work;
  return { requesters: by === undefined ? [] : [by], joining: [], anonymous: by === undefined };
}

/** Returns the grant under which a call needs no further approval; undefined if there is none. */
export function grantFor(
  { grants, turn, inbox }: Pick<RunState, 'grants' | 'turn' | 'inbox'>,
  call: Pick<ToolCall, 'name' | 'digest' | 'arguments' | 'blob' | 'parsed' | 'verdict'>,
): Grant | undefined {
  const { verdict } = call;
  if (grants === undefined || verdict?.then !== 'ask') return undefined;
  const people = peopleOf({ turn, inbox });
  return grants.find((grant) => {
    if (!covers(grant, call)) return false;
    // The person who created the grant must also be allowed to decide about this call.
    return (
      deciderProblem(verdict.deciders ?? [], { by: grant.by, groups: grant.groups, ...people }) ===
      null
    );
  });
}

/** Whether a grant holds for a call as it was written, and for what the tool gets. */
function covers(
  { tool, scope, digest, parsed, where }: Grant,
  call: Pick<ToolCall, 'name' | 'digest' | 'arguments' | 'blob' | 'parsed'>,
): boolean {
  if (tool !== call.name) return false;
  if (scope === 'same_call') return digest === call.digest && parsed === call.parsed?.digest;
  if (where === undefined) return true;
  const forms = [call, ...(call.parsed ? [call.parsed] : [])];
  // Arguments in the blob store cannot be read here, so they never match.
  return forms.every(
    ({ blob, arguments: json }) => blob === undefined && holds(where, parseJson(json)),
  );
}

/** Returns the grants, with that of an approval added if it has one. */
export function withGrant(
  grants: readonly Grant[] | undefined,
  given: Omit<Grant, 'id'>,
): readonly Grant[] {
  const last = Number(grants?.at(-1)?.id.slice(1) ?? 0);
  return [...(grants ?? []), { id: `g${last + 1}`, ...given }].slice(-REMEMBERED_GRANTS);
}

/**
 * Returns the grants whose tools are the same in both definitions. People saw the tool as it was
 * before, so a grant decides nothing about a changed one.
 */
export function grantsLeft(
  grants: readonly Grant[],
  before: Pick<AgentDefinition, 'tools'>,
  after: Pick<AgentDefinition, 'tools'>,
): readonly Grant[] {
  return grants.filter(({ tool }) => toolText(before, tool) === toolText(after, tool));
}

function toolText({ tools }: Pick<AgentDefinition, 'tools'>, name: string): string {
  const tool = tools.find((one) => one.name === name);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a definition is recorded as JSON
  return canonicalJson((tool ?? null) as unknown as Json);
}

/** Returns the grant of an approval for later calls; null if it covers this call alone. */
export function toGrant(
  { grant, request, groups, ...decision }: Decision,
  { call, at }: { readonly call: ToolCall; readonly at: number },
): Omit<Grant, 'id'> | null {
  if (grant === undefined) return null;
  const { scope, where } = grant;
  const base = {
    tool: call.name,
    scope,
    request,
    at,
    ...actorOf(decision),
    ...(groups && { groups }),
  };
  if (scope === 'same_call') {
    const parsed = call.parsed && { parsed: call.parsed.digest };
    return {
      ...base,
      digest: call.digest,
      ...parsed,
      shown: `${call.name} with the same arguments`,
    };
  }
  const pattern = where === undefined ? 'any arguments' : `arguments where ${predicateText(where)}`;
  return { ...base, ...(where && { where }), shown: `${call.name} with ${pattern}` };
}

/** Whether a call needs a person's approval before it begins. */
export function needsConsent(state: RunState, call: ToolCall): boolean {
  return !isConfirmed(call) && call.verdict?.then === 'ask' && grantFor(state, call) === undefined;
}

/**
 * Whether a person's confirmation of the plan covers the call. If the rules were evaluated only
 * afterwards, it covers neither deciders that they name nor arguments that were not shown.
 */
function isConfirmed({ confirmed, asks, verdict, parsed }: ToolCall): boolean {
  if (!confirmed) return false;
  return !asks || (verdict?.deciders === undefined && parsed === undefined);
}

/** Whether a graph's node makes the call and no worker has applied the rules to it yet. */
export function isUnjudged(call: ToolCall): boolean {
  return call.node !== undefined && nodeOfCall(call) === null && call.verdict === undefined;
}
