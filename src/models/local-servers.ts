import { isObject } from '../core/json.js';

/** A model server that people run on their own machine, and the port it usually has. */
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

const ANSWER_WITHIN_MS = 300;

export interface FoundServer {
  readonly name: string;
  /** For `OPENAI_BASE_URL`. */
  readonly baseUrl: string;
}

async function ask({ name, port }: LocalServer): Promise<FoundServer | null> {
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  try {
    const response = await fetch(`${baseUrl}/models`, {
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    const answer: unknown = await response.json();
    // Any web server may sit on such a port; only a model server lists models.
    return response.ok && isObject(answer) && Array.isArray(answer['data'])
      ? { name, baseUrl }
      : null;
  } catch {
    return null;
  }
}

/** The first of `servers` that lists models on this machine; null after 300 ms when none does. */
export async function findLocalServer(
  servers: readonly LocalServer[] = LOCAL_SERVERS,
): Promise<FoundServer | null> {
  const answers = await Promise.all(servers.map(ask));
  return answers.find((answer) => answer !== null) ?? null;
}
