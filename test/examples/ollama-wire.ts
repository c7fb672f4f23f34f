import { createServer, type ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { createGate, type Gate } from '../../src/testing/play.js';
import type { Scene, Wire } from '../models/adapter-contract.js';

export interface OllamaWire extends Wire {
  readonly baseUrl: string;
  readonly bodies: readonly Record<string, unknown>[];
}

type Reply = Extract<Scene, { type: 'reply' }>;

/** The values of an answer: deltas and an end if a stream is requested, otherwise all in one. */
function valuesOf({ text = '', calls = [], ...scene }: Reply, stream: boolean): readonly object[] {
  const { usage, finish, reasoning } = scene;
  const toolCalls = calls.map((call) => ({ function: call }));
  const end = {
    done: true,
    done_reason: finish ?? 'stop',
    ...(usage !== null && {
      prompt_eval_count: usage?.inputTokens ?? 10,
      eval_count: usage?.outputTokens ?? 5,
    }),
  };
  const thought = reasoning === undefined ? {} : { thinking: reasoning };
  if (!stream) {
    return [
      { message: { role: 'assistant', content: text, tool_calls: toolCalls, ...thought }, ...end },
    ];
  }
  const piece = (message: object) => ({ message: { content: '', ...message }, done: false });
  return [
    ...(reasoning === undefined ? [] : [piece(thought)]),
    ...Array.from(text, (content) => piece({ content })),
    ...toolCalls.map((call) => piece({ tool_calls: [call] })),
    { ...piece({}), ...end },
  ];
}

async function playReply(
  scene: Reply,
  response: ServerResponse,
  { stream, gate }: { stream: boolean; gate: (name: string) => Gate },
): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const { holdBeforeHeaders, holdAfterHeaders, cut } = scene;
  if (holdBeforeHeaders !== undefined) await gate(holdBeforeHeaders).wait(gone.signal);
  response.writeHead(200, { 'content-type': stream ? 'application/x-ndjson' : 'application/json' });
  response.flushHeaders();
  if (holdAfterHeaders !== undefined) await gate(holdAfterHeaders).wait(gone.signal);
  const body = valuesOf(scene, stream)
    .map((value) => JSON.stringify(value))
    .join('\n');
  if (cut === undefined) return void response.end(body);
  const part = body.slice(0, Math.floor(body.length / 2));
  if (cut === 'end') return void response.end(part);
  response.write(part, () => void setTimeout(() => response.socket?.resetAndDestroy(), 20));
}

/** A server that speaks Ollama's native protocol as scripted. */
export async function startOllamaWire(): Promise<OllamaWire> {
  const scenes: Scene[] = [];
  const bodies: Record<string, unknown>[] = [];
  const gates = new Map<string, Gate>();
  const gate = (name: string): Gate => {
    const known = gates.get(name) ?? createGate();
    gates.set(name, known);
    return known;
  };
  let abandon: (() => void) | undefined;
  const abandoned = new Promise<void>((resolve) => (abandon = resolve));

  const server = createServer((incoming, response) => {
    response.on('close', () => {
      if (!response.writableFinished) abandon?.();
    });
    const play = async (): Promise<void> => {
      const body = JSON.parse(await readText(incoming)) as Record<string, unknown>;
      bodies.push(body);
      const scene = incoming.url === '/api/chat' ? scenes.shift() : undefined;
      const json = { 'content-type': 'application/json' };
      switch (scene?.type) {
        case 'reply':
          return await playReply(scene, response, { stream: body['stream'] === true, gate });
        case 'error': {
          const { status, headers = {}, error = {} } = scene;
          const errorBody = JSON.stringify({ error: error.message ?? 'no' });
          return void response.writeHead(status, { ...json, ...headers }).end(errorBody);
        }
        case 'raw':
          return void response.writeHead(200, json).end(scene.body);
        case 'reset':
          return void response.socket?.resetAndDestroy();
        case undefined:
          return void response.writeHead(400, json).end('{"error":"no scene"}');
      }
    };
    play().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;

  return {
    baseUrl: `http://127.0.0.1:${port}`,
    bodies,
    get requestCount() {
      return bodies.length;
    },
    script: (added) => void scenes.push(...added),
    reached: (barrier) => gate(barrier).barrier.reached,
    abandoned: () => abandoned,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
