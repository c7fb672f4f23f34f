/**
 * The parts of a request that a server may refuse and that a call can leave out or replace. The
 * names are those of the API. A value after a colon means that only this value is refused.
 * Histories store these names, so none may change its meaning.
 */
const FIXED = [
  'role:system',
  'role:developer',
  'role_order:any',
  'response_format:strict',
  'response_format:json_schema',
  'response_format:json_object',
  'logprobs',
  'tool_choice:required',
  'tool_choice:none',
  'tool_choice:auto',
  'stream',
  'stream_options',
  'max_completion_tokens',
  'max_tokens',
  'include',
  'store',
  'provider_items',
  // The forms of a message of calls without a text: null, an empty text, no text.
  'content:null',
  'content:empty',
  'content:absent',
  // perdure's own ids of calls, and the property names of tools as their authors wrote them.
  'call_ids:own',
  'property_names:own',
  // Results without the name of their tool.
  'tool_results:unnamed',
  'tools:strict',
  'cache_control',
] as const;

/**
 * One of the fixed names, a setting of the agent under its own name, or one field of the provider's
 * items.
 */
export type RequestParameter =
  | (typeof FIXED)[number]
  | `settings.${string}`
  | `provider_items.${string}`;

/** Reads recorded names as parameters; names unknown to this version are omitted. */
export function toParameters(names: readonly string[]): readonly RequestParameter[] {
  return names.filter(isParameter);
}

function isParameter(name: string): name is RequestParameter {
  const fixed: readonly string[] = FIXED;
  return fixed.includes(name) || name.startsWith('settings.') || name.startsWith('provider_items.');
}
