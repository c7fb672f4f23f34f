import {
  context,
  propagation,
  SpanStatusCode,
  trace,
  SpanKind,
  type Attributes,
  type Context,
  type Span,
} from '@opentelemetry/api';
import { defaultPayloadConverter, type Headers } from '@temporalio/common';
import { TRACE_HEADER } from '../core/input/trace-header.js';
import { isObject } from '../core/json.js';
import { redactMessage } from '../secrets/redact.js';

/** The kind of a span around a request to another service. */
export const CLIENT_SPAN = SpanKind.CLIENT;
export const INTERNAL_SPAN = SpanKind.INTERNAL;

/** A span to be. */
export interface SpanOptions {
  readonly kind: SpanKind;
  readonly attributes: Attributes;
}

/**
 * Does work in a span, a child of the one under way. Without an OpenTelemetry SDK in the process,
 * there is no span. An exception is noted without secrets, and passed on.
 */
export async function inSpan<T>(
  name: string,
  options: SpanOptions,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  return await trace
    .getTracer('perdure')
    .startActiveSpan(name, options, async (span: Span): Promise<T> => {
      try {
        return await work(span);
      } catch (error) {
        failSpan(span, error);
        throw error;
      } finally {
        span.end();
      }
    });
}

/** Marks a span as failed. */
export function failSpan(span: Span, error: unknown): void {
  const { name, message } =
    error instanceof Error ? error : { name: 'Error', message: String(error) };
  span.setAttribute('error.type', name);
  span.setStatus({ code: SpanStatusCode.ERROR, message: redactMessage(message) });
}

/** Returns headers for Temporal with the trace under way; the same headers if there is none. */
export function withTrace(headers: Headers): Headers {
  const carrier: Record<string, string> = {};
  propagation.inject(context.active(), carrier);
  if (Object.keys(carrier).length === 0 || headers[TRACE_HEADER] !== undefined) return headers;
  return { ...headers, [TRACE_HEADER]: defaultPayloadConverter.toPayload(carrier) };
}

/**
 * Does work in the trace that the headers name, unless a span is under way already: Temporal's own
 * interceptors, which come first, have read the headers then.
 */
export async function inTraceOf<T>(headers: Headers, work: () => Promise<T>): Promise<T> {
  const payload = headers[TRACE_HEADER];
  if (payload === undefined || trace.getActiveSpan() !== undefined) return await work();
  return await context.with(contextIn(payload), work);
}

/** Whoever starts a run writes its headers, so they may hold anything: rubbish must not fail an activity. */
function contextIn(payload: Headers[string]): Context {
  const active = context.active();
  try {
    const carrier: unknown = defaultPayloadConverter.fromPayload(payload);
    return isObject(carrier) ? propagation.extract(active, carrier) : active;
  } catch {
    return active;
  }
}
