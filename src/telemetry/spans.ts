import {
  type Attributes,
  type Context,
  type Span,
  SpanKind,
  SpanStatusCode,
  context,
  propagation,
  trace,
} from '@opentelemetry/api';
import type { WorkflowClientInterceptor } from '@temporalio/client';
import { type Headers, defaultPayloadConverter } from '@temporalio/common';
import type { ActivityInterceptorsFactory, WorkerInterceptors } from '@temporalio/worker';
import { isObject, textField } from '../core/text/json.js';
import { TRACE_HEADER, isTraceparent } from '../core/transcript/call-result.js';
import { redactMessage } from '../secrets/redact.js';

/** The kind of a span around a request to another service. */
export const CLIENT_SPAN = SpanKind.CLIENT;
export const INTERNAL_SPAN = SpanKind.INTERNAL;

/** The properties of a new span. */
export interface SpanOptions {
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  /**
   * Whether the span may contain content of the conversation, which the message of an error may
   * quote; default false.
   */
  readonly content?: boolean;
}

/** Adds details to the span of traced work. Its methods never throw. */
interface Noted {
  attributes(attributes: Attributes): void;
  /** Marks the span as failed. */
  fail(error: unknown): void;
  /**
   * Returns the span as W3C's `traceparent`; undefined if it is not recorded, or passed on in
   * another form.
   */
  traceparent(): string | undefined;
}

/**
 * Runs `work` in a span, a child of the active one. Without an OpenTelemetry SDK in the process,
 * there is no span. An exception is recorded without secrets and rethrown. Errors from the SDK or
 * from a span processor are ignored, because failing the work could mean paying for a reply again.
 */
export async function inSpan<T>(
  name: string,
  options: SpanOptions,
  work: (noted: Noted) => Promise<T>,
): Promise<T> {
  const { kind, attributes, content = false } = options;
  const span = quietly(() => trace.getTracer('perdure').startSpan(name, { kind, attributes }));
  const noted: Noted = {
    attributes(more) {
      quietly(() => span?.setAttributes(more));
    },
    fail(error) {
      quietly(() => span && failSpan(span, error, content));
    },
    traceparent: () => quietly(() => (span?.isRecording() ? traceparentOf(span) : undefined)),
  };
  const active = quietly(() => span && trace.setSpan(context.active(), span));
  try {
    return await (active ? context.with(active, work, undefined, noted) : work(noted));
  } catch (error) {
    noted.fail(error);
    throw error;
  } finally {
    quietly(() => span?.end());
  }
}

function traceparentOf(span: Span): string | undefined {
  const carrier: Record<string, string> = {};
  propagation.inject(trace.setSpan(context.active(), span), carrier);
  const { traceparent } = carrier;
  return isTraceparent(traceparent) ? traceparent : undefined;
}

function failSpan(span: Span, error: unknown, content: boolean): void {
  span.setAttribute('error.type', error instanceof Error ? error.name : 'Error');
  const text = error instanceof Error ? error.message : String(error);
  span.setStatus({ code: SpanStatusCode.ERROR, ...(content && { message: redactMessage(text) }) });
}

/**
 * Runs telemetry code. Returns undefined if it throws, because telemetry must never fail the work
 * itself.
 */
export function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** What of a trace goes into headers, which no codec encrypts. */
interface TraceOptions {
  /** Whether OpenTelemetry's baggage does, which holds what a program puts there. */
  readonly baggage: boolean;
}

/** Returns headers for Temporal with the active trace; the same headers if there is none. */
function withTrace(headers: Headers, { baggage }: TraceOptions): Headers {
  const carrier: Record<string, string> = {};
  quietly(() => propagation.inject(context.active(), carrier));
  if (!baggage) delete carrier['baggage'];
  if (Object.keys(carrier).length === 0 || headers[TRACE_HEADER] !== undefined) return headers;
  return { ...headers, [TRACE_HEADER]: defaultPayloadConverter.toPayload(carrier) };
}

/**
 * Runs `work` in the trace of the headers, below the `span` of the input if it has one. An active
 * span is kept: Temporal's own interceptors, which run first, have already read the headers.
 */
async function inTraceOf<T>(
  headers: Headers,
  [input]: readonly unknown[],
  work: () => Promise<T>,
): Promise<T> {
  const payload = headers[TRACE_HEADER];
  const span = isObject(input) && isTraceparent(input['span']) ? input['span'] : null;
  const isUntraced = payload === undefined && span === null;
  if (isUntraced || trace.getActiveSpan() !== undefined) return await work();
  return await context.with(contextIn(payload, span), work);
}

/**
 * Returns the context of the headers. The client that starts a run writes them, so they may contain
 * anything; invalid ones must not fail an activity.
 */
function contextIn(payload: Headers[string] | undefined, span: string | null): Context {
  const active = context.active();
  try {
    const found: unknown = payload && defaultPayloadConverter.fromPayload(payload);
    const carrier = { ...(isObject(found) && found), ...(span !== null && { traceparent: span }) };
    return propagation.extract(active, carrier);
  } catch {
    return active;
  }
}

/** Continues the trace of a run in each of its activities. */
const activityTraces: ActivityInterceptorsFactory = () => ({
  inbound: {
    execute: async (input, next) =>
      await inTraceOf(input.headers, input.args, async () => next(input)),
  },
});

/** Returns the interceptors of a worker, followed by those that continue traces. */
export function withTraces(given: WorkerInterceptors = {}): WorkerInterceptors {
  return { ...given, activity: [...(given.activity ?? []), activityTraces] };
}

/**
 * Returns the interceptor of perdure's clients. It creates a span for each start of a run and for
 * each message; the run continues the trace of that span.
 */
export function clientSpans(options: TraceOptions = { baggage: true }): WorkflowClientInterceptor {
  return {
    async startWithDetails(input, next) {
      const { workflowId } = input.options;
      const named = agentIn(input.workflowType, input.options.args);
      return await inSpan(...invocation(named, workflowId), async () =>
        next({ ...input, headers: withTrace(input.headers, options) }),
      );
    },
    async startUpdateWithStart(input, next) {
      const { workflowId, args } = input.workflowStartOptions;
      const named = agentIn(input.workflowType, args);
      return await inSpan(...invocation(named, workflowId), async () =>
        next({
          ...input,
          workflowStartHeaders: withTrace(input.workflowStartHeaders, options),
          updateHeaders: withTrace(input.updateHeaders, options),
        }),
      );
    },
    async startUpdate(input, next) {
      if (input.updateName !== 'ask') return await next(input);
      const { workflowId } = input.workflowExecution;
      return await inSpan(...invocation('', workflowId), async () =>
        next({ ...input, headers: withTrace(input.headers, options) }),
      );
    },
    async signalWithStart(input, next) {
      const { workflowId } = input.options;
      const named = agentIn(input.workflowType, input.options.args);
      return await inSpan(...invocation(named, workflowId), async () =>
        next({ ...input, headers: withTrace(input.headers, options) }),
      );
    },
    async signal(input, next) {
      // This signal is a message that waits for a worker.
      if (input.signalName !== 'message') return await next(input);
      const { workflowId } = input.workflowExecution;
      await inSpan(...invocation('', workflowId), async () =>
        next({ ...input, headers: withTrace(input.headers, options) }),
      );
    },
  };
}

function agentIn(workflowType: string, args: readonly unknown[] = []): string {
  const [input] = args;
  return workflowType === 'agent' && isObject(input) ? textField(input, 'agent') : '';
}

function invocation(
  agent: string,
  run: string,
): [string, { kind: SpanKind; attributes: Attributes }] {
  const attributes = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.conversation.id': run,
    ...(agent !== '' && { 'gen_ai.agent.name': agent }),
  };
  return [`invoke_agent ${agent}`.trim(), { kind: SpanKind.CLIENT, attributes }];
}
