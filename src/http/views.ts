import { z } from 'zod';
import type { BlockedRun, ReadStatus } from '../client/below.js';
import type { Runnable } from '../client/runnable-texts.js';
import type { Right } from '../config.js';
import { shownActions } from '../core/plan/confirm-plan.js';
import { LIMIT_NAMES, type LimitSet, type Limits } from '../core/definition/definition.js';
import { commandLine } from '../core/requests/commands.js';
import { limitAmount, limitOption } from '../core/requests/limit-words.js';
import { presentRequest } from '../core/requests/presentation.js';
import { formLines } from '../core/requests/server-ask.js';
import { effectiveLimits } from '../core/rules/limits.js';
import { visible, visibleMessage } from '../core/state/summaries.js';
import { type JsonObject, isJsonObject, isObject, parseJson } from '../core/text/json.js';
import { escapeArguments, headOf, printable } from '../core/text/text.js';
import type { Request } from '../core/transcript/request.js';
import type { ServedAgent } from './access.js';

/** An agent, as a principal sees it. */
export interface AgentView {
  readonly name: string;
  readonly description: string;
  readonly graph: boolean;
  /** JSON schema of the `input` of a graph; null for an agent. */
  readonly input: JsonObject | null;
  /** JSON schema of the arguments of its instructions; null if they are not a template. */
  readonly args: JsonObject | null;
  readonly prompts: readonly string[];
  /** Those in force for a run that asks for no others. */
  readonly limits: { readonly turn: LimitTexts; readonly run: LimitTexts };
  readonly rights: readonly Right[];
}

/** Limits as people write them, such as `{ steps: '50', wall: '10 min' }`. */
type LimitTexts = Readonly<Record<string, string>>;

/** Returns an agent with its schemas, for forms. A schema that JSON cannot express is null. */
export function agentView({
  name,
  description,
  graph,
  template,
  prompts,
  limits,
}: ServedAgent): Omit<AgentView, 'rights'> {
  return {
    name,
    description,
    graph: graph !== undefined,
    input: schemaOf(graph?.input),
    args: schemaOf(template?.args),
    prompts: [...(prompts?.keys() ?? [])],
    limits: limitsOf(limits),
  };
}

function limitsOf(own: Limits): AgentView['limits'] {
  const limits = effectiveLimits(own, {});
  if (typeof limits === 'string') throw new Error(limits);
  return { turn: limitTexts(limits.turn), run: limitTexts(limits.run) };
}

function limitTexts(set: LimitSet): LimitTexts {
  const names = LIMIT_NAMES.filter((name) => set[name] !== undefined);
  return Object.fromEntries(names.map((name) => [limitOption(name), limitAmount(name, set[name])]));
}

function schemaOf(type: z.ZodObject | undefined): JsonObject | null {
  if (type === undefined) return null;
  const schema: unknown = z.toJSONSchema(type, { io: 'input', unrepresentable: 'any' });
  return isJsonObject(schema) ? schema : null;
}

/** The graph of a run, marked with what has run and what waits. */
export interface GraphView {
  readonly agent: string;
  /** The graph as a Mermaid flow chart. */
  readonly mermaid: string;
  /** The start comes first. */
  readonly nodes: readonly {
    readonly id: string;
    /** One line for people, from the author. */
    readonly label: string;
    readonly kind: string;
    readonly mark?: 'visited' | 'failed' | 'here' | 'unvisited';
    readonly visits?: number;
  }[];
  readonly edges: readonly {
    /** Ids of nodes. */
    readonly from: string;
    readonly to: string;
    /** Null if the node has only this exit. */
    readonly exit: string | null;
    /** How often the run has taken it. */
    readonly taken?: number;
  }[];
}

/** The status of a run, and what its reader may do with it. */
export type RunView = ReadStatus & { readonly rights: readonly Right[] };

/** Returns a status with only those runs below it that its reader may see. */
export async function withSeenBelow(
  { below = [], blockedBelow = [], ...status }: ReadStatus,
  sees: (run: BelowRun) => Promise<boolean>,
): Promise<ReadStatus> {
  const requests = await seenOnly(below, sees);
  const blocked = await seenOnly(blockedBelow, sees);
  return {
    ...status,
    ...(requests.length > 0 && { below: requests }),
    ...(blocked.length > 0 && { blockedBelow: blocked }),
  };
}

type BelowRun = Pick<BlockedRun, 'run' | 'agent'>;

async function seenOnly<One extends BelowRun>(
  all: readonly One[],
  sees: (run: BelowRun) => Promise<boolean>,
): Promise<readonly One[]> {
  const may = await Promise.all(all.map(sees));
  return all.filter((_, at) => may[at]);
}

/** A name, and its value as text. */
type Row = readonly [name: string, text: string];

/**
 * What a page shows of a request before any button: words by code, text by others apart from them, and
 * every argument exactly as it will be executed. Hidden characters are visible.
 */
export interface RequestView {
  /** Such as `approval of a call`. */
  readonly asksFor: string;
  readonly headline: string;
  readonly fields: readonly Row[];
  /** Text by others, with who wrote it. */
  readonly foreign: readonly { readonly title: string; readonly texts: readonly string[] }[];
  /** Each argument as JSON; a request that is about no call has none. */
  readonly arguments: readonly Row[];
  /** What the tool gets, if its schema changes the arguments; else null. */
  readonly parsed: readonly Row[] | null;
  /** The actions of a plan. */
  readonly actions: readonly {
    readonly id: string;
    readonly tool: string;
    readonly arguments: readonly Row[];
    /** Whether its rules require approval. */
    readonly asks: boolean;
  }[];
}

/** Returns what a page shows of a request, of which all arguments were read. */
export function requestView(request: Request): RequestView {
  const { asksFor, headline, what, tool, reasons, people, foreign } = presentRequest(request);
  const isPlan = request.kind === 'plan';
  const actions = isPlan ? (shownActions(request.arguments ?? '') ?? []) : [];
  const isQuestion = request.kind === 'question' && request.server === undefined;
  const isCall = request.tool !== undefined && !isPlan && !isQuestion;
  return {
    asksFor,
    headline: printable(headline),
    fields: [...what, ...tool, ...reasons, ...people].map(([name, text]) => [
      name,
      printable(text),
    ]),
    foreign: foreign.map(({ title, texts }) => ({ title, texts: texts.map(printable) })),
    arguments: isCall ? rowsOf(request.arguments ?? '{}') : [],
    parsed: isCall && request.parsed !== undefined ? rowsOf(request.parsed) : null,
    actions: actions.map(({ id, tool: name, arguments: given, asks }) => ({
      id: printable(id),
      tool: printable(name),
      arguments: rowsOf(JSON.stringify(given)),
      asks: asks !== undefined,
    })),
  };
}

function rowsOf(json: string): readonly Row[] {
  const value = parseJson(json);
  if (!isObject(value)) return [['value', escapeArguments(json)]];
  return Object.entries(value).map(([name, one]) => [
    printable(name),
    escapeArguments(JSON.stringify(one)),
  ]);
}

// The requests of a run, as the tools of perdure's MCP server show them.

/** The open requests of a run. */
export const pendingAnswer = z
  .array(
    z.object({
      request: z.string(),
      kind: z.string(),
      call: z.string().nullable(),
      tool: z.string().nullable(),
      shown: z.string().describe('what it is about, in one line; of a plan, each action'),
      fields: z
        .array(z.string())
        .optional()
        .describe("of an MCP server's form: what each field of the answer takes, in its words"),
      url: z.string().optional().describe('the address that an MCP server asks a person to open'),
      refused: z
        .string()
        .optional()
        .describe('why the newest decision was refused; give another one'),
      checking: z.boolean().optional().describe('a decision waits for a worker to check it'),
      fix: z.string(),
    }),
  )
  .describe("what needs a person's decision; `fix` is the command, or the tool");

/** The maximum length of the actions of a plan in a status, in UTF-16 units. */
const MAX_ACTIONS = 2_000;

/** Returns a request of a run as `agent_status` shows it: a plan with its actions. */
export function toPending(
  run: string,
  request: Request,
  runnable: Runnable,
): z.infer<typeof pendingAnswer>[number] {
  const { id, kind, call = null, tool = null, form, url, refused, checking, fix } = request;
  const shown =
    kind === 'plan'
      ? cut(request.shown, runnable(fullCommand(run, request)), MAX_ACTIONS)
      : visible(presentRequest(request).headline);
  return {
    request: id,
    kind,
    call,
    tool,
    shown,
    ...(form && { fields: formLines(form).map(visibleMessage) }),
    ...(url !== undefined && { url }),
    ...(refused !== undefined && { refused: visibleMessage(refused) }),
    ...(checking === true && { checking }),
    fix,
  };
}

/** The maximum length of the arguments of one request that a model reads, in UTF-16 units. */
const MAX_ARGUMENTS = 20_000;

/** Returns a request as `list_requests` shows it. */
export function shownToModel(
  run: string,
  request: Request,
  runnable: Runnable,
): Readonly<Record<string, unknown>> {
  const shown = (text: string): string => cut(text, runnable(fullCommand(run, request)));
  const { arguments: given, parsed, question, options, ...rest } = request;
  // The actions of a plan are its arguments, and `shown` has its text.
  const actions = request.kind === 'plan' ? shownActions(given ?? '') : null;
  const asked = actions === null ? { question, options } : {};
  return {
    ...rest,
    ...asked,
    ...(given !== undefined && {
      arguments: shown(actions ? JSON.stringify(actions) : given),
    }),
    ...(parsed !== undefined && { parsed: shown(parsed) }),
  };
}

function fullCommand(run: string, { id }: Request): string {
  return commandLine('perdure', ['inbox', run, id, '--full']);
}

function cut(given: string, command: string, most = MAX_ARGUMENTS): string {
  if (given.length <= most) return given;
  const note = `… ${given.length - most} more characters; read them with: ${command}`;
  return headOf(given, most) + note;
}
