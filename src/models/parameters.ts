/**
 * What of a request a server may refuse and a call can do without or put otherwise. The names are
 * those of the wire; behind a colon stands the value, where the parameter itself is welcome.
 * Histories keep these names: none may change its meaning.
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

/** One of the above, or a setting of the agent under its own name. */
export type RequestParameter = (typeof FIXED)[number] | `settings.${string}`;

function isParameter(name: string): name is RequestParameter {
  const fixed: readonly string[] = FIXED;
  return fixed.includes(name) || name.startsWith('settings.');
}

/** What was recorded, as parameters; names that this version does not know are left out. */
export function parametersOf(names: readonly string[]): readonly RequestParameter[] {
  return names.filter(isParameter);
}
