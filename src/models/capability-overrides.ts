import { OPTIMISTIC, type Capabilities } from './capabilities.js';

const WORDS: { readonly [K in keyof Capabilities]?: readonly Capabilities[K][] } = {
  systemRole: ['system', 'developer', 'user'],
  roleOrder: ['any', 'alternating'],
  responseFormat: ['json_schema', 'json_object', 'none'],
  maxTokensParameter: ['max_completion_tokens', 'max_tokens'],
};

function isCapability(field: string): field is keyof Capabilities {
  return Object.hasOwn(OPTIMISTIC, field);
}

/** Throws unless each field is a capability and has a value that it can have; `path` is for the message. */
export function checkCapabilities(overrides: unknown, path: string): void {
  if (typeof overrides !== 'object' || overrides === null) {
    throw new Error(
      `${path}: ${JSON.stringify(overrides)}; give fields such as { logprobs: false }`,
    );
  }
  for (const [field, value] of Object.entries(overrides) as [string, unknown][]) {
    if (!isCapability(field)) {
      const names = Object.keys(OPTIMISTIC).join(', ');
      throw new Error(`${path}: no such capability "${field}"; there are ${names}`);
    }
    const possible: readonly unknown[] = WORDS[field] ?? [true, false];
    if (!possible.includes(value)) {
      throw new Error(`${path}.${field}: ${JSON.stringify(value)}; give ${possible.join(' or ')}`);
    }
  }
}
