import { historyToJson, type History } from '../../src/history/history-event.js';

/**
 * Returns the whole content of a history as one text: payload bytes as UTF-8, names and messages
 * unchanged.
 */
export function historyText(history: History): string {
  const parts: string[] = [];
  const walk = (value: unknown): void => {
    if (typeof value === 'string') parts.push(value);
    else if (value instanceof Uint8Array) parts.push(Buffer.from(value).toString());
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(walk);
  };
  walk(history.events);
  return parts.join('\n');
}

/** Returns the size of a history as the server counts it, about: the bytes of its events as JSON. */
export function historyBytes(history: History): number {
  return Buffer.byteLength(JSON.stringify(JSON.parse(historyToJson(history))));
}
