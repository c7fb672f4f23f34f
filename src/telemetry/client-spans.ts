import { SpanKind, type Attributes } from '@opentelemetry/api';
import type { WorkflowClientInterceptor } from '@temporalio/client';
import { isObject, textField } from '../core/json.js';
import { inSpan, withTrace } from './spans.js';

/**
 * Returns the interceptor of perdure's clients. It creates a span for each start of a run and for
 * each message; the run continues the trace of that span.
 */
export function clientSpans(): WorkflowClientInterceptor {
  return {
    async startWithDetails(input, next) {
      const { workflowId } = input.options;
      const named = agentIn(input.workflowType, input.options.args);
      return await inSpan(...invocation(named, workflowId), async () =>
        next({ ...input, headers: withTrace(input.headers) }),
      );
    },
    async startUpdateWithStart(input, next) {
      const { workflowId, args } = input.workflowStartOptions;
      const named = agentIn(input.workflowType, args);
      return await inSpan(...invocation(named, workflowId), async () =>
        next({
          ...input,
          workflowStartHeaders: withTrace(input.workflowStartHeaders),
          updateHeaders: withTrace(input.updateHeaders),
        }),
      );
    },
    async startUpdate(input, next) {
      if (input.updateName !== 'ask') return await next(input);
      const { workflowId } = input.workflowExecution;
      return await inSpan(...invocation('', workflowId), async () =>
        next({ ...input, headers: withTrace(input.headers) }),
      );
    },
    async signalWithStart(input, next) {
      const { workflowId } = input.options;
      const named = agentIn(input.workflowType, input.options.args);
      return await inSpan(...invocation(named, workflowId), async () =>
        next({ ...input, headers: withTrace(input.headers) }),
      );
    },
    async signal(input, next) {
      // This signal is a message that waits for a worker.
      if (input.signalName !== 'message') return await next(input);
      const { workflowId } = input.workflowExecution;
      await inSpan(...invocation('', workflowId), async () =>
        next({ ...input, headers: withTrace(input.headers) }),
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
