import { isObject } from '../core/json.js';

/** A model server that people run on their own machine, and its usual port. */
export interface LocalServer {
  readonly name: string;
  readonly port: number;
}

export const LOCAL_SERVERS: readonly LocalServer[] = [
  { name: 'Ollama', port: 11434 },
  { name: 'llama.cpp', port: 8080 },
  { name: 'LM Studio', port: 1234 },
  { name: 'vLLM', port: 8000 },
];

const TIMEOUT_MS = 300;

export interface RunningServer {
  readonly name: string;
  /** The value for OPENAI_BASE_URL. */
  readonly baseUrl: string;
}

/**
 * Returns the first of `servers` that lists models on this machine; null if none does within 300
 * ms.
 */
export async function findLocalServer(
  servers: readonly LocalServer[] = LOCAL_SERVERS,
): Promise<RunningServer | null> {
  const found = await Promise.all(servers.map(probeServer));
  return found.find((server) => server !== null) ?? null;
}

async function probeServer({ name, port }: LocalServer): Promise<RunningServer | null> {
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  try {
    const response = await fetch(`${baseUrl}/models`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const answer: unknown = await response.json();
    // Any web server may use such a port, but only a model server lists models.
    return response.ok && isObject(answer) && Array.isArray(answer['data'])
      ? { name, baseUrl }
      : null;
  } catch {
    return null;
  }
}
