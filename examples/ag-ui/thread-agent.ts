import {
  HttpAgent,
  type HttpAgentConfig,
  type HttpAgentFetchFn,
  type RunAgentInput,
  type RunAgentParameters,
  runHttpRequest,
  transformHttpEventStream,
} from '@ag-ui/client';

/** The official agent, which can also attach to a thread again: after a reload, or a lost connection. */
export class ThreadAgent extends HttpAgent {
  constructor(config: HttpAgentConfig) {
    super({ ...config, fetch: reportLoss(config.fetch ?? ((url, init) => fetch(url, init))) });
  }

  /**
   * Shows the messages of the thread, follows what is in progress, and brings the interrupts that are
   * open. Rejects with a 404 if the thread does not exist.
   */
  override async connectAgent(parameters?: RunAgentParameters) {
    this.abortController = new AbortController();
    // The server sends those that are still open.
    this.pendingInterrupts = [];
    return await super.connectAgent(parameters);
  }

  protected override connect(input: RunAgentInput) {
    const request = () => this.fetch(`${this.url}/connect`, this.requestInit(input));
    return transformHttpEventStream(runHttpRequest(request));
  }

  /** Cancels the turn in progress. Its stream then ends with the outcome `cancelled`. */
  async cancel(): Promise<void> {
    const body = JSON.stringify({ threadId: this.threadId });
    const headers = { ...this.headers, 'content-type': 'application/json' };
    await this.fetch(`${this.url}/cancel`, { method: 'POST', headers, body });
  }
}

const LOST = { type: 'RUN_ERROR', code: 'connection_lost', message: 'The connection was lost.' };

/**
 * Ends a stream whose connection breaks with an event. `HttpAgent` 1.0 leaves a rejection unhandled in
 * that case, which ends a process of Node.
 */
function reportLoss(send: HttpAgentFetchFn): HttpAgentFetchFn {
  return async (url, init) => {
    const response = await send(url, init);
    const reader = response.body?.getReader();
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        try {
          const next = await reader?.read();
          if (next?.value !== undefined) controller.enqueue(next.value);
          else controller.close();
        } catch (error) {
          if (init.signal?.aborted) return controller.error(error);
          controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(LOST)}\n\n`));
          controller.close();
        }
      },
      cancel: (reason) => reader?.cancel(reason),
    });
    return new Response(body, response);
  };
}
