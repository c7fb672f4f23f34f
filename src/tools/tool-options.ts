import type { z } from 'zod';
import type { CatalogEntry, Effect } from '../core/definition/tool-definition.js';
import type { Duration } from '../core/text/text.js';
import type {
  ApprovalPredicate,
  ToolContext,
  ToolReturn,
  UndoContext,
  Verification,
  VerifyContext,
} from './tool.js';

/** What an author passes to `defineTool`. The functions are typed by both schemas. */
export interface ToolOptions<Input extends z.ZodObject, Output extends z.ZodType> {
  /** Letters, digits, `_` and `-`, at most 64 characters; unique in an agent. */
  readonly name: string;
  /** For the model: what the tool does and when to use it. */
  readonly description: string;
  /** The schema of the arguments. */
  readonly input: Input;
  /**
   * The side effect: `read` changes nothing, `keyed` is idempotent (the destination honors the
   * idempotency key), `once` must never happen twice.
   */
  readonly effect: Effect;
  /**
   * The schema of the result; default: any value. Without `execute`, the caller's result must fit
   * it.
   */
  readonly output?: Output;
  /**
   * Whether a person has to approve a call before it is executed: `never` (default), `always`, or a
   * function of the arguments. The worker evaluates it when the model has requested the call.
   *
   * @example
   * ```ts
   * import { defineTool } from 'perdure';
   * import { z } from 'zod';
   *
   * export const refund = defineTool({
   *   name: 'refund',
   *   description: 'Refunds an order.',
   *   effect: 'keyed',
   *   input: z.object({ order: z.string(), euros: z.number().positive() }),
   *   approval: ({ euros }) => euros > 50,
   *   execute: ({ order, euros }) => `refunded ${euros} € to ${order}`,
   * });
   * ```
   */
  readonly approval?: 'never' | 'always' | ApprovalPredicate<z.output<Input>>;
  /** The time limit of one execution, as a `Duration`; default '2 minutes'. */
  readonly timeout?: Duration;
  /**
   * The time without a heartbeat after which a worker counts as dead, as a `Duration`; default '10
   * seconds'.
   */
  readonly heartbeat?: Duration;
  /**
   * The maximum number of executions before the model reads an error that the tool throws; default
   * 3, always 1 for `once`.
   */
  readonly retry?: { readonly attempts?: number };
  /** Whether a success ends the turn, with its result as the answer; default false. */
  readonly ends?: boolean;
  /**
   * Only for `read`: the call is quick (well below 200 ms) and harmless to repeat, so the run may
   * execute it in its own workflow task instead of an activity. A step then costs about half as many
   * events and a third less time. It applies when all calls of a reply are inline reads that need no
   * decision; otherwise, and after a call that took too long, the calls are activities as usual.
   * Queries, messages, and a cancellation of the run wait until the reads have ended. Default: false.
   *
   * @example
   * ```ts
   * import { defineTool } from 'perdure';
   * import { z } from 'zod';
   *
   * const prices = new Map([['apple', 1.2]]);
   *
   * export const price = defineTool({
   *   name: 'price',
   *   description: 'Looks up a price.',
   *   effect: 'read',
   *   inline: true,
   *   input: z.object({ product: z.string() }),
   *   execute: ({ product }) => prices.get(product) ?? 'unknown',
   * });
   * ```
   */
  readonly inline?: boolean;
  /**
   * Default: an identical call that has already succeeded returns the earlier result. With `allow`,
   * it is executed again.
   */
  readonly repeat?: 'allow';
  /**
   * For agents with `toolExposure: 'catalog'`; default: the description's first sentence, category
   * `other`.
   */
  readonly catalog?: CatalogEntry;
  /** Describes a call to people, such as "refund 40 € to order 17". */
  describe?(input: z.output<Input>): string;
  /**
   * Only for `once`: resolves an unknown outcome without a person. After `{ happened: false }`, the
   * tool is executed again under the same key.
   *
   * The worker that executed the call may be frozen and act when it continues. Return `{ happened:
   * false }` only after setting a fence: the destination must then refuse every execution under
   * this key that was scheduled before `scheduledAt` of the verification. Look up the key and set
   * the fence in one transaction. If the destination has no fence, return undefined instead, and a
   * person decides. If it refuses a second effect under one key, make the tool `keyed`, which needs
   * no `verify`.
   *
   * @example
   * ```ts
   * import { defineTool } from 'perdure';
   * import { z } from 'zod';
   *
   * const BANK = 'https://bank.example/refunds';
   *
   * export const refund = defineTool({
   *   name: 'refund',
   *   description: 'Refunds an order.',
   *   effect: 'once',
   *   input: z.object({ order: z.string(), euros: z.number().positive() }),
   *   // The bank refuses a refund that was issued before the fence of its reference.
   *   execute: async (input, { idempotencyKey, call, signal }) => {
   *     const body = JSON.stringify({ ...input, reference: idempotencyKey, issued: call.scheduledAt });
   *     const response = await fetch(BANK, { method: 'POST', body, signal });
   *     if (!response.ok) throw new Error(`the bank answered ${response.status}`);
   *     return await response.text();
   *   },
   *   // The bank sets the fence and looks for the refund, in one transaction.
   *   verify: async (reference, { scheduledAt, signal }) => {
   *     const body = JSON.stringify({ reference, before: scheduledAt });
   *     const response = await fetch(`${BANK}/fences`, { method: 'POST', body, signal });
   *     if (!response.ok) return undefined;
   *     const { refunded } = (await response.json()) as { refunded: boolean };
   *     return refunded ? { happened: true } : { happened: false };
   *   },
   * });
   * ```
   */
  verify?(idempotencyKey: string, context: VerifyContext): Verification | Promise<Verification>;
  /**
   * Whether a result is a failure: the model, the repeat guard, and dependent calls then treat the
   * call as failed, and it is not retried. Without it, an `Error`, `{ error, code? }`, and `{
   * success: false, … }` are failures, unless the tool has an `output`. If it throws, the call has
   * failed.
   */
  failed?(result: unknown): boolean;
  /**
   * Reverts a call that succeeded, at most once, if a person asks for it. A `read` tool changes
   * nothing, so it has no `undo`.
   *
   * `result` is the result as the run has recorded it, without secrets: parsed if it is JSON, else
   * as a string. For example, a date is its ISO text, and an artifact is the text that the model
   * read. A text that looks like a number stays a string only if `output` is a `z.string()`.
   *
   * If it throws, it is retried as often as `retry` allows, under the same `idempotencyKey`.
   *
   * @example
   * ```ts
   * import { defineTool } from 'perdure';
   * import { z } from 'zod';
   *
   * export const book = defineTool({
   *   name: 'book_room',
   *   description: 'Books a meeting room.',
   *   effect: 'keyed',
   *   input: z.object({ room: z.string(), at: z.iso.datetime() }),
   *   output: z.object({ booking: z.string() }),
   *   execute: ({ room, at }) => ({ booking: `${room} ${at}` }),
   *   undo: async (_input, { booking }, { idempotencyKey, signal }) => {
   *     const url = `https://rooms.example/bookings/${encodeURIComponent(booking)}`;
   *     const headers = { 'idempotency-key': idempotencyKey };
   *     const response = await fetch(url, { method: 'DELETE', headers, signal });
   *     if (!response.ok) throw new Error(`the service answered ${response.status}`);
   *   },
   *   undoWithin: '1 hour',
   * });
   * ```
   */
  undo?(
    input: z.output<Input>,
    result: z.output<Output>,
    context: UndoContext,
  ): void | Promise<void>;
  /**
   * Only with `undo`: the time after a success within which it can be undone, as a `Duration`;
   * default '24 hours'.
   */
  readonly undoWithin?: Duration;
  /**
   * Only without `execute`: the time after which a call expires and is denied, as a `Duration`;
   * default: never.
   */
  readonly expires?: Duration;
  /**
   * Executes a call. The model reads the result as text or JSON, or reads the name of an
   * `artifact(value)`.
   *
   * If it is absent, the caller executes the tool: each call waits, without occupying a worker,
   * until the caller provides its result (`client.resolve`, decision `answer`).
   */
  execute?(
    input: z.output<Input>,
    context: ToolContext,
  ): ToolReturn<z.input<Output>> | Promise<ToolReturn<z.input<Output>>>;
}
