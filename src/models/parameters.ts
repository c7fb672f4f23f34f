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
] as const;

/** One of the fixed names, or a setting of the agent under its own name. */
export type RequestParameter = (typeof FIXED)[number] | `settings.${string}`;

/** Reads recorded names as parameters; names unknown to this version are omitted. */
export function toParameters(names: readonly string[]): readonly RequestParameter[] {
  return names.filter(isParameter);
}

function isParameter(name: string): name is RequestParameter {
  const fixed: readonly string[] = FIXED;
  return fixed.includes(name) || name.startsWith('settings.');
}
